//! What a fork has copied, over time.

use super::super::support::plain_entry;
use super::command::{end, of_type};
use super::*;
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

fn pmdb(pid: u32, commands: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "--json", "-p", &pid.to_string()])
        .args(commands.iter().flat_map(|command| ["-ex", command]))
        .stdout(Stdio::piped())
        .spawn()
        .expect("pmdb runs")
}

/// What the last record with cells shows: the pages that have what is asked, and those that are asked.
pub fn shown_in_cells(pid: u32, command: &str) -> (u64, u64) {
    let output = pmdb(pid, &[command]).wait_with_output().expect("its end");
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

/// A process with 100 written pages, and where they are. `None` where no frames show what was copied.
fn with_written_pages(name: &str) -> Option<(Puppet, u64)> {
    if !support::shows_frames() {
        skip(name, "only root sees frame numbers");
        return None;
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 100);
    puppet.writes(memory, 100);
    Some((puppet, memory))
}

/// What a running pmdb prints, as it comes.
struct Printed {
    lines: Lines<BufReader<ChildStdout>>,
    records: Vec<Value>,
}

impl Printed {
    fn by(running: &mut Child) -> Printed {
        let lines = BufReader::new(running.stdout.take().expect("its output")).lines();
        Printed { lines, records: Vec::new() }
    }

    /// The next record; `None` at the end.
    fn next(&mut self) -> Option<&Value> {
        let line = self.lines.next()?.expect("text");
        self.records.push(serde_json::from_str(&line).expect("a record"));
        self.records.last()
    }
}

/// Each of two siblings may have mapped the region after the fork, unless they share a page of it. A parent had it
/// before.
pub fn siblings_copy_only_where_they_share() {
    let Some((mut puppet, memory)) = with_written_pages("account::siblings_copy_only_where_they_share") else {
        return;
    };
    let [all, few] = [100, 7].map(|pages| puppet.does("fork", &[memory, pages]));
    let range = format!("{memory:#x}, +{}", 100 * page_bytes());
    let counts = |one: u32, other: u64| {
        let output = pmdb(one, &[&format!("compare {other} in {range}")]).wait_with_output().expect("its end");
        let text = String::from_utf8(output.stdout).expect("text");
        let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        let sum = of_type(&records, "comparison-summary")[0];
        ["shared", "copied", "only_here", "only_there"].map(|field| pages(sum, field))
    };
    let parent = puppet.0.pid();
    assert_eq!(counts(parent, all), [0, 100, 0, 0]);
    assert_eq!(counts(parent, few), [93, 7, 0, 0]);
    let others = puppet.does("fork", &[memory, 100]);
    assert_eq!(counts(all as u32, others), [0, 0, 100, 100]);
    assert_eq!(counts(all as u32, few), [0, 0, 100, 100]);
    let third = puppet.does("fork", &[memory, 5]);
    assert_eq!(counts(few as u32, third), [93, 7, 0, 0]);
}

/// The parent writes while samples are taken; the child has what it had, and smaps counts it as its own.
pub fn copies_are_seen_as_they_come() {
    let Some((mut puppet, memory)) = with_written_pages("account::copies_are_seen_as_they_come") else {
        return;
    };
    let room = puppet.maps("anonymous", 4);
    let child = puppet.does("fork", &[memory, 7]);
    let kernel = || {
        let text = std::fs::read_to_string(format!("/proc/{child}/smaps")).expect("its smaps");
        // The kernel may have merged the region with the one before it.
        let fields = plain_fields(&text);
        let (_, region) = fields.range(..=memory).next_back().expect("the region");
        region["Private_Dirty"] / page_bytes()
    };
    let before = kernel();
    assert_eq!(before, 7);
    let range = format!("{memory:#x}, +{}", 100 * page_bytes());
    let until = 20 * page_bytes();
    let command = format!("compare children in {range} every 5ms for 60s until copied >= {until} by region");
    let mut running = pmdb(puppet.0.pid(), &[&command]);
    let mut printed = Printed::by(&mut running);
    let first = printed.next().expect("a sample");
    assert_eq!(pages(first, "copied"), 7, "{first}");
    assert!(first["rate"].is_null());
    puppet.writes(memory + 50 * page_bytes(), 13);
    while printed.next().is_some() {}
    let records = printed.records;
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
    // A capital letter stands for all of a cell: not so where a fifth does not match.
    let many = puppet.maps("anonymous", 1024);
    puppet.writes(many, 1024);
    for page in (0..1024).step_by(5) {
        puppet.advises(many + page * page_bytes(), 1, libc::MADV_DONTNEED).expect("to drop a page");
    }
    for (filter, is_mixed) in [("present", true), ("anonymous", true), ("untouched", true)] {
        let line = format!("map {many:#x}, +{} where {filter}", 1024 * page_bytes());
        let records = super::command::records(puppet.0.pid(), &line);
        let cells = of_type(&records, "map-region").into_iter().flat_map(|one| one["cells"].as_array().expect("cells"));
        let drawn: Vec<&Value> = cells.filter(|cells| cells["mark"] != "nothing").collect();
        assert!(!drawn.is_empty(), "{records:?}");
        let are_mixed = drawn.iter().any(|cells| cells["mixed"] == true);
        assert_eq!(are_mixed, is_mixed, "{line}: {drawn:?}");
        // Two pages a cell: one of five has none that matches, or both.
        if filter == "present" {
            assert!(drawn.iter().any(|cells| cells["mixed"] == false), "{drawn:?}");
        }
    }
    // What the parent drops stays with the child, which has it alone.
    puppet.advises(memory + 90 * page_bytes(), 10, libc::MADV_DONTNEED).expect("to drop pages");
    // A process that is named twice counts once.
    let all = super::command::records(puppet.0.pid(), &format!("compare {child}, {child} in {range}"));
    let [sums] = of_type(&all, "comparison-summary")[..] else { panic!("{all:?}") };
    assert_eq!((pages(sums, "copied"), pages(sums, "only_there")), (20, 10));
    assert_eq!(sums["copied_bytes"], 20 * page_bytes());
    assert_eq!(kernel(), 30);
    // A condition that does not come true in time.
    let ended = pmdb(puppet.0.pid(), &[&format!("compare {child} in {range} every 5ms for 20ms until copied > 1G")]);
    assert_eq!(ended.wait_with_output().expect("its end").status.code(), Some(5));
    // A child that is gone ends it.
    end(child);
    let ended = pmdb(puppet.0.pid(), &[&format!("compare children in {range} every 5ms for 20ms")]);
    let output = ended.wait_with_output().expect("its end");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    // On a busy machine a note follows: samples were late.
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let samples = of_type(&records, "comparison-sample");
    assert_eq!(samples.last().expect("a sample")["processes"], 0);
}

/// The frame of a present page.
fn frame(process: u64, address: u64) -> u64 {
    plain_entry(process as u32, address).expect("an entry") & ((1 << 55) - 1)
}

/// For each page, how many different frames the processes have, and whether the first maps the same one as another.
fn frames(processes: &[u64], memory: u64, count: u64) -> Vec<(u64, bool)> {
    let pages = (0..count).map(|page| memory + page * page_bytes());
    pages
        .map(|address| {
            let all: Vec<u64> = processes.iter().map(|&process| frame(process, address)).collect();
            let is_shared = all[1..].contains(&all[0]);
            (all.into_iter().collect::<std::collections::BTreeSet<_>>().len() as u64, is_shared)
        })
        .collect()
}

/// A page that the parent copies is one copy, however many children have the old one.
pub fn a_copy_counts_once_for_all_children() {
    let Some((mut puppet, memory)) = with_written_pages("account::a_copy_counts_once_for_all_children") else {
        return;
    };
    let pid = puppet.0.pid();
    let mut all = vec![u64::from(pid)];
    all.extend((0..4).map(|_| puppet.does("fork", &[memory, 0])));
    let range = format!("{memory:#x}, +{}", 100 * page_bytes());
    let is_as = |all: &[u64], copied: u64, shared: u64| {
        let frames = frames(all, memory, 100);
        let extra: u64 = frames.iter().map(|(different, _)| different - 1).sum();
        let together = frames.iter().filter(|(_, is_shared)| *is_shared).count() as u64;
        assert_eq!((extra, together), (copied, shared), "the kernel's own page maps");
        let records = super::command::records(pid, &format!("compare children in {range}"));
        let [total] = of_type(&records, "comparison-total")[..] else { panic!("{records:?}") };
        assert_eq!(pages(total, "processes"), all.len() as u64 - 1);
        let seen = ["copied", "shared", "about_to_copy", "only_here"].map(|field| pages(total, field));
        assert_eq!(seen, [copied, shared, shared, 0], "{total}");
        // The rows of each child are still compared pair by pair.
        assert_eq!(of_type(&records, "comparison-summary").len(), all.len() - 1);
        let over_time = super::command::records(pid, &format!("compare children in {range} every 5ms for 10ms"));
        for sample in of_type(&over_time, "comparison-sample") {
            assert_eq!((pages(sample, "copied"), pages(sample, "about_to_copy")), (copied, shared), "{sample}");
        }
        let printed = Command::new(env!("CARGO_BIN_EXE_pmdb"))
            .args(["-nx", "-q", "-batch", "-p", &pid.to_string(), "-ex", &format!("compare children in {range}")])
            .args(["-ex", "printf \"%d %d %d\\n\", $_copied, $_about_to_copy, $_shared"])
            .output()
            .expect("pmdb runs");
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        let bytes = |pages: u64| pages * page_bytes();
        let expected = format!("{} {} {}", bytes(copied), bytes(shared), bytes(shared));
        assert_eq!(text.lines().last(), Some(expected.as_str()), "{text}");
    };
    is_as(&all, 0, 100);
    puppet.writes(memory, 50);
    is_as(&all, 50, 50);
    // A child that was forked later shares the new pages, and writes ten of them.
    all.push(puppet.does("fork", &[memory, 10]));
    is_as(&all, 60, 90);
    all[1..].iter().for_each(|&child| end(child));
}

/// The sums at the end are those of the last sample, and so are the variables. A child that has ended is shown apart.
pub fn sums_over_time_are_of_the_last_sample() {
    let Some((mut puppet, memory)) = with_written_pages("account::sums_over_time_are_of_the_last_sample") else {
        return;
    };
    let pid = puppet.0.pid();
    let mut children = [7, 3].map(|pages| puppet.does("fork", &[memory, pages]));
    children.sort_unstable();
    let [stays, ends] = children;
    let own = |child: u64| {
        let addresses = (0..100).map(|page| memory + page * page_bytes());
        addresses.filter(|&address| frame(pid.into(), address) != frame(child, address)).count() as u64
    };
    let (kept, lost) = (own(stays), own(ends));
    assert_eq!(kept + lost, 10);
    let range = format!("{memory:#x}, +{}", 100 * page_bytes());
    let until = (kept + 20) * page_bytes();
    let compare = format!("compare children in {range} every 5ms for 60s until copied >= {until}");
    let mut running = pmdb(pid, &[&compare, "print $_copied"]);
    let mut printed = Printed::by(&mut running);
    let first = printed.next().expect("a sample");
    assert_eq!((pages(first, "processes"), pages(first, "copied")), (2, 10), "{first}");
    end(ends);
    while pages(printed.next().expect("a sample"), "processes") == 2 {}
    puppet.writes(memory + 50 * page_bytes(), 20);
    while printed.next().is_some() {}
    let records = printed.records;
    assert!(running.wait().expect("its end").success(), "{records:?}");
    let sums = of_type(&records, "comparison-summary");
    let sums: Vec<_> = sums.into_iter().map(|sum| (pages(sum, "other"), pages(sum, "copied"))).collect();
    assert_eq!(sums, [(ends, lost), (stays, kept + 20)], "the one that has ended first");
    let [total] = of_type(&records, "comparison-total")[..] else { panic!("{records:?}") };
    let seen = ["processes", "ended", "copied"].map(|field| pages(total, field));
    assert_eq!(seen, [1, 1, kept + 20], "{total}");
    let [value] = of_type(&records, "value")[..] else { panic!("{records:?}") };
    assert_eq!(pages(value, "as_number"), until, "{value}");
    end(stays);
}

/// Pages that a fork left in the same slots of swap: the next write copies them too.
pub fn pages_in_one_slot_are_still_to_copy() {
    const NAME: &str = "account::pages_in_one_slot_are_still_to_copy";
    if !support::shows_frames() {
        return skip(NAME, "only root sees frame numbers");
    }
    let (mut puppet, memory, swap) = match Puppet::in_swap(16, 16) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    let child = puppet.does("fork", &[memory, 0]);
    let sums = |pid| fork_sums(pid, child, memory, 16);
    assert_eq!(sums(puppet.0.pid()), (16, 16, 0));
    puppet.writes(memory, 5);
    assert_eq!(sums(puppet.0.pid()), (11, 11, 5));
    _ = puppet.does("kill", &[child]);
    drop(puppet);
    drop(swap);
}

/// Pages that are shared, that the next write copies, and that are copied.
fn fork_sums(pid: u32, child: u64, memory: u64, size: u64) -> (u64, u64, u64) {
    let command = format!("compare {child} in {memory:#x}, +{}", size * page_bytes());
    let all = super::command::records(pid, &command);
    let [sums] = of_type(&all, "comparison-summary")[..] else { panic!("{all:?}") };
    (pages(sums, "shared"), pages(sums, "about_to_copy"), pages(sums, "copied"))
}

/// Pages of zeros are nobody's, whether the scan tells them or, where anything is merged on the machine, flags do.
pub fn pages_of_zeros_are_not_shared() {
    const NAME: &str = "account::pages_of_zeros_are_not_shared";
    let Some((mut puppet, written)) = with_written_pages(NAME) else {
        return;
    };
    let zeros = puppet.maps("anonymous", 50);
    puppet.reads(zeros, 50);
    let child = puppet.does("fork", &[written, 0]);
    let pid = puppet.0.pid();
    let check = |when: &str| {
        assert_eq!(fork_sums(pid, child, written, 100), (100, 100, 0), "{when}");
        assert_eq!(fork_sums(pid, child, zeros, 50), (0, 0, 0), "{when}");
    };
    check("as the machine is");
    match super::super::states::merged() {
        Ok((merging, merged, _)) => {
            check("with merged pages elsewhere");
            drop(merged);
            drop(merging);
        }
        Err(reason) => skip(&format!("{NAME} (merged)"), &reason),
    }
    _ = puppet.does("kill", &[child]);
}
