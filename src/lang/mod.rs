//! The command language: text to syntax tree, and errors that point at a place. Pure.
//!
//! `grammar/language.ebnf` defines the language in two levels, and this room has the same two: `lexer` cuts a line into
//! the longest tokens, and `parser` makes the tree of `syntax` from them. `display` writes expressions back.
//! `tests/grammar` holds all of it to the file. Every error lists what could have stood where parsing failed
//! (`expected`); `complete` offers the same at the cursor. `highlight` says what each word was taken for. `grammar`
//! reads the usage of commands from the file, for the help.
//!
//! ```text
//! highlight, complete       a line while it is typed
//! script                    lines → blocks
//! parser      display       tokens → tree               expression → text
//! lexer                     text → tokens
//! commands    operators     setting    field    ctype   the tables: each fact declared once
//! habits                    the words of other programs, for a line that does not parse
//! expected    error         class                       what is known about a place in the line
//! syntax      arguments     expression    amount  span  the tree
//! ```

mod amount;
mod arguments;
mod class;
pub mod commands;
pub mod complete;
mod ctype;
mod display;
mod error;
mod expected;
mod expression;
pub mod field;
pub mod grammar;
pub mod habits;
pub mod highlight;
mod layout;
mod lexer;
mod operators;
mod parser;
pub mod script;
pub mod setting;
mod span;
mod syntax;

pub use commands::{COMMANDS, CommandName};
pub use error::{SyntaxError, near};
pub use expected::Expected;
pub use lexer::escape;
pub use setting::SETTINGS;
pub use syntax::*;

/// Parses one line: a command with its output, a shell line, a comment, or nothing.
///
/// # Errors
/// A [`SyntaxError`] for a line that is not in the language.
pub fn parse_line(line: &str) -> Result<Line, SyntaxError> {
    parser::parse(line)
}

/// What to say of a typed line that parses, and was meant for gdb or is its output: `#1 0x401136 in main ()`, `f 1`.
pub fn meant_for_gdb(line: &str) -> Option<String> {
    parser::meant_for_gdb(line)
}

/// The text after the name of a user-defined command: the arguments, and where the output goes.
///
/// # Errors
/// A [`SyntaxError`] for an incomplete pipe or redirection.
pub fn parse_call(text: &str) -> Result<(Vec<Spanned<Argument>>, Output), SyntaxError> {
    parser::call(text)
}

/// The arguments in a text: values separated by blanks.
pub fn parse_arguments(text: &str) -> Vec<Spanned<Argument>> {
    parser::arguments(text)
}

/// The duration that a text stands for: `100ms`; a number alone is in seconds.
pub fn parse_duration(text: &str) -> Option<std::time::Duration> {
    match lexer::tokens(text).as_slice() {
        [token] => token.kind.duration(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
