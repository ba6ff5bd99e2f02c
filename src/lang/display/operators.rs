//! Operators with their operands. In a filter `& ^ |` stand only in parentheses, conditions are joined with words, and a
//! name that is no field is in quotes.

use std::fmt::{self, Display, Formatter};

use crate::lang::expression::{BinaryOperator, Expression, Filter, Name, UnaryOperator};
use crate::lang::lexer::escape;
use crate::lang::operators::Level;

/// An expression, in a filter or outside of one.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    pub(super) root: &'a Expression,
    in_filter: bool,
}

impl<F> Display for Filter<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Tree { root: &self.condition, in_filter: true }.fmt(f)
    }
}

impl<'a> Tree<'a> {
    /// A value.
    pub(super) fn value(root: &'a Expression) -> Self {
        Tree { root, in_filter: false }
    }

    fn part(self, root: &'a Expression) -> Self {
        Tree { root, ..self }
    }

    /// How tightly its outermost operator binds, if that stands between two operands; otherwise [`Level::Unary`].
    fn level(self) -> Level {
        match self.root {
            Expression::Binary { operator, .. } => operator.node.level(),
            // `not` takes all that is compared behind it.
            Expression::Unary { operator, .. } if self.in_filter && operator.node == UnaryOperator::Not => Level::BitOr,
            _ => Level::Unary,
        }
    }

    /// Whether it writes parentheses around itself. Outside of them a `|` is a pipe, and a `>` before a quote makes a
    /// file.
    fn always_parenthesised(self) -> bool {
        let Expression::Binary { operator, right, .. } = self.root else {
            return false;
        };
        match operator.node {
            BinaryOperator::BitOr => true,
            BinaryOperator::BitXor | BinaryOperator::BitAnd => self.in_filter,
            BinaryOperator::Greater | BinaryOperator::ShiftRight => {
                let right = self.part(&right.node).after(operator.node.level()).to_string();
                right.starts_with(['\'', '"'])
            }
            _ => false,
        }
    }

    /// An operand that binds at least as tightly as `level`.
    pub(super) fn at(self, level: Level) -> Operand<'a> {
        Operand { is_loose: self.level() < level, tree: self }
    }

    /// An operand on the right, which binds more tightly than `level`, because operators are left-associative.
    fn after(self, level: Level) -> Operand<'a> {
        Operand { is_loose: self.level() <= level, tree: self }
    }
}

/// An operand, in parentheses if it binds too loosely and writes none itself.
pub(super) struct Operand<'a> {
    tree: Tree<'a>,
    is_loose: bool,
}

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tree = self.tree;
        if self.is_loose && !tree.always_parenthesised() { write!(f, "({tree})") } else { write!(f, "{tree}") }
    }
}

impl Display for Tree<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.root {
            Expression::Binary { operator, left, right } => {
                let (level, operator) = (self.level(), operator.node);
                let (left, right) = (self.part(&left.node).at(level), self.part(&right.node).after(level));
                let sign = operator.as_word().filter(|_| self.in_filter).unwrap_or(operator.text());
                let (open, close) = if self.always_parenthesised() { ("(", ")") } else { ("", "") };
                write!(f, "{open}{left} {sign} {right}{close}")
            }
            Expression::Unary { operator, operand } if self.in_filter => match operator.node {
                UnaryOperator::Not => write!(f, "not {}", self.part(&operand.node).at(Level::BitOr)),
                UnaryOperator::Dereference => self.root.fmt(f),
                sign => unary(f, sign, self.part(&operand.node)),
            },
            Expression::Name(Name(name)) if self.in_filter => f.write_str(&escape('\'', name)),
            other => other.fmt(f),
        }
    }
}

/// An operator before its operand.
pub(super) fn unary(f: &mut Formatter<'_>, operator: UnaryOperator, operand: Tree<'_>) -> fmt::Result {
    let (sign, operand) = (operator.text(), operand.at(Level::Unary).to_string());
    // Two minus signs in a row would look like the start of `--how`.
    let blank = if sign == "-" && operand.starts_with('-') { " " } else { "" };
    write!(f, "{sign}{blank}{operand}")
}
