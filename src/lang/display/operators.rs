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

/// An operand, in parentheses if it binds too loosely and writes none itself.
pub(super) struct Operand<'a, T> {
    tree: &'a T,
    is_loose: bool,
}

impl<'a, T: Operation> Operand<'a, T> {
    /// One that binds at least as tightly as `level`.
    pub(super) fn of(tree: &'a T, level: Level) -> Self {
        let is_loose = tree.level() < level;
        Operand { tree, is_loose }
    }

    /// One on the right, which binds more tightly than `level`, because operators are left-associative.
    pub(super) fn right(tree: &'a T, level: Level) -> Self {
        let is_loose = tree.level() <= level;
        Operand { tree, is_loose }
    }
}

impl<T: Operation> Display for Operand<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tree = self.tree;
        if self.is_loose && !tree.always_parenthesised() { write!(f, "({tree})") } else { write!(f, "{tree}") }
    }
}

/// An operator before its operand.
pub(super) fn unary<T: Operation>(f: &mut Formatter<'_>, operator: UnaryOperator, operand: &T) -> fmt::Result {
    let (sign, operand) = (operator.text(), Operand::of(operand, Level::Unary).to_string());
    // Two minus signs in a row would look like the start of `--how`.
    let blank = if sign == "-" && operand.starts_with('-') { " " } else { "" };
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
    let left = Operand::of(left, whole.level());
    let right = Operand::right(right, whole.level());
    if whole.always_parenthesised() {
        write!(f, "({left} {operator} {right})")
    } else {
        write!(f, "{left} {operator} {right}")
    }
}
