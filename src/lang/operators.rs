//! The operators between two operands and how tightly they bind; tested equal to `grammar/operators`.

use super::expression::BinaryOperator;

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
    /// Whether the result is a number and not a truth value.
    pub(super) fn is_arithmetic(self) -> bool {
        self >= Level::Shift || matches!(self, Level::BitOr | Level::BitXor | Level::BitAnd)
    }
}

impl BinaryOperator {
    /// How tightly it binds.
    pub(super) fn level(self) -> Level {
        use BinaryOperator as B;
        match self {
            B::Or => Level::Or,
            B::And => Level::And,
            B::BitOr => Level::BitOr,
            B::BitXor => Level::BitXor,
            B::BitAnd => Level::BitAnd,
            B::Equal | B::NotEqual => Level::Equality,
            B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual => Level::Relation,
            B::ShiftLeft | B::ShiftRight => Level::Shift,
            B::Add | B::Subtract => Level::Sum,
            B::Multiply | B::Divide | B::Remainder => Level::Product,
        }
    }
}
