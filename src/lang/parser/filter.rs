//! Filters are expressions in which bare words are fields, and whose parts have types. Fields show the types, so that nothing
//! is parsed twice: a parenthesis may hold a condition, `(dirty or guard)`, or a number, `(pfn & 511) == 0`.

use super::input::{Failed, Parsed, Scope, Tokens, Types};
use super::stream::{mark, silent_word, word};
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::expression::{BinaryOperator as Op, Expression, Level, UnaryOperator};
use crate::lang::field::{Subject, ValueType};
use crate::lang::lexer::TokenKind;
use crate::lang::span::{Class, Spanned};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::cut;

impl Subject {
    /// What the fields of that name are. `shared` of regions is a condition and a number.
    fn types(self, name: &str) -> Types {
        let named = self.fields().into_iter().filter(|(field, _)| *field == name);
        let types = named.map(|(_, holds)| match holds {
            ValueType::Integer => Types::NUMBER,
            ValueType::Text => Types::TEXT,
            ValueType::Boolean | ValueType::Word => Types::CONDITION,
        });
        types.fold(Types::empty(), Types::union)
    }

    /// What a part of a filter may be.
    fn types_of(self, part: &Expression) -> Types {
        match part {
            Expression::Field(name) => self.types(name),
            Expression::Flag(_) => Types::CONDITION,
            Expression::Text(_) => Types::TEXT,
            Expression::Unary { operator, .. } if operator.node == UnaryOperator::Not => Types::CONDITION,
            Expression::Unary { operator, .. } if operator.node != UnaryOperator::Dereference => Types::NUMBER,
            Expression::Binary { operator, .. } => match operator.node.level() {
                level if level.joins() || level.compares() => Types::CONDITION,
                _ => Types::NUMBER,
            },
            // A value without fields.
            _ => Types::NUMBER | Types::TEXT,
        }
    }
}

impl Scope {
    /// Whether a part of one of these types may stand here.
    pub(crate) fn takes(self, types: Types) -> bool {
        matches!(self, Scope::Filter(_, wanted) if wanted.intersects(types))
    }

    /// Whether an operator may stand behind `left`.
    pub(crate) fn takes_behind(self, left: &Expression, operator: Op) -> bool {
        let Scope::Filter(subject, _) = self else {
            return true;
        };
        let is = |types| subject.types_of(left).intersects(types);
        match operator.level() {
            level if level.joins() => is(Types::CONDITION),
            level if level.compares() && !self.takes(Types::CONDITION) => false,
            Level::Equality if operator == Op::Matches => is(Types::TEXT),
            Level::Equality => is(Types::NUMBER | Types::TEXT),
            // A condition has these only in parentheses, where a number may stand too.
            Level::BitOr | Level::BitXor | Level::BitAnd => is(Types::NUMBER) && self.takes(Types::NUMBER),
            _ => is(Types::NUMBER) && self.takes(Types::CONDITION | Types::NUMBER),
        }
    }

    /// What may stand behind `left`, of the operators that are `wanted`.
    pub(super) fn expected_behind(self, left: &Expression, wanted: impl Fn(Level) -> bool) -> Vec<Expected> {
        let Scope::Filter(subject, _) = self else {
            return vec![Expected::Operator];
        };
        let types = subject.types_of(left);
        let signs: &[(Op, Expected)] = if types.contains(Types::CONDITION) {
            &[(Op::And, Expected::Word("and")), (Op::Or, Expected::Word("or"))]
        } else if types == Types::TEXT {
            &[Op::Equal, Op::NotEqual, Op::Matches].map(|operator| (operator, Expected::Mark(operator.text())))
        } else {
            &[(Op::Multiply, Expected::Operator), (Op::Equal, Expected::Comparison)]
        };
        let takes = |(operator, _): &&(Op, Expected)| wanted(operator.level()) && self.takes_behind(left, *operator);
        signs.iter().filter(takes).map(|(_, expected)| *expected).collect()
    }

    /// The scope of the operand on the right.
    pub(crate) fn right_of(self, left: &Expression, operator: Op) -> Self {
        let Scope::Filter(subject, _) = self else {
            return self;
        };
        Scope::Filter(
            subject,
            match operator {
                Op::And | Op::Or => Types::CONDITION,
                Op::Matches => Types::TEXT,
                Op::Equal | Op::NotEqual => subject.types_of(left) - Types::CONDITION,
                _ => Types::NUMBER,
            },
        )
    }

    /// The scope of the operand behind this operator.
    pub(crate) fn behind(self, operator: UnaryOperator) -> Self {
        match (self, operator) {
            (Scope::Value, _) | (_, UnaryOperator::Dereference) => Scope::Value,
            (Scope::Filter(subject, _), UnaryOperator::Not) => Scope::Filter(subject, Types::CONDITION),
            (Scope::Filter(subject, _), _) => Scope::Filter(subject, Types::NUMBER),
        }
    }

    /// The scope inside of parentheses.
    pub(crate) fn parenthesised(self) -> Self {
        match self {
            Scope::Value => Scope::Value,
            Scope::Filter(subject, _) => Scope::Filter(subject, Types::CONDITION | Types::NUMBER),
        }
    }
}

/// A part of a type that its scope takes.
pub(crate) fn fitting(input: Tokens<'_>, part: Spanned<Expression>) -> Parsed<'_, Spanned<Expression>> {
    let Scope::Filter(subject, wanted) = input.scope else {
        return Ok((input, part));
    };
    match subject.types_of(&part.node) {
        types if wanted.intersects(types) => Ok((input, part)),
        Types::CONDITION => input.fault(SyntaxError {
            at: part.at,
            message: "this is a condition; a number is expected".into(),
            expected: vec![subject.quantity().describe()],
            hint: Some("join conditions with `and`, `or`, `not`".into()),
        }),
        // A number or a text alone is no condition; the missing comparison has been noted.
        _ => Err(nom::Err::Failure(Failed)),
    }
}

/// A field of the filter, `flags(NAME)`, or `state == swapped`.
pub(crate) fn field(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    let Scope::Filter(subject, wanted) = input.scope else {
        return Err(nom::Err::Error(Failed));
    };
    let is_condition = wanted.contains(Types::CONDITION);
    if subject == Subject::Page
        && is_condition
        && let Ok((behind, (at, _))) = (silent_word("flags"), cut(mark("("))).parse(input)
    {
        let (behind, (flag, close)) = (cut(flag_name), cut(mark(")"))).parse(behind)?;
        return Ok((behind, Spanned::new(Expression::Flag(flag), at.to(close))));
    }
    let (behind, name) = input.accept_operand(|token| {
        let fields = subject.fields().into_iter().filter(|_| token.kind == TokenKind::Name);
        let mut names = fields.map(|(name, _)| name).filter(|name| *name == token.text);
        names.find(|name| is_condition || subject.types(name).intersects(wanted & Types::NUMBER))
    })?;
    input.notes.note_class(Class::Field, name.at);
    let words = subject.words(name.node);
    if words.is_empty() {
        return Ok((behind, name.map(Expression::Field)));
    }
    let (behind, not) = cut(equality).parse(behind)?;
    let (behind, word) = cut(|input| one_word(input, &words)).parse(behind)?;
    let is = Spanned::new(Expression::Field(word.node), name.at.to(word.at));
    Ok((behind, not.map_or(is.clone(), |operator| negated(operator, is))))
}

fn negated(operator: Spanned<UnaryOperator>, operand: Spanned<Expression>) -> Spanned<Expression> {
    let at = operand.at;
    Spanned::new(Expression::Unary { operator, operand: Box::new(operand) }, at)
}

fn flag_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::FlagName, |token| (token.kind == TokenKind::Name).then(|| token.text.to_owned()))
}

pub(crate) fn quoted_text(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::QuotedText, |token| match &token.kind {
        TokenKind::Text(text) => Some(text.clone()),
        _ => None,
    })
}

/// `==`, or the negation that `!=` is.
fn equality(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<UnaryOperator>>> {
    let not = mark("!=").map(|at| Some(Spanned::new(UnaryOperator::Not, at)));
    alt((mark("==").map(|_| None), not)).parse(input)
}

/// One of the words that a field is compared with.
fn one_word<'a>(input: Tokens<'a>, words: &[&'static str]) -> Parsed<'a, Spanned<&'static str>> {
    let found = words.iter().find_map(|one| word(one)(input).ok().map(|(behind, at)| (behind, Spanned::new(*one, at))));
    found.ok_or(nom::Err::Error(Failed))
}
