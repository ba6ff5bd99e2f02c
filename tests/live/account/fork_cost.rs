//! What a fork has copied, over time.

use super::command::{end, of_type};
use super::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn pmdb(pid: u32, command: &str) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "--json", "-p", &pid.to_string(), "-ex", command])
        .stdout(Stdio::piped())
        .spawn()
        .expect("pmdb runs")
}

/// What the last record with cells shows: the pages that have what is asked, and those that are asked.
pub fn shown_in_cells(pid: u32, command: &str) -> (u64, u64) {
    let output = pmdb(pid, command).wait_with_output().expect("its end");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let mut records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let last = records.rfind(|record| record["cells"].is_array()).expect("cells");
    let cells = last["cells"].as_array().expect("cells").iter();
    let sum = |field: &str| cells.clone().map(|alike| pages(alike, field) * pages(alike, "cells")).sum();
    (sum("pages"), sum("of"))
}

fn pages(sample: &Value, field: &str) -> u64 {
    sample[field].as_u64().unwrap_or_else(|| panic!("no {field}: {sample}"))
}

/// The parent writes while samples are taken; the child has what it had, and smaps counts it as its own.
pub fn copies_are_seen_as_they_come() {
    const NAME: &str = "account::copies_are_seen_as_they_come";
    if !support::shows_frames() {
        return skip(NAME, "only root sees frame numbers");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 100);
    puppet.writes(memory, 100);
    let room = puppet.maps("anonymous", 4);
    let child = puppet.does("fork", &[memory, 7]);
    let kernel = || {
        let text = std::fs::read_to_string(format!("/proc/{child}/smaps")).expect("its smaps");
        plain_fields(&text)[&memory]["Private_Dirty"] / page_bytes()
    };
    let before = kernel();
    assert_eq!(before, 7);
    let range = format!("{memory:#x}, +{}", 100 * page_bytes());
    let until = 20 * page_bytes();
    let command = format!("compare children in {range} every 5ms for 60s until copied >= {until} by region");
    let mut running = pmdb(puppet.0.pid(), &command);
    let mut lines = BufReader::new(running.stdout.take().expect("its output")).lines();
    let mut records: Vec<Value> = Vec::new();
    let mut next = |records: &mut Vec<Value>| {
        let line = lines.next()?.expect("text");
        records.push(serde_json::from_str(&line).expect("a record"));
        Some(())
    };
    next(&mut records).expect("a sample");
    assert_eq!(pages(&records[0], "copied"), 7, "{:?}", records[0]);
    assert!(records[0]["rate"].is_null());
    puppet.writes(memory + 50 * page_bytes(), 13);
    while next(&mut records).is_some() {}
    assert!(running.wait().expect("its end").success(), "{records:?}");
    let samples = of_type(&records, "comparison-sample");
    let last = samples.last().expect("a sample");
    assert_eq!((pages(last, "copied"), pages(last, "shared"), pages(last, "about_to_copy")), (20, 80, 80));
    assert_eq!(pages(last, "copied"), kernel());
    let rates = samples.iter().filter(|sample| sample["rate"].as_u64().is_some_and(|rate| rate > 0));
    assert!(rates.count() >= 1, "{samples:?}");
    // The rows of the last sample follow.
    let [row] = of_type(&records, "comparison")[..] else { panic!("{records:?}") };
    assert_eq!(pages(row, "copied"), 20);
    let [sums] = of_type(&records, "comparison-summary")[..] else { panic!("{records:?}") };
    assert_eq!((pages(sums, "copied"), pages(sums, "other")), (20, child));
    // The same as pictures: each page has a row or a cell.
    let shown = |command: &str| shown_in_cells(puppet.0.pid(), command);
    let timeline = format!("compare children in {range} every 1ms for 3ms as timeline");
    assert_eq!(shown(&timeline), (20, 100));
    assert_eq!(shown(&format!("map {range} by sharing")), (80, 100));
    // Pages that are not there are not asked who shares them.
    assert_eq!(shown(&format!("map {room:#x}, +{} by sharing", 4 * page_bytes())), (0, 0));
    puppet.writes(room, 1);
    let shown = |command: &str| shown_in_cells(puppet.0.pid(), command);
    assert_eq!(shown(&format!("map {room:#x}, +{} by sharing", 4 * page_bytes())), (0, 1));
    assert_eq!(shown(&format!("map {room:#x}, +{} by resident", 4 * page_bytes())), (1, 4));
    // What the parent drops stays with the child, which has it alone.
    puppet.advises(memory + 90 * page_bytes(), 10, libc::MADV_DONTNEED).expect("to drop pages");
    let all = super::command::records(puppet.0.pid(), &format!("compare {child} in {range}"));
    let [sums] = of_type(&all, "comparison-summary")[..] else { panic!("{all:?}") };
    assert_eq!((pages(sums, "copied"), pages(sums, "only_there")), (20, 10));
    assert_eq!(kernel(), 30);
    // A condition that does not come true in time.
    let ended = pmdb(puppet.0.pid(), &format!("compare {child} in {range} every 5ms for 20ms until copied > 1G"));
    assert_eq!(ended.wait_with_output().expect("its end").status.code(), Some(5));
    // A child that is gone ends it.
    end(child);
    let ended = pmdb(puppet.0.pid(), &format!("compare children in {range} every 5ms for 20ms"));
    let output = ended.wait_with_output().expect("its end");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let last: Value = serde_json::from_str(text.lines().last().expect("a sample")).expect("a record");
    assert_eq!((&last["type"], &last["processes"]), (&"comparison-sample".into(), &0.into()));
}
