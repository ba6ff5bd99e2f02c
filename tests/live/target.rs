//! The target processes of tests: this program again, running a scenario.
//!
//! A scenario sets something up and [`announce`]s what, as a line of words; then it [`wait`]s for lines from the test.
//! When these end, because the test is over in whatever way, the process ends.

use super::Scenario;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Lines, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SCENARIO: &str = "PMDB_LIVE_SCENARIO";

pub const SCENARIOS: &[Scenario] = &[("idle", |_| {
    announce("ready");
    wait();
})];

/// The scenario that this process was started for, if it was.
pub fn asked_for() -> Option<String> {
    std::env::var(SCENARIO).ok()
}

/// Runs it.
pub fn play(name: &str, scenarios: &[&[Scenario]]) {
    use rustix::process::{Signal, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL)).expect("to die with the test");
    let mut all = scenarios.iter().flat_map(|list| list.iter());
    let (_, scenario) = all.find(|(one, _)| *one == name).expect("a known scenario");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    scenario(&arguments);
}

/// Says something to the test, as one line.
pub fn announce(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").expect("a test that listens");
    out.flush().expect("a test that listens");
}

/// Waits for a line from the test; `None` when there will be no more.
pub fn wait() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).expect("standard input");
    (read > 0).then(|| line.trim_end().to_owned())
}

/// The command that runs a scenario.
pub fn command(scenario: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(SCENARIO, scenario).args(arguments);
    command
}

/// The same with a copy of this program.
pub fn command_as(copy: &std::path::Path, scenario: &str) -> Command {
    let mut command = Command::new(copy);
    command.env(SCENARIO, scenario);
    command
}

/// The same, run by another program that becomes it.
pub fn command_by(words: &[&str], scenario: &str) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command.arg(std::env::current_exe().expect("this program"));
    command.env(SCENARIO, scenario);
    command
}

/// Has a command run in a namespace of another process, which `/proc/PID/ns` names so.
pub fn enter_namespace(command: &mut Command, pid: u32, name: &str) {
    let namespace = File::open(format!("/proc/{pid}/ns/{name}")).expect("its namespace");
    let enter = move || {
        // SAFETY: a system call without memory.
        match unsafe { libc::setns(namespace.as_raw_fd(), 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: it makes one system call.
    unsafe { command.pre_exec(enter) };
}

/// A process that runs a scenario. It ends when this is dropped.
pub struct Target {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Target {
    /// Starts one. It is ready when it has announced something: ask with [`line`](Self::line) or
    /// [`words`](Self::words).
    pub fn start(scenario: &str, arguments: &[&str]) -> Self {
        Self::spawn(&mut command(scenario, arguments))
    }

    /// Starts one whose command was changed.
    pub fn spawn(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = loop {
            match piped.spawn() {
                // Another test starts a program just now: until it executes, it has the file open that this test has
                // written.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                started => break started.expect("a target"),
            }
        };
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output")).lines();
        Target { child, input, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it announces.
    pub fn line(&mut self) -> String {
        let next = self.output.next().expect("the target ended without a word");
        next.expect("a line of text")
    }

    /// The next line; `None` once it has ended.
    pub fn line_if_alive(&mut self) -> Option<String> {
        self.output.next().map(|next| next.expect("a line of text"))
    }

    /// The next line, each word of it a number (`0x…` or decimal).
    pub fn numbers(&mut self) -> Vec<u64> {
        let line = self.line();
        let number = |word: &str| match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let numbers: Result<_, _> = line.split_whitespace().map(number).collect();
        numbers.unwrap_or_else(|_| panic!("not numbers: {line}"))
    }

    /// Tells it to go on.
    pub fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input is open");
        writeln!(input, "{line}").expect("a target that listens");
    }

    /// Stops it, and waits until it stands still: after its announcement it runs on until it waits for the test.
    pub fn stop(&self) {
        use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
        let pid = Pid::from_raw(self.pid() as i32).expect("its number");
        kill_process(pid, Signal::STOP).expect("to stop it");
        waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).expect("it to stand still");
    }

    /// Ends it, and waits until it has exited.
    pub fn end(&mut self) {
        self.input = None;
        self.child.wait().expect("its end");
    }

    /// Attaches to it.
    pub fn attach(&self) -> pmdb::process::Target {
        pmdb::process::Target::attach(self.pid()).expect("to attach to a child")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.input = None;
        // It may be stopped, or wait for something else.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
