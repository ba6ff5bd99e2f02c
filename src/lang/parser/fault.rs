//! Makes the error of a line from its furthest failure.

use super::input::{Failure, Notes};
use crate::lang::error::{Span, Spanned, SyntaxError};
use crate::lang::expected::{Expected, describe_all};
use crate::lang::lexer::{NumberFault, Token, TokenKind};

/// Returns the error of a line that failed.
pub(super) fn error(line: &str, tokens: &[Token<'_>], notes: &Notes<'_>) -> SyntaxError {
    let (position, expected) = notes.furthest();
    let (language, fault) = (notes.language, notes.fault());
    let failed = Failure { language, line, tokens, position, expected, hint: notes.hint(position), fault };
    let own = failed.fault.as_ref().map(|(_, error)| error.clone());
    let mut error = own.unwrap_or_else(|| of_furthest(&failed));
    if let Some(advice) = language.advice {
        advice.hint(&failed, &mut error);
    }
    error
}

fn of_furthest(failed: &Failure<'_>) -> SyntaxError {
    let expected = describe_all(&failed.expected);
    match failed.token().filter(|_| !failed.is_incomplete()) {
        Some(token) => bytes(failed).unwrap_or_else(|| {
            // A complete cause is printed without alternatives.
            let (message, expected) = match cause(failed, token) {
                Some(cause) => (cause, Vec::new()),
                None => (unexpected(failed, token.text), expected),
            };
            SyntaxError { at: token.at, message, expected, hint: None, pasted: None }
        }),
        None => {
            let end = failed.token().map_or(failed.line.trim_end().len(), |comment| comment.at.start);
            SyntaxError {
                at: Span::new(end, end),
                message: "incomplete command".into(),
                expected,
                hint: None,
                pasted: None,
            }
        }
    }
}

/// Returns the error of `hex"…"` without valid bytes, which the lexer reads as a name and a text.
fn bytes(failed: &Failure<'_>) -> Option<SyntaxError> {
    let (name, text) = (failed.before()?, failed.token()?);
    let is_hexadecimal = name.text == "hex" && text.is_glued && text.text.starts_with('"');
    let at = name.at.to(text.at);
    let message = match text.kind {
        TokenKind::Text(_) => "these are not bytes in hexadecimal",
        _ => "this quote has no end",
    };
    is_hexadecimal.then(|| SyntaxError {
        at,
        message: message.into(),
        expected: Vec::new(),
        hint: Some("write `hex\"7f 45 4c 46\"` or `hex\"7f454c46\"`".into()),
        pasted: None,
    })
}

/// Returns the cause, if it is more than a missing alternative.
fn cause(failed: &Failure<'_>, token: &Token<'_>) -> Option<String> {
    let expected = failed.expected.as_slice();
    Some(match (&token.kind, token.text) {
        (_, text) if is_format(expected) => return large_count(text),
        (TokenKind::Number(_) | TokenKind::Fraction(_), word) if failed.expects(Expected::Duration) => {
            format!("`{}` has no unit of time", short(word))
        }
        (TokenKind::BadNumber(fault), word) => number(*fault, &short(word)),
        (TokenKind::LonePipe, _) => "a shell command must follow `|`".into(),
        (TokenKind::Pipe { .. } | TokenKind::Redirect { .. }, _) if expected == [Expected::End] => {
            "a command has one output only".into()
        }
        (TokenKind::Pipe { .. }, _) => "the command is not complete before `|`".into(),
        (TokenKind::Redirect { .. }, _) => "the command is not complete before `>`".into(),
        (TokenKind::Other, "'" | "\"") => "this quote has no end".into(),
        (_, "!") if expected.contains(&Expected::Command) => "a shell command must follow `!`".into(),
        (TokenKind::Name, word) if expected == [Expected::Command] => match failed.called() {
            Some(_) => format!("unexpected parenthesis after `{word}`"),
            None => format!("there is no command `{word}`"),
        },
        _ => return None,
    })
}

fn is_format(expected: &[Expected]) -> bool {
    matches!(expected, [Expected::Format | Expected::Layout | Expected::Search])
}

/// Returns the message about an unexpected word.
fn unexpected(failed: &Failure<'_>, text: &str) -> String {
    let text = short(text);
    if is_format(&failed.expected) { format!("`{text}` is not a format") } else { format!("unexpected `{text}`") }
}

/// Returns the cause for a format whose count is too large.
fn large_count(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (count, _) = text.split_at(digits.unwrap_or(text.len()));
    let is_too_large = !count.is_empty() && count.parse::<u64>().is_err();
    is_too_large.then(|| "this count is larger than 2^64-1".into())
}

fn number(fault: NumberFault, word: &str) -> String {
    match fault {
        NumberFault::TooLarge => "this number is larger than 2^64-1".into(),
        NumberFault::LeadingZero => format!("`{word}` begins with a zero"),
        NumberFault::LooksHexadecimal => format!("`{word}` is not a decimal number"),
        NumberFault::Suffix => format!("`{word}` has an unknown suffix"),
        NumberFault::Malformed => format!("`{word}` is not a number"),
    }
}

/// Returns the error of `pipe pipe …` and `pipe shell …`.
pub(super) fn not_piped(inner: &Spanned<&'static str>) -> SyntaxError {
    SyntaxError {
        at: inner.at,
        message: format!("`{}` cannot be piped", inner.node),
        expected: Vec::new(),
        hint: Some("the shell has its own pipes: `!CMD | CMD`".into()),
        pasted: None,
    }
}

/// Returns the beginning of a long token, such as a pasted line.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 24;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(['…']).collect() }
}
