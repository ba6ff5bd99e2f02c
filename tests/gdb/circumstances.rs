//! Inferiors, unusual settings of gdb, and killed processes.

use super::session::{PLUGIN, PMDB, compiled};
use crate::skips::skip;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const AT_WORK: &[&str] = &["break turn if number == 7", "run"];
const COUNTED: &str = "7 present, 9 untouched";

#[test]
fn a_pmdb_that_is_lost_or_hangs_is_started_again() {
    let Some(program) = compiled("a_pmdb_that_is_lost", "pages.c") else {
        return;
    };
    program.check(
        AT_WORK,
        &[
            ("pmdb walk *pool@16 by state", COUNTED),
            ("python import os, signal, pmdb_gdb; os.kill(pmdb_gdb.server().child.pid, signal.SIGKILL)", ""),
            ("pmdb walk *pool@16 by state", COUNTED),
            ("pmdb track *pool@16", "tracking"),
            ("python os.kill(pmdb_gdb.server().child.pid, signal.SIGKILL)", ""),
            ("next", "are reported from now on"),
            ("next", "19\t"),
            ("python pmdb_gdb.PATIENCE = 0.2; os.kill(pmdb_gdb.server().child.pid, signal.SIGSTOP)", ""),
            ("print $_resident(pool, 8*page)", "= 8"),
        ],
    );
}

#[test]
fn each_inferior_has_its_own_through_fork_exec_and_kill() {
    let Some(program) = compiled("through_fork_exec_and_kill", "family.c") else {
        return;
    };
    program.check(
        &["set follow-fork-mode child", "break forked", "run", "break wrote"],
        &[
            ("pmdb walk shared, +4*4096 by state", "4 present"),
            ("continue", "wrote ()"),
            ("pmdb walk shared, +4*4096 by state", "4 present"),
            ("continue", "executing new program"),
            ("pmdb explain $sp", "[stack]"),
            ("pmdb explain shared", "in no region"),
            ("python import pmdb_gdb; print(len(pmdb_gdb.SERVERS), \"running\")", "1 running"),
            ("kill", "killed"),
            ("python import pmdb_gdb; print(len(pmdb_gdb.SERVERS), \"running\")", "0 running"),
            ("pmdb explain 0", "the program is not being run"),
            ("add-inferior -exec program", "Added inferior 3"),
            ("inferior 3", "Switching to inferior 3"),
            ("pmdb explain 0", "the program is not being run"),
        ],
    );
}

#[test]
fn a_process_that_runs_can_be_asked_and_so_can_others_beside_gdb() {
    let Some(program) = compiled("a_process_that_runs", "pages.c") else {
        return;
    };
    let beside = "python import subprocess, pmdb_gdb; print(subprocess.run([pmdb_gdb.program(), str(gdb.selected_inferior().pid), 'print', '6*7'], capture_output=True, text=True).stdout)";
    program.check(&[AT_WORK, &["pmdb explain pool"]].concat(), &[(beside, "$1 = 42")]);
    program.check(
        &["set args wait", "set non-stop on", "run &"],
        &[("pmdb -- walk [stack] by state", "present"), ("kill", "")],
    );
    let running = [
        "set args wait",
        "set non-stop on",
        "break turn if number == 7",
        "run",
        "set $pool = (long)pool",
        "continue &",
    ];
    program.check(
        &running,
        &[
            ("info threads", "(running)"),
            ("pmdb walk $pool, +16*4096", "present"),
            ("print $_resident($pool, 7*4096)", "= 7"),
            ("print $_page_state($pool)", "\"present\""),
            ("kill", "killed"),
        ],
    );
}

#[test]
fn a_process_can_be_attached_to_left_and_attached_to_again() {
    let test = "a_process_can_be_attached_to";
    let Some(program) = compiled(test, "pages.c") else {
        return;
    };
    let mut waiting = Command::new(&program.path);
    let waiting = waiting.arg("wait").stdout(Stdio::piped()).spawn();
    let mut waiting = waiting.expect("it starts");
    let mut ready = [0];
    let mut said = waiting.stdout.take().expect("its output");
    said.read_exact(&mut ready).expect("it says that it waits");
    let attach = format!("attach {}", waiting.id());
    let lines = [&attach, "pmdb walk *pool@16 by state", "pmdb track *pool@16"];
    let left = [
        "detach",
        "python import pmdb_gdb; print(len(pmdb_gdb.SERVERS), \"running\")",
        "info pmdb track",
        "pmdb walk pool",
    ];
    let answers = program.answers(&[&lines[..], &left, &lines[..2], &["kill"]].concat());
    waiting.kill().expect("it is still there, or was");
    waiting.wait().expect("it ends");
    if answers[0].contains("not permitted") {
        return skip(test, "this user may not attach to another process");
    }
    let expected = [
        (1, "8 present, 8 untouched"),
        (2, "tracking"),
        (3, "detached"),
        (4, "0 running"),
        (5, "No range is tracked."),
        (6, "the program is not being run"),
        (8, "8 present, 8 untouched"),
    ];
    for (at, wanted) in expected {
        assert!(answers[at].contains(wanted), "{at}: {wanted}: {answers:#?}");
    }
}

#[test]
fn settings_and_languages_change_nothing() {
    let Some(program) = compiled("settings_and_languages", "pages.c") else {
        return;
    };
    let mut lines: Vec<String> = AT_WORK.iter().map(|line| (*line).to_owned()).collect();
    let settings = [
        "set print elements 1",
        "set print object on",
        "set print address off",
        "set print symbol off",
        "set output-radix 16",
        "set max-value-size 16",
        "set width 1",
        "set width 0",
        "set height 1",
        "set style enabled off",
        "set host-charset ASCII",
    ];
    let languages = ["c", "c++", "rust", "go", "asm", "minimal", "d", "fortran", "pascal"];
    let languages = languages.map(|language| format!("set language {language}"));
    for setting in settings.map(str::to_owned).iter().chain(&languages) {
        lines.push(setting.clone());
        lines.push("pmdb walk $address, +65536 by state".to_owned());
        lines.push("pmdb who".to_owned());
    }
    lines.insert(AT_WORK.len(), "set $address = (unsigned long)pool".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let answers = program.answers(&lines);
    let width = lines.iter().position(|line| *line == "set width 1").expect("it is set");
    for (at, (line, answer)) in lines.iter().zip(&answers).enumerate() {
        // One character is enough for nothing.
        if line.starts_with("pmdb walk") && at != width + 1 {
            assert!(answer.contains(COUNTED), "{}: {answer}", lines[at - 1]);
        }
        if *line == "pmdb who" {
            assert!(answer.contains("expected"), "{}: {answer}", lines[at - 2]);
        }
    }
}

#[test]
fn one_pmdb_is_started_in_a_hook_before_the_commands_of_a_breakpoint() {
    let Some(program) = compiled("one_pmdb_is_started", "pages.c") else {
        return;
    };
    let before = [
        "python gdb.execute('define hook-stop\\nprint $_resident(pool, 65536)\\nend')",
        "python at = gdb.Breakpoint('turn'); at.condition = 'number == 7'; at.commands = 'pmdb -- print 6*7'",
        "python import pmdb_gdb; started, start = [], pmdb_gdb.Server.__init__",
        "python pmdb_gdb.Server.__init__ = lambda held, pid=None: (started.append(pid), start(held, pid))[1]",
        "run",
    ];
    program.check(&before, &[("python print(len(started), 'started')", "1 started")]);
}

#[test]
fn without_pmdb_each_command_says_how_it_is_found() {
    let Some(program) = compiled("without_pmdb", "pages.c") else {
        return;
    };
    let mut gdb = program.gdb();
    gdb.env("PATH", "/usr/bin:/bin");
    let found = format!("set pmdb program {PMDB}");
    let lines = [
        "pmdb info process",
        "pmdb walk pool",
        "info pmdb tracks",
        &found,
        "pmdb info process",
        "pmdb info all",
        // A program that does not answer leaves the one before.
        "set pmdb program /nonexistent",
        "set pmdb program pmdb",
        "show pmdb program",
    ];
    let plugin = program.folder.path().join("plugin.py");
    std::fs::copy(PLUGIN, &plugin).expect("a copy");
    let answers = program.answers_after(gdb, &plugin.display().to_string(), "set pmdb program PATH", &lines);
    for answer in &answers[..2] {
        assert!(answer.contains("pmdb is not in PATH"), "{answers:#?}");
    }
    assert!(answers[2].contains("info pmdb has no subcommand tracks"), "{answers:#?}");
    assert!(answers[4].contains("the program is not being run"), "{answers:#?}");
    assert!(answers[5].contains("pmdb info has no subcommand all"), "{answers:#?}");
    assert!(!answers[6].trim().is_empty() && answers[7].contains("absolute path"), "{answers:#?}");
    assert!(answers[8].contains(&format!("pmdb is {PMDB}")), "{answers:#?}");
}

#[test]
fn nothing_is_left_when_gdb_is_killed() {
    let Some(program) = compiled("nothing_is_left", "pages.c") else {
        return;
    };
    let mut gdb = program
        .gdb_at_work()
        .args([
            "-ex",
            "python import pmdb_gdb; print('pmdb is', pmdb_gdb.server().child.pid)",
            "-ex",
            "pmdb watch *pool@16 every 1h",
        ])
        .arg(&program.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("gdb starts");
    let mut output = BufReader::new(gdb.stdout.take().expect("its output")).lines();
    let mut line = |with: &str| loop {
        let line = output.next().expect("more output").expect("text");
        if let Some((_, behind)) = line.split_once(with) {
            return behind.trim().to_owned();
        }
    };
    let pmdb = line("pmdb is").parse().ok().and_then(Pid::from_raw).expect("a process");
    let handle = pidfd_open(pmdb, PidfdFlags::empty()).expect("it runs");
    line("watching");
    gdb.kill().expect("gdb is killed");
    gdb.wait().expect("gdb ends");
    let mut ended = [PollFd::new(&handle, PollFlags::IN)];
    let deadline = Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(poll(&mut ended, Some(&deadline)).expect("a poll"), 1, "pmdb goes on without gdb");
}

#[test]
fn ctrl_c_ends_a_watch_and_leaves_both_alive() {
    let Some(program) = compiled("ctrl_c_ends_a_watch", "pages.c") else {
        return;
    };
    let mut gdb = program
        .gdb_at_work()
        .args(["-batch", "-ex", "pmdb watch *pool@16 every 1h", "-ex", "pmdb walk *pool@16 by state"])
        .arg(&program.path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gdb starts");
    let mut lines = BufReader::new(gdb.stdout.take().expect("its output")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("watching")));
    let pid = i32::try_from(gdb.id()).ok().and_then(Pid::from_raw).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.starts_with("watched for")), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("8 present, 8 untouched")), "{rest:?}");
    assert!(gdb.wait().expect("gdb ends").success());
}

/// The plugin is a module: neither it nor the user's own Python changes the names of the other.
#[test]
fn the_names_of_the_users_python_stay_the_users() {
    let Some(program) = compiled("the_names_of_the_users_python", "pages.c") else {
        return;
    };
    program.check(
        AT_WORK,
        &[
            ("python place = find = length = ask = run = write = 5", ""),
            ("pmdb walk *pool@16 by state", COUNTED),
            ("print $_resident(pool, 8*page)", "= 7"),
            ("pmdb run print 6*7", "42  (0x2a)"),
            ("thread apply all -q -s pmdb run print 6*7", "42  (0x2a)"),
            ("print $_resident(pool, 1.5)", "a length is a whole number of bytes"),
            (&format!("source {PLUGIN}"), ""),
            ("pmdb walk *pool@16 by state", COUNTED),
            ("python print('Server' in globals(), 'CLAUSES' in globals(), place + write)", "False False 10"),
        ],
    );
}
