//! Names, alone, in a module or before a line: `main`, `libc.so.6!malloc`, `libc.so.6!0x1149`, `server.c:210`.

use nom::Parser;
use nom::combinator::cut;

use super::stream::{Parsed, Tokens, glued, is_mark, mark};
use super::typed_name;
use crate::kernel::words::Worded;
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::{
    ChangeFunction, Expression, Function, IntegerType, Name, SymbolName,
};
use crate::lang::field::{FilterField, PageField};
use crate::lang::lexer::TokenKind;
use crate::lang::span::Spanned;

/// `name`
fn name(input: Tokens<'_>, expected: Expected) -> Parsed<'_, Spanned<Name>> {
    input.accept(expected, |token| match &token.kind {
        TokenKind::Name => Some(Name(token.text.to_owned())),
        TokenKind::Quoted(name) => Some(Name(name.clone())),
        _ => None,
    })
}

/// Fails unless nothing stands before the next token.
fn need_glue(input: Tokens<'_>, expected: Expected) -> Parsed<'_, ()> {
    if input.first().is_none_or(|token| token.glued) {
        Ok((input, ()))
    } else {
        input.fail(expected)
    }
}

/// The part after `MODULE!`.
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
pub(super) fn named(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, first) = name(input, Expected::Expression)?;
    let unquoted = input
        .first()
        .is_some_and(|token| token.kind == TokenKind::Name);
    if unquoted && behind.first().is_some_and(|token| is_mark(token, "(")) {
        return unknown_function(input, &first);
    }
    if glued(behind, ":") {
        return source_line(behind, first);
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

/// The `:` behind the name of a source file, and the line.
fn source_line<'a>(input: Tokens<'a>, file: Spanned<Name>) -> Parsed<'a, Spanned<Expression>> {
    let (behind, _) = mark(":")(input)?;
    let (behind, ()) = cut(|input| need_glue(input, Expected::Number)).parse(behind)?;
    let (behind, line) = cut(|input: Tokens<'a>| {
        input.accept(Expected::Number, |token| match &token.kind {
            TokenKind::Number(line) => Some(*line),
            _ => None,
        })
    })
    .parse(behind)?;
    let at = file.at.to(line.at);
    Ok((
        behind,
        Spanned::new(Expression::SourceLine { file, line }, at),
    ))
}

/// The hint for a field of pages that is called like a function.
fn condition(word: &str) -> Option<String> {
    PageField::from_name(word)?;
    Some(format!(
        "`{word}` is a condition on pages: count(RANGE where {word}) > 0"
    ))
}

fn unknown_function<'a, T>(input: Tokens<'a>, name: &Spanned<Name>) -> Parsed<'a, T> {
    let known = Function::words().chain(ChangeFunction::words());
    let known: Vec<&str> = known.chain(IntegerType::words()).collect();
    input.fault(SyntaxError {
        at: name.at,
        message: format!("there is no function `{}`", name.node.0),
        hint: condition(&name.node.0)
            .or_else(|| SyntaxError::did_you_mean(&name.node.0, known.iter().copied()))
            .or_else(|| typed_name::quotes(input.notes.line, input.rest))
            .or_else(|| Some(typed_name::QUOTES.to_owned())),
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
