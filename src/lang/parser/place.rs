//! `place`: the values that expressions and filters have in common, none of which is a bare name.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;

use super::expression::{expression, glued, primary, symbol};
use super::range;
use super::stream::{Failed, Parsed, Tokens, mark, silent_mark, silent_word};
use crate::lang::expected::Expected;
use crate::lang::expression::{Expression, Function, IntegerType, Register};
use crate::lang::highlight::Class;
use crate::lang::lexer::TokenKind;
use crate::lang::place::Spanned;

/// The functions by name.
pub(in crate::lang) static FUNCTIONS: &[(&str, Function)] = &[
    ("pfn", Function::Pfn),
    ("phys", Function::Phys),
    ("page", Function::Page),
    ("region", Function::Region),
    ("start", Function::Start),
    ("end", Function::End),
    ("size", Function::Size),
    ("symbol", Function::Symbol),
];

/// The types that memory is read as, by name.
pub(in crate::lang) static INTEGER_TYPES: &[(&str, IntegerType)] = &[
    ("u8", IntegerType::U8),
    ("u16", IntegerType::U16),
    ("u32", IntegerType::U32),
    ("u64", IntegerType::U64),
    ("i8", IntegerType::I8),
    ("i16", IntegerType::I16),
    ("i32", IntegerType::I32),
    ("i64", IntegerType::I64),
];

/// `place`: the values that filters have too.
pub(super) fn place(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((constant, address_of, physical, call, read)).parse(input)
}

/// A value of a single token.
fn constant(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| match &token.kind {
        TokenKind::Number(value)
        | TokenKind::PastedValue(value)
        | TokenKind::PastedAddress(value) => Some(Expression::Integer(i128::from(*value))),
        TokenKind::Pages(count) => Some(Expression::Pages(*count)),
        TokenKind::History(reference) => Some(Expression::History(*reference)),
        TokenKind::Variable => Some(match token.text {
            "$_" => Expression::LastAddress,
            "$pc" => Expression::Register(Register::ProgramCounter),
            "$sp" => Expression::Register(Register::StackPointer),
            name => Expression::Variable(name.strip_prefix('$').unwrap_or(name).to_owned()),
        }),
        _ => None,
    })
}

fn address_of(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, and) = silent_mark("&")(input)?;
    let (behind, symbol) = cut(symbol).parse(behind)?;
    let at = and.to(symbol.at);
    Ok((behind, Spanned::new(Expression::AddressOf(symbol.node), at)))
}

/// `pfn:E`, `phys:E`
fn physical(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, (wrap, at)) = alt((
        silent_word("pfn").map(|at| {
            (
                Expression::Frame as fn(Box<Spanned<Expression>>) -> Expression,
                at,
            )
        }),
        silent_word("phys").map(|at| {
            (
                Expression::Physical as fn(Box<Spanned<Expression>>) -> Expression,
                at,
            )
        }),
    ))
    .parse(input)?;
    if !glued(behind, ":") {
        return Err(nom::Err::Error(Failed));
    }
    let (behind, _) = mark(":")(behind)?;
    let (behind, operand) = input.nested(|| cut(primary).parse(behind))?;
    let at = at.to(operand.at);
    Ok((behind, Spanned::new(wrap(Box::new(operand)), at)))
}

fn call(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, function) = before_parenthesis(input, FUNCTIONS)?;
    let inside = || (cut(range::span), cut(mark(")"))).parse(behind);
    let (behind, (argument, close)) = input.nested(inside)?;
    let node = Expression::Call {
        function: function.node,
        argument: Box::new(argument),
    };
    Ok((behind, Spanned::new(node, function.at.to(close))))
}

fn read(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, as_type) = before_parenthesis(input, INTEGER_TYPES)?;
    let inside = || (cut(expression), cut(mark(")"))).parse(behind);
    let (behind, (address, close)) = input.nested(inside)?;
    let node = Expression::Read {
        as_type: as_type.node,
        address: Box::new(address),
    };
    Ok((behind, Spanned::new(node, as_type.at.to(close))))
}

/// A known word and the `(` behind it: only that makes a name a function.
fn before_parenthesis<'a, T: Copy>(
    input: Tokens<'a>,
    known: &'static [(&'static str, T)],
) -> Parsed<'a, Spanned<T>> {
    let found = input
        .first()
        .filter(|token| token.kind == TokenKind::Name)
        .and_then(|token| known.iter().find(|(name, _)| *name == token.text));
    match found {
        Some((name, meaning)) => {
            let (behind, (at, _)) = (silent_word(name), silent_mark("(")).parse(input)?;
            input.notes.note_class(Class::Function, at);
            Ok((behind, Spanned::new(*meaning, at)))
        }
        None => Err(nom::Err::Error(Failed)),
    }
}
