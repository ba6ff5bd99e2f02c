//! Command files: run line by line, as they are read.

use super::base::Session;
use super::failure::{Origin, words};
use super::lines::{self, Lines, NoLine};
use super::outcome::Outcome;
use super::running::Running;
use super::tally::Tally;
use crate::kernel::Name;
use crate::report::{ErrorPlace, ErrorReport};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How deep files may source one another. Nobody nests so deep; a chain of generated files could.
const DEEPEST: usize = 100;

impl Session {
    /// Runs a command file. `asked` is where it is asked for, if a line does.
    pub fn run_file(&mut self, path: &Path, asked: Option<ErrorPlace>) -> Outcome {
        let name = Name::new(path.as_os_str().as_bytes());
        let opened = lines::open(path)
            .map_err(|why| format!("{name} cannot be read: {why}"))
            .and_then(|file| {
                self.not_running(&name, &file)
                    .map(|identity| (file, identity))
            });
        match opened {
            Ok((file, identity)) => self.run_lines(file, Running { name, identity }),
            Err(message) => {
                let report = ErrorReport {
                    place: asked,
                    ..ErrorReport::of(message)
                };
                self.fail(report, 1)
            }
        }
    }

    /// Runs standard input as a command file.
    pub fn run_input(&mut self) -> Outcome {
        match std::io::stdin().as_fd().try_clone_to_owned() {
            Ok(input) => self.run_lines(
                input,
                Running {
                    name: "<stdin>".into(),
                    identity: None,
                },
            ),
            Err(error) => {
                let message = format!("standard input cannot be read: {}", words(error));
                self.fail(ErrorReport::of(message), 1)
            }
        }
    }

    fn not_running(&self, name: &Name, file: &OwnedFd) -> Result<Option<(u64, u64)>, String> {
        let stat = rustix::fs::fstat(file).map_err(words)?;
        let identity = Some((stat.st_dev, stat.st_ino));
        if let Some(first) = self
            .files
            .iter()
            .position(|running| running.identity == identity)
        {
            let chain: Vec<String> = self
                .files
                .iter()
                .skip(first)
                .map(|running| running.name.to_string())
                .collect();
            return Err(format!(
                "{name} would run itself without end: {} \u{2192} {name}",
                chain.join(" \u{2192} ")
            ));
        }
        if self.files.len() >= DEEPEST {
            return Err(format!(
                "{name} is not run: {DEEPEST} command files run one another already"
            ));
        }
        Ok(identity)
    }

    fn run_lines(&mut self, file: OwnedFd, running: Running) -> Outcome {
        let name = running.name.clone();
        self.files.push(running);
        let outcome = self.run_each_line(Lines::new(file), &name);
        self.files.pop();
        outcome
    }

    fn run_each_line(&mut self, mut lines: Lines, name: &Name) -> Outcome {
        let mut tally = Tally::new(self.manner.keep_going);
        // Whole, however errors are taken: a line of it could happen to be one for the shell.
        match lines.are_binary(&self.interrupts) {
            Ok(false) => {}
            Ok(true) => {
                let message = format!(
                    "{name} is not run: there are zero bytes in it, so it is a binary file, not a command file"
                );
                return self.fail(ErrorReport::of(message), 1);
            }
            Err(none) => return self.cannot_go_on(name, none),
        }
        loop {
            let line = match lines.next(&self.interrupts) {
                Ok(Some(line)) => line,
                Ok(None) => return tally.outcome(),
                Err(none) => return self.cannot_go_on(name, none),
            };
            let origin = Origin {
                file: Some(name),
                line: Some(line.number),
            };
            let outcome = match line.text {
                Ok(text) => self.run_line(&text, origin),
                Err(bad) => self.fail(bad.report(origin), 1),
            };
            if tally.add(outcome).is_break() {
                return tally.outcome();
            }
        }
    }

    fn cannot_go_on(&mut self, name: &Name, why: NoLine) -> Outcome {
        match why {
            NoLine::Stopped(_) => Outcome::Interrupted,
            NoLine::Failed(error) => {
                let message = format!("{name} cannot be read: {}", words(error));
                self.fail(ErrorReport::of(message), 1)
            }
        }
    }
}

impl lines::BadLine {
    /// What is reported of it.
    pub(super) fn report(self, origin: Origin) -> ErrorReport {
        let mut place = origin.place(&self.text, None);
        place.column = Some(self.column + 1);
        place.width = 1;
        ErrorReport {
            place: Some(place),
            ..ErrorReport::of(self.message)
        }
    }
}
