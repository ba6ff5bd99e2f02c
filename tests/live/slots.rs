//! Shared memory in swap: the kernel's own records show which pages are, and in which slots, where the page map has
//! nothing. smaps says how many there are.

use super::puppet::memfd;
use super::support::{at, page_bytes, plain_entry, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test, states, system};
use pmdb::inspect::{AddressSpace, Evidence};
use pmdb::kernel::State;
use pmdb::process::RecordParts;
use std::collections::BTreeMap;
use std::fs::{File, read_to_string};
use std::os::fd::AsRawFd;

pub const TESTS: &[Test] = &[("slots::of_shared_memory", of_shared_memory)];

pub const SCENARIOS: &[Scenario] = &[("shares-memory", shares_memory)];

/// The pages of each kind of shared memory of the target.
const PAGES: [usize; 3] = [1024, 5000, 300];

/// Whether the slots of shared memory of a process can be read here.
pub fn are_read(target: &pmdb::process::Target) -> bool {
    refusal(target).is_none()
}

fn refusal(target: &pmdb::process::Target) -> Option<String> {
    let records = target.machine.require_records(RecordParts::OWNER);
    records.and_then(|()| target.process.require_slots()).err().map(|error| error.to_string())
}

/// A file of a tmpfs that has huge pages, in a list of mounts of its own.
fn huge_file(bytes: usize) -> Option<File> {
    let folder = std::env::temp_dir();
    let path = std::ffi::CString::new(folder.to_str()?).ok()?;
    // SAFETY: texts that end with a zero; nobody else sees these mounts.
    let made = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, c"huge=always".as_ptr().cast()) == 0
    };
    let file = File::options().read(true).write(true).create_new(true).open(folder.join("shared")).ok()?;
    file.set_len(bytes as u64).ok()?;
    made.then_some(file)
}

fn map(bytes: usize, fd: i32, flags: i32, protection: i32) -> usize {
    const ALIGNMENT: usize = 2 << 20;
    // SAFETY: room for the mapping, and the mapping in its place.
    unsafe {
        let room = libc::mmap(
            std::ptr::null_mut(),
            bytes + ALIGNMENT,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        let start = room.addr().next_multiple_of(ALIGNMENT);
        libc::mmap(room.with_addr(start), bytes, protection, flags | libc::MAP_FIXED, fd, 0).addr()
    }
}

fn shares_memory(_: &[String]) {
    let [huge, large, small] = PAGES.map(|pages| pages * page_bytes() as usize);
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let file = huge_file(huge).expect("a tmpfs");
    let object = memfd(large);
    let starts = [
        map(huge, file.as_raw_fd(), libc::MAP_SHARED, both),
        map(large, object.as_raw_fd(), libc::MAP_SHARED, both),
        map(small, -1, libc::MAP_SHARED | libc::MAP_ANONYMOUS, both),
    ];
    // The same memory in a private mapping, which it does not touch.
    let private = map(large, object.as_raw_fd(), libc::MAP_PRIVATE, both);
    for (start, bytes) in starts.into_iter().zip([huge, large, small]) {
        for (nth, at) in (start..start + bytes).step_by(page_bytes() as usize).enumerate() {
            // One page in seven is never filled.
            if start == starts[0] || nth % 7 != 3 {
                // SAFETY: memory of its own.
                unsafe { std::ptr::without_provenance_mut::<usize>(at).write_volatile(at) };
            }
        }
    }
    announce(format!("{} {} {} {private}", starts[0], starts[1], starts[2]));
    while let Some(line) = wait() {
        let [start, pages] = line.split(' ').map(|word| word.parse().expect("a number")).collect::<Vec<usize>>()[..]
        else {
            panic!("two numbers");
        };
        let is_in = |nth: usize| {
            let address = (start + nth * page_bytes() as usize) as u64;
            plain_entry(std::process::id(), address).is_some_and(|entry| entry >> 63 == 1)
        };
        // A page may stay in the batch of another processor.
        let is_out = (0..20).any(|_| {
            let start = std::ptr::without_provenance_mut(start);
            // SAFETY: memory of its own.
            unsafe { libc::madvise(start, pages * page_bytes() as usize, libc::MADV_PAGEOUT) };
            !(0..pages).any(is_in)
        });
        announce(u8::from(is_out));
    }
}

/// The bytes in swap of each region, by smaps.
fn swapped_by_smaps(pid: u32) -> BTreeMap<u64, u64> {
    let text = read_to_string(format!("/proc/{pid}/smaps")).expect("its smaps");
    let mut start = 0;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if let Some(swap) = line.strip_prefix("Swap:") {
            let kib: u64 = swap.trim().trim_end_matches(" kB").parse().expect("a number");
            found.insert(start, kib * 1024);
        } else if let Some((first, _)) = line.split_once('-')
            && let Ok(address) = u64::from_str_radix(first, 16)
        {
            start = address;
        }
    }
    found
}

fn of_shared_memory() {
    const NAME: &str = "slots::of_shared_memory";
    let swap = match system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut target = Target::start("shares-memory", &[]);
    let starts = target.numbers();
    let attached = target.attach();
    if let Some(reason) = refusal(&attached) {
        return skip(NAME, &reason);
    }
    let [huge, large, small] = PAGES.map(|pages| pages as u64);
    // Whole huge pages, and parts of the others. The area may end within the last ones.
    let parts = [(starts[0], huge), (starts[2], small), (starts[1] + 100 * page_bytes(), 4500)];
    for (start, pages) in parts {
        target.send(&format!("{start} {pages}"));
        if target.numbers() != [1] {
            println!("the kernel kept pages of {start:#x}");
        }
    }
    let areas = read_to_string("/proc/swaps").expect("swap areas");
    let most: u64 = areas.lines().skip(1).filter_map(|row| row.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    let pid = target.pid();
    let mut by_smaps = swapped_by_smaps(pid);
    if attached.machine.kernel().number < (5, 17) {
        // There smaps_pte_hole takes addresses for offsets in the file, so smaps counts other pages.
        by_smaps.insert(starts[3], by_smaps[&starts[1]]);
    }
    let space = AddressSpace::of(&attached).expect("its regions");
    let mut all: BTreeMap<(u8, u64), u64> = BTreeMap::new();
    for (start, pages) in [(starts[0], huge), (starts[1], large), (starts[2], small), (starts[3], large)] {
        let range = super::support::range(start, pages * page_bytes());
        let mut sweep = space.pages(&[range], Evidence::KINDS);
        let (mut swapped, mut longest) = (0, 0);
        while let Some(chunk) = sweep.next().expect("a sweep") {
            for page in chunk.pages().filter(|page| page.state() == State::Swapped) {
                swapped += page.pages;
                longest = longest.max(page.pages);
                for one in page.each(space.page_size()) {
                    let slot = one.slot.expect("a slot");
                    assert!(slot.offset > 0 && slot.offset * page_bytes() <= most * 1024, "{slot:?} of {most} KiB");
                    // The private mapping has the memory of another one.
                    let place = one.address.get() - start + if start == starts[3] { starts[1] } else { start };
                    assert_eq!(*all.entry((slot.kind, slot.offset)).or_insert(place), place, "{slot:?}");
                }
            }
        }
        println!("{pages} pages: {swapped} in swap, up to {longest} in slots that follow each other");
        assert_eq!(swapped * page_bytes(), by_smaps[&start], "{start:#x}");
        assert!(swapped > pages / 2, "{swapped} of {pages}");
        // One page alone, and the sums of its region.
        let mut pages = states::pages(&attached, &[(start, pages)], Evidence::KINDS).into_iter();
        let first = pages.find(|page| page.state() == State::Swapped).expect("a page in swap");
        let detail = space.detail(first.address).expect("a page");
        assert_eq!((detail.page.state(), detail.swap.ok()), (State::Swapped, first.slot));
        assert!(plain_entry(pid, first.address.get()).is_some_and(|entry| entry & !(1 << 55) == 0));
    }
    // What comes back is no longer in swap.
    let back = space.detail(at(starts[0])).expect("a page");
    assert_eq!(back.page.state(), State::Swapped);
    drop(target);
    drop(swap);
}
