//! Memory that is no page of a file, though it is mapped through a descriptor: rings of drivers, secret memory, block
//! devices; and memory that the kernel drops as it likes.

use super::Test;
use super::access::Felt;
use super::account::{self, command::of_type, command::records};
use super::behind::DiskFile;
use super::explain::{makes, may_make_in_child, may_make_itself};
use super::puppet::{self, Puppet};
use super::states::detail;
use super::support::{self, page_bytes, plain_entry, skip};
use pmdb::inspect::Access::{Read, Write};
use pmdb::kernel::{Kind, State};
use pmdb::report::{AccountClass, Effect};
use serde_json::Value;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("lent::a_ring_of_packets", a_ring_of_packets),
    ("lent::a_ring_of_io_uring", a_ring_of_io_uring),
    ("lent::records_of_perf", records_of_perf),
    ("lent::secret_memory", secret_memory),
    ("lent::a_block_device", a_block_device),
    ("lent::droppable_memory", droppable_memory),
    ("lent::freed_memory_that_a_child_has", freed_memory_that_a_child_has),
    ("lent::nothing_is_copied_where_a_fork_wipes", nothing_is_copied_where_a_fork_wipes),
    ("lent::a_full_file_system_in_memory", a_full_file_system_in_memory),
];

/// Rss of the region that begins at `memory`, as smaps has it.
fn rss_of_region(pid: u32, memory: u64) -> u64 {
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("its smaps");
    account::plain_fields(&smaps)[&memory]["Rss"]
}

/// The kind of a present page, in `explain` and `walk` alike, and its class in `account`.
fn is_lent(puppet: &Puppet, memory: u64, pages: u64, kind: Kind, class: AccountClass) {
    let target = puppet.0.attach();
    let page = detail(&target, memory).page;
    assert_eq!((page.state(), page.kind), (State::Present, Some(kind)));
    if support::shows_frames() {
        assert_eq!(account::classes(&target, memory, pages), [(class, pages)]);
    }
    let range = format!("{memory:#x}, +{:#x}", pages * page_bytes());
    let all = records(puppet.0.pid(), &format!("walk {range} where {}", kind.word()));
    let sum = of_type(&all, "walk-summary")[0];
    assert_eq!(sum["pages"], pages, "{sum}");
    let all = records(puppet.0.pid(), &format!("walk {range} where file"));
    assert_eq!(of_type(&all, "walk-summary")[0]["pages"], 0);
}

/// Pages that a driver has inserted: no reclaim frees them, and where one is missing, nothing brings it back.
fn a_ring_of_packets() {
    const NAME: &str = "lent::a_ring_of_packets";
    const PAGES: u64 = 16;
    let mut puppet = Puppet::start();
    let memory = match puppet.asks("packets", &[PAGES * page_bytes()]) {
        error @ ..0 => return skip(NAME, &format!("no ring of packets: error {}", -error)),
        memory => memory as u64,
    };
    is_lent(&puppet, memory, PAGES, Kind::DriverMemory, AccountClass::Driver);
    _ = puppet.advises(memory, PAGES, libc::MADV_PAGEOUT);
    assert_eq!(rss_of_region(puppet.0.pid(), memory), PAGES * page_bytes(), "reclaim freed it");
    makes(&mut puppet, "ring", memory, Read, Effect::Nothing);
    makes(&mut puppet, "ring", memory, Write, Effect::Nothing);
    assert_eq!(puppet.advises(memory, 1, libc::MADV_DONTNEED), Ok(()));
    let target = puppet.0.attach();
    let page = detail(&target, memory).page;
    assert_eq!((page.state(), page.kind), (State::Untouched, Some(Kind::DriverMemory)));
    makes(&mut puppet, "unmapped page of a ring", memory, Read, Effect::NoDriverPage);
}

/// The mapping may be longer than the ring: there is nothing in the rest.
fn a_ring_of_io_uring() {
    const NAME: &str = "lent::a_ring_of_io_uring";
    for access in [Read, Write] {
        let mut puppet = Puppet::start();
        let memory = match puppet.asks("uring", &[2 * page_bytes()]) {
            error @ ..0 => return skip(NAME, &format!("no io_uring: error {}", -error)),
            memory => memory as u64,
        };
        is_lent(&puppet, memory, 1, Kind::DriverMemory, AccountClass::Driver);
        makes(&mut puppet, "io_uring", memory + page_bytes(), access, Effect::NoDriverPage);
    }
}

/// The records may be mapped to be written, and yet a write to one raises SIGBUS (perf_mmap_pfn_mkwrite in
/// kernel/events/core.c, since perf maps them without pages).
fn records_of_perf() {
    const NAME: &str = "lent::records_of_perf";
    let mut puppet = Puppet::start();
    let memory = match puppet.asks("perf", &[2 * page_bytes()]) {
        error @ ..0 => return skip(NAME, &format!("no records of perf: error {}", -error)),
        memory => memory as u64 + page_bytes(),
    };
    if detail(&puppet.0.attach(), memory).page.state() != State::PfnMapped {
        return skip(NAME, "no records of perf without pages: this kernel maps some");
    }
    may_make_itself(&mut puppet, "records of perf", memory, Write, Effect::DriverRefuses);
}

/// Secret memory is locked, nothing moves it, and a child maps it without a read from a disk.
fn secret_memory() {
    const NAME: &str = "lent::secret_memory";
    const PAGES: u64 = 8;
    let mut puppet = Puppet::start();
    let memory = match puppet.asks("secret", &[PAGES * page_bytes()]) {
        error @ ..0 => return skip(NAME, &format!("no memfd_secret: error {}", -error)),
        memory => memory as u64,
    };
    puppet.writes(memory, PAGES / 2);
    let child = puppet.does("branch", &[]) as u32;
    is_lent(&puppet, memory, PAGES / 2, Kind::Secret, AccountClass::Secret);
    let row = format!("explain {memory:#x}");
    let told = &records(puppet.0.pid(), &row)[0];
    assert!(told["movable"].is_null() || told["movable"] == "never", "{told}");
    makes(&mut puppet, "secret memory", memory, Write, Effect::Nothing);
    may_make_in_child(&mut puppet, child, "secret memory of the parent", memory, Read, Effect::MapCached);
    may_make_in_child(&mut puppet, child, "hole of secret memory", memory + 6 * page_bytes(), Read, Effect::Zeros);
}

/// The pages of a block device are in a page cache, as those of a file, though its node lies in memory.
fn a_block_device() {
    const NAME: &str = "lent::a_block_device";
    let disk = DiskFile::of(16 * page_bytes());
    let device = match LoopDevice::of(&disk.path) {
        Ok(device) => device,
        Err(reason) => return skip(NAME, &reason),
    };
    let file = std::fs::File::open(&device.0).expect("a device");
    let mut puppet = Puppet::start();
    let memory = puppet.maps_file(&file, 2, libc::PROT_READ, libc::MAP_SHARED);
    puppet.reads(memory, 1);
    let page = detail(&puppet.0.attach(), memory).page;
    assert_eq!((page.state(), page.kind), (State::Present, Some(Kind::File)));
}

/// A block device over a file, until this is dropped.
struct LoopDevice(String);

impl LoopDevice {
    fn of(path: &std::path::Path) -> Result<LoopDevice, String> {
        let made = Command::new("losetup").args(["--find", "--show", "--read-only"]).arg(path).output();
        let made = made.map_err(|error| format!("no losetup: {error}"))?;
        if !made.status.success() {
            return Err("no loop device can be set up here".to_owned());
        }
        Ok(LoopDevice(String::from_utf8_lossy(&made.stdout).trim().to_owned()))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// The kernel discards droppable memory instead of writing it to swap, whatever was written there.
fn droppable_memory() {
    const NAME: &str = "lent::droppable_memory";
    const PAGES: u64 = 64;
    let mut puppet = Puppet::start();
    let memory = match puppet.asks("droppable", &[PAGES * page_bytes()]) {
        error @ ..0 => return skip(NAME, &format!("no MAP_DROPPABLE: error {}", -error)),
        memory => memory as u64,
    };
    puppet.writes(memory, PAGES);
    let pid = puppet.0.pid();
    let told = &records(pid, &format!("explain {memory:#x}"))[0];
    assert_eq!((&told["droppable"], &told["discardable"]), (&Value::Bool(true), &Value::Bool(true)), "{told}");
    if support::is_root() {
        let all = records(pid, &format!("account {memory:#x}, +{:#x}", PAGES * page_bytes()));
        let row = of_type(&all, "account")[0];
        assert_eq!((&row["droppable"], &row["lazily_freed"]), (&(PAGES * page_bytes()).into(), &0.into()), "{row}");
        let whole = records(pid, "account full");
        let droppable = of_type(&whole, "account").into_iter().filter_map(|row| row["droppable"].as_u64());
        assert_eq!(droppable.sum::<u64>(), PAGES * page_bytes(), "{whole:#?}");
    }
    _ = puppet.advises(memory, PAGES, libc::MADV_PAGEOUT);
    let is_gone = |page| plain_entry(pid, memory + page * page_bytes()).is_some_and(|entry| entry >> 62 == 0);
    if !(0..PAGES).any(is_gone) {
        skip(NAME, "the kernel kept the page");
    }
}

/// Reclaim looks at the entries of all that map a page: it keeps what a child has written, which no file shows.
fn freed_memory_that_a_child_has() {
    const PAGES: u64 = 32;
    if !support::is_root() {
        return skip("lent::freed_memory_that_a_child_has", "only root sees which pages were freed");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", PAGES);
    puppet.writes(memory, PAGES);
    puppet.does("branch", &[]);
    assert_eq!(puppet.advises(memory, PAGES, libc::MADV_FREE), Ok(()));
    let pid = puppet.0.pid();
    let told = &records(pid, &format!("explain {memory:#x}"))[0];
    if told["flags"].as_array().is_none_or(|flags| flags.contains(&"swapbacked".into())) {
        return skip("lent::freed_memory_that_a_child_has", "this kernel does not free what is shared");
    }
    assert!(told["discardable"].is_null() && told["why"]["discardable"].is_string(), "{told}");
    let all = records(pid, "account");
    let sum = of_type(&all, "account-summary")[0];
    assert!(sum["lazily_freed"].as_u64() >= Some(PAGES / 2 * page_bytes()), "{sum}");
    assert_eq!(sum["lazily_freed_elsewhere"], sum["lazily_freed"], "{sum}");
}

/// The pages that a child writes where it began with nothing are no copies.
fn nothing_is_copied_where_a_fork_wipes() {
    const NAME: &str = "lent::nothing_is_copied_where_a_fork_wipes";
    const MADV_WIPEONFORK: i32 = 18;
    const PAGES: u64 = 16;
    if !support::shows_frames() {
        return skip(NAME, "frames are hidden");
    }
    let mut puppet = Puppet::start();
    let (wiped, copied) = (puppet.maps_far(), puppet.maps("anonymous", PAGES));
    puppet.writes(wiped, PAGES);
    puppet.writes(copied, PAGES);
    assert_eq!(puppet.advises(wiped, PAGES, MADV_WIPEONFORK), Ok(()));
    let child = puppet.does("branch", &[]);
    for page in 0..4 {
        for memory in [wiped, copied] {
            let felt = Felt::from_answer(puppet.asks("child_store", &[memory + page * page_bytes()]));
            assert_eq!(felt, Felt::Faults { minor: 1, major: 0 });
        }
    }
    let counts = |memory: u64| {
        let line = format!("compare {child} in {memory:#x}, +{:#x}", PAGES * page_bytes());
        let all = records(puppet.0.pid(), &line);
        let sum = of_type(&all, "comparison-summary")[0].clone();
        ["copied", "only_here", "only_there"].map(|field| sum[field].as_u64().expect("a number"))
    };
    assert_eq!(counts(wiped), [0, PAGES, 4]);
    assert_eq!(counts(copied), [4, 0, 0]);
}

/// An access to a hole, a read too, is refused where the file system is full.
fn a_full_file_system_in_memory() {
    const NAME: &str = "lent::a_full_file_system_in_memory";
    if !support::is_root() {
        return skip(NAME, "only root may mount");
    }
    for access in [Read, Write] {
        let mut puppet = Puppet::start();
        // Of eight pages of the file, the file system has room for four.
        let memory = puppet.does("full", &[8 * page_bytes(), 4 * page_bytes()]);
        let hole = memory + 6 * page_bytes();
        makes(&mut puppet, "page that is there", memory, Write, Effect::Nothing);
        let told = &records(puppet.0.pid(), &format!("explain {hole:#x}"))[0];
        assert_eq!(told["room"], serde_json::json!({ "bytes": 4 * page_bytes(), "left": 0 }), "{told}");
        makes(&mut puppet, "hole of a full file system", hole, access, Effect::NoSpace);
    }
}

/// Maps a ring for packets, or gives the error number.
pub fn packets(bytes: usize) -> i64 {
    /// `struct tpacket_req`: bytes of a block, blocks, bytes of a frame, frames.
    #[repr(C)]
    struct Request([u32; 4]);
    // SAFETY: a system call without memory.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    if fd < 0 {
        return puppet::answer(-1);
    }
    let page = page_bytes() as u32;
    let request = Request([page, bytes as u32 / page, page / 2, 2 * (bytes as u32 / page)]);
    let length = size_of::<Request>() as libc::socklen_t;
    // SAFETY: a socket of our own, and a structure of ours.
    let set =
        unsafe { libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, (&raw const request).cast(), length) };
    if set < 0 { puppet::answer(-1) } else { shared(fd, bytes) }
}

/// Maps the ring of an io_uring of few entries, or gives the error number.
pub fn uring(bytes: usize) -> i64 {
    let mut parameters = [0u32; 30];
    // SAFETY: a structure of 120 bytes that the kernel reads and fills.
    match unsafe { libc::syscall(libc::SYS_io_uring_setup, 8, parameters.as_mut_ptr()) } {
        -1 => puppet::answer(-1),
        fd => shared(fd as i32, bytes),
    }
}

/// Maps the records of perf, of its software clock, or gives the error number.
pub fn perf(bytes: usize) -> i64 {
    const SOFTWARE: u32 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    // perf_event_attr in its first version: type, size, config (the processor's clock), and at 40 the flags.
    let mut attributes = [0u64; 8];
    attributes[0] = u64::from(SOFTWARE) | 64 << 32;
    attributes[5] = EXCLUDE_KERNEL;
    // SAFETY: a structure of 64 bytes that the kernel reads.
    match unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_mut_ptr(), 0, -1, -1, 0) } {
        -1 => puppet::answer(-1),
        fd => shared(fd as i32, bytes),
    }
}

/// Maps droppable memory, or gives the error number.
pub fn droppable(bytes: usize) -> i64 {
    const MAP_DROPPABLE: i32 = 8;
    let (rw, flags) = (libc::PROT_READ | libc::PROT_WRITE, MAP_DROPPABLE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice.
    puppet::mapped(unsafe { libc::mmap(std::ptr::null_mut(), bytes, rw, flags, -1, 0) })
}

/// Maps a file of `bytes` on a new file system that has room for `room`, and fills that. Only this process sees it.
pub fn full(bytes: usize, room: usize) -> i64 {
    let folder = tempfile::tempdir().expect("a folder");
    let point = folder.path().to_str().expect("a path");
    // SAFETY: a system call without memory.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0, "a mount namespace");
    assert!(super::files::mount("none", "/", "none", libc::MS_REC | libc::MS_PRIVATE, ""), "to keep it to itself");
    assert!(super::files::mount("none", point, "tmpfs", 0, &format!("size={room}")), "to mount");
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(folder.path().join("file"));
    let file = file.expect("a new file");
    file.set_len(bytes as u64).expect("its length");
    let memory = shared(file.as_raw_fd(), bytes);
    puppet::each_page(memory as usize, room / page_bytes() as usize, |byte| {
        // SAFETY: memory of our own, for which there is room.
        unsafe { byte.write_volatile(1) }
    });
    // The mapping keeps the file and its file system.
    drop(file);
    // SAFETY: a path that ends in zero.
    unsafe { libc::umount2(std::ffi::CString::new(point).expect("a path").as_ptr(), libc::MNT_DETACH) };
    memory
}

/// A shared mapping of a descriptor, which keeps what it is of.
fn shared(fd: i32, bytes: usize) -> i64 {
    // SAFETY: the number is ours, and is not used again.
    let fd = std::mem::ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(fd) });
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    puppet::mapped(unsafe { libc::mmap(std::ptr::null_mut(), bytes, rw, libc::MAP_SHARED, fd.as_raw_fd(), 0) })
}
