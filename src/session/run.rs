//! Lines, typed or from elsewhere: parsed, and run as jobs.

use super::base::{Repeatable, Session};
use super::block::Went;
use super::failure::Origin;
use super::job::Job;
use super::outcome::Outcome;
use crate::command::{self, Resume};
use crate::eval::{self, Value};
use crate::lang::script::Builder;
use crate::lang::{self, Assignment, Command, Line, Output, Place, Spanned, TargetName};

impl Session {
    /// Attaches, as `attach` does.
    pub fn attach(&mut self, target: TargetName) -> Outcome {
        let nowhere = Place::default();
        let command = Spanned::new(Command::Attach(Spanned::new(target, nowhere)), nowhere);
        let mut job = Job::new("", Origin::default(), &command);
        job.quiet = self.manner.quiet;
        self.run_job(&job).0
    }

    /// Gives the lines that come now what the command line has for them, as `$arg0`, `$arg1` …: each text is one value.
    pub fn give_arguments(&mut self, texts: &[String]) -> Outcome {
        let mut values = Vec::with_capacity(texts.len());
        for text in texts {
            let value = match lang::parse_arguments(text).as_slice() {
                [one] => eval::argument(one, &self.state),
                _ => Ok(Value::Text(text.clone())),
            };
            match value {
                Ok(value) => values.push(value),
                Err(error) => return self.evaluation_failed(text, Origin::default(), error),
            }
        }
        self.state.arguments.push(values);
        Outcome::Done
    }

    /// Runs one line.
    pub fn run_line(&mut self, text: &str, origin: Origin) -> Outcome {
        if let Some((name, command)) = self.user_command(text) {
            return self.run_user(text, origin, &name, &command);
        }
        match lang::parse_line(text) {
            Ok(line) => self.run_parsed(text, origin, &line).0,
            Err(error) => self.fail(origin.syntax(text, error), 1),
        }
    }

    /// Runs what was typed at the prompt: a line, or the lines of a block. An empty line is the last command again, or more of it.
    pub fn run_typed(&mut self, text: &str) -> Outcome {
        // Only here: between the lines of a file a Ctrl-C is meant for the file.
        self.interrupts.forget();
        self.typed = true;
        let outcome = self.run_entry(text);
        self.typed = false;
        outcome
    }

    fn run_entry(&mut self, text: &str) -> Outcome {
        let last = self.last.take();
        let origin = Origin::default();
        let mut builder = Builder::default();
        if builder
            .push(1, text.lines().next().unwrap_or_default())
            .is_ok()
            && builder.is_open()
        {
            return self.run_typed_block(text);
        }
        if let Some((name, command)) = self.user_command(text) {
            return self.run_user(text, origin, &name, &command);
        }
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

    /// Runs a block that was typed over several lines.
    fn run_typed_block(&mut self, text: &str) -> Outcome {
        let mut builder = Builder::default();
        let mut complete = None;
        let fault = text.lines().enumerate().find_map(|(index, line)| {
            match builder.push(index + 1, line) {
                Ok(statement) => {
                    complete = complete.take().or(statement);
                    None
                }
                Err(fault) => Some(fault),
            }
        });
        match fault.map_or_else(|| builder.finish(), Err) {
            Err(fault) => self.fail(Origin::default().syntax(&fault.text, fault.error), 1),
            Ok(()) => match complete.map(|statement| self.run_statement(&statement, None)) {
                Some(Went::On(outcome)) => outcome,
                _ => Outcome::Done,
            },
        }
    }

    fn run_again(&mut self, last: Repeatable) -> Outcome {
        let mut job = Job::new(&last.text, Origin::default(), &last.command);
        job.resume = last.resume;
        let (outcome, resume) = self.run_job(&job);
        self.last = Some(Repeatable { resume, ..last });
        outcome
    }

    pub(super) fn run_parsed(
        &mut self,
        text: &str,
        origin: Origin,
        line: &Line,
    ) -> (Outcome, Option<Resume>) {
        if let Some(refused) = self.refused_here(line) {
            let message = format!(
                "`{}` cannot stand in `foreach`: its rows are of the process that is attached",
                refused.node
            );
            let error = eval::Error::new(refused.at, message);
            return (self.evaluation_failed(text, origin, error), None);
        }
        match line {
            Line::Control(_) => (self.not_in_a_block(text, origin), None),
            // Says nothing and asks nothing of the target itself: loops need no output for it.
            Line::Command {
                command:
                    Spanned {
                        node: Command::Set(Assignment::Variable { name, value }),
                        ..
                    },
                output: Output::Screen,
            } => match command::assign(&mut self.state, &name.node, value) {
                Ok(()) => (Outcome::Done, None),
                Err(error) => (self.evaluation_failed(text, origin, error), None),
            },
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
