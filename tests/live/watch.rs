//! Each kind of change, made for real between two looks.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::states::{MADV_GUARD_INSTALL, MADV_GUARD_REMOVE, detail};
use super::support::{self, at, page_bytes, skip};
use pmdb::budget::Budget;
use pmdb::inspect::{AddressSpace, Change, Evidence, Survival, Watcher};
use pmdb::kernel::{AddressRange, State};
use pmdb::process::Target;
use pmdb::report::{EventKind, PageFacts};

pub const TESTS: &[Test] = &[
    ("watch::nothing_changes", nothing_changes),
    ("watch::pages_come_and_go", pages_come_and_go),
    ("watch::copies_are_made", copies_are_made),
    ("watch::pages_move", pages_move),
    ("watch::to_swap_and_back", to_swap_and_back),
    ("watch::split_and_collapsed", split_and_collapsed),
    ("watch::guards_come_and_go", guards_come_and_go),
    ("watch::map_counts_change", map_counts_change),
    ("watch::flags_change", flags_change),
    ("watch::soft_dirty_changes", soft_dirty_changes),
    ("watch::regions_change", regions_change),
    ("watch::another_program", another_program),
    ("watch::the_end", the_end),
    ("watch::many_pages_change_alike", many_pages_change_alike),
    ("watch::what_cannot_be_seen_is_said", what_cannot_be_seen_is_said),
    ("watch::copies_that_a_child_makes_are_said_not_to_show", copies_that_a_child_makes_are_said_not_to_show),
];

const MADV_DONTNEED: i32 = 4;

/// Looks at some pages of a puppet.
struct Watch {
    watcher: Watcher,
    target: Target,
    span: Option<AddressRange>,
}

/// What is compared: kind, address, pages, the state before and after.
type Brief = (EventKind, u64, u64, Option<State>, Option<State>);

impl Watch {
    /// With the first look taken.
    fn of(puppet: &Puppet, start: u64, pages: u64, extra: Evidence) -> Watch {
        let mut watch = Watch {
            watcher: Watcher::new(extra),
            target: puppet.0.attach(),
            span: Some(support::range(start, pages * page_bytes())),
        };
        assert_eq!(watch.changes(), []);
        watch
    }

    fn look(&mut self) -> (Survival, Vec<Change>) {
        let span = self.span;
        let choose = |space: &AddressSpace| span.map_or_else(|| space.spans(), |span| vec![span]);
        let look = self.watcher.sample(&self.target, Budget::unlimited(), choose).expect("a look");
        (look.survival(), joined(look.changes().collect()))
    }

    fn changes(&mut self) -> Vec<Brief> {
        let (look, changes) = self.look();
        assert_eq!(look, Survival::Alive);
        changes.iter().map(brief).collect()
    }
}

/// Joins the same changes of neighbours. They may be separate only where their frames do not follow each other, which
/// the kernel chooses.
fn joined(changes: Vec<Change>) -> Vec<Change> {
    let same = |a: &Option<PageFacts>, b: &Option<PageFacts>| {
        let without_frame = |facts: &Option<PageFacts>| {
            let pfn = None;
            facts.clone().map(|facts| PageFacts { pfn, ..facts })
        };
        without_frame(a) == without_frame(b)
    };
    let frame = |facts: &Option<PageFacts>| facts.as_ref().and_then(|facts| facts.pfn);
    let follows = |a: &Option<PageFacts>, b: &Option<PageFacts>, pages| match (frame(a), frame(b)) {
        (Some(a), Some(b)) => a.get() + pages == b.get(),
        (a, b) => a.is_none() && b.is_none(),
    };
    let mut joined: Vec<Change> = Vec::new();
    // The last row of a joined one: its first frames, and their number.
    let mut row: Option<Change> = None;
    for change in changes {
        let goes_on = |row: &Change| {
            let end = row.address.map(|address| address.get() + row.pages * page_bytes());
            row.kind == change.kind
                && end == change.address.map(|address| address.get())
                && row.region == change.region
                && (row.before.is_some() || row.after.is_some())
                && same(&row.before, &change.before)
                && same(&row.after, &change.after)
        };
        match (&row, joined.last_mut()) {
            (Some(row), Some(last)) if goes_on(row) => {
                let follow =
                    follows(&row.before, &change.before, row.pages) && follows(&row.after, &change.after, row.pages);
                assert!(!follow, "two rows that are one: {row:?}, {change:?}");
                last.pages += change.pages;
            }
            _ => joined.push(change.clone()),
        }
        row = Some(change);
    }
    joined
}

fn brief(change: &Change) -> Brief {
    (
        change.kind,
        change.address.map_or(0, |address| address.get()),
        change.pages,
        change.before.as_ref().map(|facts| facts.state),
        change.after.as_ref().map(|facts| facts.state),
    )
}

fn page_change(kind: EventKind, address: u64, pages: u64, before: State, after: State) -> Brief {
    (kind, address, pages, Some(before), Some(after))
}

use EventKind::*;
use State::{Present, Untouched};

fn nothing_changes() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 5000);
    puppet.writes(memory + 17 * page_bytes(), 3000);
    let mut watch = Watch::of(&puppet, memory, 5000, Evidence::empty());
    for _ in 0..3 {
        assert_eq!(watch.changes(), []);
    }
}

fn pages_come_and_go() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 10);
    puppet.writes(memory + 8 * page_bytes(), 1);
    let mut watch = Watch::of(&puppet, memory, 10, Evidence::empty());
    let second = memory + 2 * page_bytes();
    puppet.writes(second, 3);
    assert_eq!(watch.changes(), [page_change(Came, second, 3, Untouched, Present)]);
    assert_eq!(watch.changes(), []);
    puppet.advises(second + page_bytes(), 1, MADV_DONTNEED).expect("to drop a page");
    assert_eq!(watch.changes(), [page_change(Went, second + page_bytes(), 1, Present, Untouched)]);
}

fn copies_are_made() {
    let mut puppet = Puppet::start();
    let file = puppet.maps("program", 2);
    puppet.reads(file, 2);
    let mut watch = Watch::of(&puppet, file, 2, Evidence::empty());
    puppet.writes(file + page_bytes(), 1);
    let copied = page_change(CopiedOnWrite, file + page_bytes(), 1, Present, Present);
    assert_eq!(watch.changes(), [copied]);
    // The scan shows the zero page without any rights.
    if support::shows_frames() || support::has_scan() {
        let zeros = puppet.maps("anonymous", 3);
        puppet.reads(zeros, 3);
        let mut watch = Watch::of(&puppet, zeros, 3, Evidence::empty());
        puppet.writes(zeros + page_bytes(), 1);
        assert_eq!(watch.changes(), [page_change(CopiedOnWrite, zeros + page_bytes(), 1, Present, Present)]);
        assert_eq!(watch.changes(), []);
    }
    if !support::shows_frames() {
        return skip("watch::copies_are_made", "copies of anonymous pages show by their frames alone");
    }
    // The zero page, and what a forked child still has.
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 1);
    puppet.reads(memory + page_bytes(), 1);
    puppet.does("fork", &[memory, 0]);
    let mut watch = Watch::of(&puppet, memory, 2, Evidence::empty());
    puppet.writes(memory, 2);
    assert_eq!(watch.changes(), [page_change(CopiedOnWrite, memory, 2, Present, Present)]);
}

fn pages_move() {
    const NAME: &str = "watch::pages_move";
    if !support::shows_frames() {
        return skip(NAME, "frames are hidden");
    }
    // Dropped and written again between two looks: another frame, most likely; so many that one is.
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 64);
    puppet.writes(memory, 64);
    let mut watch = Watch::of(&puppet, memory, 64, Evidence::empty());
    let elsewhere = puppet.maps("anonymous", 64);
    puppet.advises(memory, 64, MADV_DONTNEED).expect("to drop the pages");
    puppet.writes(elsewhere, 64);
    puppet.writes(memory, 64);
    let changes = watch.changes();
    assert!(!changes.is_empty());
    for (kind, _, _, before, after) in changes {
        assert_eq!((kind, before, after), (Moved, Some(Present), Some(Present)));
    }
}

fn to_swap_and_back() {
    const NAME: &str = "watch::to_swap_and_back";
    let _swap = match super::system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 4);
    let mut watch = Watch::of(&puppet, memory, 4, Evidence::empty());
    if !puppet.pages_out(memory, 2) || detail(&watch.target, memory).page.state() != State::Swapped {
        return skip(NAME, "the kernel kept the page");
    }
    assert_eq!(watch.changes(), [page_change(SwappedOut, memory, 2, Present, State::Swapped)]);
    puppet.reads(memory, 2);
    assert_eq!(watch.changes(), [page_change(SwappedIn, memory, 2, State::Swapped, Present)]);
}

fn split_and_collapsed() {
    const NAME: &str = "watch::split_and_collapsed";
    let (mut puppet, memory, pages) = match Puppet::with_huge_page() {
        Ok(made) => made,
        Err(reason) => return skip(NAME, reason),
    };
    let mut watch = Watch::of(&puppet, memory, pages, Evidence::empty());
    // Other permissions for a part, and back again: the entries are the same, but there are 512 of them now.
    for rights in [1, 3] {
        puppet.does("protect", &[memory + 3 * page_bytes(), page_bytes(), rights]);
    }
    assert_eq!(watch.changes(), [page_change(Split, memory, pages, Present, Present)]);
    if let Err(error) = puppet.collapses(memory, pages) {
        return skip(NAME, &format!("MADV_COLLAPSE: error {error}"));
    }
    assert_eq!(watch.changes(), [page_change(Collapsed, memory, pages, Present, Present)]);
    puppet.advises(memory, 1, MADV_DONTNEED).expect("to drop a page");
    assert_eq!(
        watch.changes(),
        [
            page_change(Went, memory, 1, Present, Untouched),
            page_change(Split, memory + page_bytes(), pages - 1, Present, Present)
        ]
    );
    puppet.writes(memory, 1);
    assert_eq!(watch.changes(), [page_change(Came, memory, 1, Untouched, Present)]);
    if let Err(error) = puppet.collapses(memory, pages) {
        return skip(NAME, &format!("MADV_COLLAPSE: error {error}"));
    }
    assert_eq!(watch.changes(), [page_change(Collapsed, memory, pages, Present, Present)]);
}

fn guards_come_and_go() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 2);
    let mut watch = Watch::of(&puppet, memory, 4, Evidence::empty());
    if let Err(error) = puppet.advises(memory + page_bytes(), 2, MADV_GUARD_INSTALL) {
        return skip("watch::guards_come_and_go", &format!("MADV_GUARD_INSTALL: error {error}"));
    }
    assert_eq!(
        watch.changes(),
        [
            page_change(GuardInstalled, memory + page_bytes(), 1, Present, State::Guard),
            page_change(GuardInstalled, memory + 2 * page_bytes(), 1, Untouched, State::Guard)
        ]
    );
    puppet.advises(memory + page_bytes(), 2, MADV_GUARD_REMOVE).expect("to remove it");
    assert_eq!(watch.changes(), [page_change(GuardRemoved, memory + page_bytes(), 2, State::Guard, Untouched)]);
}

fn map_counts_change() {
    if !support::is_root() {
        return skip("watch::map_counts_change", "map counts are for root");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 3);
    puppet.writes(memory, 3);
    let mut watch = Watch::of(&puppet, memory, 3, Evidence::COUNTS);
    let child = puppet.does("fork", &[memory, 0]);
    let (_, changes) = watch.look();
    let counts = |change: &Change| {
        let count = |facts: &Option<pmdb::report::PageFacts>| facts.as_ref().and_then(|facts| facts.map_count);
        (change.kind, change.pages, count(&change.before), count(&change.after))
    };
    let changes: Vec<_> = changes.iter().map(counts).collect();
    assert_eq!(changes, [(MapCountChanged, 3, Some(1), Some(2))]);
    puppet.does("kill", &[child]);
    let (_, changes) = watch.look();
    let changes: Vec<_> = changes.iter().map(counts).collect();
    assert_eq!(changes, [(MapCountChanged, 3, Some(2), Some(1))]);
}

fn flags_change() {
    if !support::is_root() {
        return skip("watch::flags_change", "page flags are for root");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let mut watch = Watch::of(&puppet, memory, 1, Evidence::FLAGS);
    puppet.does("lock", &[memory, page_bytes()]);
    let (_, changes) = watch.look();
    let change = changes.iter().find(|change| change.kind == FlagsChanged).expect("a change of flags");
    let flags = |facts: &Option<pmdb::report::PageFacts>| {
        let flags = facts.as_ref().and_then(|facts| facts.flags);
        flags.expect("its flags").0.contains(pmdb::kernel::PageFlags::MLOCKED)
    };
    assert_eq!((flags(&change.before), flags(&change.after)), (false, true));
}

fn soft_dirty_changes() {
    const NAME: &str = "watch::soft_dirty_changes";
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 2);
    let target = puppet.0.attach();
    if target.machine.has_soft_dirty() != Some(true) {
        return skip(NAME, "this kernel does not track soft-dirty pages");
    }
    let cleared = std::fs::write(format!("/proc/{}/clear_refs", puppet.0.pid()), "4");
    cleared.expect("to clear its soft-dirty bits");
    let mut watch = Watch::of(&puppet, memory, 2, Evidence::SOFT_DIRTY);
    puppet.writes(memory + page_bytes(), 1);
    assert_eq!(watch.changes(), [page_change(SoftDirty, memory + page_bytes(), 1, Present, Present)]);
}

fn regions_change() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("shared", 16);
    let size = page_bytes();
    puppet.unmaps(memory + 8 * size, 8);
    let mut watch = Watch::of(&puppet, memory, 16, Evidence::empty());
    let change = |kind, address| (kind, address, 0, None, None);
    puppet.unmaps(memory + 6 * size, 2);
    assert_eq!(watch.changes(), [change(RegionShrank, memory + 6 * size)]);
    puppet.does("grow", &[memory, 6 * size, 7 * size]);
    assert_eq!(watch.changes(), [change(RegionGrew, memory + 6 * size)]);
    puppet.does("protect", &[memory + size, size, 1]);
    let (_, changes) = watch.look();
    assert_eq!(changes.iter().map(brief).collect::<Vec<_>>(), [change(RegionChanged, memory + size)]);
    let rights = |region: &Option<pmdb::kernel::Region>| region.as_ref().map(|region| region.permissions.write);
    assert_eq!((rights(&changes[0].region), rights(&changes[0].region_after)), (Some(true), Some(false)));
    puppet.unmaps(memory, 16);
    let kinds: Vec<EventKind> = watch.changes().iter().map(|change| change.0).collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|&kind| kind == RegionWent), "{kinds:?}");
    // Somewhere else: what appears is seen when everything is watched.
    let mut watch = Watch::of(&puppet, memory, 1, Evidence::empty());
    watch.span = None;
    watch.changes();
    let new = puppet.maps("memfd", 2);
    puppet.writes(new, 1);
    let (_, changes) = watch.look();
    let appeared = changes.iter().any(|one| one.kind == RegionAppeared && one.address == Some(at(new)));
    let came = changes.iter().any(|one| one.kind == Came && one.address == Some(at(new)));
    assert!(appeared && came, "{changes:?}");
}

fn another_program() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 2);
    let mut watch = Watch::of(&puppet, memory, 2, Evidence::empty());
    watch.span = None;
    puppet.0.send("exec");
    assert_eq!(puppet.0.line(), "ready");
    let (_, changes) = watch.look();
    assert_eq!(changes.iter().map(brief).collect::<Vec<_>>(), [(Executed, 0, 0, None, None)]);
    // All that the old program had went, and what the new one has came.
    let effect = changes[0].effect;
    assert!(effect.went >= 2 * page_bytes() && effect.came > 0, "{effect:?}");
    // It is sampled anew.
    let space = AddressSpace::of(&watch.target).expect("a space");
    assert!(space.viewed_region(at(memory)).is_none());
    assert_eq!(watch.look().0, Survival::Alive);
}

/// As long as there is a child with the same memory, and not before.
fn copies_that_a_child_makes_are_said_not_to_show() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 4);
    let pid = puppet.0.pid();
    let is_said = |clause: &str| {
        let line = format!("watch {memory:#x}, +4p every 1ms for 2ms{clause}");
        program(&[], pid, true, &[line]).contains("if another process copies a page")
    };
    assert!(!is_said(""));
    puppet.does("fork", &[memory, 0]);
    // Without frames it is said that few copies show at all.
    assert_eq!(is_said(""), support::shows_frames());
    if support::shows_frames() {
        assert!(!is_said(" with mapcount"));
    }
}

fn the_end() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let mut watch = Watch::of(&puppet, memory, 1, Evidence::empty());
    puppet.0.send("exit");
    puppet.0.end();
    let (look, changes) = watch.look();
    assert_eq!(look, Survival::Exited);
    assert_eq!(changes.iter().map(brief).collect::<Vec<_>>(), [(Exited, 0, 0, None, None)]);
    assert_eq!((changes[0].effect.went, changes[0].effect.came), (page_bytes(), 0));
}

fn many_pages_change_alike() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 50_000);
    puppet.writes(memory + 10 * page_bytes(), 5);
    let mut watch = Watch::of(&puppet, memory, 50_000, Evidence::empty());
    puppet.writes(memory, 50_000);
    let rest = memory + 15 * page_bytes();
    assert_eq!(
        watch.changes(),
        [page_change(Came, memory, 10, Untouched, Present), page_change(Came, rest, 50_000 - 15, Untouched, Present)]
    );
}

fn what_cannot_be_seen_is_said() {
    let puppet = Puppet::start();
    let target = puppet.0.attach();
    let space = AddressSpace::of(&target).expect("a space");
    let all = Evidence::FLAGS | Evidence::COUNTS | Evidence::SOFT_DIRTY;
    let blind: Vec<EventKind> = Watcher::unobservable(&space, &space.spans(), all).iter().map(|one| one.0).collect();
    assert_eq!(blind.contains(&Moved), !support::shows_frames());
    assert_eq!(blind.contains(&CopiedOnWrite), !support::shows_frames());
    assert_eq!(blind.contains(&SoftDirty), target.machine.has_soft_dirty() != Some(true));
    if support::is_root() {
        assert!(!blind.contains(&FlagsChanged) && !blind.contains(&MapCountChanged));
    } else {
        assert!(blind.contains(&FlagsChanged) && blind.contains(&MapCountChanged));
    }
}
