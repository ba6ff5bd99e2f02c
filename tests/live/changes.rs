//! The sums of what changed, held against the page map, read by hand before and after.

use super::Test;
use super::answers::large::huge_page;
use super::answers::program;
use super::puppet::Puppet;
use super::states::{MADV_GUARD_INSTALL, MADV_GUARD_REMOVE, detail, merge, to_be_merged};
use super::support::{self, page_bytes, plain_entry, skip};
use pmdb::budget::Budget;
use pmdb::inspect::{AddressSpace, Change, Evidence, Snapshot, Watcher};
use pmdb::kernel::{AddressRange, PageFlags};
use pmdb::process::Target;
use pmdb::report::{EventKind, NetEffect};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("changes::pages_go_with_their_region", pages_go_with_their_region),
    ("changes::a_mapping_in_place_of_another", a_mapping_in_place_of_another),
    ("changes::a_mapping_that_stays", a_mapping_that_stays),
    ("changes::pages_in_swap", pages_in_swap),
    ("changes::guards_over_pages", guards_over_pages),
    ("changes::a_copy_inside_a_huge_page", a_copy_inside_a_huge_page),
    ("changes::a_fork_shows_by_its_child", a_fork_shows_by_its_child),
    ("changes::pages_are_merged_and_unmerged", pages_are_merged_and_unmerged),
];

const MADV_DONTNEED: i32 = 4;
const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Compares the pages of a puppet with what they were, both as `watch` and as `diff` do.
struct Observer {
    target: Target,
    spans: Vec<AddressRange>,
    watcher: Watcher,
    last: Snapshot,
    /// The pages that the page map had.
    plain: Plain,
}

/// Pages that are present, and pages with bit 62, which are those in swap where there are no markers.
type Plain = (u64, u64);

impl Observer {
    /// Looks at `pages` pages from each of `starts` on, which are in order.
    fn of(puppet: &Puppet, starts: &[u64], pages: u64) -> Observer {
        let target = puppet.0.attach();
        let spans: Vec<AddressRange> =
            starts.iter().map(|&start| support::range(start, pages * page_bytes())).collect();
        let last = snapshot(&target, &spans);
        let plain = plain(puppet, &spans);
        let mut observer = Observer { target, spans, watcher: Watcher::new(Evidence::empty()), last, plain };
        assert_eq!(observer.watched(), []);
        observer
    }

    fn watched(&mut self) -> Vec<Change> {
        let look = self.watcher.sample(&self.target, Budget::unlimited(), |_| self.spans.clone());
        look.expect("a sample").changes().collect()
    }

    /// What changed since the last time. The sums of `watch` and of `diff` are the differences of the page map.
    fn changes(&mut self, puppet: &Puppet) -> (Vec<Change>, NetEffect) {
        let watched = self.watched();
        let now = snapshot(&self.target, &self.spans);
        let space = AddressSpace::of(&self.target).expect("a space");
        let changes: Vec<Change> = self.last.changes(&now, None, &space, &mut Budget::unlimited()).collect();
        let (before, after) = (self.plain, plain(puppet, &self.spans));
        let sum = sum(&changes);
        assert_eq!(sum, self::sum(&watched), "{changes:?}, {watched:?}");
        let bytes = |pages: u64| pages * page_bytes();
        assert_eq!(bytes(before.0) + sum.came, bytes(after.0) + sum.went, "present: {sum:?}, {changes:?}");
        assert_eq!(bytes(before.1) + sum.swap_came, bytes(after.1) + sum.swap_went, "in swap: {sum:?}, {changes:?}");
        (self.last, self.plain) = (now, after);
        (changes, sum)
    }
}

fn snapshot(target: &Target, spans: &[AddressRange]) -> Snapshot {
    let space = AddressSpace::of(target).expect("a space");
    Snapshot::begin(&space, spans.to_vec(), Evidence::empty(), false).finish().expect("a snapshot")
}

fn plain(puppet: &Puppet, spans: &[AddressRange]) -> Plain {
    let addresses = spans.iter().flat_map(|span| {
        let (start, end) = (span.start().get(), span.end().get());
        (start..end).step_by(page_bytes() as usize)
    });
    let entries = addresses.map(|address| plain_entry(puppet.0.pid(), address).expect("an entry"));
    entries.fold((0, 0), |(present, swapped), entry| {
        let is_guard = entry >> 58 & 1 == 1;
        (present + (entry >> 63), swapped + (entry >> 62 & u64::from(!is_guard) & 1))
    })
}

fn sum(changes: &[Change]) -> NetEffect {
    let mut sum = NetEffect::default();
    changes.iter().for_each(|change| sum += change.effect);
    sum
}

/// The kinds of change with their pages.
fn kinds(changes: &[Change]) -> Vec<(EventKind, u64)> {
    changes.iter().map(|change| (change.kind, change.pages)).collect()
}

use EventKind::*;

fn pages_go_with_their_region() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let memory = puppet.maps("shared", 40);
    puppet.writes(memory, 30);
    let mut observer = Observer::of(&puppet, &[memory], 40);
    puppet.unmaps(memory + 25 * page, 15);
    let (changes, sum) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(RegionShrank, 5)]);
    assert_eq!((sum.came, sum.went), (0, 5 * page));
    puppet.unmaps(memory, 25);
    let (changes, sum) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(RegionWent, 25)]);
    assert_eq!((sum.came, sum.went), (0, 25 * page));
}

/// Maps the pages from `from` on over those at `to`.
fn place(puppet: &mut Puppet, from: u64, pages: u64, to: u64) {
    let moved = puppet.does("move", &[from, pages * page_bytes(), to]);
    assert_eq!(moved, to);
}

fn a_mapping_in_place_of_another() {
    const PAGES: u64 = 16;
    let mut puppet = Puppet::start();
    let file = {
        let path = std::env::temp_dir().join(format!("pmdb-changes-{}", std::process::id()));
        std::fs::write(&path, vec![7; (4 * PAGES * page_bytes()) as usize]).expect("a file");
        let file = std::fs::File::options().read(true).write(true).open(&path).expect("the file");
        std::fs::remove_file(path).expect("to remove it");
        file
    };
    let offset = PAGES * page_bytes();
    type Maps<'a> = &'a dyn Fn(&mut Puppet) -> u64;
    let anonymous: Maps = &|puppet| {
        let memory = puppet.maps("anonymous", PAGES);
        puppet.writes(memory, 12);
        memory
    };
    let shared: Maps = &|puppet| {
        let memory = puppet.maps("shared", PAGES);
        puppet.writes(memory + 4 * page_bytes(), 9);
        memory
    };
    let private_file: Maps = &|puppet| {
        let memory = puppet.maps_file(&file, PAGES, RW, libc::MAP_PRIVATE);
        puppet.reads(memory, 10);
        memory
    };
    let shared_file: Maps = &|puppet| {
        let memory = puppet.maps_file(&file, PAGES, RW, libc::MAP_SHARED);
        puppet.reads(memory, 10);
        memory
    };
    let later_in_the_file: Maps = &|puppet| {
        let memory = puppet.maps_file_at(&file, offset, PAGES, RW, libc::MAP_PRIVATE);
        puppet.writes(memory + 2 * page_bytes(), 8);
        memory
    };
    for (what, before, after) in [
        ("shared over anonymous", anonymous, shared),
        ("anonymous over shared", shared, anonymous),
        ("other shared memory", shared, shared),
        ("a file over anonymous", anonymous, private_file),
        ("anonymous over a file", private_file, anonymous),
        // The frames stay: both are of the page cache.
        ("shared over private", private_file, shared_file),
        ("private over shared", shared_file, private_file),
        ("another offset", private_file, later_in_the_file),
    ] {
        let memory = before(&mut puppet);
        let other = after(&mut puppet);
        let mut observer = Observer::of(&puppet, &[memory], PAGES);
        place(&mut puppet, other, PAGES, memory);
        let (changes, sum) = observer.changes(&puppet);
        let kinds: Vec<EventKind> = changes.iter().map(|change| change.kind).collect();
        assert!(kinds.iter().all(|kind| matches!(kind, RegionWent | RegionAppeared | Came)), "{what}: {changes:?}");
        let went = observer.plain.0 * page_bytes() + sum.went - sum.came;
        assert_eq!(went, sum.went, "{what}: every page of the old mapping went");
        assert!(sum.came > 0, "{what}");
        puppet.unmaps(memory, PAGES);
    }
    // Only its own name shows that private memory has been replaced. The sums are right all the same.
    let (memory, other) = (anonymous(&mut puppet), anonymous(&mut puppet));
    puppet.advises(other, 5, MADV_DONTNEED).expect("to drop pages");
    let mut observer = Observer::of(&puppet, &[memory], PAGES);
    place(&mut puppet, other, PAGES, memory);
    let (_, sum) = observer.changes(&puppet);
    assert_eq!(sum.went - sum.came, 5 * page_bytes());
}

/// Memory that changes its rights, is split and joined, or grows is the same mapping, and so is a file that is deleted.
fn a_mapping_that_stays() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let path = std::env::temp_dir().join(format!("pmdb-stays-{}", std::process::id()));
    std::fs::write(&path, vec![7; (8 * page) as usize]).expect("a file");
    let file = std::fs::File::options().read(true).write(true).open(&path).expect("the file");
    let mapped = puppet.maps_file(&file, 8, RW, libc::MAP_PRIVATE);
    puppet.reads(mapped, 8);
    let memory = puppet.maps("anonymous", 16);
    puppet.writes(memory, 16);
    let mut starts = [mapped, memory];
    starts.sort_unstable();
    let mut observer = Observer::of(&puppet, &starts, 8);
    std::fs::remove_file(&path).expect("to remove it");
    puppet.does("protect", &[memory + 2 * page, 2 * page, 1]);
    puppet.does("protect", &[mapped + page, page, 1]);
    let (changes, _) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(RegionChanged, 0), (RegionChanged, 0)], "{changes:?}");
    puppet.does("protect", &[memory + 2 * page, 2 * page, 3]);
    puppet.does("protect", &[mapped + page, page, 3]);
    let (changes, _) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(RegionChanged, 0), (RegionChanged, 0)], "{changes:?}");
    puppet.writes(mapped, 1);
    let (changes, _) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(CopiedOnWrite, 1)]);
}

fn pages_in_swap() {
    const NAME: &str = "changes::pages_in_swap";
    const PAGES: u64 = 8;
    let _swap = match super::system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let page = page_bytes();
    // The second half is where pages are moved to.
    let memory = puppet.maps("anonymous", 2 * PAGES);
    puppet.writes(memory, PAGES);
    let mut observer = Observer::of(&puppet, &[memory], 2 * PAGES);
    if !puppet.pages_out(memory, PAGES) || is_kept(&puppet, memory) {
        return skip(NAME, "the kernel kept the page");
    }
    let (_, sum) = observer.changes(&puppet);
    assert_eq!(sum, NetEffect { went: PAGES * page, swap_came: PAGES * page, ..NetEffect::default() });
    // Elsewhere: they come there and go here, and no byte becomes present.
    place(&mut puppet, memory, PAGES, memory + PAGES * page);
    let (_, sum) = observer.changes(&puppet);
    assert_eq!((sum.came, sum.went), (0, 0));
    assert_eq!((sum.swap_came, sum.swap_went), (PAGES * page, PAGES * page));
    puppet.advises(memory + PAGES * page, 3, MADV_DONTNEED).expect("to drop pages");
    let (changes, sum) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(Went, 3)]);
    assert_eq!(sum, NetEffect { swap_went: 3 * page, ..NetEffect::default() });
    puppet.unmaps(memory + (PAGES + 3) * page, PAGES - 3);
    let (changes, sum) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(RegionShrank, PAGES - 3)]);
    assert_eq!(sum, NetEffect { swap_went: (PAGES - 3) * page, ..NetEffect::default() });
}

fn is_kept(puppet: &Puppet, address: u64) -> bool {
    plain_entry(puppet.0.pid(), address).is_none_or(|entry| entry >> 62 & 1 == 0)
}

fn guards_over_pages() {
    const NAME: &str = "changes::guards_over_pages";
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let memory = puppet.maps("anonymous", 8);
    puppet.writes(memory, 4);
    let mut observer = Observer::of(&puppet, &[memory], 8);
    if let Err(error) = puppet.advises(memory + 2 * page, 4, MADV_GUARD_INSTALL) {
        return skip(NAME, &format!("MADV_GUARD_INSTALL: error {error}"));
    }
    let (changes, sum) = observer.changes(&puppet);
    assert!(changes.iter().all(|change| change.kind == GuardInstalled), "{changes:?}");
    assert_eq!(sum, NetEffect { went: 2 * page, ..NetEffect::default() });
    // Removed and written to between two looks.
    puppet.advises(memory + 2 * page, 4, MADV_GUARD_REMOVE).expect("to remove it");
    puppet.writes(memory + 3 * page, 2);
    let (changes, sum) = observer.changes(&puppet);
    assert!(changes.iter().all(|change| change.kind == GuardRemoved), "{changes:?}");
    assert_eq!(sum, NetEffect { came: 2 * page, ..NetEffect::default() });
}

/// The kernel gives all pages of a huge mapping bit 56 of the first.
fn a_copy_inside_a_huge_page() {
    const NAME: &str = "changes::a_copy_inside_a_huge_page";
    if !support::shows_frames() {
        return skip(NAME, "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let (memory, pages) = match huge_page(&mut puppet) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    if puppet.0.attach().machine.has_exact_map_counts() != Some(true) {
        return skip(NAME, "map counts are averages here");
    }
    let page = page_bytes();
    // The child copies the first page, which the process then has alone.
    let child = puppet.does("fork", &[memory, 1]);
    let mut observer = Observer::of(&puppet, &[memory], pages);
    puppet.writes(memory + 5 * page, 2);
    let (changes, sum) = observer.changes(&puppet);
    let changes: Vec<(EventKind, u64)> = kinds(&changes).into_iter().filter(|(kind, _)| *kind != Split).collect();
    assert_eq!(changes, [(CopiedOnWrite, 2)]);
    assert_eq!(sum, NetEffect::default());
    puppet.does("kill", &[child]);
}

/// Of two states, one before a fork and one after it.
fn a_fork_shows_by_its_child() {
    let mut puppet = Puppet::start();
    let (pid, memory) = (puppet.0.pid(), puppet.maps("anonymous", 1));
    puppet.writes(memory, 1);
    let has_forked = |puppet: &Puppet| {
        let machine = puppet.0.attach().machine;
        machine.has_forked(pid, Duration::from_secs(3600)).expect("a list of processes")
    };
    assert!(!has_forked(&puppet));
    let child = puppet.does("fork", &[memory, 1]);
    assert!(has_forked(&puppet));
    // Afterwards the child is older than the time that is asked about.
    let begin = Instant::now();
    while puppet.0.attach().machine.has_forked(pid, Duration::ZERO).expect("a list of processes") {
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    let later = program(&[], pid, false, &["snapshot a".to_owned(), "diff a".to_owned()]);
    assert!(!later.contains("if a fork and a copy"), "{later}");
    puppet.does("kill", &[child]);
}

/// All equal pages are merged, also the one that has the frame of all. A write takes one out again.
fn pages_are_merged_and_unmerged() {
    const NAME: &str = "changes::pages_are_merged_and_unmerged";
    if !support::is_root() {
        return skip(NAME, "only root sees which pages are merged");
    }
    let (merging, mut puppet, memory) = match to_be_merged() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, &reason),
    };
    if detail(&puppet.0.attach(), memory).page.flags.is_none_or(|flags| flags.contains(PageFlags::KSM)) {
        return skip(NAME, "this kernel marks every anonymous page as merged");
    }
    let mut observer = Observer::of(&puppet, &[memory], 64);
    if let Err(reason) = merge(&mut puppet, memory) {
        return skip(NAME, &reason);
    }
    let (changes, _) = observer.changes(&puppet);
    let merged: u64 = changes.iter().filter(|change| change.kind == Merged).map(|change| change.pages).sum();
    assert_eq!(merged, 64, "{changes:?}");
    assert!(changes.iter().all(|change| change.kind == Merged), "{changes:?}");
    puppet.writes(memory + 3 * page_bytes(), 1);
    let (changes, _) = observer.changes(&puppet);
    assert_eq!(kinds(&changes), [(Unmerged, 1)]);
    drop(puppet);
    drop(merging);
}
