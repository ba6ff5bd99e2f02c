//! Places in a line, and what the parser takes the words there for.

use std::fmt::{self, Debug, Formatter};

/// A half-open span of bytes of the line that was parsed: `start` is the first byte, `end` the one after the last.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte; equal to `start` for a place between two characters.
    pub end: usize,
}

impl Span {
    /// The span from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// The span from the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Self {
        Span::new(self.start, other.end)
    }
}

/// A node of the tree and where it was written.
///
/// Two nodes are equal when they *mean* the same, wherever they stand: equality looks at `node` alone.
#[derive(Clone)]
pub struct Spanned<T> {
    /// What was written.
    pub node: T,
    /// Where it was written.
    pub at: Span,
}

impl<T> Spanned<T> {
    /// `node`, written at `at`.
    pub fn new(node: T, at: Span) -> Self {
        Spanned { node, at }
    }

    /// The same place with another node.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned::new(change(self.node), self.at)
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T: Eq> Eq for Spanned<T> {}

/// `5..9`
impl Debug for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// `Name("heap")@5..9`
impl<T: Debug> Debug for Spanned<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?}", self.node, self.at)
    }
}

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The name of a command.
    Command,
    /// A word of the language: `where`, `by`, `full`, `on`.
    Keyword,
    /// A field of a filter.
    Field,
    /// A function or the type of a number before its parenthesis.
    Function,
    /// A number, a size or a time, typed or pasted.
    Number,
    /// A symbol, module or region.
    Name,
    /// `$name`, `$`, `$1`.
    Variable,
    /// Text in quotes, raw text, a path.
    Text,
    /// An operator or punctuation mark.
    Operator,
    /// A comment.
    Comment,
    /// What goes to the shell.
    Shell,
    /// What cannot stand where it does. Never the last part of the line, which may be unfinished.
    Wrong,
}
