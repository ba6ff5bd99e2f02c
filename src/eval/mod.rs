//! Expressions and ranges to values, filters to `inspect::Filter`, against a target.

mod error;

pub use error::Error;
