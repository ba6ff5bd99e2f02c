//! A number in a filter, computed from fields and constants.

use super::ask::{Answers, Fields};
use crate::eval::Integer;
use crate::eval::error::{Error, Result};
use crate::eval::evaluator::Evaluator;
use crate::eval::operators::{self, Operand};
use crate::eval::space::{self, Space};
use crate::lang::{self, BinaryOperator, Spanned, UnaryOperator};

/// How to get a number.
#[derive(Debug)]
pub(super) enum Quantity<F> {
    /// The same for all.
    Number(Integer),
    Field(F),
    Unary {
        operator: UnaryOperator,
        operand: Box<Quantity<F>>,
    },
    Binary {
        operator: BinaryOperator,
        left: Box<Quantity<F>>,
        right: Box<Quantity<F>>,
    },
}

impl<F: Copy> Quantity<F> {
    /// Evaluates what is the same for all. Returns also what the number counts in.
    pub(super) fn prepare(
        quantity: &Spanned<lang::Quantity<F>>,
        fields: &mut dyn Fields<F>,
        evaluator: &Evaluator<'_>,
    ) -> Result<(Self, Option<Space>)> {
        Ok(match &quantity.node {
            lang::Quantity::Field(field) => {
                fields.ask(*field, quantity.at)?;
                (Quantity::Field(*field), fields.space(*field))
            }
            lang::Quantity::Value(expression) => {
                let value = evaluator.evaluate_at(expression, quantity.at)?;
                let operand = Operand::of(&Spanned::new(value, quantity.at))?;
                (Quantity::Number(operand.number), operand.space)
            }
            lang::Quantity::Unary { operator, operand } => {
                let (operand, inner) = Self::prepare(operand, fields, evaluator)?;
                let space = space::of_unary(operator, inner)?;
                let whole = Quantity::Unary { operator: operator.node, operand: Box::new(operand) };
                (whole.folded(operator)?, space)
            }
            lang::Quantity::Binary { operator, left, right } => {
                let (left, left_space) = Self::prepare(left, fields, evaluator)?;
                let (right, right_space) = Self::prepare(right, fields, evaluator)?;
                let space = space::of_binary(left_space, operator, right_space)?;
                let whole = Quantity::Binary { operator: operator.node, left: Box::new(left), right: Box::new(right) };
                (whole.folded(operator)?, space)
            }
        })
    }

    /// Folds an operation on constants to its result. No result is an error at the operator.
    fn folded<O>(self, operator: &Spanned<O>) -> Result<Self> {
        if !self.is_constant() {
            return Ok(self);
        }
        self.compute(&|_| None).map(Quantity::Number).ok_or_else(|| {
            Error::new(
                operator.at,
                "no result: a division by zero, a shift by less than zero, or outside of -2^63 to 2^64-1",
            )
        })
    }

    /// Whether its parts, already folded, depend on no field.
    fn is_constant(&self) -> bool {
        let is_number = |part: &Self| matches!(part, Quantity::Number(_));
        match self {
            Quantity::Number(_) => true,
            Quantity::Field(_) => false,
            Quantity::Unary { operand, .. } => is_number(operand),
            Quantity::Binary { left, right, .. } => is_number(left) && is_number(right),
        }
    }

    /// The number for one page or region; `None` where a field has none, and where the operators have no result.
    pub(super) fn number(&self, of: &dyn Answers<F>) -> Option<Integer> {
        self.compute(&|field| of.integer(field).map(Integer::from))
    }

    /// The least and the greatest that it can be for one page or region.
    pub(super) fn bounds(&self, of: &dyn Answers<F>) -> Option<(Integer, Integer)> {
        if let Some(number) = self.number(of) {
            return Some((number, number));
        }
        match self {
            Quantity::Field(field) => {
                let (least, most) = of.bounds(*field)?;
                Some((Integer::from(least), Integer::from(most)))
            }
            _ => None,
        }
    }

    fn compute(&self, field: &dyn Fn(F) -> Option<Integer>) -> Option<Integer> {
        match self {
            Quantity::Number(number) => Some(*number),
            Quantity::Field(one) => field(*one),
            Quantity::Unary { operator, operand } => operators::invert(*operator, operand.compute(field)?),
            Quantity::Binary { operator, left, right } => {
                operators::calculate(*operator, left.compute(field)?, right.compute(field)?)
            }
        }
    }
}
