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
    /// Whether its operators compare.
    pub(super) fn compares(self) -> bool {
        matches!(self, Level::Equality | Level::Relation)
    }

    /// Whether its operators join conditions.
    pub(super) fn joins(self) -> bool {
        self <= Level::And
    }
}

/// Whether a bare word is an operator, and never a name.
pub(super) fn is_operator_word(word: &str) -> bool {
    matches!(word, "and" | "or" | "not")
}

impl BinaryOperator {
    /// The word for it, which filters are printed with.
    pub(super) fn as_word(self) -> Option<&'static str> {
        match self {
            BinaryOperator::Or => Some("or"),
            BinaryOperator::And => Some("and"),
            _ => None,
        }
    }

    /// How tightly it binds.
    pub(super) fn level(self) -> Level {
        use BinaryOperator as B;
        match self {
            B::Or => Level::Or,
            B::And => Level::And,
            B::BitOr => Level::BitOr,
            B::BitXor => Level::BitXor,
            B::BitAnd => Level::BitAnd,
            B::Equal | B::NotEqual | B::Matches => Level::Equality,
            B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual => Level::Relation,
            B::ShiftLeft | B::ShiftRight => Level::Shift,
            B::Add | B::Subtract => Level::Sum,
            B::Multiply | B::Divide | B::Remainder => Level::Product,
        }
    }
}
