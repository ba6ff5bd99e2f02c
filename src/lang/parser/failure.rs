//! Where a line failed, for what looks for a hint.

use crate::lang::commands::{Resolved, resolve_first};
use crate::lang::expected::Expected;
use crate::lang::lexer::Token;

/// The furthest failure of a line.
pub(super) struct Failure<'a> {
    pub line: &'a str,
    pub tokens: &'a [Token<'a>],
    /// The number of the token that cannot stand where it does. There is none if something is missing at the end.
    pub position: usize,
    /// What could have stood there.
    pub expected: Vec<Expected>,
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
        match resolve_first(self.tokens.first()?.text) {
            Resolved::One(command) => Some(command),
            _ => None,
        }
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
