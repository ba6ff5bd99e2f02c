//! `find`: the range and the patterns.

use nom::Parser;
use nom::combinator::{cut, opt};
use nom::multi::many0;
use nom::sequence::preceded;

use super::expression::{expression, whole};
use super::layout::search;
use super::stream::{Parsed, Tokens, is_mark, mark, silent_mark};
use crate::lang::expected::Expected;
use crate::lang::expression::{Expression, Range};
use crate::lang::lexer::TokenKind;
use crate::lang::span::Spanned;
use crate::lang::syntax::{Command, Find, Pattern};

/// `[/UN] RANGE, PATTERN, …`
pub(super) fn find(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (input, layout) = opt(search).parse(input)?;
    let (input, range) = range(input)?;
    let (input, first) = cut(preceded(mark(","), pattern)).parse(input)?;
    let (input, more) = many0(preceded(mark(","), cut(pattern))).parse(input)?;
    let patterns = [vec![first], more].concat();
    let (input, filter) = input.page_filter()?;
    Ok((
        input,
        Command::Find(Find {
            layout: layout.unwrap_or_default(),
            range,
            patterns,
            filter,
        }),
    ))
}

/// `span`. A `, +` may also begin the first pattern: it is a length only if another comma follows.
fn range(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    let quoted = input
        .first()
        .is_none_or(|token| token.kind != TokenKind::Name);
    let (behind, start) = expression(input)?;
    if let Ok((behind, _)) = mark("..")(behind) {
        let (behind, end) = cut(expression).parse(behind)?;
        let at = start.at.to(end.at);
        return Ok((behind, Spanned::new(Range::Span { start, end }, at)));
    }
    match length(behind) {
        Some((behind, length)) => {
            let at = start.at.to(length.at);
            Ok((behind, Spanned::new(Range::Length { start, length }, at)))
        }
        None => Ok((behind, whole(start, quoted))),
    }
}

/// `, +LENGTH` with another `,` behind it.
fn length(input: Tokens<'_>) -> Option<(Tokens<'_>, Spanned<Expression>)> {
    let (behind, _) = silent_mark(",")(input).ok()?;
    let (behind, _) = silent_mark("+")(behind).ok()?;
    let (behind, length) = expression(behind).ok()?;
    let more = behind.first().is_some_and(|token| is_mark(token, ","));
    more.then_some((behind, length))
}

/// `sought`
fn pattern(input: Tokens<'_>) -> Parsed<'_, Spanned<Pattern>> {
    let bytes = input.accept(Expected::Pattern, |token| match &token.kind {
        TokenKind::HexBytes(bytes) => Some(Pattern::Bytes(bytes.clone())),
        _ => None,
    });
    match bytes {
        Ok(found) => Ok(found),
        Err(_) => {
            let (behind, value) = expression(input)?;
            Ok((behind, value.map(Pattern::Value)))
        }
    }
}
