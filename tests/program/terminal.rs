//! A program at a terminal. What it prints is read as soon as it comes: rexpect, which starts it, would look only every
//! tenth of a second.
#![allow(unsafe_code)]

use regex_lite::Regex;
use rexpect::process::{PtyProcess, Signal, WaitStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// A program at a terminal of its own.
pub struct Session {
    process: PtyProcess,
    terminal: File,
    /// What it has printed since the last text that was expected.
    printed: Vec<u8>,
    has_ended: bool,
    /// Its number may be that of another process.
    is_reaped: bool,
    patience: Duration,
}

/// What did not come, and what came instead.
pub type Missing = String;

impl Session {
    /// Starts the program. `patience` is reached only if an expected text does not come.
    pub fn start(mut command: Command, patience: Duration) -> Session {
        let all_to_default = || {
            for signal in 1..32 {
                // SAFETY: it sets how a signal is handled, which is allowed between fork and exec.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // At a terminal no signal is ignored, even if the tests were started with nohup.
        // SAFETY: it calls nothing but the above.
        unsafe { command.pre_exec(all_to_default) };
        let process = PtyProcess::new(command).expect("it starts");
        let terminal = process.get_file_handle().expect("a terminal");
        rustix::fs::fcntl_setfl(&terminal, OFlags::RDWR | OFlags::NONBLOCK).expect("a terminal");
        Session { process, terminal, printed: Vec::new(), has_ended: false, is_reaped: false, patience }
    }

    /// Sends a signal to the program.
    pub fn signal(&mut self, signal: Signal) {
        self.process.signal(signal).expect("it is there");
    }

    /// How it ends.
    pub fn ended(&mut self) -> WaitStatus {
        self.is_reaped = true;
        self.process.wait().expect("it ends")
    }

    /// Types these keys.
    pub fn send(&mut self, keys: &str) {
        self.paste(keys.as_bytes());
    }

    /// Types these keys, and Enter.
    pub fn send_line(&mut self, keys: &str) {
        self.send(&format!("{keys}\n"));
    }

    /// Types Ctrl-C.
    pub fn send_interrupt(&mut self) {
        self.send("\u{3}");
    }

    /// Types all of it at once, as a terminal does.
    pub fn paste(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + self.patience;
        while !bytes.is_empty() {
            // A program that prints what is typed reads no more until that is read.
            match self.terminal.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    assert!(self.wait(PollFlags::IN | PollFlags::OUT, deadline), "it does not read");
                    if self.wait(PollFlags::IN, Instant::now()) {
                        self.read(deadline);
                    }
                }
                Err(error) => panic!("it does not read: {error}"),
            }
        }
    }

    /// What comes before this text.
    pub fn expect(&mut self, text: &str) -> Result<String, Missing> {
        let find = |printed: &[u8]| {
            let start = printed.windows(text.len()).position(|part| part == text.as_bytes())?;
            Some(start..start + text.len())
        };
        self.until(find).map(|(before, _)| before).map_err(|printed| format!("{text:?} did not come: {printed}"))
    }

    /// What comes before a text that matches, and that text.
    pub fn expect_match(&mut self, pattern: &str) -> Result<(String, String), Missing> {
        let pattern = Regex::new(pattern).expect("a pattern");
        let find = |printed: &[u8]| {
            let text = std::str::from_utf8(printed).ok()?;
            pattern.find(text).map(|found| found.range())
        };
        self.until(find).map_err(|printed| format!("{pattern} did not come: {printed}"))
    }

    /// What comes before its end.
    pub fn expect_end(&mut self) -> Result<String, Missing> {
        let deadline = Instant::now() + self.patience;
        while self.read(deadline) {}
        let printed = String::from_utf8_lossy(&std::mem::take(&mut self.printed)).into_owned();
        if self.has_ended { Ok(printed) } else { Err(format!("it did not end: {printed}")) }
    }

    fn until(&mut self, find: impl Fn(&[u8]) -> Option<Range<usize>>) -> Result<(String, String), Missing> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(found) = find(&self.printed) {
                let rest = self.printed.split_off(found.end);
                let matched = self.printed.split_off(found.start);
                let before = std::mem::replace(&mut self.printed, rest);
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                return Ok((text(before), text(matched)));
            }
            if !self.read(deadline) {
                return Err(format!("{:?}", String::from_utf8_lossy(&self.printed)));
            }
        }
    }

    /// Waits for the terminal until then.
    fn wait(&self, for_what: PollFlags, deadline: Instant) -> bool {
        let rest = deadline.saturating_duration_since(Instant::now());
        let rest = Timespec::try_from(rest).expect("a short time");
        poll(&mut [PollFd::new(&self.terminal, for_what)], Some(&rest)).expect("poll") > 0
    }

    /// Reads what there is, and waits for it until then. False if nothing came.
    fn read(&mut self, deadline: Instant) -> bool {
        if !self.wait(PollFlags::IN, deadline) {
            return false;
        }
        let mut bytes = [0; 4096];
        // EIO: no program has the terminal open any more.
        let length = self.terminal.read(&mut bytes).unwrap_or(0);
        self.has_ended = length == 0;
        self.printed.extend(&bytes[..length]);
        !self.has_ended
    }
}

impl Drop for Session {
    /// An interactive shell ignores SIGTERM, which rexpect sends first.
    fn drop(&mut self) {
        if !self.is_reaped && self.process.signal(Signal::SIGKILL).is_ok() {
            self.ended();
        }
    }
}
