//! What commands do on a machine made of tables.

use super::{Context, Error, run};
use crate::inspect::fake::{World, region};
use crate::lang::{self, Line};
use crate::report::{Record, Sink, Stopped};
use crate::state::DebugState;
use std::time::Duration;

/// Keeps what it is given, and says to stop at one of the records, once.
struct Kept {
    records: Vec<Record>,
    stop_at: usize,
}

impl Sink for Kept {
    fn emit(&mut self, record: Record) -> Result<(), Stopped> {
        self.records.push(record);
        match self.records.len() == self.stop_at {
            true => Err(Stopped::Interrupted),
            false => Ok(()),
        }
    }
    fn check(&mut self) -> Result<(), Stopped> {
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<(), Stopped> {
        Ok(())
    }
}

/// The records of a command on twenty pages, each in a frame away from its neighbours'.
fn interrupted(line: &str, stop_at: usize) -> Vec<Record> {
    let mut world = World::new([region(0x1000, 20)]);
    for page in 0..20 {
        world.maps(0x1000 + page, 1, 0x9000 + 2 * page);
    }
    let (_, target) = world.target();
    let mut state = DebugState::new(target.machine.clone());
    state.attach(target);
    let mut sink = Kept {
        records: Vec::new(),
        stop_at,
    };
    let Ok(Line::Command { command, .. }) = lang::parse_line(line) else {
        panic!("no command: {line}");
    };
    let outcome = run(
        &command,
        &mut Context {
            state: &mut state,
            sink: &mut sink,
            resume: None,
        },
    );
    assert!(
        matches!(outcome, Err(Error::Stopped(Stopped::Interrupted))),
        "{line}: {outcome:?}"
    );
    sink.records
}

#[test]
fn what_was_counted_before_ctrl_c_is_shown() {
    for line in [
        "walk 0x1000000, +20p",
        "walk 0x1000000, +20p by run",
        "translate 0x1000000, +20p",
    ] {
        let mut rows = 0;
        let mut counted = None;
        for record in interrupted(line, 3) {
            match record {
                Record::Pages(row) => rows += row.pages,
                Record::Group(group) => rows += group.pages,
                Record::Run(run) => rows += run.pages,
                Record::WalkSummary(summary) => {
                    assert!(summary.cut_short, "{line}");
                    counted = Some(summary.pages);
                }
                _ => {}
            }
        }
        assert_eq!(Some(rows), counted, "{line}");
        assert!((3..20).contains(&rows), "{line}: {rows}");
    }
}

#[test]
fn an_address_in_no_region_comes_with_its_neighbours() {
    let (_, target) = World::new([region(0x1000, 1), region(0x2000, 1)]).target();
    let mut state = DebugState::new(target.machine.clone());
    state.attach(target);
    let mut sink = Kept {
        records: Vec::new(),
        stop_at: usize::MAX,
    };
    let Ok(Line::Command { command, .. }) = lang::parse_line("region 0x1800000") else {
        panic!("no command");
    };
    let mut context = Context {
        state: &mut state,
        sink: &mut sink,
        resume: None,
    };
    let Err(Error::Unmapped { nearest, .. }) = run(&command, &mut context) else {
        panic!("there is no region");
    };
    let starts: Vec<u64> = nearest.iter().map(|near| near.start.get()).collect();
    assert_eq!(starts, [0x1000 << 12, 0x2000 << 12]);
}

#[test]
fn where_the_page_map_has_no_entry_its_bits_are_not_known() {
    let (_, target) = World::new([region(0x1000, 1)]).target();
    let mut state = DebugState::new(target.machine.clone());
    state.attach(target);
    for (line, known) in [
        ("translate 0x1000000", true),
        ("translate 0xffff888000000000", false),
    ] {
        let mut sink = Kept {
            records: Vec::new(),
            stop_at: usize::MAX,
        };
        let Ok(Line::Command { command, .. }) = lang::parse_line(line) else {
            panic!("no command");
        };
        let mut context = Context {
            state: &mut state,
            sink: &mut sink,
            resume: None,
        };
        run(&command, &mut context).expect("a translation");
        let Some(Record::Translation(page)) = sink.records.first() else {
            panic!("no translation");
        };
        for (field, value) in [
            ("pfn_hidden", page.pfn_hidden),
            ("uffd_wp", page.uffd_wp),
            ("file_mapped", page.file_mapped),
        ] {
            assert_eq!(value, known.then_some(false), "{line} {field}");
            assert_eq!(page.why.of(field).is_none(), known, "{line} {field}");
        }
    }
}
