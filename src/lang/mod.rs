//! The command language: text to syntax tree and back, and errors that point at a place. Pure.
//!
//! The language is written down in `grammar/language.ebnf`; this room is held to it by `tests/grammar`.

pub mod error;
pub mod expression;
pub mod field;
pub mod filter;
pub mod place;
pub mod setting;
pub mod syntax;

pub use error::SyntaxError;
pub use field::{PageField, RegionField};
pub use filter::FilterField;
pub use setting::SETTINGS;
pub use syntax::*;

/// Parses one line: a command with its output, a shell line, a comment, or nothing.
///
/// # Errors
/// A [`SyntaxError`] for a line that is not in the language.
pub fn parse_line(line: &str) -> Result<Line, SyntaxError> {
    match line.trim() {
        "" => Ok(Line::Empty),
        _ => Err(SyntaxError {
            at: Place::new(0, line.len()),
            message: "not a command".into(),
            expected: vec!["a command".into()],
            hint: None,
        }),
    }
}
