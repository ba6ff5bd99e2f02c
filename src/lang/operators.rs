//! The operators between two operands and how tightly they bind; tested equal to `grammar/operators`.

use super::expression::{BinaryOperator, Comparison, UnaryOperator};
use super::words::spelled;

/// How tightly an operator binds; all are left-associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
}

impl Level {
    /// The loosest of all.
    pub(super) const LOOSEST: Level = Level::Or;

    /// The next tighter one: what the right operand of a left-associative operator is made of.
    pub(super) fn tighter(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::BitOr,
            Level::BitOr => Level::BitXor,
            Level::BitXor => Level::BitAnd,
            Level::BitAnd => Level::Equality,
            Level::Equality => Level::Relation,
            Level::Relation => Level::Shift,
            Level::Shift => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product | Level::Unary => Level::Unary,
        }
    }

    /// Whether the result is a number and not a truth.
    pub(super) fn is_arithmetic(self) -> bool {
        self >= Level::Shift || matches!(self, Level::BitOr | Level::BitXor | Level::BitAnd)
    }
}

/// Every operator between two operands, the loosest first.
pub(super) static BINARY: &[(&str, Level, BinaryOperator)] = &[
    ("||", Level::Or, BinaryOperator::Or),
    ("&&", Level::And, BinaryOperator::And),
    ("|", Level::BitOr, BinaryOperator::BitOr),
    ("^", Level::BitXor, BinaryOperator::BitXor),
    ("&", Level::BitAnd, BinaryOperator::BitAnd),
    ("==", Level::Equality, BinaryOperator::Equal),
    ("!=", Level::Equality, BinaryOperator::NotEqual),
    ("<", Level::Relation, BinaryOperator::Less),
    ("<=", Level::Relation, BinaryOperator::LessOrEqual),
    (">", Level::Relation, BinaryOperator::Greater),
    (">=", Level::Relation, BinaryOperator::GreaterOrEqual),
    ("<<", Level::Shift, BinaryOperator::ShiftLeft),
    (">>", Level::Shift, BinaryOperator::ShiftRight),
    ("+", Level::Sum, BinaryOperator::Add),
    ("-", Level::Sum, BinaryOperator::Subtract),
    ("*", Level::Product, BinaryOperator::Multiply),
    ("/", Level::Product, BinaryOperator::Divide),
    ("%", Level::Product, BinaryOperator::Remainder),
];

/// Every operator before an operand. `&name` is no operator: it takes a name, not a value.
pub(super) static UNARY: &[(&str, UnaryOperator)] = &[
    ("-", UnaryOperator::Negate),
    ("+", UnaryOperator::Plus),
    ("~", UnaryOperator::BitNot),
    ("!", UnaryOperator::Not),
    ("*", UnaryOperator::Dereference),
];

/// Every comparison of a filter.
pub(super) static COMPARISONS: &[(&str, Comparison)] = &[
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
];

impl BinaryOperator {
    /// As it is written.
    pub fn text(self) -> &'static str {
        BINARY
            .iter()
            .find(|(_, _, operator)| *operator == self)
            .map_or("", |(text, _, _)| text)
    }

    /// How tightly it binds.
    pub(super) fn level(self) -> Level {
        BINARY
            .iter()
            .find(|(_, _, operator)| *operator == self)
            .map_or(Level::Unary, |(_, level, _)| *level)
    }
}

impl UnaryOperator {
    /// As it is written.
    pub fn text(self) -> &'static str {
        spelled(UNARY, &self)
    }
}

impl Comparison {
    /// As it is written.
    pub fn text(self) -> &'static str {
        spelled(COMPARISONS, &self)
    }
}
