//! Expressions: precedence climbing over the table of operators, and the operands.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;

use super::atoms::{self, bracketed, constant, fraction, indexed, text};
use super::names::{named, symbol};
use super::operators::{Chain, unary_operator};
use super::snapshots::{later, snapshot_name};
use super::stream::{Failed, Parsed, Tokens, glued, is_mark, mark, silent_mark, silent_word, word};
use crate::kernel::words::Worded;
use crate::lang::class::Class;
use crate::lang::ctype::{self, CType, KNOWN, UNKNOWN_TYPE_HINT};
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::{ChangeFunction, Changes, Expression, Function, Name, NumberType, Range};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::span::{Span, Spanned};

/// `expression`
pub(super) fn expression(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, first) = unary(input)?;
    let binary = Chain { operand: unary, join: |operator, left, right| Expression::Binary { operator, left, right } };
    binary.behind(behind, first, |_| true)
}

fn unary(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    match unary_operator(input) {
        Ok((behind, operator)) => {
            let (behind, operand) = input.nested(|| cut(unary).parse(behind))?;
            let at = operator.at.to(operand.at);
            let operand = Box::new(operand);
            let node = Expression::Unary { operator, operand };
            Ok((behind, Spanned::new(node, at)))
        }
        // `(int)` alone is a name in parentheses.
        Err(_) => cast_operand(input).or_else(|_| elements(input)),
    }
}

/// `primary`, or an element of what has elements: `$x[2]`, `(E)[2]`.
fn elements(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (mut behind, mut of) = primary(input)?;
    // The tokenizer makes these brackets only where an element can be.
    while let Some(token) = behind.first()
        && let TokenKind::Dimension(number) = token.kind
        && token.glued
        && !is_call(input)
    {
        let index = Spanned::new(number, token.at);
        let at = of.at.to(token.at);
        of = Spanned::new(Expression::Element { of: Box::new(of), index }, at);
        let rest = behind.rest.get(1..).unwrap_or_default();
        behind = Tokens { rest, ..behind };
    }
    Ok((behind, of))
}

/// Whether a value ends with the parenthesis of a function: that is no C.
fn is_call(input: Tokens<'_>) -> bool {
    input.first().is_some_and(|token| !is_mark(token, "(") && !token.text.starts_with('$'))
}

/// `c_cast unary`
fn cast_operand(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, to) = cast_type(input)?;
    let (behind, operand) = input.nested(|| unary(behind))?;
    let at = to.at.to(operand.at);
    let reads = input.first().is_some_and(|token| token.text == "{");
    Ok((behind, Spanned::new(atoms::cast(to, reads, operand), at)))
}

/// `c_cast`
fn cast_type(input: Tokens<'_>) -> Parsed<'_, Spanned<CType>> {
    let close = match input.first() {
        Some(token) if is_mark(token, "(") => ")",
        Some(token) if is_mark(token, "{") => "}",
        _ => return Err(nom::Err::Error(Failed)),
    };
    let Some(length) = input.rest.iter().position(|token| is_mark(token, close)) else {
        return Err(nom::Err::Error(Failed));
    };
    let (bracketed, rest) = input.rest.split_at(length + 1);
    let mut parts: Vec<&Token<'_>> = bracketed.iter().skip(1).take(length - 1).collect();
    let at = input.place().to(bracketed.last().map_or(input.place(), |token| token.at));
    let is_part = |part: &&Token<'_>| part.kind == TokenKind::Name || is_mark(part, "*");
    let mut counts = Vec::new();
    while close == "}"
        && let Some(TokenKind::Dimension(count)) = parts.last().map(|part| &part.kind)
    {
        counts.insert(0, *count);
        parts.pop();
    }
    if !parts.iter().all(is_part) {
        return Err(nom::Err::Error(Failed));
    }
    let texts: Vec<&str> = parts.iter().map(|part| part.text).collect();
    match CType::of(&texts).filter(|_| !counts.contains(&0)) {
        Some(of) => {
            let to = of.array(&counts);
            input.notes.note_class(Class::Keyword, at);
            Ok((Tokens { rest, ..input }, Spanned::new(to, at)))
        }
        // No expression has two names in a row, or ends in a `*`.
        None if texts.last() == Some(&"*") && texts.len() > 1 || is_two_words(&texts) || close == "}" => {
            input.fault(unknown_type(input, at))
        }
        None => Err(nom::Err::Error(Failed)),
    }
}

fn is_two_words(parts: &[&str]) -> bool {
    matches!(parts, [first, second, ..] if *first != "*" && *second != "*")
}

fn unknown_type(input: Tokens<'_>, at: Span) -> SyntaxError {
    let written = input.notes.line.get(at.start..at.end).unwrap_or_default();
    SyntaxError {
        at,
        message: ctype::unknown_type(written),
        expected: vec![KNOWN.to_owned()],
        hint: Some(UNKNOWN_TYPE_HINT.to_owned()),
    }
}

/// `primary`
fn primary(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((place, fraction, text, named, indexed, bracketed, parenthesised)).parse(input)
}

fn parenthesised(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, open) = silent_mark("(")(input)?;
    let inside = || (cut(expression), cut(mark(")"))).parse(behind);
    let (behind, (inner, close)) = input.nested(inside)?;
    Ok((behind, Spanned::new(inner.node, open.to(close))))
}

/// `place`: the values that filters can contain too.
pub(super) fn place(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((constant, address_of, physical, call, changes, read)).parse(input)
}

fn address_of(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, and) = silent_mark("&")(input)?;
    let (behind, symbol) = cut(symbol).parse(behind)?;
    let at = and.to(symbol.at);
    Ok((behind, Spanned::new(Expression::AddressOf(symbol.node), at)))
}

/// `pfn:E`, `phys:E`
fn physical(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    type Wrap = fn(Box<Spanned<Expression>>) -> Expression;
    let frame = silent_word("pfn").map(|at| (Expression::Frame as Wrap, at));
    let physical = silent_word("phys").map(|at| (Expression::Physical as Wrap, at));
    let (behind, (wrap, at)) = alt((frame, physical)).parse(input)?;
    if !glued(behind, ":") {
        return Err(nom::Err::Error(Failed));
    }
    let (behind, _) = mark(":")(behind)?;
    let (behind, operand) = input.nested(|| cut(primary).parse(behind))?;
    let at = at.to(operand.at);
    Ok((behind, Spanned::new(wrap(Box::new(operand)), at)))
}

fn call(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, function) = before_parenthesis::<Function>(input)?;
    let inside = || {
        let (behind, argument) = cut(span).parse(behind)?;
        let (behind, filter) = if function.node.takes_filter() { behind.page_filter()? } else { (behind, None) };
        let (behind, close) = cut(mark(")")).parse(behind)?;
        Ok((behind, (argument, filter, close)))
    };
    let (behind, (argument, filter, close)) = input.nested(inside)?;
    let node = Expression::Call { function: function.node, argument: Box::new(argument), filter: filter.map(Box::new) };
    Ok((behind, Spanned::new(node, function.at.to(close))))
}

/// `changed(A, B in R where F)`
fn changes(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, function) = before_parenthesis::<ChangeFunction>(input)?;
    let inside = || {
        let (behind, from) = cut(snapshot_name).parse(behind)?;
        let (behind, to) = preceded(cut(mark(",")), cut(later)).parse(behind)?;
        let (behind, range) = opt(preceded(word("in"), cut(span))).parse(behind)?;
        let (behind, filter) = behind.page_filter()?;
        let (behind, close) = cut(mark(")")).parse(behind)?;
        Ok((behind, (from, to, range, filter, close)))
    };
    let (behind, (from, to, range, filter, close)) = input.nested(inside)?;
    let at = function.at.to(close);
    let changes = Changes { function, from, to, range, filter };
    Ok((behind, Spanned::new(Expression::Changes(Box::new(changes)), at)))
}

fn read(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, as_type) = before_parenthesis::<NumberType>(input)?;
    let inside = || (cut(expression), cut(mark(")"))).parse(behind);
    let (behind, (address, close)) = input.nested(inside)?;
    let node = Expression::Read { as_type: as_type.node, address: Box::new(address) };
    Ok((behind, Spanned::new(node, as_type.at.to(close))))
}

/// A known word and the `(` behind it, which makes the name a function.
fn before_parenthesis<T: Worded>(input: Tokens<'_>) -> Parsed<'_, Spanned<T>> {
    let found = input.first().filter(|token| token.kind == TokenKind::Name).and_then(|token| T::from_word(token.text));
    match found {
        Some(meaning) => {
            let (behind, (at, _)) = (silent_word(meaning.word()), silent_mark("(")).parse(input)?;
            input.notes.note_class(Class::Function, at);
            Ok((behind, Spanned::new(meaning, at)))
        }
        None => Err(nom::Err::Error(Failed)),
    }
}

/// `span`
pub(super) fn span(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    span_with(input, |input| opt(preceded(mark(","), preceded(cut(mark("+")), cut(expression)))).parse(input))
}

/// A range of which `length` parses `, +LENGTH`.
pub(super) fn span_with<'a>(
    input: Tokens<'a>,
    length: impl Fn(Tokens<'a>) -> Parsed<'a, Option<Spanned<Expression>>>,
) -> Parsed<'a, Spanned<Range>> {
    input.expect(Expected::Range);
    let (behind, start) = expression(input)?;
    if let Ok((behind, _)) = mark("..")(behind) {
        let (behind, end) = cut(expression).parse(behind)?;
        let at = start.at.to(end.at);
        return Ok((behind, Spanned::new(Range::Span { start, end }, at)));
    }
    let (behind, length) = length(behind)?;
    if let Some(length) = length {
        let at = start.at.to(length.at);
        return Ok((behind, Spanned::new(Range::Length { start, length }, at)));
    }
    let quoted = input.first().is_none_or(|token| token.kind != TokenKind::Name);
    Ok((behind, whole(start, quoted)))
}

/// A range that is one expression. `all` without quotes is the whole address space.
pub(super) fn whole(start: Spanned<Expression>, quoted: bool) -> Spanned<Range> {
    let range = match start.node {
        Expression::Name(Name(ref name)) if name == "all" && !quoted => Range::All,
        other => Range::Expression(other),
    };
    Spanned::new(range, start.at)
}
