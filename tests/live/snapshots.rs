//! Snapshots of a real process, compared with what the process did between them, and with the page maps of both
//! processes.

use super::Test;
use super::answers::large::huge_page;
use super::answers::program;
use super::puppet::Puppet;
use super::support::{self, page_bytes, skip};
use super::target::Target as TestProcess;
use pmdb::budget::Budget;
use pmdb::command::Assert;
use pmdb::command::LANGUAGE;
use pmdb::eval::{self, Keep, NamedSnapshot, Origin, Spans};
use pmdb::inspect::{AddressSpace, Change, Evidence, PageRelation, Snapshot};
use pmdb::kernel::AddressRange;
use pmdb::lang::ParsedLine;
use pmdb::process::{Categories, Target};
use pmdb::report::EventKind;
use pmdb::state::DebugState;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::unix::fs::FileExt;

pub const TESTS: &[Test] = &[
    ("snapshots::what_a_process_did", what_a_process_did),
    ("snapshots::pages_as_values", pages_as_values),
    ("snapshots::guards_are_not_swapped", guards_are_not_swapped),
    ("snapshots::a_part_of_a_range", a_part_of_a_range),
    ("snapshots::beside_a_child", beside_a_child),
    ("snapshots::a_huge_page_beside_a_child", a_huge_page_beside_a_child),
    ("snapshots::frames_that_both_map_in_other_ways", frames_that_both_map_in_other_ways),
    ("snapshots::pages_of_zeros_are_nobodys", pages_of_zeros_are_nobodys),
    ("snapshots::a_page_takes_few_bytes", a_page_takes_few_bytes),
    ("snapshots::of_another_program", of_another_program),
];

const MADV_DONTNEED: i32 = 4;

fn snapshot(target: &Target, spans: Option<AddressRange>, contents: bool) -> Snapshot {
    let space = AddressSpace::of(target).expect("a space");
    let spans = spans.map_or_else(|| space.spans(), |span| vec![span]);
    Snapshot::begin(&space, spans, Evidence::empty(), contents).finish().expect("a snapshot")
}

fn changes(
    target: &Target,
    before: &Snapshot,
    after: &Snapshot,
    within: Option<&[AddressRange]>,
) -> Vec<(EventKind, u64, u64)> {
    let space = AddressSpace::of(target).expect("a space");
    let brief = |change: Change| (change.kind, change.address.map_or(0, |address| address.get()), change.pages);
    let mut changes: Vec<_> = before.changes(after, within, &space, &mut Budget::unlimited()).map(brief).collect();
    changes.sort_by_key(|(_, address, _)| *address);
    changes
}

fn what_a_process_did() {
    use EventKind::*;
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let memory = puppet.maps("anonymous", 40);
    puppet.writes(memory, 20);
    let child = puppet.does("fork", &[memory, 0]);
    // Exclusive to the process, and so written in place.
    puppet.writes(memory + 20 * page, 5);
    let target = puppet.0.attach();
    let span = support::range(memory, 40 * page);
    let before = snapshot(&target, Some(span), true);
    assert_eq!(changes(&target, &before, &snapshot(&target, Some(span), true), None), []);
    puppet.writes(memory, 3);
    assert_eq!(puppet.advises(memory + 10 * page, 4, MADV_DONTNEED), Ok(()));
    puppet.writes(memory + 21 * page, 2);
    puppet.writes(memory + 30 * page, 6);
    let after = snapshot(&target, Some(span), true);
    let mut expected = vec![
        (CopiedOnWrite, memory, 3),
        (Went, memory + 10 * page, 4),
        (Written, memory + 21 * page, 2),
        (Came, memory + 30 * page, 6),
    ];
    if !support::shows_frames() {
        // Without frames a copy of anonymous memory shows by its contents alone.
        expected[0].0 = Written;
    }
    assert_eq!(changes(&target, &before, &after, None), expected);
    // The other way round: what came has gone.
    let back = changes(&target, &after, &before, None);
    assert!(back.contains(&(Went, memory + 30 * page, 6)), "{back:?}");
    assert!(back.contains(&(Came, memory + 10 * page, 4)), "{back:?}");
    puppet.does("kill", &[child]);
}

/// The values of `changed(A, now)` and its like.
pub fn value(state: &DebugState, text: &str) -> Result<u64, String> {
    let Ok(ParsedLine::Command { command, .. }) = LANGUAGE.parse_line(&format!("assert {text}")) else {
        panic!("{text} is no expression");
    };
    let Some(Assert { condition, .. }) = command.node.downcast_ref() else {
        panic!("{text} is no condition");
    };
    let value = eval::integer(condition, state).map_err(|error| error.message)?;
    Ok(value.to_u64().expect("a number of pages"))
}

fn pages_as_values() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let memory = puppet.maps("anonymous", 40);
    puppet.writes(memory, 20);
    let child = puppet.does("fork", &[memory, 0]);
    let target = puppet.0.attach();
    let mut state = DebugState::new(target.machine.clone());
    let spans = Spans::one(support::range(memory, 40 * page), Origin::Written);
    let taken = |name: &str, contents| {
        let (name, spans) = (name.to_owned(), Some(spans.clone()));
        let keep = Keep { contents, ..Keep::default() };
        NamedSnapshot::begin(name, &target, &state.symbols, spans, keep).and_then(|open| open.finish())
    };
    let (before, bare) = (taken("before", true), taken("bare", false));
    state.snapshots.add(before.expect("a snapshot"));
    state.snapshots.add(bare.expect("a snapshot"));
    state.attach(puppet.0.attach());
    puppet.writes(memory, 3);
    assert_eq!(puppet.advises(memory + 10 * page, 4, MADV_DONTNEED), Ok(()));
    puppet.writes(memory + 30 * page, 6);
    let value = |text: &str| value(&state, text);
    assert_eq!(value("came(before, now)"), Ok(6));
    assert_eq!(value("went(before, now)"), Ok(4));
    assert_eq!(value("came(before, bare)"), Ok(0));
    let half = format!("{:#x},+{:#x}", memory, 12 * page);
    assert_eq!(value(&format!("went(before, now in {half})")), Ok(2));
    let last = memory + 34 * page;
    let some = format!("came(before, now where address >= {last:#x})");
    assert_eq!(value(&some), Ok(2));
    assert_eq!(value("went(before, now where present)"), Ok(0));
    assert_eq!(value("went(before, now where not present)"), Ok(4));
    let without = value("written(bare, now)").expect_err("it has no contents");
    assert!(without.contains("`bare` has none"), "{without}");
    // Pages stayed where they were: without their contents, a write to them does not show.
    let unseen = value("changed(bare, now)").expect_err("writes in place do not show");
    if support::shows_frames() && target.process.categories().contains(Categories::HUGE) {
        assert!(unseen.contains("writes in place do not show"), "{unseen}");
    }
    // Of memory that came or went whole, all is known.
    let went = format!("changed(bare, now in {:#x},+{:#x})", memory + 10 * page, 4 * page);
    if support::shows_frames() && target.process.categories().contains(Categories::HUGE) {
        assert_eq!(value(&went), Ok(4));
    }
    if support::shows_frames() {
        assert_eq!(value("copied(before, now)"), Ok(3));
        assert_eq!(value("moved(before, now)"), Ok(0));
        // A copy on write has been written to.
        assert_eq!(value("written(before, now)"), Ok(0));
        if target.process.categories().contains(Categories::HUGE) {
            assert_eq!(value("changed(before, now)"), Ok(13))
        } else {
            _ = value("changed(before, now)").expect_err("splits do not show")
        }
    } else {
        for text in ["copied(before, now)", "moved(before, now)", "changed(before, now)"] {
            let why = value(text).expect_err("frames are hidden");
            assert!(why.contains("is unknown"), "{why}");
        }
        assert_eq!(value("written(before, now)"), Ok(3));
    }
    puppet.does("kill", &[child]);
}

/// Markers have the bit of swapped pages, but have nothing in swap.
fn guards_are_not_swapped() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 4);
    puppet.writes(memory, 2);
    if puppet.advises(memory, 1, super::states::MADV_GUARD_INSTALL).is_err() {
        return skip("snapshots::guards_are_not_swapped", "this kernel has no guard pages");
    }
    let target = puppet.0.attach();
    let taken = snapshot(&target, None, false);
    let range = support::range(memory, 4 * page_bytes());
    assert_eq!(taken.populated_in(range), 1);
}

fn a_part_of_a_range() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let memory = puppet.maps("anonymous", 20);
    let target = puppet.0.attach();
    let before = snapshot(&target, None, false);
    puppet.writes(memory, 20);
    let added = puppet.maps("anonymous", 7);
    puppet.writes(added, 7);
    let after = snapshot(&target, None, false);
    let parts = [support::range(memory + 2 * page, 3 * page), support::range(memory + 10 * page, page)];
    assert_eq!(
        changes(&target, &before, &after, Some(&parts)),
        [(EventKind::Came, memory + 2 * page, 3), (EventKind::Came, memory + 10 * page, 1)]
    );
    let all = changes(&target, &before, &after, None);
    let region = |&(kind, ..): &(EventKind, u64, u64)| !kind.is_of_pages();
    assert!(all.iter().any(region), "{all:?}");
    let came: u64 = all
        .iter()
        .filter(|(kind, at, _)| *kind == EventKind::Came && (*at >= added && *at < added + 7 * page))
        .map(|(_, _, pages)| pages)
        .sum();
    assert!(came >= 7, "{all:?}");
    // Pages that go with a region count if they are in the range.
    puppet.unmaps(added, 7);
    let last = snapshot(&target, None, false);
    for (asked, pages) in [(support::range(added, 7 * page), 7), (support::range(added + page, 2 * page), 2)] {
        let gone = changes(&target, &after, &last, Some(&[asked]));
        let gone: u64 = gone.iter().filter(|(kind, ..)| !kind.is_of_pages()).map(|(.., pages)| pages).sum();
        assert_eq!(gone, pages);
    }
}

/// The frames of pages, read by hand.
fn frames(pid: u64, start: u64, pages: u64) -> Vec<u64> {
    let file = std::fs::File::open(format!("/proc/{pid}/pagemap")).expect("its page map");
    let mut bytes = vec![0; (8 * pages) as usize];
    file.read_exact_at(&mut bytes, start / page_bytes() * 8).expect("its entries");
    let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
    words.map(|word| if word >> 63 == 1 { word & ((1 << 55) - 1) } else { 0 }).collect()
}

/// The kernel calls the inner pages of a huge mapping exclusive though a child maps them too: a write to one copies it.
/// The frames of a file that one maps shared and the other privately, which is no counterpart.
fn frames_that_both_map_in_other_ways() {
    const NAME: &str = "snapshots::frames_that_both_map_in_other_ways";
    if !support::shows_frames() {
        return skip(NAME, "frame numbers are hidden");
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&vec![3; 8 * page_bytes() as usize]).expect("its contents");
    let path = file.path().to_str().expect("a path").to_owned();
    let mut one = TestProcess::start("maps-file", &[&path, "0", "8"]);
    let mut other = TestProcess::start("maps-file", &[&path, "2", "6", "privately"]);
    let (mine, theirs) = (one.numbers()[0], other.numbers()[0]);
    assert_eq!(frames(one.pid().into(), mine, 8)[2..], frames(other.pid().into(), theirs, 6));
    let told = program(&[], one.pid(), true, &[format!("compare {}", other.pid())]);
    let rows = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
    let rows: Vec<_> = rows.filter(|row| row["type"] == "comparison").collect();
    let at = |start: u64| rows.iter().find(|row| row["start"] == format!("{start:#x}"));
    let row = at(mine).unwrap_or_else(|| panic!("{told}"));
    for (field, pages) in [("shared", 6), ("shared_elsewhere", 6), ("only_here", 2), ("only_there", 0)] {
        assert_eq!(row[field], pages, "{field}: {row}");
    }
    assert!(at(theirs).is_none(), "{told}");
}

/// Two processes that have only read the same addresses share nothing, and a write copies nothing.
fn pages_of_zeros_are_nobodys() {
    const NAME: &str = "snapshots::pages_of_zeros_are_nobodys";
    if !support::shows_frames() {
        return skip(NAME, "frame numbers are hidden");
    }
    if !support::has_scan() {
        return skip(NAME, "no PAGEMAP_SCAN");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 16);
    puppet.reads(memory, 12);
    puppet.writes(memory, 4);
    let child = puppet.does("fork", &[memory, 0]);
    let range = format!("{memory:#x}, +16p");
    let told = program(&[], puppet.0.pid(), true, &[format!("compare {child} in {range}")]);
    let rows = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
    let summary = rows.into_iter().find(|row| row["type"] == "comparison-summary").expect("totals");
    for (field, pages) in [("shared", 4), ("about_to_copy", 4), ("only_here", 0), ("only_there", 0)] {
        assert_eq!(summary[field], pages, "{field}: {summary}");
    }
}

fn a_huge_page_beside_a_child() {
    const NAME: &str = "snapshots::a_huge_page_beside_a_child";
    if !support::shows_frames() {
        return skip(NAME, "frame numbers are hidden");
    }
    if !support::has_scan() {
        return skip(NAME, "no PAGEMAP_SCAN");
    }
    let mut puppet = Puppet::start();
    let (memory, pages) = match huge_page(&mut puppet) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    // The child copies the first page.
    let child = puppet.does("fork", &[memory, 1]);
    let (here, there) = (puppet.0.attach(), pmdb::process::Target::attach(child as u32).expect("the child"));
    let span = support::range(memory, pages * page_bytes());
    let (one, other) = (snapshot(&here, Some(span), false), snapshot(&there, None, false));
    let mut about_to_copy = 0;
    for row in one.compare(span, &other, Some(span.start())) {
        if row.relation == PageRelation::Shared && row.copied_by_next_write {
            about_to_copy += row.pages;
        }
    }
    assert_eq!(about_to_copy, pages - 1);
    let before = frames(u64::from(puppet.0.pid()), memory, pages);
    puppet.writes(memory + page_bytes(), pages - 1);
    let after = frames(u64::from(puppet.0.pid()), memory, pages);
    let copied = before.iter().zip(&after).skip(1).filter(|(a, b)| a != b);
    assert_eq!(copied.count() as u64, pages - 1, "each write copied");
}

fn beside_a_child() {
    const NAME: &str = "snapshots::beside_a_child";
    if !support::shows_frames() {
        return skip(NAME, "frame numbers are hidden");
    }
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let memory = puppet.maps("anonymous", 60);
    puppet.writes(memory, 50);
    // The child copies the first 20, and has ten more of its own. The parent writes these ten too, except three.
    let child = puppet.does("fork", &[memory, 20]);
    puppet.writes(memory + 50 * page, 4);
    let (here, there) = (puppet.0.attach(), pmdb::process::Target::attach(child as u32).expect("the child"));
    let span = support::range(memory, 60 * page);
    let (one, other) = (snapshot(&here, Some(span), false), snapshot(&there, None, false));
    let mut sums = [0; 5];
    let mut about_to_copy = 0;
    for row in one.compare(span, &other, Some(span.start())) {
        sums[row.relation as usize] += row.pages;
        if row.relation == PageRelation::Shared && row.copied_by_next_write {
            about_to_copy += row.pages;
        }
    }
    let mine = frames(u64::from(puppet.0.pid()), memory, 60);
    let theirs = frames(child, memory, 60);
    let count =
        |wanted: &dyn Fn(u64, u64) -> bool| mine.iter().zip(&theirs).filter(|(a, b)| wanted(**a, **b)).count() as u64;
    let read = [
        count(&|a, b| a != 0 && a == b),
        count(&|a, b| a != 0 && b != 0 && a != b),
        count(&|a, b| a != 0 && b == 0),
        count(&|a, b| a == 0 && b != 0),
        0,
    ];
    assert_eq!(sums, read);
    assert_eq!(sums, [30, 20, 4, 0, 0]);
    assert_eq!(about_to_copy, 30);
    // A zombie has no memory to compare.
    let gone = puppet.does("fork", &[memory, 0]);
    let number = Pid::from_raw(gone as i32).expect("its number");
    kill_process(number, Signal::KILL).expect("to end it");
    let is_zombie = || {
        let stat = std::fs::read_to_string(format!("/proc/{gone}/stat")).expect("it is not waited for");
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    };
    while !is_zombie() {
        std::thread::yield_now();
    }
    let lines = ["compare children".to_owned()];
    let said = program(&[], puppet.0.pid(), true, &lines);
    let records = said.lines().map(|line| serde_json::from_str(line).expect("an object"));
    let others: Vec<serde_json::Value> = records
        .filter(|record: &serde_json::Value| record["type"] == "comparison-summary")
        .map(|record| record["other"].clone())
        .collect();
    assert_eq!(others, [child]);
    puppet.does("kill", &[child]);
}

fn a_page_takes_few_bytes() {
    let mut puppet = Puppet::start();
    let pages = 16 << 10;
    let memory = puppet.maps("anonymous", pages);
    puppet.writes(memory, pages);
    let target = puppet.0.attach();
    let span = Some(support::range(memory, pages * page_bytes()));
    let most = |each: u64| each * pages + (16 << 10);
    let plain = snapshot(&target, span, false);
    assert_eq!((plain.present(), plain.swapped()), (pages, 0));
    assert!(plain.size() as u64 <= most(8), "{}", plain.size());
    let whole = snapshot(&target, span, true);
    assert!(whole.has_contents());
    assert_eq!((whole.present(), whole.unread()), (pages, 0));
    assert!(whole.size() as u64 <= most(16), "{}", whole.size());
}

/// A snapshot from before an exec is of another address space, also for a pmdb that attached again since.
fn of_another_program() {
    let mut puppet = Puppet::start();
    let target = puppet.0.attach();
    let mut state = DebugState::new(target.machine.clone());
    let taken = |name: &str, target: &Target, state: &DebugState| {
        NamedSnapshot::begin(name.to_owned(), target, &state.symbols, None, Keep::default())
            .and_then(|open| open.finish())
            .expect("a snapshot")
    };
    state.snapshots.add(taken("before", &target, &state));
    let refusal = |name: &str, target: &Target, state: &DebugState| {
        let snapshot = state.snapshots.by_name(name).expect("the snapshot");
        snapshot.refuse_other(target).err().map(|refusal| refusal.message)
    };
    assert_eq!(refusal("before", &target, &state), None);
    puppet.0.send("exec");
    assert_eq!(puppet.0.line(), "ready");
    for target in [target, puppet.0.attach()] {
        target.process.liveness().expect("to look");
        state.snapshots.add(taken("after", &target, &state));
        let why = refusal("before", &target, &state).expect("a refusal");
        assert!(why.contains("executed another one since"), "{why}");
        assert_eq!(refusal("after", &target, &state), None);
        state.attach(target);
        let why = value(&state, "came(before, now)").expect_err("it is of another program");
        assert!(why.contains("executed another one since"), "{why}");
        let why = value(&state, "came(before, after)").expect_err("it is of another program");
        assert!(why.contains("executed another one since"), "{why}");
        assert!(value(&state, "came(after, now)").is_ok());
    }
    // The process has executed nothing when it exits.
    puppet.0.end();
    for asked in ["came(after, now)", "came(after, after)"] {
        let why = value(&state, asked).expect_err("nothing is left");
        assert!(why.contains("has exited") && !why.contains("executed"), "{why}");
    }
}
