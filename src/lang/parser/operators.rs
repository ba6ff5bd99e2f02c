//! Operators, and precedence climbing over chains of them.

use nom::Parser;
use nom::combinator::cut;

use super::stream::{Parsed, Tokens, is_mark};
use crate::lang::expected::Expected;
use crate::lang::expression::{BinaryOperator, UnaryOperator};
use crate::lang::lexer::Token;
use crate::lang::operators::Level;
use crate::lang::span::Spanned;

/// The tree of an operator and its operands.
type Join<T> = fn(Spanned<BinaryOperator>, Box<Spanned<T>>, Box<Spanned<T>>) -> T;

/// How chains of operators become a tree of `T`: the same for expressions and for the numbers of filters.
pub(super) struct Chain<'a, T> {
    pub operand: fn(Tokens<'a>) -> Parsed<'a, Spanned<T>>,
    pub join: Join<T>,
}

impl<'a, T> Chain<'a, T> {
    /// The chain of operators of the wanted levels behind a first operand.
    pub(super) fn behind(
        &self,
        input: Tokens<'a>,
        first: Spanned<T>,
        wanted: fn(Level) -> bool,
    ) -> Parsed<'a, Spanned<T>> {
        self.climb(input, first, wanted, None)
    }

    /// All operators that bind more tightly than `level`, because operators are left-associative.
    fn climb(
        &self,
        mut input: Tokens<'a>,
        mut left: Spanned<T>,
        wanted: fn(Level) -> bool,
        level: Option<Level>,
    ) -> Parsed<'a, Spanned<T>> {
        while let (behind, Some(operator)) = operator(input, |own| wanted(own) && Some(own) > level)? {
            let (behind, right) = cut(self.operand).parse(behind)?;
            let level = Some(operator.node.level());
            let (behind, right) = self.climb(behind, right, wanted, level)?;
            let at = left.at.to(right.at);
            left = Spanned::new((self.join)(operator, Box::new(left), Box::new(right)), at);
            input = behind;
        }
        Ok((input, left))
    }
}

/// The operator that stands here, if it is of a wanted level.
fn operator(input: Tokens<'_>, wanted: impl Fn(Level) -> bool) -> Parsed<'_, Option<Spanned<BinaryOperator>>> {
    let known = |token: &Token<'_>| {
        let mut all = BinaryOperator::ALL.iter().copied();
        all.find(|operator| is_mark(token, operator.text()) && wanted(operator.level()))
    };
    match input.accept(Expected::Operator, known) {
        Ok((behind, found)) => {
            let (behind, ()) = behind.count_operator()?;
            Ok((behind, Some(found)))
        }
        Err(_) => Ok((input, None)),
    }
}

/// The operator before an operand, if one stands here.
pub(super) fn unary_operator(input: Tokens<'_>) -> Parsed<'_, Spanned<UnaryOperator>> {
    input.accept(Expected::Expression, |token| {
        let mut all = UnaryOperator::ALL.iter().copied();
        all.find(|operator| is_mark(token, operator.text()))
    })
}
