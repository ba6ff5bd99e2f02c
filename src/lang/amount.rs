//! Counts and times, as literals or variables.

use std::time::Duration;

use super::span::Spanned;
use crate::kernel::words::worded;

/// How many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// `20`
    Number(u64),
    /// `$n`, without the `$`.
    Variable(String),
}

/// A length of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    /// `100ms`
    Duration(Duration),
    /// `$t`, without the `$`: seconds, or a text such as `100ms`.
    Variable(String),
}

/// How many rows are shown, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// `limit` or `top`.
    pub which: Which,
    /// The number of rows.
    pub rows: Spanned<Count>,
}

worded! {
    /// Which rows are shown, where not all are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Which, word {
        /// The first ones.
        First = "limit",
        /// The largest ones, the largest first.
        Largest = "top",
    }
}
