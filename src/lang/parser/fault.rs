//! From the furthest failure to an error that a person can use.

use super::stream::Notes;
use crate::lang::error::SyntaxError;
use crate::lang::expected::{Expected, describe_all};
use crate::lang::field::{FilterField, PageField, RegionField};
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
    let hint = hint.or_else(|| {
        let until = position.saturating_add(1).min(tokens.len());
        let before = tokens.get(..until).unwrap_or_default();
        let behind = tokens.get(until);
        needs_quotes(before, behind).then(|| QUOTES.to_owned())
    });
    SyntaxError {
        at: token.at,
        message,
        expected: describe_all(&expected),
        hint,
    }
}

/// For names of C++ and Rust as their sources spell them.
pub(super) const QUOTES: &str =
    "a name with `<`, `(` or blanks in it goes in 'single quotes', as 'shapes::area(int)' does";

/// Whether among the tokens up to a failure is what only the name of a function or type would have: `ns::Box<`, `>::`, `<a::B as`.
fn needs_quotes(tokens: &[Token<'_>], behind: Option<&Token<'_>>) -> bool {
    let next = tokens.iter().skip(1).chain(behind);
    tokens.iter().zip(next).any(|(token, next)| {
        next.glued
            && match (&token.kind, token.text) {
                (TokenKind::Name, path) => path.contains("::") && matches!(next.text, "<" | "("),
                (_, ":") => next.text == ":",
                (_, "<") => !token.glued && next.kind == TokenKind::Name,
                _ => false,
            }
    })
}

/// What is wrong with this token here, and the way out.
fn about(token: &Token<'_>, expected: &[Expected]) -> (String, Option<String>) {
    let in_parentheses = || Some("as an operator it stands in parentheses: (a | b)".to_owned());
    match (&token.kind, token.text) {
        (_, text)
            if matches!(
                expected,
                [Expected::Format | Expected::Layout | Expected::Search]
            ) =>
        {
            (format!("`{}` is no format", short(text)), None)
        }
        (TokenKind::BadNumber(fault), word) => number(*fault, word),
        (TokenKind::LonePipe, _) => ("a shell command must follow `|`".into(), in_parentheses()),
        (TokenKind::Pipe { .. } | TokenKind::Redirect { .. }, _) if expected == [Expected::End] => {
            ("a command has one output only".into(), None)
        }
        (TokenKind::Pipe { .. }, _) => (
            "the command is not complete before `|`".into(),
            in_parentheses(),
        ),
        (TokenKind::Redirect { .. }, _) => {
            let hint = "before a path or a quote it makes a file; as an operator it stands in parentheses: (a > 'b')";
            (
                "the command is not complete before `>`".into(),
                Some(hint.into()),
            )
        }
        (TokenKind::Other, "'" | "\"") => ("this quote is not closed".into(), None),
        (_, "!") if expected.contains(&Expected::Command) => (
            "a shell command must follow `!`".into(),
            Some("!ls runs ls".into()),
        ),
        (TokenKind::Name, word) if expected == [Expected::Command] => {
            let words = Expected::Command.words();
            (
                format!("there is no command `{word}`"),
                SyntaxError::did_you_mean(word, words),
            )
        }
        (_, text) => (
            format!("`{}` cannot stand here", short(text)),
            way_out(token, expected),
        ),
    }
}

/// The way out where something stands that cannot.
fn way_out(token: &Token<'_>, expected: &[Expected]) -> Option<String> {
    let wanted = |one| expected.contains(&one);
    let in_filter = [
        (Expected::PageField, Expected::PageQuantity, false),
        (Expected::RegionField, Expected::RegionQuantity, true),
    ]
    .into_iter()
    .find(|(field, quantity, _)| wanted(*field) || wanted(*quantity));
    match (&token.kind, token.text) {
        (TokenKind::Name, word) => {
            let words: Vec<&str> = expected.iter().flat_map(|one| one.words()).collect();
            match in_filter {
                Some((_, _, false)) if RegionField::from_name(word).is_some() => Some(format!(
                    "`{word}` is a field of regions: regions where {word} …"
                )),
                Some((_, _, true)) if PageField::from_name(word).is_some() => Some(format!(
                    "`{word}` is a field of pages: walk all where {word} …"
                )),
                Some(_) => SyntaxError::did_you_mean(word, words).or_else(|| {
                    Some(format!(
                        "bare words are fields in a filter; the symbol is &{word}"
                    ))
                }),
                None if wanted(Expected::QuotedText) => {
                    Some(format!("texts are in quotes: \"{word}\""))
                }
                None => SyntaxError::did_you_mean(word, words),
            }
        }
        (TokenKind::Number(_), number) if wanted(Expected::Command) => {
            Some(format!("what is behind an address: translate {number}"))
        }
        (_, "|" | "&") if wanted(Expected::Word("or")) => {
            Some("conditions are joined with `and`, `or`".into())
        }
        (_, sign @ ("&" | "^" | "|")) if wanted(Expected::Comparison) => Some(format!(
            "in a filter {sign} stands in parentheses: (pfn {sign} 1) == 0"
        )),
        (_, "/") if wanted(Expected::Range) => {
            Some("a format is glued to its command: print/x".into())
        }
        (_, "#") => {
            Some("a frame of gdb can be pasted if it has an address: #1 0x401136 in main ()".into())
        }
        _ => None,
    }
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
