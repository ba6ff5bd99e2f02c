//! Filters: what `where` and `until` ask of each page or region.

use super::expression::{BinaryOperator, Expression, UnaryOperator};
use super::place::Spanned;

/// A filter over the fields `F` (of pages or of regions).
///
/// The parser has checked the types of fields: booleans stand alone, integers and texts are compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter<F> {
    /// `A or B`, `A || B`
    Or(Box<Spanned<Filter<F>>>, Box<Spanned<Filter<F>>>),
    /// `A and B`, `A && B`
    And(Box<Spanned<Filter<F>>>, Box<Spanned<Filter<F>>>),
    /// `not A`, `!A`; also what `state != swapped` becomes.
    Not(Box<Spanned<Filter<F>>>),
    /// A boolean field: `dirty`, `swapped`; also what `state == swapped` becomes.
    Is(F),
    /// `flags(NAME)`: a bit of the frame's `/proc/kpageflags` by its name there or as `bitNN`. Pages only.
    Flag(Spanned<String>),
    /// `mapcount > 1`
    Compare {
        /// How.
        comparison: Comparison,
        /// The left side.
        left: Spanned<Quantity<F>>,
        /// The right side.
        right: Spanned<Quantity<F>>,
    },
    /// `name == "…"`, `name != "…"`
    Text {
        /// A field that is text.
        field: F,
        /// `==` or, if false, `!=`.
        equal: bool,
        /// What it is compared with.
        text: Spanned<String>,
    },
}

/// An integer in a filter: fields, and values that do not depend on the page.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity<F> {
    /// An integer field: `mapcount`.
    Field(F),
    /// A value that is the same for every page: a number, `&name`, `$x`, `pfn:1`, `start(heap)`, never a bare name.
    Value(Expression),
    /// `-Q`, `+Q`, `~Q`
    Unary {
        /// The operator.
        operator: Spanned<UnaryOperator>,
        /// What it applies to.
        operand: Box<Spanned<Quantity<F>>>,
    },
    /// `Q + Q`: arithmetic, shifts, and in parentheses `& ^ |`. Never a comparison.
    Binary {
        /// The operator.
        operator: Spanned<BinaryOperator>,
        /// The left operand.
        left: Box<Spanned<Quantity<F>>>,
        /// The right operand.
        right: Box<Spanned<Quantity<F>>>,
    },
}

/// How two quantities are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}
