//! Filters.

use std::fmt::{self, Display, Formatter};

use crate::lang::field::FilterField;
use crate::lang::filter::{Filter, Quantity};
use crate::lang::lexer::escape;
use crate::lang::operators::Level;

/// A condition behind `and` or `or`, in parentheses where they join more loosely, or as loosely on the right.
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
            Filter::Text { field, equal, text } => {
                write!(
                    f,
                    "{} {} {}",
                    field.name(),
                    if *equal { "==" } else { "!=" },
                    escape('"', &text.node)
                )
            }
        }
    }
}

impl<F: FilterField> Display for Quantity<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Field(field) => f.write_str(field.name()),
            Quantity::Value(value) => write!(f, "{value}"),
            Quantity::Unary { operator, operand } => {
                write!(
                    f,
                    "{}{}",
                    operator.node.text(),
                    Operand(&operand.node, Level::Unary)
                )
            }
            Quantity::Binary {
                operator,
                left,
                right,
            } => {
                let level = operator.node.level();
                let left = Operand(&left.node, level);
                let right = Operand(&right.node, level.tighter());
                let text = operator.node.text();
                // & ^ | stand only in parentheses.
                if level < Level::Shift {
                    write!(f, "({left} {text} {right})")
                } else {
                    write!(f, "{left} {text} {right}")
                }
            }
        }
    }
}

/// An operand, in parentheses if it binds less tightly than `least` and brings none of its own.
struct Operand<'a, F>(&'a Quantity<F>, Level);

impl<F: FilterField> Display for Operand<'_, F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Operand(quantity, least) = *self;
        let level = match quantity {
            Quantity::Binary { operator, .. } => operator.node.level(),
            _ => Level::Unary,
        };
        if level >= least || level < Level::Shift {
            write!(f, "{quantity}")
        } else {
            write!(f, "({quantity})")
        }
    }
}
