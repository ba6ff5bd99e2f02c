//! Expressions: precedence climbing over the table of operators, and operands.

use super::combinators::{glued, is_mark, mark, silent_mark, silent_word, word};
use super::input::{BareWords, Failed, Parsed, Tokens, ValueTypes};
use super::names::{field, named, part_of_scope, symbol};
use crate::kernel::words::Worded;
use crate::lang::ctype::{self, CType, KNOWN_TYPES};
use crate::lang::error::{Class, Span, Spanned, SyntaxError};
use crate::lang::expected::Expected;
use crate::lang::expression::{
    BinaryOperator, ChangeFunction, Changes, Expression, FilterExpression, Function, Level, NumberType, Range,
    UnaryOperator, WrittenName, is_operator_word,
};
use crate::lang::field::{FilterField, PageField};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::parser::input::Fault;
use crate::lang::parser::names;
use crate::lang::parser::names::{bracketed, constant, fraction, indexed, later, snapshot_name, text};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;

/// Parses the rule `expression`, or in a filter a part of the type that its scope needs.
pub(crate) fn expression(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, first) = conjunct(input)?;
    chain(behind, first, None)
}

/// Parses an operand of `and` and `or`: a negation, or an operand of other operators.
fn conjunct(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    match negation(input) {
        Err(nom::Err::Error(_)) => unary(input),
        found => found,
    }
}

/// Parses `"not" negation`, and in a filter `"!" test<S>`, which negates the whole comparison after it. This is a
/// separate function, as [`unary`] is, because deep nesting needs small stack frames.
fn negation(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, at) = match silent_word("not")(input) {
        Ok((behind, at)) => {
            input.notes.note_class(Class::Keyword, at);
            (behind, at)
        }
        Err(_) if input.scope.takes(ValueTypes::CONDITION) => silent_mark("!")(input)?,
        Err(error) => return Err(error),
    };
    let operator = Spanned::new(UnaryOperator::Not, at);
    let (behind, operand) = input.nested(|| {
        let (behind, first) = cut(conjunct).parse(behind.in_scope(input.scope.behind(operator.node)))?;
        let (behind, operand) = chain(behind, first, Some(Level::And))?;
        part_of_scope(behind, operand)
    })?;
    Ok((behind.in_scope(input.scope), before(operator, operand)))
}

/// Parses the rule `unary`, or in a filter `factor<S>`.
fn unary(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let Ok((behind, operator)) = unary_operator(input) else {
        return operand(input);
    };
    let (behind, inner) = input.nested(|| {
        let (behind, inner) = cut(unary).parse(behind.in_scope(input.scope.behind(operator.node)))?;
        part_of_scope(behind, inner)
    })?;
    Ok((behind.in_scope(input.scope), before(operator, inner)))
}

/// Parses the operator before an operand, if there is one.
fn unary_operator(input: Tokens<'_>) -> Parsed<'_, Spanned<UnaryOperator>> {
    let is_possible = |operator: &UnaryOperator| match operator {
        UnaryOperator::Not => input.scope == BareWords::Value,
        UnaryOperator::Dereference => true,
        _ => input.scope == BareWords::Value || input.scope.takes(ValueTypes::CONDITION | ValueTypes::NUMBER),
    };
    input.accept_operand(|token| {
        let mut all = UnaryOperator::ALL.iter().copied();
        all.find(|operator| is_mark(token, operator.text()) && is_possible(operator))
    })
}

fn before(operator: Spanned<UnaryOperator>, operand: Spanned<Expression>) -> Spanned<Expression> {
    let at = operator.at.to(operand.at);
    Spanned::new(Expression::Unary { operator, operand: Box::new(operand) }, at)
}

/// Parses the operators and operands after a first operand, as far as the operators bind more tightly than `level`.
/// They are left-associative.
fn chain(
    mut input: Tokens<'_>,
    mut left: Spanned<Expression>,
    level: Option<Level>,
) -> Parsed<'_, Spanned<Expression>> {
    // Operators that bind more tightly have become a part of the right operand.
    let mut tightest = Level::Unary;
    while let (behind, Some(operator)) = operator(input, &left.node, |own| own <= tightest && Some(own) > level)? {
        tightest = operator.node.level();
        let (behind, right) = right_operand(behind, &left.node, operator.node)?;
        let at = left.at.to(right.at);
        let (before, right) = (Box::new(left), Box::new(right));
        left = Spanned::new(Expression::Binary { operator, left: before, right }, at);
        input = behind;
    }
    Ok((input, left))
}

/// Parses the operand after an operator, up to the next operator that binds as tightly or more loosely.
fn right_operand<'a>(
    input: Tokens<'a>,
    left: &Expression,
    operator: BinaryOperator,
) -> Parsed<'a, Spanned<Expression>> {
    let level = operator.level();
    let first = if level.joins() { conjunct } else { unary };
    // Comparisons in a filter cannot be chained.
    let looser = if level.compares() && input.scope != BareWords::Value { Level::Relation } else { level };
    input.parsed_in(input.scope.right_of(left, operator), |input| {
        let (behind, first) = cut(first).parse(input)?;
        let (behind, right) = chain(behind, first, Some(looser))?;
        part_of_scope(behind, right)
    })
}

/// Parses the operator after `left`, if it has a wanted level.
fn operator<'a>(
    input: Tokens<'a>,
    left: &Expression,
    wanted: impl Fn(Level) -> bool + Copy,
) -> Parsed<'a, Option<Spanned<BinaryOperator>>> {
    let stands_here = |token: &Token<'_>, operator: BinaryOperator| {
        is_mark(token, operator.text()) || token.kind == TokenKind::Name && operator.as_word() == Some(token.text)
    };
    let found = input.rest.split_first().and_then(|(token, rest)| {
        let mut all = BinaryOperator::ALL.iter().copied();
        let is_it = |operator: &BinaryOperator| {
            stands_here(token, *operator) && wanted(operator.level()) && input.scope.takes_behind(left, *operator)
        };
        Some((token, rest, all.find(is_it)?))
    });
    let Some((token, rest, operator)) = found else {
        input.scope.expected_behind(left, wanted).into_iter().for_each(|expected| input.expect(expected));
        return Ok((input, None));
    };
    if token.kind == TokenKind::Name {
        input.notes.note_class(Class::Keyword, token.at);
    }
    let (behind, ()) = Tokens { rest, ..input }.count_operator()?;
    Ok((behind, Some(Spanned::new(operator, token.at))))
}

/// Parses the rule `filter<S>`.
pub(crate) fn filter<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Spanned<FilterExpression<F>>> {
    let (behind, condition) = input.parsed_in(BareWords::Filter(F::SUBJECT, ValueTypes::CONDITION), |input| {
        let (behind, condition) = expression(input)?;
        part_of_scope(behind, condition)
    })?;
    Ok((behind, condition.map(FilterExpression::of)))
}

/// Parses `[ "where" filter<page> ]`.
fn page_filter(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<FilterExpression<PageField>>>> {
    opt(preceded(word("where"), cut(filter))).parse(input)
}

/// Parses an operand without prefix operators.
fn operand(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    // `(int)` alone is a name in parentheses.
    cast_operand(input).or_else(|_| {
        // An operand with elements is a value, also in a filter.
        let scope = if has_elements(input) { BareWords::Value } else { input.scope };
        input.parsed_in(scope, elements)
    })
}

/// Returns whether the next operand is a parenthesis with elements: `(E)[2]`.
fn has_elements(input: Tokens<'_>) -> bool {
    let mut open = 0_usize;
    let close = input.rest.iter().position(|token| {
        open += usize::from(is_mark(token, "("));
        open -= usize::from(open > 0 && is_mark(token, ")"));
        open == 0
    });
    let behind = close.filter(|close| *close > 0).and_then(|close| input.rest.get(close + 1));
    behind.is_some_and(|token| matches!(token.kind, TokenKind::Dimension(_)) && token.is_glued)
}

/// Parses the rule `primary`, or an element of it: `$x[2]`, `(E)[2]`.
fn elements(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (mut behind, mut of) = primary(input)?;
    // The lexer makes these brackets only where an element is possible.
    while let Some(token) = behind.first()
        && let TokenKind::Dimension(number) = token.kind
        && token.is_glued
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

/// Returns whether a value ends with the parenthesis of a function, which is no C.
fn is_call(input: Tokens<'_>) -> bool {
    input.first().is_some_and(|token| !is_mark(token, "(") && !token.text.starts_with('$'))
}

/// Parses `c_cast unary`.
fn cast_operand(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, to) = cast_type(input)?;
    let (behind, operand) = input.nested(|| behind.parsed_in(BareWords::Value, unary))?;
    let at = to.at.to(operand.at);
    let reads = input.first().is_some_and(|token| token.text == "{");
    Ok((behind, Spanned::new(names::cast(to, reads, operand), at)))
}

/// Parses the rule `c_cast`.
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
    let is_part =
        |part: &&Token<'_>| part.kind == TokenKind::Name && !is_operator_word(part.text) || is_mark(part, "*");
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
        // No value has two consecutive names, or ends in a `*`.
        None if input.scope != BareWords::Value => Err(nom::Err::Error(Failed)),
        None if texts.last() == Some(&"*") && texts.len() > 1 || is_two_words(&texts) || close == "}" => {
            input.fault(Fault::Type, unknown_type(input, at))
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
        expected: vec![KNOWN_TYPES.to_owned()],
        hint: None,
        pasted: None,
    }
}

/// Parses the rule `primary`.
fn primary(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    match input.scope {
        BareWords::Value => alt((place, fraction, text, named, indexed, bracketed, parenthesised)).parse(input),
        BareWords::Filter(_, ValueTypes::TEXT) => alt((place, text, named_value, indexed, bracketed)).parse(input),
        BareWords::Filter(_, types) => {
            let text =
                |input| if types.contains(ValueTypes::TEXT) { text(input) } else { Err(nom::Err::Error(Failed)) };
            alt((place, text, named_value, field, indexed, bracketed, parenthesised)).parse(input)
        }
    }
}

/// Parses a name that is not a field: in quotes, of a module, or before the number of a line.
fn named_value(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let behind = Tokens { rest: input.rest.get(1..).unwrap_or_default(), ..input };
    let is_field = input.first().is_some_and(|token| token.kind == TokenKind::Name);
    if is_field && !glued(behind, "!") && !glued(behind, ":") {
        return Err(nom::Err::Error(Failed));
    }
    named(input)
}

fn parenthesised(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, open) = silent_mark("(")(input)?;
    let inside = || {
        let (behind, inner) = cut(expression).parse(behind.in_scope(input.scope.parenthesised()))?;
        let (behind, inner) = part_of_scope(behind, inner)?;
        let (behind, close) = cut(mark(")")).parse(behind)?;
        Ok((behind.in_scope(input.scope), Spanned::new(inner.node, open.to(close))))
    };
    input.nested(inside)
}

/// Parses the rule `place`: the values that filters can contain too.
pub(crate) fn place(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    constant(input).or_else(|_| input.parsed_in(BareWords::Value, compound))
}

/// Parses values that contain values, in which bare words are symbols, also in a filter.
fn compound(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    alt((address_of, physical, call, changes, read)).parse(input)
}

fn address_of(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, and) = silent_mark("&")(input)?;
    let (behind, symbol) = cut(symbol).parse(behind)?;
    let at = and.to(symbol.at);
    Ok((behind, Spanned::new(Expression::AddressOf(symbol.node), at)))
}

/// Parses `pfn:E` or `phys:E`.
fn physical(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    type Wrap = fn(Box<Spanned<Expression>>) -> Expression;
    let frame = silent_word("pfn").map(|at| (Expression::Frame as Wrap, at));
    let physical = silent_word("phys").map(|at| (Expression::Physical as Wrap, at));
    let (behind, (wrap, at)) = alt((frame, physical)).parse(input)?;
    if !glued(behind, ":") {
        return Err(nom::Err::Error(Failed));
    }
    input.notes.note_class(Class::Keyword, at);
    let (behind, _) = mark(":")(behind)?;
    let (behind, operand) = input.nested(|| cut(primary).parse(behind))?;
    let at = at.to(operand.at);
    Ok((behind, Spanned::new(wrap(Box::new(operand)), at)))
}

fn call(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, function) = before_parenthesis::<Function>(input)?;
    let inside = || {
        let (behind, argument) = cut(span).parse(behind)?;
        let (behind, filter) = if function.node.takes_filter() { page_filter(behind)? } else { (behind, None) };
        let (behind, close) = cut(mark(")")).parse(behind)?;
        Ok((behind, (argument, filter, close)))
    };
    let (behind, (argument, filter, close)) = input.nested(inside)?;
    let node = Expression::Call { function: function.node, argument: Box::new(argument), filter: filter.map(Box::new) };
    Ok((behind, Spanned::new(node, function.at.to(close))))
}

/// Parses `changed(A, B in R where F)`.
fn changes(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let (behind, function) = before_parenthesis::<ChangeFunction>(input)?;
    let inside = || {
        let (behind, from) = cut(snapshot_name).parse(behind)?;
        let (behind, to) = preceded(cut(mark(",")), cut(later)).parse(behind)?;
        let (behind, range) = opt(preceded(word("in"), cut(span))).parse(behind)?;
        let (behind, filter) = page_filter(behind)?;
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

/// Parses a word of `T` and the `(` after it, which makes it a function.
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

/// Parses the rule `span`.
pub(crate) fn span(input: Tokens<'_>) -> Parsed<'_, Spanned<Range>> {
    span_with(input, |input| opt(preceded(mark(","), preceded(cut(mark("+")), cut(expression)))).parse(input))
}

/// Parses a range in which `length` parses `, +LENGTH`.
pub(crate) fn span_with<'a>(
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

/// Makes a range of one expression. `all` without quotes is the whole address space.
pub(crate) fn whole(start: Spanned<Expression>, quoted: bool) -> Spanned<Range> {
    let range = match start.node {
        Expression::Name(WrittenName(ref name)) if name == "all" && !quoted => Range::All,
        other => Range::Expression(other),
    };
    Spanned::new(range, start.at)
}
