//! `--serve`: JSON replies to the requests of a program. A failure ends a request, never the connection. A separate
//! thread reads the requests, command lines or objects, so that one can be cancelled while it runs.

use super::base::{Session, TextReply};
use super::interrupt::{InterruptHandle, Interrupts};
use super::lines::{BinaryLine, LineReader, NoLine};
use super::outcome::{Input, LineOutcome, words};
use crate::command::LANGUAGE;
use crate::lang::script;
use crate::report::{End, EndStatus, ErrorCode, ErrorReport, Hello, RequestId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Deserialize;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
        let output = std::io::stdout().as_fd().try_clone_to_owned();
        let requests = input.and_then(|input| Requests::read(input, output?, self.interrupts.raiser()));
        let requests = match requests {
            Ok(requests) => requests,
            Err(error) => return self.input_failed(&words(error)),
        };
        let interrupts = Rc::clone(&self.interrupts);
        // The lines of a block that waits for its `end`.
        let mut block = String::new();
        while let Some((Request { id, line }, was_cancelled)) = requests.next(&interrupts) {
            let (text, is_line, continues, line) = match line {
                Ok(line) => (line.text, !line.is_object, line.continues, Ok(line.line)),
                Err(InvalidRequest::Input(why)) => return self.input_failed(&why),
                Err(other) => (None, false, false, Err(other)),
            };
            let outcome = match line {
                _ if was_cancelled => LineOutcome::Interrupted,
                Ok(line) if is_line => {
                    block.push_str(&line);
                    if script::is_open(LANGUAGE, &block) {
                        block.push('\n');
                        LineOutcome::Done
                    } else {
                        self.answer(None, Ok(std::mem::take(&mut block)), false)
                    }
                }
                line => self.answer(text, line, continues),
            };
            let outcome = match (outcome, requests.end(&interrupts)) {
                // However far it came: `watch` takes an interrupt as its normal end, for others it may be a failure.
                (LineOutcome::Done | LineOutcome::Failed(_), true) => LineOutcome::Interrupted,
                (outcome, _) => outcome,
            };
            let ended = self.end_request(id, outcome);
            match (outcome, ended) {
                (LineOutcome::Quit(_) | LineOutcome::Closed, _) => return outcome,
                (_, LineOutcome::Closed) => return LineOutcome::Closed,
                _ => {}
            }
        }
        if requests.are_unread() {
            return LineOutcome::Closed;
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

/// The most bytes of waiting requests. A program that sends more blocks; up to there a cancellation passes all of them.
const WAITING: usize = 16 << 20;

/// The most cancellations that are kept for requests that are still to come, and the longest id of one.
const CANCELLED_BEFORE: usize = 1024;
const LONGEST_ID: usize = 1024;

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

/// The requests that wait, and what the answering thread must know of the one that runs.
#[derive(Default)]
struct RequestState {
    waiting: VecDeque<WaitingRequest>,
    /// The memory of those that wait.
    bytes: usize,
    /// Cancellations of requests that have not come yet, the oldest first.
    cancelled_before: VecDeque<RequestId>,
    /// Whether no more requests come.
    is_at_end: bool,
    /// Whether nobody reads answers any more.
    is_unread: bool,
    running: Option<RequestId>,
    /// Whether the running request was cancelled.
    is_cancelled: bool,
}

struct WaitingRequest {
    request: Request,
    is_cancelled: bool,
}

/// The queue of requests.
pub(super) struct Requests(Arc<Shared>);

struct Shared {
    state: Mutex<RequestState>,
    changed: Condvar,
    /// Stops the running request.
    raise: InterruptHandle,
}

impl Requests {
    /// Starts the threads that read requests and look whether somebody reads `output`. `raise` stops the running
    /// request.
    pub(super) fn read(input: OwnedFd, output: OwnedFd, raise: InterruptHandle) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), raise });
        // Its own, so that Ctrl-C between two requests wakes nothing else.
        let interrupts = Interrupts::listen()?;
        let (reading, watching) = (Arc::clone(&shared), Arc::clone(&shared));
        std::thread::Builder::new().spawn(move || {
            read_all(LineReader::new(input), &interrupts, &reading);
            reading.change(|state| state.is_at_end = true);
        })?;
        std::thread::Builder::new().spawn(move || {
            wait_until_unread(&output);
            watching.change(|state| state.is_unread = true);
            watching.raise.raise();
        })?;
        Ok(Requests(shared))
    }

    /// The next request, and whether it was cancelled before it ran; `None` at the end of the input, or if nobody reads
    /// answers any more. From now on a cancellation interrupts it.
    pub(super) fn next(&self, interrupts: &Interrupts) -> Option<(Request, bool)> {
        let state = self.0.lock();
        let is_idle = |state: &mut RequestState| state.waiting.is_empty() && !state.is_at_end && !state.is_unread;
        let mut state = self.0.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        let WaitingRequest { request, is_cancelled } = state.waiting.pop_front().filter(|_| !state.is_unread)?;
        state.bytes -= request.bytes();
        state.running = (!is_cancelled).then(|| request.id.clone());
        state.is_cancelled = false;
        interrupts.forget();
        self.0.changed.notify_all();
        Some((request, is_cancelled))
    }

    /// Marks the running request as answered. Returns whether it was cancelled.
    pub(super) fn end(&self, interrupts: &Interrupts) -> bool {
        let mut state = self.0.lock();
        state.running = None;
        interrupts.forget();
        state.is_cancelled
    }

    /// Whether nobody reads answers any more.
    pub(super) fn are_unread(&self) -> bool {
        self.0.lock().is_unread
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut RequestState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Adds a request, once there is room for it.
    fn add(&self, request: Request) {
        let bytes = request.bytes();
        let is_full =
            |state: &mut RequestState| !state.waiting.is_empty() && state.bytes + bytes > WAITING && !state.is_unread;
        let mut state = self.changed.wait_while(self.lock(), is_full).unwrap_or_else(PoisonError::into_inner);
        state.bytes += bytes;
        let before = state.cancelled_before.len();
        state.cancelled_before.retain(|cancelled| *cancelled != request.id);
        let is_cancelled = state.cancelled_before.len() < before;
        state.waiting.push_back(WaitingRequest { request, is_cancelled });
        drop(state);
        self.changed.notify_all();
    }

    /// Cancels the request that runs, one that waits, or one that is still to come.
    fn cancel(&self, id: RequestId) {
        let mut state = self.lock();
        if state.running.as_ref() == Some(&id) {
            state.is_cancelled = true;
            self.raise.raise();
        } else if let Some(waiting) = state.waiting.iter_mut().find(|one| one.request.id == id && !one.is_cancelled) {
            waiting.is_cancelled = true;
        } else if id.bytes() <= LONGEST_ID {
            if state.cancelled_before.len() == CANCELLED_BEFORE {
                state.cancelled_before.pop_front();
            }
            state.cancelled_before.push_back(id);
        }
    }
}

impl Request {
    /// The memory that it takes while it waits.
    fn bytes(&self) -> usize {
        let line = match &self.line {
            Ok(line) => line.line.len(),
            Err(InvalidRequest::ParsedLine(line)) => line.text.len(),
            Err(InvalidRequest::Object(why) | InvalidRequest::Input(why)) => why.len(),
        };
        size_of::<WaitingRequest>() + self.id.bytes() + line
    }
}

/// Returns when the other end of a pipe, socket or terminal is closed.
fn wait_until_unread(output: &OwnedFd) {
    loop {
        // Even with no event requested, poll reports that nobody reads.
        let mut outputs = [PollFd::new(output, PollFlags::empty())];
        match poll(&mut outputs, None) {
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

fn read_all(mut lines: LineReader, interrupts: &Interrupts, requests: &Shared) {
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
                requests.add(Request { id, line: Err(InvalidRequest::Input(why)) });
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
            InputLine::Cancel(id) => requests.cancel(id),
            InputLine::Request(request) => requests.add(request),
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
