//! The command language: text to syntax tree, and errors that point at a place. Pure.
//!
//! `grammar/language.ebnf` defines the language in two levels, and this module has the same: `lexer` splits a line into
//! the longest tokens, and `parser` makes the tree of `syntax` from them. `display` writes expressions back.
//! `tests/grammar` compares all of it with the file. Errors list the alternatives where parsing failed (`expected`);
//! `complete` offers the same at the cursor. `highlight` returns the class of each word. `grammar` reads the usage of
//! commands from the file, for the help.
//!
//! ```text
//! highlight, complete       a line while it is typed
//! script                    lines → blocks
//! foreign, respelled        names of somebody else → words; numbers in hints as they were typed
//! parser      display       tokens → tree               tree → text
//! lexer                     text → tokens
//! setting     field         ctype                      the tables: each fact declared once
//! expected    error                                    what is known about a place in the line
//! syntax      expression                               the tree
//! ```

pub mod complete;
mod ctype;
pub(crate) mod display;
mod error;
mod expected;
mod expression;
pub mod field;
mod foreign;
pub mod grammar;
pub mod highlight;
pub(crate) mod lexer;
pub(crate) mod parser;
mod respelled;
pub mod script;
pub mod setting;
mod syntax;

pub use error::{Candidate, Pasted, SyntaxError, listed, near, with_word};
pub use expected::Expected;
pub(crate) use expression::is_operator_word;
pub use field::{KeyFacts, TakenKeys, WrittenKey};
pub use foreign::{ForeignName, is_name_of_process, spelling, spelling_anywhere};
pub use lexer::{escape, joined_rows};
pub use parser::{Advice, Failure, Fault, Language, OtherMeaning, OtherWords, Syntax};
pub use setting::{ColorChoice, Editing, PagerChoice, ScreenSize, Setting, SettingValue, Settings, StyleChoice};
pub use syntax::*;

impl Language {
    /// Returns what is possible at `cursor`, a byte offset in `line`.
    pub fn expectation(self, line: &str, cursor: usize) -> complete::Expectation {
        complete::expectation(self, line, cursor)
    }

    /// Returns the parts of a line in order, without overlaps and blanks, each with its class.
    pub fn classes(self, line: &str) -> Vec<Spanned<highlight::Class>> {
        highlight::classes(self, line)
    }
}

/// Parses a duration such as `100ms`. It has a unit.
pub fn parse_duration(text: &str) -> Option<std::time::Duration> {
    match lexer::tokens(Language { commands: &[], advice: None }, text).as_slice() {
        [token] => token.kind.duration(),
        _ => None,
    }
}
