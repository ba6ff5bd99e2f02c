//! Every command that looks at a process answers on its capture as on the process.
//!
//! The lines are the examples of the help of all commands, so that a new command is compared as soon as it has one,
//! and a line for each key that they group by. [`APART`] has those whose answers differ, each with the reason.

use super::support::{is_root, skip};
use super::{Test, executable};
use pmdb::command::COMMANDS;
use pmdb::demo::{self, Demonstration};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

pub const TESTS: &[Test] =
    &[("capture::every_command_answers_as_on_the_process", every_command_answers_as_on_the_process)];

/// How often lines are tried whose answers on the process differ from one time to the next.
const ROUNDS: usize = 8;

/// How lines begin that are not compared, and why. The help of captures has these reasons.
const APART: &[(&str, &str)] = &[
    ("attach ", "it chooses the target"),
    ("detach", "it chooses the target"),
    ("target capture ", "it chooses the target"),
    ("capture ", "a capture is not captured"),
    ("export core ", "of a capture no core is written"),
    ("snapshot before to ", "a capture is not captured"),
    ("ps", "other processes of the machine are not in a capture"),
    ("who ", "mappings of other processes are not in a capture"),
    ("walk pfn:", "frames of other processes are not in a capture"),
    ("flags pfn:", "frames of other processes are not in a capture"),
    ("flags phys:", "frames of other processes are not in a capture"),
    ("summary pfn:", "frames of other processes are not in a capture"),
    ("regions by pss", "shares of libraries change with each process that others start or end"),
    ("pins ", "the kernel's own records are not in a capture"),
    ("translate --how", "the reads are those of the process or of the file"),
    ("info line ", "source lines are not in a capture"),
    ("find/g1 all", "the contents of the page cache are not in a capture"),
    ("find all, ", "the contents of the page cache are not in a capture"),
    ("watch ", "nothing changes in a capture"),
    ("compare children every", "nothing changes in a capture"),
    ("display rss(demo_buffer) every", "nothing changes in a capture"),
    ("soft-dirty clear", "it changes the process"),
    ("source :fork-cost", "it attaches to a process"),
    ("set logging ", "it writes a file"),
    ("map demo_buffer > ", "it writes a file"),
    ("shell ", "it runs another program"),
    ("quit", "it ends the run"),
];

/// Lines that end in the beginning of a key: each key that completion offers is one line.
const KEYS: &[&str] = &[
    "walk all by ",
    "map by ",
    "account by ",
    "regions by ",
    "compare children by ",
    "snapshot keyed\ndiff keyed by ",
];

/// Lines of which the examples have none like them.
const MORE: &[&str] = &[
    "translate $huge, +8p",
    "translate $guard",
    "translate $private_file, +8p",
    "explain $guard",
    "explain $private_file",
    "explain $shared",
    "region $shared full",
    "regions full",
    "walk all where ksm or zero",
    "walk all where cached",
    "walk demo_buffer by mapcount",
    "find demo_buffer, +16p, 1",
    "walk $huge where pmd_mapped by order, state",
    "print flags(demo_buffer)",
    "print region($shared)",
    "telescope $sp 16",
    "x/4i $pc",
    "translate 0x10",
    "info symbol $pc",
    "info address malloc",
    "summary all by region",
    "soft-dirty all",
    "decode 1 as entry",
];

/// What a line printed.
type Answer = Vec<String>;

/// Runs lines on a target, and returns what each printed.
fn answers(target: &[&str], json: bool, set_up: &str, lines: &[&str], folder: &Path) -> Vec<Answer> {
    let marked = lines.iter().enumerate().map(|(number, line)| format!("echo @@{number}\n{line}\n"));
    let script = folder.join("script");
    std::fs::write(&script, format!("{set_up}{}", marked.collect::<String>())).expect("written");
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    command.args(["-nx", "-batch", "--keep-going"]).args(target).args(json.then_some("--json")).arg("-x").arg(&script);
    command.current_dir(folder).env("COLUMNS", "200").stdin(Stdio::null());
    command.stdout(writer.try_clone().expect("a pipe")).stderr(writer);
    let mut running = command.spawn().expect("pmdb runs");
    // The writing end is open in the command too.
    drop(command);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut bytes).expect("its output");
    running.wait().expect("its end");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut all = vec![Answer::new(); lines.len()];
    let mut number = None;
    for line in text.lines() {
        let mark = if json { line.strip_prefix("{\"type\":\"text\",\"text\":\"@@") } else { line.strip_prefix("@@") };
        if let Some(mark) = mark {
            number = mark.split(|c: char| !c.is_ascii_digit()).next();
            continue;
        }
        let Some(place) = number.and_then(|number| number.parse::<usize>().ok()).and_then(|at| all.get_mut(at)) else {
            continue;
        };
        place.extend(compared(line));
    }
    assert!(number.is_some(), "{}", text.chars().take(2000).collect::<String>());
    all
}

/// A line as it is compared: without times, and without what a capture adds to it.
fn compared(line: &str) -> Option<String> {
    let mut line = line.to_owned();
    for field in ["\"capture\":", "\"age\":", "\"time\":", "\"seconds\":"] {
        if let Some((before, after)) = line.split_once(field) {
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            line = format!("{before}{}", after.trim_start_matches(','));
        }
    }
    let line = line.replace(",}", "}");
    let is_clock = |word: &str| {
        let parts: Vec<&str> = word.split(':').collect();
        parts.len() == 3 && parts.iter().all(|part| part.len() >= 2 && part.starts_with(|c: char| c.is_ascii_digit()))
    };
    let words: Vec<&str> = line.split_whitespace().map(|word| if is_clock(word) { "TIME" } else { word }).collect();
    let mut line = words.join(" ");
    // How long after a snapshot the other was taken.
    if let Some((before, after)) = line.strip_prefix("from ").and_then(|line| line.split_once(", ")) {
        let after = after.split_once(": ").map_or("", |(_, after)| after);
        line = format!("from {before}, {after}");
    }
    let is_remark = line.starts_with("running for")
        || line.contains("as they were at the capture")
        || line.contains("other registers")
        || line.contains("only these registers");
    (!line.is_empty() && !is_remark).then_some(line)
}

/// Takes the printed lines that are the same from those that are left. Returns whether all have been the same.
fn settles(left: &mut BTreeSet<usize>, then: &Answer, live: &[&Answer]) -> bool {
    for found in live {
        if *found == then {
            return true;
        }
        if found.len() == then.len() {
            left.retain(|&line| found.get(line) != then.get(line));
        }
    }
    left.is_empty()
}

/// The lines to compare.
pub fn lines(process: &[&str], folder: &Path) -> Vec<String> {
    let is_apart = |line: &str| {
        let last = line.lines().next_back().unwrap_or_default();
        APART.iter().any(|(begins, _)| line.starts_with(begins) || last.starts_with(begins))
    };
    let mut lines: Vec<String> = Vec::new();
    for about in COMMANDS.abouts() {
        let kept = about.examples.iter().map(|example| example.line).filter(|line| !is_apart(line));
        lines.extend(kept.map(str::to_owned));
    }
    let offers: Vec<String> =
        KEYS.iter().map(|line| format!("complete \"{}\"", line.lines().next_back().unwrap_or(line))).collect();
    let offers: Vec<&str> = offers.iter().map(String::as_str).collect();
    for (line, offered) in KEYS.iter().zip(answers(process, false, "snapshot keyed\n", &offers, folder)) {
        assert!(!offered.is_empty(), "{line}");
        // Of the pages of libraries they change with each process that others start or end.
        let keys = offered.iter().filter_map(|offer| offer.split_whitespace().next_back());
        let keys = keys.filter(|key| !["mapcount", "pss"].contains(&key.trim_matches('"')));
        lines.extend(keys.map(|key| format!("{line}{}", key.trim_matches('"'))));
    }
    lines.extend(MORE.iter().map(|line| (*line).to_owned()));
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}

/// The demonstration process, of a program that pmdb does not map itself, with all its processes stopped.
pub fn stopped(folder: &Path) -> Demonstration {
    use rustix::process::{Pid, Signal, kill_process};
    let copy = folder.join("demonstration");
    executable::copy(env!("CARGO_BIN_EXE_pmdb"), &copy);
    let demonstration = demo::start_program(&copy).expect("the demonstration process");
    for pid in [demonstration.pid, demonstration.child_pid] {
        kill_process(Pid::from_raw(pid as i32).expect("its number"), Signal::STOP).expect("to stop it");
        let status = || std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
        while !status().contains(") T ") {
            std::thread::yield_now();
        }
    }
    demonstration
}

/// In JSON: nothing is rounded there, and text is made of the same records. It takes a minute, and what other processes
/// map must not change meanwhile: it runs alone, where it is asked for.
fn every_command_answers_as_on_the_process() {
    const NAME: &str = "capture::every_command_answers_as_on_the_process";
    if std::env::var_os("PMDB_COMPARE_CAPTURES").is_none() {
        return skip(NAME, "it needs a quiet machine: PMDB_COMPARE_CAPTURES=1 runs it");
    }
    if !is_root() {
        return skip(NAME, "frame numbers are hidden here");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let demonstration = stopped(folder.path());
    let pid = demonstration.pid.to_string();
    let areas = demonstration
        .areas
        .iter()
        .map(|area| format!("set ${} = {}, +{}\n", area.name, area.range.start(), area.range.len()));
    let set_up = format!("set kernel records off\n{}", areas.collect::<String>());
    let file = folder.path().join("one.capture");
    let file = file.to_str().expect("a path");
    let (process, capture) = (["-p", &pid], ["-c", file]);
    let lines = lines(&process, folder.path());
    // A command of which no line is compared is apart.
    for about in COMMANDS.abouts() {
        let examples = about.examples;
        let is_compared = examples.iter().any(|example| lines.iter().any(|line| line == example.line));
        let is_apart = examples.iter().any(|example| APART.iter().any(|(begins, _)| example.line.contains(begins)));
        assert!(is_compared || is_apart, "{:?} has no example that can be compared", about.name);
    }
    let mut open: Vec<(&str, BTreeSet<usize>)> = lines.iter().map(|line| (&**line, BTreeSet::new())).collect();
    // What the process answered before the capture, from the second round on.
    let mut before: Vec<Answer> = Vec::new();
    let mut last = String::new();
    for _ in 0..ROUNDS {
        let asked: Vec<&str> = open.iter().map(|(line, _)| *line).collect();
        let mut write = Command::new(env!("CARGO_BIN_EXE_pmdb"));
        let grab = format!("capture {file} --overwrite children with memory, dontdump");
        let written = write.args(["-nx", "-batch", "-p", &pid, "-ex", &grab]).output().expect("pmdb runs");
        assert!(written.status.success(), "{written:?}");
        let then = answers(&capture, true, &set_up, &asked, folder.path());
        let after = answers(&process, true, &set_up, &asked, folder.path());
        last.clear();
        let mut next = Vec::new();
        let mut all = then.iter().zip(after).enumerate();
        open.retain_mut(|(line, left)| {
            let (at, (then, after)) = all.next().expect("an answer");
            let earlier = before.get(at);
            if earlier.is_none() {
                left.extend(0..after.len().max(1));
            }
            let live: Vec<&Answer> = earlier.into_iter().chain([&after]).collect();
            let is_settled = settles(left, then, &live);
            if !is_settled {
                last += &difference(line, &after, then);
                next.push(after);
            }
            !is_settled
        });
        if open.is_empty() {
            break;
        }
        before = next;
    }
    assert!(open.is_empty(), "never the same:\n{last}");
    drop(demonstration);
}

/// The first lines that differ.
fn difference(line: &str, live: &Answer, captured: &Answer) -> String {
    let most = live.len().max(captured.len());
    let differs = (0..most).filter(|&at| live.get(at) != captured.get(at)).take(3);
    let rows = differs.map(|at| format!("  {:?}\n  {:?}\n", live.get(at), captured.get(at)));
    format!("{line}: {} and {} lines\n{}", live.len(), captured.len(), rows.collect::<String>())
}
