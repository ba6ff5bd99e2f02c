//! Frames that no process maps: the files, free blocks, slab caches and page pools that the kernel's own records lead
//! to, compared with what `/proc` and `/sys` say.

use super::answers::program;
use super::huge::word;
use super::puppet::mapped;
use super::support::{page_bytes, plain_entry, skip};
use super::system;
use super::target::{Target, announce};
use super::{Scenario, Test};
use pmdb::kernel::{FrameNumber, PageFlags};
use pmdb::process::{Machine, OwnerDetail, RecordParts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const TESTS: &[Test] = &[
    ("owners::a_file_that_nobody_maps", a_file_that_nobody_maps),
    ("owners::free_blocks", free_blocks),
    ("owners::slab_caches", slab_caches),
    ("owners::page_tables_and_the_pool", page_tables_and_the_pool),
    ("owners::pages_of_a_page_pool", pages_of_a_page_pool),
];

pub const SCENARIOS: &[Scenario] = &[("has-a-page-pool", has_a_page_pool)];

/// The machine; `None` if its records cannot be read, which is a skip.
fn machine(name: &str) -> Option<Arc<Machine>> {
    let machine = pmdb::process::machine();
    machine.set_records(true);
    match machine.require_records(RecordParts::OWNER) {
        Ok(()) => Some(machine),
        Err(error) => {
            skip(name, &error.to_string());
            None
        }
    }
}

const FRAME: u64 = (1 << 55) - 1;
const PAGES: u64 = 5;

/// The frame of a page of a file, which is mapped for a moment.
fn frame_of(file: &File, index: u64) -> u64 {
    let (page, offset) = (page_bytes() as usize, (index * page_bytes()) as libc::off_t);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), page, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), offset) };
    let start = mapped(start) as u64;
    // SAFETY: the mapping made just now, of a page that the file has.
    unsafe { (start as *const u8).read_volatile() };
    let entry = plain_entry(std::process::id(), start).expect("an entry");
    // SAFETY: as above.
    unsafe { libc::munmap(start as *mut _, page) };
    assert!(entry >> 63 == 1, "{entry:#x}");
    entry & FRAME
}

/// What `who` and `flags` say of a frame.
fn said(frame: u64) -> [Value; 2] {
    let lines = [format!("who pfn:{frame:#x}"), format!("flags pfn:{frame:#x}")];
    let said = program(&[], std::process::id(), true, &lines);
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    ["who-summary", "page-flags"].map(|kind| said.iter().find(|one| one["type"] == kind).expect(kind).clone())
}

/// Whether a filesystem gives its files another device than its own, or others' pages.
fn has_own_devices(file: &File) -> bool {
    const OVERLAY: u64 = 0x794c_7630;
    const BTRFS: u64 = 0x9123_683e;
    let kind = rustix::fs::fstatfs(file).expect("its filesystem").f_type as u64;
    !matches!(kind, OVERLAY | BTRFS)
}

fn a_file_that_nobody_maps() {
    const NAME: &str = "owners::a_file_that_nobody_maps";
    if machine(NAME).is_none() {
        return;
    }
    for directory in [std::env::temp_dir(), PathBuf::from("/dev/shm"), PathBuf::from("/root")] {
        if directory.is_dir() {
            is_named_in(&directory);
        }
    }
}

/// A file that is removed in the end.
struct OwnFile(PathBuf);

impl Drop for OwnFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

/// A file of the test's own in this directory, with a hostile name.
fn is_named_in(directory: &Path) {
    let path = directory.join(format!("pmdb-{}-\x1b[2J\n", std::process::id()));
    let escaped = format!("pmdb-{}-\\x1b[2J\\x0a", std::process::id());
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).expect("a new file");
    let own = OwnFile(path);
    let whole = format!("{}/{escaped}", directory.canonicalize().expect("a directory").display());
    file.write_all(&vec![7; (PAGES * page_bytes()) as usize]).expect("room");
    file.seek(SeekFrom::Start(0)).expect("the start");
    file.read_to_end(&mut Vec::new()).expect("its contents");
    is_named(&file, &whole, &escaped, false);
    drop(own);
    is_named(&file, &whole, &escaped, true);
}

/// Its page is one of the file with this path, which ends with `name`.
fn is_named(file: &File, whole: &str, name: &str, is_deleted: bool) {
    /// The kernel may move the page.
    const TRIES: u32 = 5;
    let metadata = file.metadata().expect("its inode");
    let said = (0..TRIES).find_map(|_| {
        let frame = frame_of(file, 3);
        assert_eq!(word("/proc/kpagecount", frame), 0, "{whole}");
        let said = said(frame);
        (frame_of(file, 3) == frame).then_some(said)
    });
    for one in said.expect("a page that stays") {
        let record = &one["kernel_record"];
        let found = &record["file_page"];
        assert_eq!(record["owner"], "file", "{one}");
        assert_eq!((&found["inode"], &found["index"]), (&metadata.ino().into(), &3.into()), "{one}");
        let known = found["path"].as_str().unwrap_or_else(|| panic!("{one}"));
        assert!(whole.ends_with(known) && known.starts_with('/') && known.ends_with(name), "{whole}: {one}");
        assert_eq!(found["deleted"] == true, is_deleted, "{one}");
        assert!(found["filesystem"].as_str().is_some_and(|name| !name.is_empty()), "{one}");
        if has_own_devices(file) {
            let device = metadata.dev();
            let device = format!("{:02x}:{:02x}", rustix::fs::major(device), rustix::fs::minor(device));
            assert_eq!(found["device"], device, "{one}");
        }
    }
}

/// The flags of all frames that `/proc/kpageflags` has.
fn all_flags() -> Vec<PageFlags> {
    let (file, mut flags) = (File::open("/proc/kpageflags").expect("kpageflags"), Vec::new());
    let mut bytes = vec![0; 1 << 16];
    loop {
        let read = file.read_at(&mut bytes, flags.len() as u64 * 8).expect("flags");
        if read == 0 {
            return flags;
        }
        let words = bytes[..read].chunks_exact(8);
        flags.extend(words.map(|word| PageFlags::from_bits_retain(u64::from_ne_bytes(word.try_into().expect("8")))));
    }
}

fn now(frame: u64) -> PageFlags {
    PageFlags::from_bits_retain(word("/proc/kpageflags", frame))
}

/// Some frames with a flag, in all parts of memory.
fn some_with(flag: PageFlags, most: usize) -> Vec<u64> {
    let all: Vec<u64> = (0..).zip(all_flags()).filter(|(_, flags)| flags.contains(flag)).map(|(at, _)| at).collect();
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).collect()
}

fn free_blocks() {
    let Some(machine) = machine("owners::free_blocks") else {
        return;
    };
    let (mut orders, mut inside, mut changed) = (BTreeMap::new(), 0, 0);
    let frames = some_with(PageFlags::BUDDY, 400);
    for &frame in &frames {
        let block = match machine.owner_detail(FrameNumber::new(frame)) {
            Ok(Some(OwnerDetail::Free(block))) => block,
            // It was allocated meanwhile.
            other if !now(frame).contains(PageFlags::BUDDY) => {
                changed += usize::from(!matches!(other, Ok(Some(OwnerDetail::Free(_)))));
                continue;
            }
            other => panic!("{frame:#x}: {other:?}"),
        };
        let (first, pages) = (block.first.get(), 1u64 << block.order);
        assert!(first.is_multiple_of(pages) && (first..first + pages).contains(&frame), "{frame:#x}: {block:?}");
        inside += usize::from(first != frame);
        *orders.entry(block.order).or_insert(0) += 1;
        // All of it leads to the same block, and its neighbours to other ones, as long as it is there.
        let at = |frame| match machine.owner_detail(FrameNumber::new(frame)) {
            Ok(Some(OwnerDetail::Free(block))) => Some(block),
            _ => None,
        };
        let others = [first.saturating_sub(1), first + pages].map(at);
        let same = [first, first + pages / 2, first + pages - 1].map(at);
        if at(frame) == Some(block) && same.iter().all(Option::is_some) {
            assert_eq!(same, [Some(block); 3], "{frame:#x}");
            assert!(!others.contains(&Some(block)), "{block:?}: {others:?}");
        }
    }
    println!("{} frames: blocks by order {orders:?}, {inside} inside of blocks, {changed} changed", frames.len());
    assert!(orders.values().sum::<usize>() > frames.len() / 2 && inside > 0 && orders.len() > 1, "{orders:?}");
    // What is in use is in no free block.
    for frame in some_with(PageFlags::LRU, 50) {
        let detail = machine.owner_detail(FrameNumber::new(frame));
        let is_free = matches!(detail, Ok(Some(OwnerDetail::Free(_))));
        assert!(!is_free || !now(frame).contains(PageFlags::LRU), "{frame:#x}: {detail:?}");
    }
    let free = some_with(PageFlags::BUDDY, 20).into_iter().find_map(|frame| {
        let [who, flags] = said(frame);
        [&who, &flags].iter().all(|one| one["kernel_record"]["owner"] == "free").then_some([who, flags])
    });
    let [who, flags] = free.expect("a free frame");
    assert_eq!(who["ended"], "nobody", "{who}");
    for one in [who, flags] {
        assert!(one["kernel_record"]["free_block"]["order"].is_u64(), "{one}");
    }
}

/// The names of caches by `/proc/slabinfo`.
fn cache_names() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/slabinfo").unwrap_or_default();
    text.lines().skip(2).filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn slab_caches() {
    const NAME: &str = "owners::slab_caches";
    let Some(machine) = machine(NAME) else {
        return;
    };
    let names = cache_names();
    if names.is_empty() {
        return skip(NAME, "there is no /proc/slabinfo");
    }
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let (frames, mut sizes) = (some_with(PageFlags::SLAB, 400), 0);
    for &frame in &frames {
        let cache = match machine.owner_detail(FrameNumber::new(frame)) {
            Ok(Some(OwnerDetail::Slab(cache))) => cache,
            // It was freed meanwhile.
            _ if !now(frame).contains(PageFlags::SLAB) => continue,
            other => panic!("{frame:#x}: {other:?}"),
        };
        let name = String::from_utf8(cache.name).expect("text");
        // A cache may have come meanwhile.
        assert!(names.contains(&name) || cache_names().contains(&name), "{frame:#x}: {name}, not in {names:?}");
        if let Ok(size) = std::fs::read_to_string(format!("/sys/kernel/slab/{name}/object_size")) {
            assert_eq!(size.trim(), cache.object_bytes.to_string(), "{name}");
            sizes += 1;
        }
        *found.entry(name).or_default() += 1;
    }
    println!("{} frames: {} caches, {sizes} sizes compared", frames.len(), found.len());
    assert!(found.values().sum::<usize>() > frames.len() / 2 && found.len() > 5, "{found:?}");
    let slab = frames.iter().rev().find_map(|&frame| {
        let [who, flags] = said(frame);
        [&who, &flags].iter().all(|one| one["kernel_record"]["owner"] == "slab").then_some([who, flags])
    });
    for one in slab.expect("a page of a slab") {
        let cache = one["kernel_record"]["slab"]["cache"].as_str().unwrap_or_else(|| panic!("{one}"));
        assert!(names.contains(cache) || cache_names().contains(cache), "{one}");
    }
}

/// Frames with only a flag that says whose they are.
fn page_tables_and_the_pool() {
    const NAME: &str = "owners::page_tables_and_the_pool";
    if machine(NAME).is_none() {
        return;
    }
    let all_are = |flag: PageFlags, owner: &str| {
        let mut seen = 0;
        for frame in some_with(flag, 6) {
            let is_mapped = || word("/proc/kpagecount", frame) > 0;
            let [who, flags] = if is_mapped() { continue } else { said(frame) };
            if is_mapped() || !now(frame).contains(flag) {
                continue;
            }
            assert_eq!([&who, &flags].map(|one| &one["kernel_record"]["owner"]), [owner; 2], "{who} {flags}");
            seen += 1;
        }
        assert!(seen > 0, "{owner}");
    };
    all_are(PageFlags::PGTABLE, "page_table");
    match system::huge_pages() {
        Ok(_pool) => all_are(PageFlags::HUGE, "hugetlb_pool"),
        Err(reason) => skip(&format!("{NAME} (pool)"), &reason),
    }
}

/// An instruction of a BPF program.
#[repr(C)]
#[derive(Default)]
struct Instruction {
    operation: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

/// The arguments of bpf(2) that load a program. Addresses have 64 bits in 32-bit programs too.
#[repr(C)]
struct LoadProgram {
    kind: u32,
    instructions: u32,
    first: u64,
    license: u64,
}

/// Those that run it on a packet.
#[repr(C)]
#[derive(Default)]
struct TestProgram {
    program: u32,
    returned: u32,
    data_bytes: [u32; 2],
    data: [u64; 2],
    repeat: u32,
    duration: u32,
    context_bytes: [u32; 2],
    context: [u64; 2],
    flags: u32,
    processor: u32,
    batch: u32,
    /// The kernel refuses what it does not know.
    padding: u32,
}

fn bpf<T>(command: i32, arguments: &mut T) -> std::io::Result<u32> {
    // SAFETY: the arguments of the command, whose pointers are those of living memory.
    match unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *arguments, size_of::<T>()) } {
        -1 => Err(std::io::Error::last_os_error()),
        done => Ok(done as u32),
    }
}

/// Drops packets that the kernel makes in pages of a page pool, until the process is killed.
fn has_a_page_pool(_: &[String]) {
    const LOAD: i32 = 5;
    const TEST_RUN: i32 = 10;
    const XDP: u32 = 6;
    const LIVE_FRAMES: u32 = 1 << 1;
    /// Older kernels ignore the flag, but refuse a batch.
    const BATCH: u32 = 64;
    // `r0 = XDP_DROP; exit`.
    let code =
        [(0xb7, 1), (0x95, 0)].map(|(operation, number)| Instruction { operation, number, ..Instruction::default() });
    let [first, license] = [code.as_ptr().addr(), c"GPL".as_ptr().addr()].map(|address| address as u64);
    let mut load = LoadProgram { kind: XDP, instructions: 2, first, license };
    let packet = [0u8; 64];
    let run = |program: u32, repeat| {
        let mut test = TestProgram { program, repeat, flags: LIVE_FRAMES, batch: BATCH, ..TestProgram::default() };
        (test.data_bytes[0], test.data[0]) = (packet.len() as u32, packet.as_ptr().addr() as u64);
        bpf(TEST_RUN, &mut test).map(|_| program)
    };
    match bpf(LOAD, &mut load).and_then(|program| run(program, 1)) {
        Err(error) => announce(format!("bpf does not run a program on live frames: {error}")),
        Ok(program) => {
            announce("ready");
            while run(program, u32::MAX / 2).is_ok() {}
        }
    }
}

/// The frames of page pools.
fn of_pools(machine: &Machine) -> BTreeSet<u64> {
    let others = PageFlags::BUDDY | PageFlags::SLAB | PageFlags::LRU | PageFlags::NOPAGE | PageFlags::RESERVED;
    let is_of_pool =
        |frame: &u64| matches!(machine.owner_detail(FrameNumber::new(*frame)), Ok(Some(OwnerDetail::PagePool)));
    let frames = (0..).zip(all_flags()).filter(|(_, flags)| !flags.intersects(others)).map(|(frame, _)| frame);
    frames.filter(is_of_pool).collect()
}

fn pages_of_a_page_pool() {
    const NAME: &str = "owners::pages_of_a_page_pool";
    let Some(machine) = machine(NAME) else {
        return;
    };
    let before = of_pools(&machine);
    let mut user = Target::start("has-a-page-pool", &[]);
    match user.line().as_str() {
        "ready" => {}
        refusal => return skip(NAME, refusal),
    }
    let new = &of_pools(&machine) - &before;
    println!("{} frames in page pools before, {} more then", before.len(), new.len());
    assert!(!new.is_empty());
    for &frame in &new {
        assert_eq!(word("/proc/kpagecount", frame), 0, "{frame:#x}");
        let others = PageFlags::BUDDY | PageFlags::SLAB | PageFlags::LRU | PageFlags::PGTABLE;
        assert!(!now(frame).intersects(others), "{frame:#x}: {:?}", now(frame));
    }
    for one in said(*new.first().expect("a frame")) {
        assert_eq!(one["kernel_record"]["owner"], "page_pool", "{one}");
    }
    drop(user);
    let after = of_pools(&machine);
    assert!(new.is_disjoint(&after), "{new:x?} {after:x?}");
}
