//! Filters, for pages and for regions.
//!
//! A parenthesis may hold a condition, `(dirty or guard)`, or a number, `(pfn & 511) == 0`. Fields have types, so its
//! content shows which; nothing is parsed twice.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;

use super::expression::place;
use super::operators::{Chain, unary_operator};
use super::stream::{Failed, Parsed, Tokens, is_mark, mark, silent_mark, silent_word, variable, word};
use crate::kernel::words::Worded;
use crate::lang::class::Class;
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::{BinaryOperator, Comparison, Expression, Filter, Function, Quantity, TextComparison};
use crate::lang::field::{FilterField, PageField, ValueType};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::operators::Level;
use crate::lang::span::{Span, Spanned};

/// What a parenthesis can hold.
enum Part<F> {
    Condition(Spanned<Filter<F>>),
    Quantity(Spanned<Quantity<F>>),
}

/// `[ "where" filter<page> ]`, if it is there.
type OptionalFilter = Option<Spanned<Filter<PageField>>>;

impl<'a> Tokens<'a> {
    /// The filter of a function that counts pages.
    pub(super) fn page_filter(self) -> Parsed<'a, OptionalFilter> {
        opt(preceded(word("where"), cut(filter))).parse(self)
    }
}

/// `filter<S>`
pub(super) fn filter<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Spanned<Filter<F>>> {
    let (behind, first) = test(input)?;
    alternatives(behind, first)
}

/// A word or a mark that joins two conditions.
fn joint<'a>(as_word: &'static str, as_mark: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| {
        let (behind, at) = alt((word(as_word), silent_mark(as_mark))).parse(input)?;
        let (behind, ()) = behind.count_operator()?;
        Ok((behind, at))
    }
}

/// `{ and … } { or … }` behind a first condition.
fn alternatives<F: FilterField>(input: Tokens<'_>, first: Spanned<Filter<F>>) -> Parsed<'_, Spanned<Filter<F>>> {
    let (mut input, mut left) = all_of(input, first)?;
    while let (behind, Some(_)) = opt(joint("or", "||")).parse(input)? {
        let (behind, right) = cut(test).parse(behind)?;
        let (behind, right) = all_of(behind, right)?;
        let at = left.at.to(right.at);
        left = Spanned::new(Filter::Or(Box::new(left), Box::new(right)), at);
        input = behind;
    }
    Ok((input, left))
}

fn all_of<F: FilterField>(mut input: Tokens<'_>, mut left: Spanned<Filter<F>>) -> Parsed<'_, Spanned<Filter<F>>> {
    while let (behind, Some(_)) = opt(joint("and", "&&")).parse(input)? {
        let (behind, right) = cut(test).parse(behind)?;
        let at = left.at.to(right.at);
        left = Spanned::new(Filter::And(Box::new(left), Box::new(right)), at);
        input = behind;
    }
    Ok((input, left))
}

/// `test<S>`
fn test<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Spanned<Filter<F>>> {
    match test_or_quantity(input)? {
        (behind, Part::Condition(condition)) => Ok((behind, condition)),
        // A number alone is no condition; the missing comparison has been noted.
        (_, Part::Quantity(_)) => Err(nom::Err::Failure(Failed)),
    }
}

/// A whole test, or a quantity that no comparison follows.
fn test_or_quantity<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    input.expect(condition_of::<F>());
    match negated(input) {
        Err(nom::Err::Error(_)) => {}
        found => return found,
    }
    match alt((condition, primary)).parse(input)? {
        (behind, Part::Quantity(first)) => compared(behind, first),
        (behind, Part::Condition(condition)) => match number(&condition).filter(|_| is_computed(behind)) {
            Some(first) => compared(behind, first),
            None => Ok((behind, Part::Condition(condition))),
        },
    }
}

/// The number of the same name as the field that a condition consists of: `shared` of `shared > 1M`.
fn number<F: FilterField>(condition: &Spanned<Filter<F>>) -> Option<Spanned<Quantity<F>>> {
    match condition.node {
        Filter::Is(field) => Some(Spanned::new(Quantity::Field(field.number()?), condition.at)),
        _ => None,
    }
}

/// Whether an operator follows that needs a number before it.
fn is_computed(behind: Tokens<'_>) -> bool {
    let needs_number = |level: Level| level.is_arithmetic() || matches!(level, Level::Equality | Level::Relation);
    behind.first().is_some_and(|token| {
        let mut all = BinaryOperator::ALL.iter();
        all.any(|operator| needs_number(operator.level()) && is_mark(token, operator.text()))
    })
}

/// `( "not" | "!" ) test<S>`. A function of its own, as `compared` is, because deep nesting needs small stack frames.
fn negated<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    let (behind, at) = alt((silent_word("not"), silent_mark("!"))).parse(input)?;
    let (behind, condition) = input.nested(|| cut(test).parse(behind))?;
    let at = at.to(condition.at);
    let not = Spanned::new(Filter::Not(Box::new(condition)), at);
    Ok((behind, Part::Condition(not)))
}

/// The rest of a quantity whose beginning is read, and a comparison if there is one.
fn compared<F: FilterField>(input: Tokens<'_>, first: Spanned<Quantity<F>>) -> Parsed<'_, Part<F>> {
    let (behind, left) = arithmetic(input, first, |level| level >= Level::Shift)?;
    let compared = behind.accept(Expected::Comparison, |token| {
        let mut all = Comparison::ALL.iter().copied();
        all.find(|comparison| is_mark(token, comparison.text()))
    });
    let Ok((behind, comparison)) = compared else {
        return Ok((behind, Part::Quantity(left)));
    };
    let (behind, right) = cut(quantity).parse(behind)?;
    let at = left.at.to(right.at);
    let node = Filter::Compare { comparison: comparison.node, left, right };
    Ok((behind, Part::Condition(Spanned::new(node, at))))
}

fn condition_of<F: FilterField>() -> Expected {
    if F::HAS_FLAGS { Expected::PageField } else { Expected::RegionField }
}

fn quantity_of<F: FilterField>() -> Expected {
    if F::HAS_FLAGS { Expected::PageQuantity } else { Expected::RegionQuantity }
}

/// The field that stands here, if it is of a wanted type.
fn field<'a, F: FilterField>(
    input: Tokens<'a>,
    expected: Expected,
    wanted: impl Fn(ValueType) -> bool,
) -> Parsed<'a, Spanned<F>> {
    // `swapped(R)`: before a parenthesis it is the function of that name.
    let called = input.rest.get(1).is_some_and(|next| is_mark(next, "("));
    let (behind, field) = input.accept(expected, |token| {
        let is_function = || Function::from_word(token.text).is_some();
        let may_be = token.kind == TokenKind::Name && !(called && is_function());
        let mut fields = F::all().filter(|_| may_be);
        fields.find(|field| field.name() == token.text && wanted(field.value_type()))
    })?;
    input.notes.note_class(Class::Field, field.at);
    Ok((behind, field))
}

/// `condition<S>` and `boolean<S>`
fn condition<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    if F::HAS_FLAGS
        && let Ok((behind, (at, _))) = (silent_word("flags"), cut(mark("("))).parse(input)
    {
        let (behind, (flag, close)) = (cut(flag_name), cut(mark(")"))).parse(behind)?;
        return Ok((behind, Part::Condition(Spanned::new(Filter::Flag(flag), at.to(close)))));
    }
    let comparable = |kind| !matches!(kind, ValueType::Integer);
    let (behind, field) = field::<F>(input, condition_of::<F>(), comparable)?;
    match field.node.value_type() {
        ValueType::Word => {
            let (behind, equal) = cut(equality).parse(behind)?;
            let (behind, value) = cut(|input| one_field(input, field.node)).parse(behind)?;
            let at = field.at.to(value.at);
            let is = Spanned::new(Filter::Is(value.node), at);
            let condition = if equal { is } else { Spanned::new(Filter::Not(Box::new(is)), at) };
            Ok((behind, Part::Condition(condition)))
        }
        ValueType::Text => {
            let (behind, comparison) = cut(text_comparison).parse(behind)?;
            let (behind, text) = cut(text_value).parse(behind)?;
            let at = field.at.to(text.at);
            let node = Filter::Text { field: field.node, comparison, text };
            Ok((behind, Part::Condition(Spanned::new(node, at))))
        }
        ValueType::Boolean | ValueType::Integer => Ok((behind, Part::Condition(field.map(Filter::Is)))),
    }
}

fn flag_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::FlagName, |token| (token.kind == TokenKind::Name).then(|| token.text.to_owned()))
}

pub(super) fn quoted_text(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::QuotedText, |token| match &token.kind {
        TokenKind::Text(text) => Some(text.clone()),
        _ => None,
    })
}

/// A text, or a variable that may hold one.
fn text_value(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let text = quoted_text.map(|text| text.map(Expression::Text));
    let variable = variable.map(|name| name.map(Expression::Variable));
    alt((text, variable)).parse(input)
}

/// `==` or `!=`
fn equality(input: Tokens<'_>) -> Parsed<'_, bool> {
    alt((mark("==").map(|_| true), mark("!=").map(|_| false))).parse(input)
}

/// `==`, `!=` or `~`
fn text_comparison(input: Tokens<'_>) -> Parsed<'_, TextComparison> {
    let found = TextComparison::ALL.iter().find_map(|comparison| {
        let (behind, _) = mark(comparison.text())(input).ok()?;
        Some((behind, *comparison))
    });
    found.ok_or(nom::Err::Error(Failed))
}

/// One of the fields that a word field is compared with.
fn one_field<F: FilterField>(input: Tokens<'_>, compared: F) -> Parsed<'_, Spanned<F>> {
    for field in F::all().filter(|field| compared.takes(*field)) {
        if let Ok((behind, at)) = word(field.name())(input) {
            return Ok((behind, Spanned::new(field, at)));
        }
    }
    Err(nom::Err::Error(Failed))
}

/// `quantity<S>`
fn quantity<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Spanned<Quantity<F>>> {
    let (behind, first) = factor(input)?;
    arithmetic(behind, first, |level| level >= Level::Shift)
}

/// Operators of the wanted levels behind a first factor.
fn arithmetic<'a, F: FilterField>(
    input: Tokens<'a>,
    first: Spanned<Quantity<F>>,
    wanted: fn(Level) -> bool,
) -> Parsed<'a, Spanned<Quantity<F>>> {
    let binary = Chain { operand: factor, join: |operator, left, right| Quantity::Binary { operator, left, right } };
    binary.behind(input, first, wanted)
}

/// `factor<S>`
fn factor<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Spanned<Quantity<F>>> {
    input.expect(quantity_of::<F>());
    match primary(input)? {
        (behind, Part::Quantity(quantity)) => Ok((behind, quantity)),
        (behind, Part::Condition(condition)) => match number(&condition) {
            Some(number) => Ok((behind, number)),
            None => input.fault(SyntaxError {
                at: condition.at,
                message: "this is a condition; a number is expected".into(),
                expected: vec![quantity_of::<F>().describe()],
                hint: Some("join conditions with `and`, `or`, `not`".into()),
            }),
        },
    }
}

/// A factor, or a condition in parentheses.
fn primary<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    alt((signed, constant, integer_field, parenthesised)).parse(input)
}

fn signed<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    let is_sign = |token: &&Token<'_>| ["-", "+", "~"].iter().any(|sign| is_mark(token, sign));
    if input.first().filter(is_sign).is_none() {
        return Err(nom::Err::Error(Failed));
    }
    let (behind, operator) = unary_operator(input)?;
    let (behind, operand) = input.nested(|| cut(factor).parse(behind))?;
    let at = operator.at.to(operand.at);
    let operand = Box::new(operand);
    let node = Quantity::Unary { operator, operand };
    Ok((behind, Part::Quantity(Spanned::new(node, at))))
}

fn constant<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    let (behind, value) = place(input)?;
    Ok((behind, Part::Quantity(value.map(Quantity::Value))))
}

fn integer_field<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    let (behind, field) = field::<F>(input, quantity_of::<F>(), |kind| kind == ValueType::Integer)?;
    Ok((behind, Part::Quantity(field.map(Quantity::Field))))
}

fn parenthesised<F: FilterField>(input: Tokens<'_>) -> Parsed<'_, Part<F>> {
    let (behind, open) = silent_mark("(")(input)?;
    let inside = || {
        let (behind, part) = match cut(test_or_quantity::<F>).parse(behind)? {
            (behind, Part::Condition(first)) => {
                let (behind, whole) = alternatives(behind, first)?;
                (behind, Part::Condition(whole))
            }
            (behind, Part::Quantity(first)) => {
                let (behind, whole) = arithmetic(behind, first, Level::is_arithmetic)?;
                (behind, Part::Quantity(whole))
            }
        };
        let (behind, close) = cut(mark(")")).parse(behind)?;
        Ok((behind, (part, close)))
    };
    let (behind, (mut part, close)) = input.nested(inside)?;
    match &mut part {
        Part::Condition(Spanned { at, .. }) | Part::Quantity(Spanned { at, .. }) => {
            *at = open.to(close);
        }
    }
    Ok((behind, part))
}
