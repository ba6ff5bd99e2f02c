//! `--serve`: JSON replies to the requests of a program. A failure ends a request, never the connection.

use super::base::Session;
use super::failure::{Input, words};
use super::outcome::Outcome;
use super::requests::{AsText, Request, Requests, Unreadable};
use crate::command::LANGUAGE;
use crate::lang::script;
use crate::report::{End, EndStatus, ErrorCode, ErrorReport, Hello, RequestId};
use std::os::fd::AsFd;
use std::rc::Rc;

/// The version of the protocol. It grows only with a change that would mislead older clients.
const PROTOCOL: u32 = 1;

impl Session {
    /// Sends the first record.
    pub fn hello(&mut self) -> Outcome {
        self.say(&Hello { program: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), protocol: PROTOCOL })
    }

    /// Answers the requests of standard input until it ends or `quit` comes.
    pub fn serve(&mut self) -> Outcome {
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        let requests = input.and_then(|input| Requests::read(input, self.interrupts.raiser()));
        let requests = match requests {
            Ok(requests) => requests,
            Err(error) => return self.input_failed(&words(error)),
        };
        let interrupts = Rc::clone(&self.interrupts);
        // The lines of a block that waits for its `end`.
        let mut block = String::new();
        while let Some(Request { id, asked }) = requests.next() {
            let (text, is_line, continues, asked) = match asked {
                Ok(asked) => (asked.text, !asked.is_object, asked.continues, Ok(asked.line)),
                Err(Unreadable::Input(why)) => return self.input_failed(&why),
                Err(other) => (None, false, false, Err(other)),
            };
            let outcome = match (requests.begin(&id, &interrupts), asked) {
                (false, _) => Outcome::Interrupted,
                (true, Ok(line)) if is_line => {
                    block.push_str(&line);
                    if script::is_open(LANGUAGE, &block) {
                        block.push('\n');
                        Outcome::Done
                    } else {
                        self.answer(None, Ok(std::mem::take(&mut block)), false)
                    }
                }
                (true, asked) => self.answer(text, asked, continues),
            };
            let outcome = match (outcome, requests.end(&interrupts)) {
                // However far it came: `watch` takes an interrupt as its normal end, for others it may be a failure.
                (Outcome::Done | Outcome::Failed(_), true) => Outcome::Interrupted,
                (outcome, _) => outcome,
            };
            let ended = self.end_request(id, outcome);
            if matches!(outcome, Outcome::Quit(_) | Outcome::Closed) || ended == Outcome::Closed {
                return outcome;
            }
        }
        if block.is_empty() { Outcome::Done } else { self.answer(None, Ok(block), false) }
    }

    fn answer(&mut self, text: Option<AsText>, asked: Result<String, Unreadable>, continues: bool) -> Outcome {
        self.reply = text;
        let outcome = match asked {
            Ok(line) if line.contains('\n') => self.run_typed_lines(&line),
            Ok(line) => self.run_request(&line, continues),
            Err(Unreadable::Line(bad)) => self.fail(bad.report(Input::typed(&bad.text))),
            Err(Unreadable::Object(why) | Unreadable::Input(why)) => {
                self.fail(ErrorReport::of(why).with_code(ErrorCode::Syntax))
            }
        };
        self.reply = None;
        outcome
    }

    /// Closes the records of a request. The outcome is [`Outcome::Closed`] if nobody reads replies any more.
    pub fn end_request(&mut self, id: RequestId, outcome: Outcome) -> Outcome {
        let (status, code) = match outcome {
            Outcome::Done | Outcome::Quit(_) => (EndStatus::Ok, None),
            Outcome::Interrupted => (EndStatus::Interrupted, Some(ErrorCode::Interrupted)),
            Outcome::Failed(code) => (EndStatus::Error, Some(code)),
            Outcome::Closed => (EndStatus::Error, Some(ErrorCode::Io)),
        };
        self.say(&End { id, status, code })
    }

    pub(super) fn input_failed(&mut self, why: &str) -> Outcome {
        let message = format!("standard input cannot be read: {why}");
        self.fail(ErrorReport::of(message).with_code(ErrorCode::Io))
    }
}
