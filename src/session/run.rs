//! Lines, typed or from elsewhere: parsed, and run as jobs.

use super::base::{Repeatable, Session};
use super::failure::Origin;
use super::job::Job;
use super::outcome::Outcome;
use crate::command::Resume;
use crate::lang::{self, Command, Line, Output, Place, Spanned, TargetName};

impl Session {
    /// Attaches, as `attach` does.
    pub fn attach(&mut self, target: TargetName) -> Outcome {
        let nowhere = Place::default();
        let command = Spanned::new(Command::Attach(Spanned::new(target, nowhere)), nowhere);
        let mut job = Job::new("", Origin::default(), &command);
        job.quiet = self.manner.quiet;
        self.run_job(&job).0
    }

    /// Runs one line.
    pub fn run_line(&mut self, text: &str, origin: Origin) -> Outcome {
        match lang::parse_line(text) {
            Ok(line) => self.run_parsed(text, origin, &line).0,
            Err(error) => self.fail(origin.syntax(text, error), 1),
        }
    }

    /// Runs a line typed at the prompt; an empty one is the last command again, or more of it.
    pub fn run_typed(&mut self, text: &str) -> Outcome {
        // Only here: between the lines of a file a Ctrl-C is meant for the file.
        self.interrupts.forget();
        let last = self.last.take();
        let origin = Origin::default();
        if text.trim().is_empty() {
            return match last {
                Some(last) => self.run_again(last),
                None => Outcome::Done,
            };
        }
        let line = match lang::parse_line(text) {
            Ok(line) => line,
            Err(error) => return self.fail(origin.syntax(text, error), 1),
        };
        let (outcome, resume) = self.run_parsed(text, origin, &line);
        self.last = match line {
            // What goes to the shell or into a file is never done twice by one key.
            Line::Command {
                command,
                output: Output::Screen,
            } => Some(Repeatable {
                text: text.to_owned(),
                command,
                resume,
            }),
            _ => None,
        };
        outcome
    }

    fn run_again(&mut self, last: Repeatable) -> Outcome {
        let mut job = Job::new(&last.text, Origin::default(), &last.command);
        job.resume = last.resume;
        let (outcome, resume) = self.run_job(&job);
        self.last = Some(Repeatable { resume, ..last });
        outcome
    }

    fn run_parsed(&mut self, text: &str, origin: Origin, line: &Line) -> (Outcome, Option<Resume>) {
        match line {
            Line::Empty | Line::Comment => (Outcome::Done, None),
            Line::Shell(shell_text) => (self.run_shell(text, origin, shell_text), None),
            Line::Command { command, output } => {
                let mut job = Job::new(text, origin, command);
                job.output = output;
                self.run_job(&job)
            }
        }
    }
}
