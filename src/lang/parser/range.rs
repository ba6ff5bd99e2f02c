//! Ranges, addresses, and what was pasted in their place.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;

use super::expression::{expression, span, whole};
use super::raw::split_text;
use super::stream::{Failed, Parsed, Tokens, mark};
use crate::lang::expected::Expected;
use crate::lang::expression::{BinaryOperator, Expression, Name, Range};
use crate::lang::lexer::{Pasted, TokenKind};
use crate::lang::span::{Span, Spanned};

/// `range`
pub(super) fn range(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    input.expect(Expected::Range);
    alt((pasted, span)).parse(input)
}

/// `address`: of a pasted range, its start.
pub(super) fn address(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let start = |range: Spanned<Range>| match range.node {
        Range::Span { start, .. } | Range::Length { start, .. } => Some(start),
        Range::Expression(expression) => Some(Spanned::new(expression, range.at)),
        Range::All => None,
    };
    alt((pasted.map_opt(start), expression)).parse(input)
}

/// `pasted`: what a row shows. What follows in the line is passed over.
fn pasted(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    let Some((token, rest)) = input.rest.split_first() else {
        return Err(nom::Err::Error(Failed));
    };
    let TokenKind::PastedRow(pasted) = &token.kind else {
        return Err(nom::Err::Error(Failed));
    };
    let spanned = |value| Spanned::new(integer(value), token.at);
    let range = match pasted {
        Pasted::Address(address) => Range::Expression(integer(*address)),
        Pasted::Span(start, end) => Range::Span {
            start: spanned(*start),
            end: spanned(*end),
        },
        Pasted::Length { start, length } => Range::Length {
            start: spanned(*start),
            length: spanned(*length),
        },
        Pasted::Symbol {
            module,
            name,
            offset,
        } => Range::Expression(symbol(module.as_deref(), name, *offset, token.at)),
    };
    Ok((
        split_text(Tokens { rest, ..input }).1,
        Spanned::new(range, token.at),
    ))
}

fn integer(value: u64) -> Expression {
    Expression::Integer(i128::from(value))
}

/// A symbol that a row names, and a distance from it.
fn symbol(module: Option<&str>, name: &str, offset: u64, at: Span) -> Expression {
    let name = Name(name.to_owned());
    let symbol = match module {
        None => Expression::Name(name),
        Some(module) => Expression::ModuleSymbol {
            module: Spanned::new(Name(module.to_owned()), at),
            symbol: Spanned::new(name, at),
        },
    };
    if offset == 0 {
        return symbol;
    }
    Expression::Binary {
        operator: Spanned::new(BinaryOperator::Add, at),
        left: Box::new(Spanned::new(symbol, at)),
        right: Box::new(Spanned::new(integer(offset), at)),
    }
}

/// A value, or `A..B`.
pub(super) fn listed(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    let (behind, start) = expression(input)?;
    match mark("..")(behind) {
        Ok((behind, _)) => {
            let (behind, end) = cut(expression).parse(behind)?;
            let at = start.at.to(end.at);
            Ok((behind, Spanned::new(Range::Span { start, end }, at)))
        }
        Err(_) => Ok((behind, whole(start, true))),
    }
}
