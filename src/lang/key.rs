//! The keys of `by` as they are written, and which of them a command takes.

use super::error::Spanned;
use super::field::{FilterField, PageField};
use crate::kernel::Key;
use std::fmt::{self, Display, Formatter};

/// A key as it is written: whether a flag has the name is found out when the line runs.
#[derive(Clone, Debug, PartialEq)]
pub enum WrittenKey {
    /// A word.
    Key(Key),
    /// `flags(NAME)`
    Flag(Spanned<String>),
}

impl Display for WrittenKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WrittenKey::Key(key) => key.fmt(f),
            WrittenKey::Flag(name) => write!(f, "flags({})", name.node),
        }
    }
}

/// The facts about pages that are keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyFacts {
    /// None.
    None,
    /// Those that frames have.
    OfFrames,
    /// Those that changes have. Any other that can be grouped by is parsed too: the command says what to type for it.
    OfChanges,
    /// All that can be grouped by, and each state, kind and flag.
    All,
}

/// The keys that a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TakenKeys {
    /// What is known of a page.
    pub facts: KeyFacts,
    /// What comes from outside of a page, and single facts besides.
    pub others: &'static [Key],
}

impl TakenKeys {
    /// Only what comes from outside of a page.
    pub const fn only(others: &'static [Key]) -> Self {
        TakenKeys { facts: KeyFacts::None, others }
    }

    /// Whether `key` is one of them.
    pub fn takes(self, key: Key) -> bool {
        let is_taken_fact = |field: PageField| {
            let row = field.fact().row();
            row.is_key
                && match self.facts {
                    KeyFacts::None => false,
                    KeyFacts::OfFrames => row.is_of_frames,
                    KeyFacts::OfChanges => row.is_of_changes,
                    KeyFacts::All => true,
                }
        };
        matches!(key, Key::Page(field) if is_taken_fact(field)) || self.others.contains(&key)
    }

    /// Those that are words, in the order of the help.
    pub fn all(self) -> impl Iterator<Item = Key> {
        Key::all().filter(move |&key| self.takes(key))
    }

    /// All words for them, also those that are only accepted.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        self.all().flat_map(words_of)
    }

    /// The key of a word, also of one that only the run of the command refuses.
    pub fn from_word(self, word: &str) -> Option<Key> {
        let facts = if self.facts == KeyFacts::OfChanges { KeyFacts::All } else { self.facts };
        TakenKeys { facts, ..self }.all().find(|&key| words_of(key).any(|one| one == word))
    }
}

fn words_of(key: Key) -> impl Iterator<Item = &'static str> {
    let others: &[&str] = match key {
        Key::Page(field) => PageField::other_names(field),
        _ => &[],
    };
    std::iter::once(key.word()).chain(others.iter().copied())
}
