//! The command language: text to syntax tree and back, and errors that point at a place. Pure.
//!
//! The language is written down in `grammar/language.ebnf`, in two levels, and so is this room: `lexer` cuts a line into
//! the longest tokens, `parser` makes the tree of `syntax` of them, and `unparse` (the `Display` of the tree) prints it
//! back. `tests/grammar` holds all of it to the file. What could have stood where parsing failed (`expected`) is in every
//! error, and is what `complete` offers at the cursor; `highlight` says what each word was taken for. Help takes the
//! usage of commands from the file itself (`grammar`).

mod class;
pub mod commands;
pub mod complete;
pub mod error;
mod expected;
pub mod expression;
pub mod field;
pub mod filter;
pub mod grammar;
pub mod highlight;
mod lexer;
mod operators;
mod parser;
pub mod pieces;
pub mod place;
pub mod setting;
pub mod syntax;
mod unparse;
mod words;

pub use commands::{COMMANDS, CommandName};
pub use error::SyntaxError;
pub use expected::Expected;
pub use field::{FilterField, PageField, RegionField};
pub use setting::SETTINGS;
pub use syntax::*;

/// Parses one line: a command with its output, a shell line, a comment, or nothing.
///
/// # Errors
/// A [`SyntaxError`] for a line that is not in the language.
pub fn parse_line(line: &str) -> Result<Line, SyntaxError> {
    parser::parse(line)
}

#[cfg(test)]
mod tests;
