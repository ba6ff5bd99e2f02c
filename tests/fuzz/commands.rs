//! Whole commands on damaged captures and cores, in the program itself: each input gets so much memory and CPU time, and
//! an answer or an error of its own is all that may come of it.

use crate::{UNOPTIMISED, capture, core};
use rustix::process::{Resource, Rlimit};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Bytes of address space beyond what the program takes without a file.
const MEMORY: u64 = 256 << 20;
/// Address space of the program itself, with its threads.
const OWN: u64 = 256 << 20;
/// Seconds of CPU time, with optimisation.
const SECONDS: u64 = 2;

/// What is asked of each file: something of every kind of reader.
const QUESTIONS: &[&str] = &[
    "info process",
    "info threads",
    "info registers",
    "info modules",
    "info symbols a limit 3",
    "info capabilities",
    "regions by rss top 3",
    "regions full limit 3",
    "region 0x10000000 full",
    "translate 0x10000000",
    "explain 0x10000000",
    "explain huge top 3",
    "x/4xg 0x10000000",
    "telescope 0x10000000 3",
    "find/b all, 7",
    "walk all by state",
    "walk all where cached limit 3",
    "count(all where present)",
    "account",
    "account children top 3",
    "compare children top 3",
    "pins all limit 3",
    "patched",
    "map",
    "summary",
    "summary frames",
    "who 0x10000000",
    "snapshot a with content",
    "diff a",
    "ps limit 3",
];

pub fn capture_seeds() -> Vec<Vec<u8>> {
    capture::seeds()
}

pub fn core_seeds() -> Vec<Vec<u8>> {
    core::seeds()
}

/// Asks everything of the bytes, or of a capture with these bytes as its index.
pub fn feed(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("file");
    std::fs::write(&file, capture::file_of(bytes)).expect("written");
    let lines = QUESTIONS.iter().flat_map(|line| ["-ex", line]);
    let status =
        run(SECONDS * u64::from(UNOPTIMISED), &["-nx", "-batch", "--keep-going", "--no-shell", "-c"], &file, lines);
    assert!(is_fine(status), "{status}");
}

/// Whether the program has ended by itself, and not by a panic, a limit or a signal.
fn is_fine(status: ExitStatus) -> bool {
    status.signal().is_none() && status.code().is_some_and(|code| code < 100)
}

fn run<'a>(seconds: u64, options: &[&str], file: &Path, lines: impl Iterator<Item = &'a str>) -> ExitStatus {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    command.args(options).arg(file).args(lines).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SIGXCPU comes at the first limit, SIGKILL at the second.
    let seconds = Rlimit { current: Some(seconds), maximum: Some(seconds + 1) };
    let memory = Rlimit { current: Some(MEMORY + OWN), maximum: Some(MEMORY + OWN) };
    // SAFETY: two system calls.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setrlimit(Resource::Cpu, seconds)?;
            rustix::process::setrlimit(Resource::As, memory)?;
            Ok(())
        });
    }
    command.status().expect("pmdb runs")
}

/// An input that spins, and one that takes memory, are seen.
pub fn would_be_seen() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("lines");
    std::fs::write(&file, "while 1\nend\n").expect("written");
    let status = run(1, &["-nx", "-batch", "-x"], &file, std::iter::empty());
    assert_eq!(status.signal(), Some(rustix::process::Signal::XCPU.as_raw()), "an endless loop: {status}");
    assert!(!is_fine(status));
    std::fs::write(&file, "print 6*7\n").expect("written");
    let status = run(1, &["-nx", "-batch", "-x"], &file, std::iter::empty());
    assert!(status.success() && is_fine(status), "a command of its own: {status}");
}
