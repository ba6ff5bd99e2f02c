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
    "heap",
    "heap by size",
    "heap by region",
    "heap 0",
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
    let options = ["-nx", "-batch", "--keep-going", "--no-shell", "-c"];
    let ended = run([SECONDS * u64::from(UNOPTIMISED), MEMORY + OWN], &options, &file, lines);
    assert!(ended.is_fine(), "{ended:?}");
}

/// How the program has ended, and what it has said about that.
#[derive(Debug)]
struct Ended {
    status: ExitStatus,
    errors: String,
}

impl Ended {
    /// Whether it has ended by itself, and not by a limit or a signal, and without a panic: in a command that is an
    /// error like any other, but for its words.
    fn is_fine(&self) -> bool {
        let by_itself = self.status.signal().is_none() && self.status.code().is_some_and(|code| code < 100);
        by_itself && !self.errors.contains("pmdb has a fault") && !self.errors.contains("panicked")
    }
}

/// Runs the program with so much processor time, in seconds, and memory.
fn run<'a>([seconds, memory]: [u64; 2], options: &[&str], file: &Path, lines: impl Iterator<Item = &'a str>) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    command.args(options).arg(file).args(lines).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SIGXCPU comes at the first limit, SIGKILL at the second.
    let seconds = Rlimit { current: Some(seconds), maximum: Some(seconds + 1) };
    let memory = Rlimit { current: Some(memory), maximum: Some(memory) };
    // SAFETY: two system calls.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setrlimit(Resource::Cpu, seconds)?;
            rustix::process::setrlimit(Resource::As, memory)?;
            Ok(())
        });
    }
    let output = command.output().expect("pmdb runs");
    Ended { status: output.status, errors: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// An input that spins is seen, one that takes more memory than there may be, and one that makes a command panic.
pub fn would_be_seen() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("lines");
    let ended = |lines: &str, limits| {
        std::fs::write(&file, lines).expect("written");
        run(limits, &["-nx", "-batch", "-x"], &file, std::iter::empty())
    };
    let spinning = ended("while 1\nend\n", [1, MEMORY + OWN]);
    assert_eq!(spinning.status.signal(), Some(rustix::process::Signal::XCPU.as_raw()), "an endless loop: {spinning:?}");
    assert!(!spinning.is_fine());
    // Each line takes a part of what the first may take alone.
    let large = format!("set $a = \"{}\"\n", "x".repeat(1 << 20)) + &"print $a == $a\n".repeat(4);
    let starved = ended(&large, [10, 24 << 20]);
    assert!(!starved.is_fine(), "too much memory: {starved:?}");
    let fault =
        Ended { status: spinning.status, errors: "error: pmdb has a fault, and the command has no answer".into() };
    assert!(!fault.is_fine());
    let working = ended("print 6*7\n", [1, MEMORY + OWN]);
    assert!(working.status.success() && working.is_fine(), "a command of its own: {working:?}");
}
