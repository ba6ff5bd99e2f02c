//! Filters.

use std::fmt::{self, Display, Formatter};

use super::operators::{Operand, Operation, binary, unary};
use crate::lang::expression::{Filter, Quantity};
use crate::lang::field::FilterField;
use crate::lang::operators::Level;

impl<F: FilterField> Display for Filter<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Filter::Or(left, right) => binary(f, self, &left.node, "or", &right.node),
            Filter::And(left, right) => binary(f, self, &left.node, "and", &right.node),
            Filter::Not(inner) => write!(f, "not {}", Operand::of(&inner.node, Level::Unary)),
            Filter::Is(field) => f.write_str(field.name()),
            Filter::Flag(name) => write!(f, "flags({})", name.node),
            Filter::Compare { comparison, left, right } => {
                write!(f, "{} {} {}", left.node, comparison.text(), right.node)
            }
            Filter::Text { field, comparison, text } => {
                write!(f, "{} {} {}", field.name(), comparison.text(), text.node)
            }
        }
    }
}

impl<F: FilterField> Operation for Filter<F> {
    fn level(&self) -> Level {
        match self {
            Filter::Or(..) => Level::Or,
            Filter::And(..) => Level::And,
            _ => Level::Unary,
        }
    }
}

impl<F: FilterField> Display for Quantity<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Field(field) => f.write_str(field.name()),
            Quantity::Value(value) => write!(f, "{value}"),
            Quantity::Unary { operator, operand } => unary(f, operator.node, &operand.node),
            Quantity::Binary { operator, left, right } => {
                binary(f, self, &left.node, operator.node.text(), &right.node)
            }
        }
    }
}

impl<F: FilterField> Operation for Quantity<F> {
    fn level(&self) -> Level {
        match self {
            Quantity::Binary { operator, .. } => operator.node.level(),
            _ => Level::Unary,
        }
    }

    /// In filters `& ^ |` stand only in parentheses.
    fn always_parenthesised(&self) -> bool {
        self.level() < Level::Shift
    }
}
