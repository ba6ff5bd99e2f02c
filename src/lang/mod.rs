//! The command language: text to syntax tree and back, and errors that point at a place. Pure.
//!
//! The language is written down in `grammar/language.ebnf`, in two levels, and so is this room: `lexer` cuts a line into
//! the longest tokens, `parser` makes the tree of `syntax` of them, and `unparse` (the `Display` of the tree) prints it
//! back. `tests/grammar` holds all of it to the file. What could have stood where parsing failed (`expected`) is in every
//! error, and is what `complete` offers at the cursor; `highlight` says what each word was taken for. Help takes the
//! usage of commands from the file itself (`grammar`).
//!
//! ```text
//! highlight, complete       a line while it is typed
//! script                    lines → blocks
//! parser      unparse       tokens → tree               tree → line
//! lexer                     text → tokens
//! commands    operators     words    setting    field   the tables: what there is, each said once
//! expected    error         class                       what is said of a place
//! syntax      expression    place                       the tree
//! ```

mod class;
pub mod commands;
pub mod complete;
mod error;
mod expected;
mod expression;
pub mod field;
pub mod grammar;
pub mod highlight;
mod layout;
mod lexer;
mod near;
mod operators;
mod parser;
mod place;
pub mod script;
pub mod setting;
mod syntax;
mod unparse;
mod words;

pub use commands::{COMMANDS, CommandName};
pub use error::SyntaxError;
pub use expected::Expected;
pub use near::near;
pub use setting::SETTINGS;
pub use syntax::*;

/// Parses one line: a command with its output, a shell line, a comment, or nothing.
///
/// # Errors
/// A [`SyntaxError`] for a line that is not in the language.
pub fn parse_line(line: &str) -> Result<Line, SyntaxError> {
    parser::parse(line)
}

/// The arguments in a text: values parted by blanks.
pub fn parse_arguments(text: &str) -> Vec<Spanned<Argument>> {
    parser::arguments(text)
}

#[cfg(test)]
mod tests;
