//! The furthest failure of a line: where it is, and what could have stood there. Hints are made from it.

use super::input::Language;
use crate::lang::expected::Expected;
use crate::lang::lexer::Token;
use crate::lang::syntax::Resolved;

/// Commands whose argument is a value.
const TAKE_VALUES: [&str; 5] = ["print", "output", "assert", "if", "while"];

/// The furthest failure of a line.
pub(super) struct Failure<'a> {
    pub language: Language,
    pub line: &'a str,
    pub tokens: &'a [Token<'a>],
    /// The number of the token that cannot stand where it does. It is past the last one if the command is incomplete.
    pub position: usize,
    /// What could have stood there.
    pub expected: Vec<Expected>,
    /// What the command's own parser says of it.
    pub hint: Option<String>,
}

impl<'a> Failure<'a> {
    /// The token that cannot stand where it does.
    pub fn token(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.position)
    }

    /// The one before it.
    pub fn before(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.position.checked_sub(1)?)
    }

    /// The first word in full, if a command begins with it.
    pub fn command(&self) -> Option<&'static str> {
        match self.language.resolve_first(self.tokens.first()?.text) {
            Resolved::One(command) => Some(command),
            _ => None,
        }
    }

    /// Whether its command takes a value.
    pub fn takes_value(&self) -> bool {
        self.command().is_some_and(|command| TAKE_VALUES.contains(&command))
    }

    /// Whether `one` could have stood there.
    pub fn expects(&self, one: Expected) -> bool {
        self.expected.contains(&one)
    }

    /// Whether this word could have stood there.
    pub fn expects_word(&self, word: &str) -> bool {
        let is_it = |one: &Expected| matches!(one, Expected::Word(other) if *other == word);
        self.expected.iter().any(is_it)
    }
}

/// The beginning of a long token, such as a pasted line.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 24;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(['…']).collect() }
}
