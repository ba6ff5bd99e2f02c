//! `--serve`: JSON replies to the requests of a program. A failure ends a request, never the connection. A separate
//! thread reads the requests, command lines or objects, so that one can be cancelled while it runs.

use super::base::{Session, TextReply};
use super::interrupt::{InterruptHandle, Interrupts};
use super::lines::{BinaryLine, LineReader, NoLine};
use super::outcome::{Input, LineOutcome, words};
use crate::command::LANGUAGE;
use crate::lang::script;
use crate::report::{End, EndStatus, ErrorCode, ErrorReport, Hello, RequestId};
use serde::Deserialize;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The version of the protocol. It grows only with a change that would mislead older clients.
const PROTOCOL: u32 = 1;

impl Session {
    /// Sends the first record.
    pub fn hello(&mut self) -> LineOutcome {
        self.print(&Hello { program: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), protocol: PROTOCOL })
    }

    /// Answers the requests of standard input until it ends or `quit` comes.
    pub fn serve(&mut self) -> LineOutcome {
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        let requests = input.and_then(|input| Requests::read(input, self.interrupts.raiser()));
        let requests = match requests {
            Ok(requests) => requests,
            Err(error) => return self.input_failed(&words(error)),
        };
        let interrupts = Rc::clone(&self.interrupts);
        // The lines of a block that waits for its `end`.
        let mut block = String::new();
        while let Some(Request { id, line }) = requests.next() {
            let (text, is_line, continues, line) = match line {
                Ok(line) => (line.text, !line.is_object, line.continues, Ok(line.line)),
                Err(InvalidRequest::Input(why)) => return self.input_failed(&why),
                Err(other) => (None, false, false, Err(other)),
            };
            let outcome = match (requests.begin(&id, &interrupts), line) {
                (false, _) => LineOutcome::Interrupted,
                (true, Ok(line)) if is_line => {
                    block.push_str(&line);
                    if script::is_open(LANGUAGE, &block) {
                        block.push('\n');
                        LineOutcome::Done
                    } else {
                        self.answer(None, Ok(std::mem::take(&mut block)), false)
                    }
                }
                (true, line) => self.answer(text, line, continues),
            };
            let outcome = match (outcome, requests.end(&interrupts)) {
                // However far it came: `watch` takes an interrupt as its normal end, for others it may be a failure.
                (LineOutcome::Done | LineOutcome::Failed(_), true) => LineOutcome::Interrupted,
                (outcome, _) => outcome,
            };
            let ended = self.end_request(id, outcome);
            if matches!(outcome, LineOutcome::Quit(_) | LineOutcome::Closed) || ended == LineOutcome::Closed {
                return outcome;
            }
        }
        if block.is_empty() { LineOutcome::Done } else { self.answer(None, Ok(block), false) }
    }

    fn answer(
        &mut self,
        text: Option<TextReply>,
        line: Result<String, InvalidRequest>,
        continues: bool,
    ) -> LineOutcome {
        self.text_reply = text;
        let outcome = match line {
            Ok(line) if line.contains('\n') => self.run_typed_lines(&line),
            Ok(line) => self.run_request(&line, continues),
            Err(InvalidRequest::ParsedLine(bad)) => self.fail(bad.report(Input::typed_line(&bad.text))),
            Err(InvalidRequest::Object(why) | InvalidRequest::Input(why)) => {
                self.fail(ErrorReport::of(why).with_code(ErrorCode::Syntax))
            }
        };
        self.text_reply = None;
        outcome
    }

    /// Closes the records of a request. The outcome is [`LineOutcome::Closed`] if nobody reads replies any more.
    pub fn end_request(&mut self, id: RequestId, outcome: LineOutcome) -> LineOutcome {
        let (status, code) = match outcome {
            LineOutcome::Done | LineOutcome::Quit(_) => (EndStatus::Ok, None),
            LineOutcome::Interrupted => (EndStatus::Interrupted, Some(ErrorCode::Interrupted)),
            LineOutcome::Failed(code) => (EndStatus::Error, Some(code)),
            LineOutcome::Closed => (EndStatus::Error, Some(ErrorCode::Io)),
        };
        self.print(&End { id, status, code })
    }

    pub(super) fn input_failed(&mut self, why: &str) -> LineOutcome {
        let message = format!("standard input cannot be read: {why}");
        self.fail(ErrorReport::of(message).with_code(ErrorCode::Io))
    }
}

/// The most waiting requests. A program that sends more blocks.
const WAITING: usize = 1024;

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// The id that ends its answer.
    pub(super) id: RequestId,
    /// What to run, or why the request is invalid.
    pub(super) line: Result<RequestLine, InvalidRequest>,
}

/// The line of a request, and the form of its answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RequestLine {
    /// A line, or the lines of a block.
    pub(super) line: String,
    /// How to answer as text; `None` for JSON.
    pub(super) text: Option<TextReply>,
    /// Whether it is an object, and so complete: never a line of a block.
    pub(super) is_object: bool,
    /// Whether to go on where the same line stopped before.
    pub(super) continues: bool,
}

/// An invalid request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum InvalidRequest {
    /// A line that is not UTF-8 text.
    ParsedLine(BinaryLine),
    /// An object with other fields or values.
    Object(String),
    /// The input ends with an error.
    Input(String),
}

/// An object of the protocol.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    id: Option<RequestId>,
    line: Option<String>,
    #[serde(rename = "as")]
    form: Option<RequestForm>,
    width: Option<usize>,
    #[serde(default)]
    color: bool,
    errors: Option<RequestForm>,
    #[serde(rename = "continue", default)]
    continues: bool,
    cancel: Option<RequestId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RequestForm {
    Json,
    Text,
}

/// The meaning of an input line.
enum InputLine {
    Request(Request),
    Cancel(RequestId),
}

/// The state of requests that the reading thread and the answering thread share.
#[derive(Default)]
struct RequestState {
    running: Option<RequestId>,
    /// Whether the running request was cancelled.
    is_cancelled: bool,
    cancelled: Vec<RequestId>,
}

/// The queue of requests.
pub(super) struct Requests {
    queue: Receiver<Request>,
    state: Arc<Mutex<RequestState>>,
}

impl Requests {
    /// Starts the reading thread. `raise` stops the running request.
    pub(super) fn read(input: OwnedFd, raise: InterruptHandle) -> std::io::Result<Self> {
        let (sender, queue) = sync_channel(WAITING);
        let state = Arc::new(Mutex::new(RequestState::default()));
        let shared = Arc::clone(&state);
        // Its own, so that Ctrl-C between two requests wakes nothing else.
        let interrupts = Interrupts::listen()?;
        std::thread::Builder::new().spawn(move || {
            read_all(LineReader::new(input), &interrupts, &sender, |id| {
                let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                match state.running.as_ref() == Some(&id) {
                    true => {
                        state.is_cancelled = true;
                        raise.raise();
                    }
                    false if state.cancelled.len() < WAITING => state.cancelled.push(id),
                    false => {}
                }
            });
        })?;
        Ok(Requests { queue, state })
    }

    /// The next request; `None` at the end of the input.
    pub(super) fn next(&self) -> Option<Request> {
        self.queue.recv().ok()
    }

    /// Marks a request as running; false if it was cancelled. From now on a cancellation interrupts it.
    pub(super) fn begin(&self, id: &RequestId, interrupts: &Interrupts) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.cancelled.len();
        state.cancelled.retain(|cancelled| cancelled != id);
        let is_wanted = state.cancelled.len() == before;
        state.running = is_wanted.then(|| id.clone());
        state.is_cancelled = false;
        interrupts.forget();
        is_wanted
    }

    /// Marks the running request as answered. Returns whether it was cancelled.
    pub(super) fn end(&self, interrupts: &Interrupts) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running = None;
        interrupts.forget();
        state.is_cancelled
    }
}

fn read_all(mut lines: LineReader, interrupts: &Interrupts, sender: &SyncSender<Request>, cancel: impl Fn(RequestId)) {
    loop {
        let (number, text) = match lines.next(interrupts) {
            Ok(Some(line)) => (line.number as u64, line.text.map_err(InvalidRequest::ParsedLine)),
            Ok(None) => return,
            Err(NoLine::Stopped(_)) => {
                interrupts.forget();
                continue;
            }
            Err(NoLine::Failed(error)) => {
                let id = RequestId::Number(0);
                let why = super::outcome::words(error);
                let line = Err(InvalidRequest::Input(why));
                _ = sender.send(Request { id, line });
                return;
            }
        };
        let id = RequestId::Number(number);
        let parsed = match text {
            Ok(text) if text.trim_start().starts_with('{') => object(id, &text),
            Ok(line) => InputLine::Request(Request { id, line: Ok(RequestLine { line, ..RequestLine::default() }) }),
            Err(bad) => InputLine::Request(Request { id, line: Err(bad) }),
        };
        match parsed {
            InputLine::Cancel(id) => cancel(id),
            InputLine::Request(request) => {
                if sender.send(request).is_err() {
                    return;
                }
            }
        }
    }
}

/// A request that is an object: `{"id":7,"line":"walk heap","as":"text","width":80}`, `{"cancel":7}`. `id` is the
/// number of its line, for an object without an id.
fn object(id: RequestId, text: &str) -> InputLine {
    let wrong = |id: RequestId, why: String| {
        let line = Err(InvalidRequest::Object(why));
        InputLine::Request(Request { id, line })
    };
    let object: Object = match serde_json::from_str(text) {
        Ok(object) => object,
        Err(error) => return wrong(id, format!("this object is not a request: {error}")),
    };
    let id = object.id.unwrap_or(id);
    match (object.line, object.cancel) {
        (None, Some(cancelled)) => InputLine::Cancel(cancelled),
        (Some(line), None) => {
            let text = TextReply {
                width: object.width.filter(|width| *width > 0),
                is_coloured: object.color,
                has_error_records: object.errors == Some(RequestForm::Json),
            };
            let text = (object.form == Some(RequestForm::Text)).then_some(text);
            let line = Ok(RequestLine { line, text, is_object: true, continues: object.continues });
            InputLine::Request(Request { id, line })
        }
        _ => wrong(id, "a request has either `line` or `cancel`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (RequestId, Result<RequestLine, InvalidRequest>) {
        match object(RequestId::Number(3), text) {
            InputLine::Request(request) => (request.id, request.line),
            InputLine::Cancel(id) => panic!("cancels {id:?}"),
        }
    }

    #[test]
    fn objects_say_what_to_run_and_how_it_is_answered() {
        let (id, parsed) = parse(r#"{"line":"walk heap"}"#);
        let line = |line: &str, text| {
            let line = line.to_owned();
            Ok(RequestLine { line, text, is_object: true, continues: false })
        };
        assert_eq!((id, parsed), (RequestId::Number(3), line("walk heap", None)));
        let text = TextReply { width: Some(80), is_coloured: true, has_error_records: false };
        let (id, parsed) = parse(r#"{"id":"a","line":"if 1\nend","as":"text","width":80,"color":true}"#);
        assert_eq!(id, RequestId::Text("a".into()));
        assert_eq!(parsed, line("if 1\nend", Some(text)));
        let cancel = object(RequestId::Number(3), r#"{"cancel":"a"}"#);
        assert!(matches!(cancel, InputLine::Cancel(RequestId::Text(id)) if id == "a"));
    }

    #[test]
    fn what_is_no_request_says_why() {
        for text in [
            "{",
            "{}",
            r#"{"line":"a","cancel":1}"#,
            r#"{"line":1}"#,
            r#"{"line":"a","as":"xml"}"#,
            r#"{"line":"a","wdith":80}"#,
            r#"{"line":"a","width":-1}"#,
        ] {
            let (id, parsed) = parse(text);
            assert_eq!(id, RequestId::Number(3), "{text}");
            assert!(matches!(parsed, Err(InvalidRequest::Object(_))), "{text}");
        }
    }
}
