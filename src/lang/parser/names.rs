//! Names, alone, in a module or before a line: `main`, `libc.so.6!malloc`, `libc.so.6!0x1149`, `server.c:210`; and
//! values of a single token.

use crate::kernel::words::Worded;
use crate::lang::ctype::CType;
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::{
    ChangeFunction, Expression, Function, LAST_ADDRESS, Name, NumberType, Register, SymbolName, UnaryOperator,
    is_operator_word,
};
use crate::lang::field;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::parser::input::{Parsed, Tokens};
use crate::lang::parser::slips;
use crate::lang::parser::stream::{glued, is_mark, mark, spanned_number};
use crate::lang::span::{Span, Spanned};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map};

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

/// A number with digits after a point.
pub(crate) fn fraction(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Fraction { value, .. } => Some(Expression::Fraction(*value)),
        _ => None,
    })
}

/// Numbers, and what begins with `$`.
pub(crate) fn constant(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Number(value) | TokenKind::PastedValue(value) | TokenKind::PastedAddress(value) => {
            Some(Expression::Integer(i128::from(*value)))
        }
        TokenKind::PastedCast { to, reads, address } => {
            let address = Spanned::new(Expression::Integer(i128::from(*address)), token.at);
            Some(cast(Spanned::new(to.clone(), token.at), *reads, address))
        }
        TokenKind::Pages(count) => Some(Expression::Pages(*count)),
        TokenKind::History(reference) => Some(Expression::History(*reference)),
        TokenKind::Variable => Some(match token.text {
            LAST_ADDRESS => Expression::LastAddress,
            text => match Register::from_word(text) {
                Some(register) => Expression::Register(register),
                None => Expression::Variable(text.trim_start_matches('$').to_owned()),
            },
        }),
        _ => None,
    })
}

/// `(T)E`, or `{T}E`, which is `*(T *)E`.
pub(crate) fn cast(to: Spanned<CType>, reads: bool, operand: Spanned<Expression>) -> Expression {
    let at = to.at;
    let to = if reads { to.map(|to| CType::Pointer(Box::new(to))) } else { to };
    let cast = Expression::Cast { to, operand: Box::new(operand) };
    if !reads {
        return cast;
    }
    Expression::Unary {
        operator: Spanned::new(UnaryOperator::Dereference, at),
        operand: Box::new(Spanned::new(cast, at)),
    }
}

pub(crate) fn text(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Text(text) => Some(Expression::Text(text.clone())),
        _ => None,
    })
}

pub(crate) fn bracketed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| {
        let inner = token.text.strip_prefix('[')?.strip_suffix(']')?;
        (token.kind == TokenKind::Bracketed).then(|| Expression::BracketedRegion(inner.to_owned()))
    })
}

pub(crate) fn indexed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Indexed { module, module_length, index } => {
            let middle = token.at.start + module_length;
            Some(Expression::ModuleRegion {
                module: Spanned::new(Name(module.clone()), Span::new(token.at.start, middle)),
                index: Spanned::new(*index, Span::new(middle + 1, token.at.end - 1)),
            })
        }
        _ => None,
    })
}
