//! Accounts of fake processes, and what sums of smaps settle.

use super::{Account, Accounting, Check, Family, checks};
use crate::inspect::{AddressSpace, Evidence};
use crate::kernel::smaps::Smaps;
use crate::kernel::{Device, Name, PageFlags, Permissions, Region, WordFile};
use crate::process::ProcessHandle;
use crate::process::fake::{EXCLUSIVE, FILE, File, HUGE, KernelSetting, PAGE, PRESENT, World, region};
use crate::report::{AccountClass::*, AccountMark, BesideRss, Reason};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn account(world: World) -> (Account, Accounting) {
    let (_, target) = world.target();
    let space = AddressSpace::of(&target).expect("a space");
    let mut accounting = space.account(&space.spans(), Evidence::empty(), false);
    let mut all = Account::default();
    while let Some(step) = accounting.next().expect("an account") {
        if let Some((_, one)) = step.region {
            all.merge(one);
        }
    }
    (all, accounting)
}

fn pages(bytes: u64) -> u64 {
    bytes / PAGE
}

fn file(start: u64, pages: u64, offset: u64) -> Region {
    let device = Device { major: 8, minor: 1 };
    Region { inode: 7, device, offset: offset * PAGE, ..region(start, pages) }
}

/// Hides frames and the words of frames.
fn hide(world: World) -> World {
    World { hidden: true, refused: WordFile::OF_FRAMES.to_vec(), ..world }
}

/// A file of which two regions map pages 2 to 4, and a copy.
fn mapped_twice() -> World {
    let mut world = World::new([file(0x100, 4, 0), file(0x200, 4, 2)]);
    for page in 0..4 {
        world.entries.insert(0x100 + page, PRESENT | FILE | (500 + page));
        world.flags.insert(500 + page, PageFlags::DIRTY.bits());
        world.counts.insert(500 + page, 2 + u64::from(page == 3));
    }
    world.entries.insert(0x202, PRESENT | FILE | 600);
    world.counts.insert(600, 9);
    world.entries.insert(0x200, PRESENT | FILE | 502);
    world.entries.insert(0x201, PRESENT | FILE | 503);
    world.maps(0x203, 1, 700);
    world
}

#[test]
fn frames_of_an_object_are_counted_in_this_process() {
    let (all, accounting) = account(mapped_twice());
    // Pages 0 and 1 are others' too; page 2 is only here, twice; page 3 is here twice, and elsewhere.
    assert_eq!((pages(all.of(FileOthers)), pages(all.of(FileHere)), pages(all.of(PrivateCopies))), (5, 2, 1));
    assert_eq!(all.marked(FileHere, AccountMark::Several).map(pages), Some(2));
    assert_eq!(all.marked(FileOthers, AccountMark::Several).map(pages), Some(2));
    assert_eq!(all.marked(FileOthers, AccountMark::Dirty).map(pages), Some(4));
    assert_eq!(accounting.distinct(&all).map(pages), Ok(6));
}

#[test]
fn without_frames_only_what_no_other_region_maps_is_known() {
    let (all, accounting) = account(hide(mapped_twice()));
    assert_eq!((pages(all.of(FileOthers)), pages(all.of(FileUnclear)), pages(all.of(PrivateCopies))), (3, 4, 1));
    assert_eq!(all.marked(FileUnclear, AccountMark::Several), None);
    assert_eq!(all.all_marked(AccountMark::Dirty), None);
    assert_eq!(accounting.distinct(&all), Err(Reason::FrameHidden));
    assert!(accounting.why_unknown(AccountMark::Dirty).is_refusal());
}

fn smaps(region: &Region, fields: &[(&str, u64)]) -> Smaps {
    let fields = fields.iter().map(|&(name, pages)| (name.to_owned(), pages * PAGE)).collect();
    Smaps { fields, vm_flags: vec!["rd".into(), "wr".into()], ..Smaps::of(region.range) }
}

/// A huge page without map counts: bit 56 tells nothing there.
fn huge_without_counts(private: u64, shared: u64, rss: u64) -> Account {
    let memory = region(HUGE, HUGE);
    let fields = [("Rss", rss), ("Anonymous", rss), ("Private_Dirty", private), ("Shared_Dirty", shared), ("KSM", 0)];
    let mut world = World::new([memory.clone()]);
    world.maps_huge(HUGE, 1024);
    world.smaps = vec![smaps(&memory, &fields)];
    account(hide(world)).0
}

#[test]
fn sums_of_smaps_settle_what_the_page_map_does_not_tell() {
    let all = huge_without_counts(7, HUGE - 7, HUGE);
    assert_eq!((pages(all.of(Anonymous)), pages(all.of(Forked))), (7, HUGE - 7));
    assert_eq!(all.marked(Forked, AccountMark::ToCopy).map(pages), Some(HUGE - 7));
    assert_eq!(all.all_marked(AccountMark::Huge).map(pages), Some(HUGE));
    assert_eq!(all.marked(Forked, AccountMark::Huge).map(pages), Some(HUGE - 7));
    // smaps is of another moment: nothing is settled.
    for other in [huge_without_counts(7, HUGE - 8, HUGE), huge_without_counts(7, HUGE - 8, HUGE - 1)] {
        assert_eq!(pages(other.of(PrivateUnclear)), HUGE);
        assert_eq!(other.all_marked(AccountMark::ToCopy), None);
    }
}

#[test]
fn two_open_classes_are_not_told_apart_by_their_sum() {
    // A private mapping of a file: pages of the file and copies, in huge mappings.
    let memory = file(HUGE, 2 * HUGE, 0);
    let make = |private: u64| {
        let mut world = World::new([memory.clone()]);
        world.maps_huge(HUGE, 1024);
        world.maps_huge(2 * HUGE, 4096);
        (HUGE..2 * HUGE).for_each(|page| *world.entries.get_mut(&page).expect("an entry") |= FILE);
        let fields = [
            ("Rss", 2 * HUGE),
            ("Anonymous", HUGE),
            ("Private_Dirty", private),
            ("Shared_Clean", 2 * HUGE - private),
            ("KSM", 0),
        ];
        world.smaps = vec![smaps(&memory, &fields)];
        account(hide(world)).0
    };
    let open = make(HUGE);
    assert_eq!((pages(open.of(PrivateUnclear)), pages(open.of(FileUnclear))), (HUGE, HUGE));
    let here = make(2 * HUGE);
    assert_eq!((pages(here.of(PrivateCopies)), pages(here.of(FileHere))), (HUGE, HUGE));
    let elsewhere = make(0);
    assert_eq!((pages(elsewhere.of(Forked)), pages(elsewhere.of(FileOthers))), (HUGE, HUGE));
}

/// Before Linux 6.7 nothing tells the zero page without rights, except that Rss leaves it out.
#[test]
fn pages_of_zeros_are_found_by_what_rss_leaves_out() {
    let memory = region(0x100, 8);
    let mut world = World::new([memory.clone()]);
    for page in 0..6 {
        let exclusive = if page < 2 { EXCLUSIVE } else { 0 };
        world.entries.insert(0x100 + page, PRESENT | exclusive | (500 + page));
    }
    let fields = [("Rss", 3), ("Anonymous", 3), ("Private_Dirty", 2), ("Shared_Dirty", 1), ("KSM", 0)];
    world.smaps = vec![smaps(&memory, &fields)];
    world.scans = false;
    let (all, _) = account(hide(world));
    assert_eq!((pages(all.of(Anonymous)), pages(all.of(Forked)), pages(all.total())), (2, 1, 3));
    assert_eq!(pages(all.beside(BesideRss::ZeroPages)), 3);
}

/// With `use_zero_pages`, `KSM` counts merged zero pages too. They are in no fork.
#[test]
fn merged_pages_are_not_shared_since_a_fork() {
    for (zeros, merged, unclear) in [(0, 4, 0), (1, 0, 4)] {
        let memory = region(0x100, 8);
        let mut world = World::new([memory.clone()]);
        (0..4 + zeros).for_each(|page| _ = world.entries.insert(0x100 + page, PRESENT | (500 + page)));
        let fields = [("Rss", 4), ("Anonymous", 4), ("Private_Dirty", 0), ("Shared_Dirty", 4), ("KSM", 4)];
        let mut smaps = smaps(&memory, &fields);
        smaps.vm_flags.push("mg".into());
        let rollup = Smaps { range: region(0, 1).range, ..smaps.clone() };
        world.smaps = vec![smaps];
        (world.merged_pages, world.merges_zeros, world.scans) = (1, true, false);
        let (all, _) = account(hide(world));
        let found = [Anonymous, Forked, Merged, PrivateUnclear].map(|class| pages(all.of(class)));
        assert_eq!(found, [0, 0, merged, unclear], "{all:?}");
        let is_compared = checks(&all, &rollup, true).iter().any(|check| check.field == "KSM");
        assert_eq!(is_compared, zeros == 0);
    }
}

#[test]
fn averages_stay_open() {
    let mut world = World::new([region(HUGE, HUGE)]);
    world.maps_huge(HUGE, 1024);
    world.counts.values_mut().for_each(|count| *count = 2);
    world.has_config = false;
    let (all, accounting) = account(world);
    assert_eq!(pages(all.of(PrivateUnclear)), HUGE);
    assert!(accounting.is_average());
}

#[test]
fn frames_of_drivers_and_swap_are_beside() {
    let mut world = World::new([region(0x100, 8)]);
    world.maps(0x100, 3, 500);
    world.flags.insert(502, PageFlags::RESERVED.bits());
    world.entries.insert(0x103, 1 << 62 | 1);
    world.entries.insert(0x104, 1 << 62 | 31 | 4 << 5);
    world.swaps = true;
    let (all, _) = account(world);
    let beside = [BesideRss::Drivers, BesideRss::Swapped, BesideRss::Guards, BesideRss::Hugetlb];
    assert_eq!(beside.map(|one| pages(all.beside(one))), [1, 1, 1, 0]);
    assert_eq!(pages(all.total()), 2);
}

#[test]
fn only_what_both_have_is_compared() {
    let mut world = World::new([region(0x100, 8)]);
    world.maps(0x100, 3, 500);
    let (all, _) = account(world);
    let rollup = smaps(&region(0, 1), &[("Rss", 4), ("Anonymous", 3), ("Private_Clean", 0)]);
    let found = checks(&all, &rollup, false);
    let check = |field, kernel| Check { field, counted: 3 * PAGE, kernel: kernel * PAGE };
    assert_eq!(found, [check("Rss", 4), check("Anonymous", 3)]);
    // Merged zero pages are in `KSM`, and in no class.
    let mut with_zeros = all.clone();
    with_zeros.put_beside(BesideRss::ZeroPages, PAGE);
    for (merged, zeros, is_compared) in [(0, false, true), (0, true, true), (1, false, true), (1, true, false)] {
        let rollup = smaps(&region(0, 1), &[("Rss", 3), ("KSM", merged)]);
        let found = checks(&with_zeros, &rollup, zeros);
        assert_eq!(found.iter().any(|check| check.field == "KSM"), is_compared, "{merged} {zeros}");
    }
}

/// The flag of a frame does not tell which process has locked it.
#[test]
fn locked_frames_count_only_in_locked_regions() {
    let locked = |vm_flags: Option<&[&str]>| {
        let memory = region(0x100, 4);
        let mut world = World::new([memory.clone()]);
        world.maps(0x100, 4, 500);
        (500..504).for_each(|frame| _ = world.flags.insert(frame, (PageFlags::ANON | PageFlags::MLOCKED).bits()));
        world.smaps = vm_flags
            .into_iter()
            .map(|codes| Smaps {
                vm_flags: codes.iter().map(|&code| code.into()).collect(),
                ..smaps(&memory, &[("Rss", 4)])
            })
            .collect();
        account(world).0.all_marked(AccountMark::Locked).map(pages)
    };
    assert_eq!(locked(Some(&["rd", "wr", "lo"])), Some(4));
    assert_eq!(locked(Some(&["rd", "wr"])), Some(0));
    assert_eq!(locked(None), None);
}

/// The text of `status` of a process with so much locked memory.
fn status(world: &World, locked: u64) -> String {
    let begin = format!("State:\tS (sleeping)\nTgid:\t{}\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n", world.pid);
    format!("{begin}VmLck:\t{locked} kB\n")
}

/// Page flags of plain memory show what is merged, lazily freed or locked: smaps_rollup may say that nothing is.
#[test]
fn flags_of_plain_memory_are_not_read_for_nothing() {
    let sums = |freed| smaps(&region(0, 1), &[("Rss", 24), ("LazyFree", freed), ("KSM", 0)]);
    let read = |rollup: Option<Smaps>, locked: u64, ever_freed: Option<u64>| {
        let mut world = mapped_twice();
        let counter = |freed| (File::EventCounters, format!("pgfree 7\npglazyfree {freed}\npglazyfreed 0\n"));
        world.texts.extend(ever_freed.map(counter));
        world.regions.lock().expect("its regions").push(region(0x1000, 16));
        for page in 0..16 {
            world.maps(0x1000 + page, 1, 0x9000 + 3 * page);
            world.flags.insert(0x9000 + 3 * page, (PageFlags::ANON | PageFlags::SWAPBACKED).bits());
        }
        world.texts.push((File::Status, status(&world, locked)));
        world.texts.push((File::Setting(KernelSetting::PartlyMapped(2 << 20)), "0\n".to_owned()));
        let (world, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let before = world.flags_read.load(Ordering::Relaxed);
        let mut accounting = space.account_beside(rollup.as_ref(), &space.spans(), Evidence::empty(), false);
        let mut all = Account::default();
        while let Some(step) = accounting.next().expect("an account") {
            step.region.into_iter().for_each(|(_, one)| all.merge(one));
        }
        assert_eq!(pages(all.of(Anonymous)), 16);
        assert_eq!(all.marked(Anonymous, AccountMark::LazilyFreed), Some(0));
        assert_eq!(pages(all.marked(FileOthers, AccountMark::Dirty).expect("the flags of files")), 4);
        world.flags_read.load(Ordering::Relaxed) - before
    };
    let of_all = read(None, 0, None);
    // The words of 16 frames and those between them, but for one: it shows that the memory is not droppable.
    assert_eq!(read(Some(sums(0)), 0, None) + 45, of_all);
    assert_eq!(read(Some(sums(4)), 0, None), of_all, "some are lazily freed");
    assert_eq!(read(Some(sums(0)), 4, None), of_all, "some may be locked");
    assert_eq!(read(None, 0, Some(0)) + 45, of_all);
    assert_eq!(read(None, 0, Some(3)), of_all, "others may be lazily freed");
}

/// Memory in scattered frames is counted at once: not where folios of the machine may be mapped in part, and never
/// where others may map the frames.
#[test]
fn frames_of_exclusive_pages_do_not_matter() {
    let counted = |partly_mapped: &str, more| {
        let mut world = World::new([region(0x1000, 20)]);
        for page in 0..16 {
            world.maps(0x1000 + page, 1, 0x9000 + 3 * page);
            world.flags.insert(0x9000 + 3 * page, (PageFlags::ANON | PageFlags::SWAPBACKED).bits());
        }
        for page in 16..20 {
            world.entries.insert(0x1000 + page, PRESENT | (0xa000 + 3 * page));
            world.counts.insert(0xa000 + 3 * page, 2);
            world.flags.insert(0xa000 + 3 * page, (PageFlags::ANON | PageFlags::SWAPBACKED).bits());
        }
        world.texts.push((File::Status, status(&world, 0)));
        world.texts.push((File::Setting(KernelSetting::PartlyMapped(2 << 20)), partly_mapped.to_owned()));
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let mut accounting = space.account(&space.spans(), more, false);
        let (mut all, mut counted) = (Account::default(), 0);
        while let Some(step) = accounting.next().expect("an account") {
            counted += step.counted.len();
            step.region.into_iter().for_each(|(_, one)| all.merge(one));
        }
        assert_eq!((pages(all.of(Anonymous)), pages(all.of(Forked))), (16, 4));
        counted
    };
    assert_eq!(counted("0\n", Evidence::empty()), 1 + 4);
    assert_eq!(counted("1\n", Evidence::empty()), 16 + 4);
    assert_eq!(counted("0\n", Evidence::ORDER), 16 + 4);
}

/// Smaps counts no page of droppable memory as lazily freed that was written since, and no counter has its pages.
#[test]
fn flags_of_droppable_memory_are_always_read() {
    let mut world = World::new([region(0x1000, 16)]);
    world.maps(0x1000, 16, 0x9000);
    (0x9000..0x9010).for_each(|frame| _ = world.flags.insert(frame, (PageFlags::ANON | PageFlags::LRU).bits()));
    world.texts.push((File::EventCounters, "pglazyfree 0\n".to_owned()));
    world.texts.push((File::Status, status(&world, 0)));
    let memory = region(0x1000, 16);
    let vm_flags = vec!["rd".into(), "wr".into(), "dp".into()];
    let row = Smaps { vm_flags, ..smaps(&memory, &[("Rss", 64), ("LazyFree", 0)]) };
    world.smaps = vec![row];
    let (all, _) = account(world);
    let marked = |mark| all.marked(Anonymous, mark).map(pages);
    assert_eq!((marked(AccountMark::Droppable), marked(AccountMark::LazilyFreed)), (Some(16), Some(0)));
}

/// Memory in scattered frames costs a read of flags for each: not where no folio of the machine is mapped in part.
#[test]
fn rests_of_folios_are_not_looked_for_in_vain() {
    let read = |counted: Option<u64>| {
        let mut world = World::new([region(0x1000, 16)]);
        world.has_config = true;
        for page in 0..16 {
            world.maps(0x1000 + page, 1, 0x9000 + 300 * page);
            world.flags.insert(0x9000 + 300 * page, (PageFlags::ANON | PageFlags::SWAPBACKED).bits());
        }
        world.texts.push((File::Status, status(&world, 0)));
        let file = File::Setting(KernelSetting::PartlyMapped(2 << 20));
        world.texts.extend(counted.map(|folios| (file, format!("{folios}\n"))));
        let (world, target) = world.target();
        assert_eq!(target.machine.has_exact_map_counts(), Some(true));
        let space = AddressSpace::of(&target).expect("a space");
        let rollup = smaps(&region(0, 1), &[("Rss", 16), ("LazyFree", 0), ("KSM", 0)]);
        let mut accounting = space.account_beside(Some(&rollup), &space.spans(), Evidence::empty(), false);
        while accounting.next().expect("an account").is_some() {}
        assert_eq!(accounting.rests().expect("known"), []);
        world.flags_read.load(Ordering::Relaxed)
    };
    let with_one = read(Some(1));
    // One in each place of a folio.
    let none = read(Some(0));
    assert_eq!(with_one, none + 300 * 16 / 512 + 1);
    assert!(read(None) > with_one, "a kernel that does not count them");
}

/// kcmp(2) also fails for a process that has ended or may not be examined: that says nothing of the others.
#[test]
fn a_process_that_cannot_be_compared_leaves_the_others_comparable() {
    let handle = |pid| ProcessHandle::of_numbers(pid, 0);
    let mut world = World::new([region(0x1000, 1)]);
    let other = |space| Some(Arc::new(World { space, ..World::new([region(0x1000, 1)]) }));
    world.processes = vec![(handle(20), other(7)), (handle(21), None), (handle(22), other(7)), (handle(23), other(8))];
    let (_, target) = world.target();
    let mut family = Family::new(&target.machine, [20, 21, 22, 23].map(handle).to_vec(), false);
    while family.next().expect("a family").is_some() {}
    assert!(family.compares());
    let sums = family.sums().expect("sums");
    let members: Vec<&[u32]> = sums.members.iter().map(|member| &*member.same_memory).collect();
    assert_eq!(members, [&[22][..], &[]]);
}

/// The first System V segment of an IPC namespace has number 0, which is the inode of memory without an object.
#[test]
fn segment_0_is_shared_memory() {
    let device = Device { major: 0, minor: 1 };
    let shared = Permissions { shared: true, ..region(0x100, 4).permissions };
    let segment =
        Region { name: Name::new("/SYSV00000000"), deleted: true, device, permissions: shared, ..region(0x100, 4) };
    let mut world = World { shared_memory: Some(device), ..World::new([segment]) };
    for page in 0..4 {
        world.entries.insert(0x100 + page, PRESENT | FILE | (500 + page));
        world.flags.insert(500 + page, (PageFlags::SWAPBACKED | PageFlags::MMAP).bits());
        world.counts.insert(500 + page, 1);
    }
    let (all, _) = account(world);
    assert_eq!((pages(all.total()), pages(all.beside(BesideRss::ZeroPages))), (4, 0));
    assert_eq!(pages(all.of_all(&[ShmemHere, ShmemOthers, ShmemUnclear])), 4);
}

/// A segment that no process has attached may be charged to any group.
#[test]
fn segments_that_nobody_has_attached_are_candidates() {
    let title = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n";
    let segment = |number: u32, attached: u32, bytes: u64| {
        format!("0 {number} 600 {bytes} 99 99 {attached} 0 0 0 0 0 0 0 {bytes} 0\n")
    };
    let list = [title.to_owned(), segment(3, 0, 4096), segment(4, 1, 4096), segment(5, 0, 8192), segment(6, 0, 0)];
    let texts = vec![(File::OwnIpcNamespace, "ipc:[1]".to_owned()), (File::Segments, list.concat())];
    let (_, target) = World { texts, ..World::new([]) }.target();
    let objects = Family::new(&target.machine, Vec::new(), false).objects();
    let numbers = objects.unattached.map(|all| all.iter().map(|one| one.identity.numbers().1).collect());
    assert_eq!(numbers, Ok(vec![5, 3]));
    let (_, without) = World::new([]).target();
    assert!(Family::new(&without.machine, Vec::new(), false).objects().unattached.is_err());
}
