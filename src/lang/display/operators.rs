//! Operators with their operands, for expressions and for the numbers of filters.

use std::fmt::{self, Display, Formatter};

use crate::lang::expression::UnaryOperator;
use crate::lang::operators::Level;

/// A tree of operators.
pub(super) trait Operation: Display {
    /// How tightly its outermost operator binds, if that stands between two operands; otherwise [`Level::Unary`].
    fn level(&self) -> Level;

    /// Whether it writes parentheses around itself.
    fn always_parenthesised(&self) -> bool {
        false
    }
}

/// An operand, in parentheses if it binds less tightly than the level and writes none itself.
pub(super) struct Operand<'a, T>(pub &'a T, pub Level);

impl<T: Operation> Display for Operand<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Operand(tree, least) = *self;
        if tree.level() >= least || tree.always_parenthesised() {
            write!(f, "{tree}")
        } else {
            write!(f, "({tree})")
        }
    }
}

/// An operator before its operand.
pub(super) fn unary<T: Operation>(
    f: &mut Formatter<'_>,
    operator: UnaryOperator,
    operand: &T,
) -> fmt::Result {
    let (sign, operand) = (operator.text(), Operand(operand, Level::Unary).to_string());
    // Two minus signs in a row would look like the start of `--how`.
    let blank = if sign == "-" && operand.starts_with('-') {
        " "
    } else {
        ""
    };
    write!(f, "{sign}{blank}{operand}")
}

/// An operator between the operands of `whole`.
pub(super) fn binary<T: Operation>(
    f: &mut Formatter<'_>,
    whole: &T,
    left: &T,
    operator: &str,
    right: &T,
) -> fmt::Result {
    let left = Operand(left, whole.level());
    let right = Operand(right, whole.level().tighter());
    if whole.always_parenthesised() {
        write!(f, "({left} {operator} {right})")
    } else {
        write!(f, "{left} {operator} {right}")
    }
}
