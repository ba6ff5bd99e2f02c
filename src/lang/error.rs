//! The error of a line that does not parse, places in a line, and the classes of its words.

use std::fmt::{self, Debug, Formatter};
use unicode_width::UnicodeWidthChar;

/// The error of a line that is not in the language: the place, the message, and the alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The wrong part of the line; empty at its end.
    pub at: Span,
    /// The message, without a full stop.
    pub message: String,
    /// The alternatives at that place, in words; none if the message is complete.
    pub expected: Vec<String>,
    /// A hint, if one is likely.
    pub hint: Option<String>,
    /// The contents of a pasted line. Such an error has no hint yet: callers who know the process make it.
    pub pasted: Option<Box<Pasted>>,
}

/// The contents of a pasted line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pasted {
    /// The command before the pasted text, as it was typed.
    pub command: Option<String>,
    /// The variable of the program whose value the text shows.
    pub variable: Option<String>,
    /// Whether that command accepts page frames.
    pub takes_frames: bool,
    /// The numbers in the text that may be meaningful, in order.
    pub candidates: Vec<Candidate>,
}

/// A number in pasted text, with a possible meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// An address.
    Address(u64),
    /// The range from the first address up to the second, which is excluded.
    Range(u64, u64),
    /// An address in a file, which is the executable if it has no name.
    InFile { module: Option<String>, address: u64 },
    /// An offset of a file, in bytes.
    Offset { module: String, offset: u64 },
    /// An offset from the first byte of a symbol.
    Symbol { module: Option<String>, name: String, offset: u64 },
    /// A page frame number, and whether the text has it in decimal.
    Frame { number: u64, is_decimal: bool },
    /// A physical address.
    Physical(u64),
    /// An entry of the processor's page table.
    Entry(u64),
}

impl SyntaxError {
    /// Draws the error: the line, a caret below the place, the message, the alternatives, and the hint, each on a line.
    ///
    /// Characters that control a terminal are escaped.
    pub fn draw(&self, line: &str) -> String {
        let mut drawing = self.draw_place(line);
        drawing.push_str(&printable(&self.message));
        if !self.expected.is_empty() {
            drawing.push_str("\nexpected ");
            drawing.push_str(&printable(&self.expected_text()));
        }
        if let Some(hint) = &self.hint {
            drawing.push('\n');
            drawing.push_str(&printable(hint));
        }
        if let Some(pasted) = &self.pasted {
            let shown: Vec<String> = pasted.candidates.iter().map(Candidate::to_string).collect();
            drawing.push_str("\npasted: ");
            drawing.push_str(&printable(&if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }));
        }
        drawing
    }

    /// Draws the line, and a caret below the place on the next line. A long line is cut on both sides of the place.
    pub fn draw_place(&self, line: &str) -> String {
        const BEFORE: usize = 60;
        const CONTENT: usize = 40;
        let (mut shown, mut before, mut under) = (String::new(), 0, 0);
        let first = line.char_indices().rev().filter(|(offset, _)| *offset < self.at.start).nth(BEFORE);
        if let Some((offset, _)) = first {
            shown.push('…');
            before = 1;
            debug_assert!(offset < self.at.start);
        }
        let from = first.map_or(0, |(offset, character)| offset + character.len_utf8());
        let mut behind = 0;
        for (offset, character) in line.char_indices().skip_while(|(offset, _)| *offset < from) {
            if behind == CONTENT {
                shown.push('…');
                break;
            }
            let (text, width) = printable_character(character);
            shown.push_str(&text);
            if offset < self.at.start {
                before += width;
            } else {
                behind += 1;
                under += if offset < self.at.end { width } else { 0 };
            }
        }
        let spaces = " ".repeat(before);
        let tildes = "~".repeat(under.saturating_sub(1));
        format!("{}\n{spaces}^{tildes}\n", shown.trim_end())
    }

    /// Returns the alternatives as one phrase: ``a command``, ```where`, `by` or `limit` ``.
    pub fn expected_text(&self) -> String {
        match self.expected.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            [several @ .., last] => format!("{} or {last}", several.join(", ")),
        }
    }

    /// Returns the column of the place in characters, from 1, as in editors.
    pub fn column(&self, line: &str) -> usize {
        line.char_indices().take_while(|(offset, _)| *offset < self.at.start).count() + 1
    }

    /// Adds this hint, unless the error has one.
    pub(super) fn or_hint(mut self, hint: Option<&str>) -> Self {
        self.hint = self.hint.or_else(|| hint.map(str::to_owned));
        self
    }

    /// Returns "did you mean …", if a word is similar enough.
    pub fn did_you_mean<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let near = near(typed, words);
        near.first().map(|word| format!("did you mean `{word}`?"))
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|character| printable_character(character).0).collect()
}

/// Returns a character as it may be printed on a terminal, and its width there.
fn printable_character(character: char) -> (String, usize) {
    match (character, character.width()) {
        ('\t', _) => (" ".into(), 1),
        (_, Some(width)) if width > 0 => (character.into(), width),
        _ => {
            let escaped: String = character.escape_default().collect();
            let width = escaped.len();
            (escaped, width)
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", printable(&self.message))?;
        if self.expected.is_empty() {
            return Ok(());
        }
        write!(f, "; expected {}", printable(&self.expected_text()))
    }
}

impl std::error::Error for SyntaxError {}

/// The most similar words in a hint.
const MOST: usize = 3;

/// The shortest word in letters for which similar ones are searched. Shorter words are similar to too many others: `py`
/// is not `ps`, `all` is not `walk`.
const SHORTEST: usize = 4;

/// Joins items to `a, b and c`, with another word for `and`.
pub fn listed<S: std::borrow::Borrow<str>>(items: &[S], and: &str) -> String {
    match items {
        [first @ .., last] if !first.is_empty() => format!("{} {and} {}", first.join(", "), last.borrow()),
        items => items.concat(),
    }
}

/// Returns the words that are most similar to `typed`, best first: those that begin with it, those that lack only its
/// last one or two letters, and those that differ in one letter (two if `typed` has seven or more). Brackets and case
/// are ignored.
pub fn near<W: AsRef<str> + Ord>(typed: &str, words: impl IntoIterator<Item = W>) -> Vec<W> {
    let bare = |word: &str| word.trim_matches(['[', ']']).to_lowercase();
    let wanted = bare(typed);
    let length = wanted.chars().count();
    if length < SHORTEST {
        return Vec::new();
    }
    let farthest = if length < 7 { 1 } else { 2 };
    let mut near: Vec<(usize, W)> = words
        .into_iter()
        .filter(|word| !word.as_ref().is_empty() && word.as_ref() != typed)
        .filter_map(|word| {
            let other = bare(word.as_ref());
            let is_beginning = other.starts_with(&wanted)
                || (other.len() >= SHORTEST && wanted.strip_prefix(&other).is_some_and(|rest| rest.len() <= 2));
            let is_plural = other == "children" && wanted.starts_with("child");
            let distance = match (is_beginning || is_plural) && other != wanted {
                true => 1,
                // At least as many letters differ. Comparing a long word letter by letter is slow.
                false if other.chars().count().abs_diff(length) > farthest => return None,
                false => strsim::damerau_levenshtein(&wanted, &other),
            };
            (distance <= farthest).then_some((distance, word))
        })
        .collect();
    // Among words with the same beginning, the shortest has the fewest additional letters.
    near.sort_by(|(a, one), (b, other)| {
        let length = |word: &W| word.as_ref().len();
        (a, length(one), one).cmp(&(b, length(other), other))
    });
    near.dedup();
    near.truncate(MOST);
    near.into_iter().map(|(_, word)| word).collect()
}

/// Returns the names that contain `typed` as a whole word, the shortest first: `memfd:ring` for `ring`.
pub fn with_word<W: AsRef<str> + Ord>(typed: &str, names: impl IntoIterator<Item = W>) -> Vec<W> {
    let is_end = |next: Option<char>| next.is_none_or(|next| !next.is_alphanumeric());
    let has_word = |name: &str| {
        name.len() > typed.len()
            && name.match_indices(typed).any(|(at, _)| {
                is_end(name[..at].chars().next_back()) && is_end(name[at + typed.len()..].chars().next())
            })
    };
    let is_short = typed.chars().count() < SHORTEST;
    let mut names: Vec<W> = names.into_iter().filter(|name| !is_short && has_word(name.as_ref())).collect();
    names.sort_by(|one, other| (one.as_ref().len(), one).cmp(&(other.as_ref().len(), other)));
    names.dedup();
    names.truncate(MOST);
    names
}

/// A half-open range of bytes in the parsed line: `start` is the first byte, `end` the one after the last.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte; equal to `start` for a place between two characters.
    pub end: usize,
}

impl Span {
    /// Makes the span from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// Returns the span from the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Self {
        Span::new(self.start, other.end)
    }
}

/// A node of the tree, and its place in the line.
///
/// Two nodes are equal if they have the same meaning, wherever they are: equality compares only `node`.
#[derive(Clone)]
pub struct Spanned<T> {
    /// The node.
    pub node: T,
    /// The place in the line.
    pub at: Span,
}

impl<T> Spanned<T> {
    /// Makes a node at a place.
    pub fn new(node: T, at: Span) -> Self {
        Spanned { node, at }
    }

    /// Replaces the node, and keeps the place.
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

/// Printed as `5..9`.
impl Debug for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// Printed as `Name("heap")@5..9`.
impl<T: Debug> Debug for Spanned<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?}", self.node, self.at)
    }
}

/// The class of a part of a line, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The name of a command.
    Command,
    /// A word of the language: `where`, `by`, `full`, `on`.
    Keyword,
    /// A field of a filter.
    Field,
    /// A function, or the type of a number, before its parenthesis.
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
    /// Text that is passed to the shell.
    Shell,
    /// A part that is not allowed at its place. Never the last part of the line, which may be incomplete.
    Wrong,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(start: usize, end: usize) -> SyntaxError {
        SyntaxError {
            at: Span::new(start, end),
            message: "`b` cannot stand here".into(),
            expected: vec!["a".into(), "b".into(), "c".into()],
            hint: Some("did you mean `a`?".into()),
            pasted: None,
        }
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let drawing = error(2, 4).draw("a bb c");
        assert_eq!(drawing, "a bb c\n  ^~\n`b` cannot stand here\nexpected a, b or c\ndid you mean `a`?");
    }

    #[test]
    fn widths_are_those_of_the_terminal() {
        assert_eq!(error("世 ".len(), "世 b".len()).draw_place("世 b"), "世 b\n   ^\n");
        assert_eq!(error(1, 2).draw_place("\tb"), " b\n ^\n");
    }

    #[test]
    fn nothing_reaches_the_terminal_raw() {
        let drawing = error(0, 1).draw("\u{1b}[2J\u{7f}\u{202e}");
        assert!(!drawing.contains('\u{1b}') && !drawing.contains('\u{7f}') && !drawing.contains('\u{202e}'));
        assert!(drawing.starts_with("\\u{1b}[2J"), "{drawing}");
    }

    #[test]
    fn of_a_long_line_what_is_around_the_place_is_shown() {
        let line = format!("{}b{}", "a".repeat(1000), "c".repeat(1000));
        let drawing = error(1000, 1001).draw_place(&line);
        let (shown, caret) = drawing.split_once('\n').unwrap_or_default();
        assert!(shown.chars().count() < 120, "{shown}");
        assert_eq!(shown.chars().nth(caret.find('^').unwrap_or(0)), Some('b'));
    }

    #[test]
    fn columns_are_counted_in_characters_from_one() {
        assert_eq!(error("é ".len(), 4).column("é b"), 3);
    }

    const WORDS: [&str; 9] = ["walk", "watch", "print", "pipe", "ps", "[heap]", "translate", "swapcache", "swapped"];

    #[test]
    fn a_letter_more_less_or_other_and_a_beginning_are_near() {
        for (typed, meant) in [
            ("wlak", &["walk"][..]),
            ("printf", &["print"]),
            ("haep", &["[heap]"]),
            ("HEAP", &["[heap]"]),
            ("tran", &["translate"]),
            ("swap", &["swapped", "swapcache"]),
            ("walker", &["walk"]),
            ("tarnslat", &["translate"]),
        ] {
            assert_eq!(near(typed, WORDS), meant, "{typed}");
        }
    }

    #[test]
    fn short_words_and_two_letters_of_five_are_not_near() {
        for typed in ["py", "all", "ptype", "pip", "wa", "zzzz", ""] {
            assert_eq!(near(typed, WORDS), [""; 0], "{typed}");
        }
    }
}
