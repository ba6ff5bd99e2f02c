//! Snapshots with contents: they show how far they are, and Ctrl-C says what is kept.

use super::{Error, attached, notes, run_line};
use crate::budget::Budget;
use crate::command::snapshot::SnapshotRow;
use crate::process::fake::{PAGE, World, region};
use crate::render::{Record, Sink};
use crate::report::Stopped;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Keeps the records and the progress. Ctrl-C comes once so much was done of so much: the budget ends, or the sink
/// reports it, only once as at a terminal.
#[derive(Default)]
struct Shown {
    records: Vec<Box<dyn Record>>,
    progress: Vec<(u64, u64)>,
    stop_at: Option<(u64, u64)>,
    is_reported: bool,
    pressed: Arc<AtomicBool>,
}

impl Sink for Shown {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.records.push(record.boxed());
        Ok(())
    }
    fn check(&mut self) -> Result<(), Stopped> {
        Ok(())
    }
    fn budget(&self) -> Budget {
        Budget::until(Arc::clone(&self.pressed))
    }
    fn progress(&mut self, done: u64, total: u64, _: &'static str) -> Result<(), Stopped> {
        self.progress.push((done, total));
        if self.stop_at.is_some_and(|(at, of)| done >= at && total == of) {
            if self.is_reported {
                self.stop_at = None;
                return Err(Stopped::Interrupted);
            }
            self.pressed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
        Ok(())
    }
}

#[test]
fn contents_are_read_with_progress_and_ctrl_c_says_what_is_kept() {
    let mut world = World::new([region(0x1000, 1200)]);
    // Two stretches, of which the first takes several reads.
    for (first, pages) in [(0x1000, 600), (0x1300, 100)] {
        world.maps(first, pages, 0x9000 + first);
    }
    let page = |page: u64| (page, vec![page as u8; PAGE as usize]);
    world.memory = Some((0x1000..0x1000 + 1200).map(page).collect());
    let (_, target) = world.target();
    let mut state = attached(target);
    let mut run = |line: &str, stop_at, is_reported| {
        let mut sink = Shown { stop_at, is_reported, ..Shown::default() };
        let outcome = run_line(&mut state, line, None, &mut sink);
        (outcome, sink)
    };
    let (outcome, sink) = run("snapshot a with content", None, false);
    outcome.expect("a snapshot");
    let taken = sink.records.iter().find_map(|record| record.downcast_ref::<SnapshotRow>());
    assert_eq!(taken.map(|row| (row.pages, row.unread)), Some((700, 0)));
    let (map, contents): (Vec<_>, Vec<_>) = sink.progress.iter().partition(|(_, total)| *total == 1200);
    assert_eq!(map.last(), Some(&(1200, 1200)));
    assert_eq!(contents, [256, 512, 600, 700].map(|done| (done, 700)));
    let in_map = map[0];
    let cases = [
        ("snapshot b with content", (512, 700), "no snapshot was kept"),
        ("snapshot b", in_map, "no snapshot was kept"),
        ("diff a", (512, 700), "nothing was compared, and the earlier snapshot is kept"),
        ("diff a", in_map, "nothing was compared, and the earlier snapshot is kept"),
    ];
    for ((line, stop_at, says), is_reported) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let (outcome, sink) = run(line, Some(stop_at), is_reported);
        assert!(matches!(outcome, Err(Error::Stopped(Stopped::Interrupted))), "{line}: {outcome:?}");
        // The map is read in batches, of which each is taken whole.
        let last = if stop_at.1 == 700 || is_reported { stop_at } else { (1200, 1200) };
        assert_eq!(sink.progress.last(), Some(&last), "{line}");
        let notes = notes(&sink.records);
        assert!(notes.len() == 1 && notes[0].ends_with(says), "{line}: {notes:?}");
    }
    // Only the first is there, and can still be compared.
    let (outcome, sink) = run("info snapshots", None, false);
    outcome.expect("a list");
    assert_eq!(sink.records.len(), 1);
    run("diff a", None, false).0.expect("a comparison");
}

#[test]
fn a_snapshot_that_is_taken_for_a_file_is_named() {
    let (_, target) = World::new([region(0x1000, 1)]).target();
    let mut state = attached(target);
    let mut remedy = |line: &str| {
        let outcome = run_line(&mut state, line, None, &mut Shown::default());
        outcome.err().and_then(|error| error.remedy().map(str::to_owned))
    };
    assert_eq!(remedy("diff from absent_file"), None);
    assert_eq!(remedy("snapshot absent_file"), None);
    assert_eq!(
        remedy("diff from absent_file").as_deref(),
        Some("a file follows `from`; for the snapshot: `diff absent_file`")
    );
    assert_eq!(remedy("diff absent_file"), None);
}

/// Sums in expressions and captures say how far they are, and Ctrl-C then ends them.
#[test]
fn sums_and_captures_show_their_progress() {
    use crate::state::ProgressListener;
    use std::cell::RefCell;
    use std::rc::Rc;
    let mut world = World::new([region(0x1000, 1200)]);
    world.refused.clear();
    world.maps(0x1000, 600, 0x9000);
    let (_, target) = world.target();
    let mut state = attached(target);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let shown = Rc::clone(&seen);
    state.progress = ProgressListener::new(move |done, total, _| shown.borrow_mut().push((done, total)));
    run_line(&mut state, "print uss(all)", None, &mut Shown::default()).expect("a sum");
    assert_eq!(seen.borrow().last(), Some(&(1200, 1200)), "{seen:?}");
    let folder = tempfile::tempdir().expect("a directory");
    let line = format!("capture {}", folder.path().join("file").display());
    let mut sink = Shown::default();
    run_line(&mut state, &line, None, &mut sink).expect("a capture");
    let last = *sink.progress.last().expect("progress");
    assert!(last.0 == last.1 && last.0 >= 3 * 600, "{:?}", sink.progress);
    let mut sink = Shown { stop_at: Some(sink.progress[0]), is_reported: true, ..Shown::default() };
    let outcome = run_line(&mut state, &format!("{line} --overwrite"), None, &mut sink);
    assert!(matches!(outcome, Err(Error::Stopped(Stopped::Interrupted))), "{outcome:?}");
    assert_eq!(sink.progress.len(), 1);
}
