//! Numbers in suggested lines, spelled as in the line that was typed.

use super::error::Span;
use super::lexer::{self, TokenKind};
use super::parser::Language;
use std::collections::HashMap;

impl Language {
    /// Returns a sentence in which the numbers between backticks are spelled as in the line: `+1G` and not
    /// `+0x40000000`.
    pub fn respelled(self, sentence: &str, line: &str) -> String {
        let mut typed: HashMap<u64, Vec<&str>> = HashMap::new();
        for (number, _, text) in self.numbers(line) {
            typed.entry(number).or_default().push(text);
        }
        let parts = sentence.split('`').enumerate();
        let parts =
            parts.map(|(index, part)| if index % 2 == 1 { self.spelled_by(part, &typed) } else { part.to_owned() });
        parts.collect::<Vec<_>>().join("`")
    }

    fn numbers(self, text: &str) -> impl Iterator<Item = (u64, Span, &str)> {
        lexer::tokens(self, text).into_iter().filter_map(|token| match token.kind {
            TokenKind::Number(number) => Some((number, token.at, token.text)),
            _ => None,
        })
    }

    /// Returns the text with the spellings of its numbers. If a number has several, they are taken in their order.
    fn spelled_by(self, text: &str, typed: &HashMap<u64, Vec<&str>>) -> String {
        let (mut spelled, mut done) = (String::with_capacity(text.len()), 0);
        let mut used: HashMap<u64, usize> = HashMap::new();
        // A number right behind any other character is a part of a name, such as that of a path or a setting.
        let is_number = |at: &Span| {
            let before = text.get(..at.start).and_then(|before| before.chars().next_back());
            before.is_none_or(|before| " (,+-*.[:".contains(before))
        };
        for (number, at, written) in self.numbers(text).filter(|(_, at, _)| is_number(at)) {
            let next = used.entry(number).or_default();
            let spelling = typed.get(&number).and_then(|all| all.get(*next).or(all.last()));
            *next += 1;
            spelled.push_str(text.get(done..at.start).unwrap_or_default());
            spelled.push_str(spelling.unwrap_or(&written));
            done = at.end;
        }
        spelled + text.get(done..).unwrap_or_default()
    }
}
