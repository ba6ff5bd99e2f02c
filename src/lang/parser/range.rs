//! Ranges, addresses, and what was pasted in their place.

use nom::Parser;
use nom::branch::alt;

use super::expression::{expression, span};
use super::raw::split_text;
use super::stream::{Failed, Parsed, Tokens};
use crate::lang::expected::Expected;
use crate::lang::expression::{Expression, Range};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::place::Spanned;

/// `range`
pub(super) fn range(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    let single = |found: Spanned<Expression>| found.map(Range::Expression);
    alt((pasted_range, pasted_address.map(single), span)).parse(input)
}

/// `address`: of a pasted range, its start.
pub(super) fn address(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let start = |range: Spanned<Range>| match range.node {
        Range::Span { start, .. } | Range::Length { start, .. } => Some(start),
        Range::Expression(expression) => Some(Spanned::new(expression, range.at)),
        Range::All => None,
    };
    alt((pasted_range.map_opt(start), pasted_address, expression)).parse(input)
}

/// `value`
pub(super) fn value(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((pasted_address, expression)).parse(input)
}

fn integer(value: u64) -> Expression {
    Expression::Integer(i128::from(value))
}

/// `pasted_range`: a line of maps or pmap. What follows the permissions is passed over.
fn pasted_range(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    let Some((token, rest)) = input.rest.split_first() else {
        return Err(nom::Err::Error(Failed));
    };
    let spanned = |value| Spanned::new(integer(value), token.at);
    let range = match token.kind {
        TokenKind::MapsLine { start, end } => Range::Span {
            start: spanned(start),
            end: spanned(end),
        },
        TokenKind::PmapLine { start, length } => Range::Length {
            start: spanned(start),
            length: spanned(length),
        },
        _ => return Err(nom::Err::Error(Failed)),
    };
    Ok((
        split_text(Tokens { rest, ..input }).1,
        Spanned::new(range, token.at),
    ))
}

/// `pasted_address`: a frame of a backtrace, or a line of gdb's `info registers`.
fn pasted_address(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (address, at, rest) = match input.rest {
        [
            Token {
                kind: TokenKind::PastedFrame(address),
                at,
                ..
            },
            rest @ ..,
        ] => (*address, *at, split_text(Tokens { rest, ..input }).1.rest),
        [register, first, second, rest @ ..] => match (&register.kind, &first.kind, &second.kind) {
            (
                TokenKind::Name,
                TokenKind::Number(value),
                TokenKind::Number(_) | TokenKind::PastedAddress(_),
            ) => (*value, register.at.to(second.at), rest),
            _ => return Err(nom::Err::Error(Failed)),
        },
        _ => return Err(nom::Err::Error(Failed)),
    };
    Ok((Tokens { rest, ..input }, Spanned::new(integer(address), at)))
}
