//! `--serve`: JSON replies to the lines of a program. A failure ends a request, never the conversation.

use super::base::Session;
use super::failure::{Origin, words};
use super::lines::{Lines, NoLine};
use super::outcome::Outcome;
use crate::report::{End, ErrorReport, Record};
use std::os::fd::AsFd;

impl Session {
    /// Answers the lines of standard input, numbered from 1, until it ends or `quit` comes.
    pub fn serve(&mut self) -> Outcome {
        let input = match std::io::stdin().as_fd().try_clone_to_owned() {
            Ok(input) => input,
            Err(error) => return self.input_failed(&words(error)),
        };
        let mut lines = Lines::new(input);
        loop {
            let line = match lines.next(&self.interrupts) {
                Ok(Some(line)) => line,
                Ok(None) => return Outcome::Done,
                // Ctrl-C between two requests stops nothing: there is nothing to stop.
                Err(NoLine::Stopped(_)) => {
                    self.interrupts.forget();
                    continue;
                }
                Err(NoLine::Failed(error)) => return self.input_failed(&words(error)),
            };
            let origin = Origin::default();
            let outcome = match line.text {
                Ok(text) => self.run_line(&text, origin),
                Err(bad) => self.fail(bad.report(origin), 1),
            };
            let ended = self.end_request(line.number as u64, outcome);
            if matches!(outcome, Outcome::Quit(_) | Outcome::Closed) || ended == Outcome::Closed {
                return outcome;
            }
        }
    }

    /// Closes the records of a request. The outcome is [`Outcome::Closed`] if nobody reads replies any more.
    pub fn end_request(&mut self, id: u64, outcome: Outcome) -> Outcome {
        let status = match outcome {
            Outcome::Done | Outcome::Quit(_) => "ok",
            Outcome::Failed(_) | Outcome::Interrupted | Outcome::Closed => "error",
        };
        self.say(Record::End(End { id, status }))
    }

    fn input_failed(&mut self, why: &str) -> Outcome {
        let message = format!("standard input cannot be read: {why}");
        self.fail(ErrorReport::of(message), 1)
    }
}
