//! From the furthest failure to an error that a person can use.

use super::stream::Notes;
use crate::lang::error::SyntaxError;
use crate::lang::expected::{Expected, describe_all};
use crate::lang::lexer::{NumberFault, Token, TokenKind};
use crate::lang::place::{Place, Spanned};

/// The error of a line that failed.
pub(super) fn error(line: &str, tokens: &[Token<'_>], notes: &Notes<'_>) -> SyntaxError {
    if let Some(fault) = notes.fault() {
        return fault;
    }
    let (position, expected) = notes.furthest();
    let Some(token) = tokens
        .get(position)
        .filter(|token| token.kind != TokenKind::Comment)
    else {
        let end = tokens
            .get(position)
            .map_or(line.trim_end().len(), |comment| comment.at.start);
        return SyntaxError {
            at: Place::new(end, end),
            message: "something is missing at the end".into(),
            expected: describe_all(&expected),
            hint: None,
        };
    };
    let (message, hint) = about(token, &expected);
    SyntaxError {
        at: token.at,
        message,
        expected: describe_all(&expected),
        hint,
    }
}

/// What is wrong with this token here, and the way out.
fn about(token: &Token<'_>, expected: &[Expected]) -> (String, Option<String>) {
    match (&token.kind, token.text) {
        (TokenKind::BadNumber(fault), word) => number(*fault, word),
        (TokenKind::LonePipe, _) => ("a shell command must follow `|`".into(), in_parentheses()),
        (TokenKind::Pipe { .. }, _) => ("a command ends before `|`".into(), in_parentheses()),
        (TokenKind::Redirect { .. }, _) => ("a command ends before `>`".into(), in_parentheses()),
        (TokenKind::Other, "'" | "\"") => ("this quote is not closed".into(), None),
        (_, "!") if expected.contains(&Expected::Command) => (
            "a shell command must follow `!`".into(),
            Some("!ls runs ls".into()),
        ),
        (TokenKind::Name, word) => {
            let words: Vec<&str> = expected.iter().flat_map(|one| one.words()).collect();
            let unknown = match expected {
                [Expected::Command] => format!("there is no command `{word}`"),
                _ => format!("`{word}` cannot stand here"),
            };
            (
                unknown,
                SyntaxError::did_you_mean(word, words).or_else(|| symbol_in_filter(word, expected)),
            )
        }
        (_, text) => (format!("`{}` cannot stand here", short(text)), None),
    }
}

fn in_parentheses() -> Option<String> {
    Some("as an operator it stands in parentheses: (a | b)".into())
}

/// A bare name where a filter wants a field.
fn symbol_in_filter(word: &str, expected: &[Expected]) -> Option<String> {
    let filter = [
        Expected::PageField,
        Expected::RegionField,
        Expected::PageQuantity,
        Expected::RegionQuantity,
    ];
    let in_filter = expected.iter().any(|one| filter.contains(one));
    in_filter.then(|| format!("bare words are fields in a filter; the symbol is &{word}"))
}

/// Long tokens, a pasted line for one, are told by their beginning.
fn short(text: &str) -> String {
    const MOST: usize = 24;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST).chain(['…']).collect()
    }
}

fn number(fault: NumberFault, word: &str) -> (String, Option<String>) {
    let hexadecimal = || {
        let digits = word.trim_start_matches('0');
        Some(format!(
            "hexadecimal is written 0x{}",
            if digits.is_empty() { "0" } else { digits }
        ))
    };
    match fault {
        NumberFault::TooLarge => ("this number is larger than 2^64-1".into(), None),
        NumberFault::LeadingZero => (
            format!("`{}` begins with a zero", short(word)),
            hexadecimal(),
        ),
        NumberFault::LooksHexadecimal => (
            format!("`{}` is no decimal number", short(word)),
            hexadecimal(),
        ),
        NumberFault::Suffix => (
            format!("`{}` has an unknown suffix", short(word)),
            Some("sizes end in K M G T, or p for pages; times in ms s m h".into()),
        ),
        NumberFault::Malformed => (format!("`{}` is no number", short(word)), None),
    }
}

/// `pipe pipe …`, `pipe shell …`
pub(super) fn not_piped(inner: &Spanned<&'static str>) -> SyntaxError {
    SyntaxError {
        at: inner.at,
        message: format!("`{}` cannot be piped", inner.node),
        expected: vec![Expected::Command.describe()],
        hint: Some("the shell makes pipes of its own: !CMD | CMD".into()),
    }
}
