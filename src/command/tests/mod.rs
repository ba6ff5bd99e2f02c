//! What commands do on a machine made of tables.

mod blocks;
mod classes;
mod completion;
mod expectation;
mod fields;
mod functions;
mod habits;
mod hints;
mod interrupts;
mod language;
mod memory;
mod names;
mod objects;
mod pins;
pub(super) mod records;
mod snapshots;
mod table;
mod unknown_facts;

use super::floor::{Error, Resume};
use super::{LANGUAGE, run};
use crate::budget::Budget;
use crate::command::line::LineReport;
use crate::command::modules::ModuleReport;
use crate::command::regions::RegionsSummary;
use crate::command::summary::SummaryRow;
use crate::kernel::{Device, PageFlags, Region, State};
use crate::lang::ParsedLine;
use crate::process::Target;
use crate::process::fake::{World, region};
use crate::render::{Record, Renderer, Sink, Text, Theme};
use crate::report::{Note, PageGroup, PagesRow, RegionReport, Stopped, Translation, WalkSummary};
use crate::state::DebugState;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Keeps what it is given, and says to stop at one of the records, once.
struct Kept {
    records: Vec<Box<dyn Record>>,
    stop_at: usize,
}

impl Sink for Kept {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.records.push(record.boxed());
        if self.records.len() == self.stop_at { Err(Stopped::Interrupted) } else { Ok(()) }
    }
    fn check(&mut self) -> Result<(), Stopped> {
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
        Ok(())
    }
}

/// A fault of pmdb, with a text of the target in it.
struct Faulty;

impl Sink for Faulty {
    fn emit(&mut self, _: &dyn Record) -> Result<(), Stopped> {
        panic!("a name: \u{1b}[31m")
    }
    fn check(&mut self) -> Result<(), Stopped> {
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
        Ok(())
    }
}

#[test]
fn a_panic_ends_its_command_alone() {
    let mut state = attached(World::new([region(0x1000, 20)]).target().1);
    let error = run_line(&mut state, "regions", None, &mut Faulty).expect_err("a fault");
    assert_eq!(error.message(), "pmdb has a fault, and the command has no answer: a name: \\x1b[31m");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("report it")), "{error:?}");
    let mut sink = Kept { records: Vec::new(), stop_at: 0 };
    run_line(&mut state, "regions", None, &mut sink).expect("the next command has an answer");
    assert!(!sink.records.is_empty());
}

/// The state of a session that is attached to `target`.
fn attached(target: Target) -> DebugState {
    let mut state = DebugState::new(target.machine.clone());
    state.attach(target);
    state
}

/// Runs a line that is one command.
fn run_line(state: &mut DebugState, line: &str, resume: Option<Resume>, sink: &mut dyn Sink) -> super::floor::Outcome {
    let Ok(ParsedLine::Command { command, .. }) = LANGUAGE.parse_line(line) else {
        panic!("no command: {line}");
    };
    run(&*command.node, state, sink, resume)
}

/// The records of a command on `target`, which is stopped at one of them, and how it ended.
fn outcome(line: &str, target: Target, stop_at: usize) -> (Vec<Box<dyn Record>>, super::floor::Outcome) {
    let mut sink = Kept { records: Vec::new(), stop_at };
    let outcome = run_line(&mut attached(target), line, None, &mut sink);
    (sink.records, outcome)
}

/// The records of a command on twenty pages, each in a frame away from its neighbours'.
fn interrupted(line: &str, stop_at: usize) -> Vec<Box<dyn Record>> {
    let mut world = World::new([region(0x1000, 20)]);
    for page in 0..20 {
        world.maps(0x1000 + page, 1, 0x9000 + 2 * page);
    }
    let (_, target) = world.target();
    let (records, outcome) = outcome(line, target, stop_at);
    assert!(matches!(outcome, Err(Error::Stopped(Stopped::Interrupted))), "{line}: {outcome:?}");
    records
}

#[test]
fn an_address_in_no_region_comes_with_its_neighbours() {
    for line in ["region 0x1800000", "watch 0x1800000 for 1ms"] {
        let (_, target) = World::new([region(0x1000, 1), region(0x2000, 1)]).target();
        let (_, outcome) = outcome(line, target, usize::MAX);
        let Err(Error::Unmapped { nearest, .. }) = outcome else {
            panic!("{line}: there is no region");
        };
        let starts: Vec<u64> = nearest.iter().map(|near| near.start.get()).collect();
        assert_eq!(starts, [0x1000 << 12, 0x2000 << 12]);
    }
}

#[test]
fn a_number_is_not_watched_as_if_it_were_an_address() {
    for (line, hint) in [
        ("watch 5 for 1ms", "expected memory, as in `watch [heap]`"),
        ("watch 3 + 4 for 1ms", "to wait until a value changes: `watch ADDRESS until 3 + 4 != 7`"),
    ] {
        let (_, target) = World::new([region(0x1000, 1)]).target();
        let (_, outcome) = outcome(line, target, usize::MAX);
        let Err(Error::Evaluation(error)) = outcome else {
            panic!("{line}: no page is there");
        };
        assert_eq!(error.hint.as_deref(), Some(hint), "{line}");
    }
}

#[test]
fn where_the_page_map_has_no_entry_its_bits_are_not_known() {
    for (line, known) in [("translate 0x1000000", true), ("translate 0xffff888000000000", false)] {
        let records = records(line, World::new([region(0x1000, 1)]).target().1);
        let page: &Translation = first(&records);
        for (field, value) in
            [("pfn_hidden", &page.pfn_hidden), ("uffd_wp", &page.uffd_wp), ("file_mapped", &page.file_mapped)]
        {
            assert_eq!(value.as_ref().ok(), known.then_some(&false), "{line} {field}");
        }
    }
}

/// The records of a command on `target`.
fn records(line: &str, target: Target) -> Vec<Box<dyn Record>> {
    let (records, outcome) = outcome(line, target, usize::MAX);
    outcome.unwrap_or_else(|error| panic!("{line}: {error:?}"));
    records
}

/// Cells are of whole pages, also of a range that ends within one.
#[test]
fn a_map_of_a_part_of_a_page_has_whole_pages() {
    for (line, pages) in [("map 0x1000010, +16", 1), ("map 0x1000008, +8192", 3)] {
        let records = records(line, World::new([region(0x1000, 4)]).target().1);
        let drawn: &super::map::MapRegion = first(&records);
        assert_eq!((drawn.start.get(), drawn.end.get()), (0x1000 << 12, (0x1000 + pages) << 12), "{line}");
        assert_eq!((drawn.pages, drawn.cell_pages), (pages, 1), "{line}");
    }
}

/// A page that is there, three whose entries are hidden and may be in swap, and one of which it is certain that it is
/// in none.
fn hidden_entries() -> Target {
    const GUARD: u64 = 1 << 62 | 1 << 58;
    let mut world = World::new([region(0x1000, 10), region(0x2000, 2)]);
    world.swaps = true;
    world.maps(0x1000, 1, 0x9000);
    for page in [0x1002, 0x1003, 0x1005] {
        world.entries.insert(page, 1 << 62);
    }
    world.entries.insert(0x1006, GUARD);
    world.target().1
}

/// The records of one type.
fn all<T: Record>(records: &[Box<dyn Record>]) -> impl Iterator<Item = &T> {
    records.iter().filter_map(|record| record.downcast_ref())
}

/// The first record, which is of this type.
#[track_caller]
fn first<T: Record>(records: &[Box<dyn Record>]) -> &T {
    let first = records.first().and_then(|record| record.downcast_ref());
    first.unwrap_or_else(|| panic!("{records:?}"))
}

/// The last record, which is of this type.
#[track_caller]
fn last<T: Record>(records: &[Box<dyn Record>]) -> &T {
    let last = records.last().and_then(|record| record.downcast_ref());
    last.unwrap_or_else(|| panic!("{records:?}"))
}

/// The only record, which is of this type.
#[track_caller]
fn only<T: Record>(records: &[Box<dyn Record>]) -> &T {
    assert_eq!(records.len(), 1, "{records:?}");
    first(records)
}

fn notes(records: &[Box<dyn Record>]) -> Vec<&str> {
    all(records).map(|note: &Note| note.message.as_str()).collect()
}

#[test]
fn pages_that_no_filter_can_decide_on_are_left_out_and_counted() {
    for (line, pages, left_out) in [
        ("walk all where swapped", 0, Some("left out: 3 pages ")),
        ("walk all where swapped by state", 0, Some("left out: 3 pages ")),
        ("walk all where not swapped", 9, Some("left out: 3 pages ")),
        ("walk all where not present", 11, None),
        ("walk all where guard", 1, None),
        ("walk all", 12, None),
        ("walk all by kind", 12, None),
    ] {
        let records = records(line, hidden_entries());
        let summary: &WalkSummary = last(&records);
        assert_eq!(summary.pages, pages, "{line}");
        let notes = notes(&records);
        let said = notes.iter().find(|note| note.starts_with("left out"));
        match left_out {
            Some(text) => assert!(said.is_some_and(|note| note.starts_with(text)), "{line}: {notes:?}"),
            None => assert_eq!(said, None, "{line}"),
        }
        // What is shown and no more than likely is said to be that once, in rows or below them.
        let rows = all(&records).filter(|row: &&PagesRow| row.why.of("state").is_some());
        let said = rows.count() + notes.iter().filter(|note| note.starts_with("the states")).count();
        let shown = match line {
            "walk all" | "walk all where not present" => 2,
            "walk all by kind" => 1,
            _ => 0,
        };
        assert_eq!(said, shown, "{line}: {records:?}");
    }
}

#[test]
fn counts_of_uncertain_states_say_so() {
    let records = |line| self::records(line, hidden_entries());
    let mut groups = 0;
    for group in all::<PageGroup>(&records("walk all by state")) {
        assert_eq!(group.why.of("state").is_some(), group.key == "swapped", "{group:?}");
        groups += 1;
    }
    assert_eq!(groups, 4);
    for row in all::<SummaryRow>(&records("summary")) {
        let swapped = row.state == Some(State::Swapped);
        assert_eq!(row.why.of("state").is_some(), swapped, "{row:?}");
    }
    let rows = records("regions");
    let uncertain = all(&rows).map(|region: &RegionReport| region.why.of("swapped").is_some());
    assert_eq!(uncertain.collect::<Vec<_>>(), [true, false]);
    assert!(notes(&rows).iter().any(|note| note.starts_with("the swapped bytes are not certain")));
    let block = records("region 0x1000000");
    let one: &RegionReport = last(&block);
    assert!(one.why.of("swapped").is_some() && one.why.of("states").is_some());
    // Of the region that has such pages it cannot be known whether any is in swap.
    for line in ["regions where swapped > 0", "regions where swapped == 0"] {
        let records = records(line);
        assert_eq!(all::<RegionReport>(&records).count(), usize::from(line.contains("==")), "{line}");
        assert!(notes(&records).iter().any(|note| note.starts_with("left out: 1 region ")));
    }
}

#[test]
fn a_folio_that_changed_while_it_was_read_is_no_page_without_a_frame() {
    let mut world = World::new([region(0x1000, 2)]);
    world.maps(0x1000, 1, 0x9000);
    // A tail whose head is nowhere.
    world.flags.insert(0x9000, PageFlags::COMPOUND_TAIL.bits());
    let records = records("walk all by order", world.target().1);
    let group = |group: &PageGroup| (group.key.clone(), group.why.of("order").is_some());
    let groups: Vec<(String, bool)> = all(&records).map(group).collect();
    let expected = [("no folio".to_owned(), false), ("unknown".to_owned(), true)];
    assert!(expected.iter().all(|one| groups.contains(one)), "{groups:?}");
}

/// Does something to the world while it is looked at.
struct Meddler<F> {
    records: Vec<Box<dyn Record>>,
    meddle: F,
}

impl<F: Fn()> Sink for Meddler<F> {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.records.push(record.boxed());
        Ok(())
    }
    fn check(&mut self) -> Result<(), Stopped> {
        (self.meddle)();
        Ok(())
    }
    fn budget(&self) -> Budget {
        (self.meddle)();
        Budget::unlimited()
    }
    fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
        Ok(())
    }
}

#[test]
fn a_region_that_goes_while_it_is_looked_at_is_said_to_have_changed() {
    for line in ["region 0x1000000", "regions", "walk all"] {
        for goes in [false, true] {
            let mut world = World::new([region(0x1000, 4)]);
            world.maps(0x1000, 4, 0x9000);
            let (world, target) = world.target();
            let mut sink = Meddler {
                records: Vec::new(),
                meddle: || {
                    if goes {
                        world.regions.lock().expect("a lock").clear();
                    }
                },
            };
            run_line(&mut attached(target), line, None, &mut sink).expect("an answer");
            let last = sink.records.last().expect("a record");
            let changed = [
                last.downcast_ref().map(|region: &RegionReport| region.changed),
                last.downcast_ref().map(|summary: &RegionsSummary| summary.changed),
                last.downcast_ref().map(|summary: &WalkSummary| summary.changed),
            ];
            assert_eq!(changed.into_iter().flatten().next(), Some(goes), "{line}: {last:?}");
        }
    }
}

#[test]
fn what_of_shared_memory_is_in_swap_is_unknown_and_not_zero() {
    let device = Device { major: 0, minor: 7 };
    let shared = Region { device, inode: 5, name: "/dev/shm/one".into(), ..region(0x1000, 4) };
    let answer = |line: &str, swaps, present| {
        let mut world = World::new([shared.clone()]);
        world.maps(0x1000, present, 0x9000);
        (world.swaps, world.tmpfs) = (swaps, Some(device));
        records(line, world.target().1)
    };
    for (swaps, present, known) in [(true, 3, false), (true, 4, true), (false, 3, true)] {
        let what = format!("{swaps} {present}");
        let answer = |line| answer(line, swaps, present);
        let block = answer("region 0x1000000");
        let one: &RegionReport = last(&block);
        assert_eq!(one.swapped, known.then_some(0), "{what}");
        assert_eq!(one.why.of("swapped").is_none(), known, "{what}");
        let rows = answer("regions");
        let totals: &RegionsSummary = last(&rows);
        assert_eq!(totals.swapped, known.then_some(0), "{what}");
        // It can neither be kept nor left out.
        let filtered = answer("regions where swapped == 0");
        let has_note = notes(&filtered).iter().any(|note| note.starts_with("left out: 1 region "));
        assert_eq!(!has_note, known, "{what}");
    }
}

#[test]
fn explain_ends_with_ctrl_c_where_smaps_has_to_be_read() {
    struct Pressed;
    impl Sink for Pressed {
        fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
            panic!("{record:?}");
        }
        fn check(&mut self) -> Result<(), Stopped> {
            Err(Stopped::Interrupted)
        }
        fn budget(&self) -> Budget {
            Budget::until(Arc::new(AtomicBool::new(true)))
        }
        fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
            Err(Stopped::Interrupted)
        }
    }
    let (_, target) = World::new([region(0x1000, 1)]).target();
    let answer = run_line(&mut attached(target), "explain 0x1000000", None, &mut Pressed);
    assert!(matches!(answer, Err(super::floor::Error::Stopped(Stopped::Interrupted))));
}

#[test]
fn a_number_that_is_no_address_is_taken_for_a_line() {
    let note = |line| {
        let (_, target) = World::new([region(0x1000, 1)]).target();
        let records = records(line, target);
        first::<LineReport>(&records);
        notes(&records).concat()
    };
    assert!(note("info line 25").ends_with("`info line FILE:25`"));
    assert_eq!(note("info line 0x1000000"), "");
}

#[test]
fn regions_without_a_page_map_leave_the_totals_what_they_are() {
    use crate::process::fake::Fake;
    let fake = Fake::new()
        .region(0x50_0000, 0x50_2000, "rw-p", 0, "[heap]")
        .page(0x50_0000, 0x1234, b"here")
        .entry(0x50_1000, 1 << 62 | 77 << 5)
        .region(0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_1000, "--xp", 0, "[vsyscall]");
    let records = records("regions", fake.target());
    let outside = all(&records).filter(|region: &&RegionReport| region.swapped.is_none());
    assert_eq!(outside.map(|region| region.present).collect::<Vec<_>>(), [None]);
    let totals: &RegionsSummary = last(&records);
    assert_eq!((totals.present, totals.swapped), (Some(4096), Some(4096)));
}

#[test]
fn who_without_the_right_to_frames_is_a_refusal() {
    let mut world = World::new([region(0x1000, 2)]);
    world.maps(0x1000, 1, 0x9000);
    world.hidden = true;
    let target = world.target().1;
    let mut state = attached(target);
    for (line, status) in [("who 0x1000000", 4), ("who 0x1001000", 1)] {
        let mut sink = Kept { records: Vec::new(), stop_at: usize::MAX };
        let error = run_line(&mut state, line, None, &mut sink).expect_err("no frame");
        assert_eq!(error.status(), status, "{line}: {error:?}");
        let is_untouched = format!("{error:?}").contains("`walk 0x1000000..0x1002000 where present limit 1`");
        assert_eq!(is_untouched, status == 1, "{line}: {error:?}");
    }
}

#[test]
fn a_variable_that_passes_the_end_of_its_region_is_noted() {
    use crate::process::fake::Fake;
    use crate::symbol::tests::builder::{Builder, GLOBAL, OBJECT, entry};
    let file =
        Builder::with(vec![entry("buf", 0x2100, 0x2f00, GLOBAL, OBJECT), entry("one", 0x2000, 8, GLOBAL, OBJECT)]);
    let fake = || {
        let fake = Fake::new()
            .region(0x40_1000, 0x40_2000, "r-xp", 7, "/usr/bin/program")
            .region(0x40_2000, 0x40_3000, "rw-p", 7, "/usr/bin/program")
            .region(0x40_3000, 0x40_6000, "rw-p", 0, "");
        fake.file("/usr/bin/program", file.bytes()).target()
    };
    let said = notes(&records("region buf", fake())).concat();
    assert_eq!(said, "`buf` continues after this region for 8 KiB: `walk buf by region` lists all of it");
    assert!(notes(&records("region one", fake())).is_empty());
}

#[test]
fn an_array_that_is_followed_like_a_pointer_is_noted() {
    use crate::process::fake::Fake;
    use crate::symbol::tests::builder::{Builder, GLOBAL, OBJECT, entry};
    let file =
        Builder::with(vec![entry("table", 0x2100, 0x100, GLOBAL, OBJECT), entry("head", 0x2008, 16, GLOBAL, OBJECT)]);
    let fake = || {
        let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/usr/bin/program").region(
            0x40_2000,
            0x40_3000,
            "rw-p",
            7,
            "/usr/bin/program",
        );
        let head = [0, 0x40_2000u64].map(u64::to_le_bytes).concat();
        fake.page(0x40_2000, 30, &head).file("/usr/bin/program", file.bytes()).target()
    };
    let said = notes(&records("walk *table", fake())).concat();
    assert!(said.ends_with("write `walk table`"), "{said}");
    assert!(!notes(&records("walk region(*head)", fake())).concat().contains("begins with none"));
}

#[test]
fn lines_of_all_functions_of_a_name_and_modules_whose_file_is_gone() {
    use crate::process::fake::Fake;
    use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};
    let file = Builder::with(vec![
        entry("_Z10overloadedi", 0x1000, 0x10, GLOBAL, FUNCTION),
        entry("_Z10overloadedd", 0x1020, 0x10, GLOBAL, FUNCTION),
    ]);
    let mut fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/cc");
    fake = fake.file("/bin/cc", file.bytes());
    let lines = |text| {
        let records = records(text, fake.clone().target());
        all(&records).map(|report: &LineReport| report.address.get()).collect::<Vec<u64>>()
    };
    assert_eq!(lines("info line overloaded"), [0x40_1000, 0x40_1020]);
    assert_eq!(lines("info line cc!overloaded"), [0x40_1000, 0x40_1020]);
    assert_eq!(lines("info line 'overloaded(double)'"), [0x40_1020]);
    for deleted in [false, true] {
        let mut fake = fake.clone();
        fake.regions.iter_mut().for_each(|region| region.deleted = deleted);
        let modules = records("info modules", fake.target());
        let module: &ModuleReport = only(&modules);
        assert_eq!(module.deleted, deleted);
    }
}

/// `cpp_demangle` needs 2⁴⁰ steps to refuse this name: without a bound none of these commands ends.
#[test]
fn a_name_that_is_made_to_freeze_the_demangler() {
    use crate::process::fake::Fake;
    use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};
    let hostile = format!("_Z1fIX{}_{}v", "dl".repeat(40), "E".repeat(40));
    let file = Builder::with(vec![entry(&hostile, 0x1000, 0x10, GLOBAL, FUNCTION)]);
    let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/cc").file("/bin/cc", file.bytes());
    for (line, shows_it) in [
        ("translate 0x401004", true),
        ("explain 0x401004", true),
        ("region 0x401004", true),
        ("info symbol 0x401004", true),
        ("print symbol(0x401004)", true),
        ("info symbols .", true),
        ("info symbols delete", false),
        ("print &'f<delete>'", false),
        ("info address 'f<'", false),
        ("info line 'f<delete>'", false),
        (&format!("info address {hostile}"), true),
    ] {
        let (records, _) = outcome(line, fake.clone().target(), usize::MAX);
        let shown = format!("{records:?}").contains(&hostile);
        assert_eq!(shown, shows_it, "{line}: {records:?}");
    }
}

#[test]
fn one_answer_reads_the_regions_once() {
    use crate::process::fake::Fake;
    use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};
    use std::sync::atomic::Ordering;
    let file = Builder::with(vec![entry("main", 0x1000, 0x10, GLOBAL, FUNCTION)]);
    let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/cc").file("/bin/cc", file.bytes());
    let watched = fake.watched.clone();
    let target = fake.target();
    let mut state = attached(target);
    for line in [
        "translate main",
        "translate 0x401004",
        "explain main",
        "print main + 4",
        "info symbol main",
        "info address main",
        "info line main",
    ] {
        let mut sink = Kept { records: Vec::new(), stop_at: usize::MAX };
        let before = watched.region_reads.load(Ordering::Relaxed);
        run_line(&mut state, line, None, &mut sink).expect("an answer");
        // Each anew: what an earlier command read may have changed.
        let reads = watched.region_reads.load(Ordering::Relaxed) - before;
        assert_eq!(reads, 1, "{line}: {:?}", sink.records);
    }
}

/// A terminal of so many columns.
struct Terminal(Text, Vec<u8>);

impl Sink for Terminal {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.0.record(record, &mut self.1).expect("room for it");
        Ok(())
    }
    fn name_columns(&mut self, titles: &[&'static str]) {
        self.0.name_columns(titles);
    }
    fn check(&mut self) -> Result<(), Stopped> {
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
        Ok(())
    }
}

#[test]
fn columns_that_the_command_line_names_are_left_out_last() {
    let width = 80;
    for (line, shown) in [
        ("regions", &["swapped"][..]),
        ("regions by exclusive", &["exclusive"]),
        ("regions by private", &["exclusive"]),
        ("regions by end", &["end"]),
        ("regions where shared >= 0", &["shared"]),
        ("regions where huge >= 0 by exclusive", &["huge", "exclusive"]),
    ] {
        let mut world = World::new([region(0x1000, 4)]);
        world.maps(0x1000, 4, 0x9000);
        let mut terminal = Terminal(Text::new(Theme::PLAIN, Some(width)), Vec::new());
        run_line(&mut attached(world.target().1), line, None, &mut terminal).expect("regions");
        terminal.0.finish(&mut terminal.1).expect("room for it");
        let table = String::from_utf8(terminal.1).expect("text");
        let (_, table) = table.split_once("\n\n").expect("an answer");
        let (heading, rest) = table.split_once('\n').expect("a heading");
        assert!(shown.iter().all(|title| heading.contains(title)), "{line}: {table}");
        assert!(rest.contains("not shown"), "{line}: {table}");
    }
}
