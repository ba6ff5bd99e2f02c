//! Each class and mark, made for real.

use super::*;
use crate::states::{MADV_COLLAPSE, MADV_GUARD_INSTALL, merged};
use crate::support::huge_page_bytes;
use pmdb::report::BesideRss;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;

/// A child of a puppet, which ends with the test.
struct Child(u32);

impl Child {
    fn of(puppet: &mut Puppet, written: u64, pages: u64) -> Self {
        Child(puppet.does("fork", &[written, pages]) as u32)
    }

    fn attach(&self) -> pmdb::Target {
        pmdb::Target::attach(self.0).expect("to attach to the child")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        _ = kill_process(Pid::from_raw(self.0 as i32).expect("its number"), Signal::KILL);
    }
}

/// The pages of a range that a process maps, read without pmdb.
fn present(pid: u32, start: u64, pages: u64) -> u64 {
    let is_present = |page: &u64| support::plain_entry(pid, start + page * page_bytes()).expect("an entry") >> 63 == 1;
    (0..pages).filter(is_present).count() as u64
}

/// All at once, and the sums still equal those of the kernel.
pub fn everything_adds_up() {
    let mut puppet = Puppet::start();
    let anonymous = puppet.maps("anonymous", 60);
    puppet.writes(anonymous, 40);
    puppet.reads(anonymous + 40 * page_bytes(), 10);
    let shared = puppet.maps("shared", 30);
    puppet.writes(shared, 20);
    let copies = puppet.maps("copied", 12);
    puppet.reads(copies, 6);
    puppet.writes(copies + 3 * page_bytes(), 6);
    let program = puppet.maps("program", 8);
    puppet.reads(program, 4);
    puppet.writes(program + 4 * page_bytes(), 2);
    if let Some(bytes) = huge_page_bytes() {
        let pages = bytes / page_bytes();
        let huge = puppet.maps("huge", 3 * pages);
        puppet.writes(huge, 3 * pages);
        for index in 0..3 {
            _ = puppet.advises(huge + index * bytes, pages, MADV_COLLAPSE);
        }
        puppet.advises(huge + bytes, 9, libc::MADV_DONTNEED).expect("to drop pages");
        let zero = puppet.maps("huge", pages);
        puppet.reads(zero, 1);
        let lazy = puppet.maps("huge", pages);
        puppet.writes(lazy, pages);
        puppet.advises(lazy, pages, libc::MADV_FREE).expect("to free lazily");
        puppet.writes(lazy, 3);
    }
    _ = puppet.maps("secret", 1);
    let locked = puppet.maps("anonymous", 9);
    puppet.does("lock", &[locked, 9 * page_bytes()]);
    let _child = Child::of(&mut puppet, anonymous, 5);
    puppet.writes(anonymous + 20 * page_bytes(), 3);
    adds_up(&puppet.0);
}

pub fn anonymous_memory() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 8);
    puppet.writes(memory, 5);
    let target = puppet.0.attach();
    assert_eq!(classes(&target, memory, 8), [(Anonymous, 5)]);
    let copies = puppet.maps("program", 8);
    puppet.writes(copies, 3);
    assert_eq!(classes(&target, copies, 3), [(PrivateCopies, 3)]);
}

pub fn a_fork_on_both_sides() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 20);
    puppet.writes(memory, 20);
    puppet.does("protect", &[memory + 16 * page_bytes(), 4 * page_bytes(), libc::PROT_READ as u64]);
    // The child writes three pages, the parent two others.
    let child = Child::of(&mut puppet, memory, 3);
    puppet.writes(memory + 10 * page_bytes(), 2);
    for target in [puppet.0.attach(), child.attach()] {
        // The region was split where its rights change.
        let both = [(memory, 16, 11, 11), (memory + 16 * page_bytes(), 4, 4, 0)];
        for (start, pages, forked, to_copy) in both {
            let mut expected = vec![(Anonymous, pages - forked), (Forked, forked)];
            expected.retain(|(_, pages)| *pages > 0);
            assert_eq!(classes(&target, start, pages), expected);
            assert_eq!(marked(&target, start, pages, ToCopy), Some(to_copy));
        }
        if support::shows_frames() {
            let (all, accounting) = account(&target, Some((memory, 20)), false);
            assert_eq!(accounting.distinct(&all), Ok(20 * page_bytes()));
        }
    }
    drop(child);
}

pub fn a_huge_page_copied_in_part() {
    const NAME: &str = "account::a_huge_page_copied_in_part";
    let (mut puppet, memory, pages) = match Puppet::with_huge_page() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, reason),
    };
    let child = Child::of(&mut puppet, memory, 7);
    let (parent, child) = (puppet.0.attach(), child.attach());
    // The parent still maps the whole page by one entry.
    let expected = [(Anonymous, 7), (Forked, pages - 7)];
    let of_child = classes(&child, memory, pages);
    assert_eq!(of_child, expected);
    // Without map counts, the sums of smaps tell.
    assert_eq!(classes(&parent, memory, pages), expected);
    assert_eq!(marked(&parent, memory, pages, Huge), Some(pages));
    assert_eq!(marked(&child, memory, pages, Huge), Some(0));
}

pub fn a_memfd_mapped_twice() {
    let mut puppet = Puppet::start();
    let file = tempfile::tempfile_in("/dev/shm").expect("a file in shared memory");
    file.set_len(16 * page_bytes()).expect("its size");
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let first = puppet.maps_file(&file, 16, rw, libc::MAP_SHARED);
    let second = puppet.maps_file_at(&file, 8 * page_bytes(), 8, rw, libc::MAP_SHARED);
    puppet.writes(first, 12);
    puppet.writes(second, 3);
    let target = puppet.0.attach();
    // A fault maps pages of the page cache around it too.
    let twice = present(puppet.0.pid(), second, 8);
    assert!((3..=4).contains(&twice));
    for (start, pages, expected, several) in [(first, 16, 12, twice), (second, 8, twice, twice)] {
        if support::shows_frames() {
            assert_eq!(classes(&target, start, pages), [(ShmemHere, expected)]);
            assert_eq!(marked(&target, start, pages, Several), Some(several));
        } else {
            let once = expected - several;
            let all = [(ShmemHere, once), (ShmemUnclear, several)];
            let all: Vec<_> = all.into_iter().filter(|(_, pages)| *pages > 0).collect();
            assert_eq!(classes(&target, start, pages), all);
        }
    }
    if support::shows_frames() {
        let space = AddressSpace::of(&target).expect("a space");
        let ranges = [(first, 16), (second, 8)].map(|(start, pages)| support::range(start, pages * page_bytes()));
        let mut ranges = ranges.to_vec();
        ranges.sort_unstable();
        let mut accounting = space.account(&ranges, Evidence::empty(), false);
        let mut all = Account::default();
        while let Some(step) = accounting.next().expect("an account") {
            if let Some((_, region)) = step.region {
                all.merge(region);
            }
        }
        assert_eq!(all.total(), (12 + twice) * page_bytes());
        assert_eq!(accounting.distinct(&all), Ok(12 * page_bytes()));
    }
    // A child maps them too.
    let child = Child::of(&mut puppet, second, 3);
    for target in [&target, &child.attach()] {
        let pages = present(target.process.identity().pid, second, 8);
        let class = if support::shows_frames() { ShmemOthers } else { ShmemUnclear };
        assert_eq!(classes(target, second, 8), [(class, pages)]);
    }
}

pub fn shared_memory_of_two_processes() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("shared", 10);
    puppet.writes(memory, 6);
    let target = puppet.0.attach();
    assert_eq!(classes(&target, memory, 10), [(ShmemHere, 6)]);
    let child = Child::of(&mut puppet, memory, 4);
    let there = present(child.0, memory, 10);
    assert!((4..=6).contains(&there));
    let mut expected = vec![(ShmemHere, 6 - there), (ShmemOthers, there)];
    expected.retain(|(_, pages)| *pages > 0);
    assert_eq!(classes(&target, memory, 10), expected);
    assert_eq!(classes(&child.attach(), memory, 10), [(ShmemOthers, there)]);
    assert_eq!(marked(&target, memory, 10, Several), Some(0));
}

pub fn pages_of_files() {
    const NAME: &str = "account::pages_of_files";
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&vec![7; 16 * page_bytes() as usize]).expect("to write");
    file.sync_all().expect("to save");
    let mut puppet = Puppet::start();
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let memory = puppet.maps_file(&file, 16, rw, libc::MAP_SHARED);
    puppet.reads(memory, 16);
    let target = puppet.0.attach();
    let is_of_disk = AddressSpace::of(&target).expect("a space");
    let backing = is_of_disk.viewed_region(support::at(memory)).expect("its region").backing;
    if backing != pmdb::inspect::Backing::File {
        return skip(NAME, "the folder for files is in memory");
    }
    assert_eq!(classes(&target, memory, 16), [(FileHere, 16)]);
    assert_eq!(marked(&target, memory, 16, Dirty), Some(0));
    puppet.writes(memory, 16);
    // The kernel may save them at any time; smaps says the same at the same time.
    let kernel = |field: &str| {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps", puppet.0.pid())).expect("its smaps");
        plain_fields(&text)[&memory][field] / page_bytes()
    };
    let agree = (0..300).any(|_| {
        let before = kernel("Private_Dirty");
        let dirty = marked(&target, memory, 16, Dirty);
        dirty == Some(before) && before > 0
    });
    assert!(agree, "{:?}, smaps {}", marked(&target, memory, 16, Dirty), kernel("Private_Dirty"));
    let child = Child::of(&mut puppet, memory, 1);
    let there = present(child.0, memory, 16);
    let mut expected = vec![(FileHere, 16 - there), (FileOthers, there)];
    expected.retain(|(_, pages)| *pages > 0);
    assert_eq!(classes(&target, memory, 16), expected);
    drop(child);
}

pub fn merged_pages() {
    let (merging, puppet, memory) = match merged() {
        Ok(made) => made,
        Err(reason) => return skip("account::merged_pages", &reason),
    };
    let target = puppet.0.attach();
    let (all, accounting) = account(&target, Some((memory, 64)), false);
    assert_eq!(all.of(Merged), 64 * page_bytes(), "{all:?}");
    assert_eq!(accounting.distinct(&all), Ok(page_bytes()));
    drop(puppet);
    drop(merging);
}

pub fn lazily_freed_memory() {
    const NAME: &str = "account::lazily_freed_memory";
    if !support::is_root() {
        return skip(NAME, "only root sees the flags of frames");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 64);
    puppet.writes(memory, 64);
    // Pages wait in batches for the LRU lists before and after: paging out an empty range drains those of its
    // processor.
    let empty = puppet.maps("anonymous", 1);
    let drain = |puppet: &mut Puppet| puppet.advises(empty, 1, libc::MADV_PAGEOUT).expect("to drain");
    drain(&mut puppet);
    puppet.advises(memory, 64, libc::MADV_FREE).expect("to free lazily");
    drain(&mut puppet);
    let target = puppet.0.attach();
    let kernel = |puppet: &Puppet| rollup(puppet.0.pid())["LazyFree"] / page_bytes();
    let flagged = marked(&target, memory, 64, LazilyFreed).expect("flags");
    if flagged == 0 {
        return skip(NAME, "the kernel kept the pages in a batch");
    }
    assert_eq!(classes(&target, memory, 64), [(Anonymous, 64)]);
    assert_eq!(kernel(&puppet), flagged);
    let map = format!("map {memory:#x}, +{} by lazy_free", 64 * page_bytes());
    assert_eq!(fork_cost::shown_in_cells(puppet.0.pid(), &map), (flagged, 64));
    // The flag stays where a page is written again; smaps looks at the entry.
    puppet.writes(memory, 10);
    assert_eq!(marked(&target, memory, 64, LazilyFreed), Some(flagged));
    assert!(kernel(&puppet) <= 54 && kernel(&puppet) >= flagged.saturating_sub(10));
}

pub fn locked_memory() {
    const NAME: &str = "account::locked_memory";
    if !support::is_root() {
        return skip(NAME, "only root sees the flags of frames");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 10);
    puppet.writes(memory, 6);
    puppet.does("lock", &[memory, 4 * page_bytes()]);
    let target = puppet.0.attach();
    assert_eq!(marked(&target, memory, 10, Locked), Some(4));
    assert_eq!(classes(&target, memory, 10), [(Anonymous, 6)]);
    // A child does not inherit the lock, and the frames stay locked.
    let child = Child::of(&mut puppet, memory + 5 * page_bytes(), 1);
    let in_child = child.attach();
    assert_eq!(classes(&in_child, memory, 10), [(Anonymous, 1), (Forked, 5)]);
    assert_eq!(marked(&in_child, memory, 10, Locked), Some(0));
    let region_locked = |target: &pmdb::Target| {
        let (space, detail) = AddressSpace::detail_at(target, support::at(memory)).expect("a page");
        assert!(detail.page.flags.expect("flags").contains(pmdb::kernel::PageFlags::MLOCKED));
        space.predict_access(&detail, &mut pmdb::budget::Budget::unlimited()).expect("an answer").region_locked
    };
    assert_eq!((region_locked(&target), region_locked(&in_child)), (Some(true), Some(false)));
}

pub fn zeros_in_huge_pages() {
    const NAME: &str = "account::zeros_in_huge_pages";
    let Some(bytes) = huge_page_bytes() else {
        return skip(NAME, "no transparent huge pages");
    };
    let pages = bytes / page_bytes();
    let mut puppet = Puppet::start();
    let memory = puppet.maps("huge", 2 * pages);
    // Sparse: a few pages of the first have anything in them.
    puppet.writes(memory, 3);
    puppet.writes(memory + bytes, pages);
    for half in 0..2 {
        _ = puppet.advises(memory + half * bytes, pages, MADV_COLLAPSE);
    }
    let target = puppet.0.attach();
    let before = rollup(puppet.0.pid());
    let (all, accounting) = account(&target, Some((memory, 2 * pages)), true);
    match all.all_marked(Huge) {
        // Without a scan, smaps tells how much is huge, but not which pages.
        Some(huge) if huge == 2 * bytes && support::has_scan() => {}
        _ => return skip(NAME, "the kernel gave no huge page, or cannot say"),
    }
    assert_eq!(all.all_marked(Zeros), Some((pages - 3) * page_bytes()));
    let (unread, _) = account(&target, Some((memory, 2 * pages)), false);
    assert_eq!(unread.all_marked(Zeros), None);
    assert!(accounting.why_unknown(Zeros).to_string().contains("not looked at"));
    assert_eq!(rollup(puppet.0.pid())["Rss"], before["Rss"], "nothing was faulted in");
}

pub fn the_pool_is_beside() {
    let pool = match crate::system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip("account::the_pool_is_beside", &reason),
    };
    let mut puppet = Puppet::start();
    let bytes = support::pool_page_bytes();
    let memory = puppet.maps("hugetlb", 2 * bytes / page_bytes());
    puppet.writes(memory, 1);
    let target = puppet.0.attach();
    let (all, _) = account(&target, Some((memory, 2 * bytes / page_bytes())), false);
    assert_eq!((all.total(), all.beside(BesideRss::Hugetlb)), (0, bytes));
    adds_up(&puppet.0);
    let family = super::command::records(puppet.0.pid(), "account children");
    let [sums] = super::command::of_type(&family, "account-family")[..] else { panic!("{family:?}") };
    assert_eq!(sums["hugetlb"], bytes, "{sums}");
    drop(puppet);
    drop(pool);
}

pub fn swap_is_beside() {
    const NAME: &str = "account::swap_is_beside";
    let (puppet, memory, swap) = match Puppet::in_swap(16, 10) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    let target = puppet.0.attach();
    let (all, _) = account(&target, Some((memory, 16)), false);
    assert_eq!(all.of(Anonymous), 6 * page_bytes());
    assert_eq!((all.total(), all.beside(BesideRss::Swapped)), (6 * page_bytes(), 10 * page_bytes()));
    adds_up(&puppet.0);
    drop(puppet);
    drop(swap);
}

pub fn guards_and_zeros_are_beside() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 12);
    puppet.writes(memory, 4);
    puppet.reads(memory + 4 * page_bytes(), 5);
    let guards = puppet.advises(memory, 2, MADV_GUARD_INSTALL).is_ok();
    let target = puppet.0.attach();
    let (all, _) = account(&target, Some((memory, 12)), false);
    let pages = |bytes: u64| bytes / page_bytes();
    let expected = if guards { (2, 2) } else { (4, 0) };
    assert_eq!((pages(all.total()), pages(all.beside(BesideRss::Guards))), expected);
    assert_eq!(pages(all.beside(BesideRss::ZeroPages)), 5);
}
