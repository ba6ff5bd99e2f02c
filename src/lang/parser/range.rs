//! Ranges, addresses, and what was pasted in their place.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;

use super::expression::expression;
use super::stream::{Failed, Parsed, Tokens, mark};
use crate::lang::expected::Expected;
use crate::lang::expression::{Expression, Name, Range};
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

/// `span`
pub(super) fn span(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    let (behind, start) = expression(input)?;
    if let Ok((behind, _)) = mark("..")(behind) {
        let (behind, end) = cut(expression).parse(behind)?;
        let at = start.at.to(end.at);
        return Ok((behind, Spanned::new(Range::Span { start, end }, at)));
    }
    if let Ok((behind, _)) = mark(",")(behind) {
        let (behind, (_, length)) = (cut(mark("+")), cut(expression)).parse(behind)?;
        let at = start.at.to(length.at);
        return Ok((behind, Spanned::new(Range::Length { start, length }, at)));
    }
    let quoted = input
        .first()
        .is_none_or(|token| token.kind != TokenKind::Name);
    let whole = match start.node {
        Expression::Name(Name(ref name)) if name == "all" && !quoted => Range::All,
        other => Range::Expression(other),
    };
    Ok((behind, Spanned::new(whole, start.at)))
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
        pass_over_text(Tokens { rest, ..input }),
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
        ] => (*address, *at, pass_over_text(Tokens { rest, ..input }).rest),
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

/// Whatever is left of the command.
fn pass_over_text(input: Tokens<'_>) -> Tokens<'_> {
    let length = input
        .rest
        .iter()
        .take_while(|token| is_text(&token.kind))
        .count();
    Tokens {
        rest: input.rest.get(length..).unwrap_or(&[]),
        ..input
    }
}

/// Whether a token is part of raw text, and not the end of the command.
pub(super) fn is_text(kind: &TokenKind) -> bool {
    !matches!(
        kind,
        TokenKind::Pipe { .. } | TokenKind::Redirect { .. } | TokenKind::Comment
    )
}
