//! Expressions: precedence climbing over the table of operators.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;

use super::place::{FUNCTIONS, INTEGER_TYPES, place};
use super::stream::{Parsed, Tokens, is_mark, mark, silent_mark};
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::{Expression, Name, SymbolName, UnaryOperator};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::operators::{BINARY, Level, UNARY};
use crate::lang::place::{Place, Spanned};
use crate::lang::syntax::BinaryOperator;

/// `expression`
pub(super) fn expression(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    binary(input, Level::LOOSEST)
}

/// A chain of operators that bind at least as tightly as `loosest`.
fn binary(input: Tokens<'_>, loosest: Level) -> Parsed<'_, Spanned<Expression>> {
    let (mut input, mut left) = unary(input)?;
    while let (behind, Some((operator, level))) = operator(input, |level| level >= loosest)? {
        let (behind, right) = cut(|input| binary(input, level.tighter())).parse(behind)?;
        let at = left.at.to(right.at);
        let node = Expression::Binary {
            operator,
            left: Box::new(left),
            right: Box::new(right),
        };
        left = Spanned::new(node, at);
        input = behind;
    }
    Ok((input, left))
}

/// The operator that stands here, if it is of a wanted level.
pub(super) fn operator(
    input: Tokens<'_>,
    wanted: impl Fn(Level) -> bool,
) -> Parsed<'_, Option<(Spanned<BinaryOperator>, Level)>> {
    let known = |token: &Token<'_>| {
        let row = BINARY
            .iter()
            .find(|(text, level, _)| is_mark(token, text) && wanted(*level))?;
        Some((row.2, row.1))
    };
    match input.accept(Expected::Operator, known) {
        Ok((behind, found)) => {
            let (behind, ()) = behind.count_operator()?;
            Ok((
                behind,
                Some((Spanned::new(found.node.0, found.at), found.node.1)),
            ))
        }
        Err(_) => Ok((input, None)),
    }
}

/// The operator before an operand, if one stands here.
pub(super) fn unary_operator(input: Tokens<'_>) -> Parsed<'_, Spanned<UnaryOperator>> {
    input.accept(Expected::Expression, |token| {
        UNARY
            .iter()
            .find(|(text, _)| is_mark(token, text))
            .map(|(_, operator)| *operator)
    })
}

fn unary(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    match unary_operator(input) {
        Ok((behind, operator)) => {
            let (behind, operand) = input.nested(|| cut(unary).parse(behind))?;
            let at = operator.at.to(operand.at);
            Ok((
                behind,
                Spanned::new(
                    Expression::Unary {
                        operator,
                        operand: Box::new(operand),
                    },
                    at,
                ),
            ))
        }
        Err(_) => primary(input),
    }
}

/// `primary`
pub(super) fn primary(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((place, text, named, indexed, bracketed, parenthesised)).parse(input)
}

fn parenthesised(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, open) = silent_mark("(")(input)?;
    let inside = || (cut(expression), cut(mark(")"))).parse(behind);
    let (behind, (inner, close)) = input.nested(inside)?;
    Ok((behind, Spanned::new(inner.node, open.to(close))))
}

fn text(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| match &token.kind {
        TokenKind::Text(text) => Some(Expression::Text(text.clone())),
        _ => None,
    })
}

fn bracketed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| {
        let inner = token.text.strip_prefix('[')?.strip_suffix(']')?;
        (token.kind == TokenKind::Bracketed).then(|| Expression::BracketedRegion(inner.to_owned()))
    })
}

fn indexed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| match &token.kind {
        TokenKind::Indexed {
            module,
            module_length,
            index,
        } => {
            let middle = token.at.start + module_length;
            Some(Expression::ModuleRegion {
                module: Spanned::new(Name(module.clone()), Place::new(token.at.start, middle)),
                index: Spanned::new(*index, Place::new(middle + 1, token.at.end - 1)),
            })
        }
        _ => None,
    })
}

/// `name`
pub(super) fn name(input: Tokens<'_>, expected: Expected) -> Parsed<'_, Spanned<Name>> {
    input.accept(expected, |token| match &token.kind {
        TokenKind::Name => Some(Name(token.text.to_owned())),
        TokenKind::Quoted(name) => Some(Name(name.clone())),
        _ => None,
    })
}

/// Whether the next token is this mark with nothing before it.
pub(super) fn glued(input: Tokens<'_>, text: &str) -> bool {
    input
        .first()
        .is_some_and(|token| token.glued && is_mark(token, text))
}

/// Fails unless nothing stands before the next token.
fn need_glue(input: Tokens<'_>, expected: Expected) -> Parsed<'_, ()> {
    if input.first().is_none_or(|token| token.glued) {
        Ok((input, ()))
    } else {
        input.fail(expected)
    }
}

/// What `name!` has behind it.
enum InModule {
    Symbol(Name),
    Address(u64),
}

/// The `!` and what follows it, if a `!` is glued on here.
fn in_module<'a>(input: Tokens<'a>, addresses: bool) -> Parsed<'a, Option<Spanned<InModule>>> {
    if !glued(input, "!") {
        return Ok((input, None));
    }
    let (behind, _) = mark("!")(input)?;
    let (behind, ()) = cut(|input| need_glue(input, Expected::Symbol)).parse(behind)?;
    let (behind, found) = cut(|input: Tokens<'a>| {
        input.expect(Expected::Symbol);
        input.accept(
            if addresses {
                Expected::Number
            } else {
                Expected::Symbol
            },
            |token| match &token.kind {
                TokenKind::Name => Some(InModule::Symbol(Name(token.text.to_owned()))),
                TokenKind::Quoted(name) => Some(InModule::Symbol(Name(name.clone()))),
                TokenKind::Number(address) if addresses => Some(InModule::Address(*address)),
                _ => None,
            },
        )
    })
    .parse(behind)?;
    Ok((behind, Some(found)))
}

/// A name, alone or before a `!`.
fn named(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, first) = name(input, Expected::Expression)?;
    let unquoted = input
        .first()
        .is_some_and(|token| token.kind == TokenKind::Name);
    if unquoted && behind.first().is_some_and(|token| is_mark(token, "(")) {
        return unknown_function(behind, &first);
    }
    let (behind, second) = in_module(behind, true)?;
    Ok((
        behind,
        match second {
            None => first.map(Expression::Name),
            Some(second) => {
                let at = first.at.to(second.at);
                let node = match second.node {
                    InModule::Symbol(name) => Expression::ModuleSymbol {
                        module: first,
                        symbol: Spanned::new(name, second.at),
                    },
                    InModule::Address(address) => Expression::ModuleAddress {
                        module: first,
                        address: Spanned::new(address, second.at),
                    },
                };
                Spanned::new(node, at)
            }
        },
    ))
}

fn unknown_function<'a, T>(input: Tokens<'a>, name: &Spanned<Name>) -> Parsed<'a, T> {
    let known: Vec<&str> = FUNCTIONS
        .iter()
        .map(|(name, _)| *name)
        .chain(INTEGER_TYPES.iter().map(|(name, _)| *name))
        .collect();
    input.fault(SyntaxError {
        at: name.at,
        message: format!("there is no function `{}`", name.node.0),
        hint: SyntaxError::did_you_mean(&name.node.0, known.iter().copied()),
        expected: known.iter().map(|name| format!("`{name}`")).collect(),
    })
}

/// `symbol`
pub(super) fn symbol(input: Tokens<'_>) -> Parsed<'_, Spanned<SymbolName>> {
    let (behind, first) = name(input, Expected::Symbol)?;
    let (behind, second) = in_module(behind, false)?;
    Ok((
        behind,
        match second {
            Some(Spanned {
                node: InModule::Symbol(name),
                at,
            }) => {
                let whole = first.at.to(at);
                Spanned::new(
                    SymbolName {
                        module: Some(first),
                        symbol: Spanned::new(name, at),
                    },
                    whole,
                )
            }
            _ => {
                let at = first.at;
                Spanned::new(
                    SymbolName {
                        module: None,
                        symbol: first,
                    },
                    at,
                )
            }
        },
    ))
}
