//! Names, alone, in a module or before a line: `main`, `libc.so.6!malloc`, `libc.so.6!0x1149`, `server.c:210`.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map};

use super::input::{Parsed, Tokens};
use super::slips;
use super::stream::{glued, is_mark, mark, spanned_number};
use crate::kernel::words::Worded;
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::{ChangeFunction, Expression, Function, Name, NumberType, SymbolName};
use crate::lang::field;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::operators::is_operator_word;
use crate::lang::span::Spanned;

/// `name`
fn name(token: &Token<'_>) -> Option<Name> {
    match &token.kind {
        TokenKind::Name => Some(Name(token.text.to_owned())),
        TokenKind::Quoted(name) => Some(Name(name.clone())),
        _ => None,
    }
}

/// Fails unless nothing stands before the next token.
fn need_glue(input: Tokens<'_>, expected: Expected) -> Parsed<'_, ()> {
    if input.first().is_none_or(|token| token.glued) { Ok((input, ())) } else { input.fail(expected) }
}

/// What follows a `!`, if one is glued on here.
fn in_module<'a, T>(input: Tokens<'a>, inside: impl Fn(Tokens<'a>) -> Parsed<'a, T>) -> Parsed<'a, Option<T>> {
    if !glued(input, "!") {
        return Ok((input, None));
    }
    let (behind, _) = mark("!")(input)?;
    let (behind, ()) = cut(|input| need_glue(input, Expected::Symbol)).parse(behind)?;
    map(cut(inside), Some).parse(behind)
}

/// A name, alone or before a `!`.
pub(crate) fn named(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let is_bare = |token: &Token<'_>| token.kind == TokenKind::Name;
    let is_operator = |token: &Token<'_>| is_bare(token) && is_operator_word(token.text);
    let (behind, first) = input.accept_operand(|token| name(token).filter(|_| !is_operator(token)))?;
    let unquoted = input.first().is_some_and(is_bare);
    if unquoted && behind.first().is_some_and(|token| is_mark(token, "(")) {
        return unknown_function(input, &first);
    }
    if glued(behind, ":") {
        return source_line(behind, first);
    }
    let inside = |input| {
        let symbol = map(symbol_name, |symbol| (symbol.at, Inside::Symbol(symbol)));
        let address = map(spanned_number, |address| (address.at, Inside::Address(address)));
        alt((symbol, address)).parse(input)
    };
    let (behind, second) = in_module(behind, inside)?;
    let Some((at, second)) = second else {
        return Ok((behind, first.map(Expression::Name)));
    };
    let at = first.at.to(at);
    let module = first;
    let node = match second {
        Inside::Symbol(symbol) => Expression::ModuleSymbol { module, symbol },
        Inside::Address(address) => Expression::ModuleAddress { module, address },
    };
    Ok((behind, Spanned::new(node, at)))
}

/// A symbol or an address of a module: the second part of `MODULE!SYMBOL`.
enum Inside {
    Symbol(Spanned<Name>),
    Address(Spanned<u64>),
}

/// The `:` behind the name of a source file, and the line.
fn source_line<'a>(input: Tokens<'a>, file: Spanned<Name>) -> Parsed<'a, Spanned<Expression>> {
    let (behind, _) = mark(":")(input)?;
    let (behind, ()) = cut(|input| need_glue(input, Expected::Number)).parse(behind)?;
    let (behind, line) = cut(spanned_number).parse(behind)?;
    let at = file.at.to(line.at);
    let node = Expression::SourceLine { file, line };
    Ok((behind, Spanned::new(node, at)))
}

fn unknown_function<'a, T>(input: Tokens<'a>, name: &Spanned<Name>) -> Parsed<'a, T> {
    let known = Function::words().chain(ChangeFunction::words());
    let known: Vec<&str> = known.chain(NumberType::words()).collect();
    input.fault(SyntaxError {
        at: name.at,
        message: format!("there is no function `{}`", name.node.0),
        hint: field::as_value(&name.node.0)
            .or_else(|| SyntaxError::did_you_mean(&name.node.0, known.iter().copied()))
            .or_else(|| slips::quotes(input.notes.line, input.rest))
            .or_else(|| Some(slips::QUOTES.to_owned())),
        expected: known.iter().map(|name| format!("`{name}`")).collect(),
    })
}

/// `symbol`
pub(crate) fn symbol(input: Tokens<'_>) -> Parsed<'_, Spanned<SymbolName>> {
    let (behind, first) = symbol_name(input)?;
    let (behind, second) = in_module(behind, symbol_name)?;
    let at = first.at;
    let (at, module, symbol) = match second {
        Some(symbol) => (at.to(symbol.at), Some(first), symbol),
        None => (at, None, first),
    };
    Ok((behind, Spanned::new(SymbolName { module, symbol }, at)))
}

fn symbol_name(input: Tokens<'_>) -> Parsed<'_, Spanned<Name>> {
    input.accept(Expected::Symbol, name)
}
