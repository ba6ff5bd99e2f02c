//! The layout after a command's name and a `/`.

use super::input::{Failed, Parsed, Tokens};
use super::stream::{glued, is_mark, mark};
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::layout::{Format, Layout};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::span::Span;

/// `/FMT` of `print`: a letter.
pub(crate) fn format(input: Tokens<'_>) -> Parsed<'_, Format> {
    slash(input, Expected::Format, |layout| match layout {
        Layout { count: None, backward: false, format, unit: None } => format,
        _ => None,
    })
}

/// `/UN` of `find`: a size, and how many matches at most.
pub(crate) fn search(input: Tokens<'_>) -> Parsed<'_, Layout> {
    slash(input, Expected::Search, |layout| {
        let is_search = layout.format.is_none() && !layout.backward;
        is_search.then_some(layout)
    })
}

/// `/NFU` of `x`.
pub(crate) fn layout(input: Tokens<'_>) -> Parsed<'_, Layout> {
    if let Some(place) = instructions(input) {
        return input.fault(SyntaxError {
            at: place,
            message: "`i` is gdb's format for instructions, which pmdb does not decode".into(),
            expected: vec![Expected::Layout.describe()],
            hint: Some("in gdb, which can look at the same process: x/i; here x/xb shows the bytes".into()),
        });
    }
    slash(input, Expected::Layout, Some)
}

/// A format that `take` accepts.
fn slash<'a, T>(input: Tokens<'a>, expected: Expected, take: impl FnOnce(Layout) -> Option<T>) -> Parsed<'a, T> {
    if let Some(Token { kind: TokenKind::Format(layout), .. }) = input.first() {
        let (behind, found) = input.accept(expected, |_| take(*layout))?;
        return Ok((behind, found.node));
    }
    if !glued(input, "/") {
        return Err(nom::Err::Error(Failed));
    }
    // The error lies behind the slash.
    let (behind, _) = mark("/")(input)?;
    behind.expect(expected);
    Err(nom::Err::Failure(Failed))
}

/// Where `/i`, `/5i`, `/-5i` and the like stand.
fn instructions(input: Tokens<'_>) -> Option<Span> {
    let (slash, word) = match input.rest {
        [slash, minus, word, ..] if minus.glued && minus.text == "-" => (slash, word),
        [slash, word, ..] => (slash, word),
        _ => return None,
    };
    let letters = word.text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is = is_mark(slash, "/") && word.glued && letters.contains('i');
    let short = letters.chars().all(|c| "ibhwg".contains(c));
    (is && short).then(|| slash.at.to(word.at))
}
