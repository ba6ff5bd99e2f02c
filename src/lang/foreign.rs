//! Writes hostile names (of processes, regions, files, symbols) as words of the language, for completion, hints and
//! "did you mean". A name that could be read as a pipe, a redirection, a clause or another kind of word is quoted, and
//! one that cannot be written is not offered.

use super::Language;
use super::error::{Class, Spanned};
use super::expression::WrittenName;
use super::lexer::{self, Token, TokenKind, escape};
use super::parser;
use crate::kernel::text::is_plain;

/// The kind of word that a name must be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignName {
    /// A symbol, a module, a region, a source file.
    Symbol,
    /// A process. Without quotes, digits and `self` have another meaning.
    Process,
    /// The path of a file, in this kind of quotes if it needs any.
    Path(char),
    /// A text, always in double quotes.
    Text,
}

impl ForeignName {
    /// Returns the ways to write the name, the simplest first. The caller checks that the language reads one as the
    /// name.
    fn spellings(self, name: &str) -> Vec<String> {
        let quoted = escape('\'', name);
        match self {
            ForeignName::Symbol => vec![spelling(name), quoted],
            ForeignName::Process if name == "self" => vec![quoted],
            ForeignName::Process => vec![WrittenName(name.to_owned()).to_string(), quoted],
            ForeignName::Path(quote) if name.chars().all(is_plain_in_path) => {
                vec![name.to_owned(), escape(quote, name)]
            }
            ForeignName::Path(quote) => vec![escape(quote, name)],
            ForeignName::Text => vec![escape('"', name)],
        }
    }
}

/// Returns whether a character of a path has no other meaning, neither here nor in gdb.
fn is_plain_in_path(c: char) -> bool {
    c.is_alphanumeric() || "/._-+~,:=@%".contains(c)
}

/// Returns whether a character between brackets has no other meaning.
fn is_plain_in_brackets(c: char) -> bool {
    c.is_ascii_alphanumeric() || " _-+/.,:@".contains(c)
}

/// Returns a name as it has to be typed: plain names, and those of regions in brackets, unchanged, all others in single
/// quotes.
pub fn spelling(name: &str) -> String {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) if !inner.is_empty() && inner.chars().all(is_plain_in_brackets) => name.to_owned(),
        _ if name == "all" => escape('\'', name),
        _ => WrittenName(name.to_owned()).to_string(),
    }
}

/// Returns the name of a process for a hint that may be typed at the prompt or in a shell. `None` if one of them would
/// read it differently, or if it must not reach a terminal. A shell removes the quotes, so that an option, a number and
/// a word of pmdb would not be read as names.
pub fn spelling_anywhere(name: &str) -> Option<String> {
    let is_read_alike = !name.contains(['\'', '\\', '[']) && name.chars().all(is_plain);
    (is_read_alike && is_name_of_process(name)).then(|| spelling(name))
}

/// Returns whether a word on a command line is read as the name of a process: not as an option, a number, the home of a
/// user, or the demonstration.
pub fn is_name_of_process(name: &str) -> bool {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    !is_number && !name.starts_with(['-', '~']) && !matches!(name, "self" | "demo")
}

impl Language {
    /// Returns how a name is written between `before` and `after`, so that it is exactly one argument. `None` if that
    /// is impossible, or it must not reach a terminal.
    pub fn write_name(self, before: &str, name: &str, after: &str, kind: ForeignName) -> Option<String> {
        if !name.chars().all(is_plain) {
            return None;
        }
        kind.spellings(name).into_iter().find(|word| self.reads_name(before, word, after, name, kind))
    }

    /// Returns whether the parser reads `word` as one argument with this name.
    fn reads_name(self, before: &str, word: &str, after: &str, name: &str, kind: ForeignName) -> bool {
        let line = format!("{before}{word}{after}");
        let place = before.len()..before.len() + word.len();
        let tokens = lexer::tokens(self, &line);
        let first = tokens.iter().position(|token| token.at.end > place.start);
        let behind = tokens.iter().position(|token| token.at.start >= place.end).unwrap_or(tokens.len());
        let Some(taken) = first.and_then(|first| tokens.get(first..behind)) else {
            return false;
        };
        let (classes, wrong) = parser::classes(self, &line, &tokens);
        if wrong.is_some_and(|wrong| wrong.start < line.len() && wrong.end > place.start) {
            return false;
        }
        let is_name = |token: &Token<'_>| {
            let within = |part: &&Spanned<Class>| part.at.start <= token.at.start && token.at.end <= part.at.end;
            match classes.iter().rev().find(within).map(|part| part.node) {
                // The parser records raw text, and the classes of all words that are not names.
                None => matches!(kind, ForeignName::Symbol | ForeignName::Text),
                Some(class) => class == Class::Text,
            }
        };
        let begins = taken.first().is_some_and(|first| first.at.start == place.start);
        let ends = taken.last().is_some_and(|last| last.at.end == place.end);
        let is_meant = match taken {
            [Token { kind: TokenKind::Redirect { path, offset, .. }, at, .. }] => {
                return ends && path == name && at.start + offset == place.start;
            }
            [Token { kind: TokenKind::Quoted(text) | TokenKind::Text(text), .. }] => text == name,
            [only] if kind == ForeignName::Symbol => {
                word == name && matches!(only.kind, TokenKind::Name | TokenKind::Bracketed)
            }
            _ if matches!(kind, ForeignName::Symbol | ForeignName::Text) => false,
            [first, rest @ ..] => {
                let is_plain = |token: &Token<'_>| {
                    !matches!(
                        token.kind,
                        TokenKind::Quoted(_)
                            | TokenKind::Text(_)
                            | TokenKind::Comment
                            | TokenKind::CommentLine
                            | TokenKind::Shell(_)
                            | TokenKind::Pipe { .. }
                            | TokenKind::LonePipe
                            | TokenKind::Redirect { .. }
                            | TokenKind::Option
                            | TokenKind::OtherOption
                    )
                };
                word == name && is_plain(first) && rest.iter().all(|token| token.is_glued && is_plain(token))
            }
            [] => false,
        };
        begins && ends && is_meant && taken.iter().all(is_name)
    }
}
