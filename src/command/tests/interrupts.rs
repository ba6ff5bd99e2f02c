//! Commands stop at Ctrl-C wherever they ask for it. As at a terminal, Ctrl-C is reported once: a function that gets the
//! report has to return it.

use super::{Error, all, attached, interrupted, last, notes, outcome, run_line};
use crate::budget::Budget;
use crate::command::account::family_records::AccountFamily;
use crate::command::account::records::AccountSummary;
use crate::command::regions::RegionsSummary;
use crate::command::translate::ContiguousRun;
use crate::process::ProcessHandle;
use crate::process::fake::{HUGE, PAGE, World, region};
use crate::render::{Record, Sink};
use crate::report::{PageGroup, PagesRow, RegionReport, Stopped, WalkSummary};
use crate::sample::sample;
use crate::state::DebugState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Ctrl-C is pressed after the question of this number. The next one, or the budget, reports it.
#[derive(Default)]
struct PressedOnce {
    records: Vec<Box<dyn Record>>,
    asked: usize,
    press_after: Option<usize>,
    pressed: Arc<AtomicBool>,
    /// Questions before the first record.
    before_records: usize,
}

impl Sink for PressedOnce {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        if self.records.is_empty() {
            self.before_records = self.asked;
        }
        self.records.push(record.boxed());
        self.check()
    }
    fn check(&mut self) -> Result<(), Stopped> {
        self.asked += 1;
        let was_pressed = self.pressed.swap(self.press_after == Some(self.asked), Ordering::Relaxed);
        if was_pressed { Err(Stopped::Interrupted) } else { Ok(()) }
    }
    fn budget(&self) -> Budget {
        Budget::until(Arc::clone(&self.pressed))
    }
    fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
        self.check()
    }
}

/// A process with a huge page and small ones, or its child, in other frames except for two.
fn world(pid: u32) -> World {
    let mut world = World { pid, space: pid, ..World::new([region(HUGE, 2 * HUGE), region(5 * HUGE, 100)]) };
    let frames = HUGE * 20 * u64::from(pid);
    world.maps_huge(HUGE, frames);
    world.maps(2 * HUGE + 7, 20, frames + HUGE);
    world.maps(5 * HUGE, 10, frames + 2 * HUGE);
    world.maps(5 * HUGE + 20, 2, 7);
    world.memory = Some((HUGE..2 * HUGE + 40).map(|page| (page, vec![page as u8; PAGE as usize])).collect());
    world
}

/// Attached to the parent, with an earlier snapshot of its second region.
fn session() -> DebugState {
    let all = [(1, 0), (2, 1)];
    let processes = all.map(|(pid, parent)| (ProcessHandle::of_numbers(pid, parent), Some(Arc::new(world(pid)))));
    let (_, target) = World { processes: processes.into(), ..world(1) }.target();
    let mut state = attached(target);
    run_line(&mut state, "snapshot before in 0xa00000, +100p with content", None, &mut PressedOnce::default())
        .expect("a snapshot");
    state
}

fn says(records: &[Box<dyn Record>], text: &str) -> bool {
    notes(records).iter().any(|note| note.contains(text))
}

/// Whether the records say what was kept.
type Kept = fn(&[Box<dyn Record>]) -> bool;

fn account_is_of_a_part(records: &[Box<dyn Record>]) -> bool {
    records.iter().filter_map(|record| record.downcast_ref()).any(|sums: &AccountSummary| sums.cut_short)
}

#[test]
fn whoever_hears_of_ctrl_c_passes_it_on_and_says_what_was_kept() {
    let commands: &[(&str, Kept)] = &[
        ("account", account_is_of_a_part),
        ("account by region", account_is_of_a_part),
        ("account by mapping top 1", account_is_of_a_part),
        ("account with content", account_is_of_a_part),
        ("account children", |records| {
            let is_of_a_part = |sums: &AccountFamily| sums.not_counted > 0;
            records.iter().filter_map(|record| record.downcast_ref()).any(is_of_a_part)
                || says(records, "the sums were not finished")
        }),
        ("snapshot in 0xa00000, +100p with content", |records| says(records, "no snapshot was kept")),
        ("diff before", |records| says(records, "the earlier snapshot is kept")),
        ("walk all by region", |_| true),
        ("huge with content top 3", |_| true),
        ("map by sharing", |_| true),
        ("summary", |_| true),
    ];
    for (line, kept) in commands {
        let mut state = session();
        let mut run = |press_after| {
            let mut sink = PressedOnce { press_after, ..PressedOnce::default() };
            let outcome = run_line(&mut state, line, None, &mut sink);
            (sink, outcome)
        };
        let (whole, outcome) = run(None);
        outcome.unwrap_or_else(|error| panic!("{line}: {error:?}"));
        assert!(whole.before_records > 0, "{line} does not ask before it shows something");
        // The first questions, those around the first record, and the last ones.
        let near = |at: usize| [1, whole.before_records, whole.asked].iter().any(|place| at.abs_diff(*place) < 4);
        for at in sample((1..=whole.asked).filter(|at| near(*at)), 3) {
            let (sink, outcome) = run(Some(at));
            let what = format!("{line}, pressed after question {at} of {}: {:?}", whole.asked, sink.records);
            match outcome {
                Err(Error::Stopped(Stopped::Interrupted)) => {}
                // Nobody was left to ask.
                Ok(_) => assert!(sink.pressed.load(Ordering::Relaxed), "{what}"),
                Err(error) => panic!("{what}: {error:?}"),
            }
            // Rows are only shown once everything was counted.
            assert!(at >= whole.before_records || kept(&sink.records), "{what}");
        }
    }
}

#[test]
fn what_was_counted_before_ctrl_c_is_shown() {
    for line in ["walk 0x1000000, +20p", "walk 0x1000000, +20p by run", "translate 0x1000000, +20p"] {
        let mut rows = 0;
        let mut counted = None;
        for record in interrupted(line, 3) {
            rows += record.downcast_ref().map_or(0, |row: &PagesRow| row.pages);
            rows += record.downcast_ref().map_or(0, |group: &PageGroup| group.pages);
            rows += record.downcast_ref().map_or(0, |run: &ContiguousRun| run.pages);
            if let Some(summary) = record.downcast_ref::<WalkSummary>() {
                assert!(summary.cut_short, "{line}");
                counted = Some(summary.pages);
            }
        }
        assert_eq!(Some(rows), counted, "{line}");
        assert!((3..20).contains(&rows), "{line}: {rows}");
    }
}

#[test]
fn regions_that_ctrl_c_broke_off_are_added_up_as_far_as_they_were_looked_at() {
    for order in ["", " by size"] {
        let (_, target) = World::new((1..9).map(|at| region(at * 0x1000, 1))).target();
        let (records, outcome) = outcome(&format!("regions{order}"), target, 3);
        assert_eq!(all::<RegionReport>(&records).count(), 3, "{order}");
        let summary: &RegionsSummary = last(&records);
        // To be sorted all have to be counted first.
        let counted = if order.is_empty() { 3 } else { 8 };
        assert_eq!((summary.regions, summary.cut_short), (counted, true));
        assert!(matches!(outcome, Err(Error::Stopped(Stopped::Interrupted))));
    }
}
