//! `--serve`: JSON replies to the requests of a program, which are command lines or objects. A failure ends a request,
//! never the connection.

use super::base::{Session, TextReply};
use super::lines::BinaryLine;
use super::outcome::{Input, LineOutcome, words};
use super::requests::{Content, InputLine, Request, RequestEnd, Requests};
use super::script::LARGEST;
use crate::command::LANGUAGE;
use crate::lang::script::BlockLines;
use crate::report::{End, EndStatus, ErrorCode, ErrorReport, Hello, RequestId};
use serde::Deserialize;
use std::os::fd::AsFd;
use std::rc::Rc;

/// The version of the protocol. It increases only with a change that would mislead older clients.
const PROTOCOL: u32 = 1;

impl Session {
    /// Sends the first record.
    pub fn hello(&mut self) -> LineOutcome {
        self.print(&Hello { program: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), protocol: PROTOCOL })
    }

    /// Answers the requests on standard input until it ends, or until `quit`.
    pub fn serve(&mut self) -> LineOutcome {
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        let output = std::io::stdout().as_fd().try_clone_to_owned();
        let requests = input.and_then(|input| Requests::read(input, output?, self.interrupts.raiser()));
        let requests = match requests {
            Ok(requests) => requests,
            Err(error) => return self.input_failed(&words(error)),
        };
        let interrupts = Rc::clone(&self.interrupts);
        // The lines of a block that is not closed yet.
        let mut block = BlockLines::new(LANGUAGE);
        while let Some((Request { id, content: line }, was_cancelled)) = requests.next(&interrupts, None) {
            let (text, is_line, continues, line) = match line {
                Ok(line) => (line.text, !line.is_object, line.continues, Ok(line.line)),
                Err(InvalidRequest::Input(why)) => return self.input_failed(&why),
                Err(other) => (None, false, false, Err(other)),
            };
            let outcome = match line {
                _ if was_cancelled => LineOutcome::Interrupted,
                Ok(line) if is_line => match block.push(&line) {
                    Some(lines) => self.answer(None, Ok(lines), false),
                    None if block.bytes() <= LARGEST => LineOutcome::Done,
                    None => {
                        block.take();
                        let why = format!("the block is larger than {} MiB", LARGEST >> 20);
                        self.answer(None, Err(InvalidRequest::Object(why)), false)
                    }
                },
                line => self.answer(text, line, continues),
            };
            let outcome = match (outcome, requests.end(&interrupts)) {
                // The status does not depend on the progress: an interrupt is the normal end of `watch`, and may be a
                // failure of others.
                (LineOutcome::Done | LineOutcome::Failed(_), RequestEnd::Cancelled) => LineOutcome::Interrupted,
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
        if block.is_empty() { LineOutcome::Done } else { self.answer(None, Ok(block.take()), false) }
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

    /// Ends the records of a request. The outcome is [`LineOutcome::Closed`] if replies have no reader any more.
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
        let message = format!("cannot read standard input: {why}");
        self.fail(ErrorReport::of(message).with_code(ErrorCode::Io))
    }
}

/// The line of a request, with the form of its answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RequestLine {
    /// A line, or the lines of a block.
    pub(super) line: String,
    /// The form of a text answer; `None` for JSON.
    pub(super) text: Option<TextReply>,
    /// Whether the request is an object, and therefore complete: never a line of a block.
    pub(super) is_object: bool,
    /// Whether the line continues where it stopped before.
    pub(super) continues: bool,
}

/// An invalid request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum InvalidRequest {
    /// A line that is not UTF-8 text.
    ParsedLine(BinaryLine),
    /// An object with unknown fields or values.
    Object(String),
    /// The end of the input, by an error.
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

impl Content for Result<RequestLine, InvalidRequest> {
    const GOES_ON: bool = true;

    fn parse(number: u64, line: Result<String, BinaryLine>) -> InputLine<Self> {
        let id = RequestId::Number(number);
        match line {
            Ok(text) if text.trim_start().starts_with('{') => object(id, &text),
            Ok(line) => InputLine::Request(Request { id, content: Ok(RequestLine { line, ..RequestLine::default() }) }),
            Err(bad) => InputLine::Request(Request { id, content: Err(InvalidRequest::ParsedLine(bad)) }),
        }
    }

    fn unreadable(why: String) -> Self {
        Err(InvalidRequest::Input(why))
    }

    fn bytes(&self) -> usize {
        match self {
            Ok(line) => line.line.len(),
            Err(InvalidRequest::ParsedLine(line)) => line.text.len(),
            Err(InvalidRequest::Object(why) | InvalidRequest::Input(why)) => why.len(),
        }
    }
}

/// Parses a request that is an object: `{"id":7,"line":"walk heap","as":"text","width":80}`, `{"cancel":7}`. `id` is
/// the number of its line, for an object without an id.
fn object(id: RequestId, text: &str) -> InputLine<Result<RequestLine, InvalidRequest>> {
    let wrong = |id: RequestId, why: String| {
        let content = Err(InvalidRequest::Object(why));
        InputLine::Request(Request { id, content })
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
            let content = Ok(RequestLine { line, text, is_object: true, continues: object.continues });
            InputLine::Request(Request { id, content })
        }
        _ => wrong(id, "a request has either `line` or `cancel`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (RequestId, Result<RequestLine, InvalidRequest>) {
        match object(RequestId::Number(3), text) {
            InputLine::Request(request) => (request.id, request.content),
            InputLine::Cancel(id) => panic!("cancels {id:?}"),
            InputLine::Nothing => panic!("nothing"),
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
