//! Operators with their operands, for expressions and for the numbers of filters.

use std::fmt::{self, Display, Formatter};

use crate::lang::expression::{BinaryOperator, UnaryOperator};
use crate::lang::operators::Level;

/// A tree of operators.
pub(super) trait Operation: Display {
    /// The outermost operator, if it stands between two operands.
    fn operator(&self) -> Option<BinaryOperator>;

    /// Whether it writes parentheses around itself.
    fn always_parenthesised(&self) -> bool;
}

/// An operand, in parentheses if it binds less tightly than the level and writes none itself.
pub(super) struct Operand<'a, T>(pub &'a T, pub Level);

impl<T: Operation> Display for Operand<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Operand(tree, least) = *self;
        let level = tree.operator().map_or(Level::Unary, BinaryOperator::level);
        if level >= least || tree.always_parenthesised() {
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
    operator: BinaryOperator,
    left: &T,
    right: &T,
) -> fmt::Result {
    let level = operator.level();
    let left = Operand(left, level);
    let right = Operand(right, level.tighter());
    let text = operator.text();
    if whole.always_parenthesised() {
        write!(f, "({left} {text} {right})")
    } else {
        write!(f, "{left} {text} {right}")
    }
}
