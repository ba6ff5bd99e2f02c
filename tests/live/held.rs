//! Pages that somebody holds, by each way that the kernel's record of a page shows.
//!
//! A target announces the address of its page, and how many references, pins and mappings the record must have: before
//! it is held, while it is, and afterwards. `/proc` shows only some of these. One reference more is possible at any
//! time: that of a batch for the LRU lists.

use super::answers::program;
use super::puppet::{answer, each_page, fork, huge, kill, mapped, memfd, stay_on_one_processor};
use super::states::{MADV_COLLAPSE, detail};
use super::support::{has_scan, has_vm_flag, huge_page_bytes, is_root, page_bytes, plain_entry, pool_page_bytes};
use super::support::{release, skip};
use super::system;
use super::target::{Target, announce, wait};
use super::{Scenario, Test, huge::word};
use pmdb::inspect::PageDetail;
use pmdb::report::RecordedOwner;
use pmdb::{AddressRange, AddressSpace, Evidence, VirtualAddress};
use serde_json::Value;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

pub const TESTS: &[Test] = &[
    ("held::registered_with_io_uring", || shows("held::registered_with_io_uring", "registered")),
    ("held::listed_elsewhere", listed_elsewhere),
    ("held::registered_in_the_page_cache", || shows("held::registered_in_the_page_cache", "cached")),
    ("held::a_part_of_a_huge_page_registered", || shows("held::a_part_of_a_huge_page_registered", "huge")),
    ("held::a_part_of_a_page_of_the_pool_registered", || {
        shows("held::a_part_of_a_page_of_the_pool_registered", "pooled")
    }),
    ("held::spliced_into_a_pipe", || shows("held::spliced_into_a_pipe", "spliced")),
    ("held::shared_by_a_fork", || shows("held::shared_by_a_fork", "forked")),
    ("held::locked", || shows("held::locked", "locked")),
    ("held::as_the_kernel_records_it", as_the_kernel_records_it),
    ("held::recorded_where_huge_pages_are_off", recorded_where_huge_pages_are_off),
];

pub const SCENARIOS: &[Scenario] = &[("holds", holds), ("lists", lists)];

/// A pin of a page that is no large folio counts as so many references (GUP_PIN_COUNTING_BIAS in include/linux/mm.h).
const REFERENCES_OF_A_PIN: u64 = 1024;

/// What a target says of its page.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub address: u64,
    pub references: u64,
    pub pins: u64,
    pub mappings: u64,
}

/// A target that holds a page.
pub struct Holder {
    pub target: Target,
    pub now: Held,
}

impl Holder {
    /// Starts one, which does not hold its page yet; or an error number.
    fn start(way: &str) -> Result<Holder, i64> {
        let mut target = Target::start("holds", &[way]);
        let now = Self::said(&mut target)?;
        Ok(Holder { target, now })
    }

    /// Has it take the next step: hold the page, or release it. The kernel may refuse that, with an error number.
    pub fn go_on(&mut self) -> Result<Held, i64> {
        self.target.send("go on");
        self.now = Self::said(&mut self.target)?;
        Ok(self.now)
    }

    /// Has it collapse its memory into a huge page, which the kernel does only if nobody else holds a page of it.
    fn collapses(&mut self) -> i64 {
        self.target.send("collapse");
        self.target.line().parse().expect("a number")
    }

    fn said(target: &mut Target) -> Result<Held, i64> {
        let line = target.line();
        let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        match numbers[..] {
            [address, references, pins, mappings] => {
                let [address, references, pins, mappings] = [address, references, pins, mappings].map(|one| one as u64);
                Ok(Held { address, references, pins, mappings })
            }
            [error] => Err(-error),
            _ => panic!("not a page: {line}"),
        }
    }
}

fn holds(arguments: &[String]) {
    let [way] = arguments else { panic!("a way to hold a page") };
    stay_on_one_processor();
    let page = page_bytes() as usize;
    // So much that it can become a huge page.
    let whole = huge_page_bytes().map_or(page, |bytes| bytes as usize);
    let (whole, start) = match way.as_str() {
        "cached" => (whole, shared(whole)),
        "pooled" => (pool_page_bytes() as usize, pooled(pool_page_bytes() as usize)),
        "read" => (2 * READ_PAGES * page, huge(2 * READ_PAGES * page)),
        _ => (whole, huge(whole)),
    };
    if start < 0 {
        refused(start)
    }
    let start = start as usize;
    let address = start + whole / 2 / page * page;
    let advise = |advice| {
        // SAFETY: the mapping made just now, all of which is this target's.
        answer(unsafe { libc::madvise(start as *mut _, whole, advice) }.into())
    };
    let write = |start, pages| {
        // SAFETY: within the mapping.
        each_page(start, pages, |byte| unsafe { byte.write_volatile(1) })
    };
    let mut references = 1;
    // Before Linux 6.5 reads with O_DIRECT took plain references (`bio_iov_iter_get_pages`).
    let (taken_by_reads, pins_of_reads) = if release() < (6, 5) { (1, 0) } else { (REFERENCES_OF_A_PIN, 1) };
    match way.as_str() {
        "huge" => {
            write(start, whole / page);
            // Where it was not huge from the start.
            _ = advise(MADV_COLLAPSE);
        }
        "cached" => {
            write(address, 1);
            references += 1;
        }
        "pooled" => _ = write(address, 1),
        "read" => {
            advise(libc::MADV_NOHUGEPAGE);
            // Later the disk is slow: what is read of this program and of its place on the disk is in memory then.
            let read = DirectRead::submit(address, READ_PAGES * page).unwrap_or_else(refused);
            read.finish();
        }
        _ => {
            advise(libc::MADV_NOHUGEPAGE);
            write(address, 1);
        }
    }
    let say = |references, pins, mappings| {
        announce(format!("{address} {references} {pins} {mappings}"));
        loop {
            match wait().as_deref() {
                Some("collapse") => {
                    advise(libc::MADV_HUGEPAGE);
                    announce(advise(MADV_COLLAPSE));
                }
                Some(_) => break,
                None => std::process::exit(0),
            }
        }
    };
    say(references, 0, 1);
    match way.as_str() {
        "registered" | "cached" | "huge" | "pooled" => {
            let ring = registered(address, page).unwrap_or_else(refused);
            let is_large = matches!(way.as_str(), "huge" | "pooled");
            say(references + if is_large { 1 } else { REFERENCES_OF_A_PIN }, 1, 1);
            unregister(&ring);
        }
        "read" => {
            let read = DirectRead::submit(address, READ_PAGES * page).unwrap_or_else(refused);
            say(references + taken_by_reads, pins_of_reads, 1);
            read.finish();
        }
        "spliced" => {
            let _pipe = spliced(address).unwrap_or_else(refused);
            say(references + 1, 0, 1);
        }
        "forked" => {
            let child = fork(address, 0);
            say(references + 1, 0, 2);
            kill(child as usize);
            // A fork makes pages read-only. Of read-only pages alone older kernels make no huge page (SCAN_PAGE_RO).
            write(address, 1);
        }
        "locked" => {
            // SAFETY: memory of its own.
            let done = answer(unsafe { libc::mlock(address as *const _, page) }.into());
            if done != 0 {
                refused(done)
            }
            say(references, 0, 1);
            // SAFETY: as above.
            unsafe { libc::munlock(address as *const _, page) };
        }
        _ => panic!("unknown: {way}"),
    }
    say(references, 0, 1);
}

/// A read of so many pages takes a while on a slow device.
const READ_PAGES: usize = 64;

/// A read of this program into memory with O_DIRECT, which the kernel does meanwhile.
struct DirectRead {
    context: libc::c_ulong,
}

impl DirectRead {
    /// Submits it; or the negative error number.
    fn submit(address: usize, bytes: usize) -> Result<DirectRead, i64> {
        /// `struct iocb` of include/uapi/linux/aio_abi.h. What is left out is 0: a read (IOCB_CMD_PREAD) is 0 too.
        #[repr(C)]
        struct Request {
            data: u64,
            keys: u64,
            code: u32,
            file: u32,
            buffer: u64,
            bytes: u64,
            offset: u64,
            rest: [u64; 2],
        }
        let path = std::env::current_exe().expect("this program");
        let file = std::fs::File::options().read(true).custom_flags(libc::O_DIRECT).open(path);
        let file = file.map_err(|error| -i64::from(error.raw_os_error().expect("a number")))?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: room for the number of a new context.
        let made = answer(unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) } as i64);
        if made < 0 {
            return Err(made);
        }
        let request = Request {
            data: 0,
            keys: 0,
            code: 0,
            file: file.as_raw_fd() as u32,
            buffer: address as u64,
            bytes: bytes as u64,
            offset: 0,
            rest: [0; 2],
        };
        let requests = [&raw const request];
        // SAFETY: one request, into memory that nobody else uses.
        let submitted = unsafe { libc::syscall(libc::SYS_io_submit, context, 1, requests.as_ptr()) };
        if submitted == 1 { Ok(DirectRead { context }) } else { Err(answer(submitted as i64)) }
    }

    /// Waits for its end.
    fn finish(self) {
        let (mut event, no_limit) = ([0u64; 4], std::ptr::null::<libc::timespec>());
        // SAFETY: room for one event (`struct io_event`).
        let ended = unsafe { libc::syscall(libc::SYS_io_getevents, self.context, 1, 1, event.as_mut_ptr(), no_limit) };
        assert_eq!(ended, 1, "{}", std::io::Error::last_os_error());
        // SAFETY: the context of this read alone.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

/// A group of processes that reads a page in a second from the disk of this program.
struct SlowDisk {
    group: PathBuf,
    device: String,
    _changed: system::Changed,
}

impl SlowDisk {
    fn of_this_program() -> Result<SlowDisk, String> {
        let path = std::env::current_exe().expect("this program");
        let device = std::fs::metadata(path).expect("its file").dev();
        let name = |device: u64| format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let mut device = name(device);
        // Of a partition, the disk.
        let folder = PathBuf::from(format!("/sys/dev/block/{device}"));
        if folder.join("partition").exists() {
            let disk = folder.canonicalize().map_err(|error| error.to_string())?.join("../dev");
            device = std::fs::read_to_string(disk).map_err(|error| error.to_string())?.trim().to_owned();
        }
        let group = format!("pmdb-slow-{}", std::process::id());
        let (group, _changed) = system::slow_reads(&group, &device, page_bytes())?;
        Ok(SlowDisk { group, device, _changed })
    }

    fn takes(&self, pid: u32) {
        std::fs::write(self.group.join("cgroup.procs"), pid.to_string()).expect("to move into it");
    }

    fn is_fast_again(&self) {
        std::fs::write(self.group.join("io.max"), format!("{} rbps=max", self.device)).expect("no limit");
    }
}

/// Ends because the kernel has refused something, with its negative error number.
fn refused<T>(error: i64) -> T {
    announce(error);
    wait();
    std::process::exit(0)
}

fn shared(bytes: usize) -> i64 {
    let (fd, rw) = (memfd(bytes), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping at an address of the kernel's choice, which keeps the file.
    mapped(unsafe { libc::mmap(std::ptr::null_mut(), bytes, rw, libc::MAP_SHARED, fd.as_raw_fd(), 0) })
}

/// A private mapping of pages of the hugetlb pool; or the negative error number.
fn pooled(bytes: usize) -> i64 {
    let (rw, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB);
    // SAFETY: a new mapping at an address of the kernel's choice.
    mapped(unsafe { libc::mmap(std::ptr::null_mut(), bytes, rw, flags, -1, 0) })
}

/// A new io_uring with memory of this process registered as its only buffer; or the negative error number.
fn registered(address: usize, bytes: usize) -> Result<OwnedFd, i64> {
    /// IORING_REGISTER_BUFFERS (include/uapi/linux/io_uring.h).
    const REGISTER: usize = 0;
    // struct io_uring_params has 120 bytes.
    let mut parameters = [0u64; 15];
    // SAFETY: room for the structure, which the kernel fills in.
    let ring = answer(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) } as i64);
    if ring < 0 {
        return Err(ring);
    }
    // SAFETY: a new descriptor.
    let ring = unsafe { OwnedFd::from_raw_fd(ring as i32) };
    let buffer = libc::iovec { iov_base: address as *mut _, iov_len: bytes };
    // SAFETY: one iovec, of memory that nobody else uses.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), REGISTER, &raw const buffer, 1) };
    if done == 0 { Ok(ring) } else { Err(answer(done as i64)) }
}

fn unregister(ring: &OwnedFd) {
    /// IORING_UNREGISTER_BUFFERS
    const UNREGISTER: usize = 1;
    let none = std::ptr::null::<u8>();
    // SAFETY: a system call without memory.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), UNREGISTER, none, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// A pipe with one byte in it, which is still in its page; or the negative error number.
fn spliced(address: usize) -> Result<(OwnedFd, OwnedFd), i64> {
    let (output, input) = rustix::pipe::pipe().expect("a pipe");
    let byte = libc::iovec { iov_base: address as *mut _, iov_len: 1 };
    // SAFETY: one iovec, of memory that nobody writes to until the pipe is closed.
    let moved = unsafe { libc::vmsplice(input.as_raw_fd(), &raw const byte, 1, 0) };
    if moved == 1 { Ok((output, input)) } else { Err(answer(moved as i64)) }
}

/// A field of `/proc/PID/status` in KiB.
fn status(pid: u32, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or_else(|| panic!("no {field}"))
}

/// The buffers that it has registered with io_uring, as `fdinfo` has them: address, `/`, length.
fn registered_buffers(pid: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("its descriptors").flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let after = text.lines().skip_while(|line| !line.starts_with("UserBufs:")).skip(1);
        let rows =
            after.map_while(|line| line.split_once(": ").filter(|(number, _)| number.trim().parse::<u32>().is_ok()));
        found.extend(rows.map(|(_, buffer)| buffer.to_owned()));
    }
    found
}

/// What `/proc` shows of a page now.
fn check(way: &str, holder: &Holder, is_held: bool) {
    let (pid, now) = (holder.target.pid(), holder.now);
    let entry = || plain_entry(pid, now.address).expect("its entry");
    assert!(entry() >> 63 == 1, "{way}: {now:?}");
    // Linux 7.2 counts no registered buffer of root there; 6.18 did.
    if release() < (7, 0) || now.pins == 0 {
        assert_eq!(status(pid, "VmPin:") > 0, now.pins > 0, "{way}: {now:?}");
    }
    let is_locked = way == "locked" && is_held;
    assert_eq!(status(pid, "VmLck:") > 0, is_locked, "{way}: {now:?}");
    let buffers = registered_buffers(pid);
    let buffer = format!("{:#x}/{}", now.address, page_bytes());
    assert_eq!(buffers, if now.pins > 0 { vec![buffer] } else { Vec::new() }, "{way}: {now:?}");
    if is_locked {
        assert!(has_vm_flag(pid, now.address, "lo"));
    }
    if is_root() {
        // The kernel may move the page to another frame between the two reads.
        let counted = || {
            let before = entry();
            let count = word("/proc/kpagecount", before & ((1 << 55) - 1));
            (entry() == before).then_some(count)
        };
        let count = std::iter::repeat_with(counted).flatten().next();
        assert_eq!(count, Some(now.mappings), "{way}: {now:?}");
    }
}

/// One way to hold a page, step by step.
fn shows(name: &str, way: &str) {
    let pool = if way == "pooled" { system::huge_pages().map(Some) } else { Ok(None) };
    let _pool = match pool {
        Ok(pool) => pool,
        Err(reason) => return skip(name, &reason),
    };
    let mut holder = match Holder::start(way) {
        Ok(holder) => holder,
        Err(error) => return skip(name, &format!("the kernel refuses it: error {error}")),
    };
    if way == "huge" && detail(&holder.target.attach(), holder.now.address).huge != Ok(true) {
        return skip(name, "the kernel gave no huge page, or cannot say");
    }
    check(way, &holder, false);
    let before = holder.now;
    match holder.go_on() {
        Ok(held) => assert_eq!(held.address, before.address),
        Err(error) => return skip(name, &format!("the kernel refuses it: error {error}")),
    }
    check(way, &holder, true);
    // MADV_COLLAPSE came with Linux 6.1. What is huge already, and what is of a file, it treats otherwise.
    let can_collapse =
        release() >= (6, 1) && huge_page_bytes().is_some() && !matches!(way, "huge" | "cached" | "pooled");
    if can_collapse && holder.now.references > holder.now.mappings {
        assert_ne!(holder.collapses(), 0, "{way}: a page that is held was moved");
    }
    let after = holder.go_on().expect("to release a page");
    check(way, &holder, false);
    assert_eq!((after.references, after.pins, after.mappings), (before.references, before.pins, before.mappings));
    // A page may wait in a batch of another processor, which holds it too.
    if can_collapse && !(0..20).any(|_| holder.collapses() == 0) {
        skip(name, "the kernel makes no huge page even of memory that nobody holds");
    }
}

/// The kernel's own record of the page, as pmdb reads it.
fn is_recorded(way: &str, holder: &Holder, is_held: bool) {
    let (now, detail) = (holder.now, detail(&holder.target.attach(), holder.now.address));
    let record = detail.record.expect("a record");
    let known = record.references.as_ref().ok().copied();
    assert!(known == Some(now.references) || known == Some(now.references + 1), "{way}: {now:?}, {record:?}");
    // In a page that is no large folio, 1024 other references look like a pin.
    let is_large = matches!(way, "huge" | "pooled");
    let is_certain = is_large || now.pins == 0;
    let pins = is_certain.then_some(now.pins);
    let at_most = (!is_certain).then_some(now.pins);
    let known = (record.pins.clone().ok(), record.pins_at_most);
    assert_eq!(known, (pins, at_most), "{way}: {now:?}, {record:?}");
    let mut holders = record.holders.expect("holders");
    holders.others -= at_most.unwrap_or(0) * REFERENCES_OF_A_PIN;
    assert_eq!(holders.mappings, now.mappings, "{way}: {now:?}, {holders:?}");
    let is_lent = way == "spliced" || way == "read" && now.pins == 0;
    assert!(holders.others <= 1 + u64::from(is_lent), "{way}: {now:?}, {holders:?}");
    let owner = if way == "cached" { RecordedOwner::File } else { RecordedOwner::Anonymous };
    assert_eq!(record.owner, Ok(owner), "{way}");
    let pid = holder.target.pid();
    let said = program(&[], pid, true, &[format!("pins {:#x}, +{}", now.address, page_bytes())]);
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| said.iter().filter(|one| one["type"] == kind).collect::<Vec<_>>();
    let (rows, holders) = (of("held-pages"), of("pin-holder"));
    assert_eq!(rows.len(), 1, "{way}: {said:?}");
    let told = [&rows[0]["pins"], &rows[0]["pins_at_most"]].map(Value::as_u64);
    assert_eq!((told, &rows[0]["pages"]), ([pins, at_most], &1.into()), "{way}: {said:?}");
    assert_eq!(rows[0]["folio_bytes"].is_null(), !is_large, "{way}: {said:?}");
    let found: Vec<_> = holders.iter().map(|one| (&one["pid"], &one["device"], &one["start"], &one["bytes"])).collect();
    let buffer = (pid.into(), "io_uring".into(), format!("{:#x}", now.address).into(), page_bytes().into());
    // The kernel lists no reads with O_DIRECT.
    let is_listed = now.pins > 0 && way != "read";
    let expected = if is_listed { vec![(&buffer.0, &buffer.1, &buffer.2, &buffer.3)] } else { Vec::new() };
    assert_eq!(found, expected, "{way}: {said:?}");
    let said = program(&[], pid, true, &[format!("explain {:#x}", now.address)]);
    let explained: Value = serde_json::from_str(said.lines().next().expect("an explanation")).expect("JSON");
    let movable = explained["movable"].as_str().expect("a word");
    match way {
        _ if !is_certain => assert_eq!(movable, "possibly_pinned", "{way}: {explained}"),
        _ if now.pins > 0 => assert_eq!(movable, "pinned", "{way}: {explained}"),
        "spliced" | "read" if now.references > now.mappings => assert_eq!(movable, "held", "{way}: {explained}"),
        // One reference more is possible at any time.
        "pooled" => assert!(["unreclaimable", "held"].contains(&movable), "{way}: {explained}"),
        "locked" if is_held => assert!(["unreclaimable", "held"].contains(&movable), "{way}: {explained}"),
        _ => assert!(["freely", "held"].contains(&movable), "{way}: {explained}"),
    }
    // A sweep finds the same.
    let page = AddressRange::new(VirtualAddress::new(now.address), VirtualAddress::new(now.address + page_bytes()));
    let space = AddressSpace::of(&holder.target.attach()).expect("its regions");
    let mut pages = space.pages(page.as_slice(), Evidence::PINS);
    let swept = pages.next().expect("a sweep").expect("a page").pages().next().and_then(|page| page.holders);
    let swept = swept.expect("holders");
    assert_eq!(swept.is_pinned(), is_certain.then_some(now.pins > 0), "{way}: {now:?}, {swept:?}");
    assert_eq!(swept.holders().map(|swept| swept.mappings), Some(now.mappings), "{way}: {now:?}, {swept:?}");
}

/// A ring that is in no table of the process itself.
fn lists(arguments: &[String]) {
    let [way] = arguments else { panic!("who has the ring") };
    let page = page_bytes() as usize;
    let start = huge(2 * page);
    if start < 0 {
        refused(start)
    }
    let start = start as usize;
    // SAFETY: within the mapping made just now.
    each_page(start, 2, |byte| unsafe { byte.write_volatile(1) });
    let say = move |who: i64| {
        announce(format!("{start} {who} 0 0"));
        _ = wait();
        std::process::exit(0)
    };
    match way.as_str() {
        "thread" => {
            _ = std::thread::spawn(move || {
                // SAFETY: a system call without memory; nobody else uses the descriptors that this thread opens.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0, "a table of its own");
                let _ring = registered(start, page).unwrap_or_else(refused);
                // SAFETY: a system call without memory.
                say(unsafe { libc::syscall(libc::SYS_gettid) } as i64)
            })
            .join()
        }
        _ => {
            let ring = registered(start, page).unwrap_or_else(refused);
            let child = fork(start, 0);
            drop(ring);
            say(child)
        }
    }
}

/// The kernel lists a ring wherever it is: in the table of a thread, or in that of a child alone.
fn listed_elsewhere() {
    const NAME: &str = "held::listed_elsewhere";
    for way in ["thread", "child"] {
        let mut target = Target::start("lists", &[way]);
        let Held { address, references: who, .. } = match Holder::said(&mut target) {
            Ok(said) => said,
            Err(error) => return skip(NAME, &format!("the kernel refuses it: error {error}")),
        };
        let said = program(&[], target.pid(), true, &[format!("pins {address:#x}, +{}", 2 * page_bytes())]);
        let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let holders: Vec<_> = said.iter().filter(|one| one["type"] == "pin-holder").collect();
        let [holder] = holders[..] else { panic!("{way}: {said:?}") };
        let start = format!("{address:#x}");
        assert_eq!((&holder["start"], &holder["bytes"]), (&start.into(), &page_bytes().into()), "{way}: {said:?}");
        let whose = if way == "thread" { &holder["thread"] } else { &holder["pid"] };
        assert_eq!(whose, who, "{way}: {said:?}");
    }
}

fn as_the_kernel_records_it() {
    const NAME: &str = "held::as_the_kernel_records_it";
    if let Err(error) = pmdb::process::machine().require_records(pmdb::process::RecordParts::all()) {
        return skip(NAME, &error.to_string());
    }
    for way in ["registered", "cached", "huge", "pooled", "spliced", "read", "forked", "locked"] {
        if let Err(reason) = is_recorded_throughout(way) {
            skip(&format!("{NAME} ({way})"), &reason);
        }
    }
}

/// Before a page is held, while it is, and afterwards; or why it cannot be held so here.
fn is_recorded_throughout(way: &str) -> Result<(), String> {
    let _pool = if way == "pooled" { Some(system::huge_pages()?) } else { None };
    let refused = |error: i64| format!("the kernel refuses it: error {error}");
    let mut holder = Holder::start(way).map_err(refused)?;
    // Dropped before the process, which cannot end while it reads.
    let disk = if way == "read" { Some(SlowDisk::of_this_program()?) } else { None };
    let is_huge = |detail: PageDetail| match detail.huge {
        Err(_) if !has_scan() => detail.folio.is_ok_and(|(folio, _)| folio.order > 0),
        huge => huge == Ok(true),
    };
    if way == "huge" && !is_huge(detail(&holder.target.attach(), holder.now.address)) {
        return Err("the kernel gave no huge page, or cannot say".into());
    }
    is_recorded(way, &holder, false);
    if let Some(disk) = &disk {
        disk.takes(holder.target.pid());
    }
    holder.go_on().map_err(refused)?;
    is_recorded(way, &holder, true);
    if let Some(disk) = &disk {
        disk.is_fast_again();
    }
    holder.go_on().map_err(refused)?;
    is_recorded(way, &holder, false);
    Ok(())
}

/// There may be no large folios then but those of slab caches, on which the layout has to be proved all the same.
fn recorded_where_huge_pages_are_off() {
    const NAME: &str = "held::recorded_where_huge_pages_are_off";
    if let Err(error) = pmdb::process::machine().require_records(pmdb::process::RecordParts::FOLIO) {
        return skip(NAME, &error.to_string());
    }
    let off = match system::transparent(&["enabled=never"]) {
        Ok(off) => off,
        Err(reason) => return skip(NAME, &reason),
    };
    let holder = Holder::start("spliced").unwrap_or_else(refused);
    // A program of its own proves the layout anew.
    let said = program(&[], holder.target.pid(), true, &[format!("flags {:#x}", holder.now.address)]);
    let flags: Value = serde_json::from_str(said.lines().last().expect("a record")).expect("JSON");
    let references = flags["kernel_record"]["references"].as_u64();
    assert!(references == Some(holder.now.references) || references == Some(holder.now.references + 1), "{flags}");
    drop(off);
}
