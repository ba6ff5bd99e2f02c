//! Page-map entries and stretches of them, against plain reads.

use super::support::{self, Numbers, at, page_bytes, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use pmdb::kernel::{AddressRange, PageMapEntry};
use pmdb::process::{self, Categories, PopulatedRange, Process};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::fs::File;
use std::os::unix::fs::FileExt;

pub const TESTS: &[Test] = &[
    ("page_map::entries_are_what_pread_says", entries_are_what_pread_says),
    ("page_map::populated_is_the_same_by_scan_and_by_reads", populated_is_the_same_by_scan_and_by_reads),
    ("page_map::populated_is_what_is_there", populated_is_what_is_there),
    ("page_map::a_visit_can_be_ended", a_visit_can_be_ended),
    ("page_map::a_huge_reservation_is_soon_done", a_huge_reservation_is_soon_done),
    ("page_map::it_ends_where_the_kernel_begins", it_ends_where_the_kernel_begins),
    ("page_map::looking_changes_nothing", looking_changes_nothing),
    ("page_map::memory_of_resident_pages", memory_of_resident_pages),
    ("page_map::rights_in_a_namespace_show_no_frames", rights_in_a_namespace_show_no_frames),
    ("page_map::frames_are_hidden_or_not", frames_are_hidden_or_not),
];

pub const SCENARIOS: &[Scenario] = &[("pages", pages), ("namespaced", namespaced)];

const PAGES: usize = 3000;
/// A terabyte, or what an address space of 32 bits has room for.
const RESERVED: u64 = if cfg!(target_pointer_width = "32") { 1 << 29 } else { 1 << 40 };

/// Private memory with every third page written, then a stretch of 700; every seventh page is only read. Then a large
/// reservation with four pages in it. Announces both starts.
fn pages(_: &[String]) {
    let page = page_bytes() as usize;
    let private = ProtFlags::READ | ProtFlags::WRITE;
    let map = |len: usize, flags: MapFlags| {
        // SAFETY: a fresh mapping at no fixed address, never unmapped.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, private, flags) };
        start.expect("memory").cast::<u8>()
    };
    let small = map(PAGES * page, MapFlags::PRIVATE);
    // SAFETY: within the mapping. Huge pages would fill what is to stay empty.
    unsafe { madvise(small.cast(), PAGES * page, Advice::LinuxNoHugepage).expect("no huge pages") };
    for index in 0..PAGES {
        // SAFETY: within the mapping.
        let byte = unsafe { small.add(index * page) };
        match kind_of(index) {
            // SAFETY: as above.
            Written => unsafe { byte.write_volatile(index as u8 | 1) },
            // SAFETY: as above.
            Read => assert_eq!(unsafe { byte.read_volatile() }, 0),
            Untouched => {}
        }
    }
    let huge = RESERVED as usize;
    let big = map(huge, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: within the mapping.
    unsafe { madvise(big.cast(), huge, Advice::LinuxNoHugepage).expect("no huge pages") };
    for part in 0..4 {
        // SAFETY: within the mapping.
        unsafe { big.add(part * (huge / 4)).write_volatile(1) };
    }
    announce(format_args!("{:p} {:p}", small, big));
    while wait().is_some() {}
    // SAFETY: nothing uses it any more.
    unsafe { munmap(big.cast(), huge).expect("to unmap") };
}

enum Touched {
    Written,
    Read,
    Untouched,
}
use Touched::{Read, Untouched, Written};

fn kind_of(index: usize) -> Touched {
    match index {
        1000..1700 => Written,
        _ if index.is_multiple_of(3) => Written,
        _ if index.is_multiple_of(7) => Read,
        _ => Untouched,
    }
}

/// Many pages of `pid`, each compared with plain reads just before and just after: the process may run.
fn compare_entries(pid: u32, process: &Process) {
    let file = File::open(format!("/proc/{pid}/pagemap")).expect("its page map");
    let plain = |index: u64, count: usize| -> Vec<u64> {
        let mut bytes = vec![0; count * 8];
        let read = file.read_at(&mut bytes, index * 8).expect("a read");
        let words = bytes[..read].chunks_exact(8);
        words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
    };
    let maps = support::plain_maps(pid);
    let mut numbers = Numbers(u64::from(pid));
    let mut compared = 0;
    for _ in 0..400 {
        let (start, end, _) = maps[numbers.below(maps.len() as u64) as usize];
        let pages = (end - start) / page_bytes();
        let first = start / page_bytes() + numbers.below(pages);
        let count = numbers.below(64) as usize + 1;
        let before = plain(first, count);
        let ours = support::entries(process, first * page_bytes(), count);
        let after = plain(first, count);
        assert_eq!(ours.len(), before.len(), "page index {first:#x} of {pid}");
        for (index, entry) in ours.iter().enumerate() {
            assert!(
                [before[index], after[index]].contains(&entry.raw()),
                "page index {:#x} of {pid}: {entry:?}, not {:#x}",
                first + index as u64,
                before[index]
            );
            compared += 1;
        }
    }
    assert!(compared > 4000, "only {compared} pages of {pid}");
}

fn entries_are_what_pread_says() {
    let mut target = Target::start("pages", &[]);
    let mut idle = Target::start("idle", &[]);
    target.numbers();
    idle.line();
    for pid in [target.pid(), idle.pid(), std::process::id()] {
        let attached = pmdb::process::Target::attach(pid).expect("to attach");
        compare_entries(pid, &attached.process);
    }
    match pmdb::process::Target::attach(1) {
        Ok(attached) => compare_entries(1, &attached.process),
        Err(error) => skip("page_map::entries_are_what_pread_says (process 1)", &error.to_string()),
    }
}

fn populated(process: &Process, range: AddressRange, wanted: Categories) -> Vec<PopulatedRange> {
    process.populated(range, wanted).collect::<process::Result<_>>().expect("stretches")
}

fn populated_is_the_same_by_scan_and_by_reads() {
    let mut target = Target::start("pages", &[]);
    let starts = target.numbers();
    target.stop();
    let process = target.attach().process;
    let scannable = process.categories();
    process.set_scan(false);
    let readable = process.categories();
    if scannable == readable {
        return skip("page_map::populated_is_the_same_by_scan_and_by_reads", "no PAGEMAP_SCAN on this kernel");
    }
    let everything = AddressRange::new(at(0), at(u64::MAX)).expect("a range");
    // Only below the reservation: plain reads of it take long.
    let below = AddressRange::new(at(0), at(starts[1].min(starts[0]))).expect("a range");
    let small = support::range(starts[0], PAGES as u64 * page_bytes());
    for wanted in [
        Categories::empty(),
        Categories::PRESENT,
        Categories::PRESENT | Categories::SWAPPED | Categories::SOFT_DIRTY,
        scannable & readable,
    ] {
        for range in [below, small, support::range(starts[0] + 5000, 123_456)] {
            process.set_scan(true);
            let scanned = populated(&process, range, wanted);
            process.set_scan(false);
            let read = populated(&process, range, wanted);
            assert_eq!(scanned, read, "{range} {wanted:?}");
            assert!(!scanned.is_empty(), "{range} {wanted:?}");
        }
    }
    process.set_scan(true);
    let all = populated(&process, everything, Categories::PRESENT);
    for pair in all.windows(2) {
        assert!(pair[0].range.end() <= pair[1].range.start(), "{pair:?} in {all:?}");
    }
}

fn populated_is_what_is_there() {
    let mut target = Target::start("pages", &[]);
    let start = target.numbers()[0];
    let process = target.attach().process;
    let range = support::range(start, PAGES as u64 * page_bytes());
    let mut there = vec![Categories::empty(); PAGES];
    for stretch in populated(&process, range, Categories::PRESENT | Categories::ZERO) {
        let first = (stretch.range.start().get() - start) / page_bytes();
        let pages = stretch.range.pages(support::page());
        for page in &mut there[first as usize..(first + pages) as usize] {
            *page = stretch.categories;
        }
    }
    let can_tell_zero = process.categories().contains(Categories::ZERO);
    for (index, categories) in there.into_iter().enumerate() {
        let expected = match kind_of(index) {
            Written => Categories::PRESENT,
            Read if can_tell_zero => Categories::PRESENT | Categories::ZERO,
            Read => Categories::PRESENT,
            Untouched => Categories::empty(),
        };
        assert_eq!(categories, expected, "page {index}");
    }
}

fn a_visit_can_be_ended() {
    let mut target = Target::start("pages", &[]);
    let start = target.numbers()[0];
    let process = target.attach().process;
    for scan in [true, false] {
        process.set_scan(scan);
        let range = support::range(start, PAGES as u64 * page_bytes());
        let first: Vec<_> = process.populated(range, Categories::PRESENT).take(3).map(Result::unwrap).collect();
        assert_eq!(first, populated(&process, range, Categories::PRESENT)[..3]);
    }
}

fn a_huge_reservation_is_soon_done() {
    let mut target = Target::start("pages", &[]);
    let start = target.numbers()[1];
    let process = target.attach().process;
    if !process.categories().contains(Categories::ZERO) {
        return skip("page_map::a_huge_reservation_is_soon_done", "no PAGEMAP_SCAN on this kernel");
    }
    let quarter = RESERVED / 4;
    let found = populated(&process, support::range(start, 4 * quarter), Categories::PRESENT);
    let starts: Vec<u64> = found.iter().map(|stretch| stretch.range.start().get() - start).collect();
    assert_eq!(starts, [0, quarter, 2 * quarter, 3 * quarter]);
    assert!(found.iter().all(|stretch| stretch.range.len() == page_bytes()));
}

fn it_ends_where_the_kernel_begins() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let process = target.attach().process;
    let last = u64::MAX / page_bytes();
    let first = match std::env::consts::ARCH {
        // The highest byte is a tag; bit 55 tells the halves apart.
        "aarch64" => 0xff80 << 48,
        // The kernel has an address space of its own.
        "s390x" => last * page_bytes(),
        _ => 1 << 63,
    };
    for index in [last, first / page_bytes()] {
        let read = process.entries(index, &mut [PageMapEntry::default(); 4]);
        assert_eq!(read.expect("an end, not an error"), 0);
    }
    let kernel = AddressRange::new(at(first), at(u64::MAX)).expect("a range");
    for scan in [true, false] {
        process.set_scan(scan);
        assert_eq!(populated(&process, kernel, Categories::PRESENT), []);
    }
}

fn looking_changes_nothing() {
    let mut target = Target::start("pages", &[]);
    let start = target.numbers()[0];
    target.stop();
    let attached = target.attach();
    let plain = || -> Vec<Option<u64>> {
        let pages = (0..PAGES as u64).map(|index| start + index * page_bytes());
        pages.map(|address| support::plain_entry(target.pid(), address)).collect()
    };
    let faults = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", target.pid())).expect("its stat");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        (fields[7].to_owned(), fields[9].to_owned())
    };
    let (before, faults_before) = (plain(), faults());
    let process = &attached.process;
    let regions = process.regions().expect("regions");
    for region in &regions {
        process.region_at(region.range.start()).expect("a region");
        process.is_pfn_mapped(region).expect("an answer");
    }
    process.status().expect("its status");
    process.liveness().expect("its liveness");
    attached.machine.processes().expect("a list");
    support::entries(process, start, PAGES);
    for scan in [true, false] {
        process.set_scan(scan);
        populated(process, support::range(start, PAGES as u64 * page_bytes()), process.categories());
    }
    assert_eq!(faults(), faults_before);
    assert!(plain() == before);
}

fn memory_of_resident_pages() {
    let mut target = Target::start("pages", &[]);
    let start = target.numbers()[0];
    let process = target.attach().process;
    let mut bytes = [0; 2];
    for index in (0..PAGES).filter(|&index| matches!(kind_of(index), Written)).step_by(50) {
        let address = at(start + index as u64 * page_bytes());
        assert_eq!(process.memory(address, &mut bytes).expect("memory"), 2);
        assert_eq!(bytes, [index as u8 | 1, 0], "page {index}");
    }
    // Nothing is mapped at the very bottom.
    assert_eq!(process.memory(at(0), &mut bytes).expect("nothing"), 0);
    assert_eq!(process.memory(at(u64::MAX), &mut bytes).expect("nothing"), 0);
}

fn frames_are_hidden_or_not() {
    let mut target = Target::start("pages", &[]);
    let start = target.numbers()[0];
    let process = target.attach().process;
    assert_eq!(process.are_frames_hidden(), !support::shows_frames());
    let entry = support::entries(&process, start, 1)[0];
    assert!(entry.is_present());
    assert_eq!(entry.is_frame_hidden(), process.are_frames_hidden());
}

/// Has every right in a user namespace of its own, and inspects itself. Announces whether it made one, whether it sees
/// frame numbers, and whether pmdb says so.
fn namespaced(_: &[String]) {
    // SAFETY: takes no memory; this process has one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
        return announce("0 0 0");
    }
    let own = pmdb::process::Target::attach(std::process::id()).expect("itself");
    let rights = rustix::thread::capabilities(None).expect("its rights").effective;
    assert!(rights.contains(rustix::thread::CapabilitySet::SYS_ADMIN));
    let shows = u8::from(support::shows_frames());
    let hidden = u8::from(own.process.are_frames_hidden());
    announce(format_args!("1 {shows} {hidden}"));
    wait();
}

fn rights_in_a_namespace_show_no_frames() {
    let mut target = Target::start("namespaced", &[]);
    match *target.numbers() {
        [0, ..] => skip("page_map::rights_in_a_namespace_show_no_frames", "this user may make no namespace"),
        [_, shows, hidden] => assert_eq!((shows, hidden), (0, 1)),
        _ => panic!("three numbers"),
    }
}
