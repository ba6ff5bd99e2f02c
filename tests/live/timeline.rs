//! `watch … as timeline` of a process that does to its pages what the test says, between two samples.

use super::Test;
use super::puppet::Puppet;
use super::support::page_bytes;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub const TESTS: &[Test] = &[
    ("timeline::cells_follow_the_pages", cells_follow_the_pages),
    ("timeline::the_row_that_reaches_the_count_ends_it", the_row_that_reaches_the_count_ends_it),
];

const MADV_DONTNEED: i32 = 4;

/// The program with a line, and what it prints.
fn watched(puppet: &Puppet, line: &str) -> (Child, impl Iterator<Item = Value> + use<>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "--json", "-batch", "-p", &puppet.0.pid().to_string(), "-ex", line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("pmdb starts");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let objects = out.lines().map(|line| {
        let line = line.expect("a line");
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    (child, objects)
}

/// A row of more pages than are left is counted as a whole.
fn the_row_that_reaches_the_count_ends_it() {
    let mut puppet = Puppet::start();
    let size = page_bytes();
    // In one page table, so that the pages go between two samples.
    let pages = puppet.maps("anonymous", 16).next_multiple_of(8 * size);
    puppet.writes(pages, 6);
    let (mut child, mut objects) =
        watched(&puppet, &format!("watch {pages:#x}, +{} every 1ms count 4 as timeline", 8 * size));
    objects.find(|object| object["type"] == "timeline-sample").expect("the first sample");
    puppet.advises(pages, 5, MADV_DONTNEED).expect("the pages go");
    let summary = objects.last().expect("a summary");
    let went = [&summary["events"]["went"], &summary["rows"]["went"], &summary["went"]];
    assert_eq!(went, [&Value::from(5), &1.into(), &(5 * size).into()], "{summary}");
    assert_eq!(summary["ended"], "count");
    assert!(child.wait().expect("it ends").success());
}

/// A row for each page; a page comes, goes, and comes again, which ends the watch.
fn cells_follow_the_pages() {
    const PAGES: u64 = 4;
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", PAGES);
    let bytes = PAGES * page_bytes();
    let line = format!("watch {memory:#x}, +{bytes} every 1ms count 3 as timeline");
    let (mut child, mut objects) = watched(&puppet, &line);
    let mut rows = Vec::new();
    // The next sample that differs from the one before: for each row the mark, and whether it changed.
    let mut next = |objects: &mut dyn Iterator<Item = Value>, before: &[(String, bool)]| loop {
        let object = objects.next().expect("a sample");
        match object["type"].as_str() {
            Some("timeline-row") => rows.push(object["start"].clone()),
            Some("timeline-sample") => {
                let cells = cells(&object);
                let marks =
                    |cells: &[(String, bool)]| -> Vec<String> { cells.iter().map(|(mark, _)| mark.clone()).collect() };
                if marks(&cells) != marks(before) {
                    return cells;
                }
            }
            _ => {}
        }
    };
    let cell = |mark: &str, changed| (mark.to_owned(), changed);
    let [untouched, came, went] =
        [("untouched", false), ("anonymous", true), ("untouched", true)].map(|(mark, changed)| cell(mark, changed));
    let first = next(&mut objects, &[]);
    assert_eq!(first, vec![untouched.clone(); PAGES as usize]);
    puppet.asks("store", &[memory + page_bytes()]);
    let second = next(&mut objects, &first);
    let with = |one: &(String, bool)| {
        let mut cells = first.clone();
        cells[1] = one.clone();
        cells
    };
    assert_eq!(second, with(&came));
    puppet.advises(memory + page_bytes(), 1, MADV_DONTNEED).expect("the page goes");
    let third = next(&mut objects, &second);
    assert_eq!(third, with(&went));
    puppet.asks("store", &[memory + page_bytes()]);
    assert_eq!(next(&mut objects, &third), with(&came));
    let starts = (0..PAGES).map(|page| Value::from(format!("{:#x}", memory + page * page_bytes())));
    assert_eq!(rows, starts.collect::<Vec<_>>());
    let summary = objects.last().expect("a summary");
    assert_eq!(summary["type"], "watch-summary");
    assert_eq!(summary["ended"], "count");
    assert_eq!(summary["events"], serde_json::json!({ "came": 2, "went": 1 }));
    assert!(child.wait().expect("it ends").success());
}

fn cells(sample: &Value) -> Vec<(String, bool)> {
    let cells = sample["cells"].as_array().expect("cells").iter();
    let each = cells.flat_map(|cells| {
        let mark = cells["mark"].as_str().expect("a mark").to_owned();
        let changed = cells["changed"].as_bool().expect("whether it changed");
        let count = cells["cells"].as_u64().expect("how many");
        std::iter::repeat_n((mark, changed), count as usize)
    });
    each.collect()
}
