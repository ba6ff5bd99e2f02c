//! A command that lasts: how it is ended from outside.

use crate::run::Home;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};

const WATCH: [&str; 6] = ["--json", "-batch", "-p", "self", "-ex", "watch [stack]"];

#[test]
fn looks_without_a_time_between_them_are_refused() {
    let home = Home::new();
    for every in ["0s", "0ms", "0.5ms"] {
        let line = format!("watch [stack] every {every} for 1ms");
        home.run(&["self", "-batch", "-ex", &line]).failed(1, "`every` must be at least 1 ms");
    }
    home.run(&["self", "-batch", "-ex", "watch [stack] every 1ms for 1ms"]).is_fine();
}

#[test]
fn ctrl_c_ends_a_watch_with_its_summary_and_the_next_command_runs() {
    let home = Home::new();
    let mut child = home.command(&[&WATCH[..], &["-ex", "print 1"]].concat()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    until_started(&mut out);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let objects: Vec<Value> = rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = objects.iter().find(|object| object["type"] == "watch-summary").expect("a summary");
    assert_eq!(summary["ended"], "interrupted");
    assert_eq!(objects.last().map(|last| &last["type"]), Some(&Value::from("value")));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A command file must not go on as if the condition had come true.
#[test]
fn an_until_that_can_no_longer_come_true_ends_the_run() {
    let home = Home::new();
    let mut waits = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = waits.id().to_string();
    let until = "watch [stack] every 10ms until none present";
    let watch = ["--json", "-batch", "-p", &pid, "-ex", until, "-ex", "print 1"];
    let ends = |end: &mut dyn FnMut(&std::process::Child)| {
        let mut child = home.command(&watch).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        until_started(&mut out);
        end(&child);
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("\"value\""), "{rest}");
        (child.wait_with_output().unwrap(), rest)
    };
    let (interrupted, rest) = ends(&mut |child| {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    });
    assert!(rest.contains("\"ended\":\"interrupted\""), "{rest}");
    assert_ne!(interrupted.status.code(), Some(0));
    let (gone, rest) = ends(&mut |_| {
        drop(waits.stdin.take());
        waits.wait().unwrap();
    });
    assert!(rest.contains("\"ended\":\"exited\""), "{rest}");
    assert_eq!(gone.status.code(), Some(3));
}

#[test]
fn a_watch_that_nobody_reads_ends_although_nothing_happens() {
    let home = Home::new();
    let mut child = home.command(&WATCH).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    until_started(&mut out);
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn nothing_is_waited_for_in_vain() {
    let home = Home::new();
    home.run(&["-batch", "-p", "self", "-ex", "watch [stack] count 0"]).failed(1, "`count` must be at least 1");
    home.run(&["-batch", "-p", "self", "-ex", "walk [stack] limit 0"]).failed(1, "`limit` must be at least 1");
    home.run(&["-batch", "-p", "self", "-ex", "watch [stack] for 0s"]).failed(1, "`for` must be longer than 0");
}

#[test]
fn copies_that_another_process_makes_are_said_not_to_show_only_if_it_can() {
    let home = Home::new();
    // No other process has its memory.
    for (line, is_said) in [
        ("watch [stack] every 1ms for 2ms", false),
        ("watch all every 10ms for 20ms by region", false),
        ("watch [stack] every 1ms for 2ms with mapcount", false),
        ("watch [vdso] every 1ms for 2ms", false),
    ] {
        let run = home.run(&["--json", "-batch", "-p", "self", "-ex", line]);
        run.is_fine();
        let start = run.out.lines().find(|line| line.contains("\"watch-start\"")).expect("its first record");
        assert_eq!(start.contains("a copy by another process"), is_said, "{line}: {start}");
    }
}

/// Reads up to the record with which a watch begins.
fn until_started(out: &mut impl BufRead) {
    let mut line = String::new();
    while !line.contains("\"watch-start\"") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "it ended too early");
    }
}

#[test]
fn every_kind_of_range_is_watched_whole() {
    let home = Home::new();
    // A page of it is present: the pages of the range are sampled.
    for range in ["all", "[stack]", "pmdb", "pmdb[0]", "region(demo_buffer)", "demo_buffer, +1"] {
        let line = format!("watch {range} for 5s until present");
        let run = home.run(&["--json", "-batch", "demo", "-ex", &line]);
        assert_eq!(run.status, Some(0), "{line}: {run:?}");
        let objects: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let field = |kind: &str, field: &str| {
            let found = objects.iter().find(|object| object["type"] == kind);
            found.map(|object| object[field].clone())
        };
        assert_ne!(field("watch-start", "pages"), Some(0.into()), "{line}");
        assert_eq!(field("watch-summary", "ended"), Some("until".into()), "{line}");
    }
}
