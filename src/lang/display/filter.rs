//! Filters.

use std::fmt::{self, Display, Formatter};

use super::operators::{Operation, binary, unary};
use crate::lang::expression::BinaryOperator;
use crate::lang::expression::{Filter, Quantity};
use crate::lang::field::FilterField;
use crate::lang::operators::Level;

/// An operand of `and`, `or` or `not`, in parentheses where it binds more loosely, or as loosely on the right.
struct Joined<'a, F>(&'a Filter<F>, Joint, Side);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Joint {
    Or,
    And,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl<F: FilterField> Display for Joined<'_, F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Joined(filter, outer, side) = *self;
        let inner = match filter {
            Filter::Or(..) => Joint::Or,
            Filter::And(..) => Joint::And,
            _ => Joint::Not,
        };
        let bare = inner == Joint::Not || inner > outer || (inner == outer && side == Side::Left);
        if bare {
            write!(f, "{filter}")
        } else {
            write!(f, "({filter})")
        }
    }
}

impl<F: FilterField> Display for Filter<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Filter::Or(left, right) => {
                let left = Joined(&left.node, Joint::Or, Side::Left);
                write!(
                    f,
                    "{left} or {}",
                    Joined(&right.node, Joint::Or, Side::Right)
                )
            }
            Filter::And(left, right) => {
                let left = Joined(&left.node, Joint::And, Side::Left);
                write!(
                    f,
                    "{left} and {}",
                    Joined(&right.node, Joint::And, Side::Right)
                )
            }
            Filter::Not(inner) => write!(f, "not {}", Joined(&inner.node, Joint::Not, Side::Right)),
            Filter::Is(field) => f.write_str(field.name()),
            Filter::Flag(name) => write!(f, "flags({})", name.node),
            Filter::Compare {
                comparison,
                left,
                right,
            } => {
                write!(f, "{} {} {}", left.node, comparison.text(), right.node)
            }
            Filter::Text {
                field,
                comparison,
                text,
            } => {
                write!(f, "{} {} {}", field.name(), comparison.text(), text.node)
            }
        }
    }
}

impl<F: FilterField> Display for Quantity<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Field(field) => f.write_str(field.name()),
            Quantity::Value(value) => write!(f, "{value}"),
            Quantity::Unary { operator, operand } => unary(f, operator.node, &operand.node),
            Quantity::Binary {
                operator,
                left,
                right,
            } => binary(f, self, operator.node, &left.node, &right.node),
        }
    }
}

impl<F: FilterField> Operation for Quantity<F> {
    fn operator(&self) -> Option<BinaryOperator> {
        match self {
            Quantity::Binary { operator, .. } => Some(operator.node),
            _ => None,
        }
    }

    /// In filters `& ^ |` stand only in parentheses.
    fn always_parenthesised(&self) -> bool {
        self.operator()
            .is_some_and(|operator| operator.level() < Level::Shift)
    }
}
