//! What could stand at the cursor: the parser's own expectations at the end of what stands before it.

use super::expected::Expected;
use super::lexer::{self, TokenKind};
use super::parser;

/// What could stand where the cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Where in the line the word begins that is to be completed; the cursor itself if it stands behind a blank.
    pub start: usize,
    /// What could stand there; empty if the line is wrong before that.
    pub kinds: Vec<Expected>,
    /// The quote that stands at `start`, if what is being typed is in quotes.
    pub quote: Option<char>,
}

/// What could stand at `cursor`, a byte offset in `line`.
pub fn expectation(line: &str, cursor: usize) -> Expectation {
    let before = line.get(..cursor).unwrap_or(line);
    let mut tokens = lexer::tokens(before);
    let mut quote = None;
    let mut start = before.len();

    let open = tokens
        .iter()
        .position(|token| token.kind == TokenKind::Other && matches!(token.text, "'" | "\"" | "["));
    if let Some(open) = open {
        start = tokens.get(open).map_or(start, |token| token.at.start);
        quote = before
            .get(start..)
            .and_then(|text| text.chars().next())
            .filter(|opener| *opener != '[');
        tokens.truncate(open);
    } else if let Some(last) = tokens.last().filter(|last| last.at.end == before.len()) {
        match &last.kind {
            TokenKind::Redirect { offset, .. } => {
                return Expectation {
                    start: last.at.start + offset,
                    kinds: vec![Expected::File],
                    quote,
                };
            }
            TokenKind::Pipe { .. } | TokenKind::Shell(_) => {
                return Expectation {
                    start,
                    kinds: vec![Expected::ShellCommand],
                    quote,
                };
            }
            TokenKind::Mark | TokenKind::LonePipe => {}
            _ => {
                start = last.at.start;
                tokens.pop();
            }
        }
    }

    let whole = lexer::tokens(before);
    if let (_, Some((kind, raw_start))) = parser::expected_at_end(before, &whole) {
        let quote = before.get(raw_start..).and_then(|text| text.chars().next());
        let quote = quote.filter(|first| matches!(first, '\'' | '"'));
        return Expectation {
            start: raw_start,
            kinds: vec![kind],
            quote,
        };
    }
    let (kinds, _) = parser::expected_at_end(before, &tokens);
    Expectation {
        start,
        kinds,
        quote,
    }
}
