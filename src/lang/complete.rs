//! Completion: the words that the parser accepts at the cursor, after the text before it.

use super::expected::Expected;
use super::lexer::{self, OPTIONS, Token, TokenKind, is_blank};
use super::parser;
use super::parser::Language;

/// The words that are possible at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The offset of the word to complete: that of the cursor after a blank.
    pub start: usize,
    /// The kinds of words that are possible there; empty if the line has an error before that.
    pub kinds: Vec<Expected>,
    /// The quote at `start`, if the word is in quotes.
    pub quote: Option<char>,
}

impl Expectation {
    /// Makes an expectation of one kind of word, without a quote.
    fn of(start: usize, kind: Expected) -> Self {
        Expectation { start, kinds: vec![kind], quote: None }
    }
}

/// Returns the index of the token that begins an incomplete name, after which the text ends in `::`, `.` or `@`.
fn path_begun(text: &str, tokens: &[Token<'_>]) -> Option<usize> {
    let number = tokens.iter().rposition(|token| token.kind == TokenKind::Name)?;
    let joint = text.get(tokens.get(number)?.at.end..)?;
    ["::", ".", "@", "@@"].contains(&joint).then_some(number)
}

/// Returns the offset of an unquoted source path at the end of the text. Where a source file is possible, only a path
/// contains slashes.
fn source_path_begun(language: Language, before: &str) -> Option<usize> {
    let start = before.len() - before.rsplit(is_blank).next()?.len();
    let (command, word) = before.split_at_checked(start)?;
    if !word.contains('/') || word.starts_with(|first| "'\"*".contains(first)) {
        return None;
    }
    expected_after(language, command).contains(&Expected::SourceFile).then_some(start)
}

/// Returns what is possible after the text before a word. The word itself is not parsed: `info thr` is both an
/// abbreviated command and the beginning of one.
fn expected_after(language: Language, text: &str) -> Vec<Expected> {
    parser::expected_at_end(language, text, &lexer::tokens(language, text)).0
}

/// Returns what is possible at `cursor`, a byte offset in `line`.
pub(super) fn expectation(language: Language, line: &str, cursor: usize) -> Expectation {
    let before = line.get(..cursor).unwrap_or(line);
    let tokens = lexer::tokens(language, before);
    let mut quote = None;
    let mut start = before.len();

    // The lexer splits the beginning of an option, or of `soft-dirty`, into minus signs and names.
    let word = before.rsplit(is_blank).next().unwrap_or_default();
    let is_begun = |text: &str| !word.is_empty() && text.starts_with(word);
    let option = OPTIONS.into_iter().any(is_begun);
    let command = word.contains('-') && language.first_words().any(is_begun);
    if option || command {
        start -= word.len();
        let kinds = expected_after(language, before.get(..start).unwrap_or_default());
        let is_meant =
            |kind: &Expected| if command { *kind == Expected::Command } else { matches!(kind, Expected::Option(_)) };
        let kinds: Vec<Expected> = kinds.into_iter().filter(is_meant).collect();
        if !kinds.is_empty() {
            return Expectation { start, kinds, quote };
        }
        start = before.len();
    }

    if let Some(start) = source_path_begun(language, before) {
        return Expectation::of(start, Expected::SourceFile);
    }

    let open = tokens.iter().position(|token| token.kind == TokenKind::Other && matches!(token.text, "'" | "\"" | "["));
    if let Some(open) = open {
        start = tokens.get(open).map_or(start, |token| token.at.start);
        quote = before.get(start..).and_then(|text| text.chars().next()).filter(|opener| *opener != '[');
    } else if let Some(begun) = path_begun(before, &tokens) {
        start = tokens.get(begun).map_or(start, |name| name.at.start);
    } else if let Some(last) = tokens.last().filter(|last| last.at.end == before.len()) {
        match &last.kind {
            TokenKind::Redirect { offset, .. } => {
                return Expectation::of(last.at.start + offset, Expected::File);
            }
            TokenKind::Pipe { .. } | TokenKind::Shell(_) => {
                return Expectation::of(start, Expected::ShellCommand);
            }
            TokenKind::Mark | TokenKind::LonePipe => {}
            _ => start = last.at.start,
        }
    }

    if let (_, Some((kind, raw_start))) = parser::expected_at_end(language, before, &tokens) {
        let quote = before.get(raw_start..).and_then(|text| text.chars().next());
        let quote = quote.filter(|first| matches!(first, '\'' | '"'));
        return Expectation { quote, ..Expectation::of(raw_start, kind) };
    }
    let kinds = expected_after(language, before.get(..start).unwrap_or_default());
    Expectation { start, kinds, quote }
}
