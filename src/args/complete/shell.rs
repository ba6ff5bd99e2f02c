//! The words of a shell's line: what they mean, and how a word is written so that it means something.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word as it stands in a line, perhaps with a quote that is still open.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ShellWord {
    /// As it is written.
    pub(super) raw: String,
    /// As a program gets it.
    pub(super) plain: String,
    /// The place in `raw` of each byte of `plain`.
    places: Vec<usize>,
    /// The quote that is open at its end.
    pub(super) quote: Option<char>,
}

impl ShellWord {
    /// A word of which the shell has already taken `quote` off.
    pub(super) fn begun_with(quote: &str, raw: &str) -> Self {
        let mut word = ShellWord { quote: quote.chars().next_back(), ..ShellWord::default() };
        let mut rest = raw.char_indices().peekable();
        // Blanks belong to it.
        while rest.peek().is_some() {
            word.read(raw, &mut rest);
            if let Some((at, blank)) = rest.next() {
                word.push(at, blank);
            }
        }
        word.raw = raw.to_owned();
        word
    }

    /// The words of a line; the last one is empty behind a blank.
    pub(super) fn all(line: &str) -> Vec<Self> {
        let mut words = Vec::new();
        let mut rest = line.char_indices().peekable();
        loop {
            while rest.next_if(|(_, c)| c.is_whitespace()).is_some() {}
            let start = rest.peek().map_or(line.len(), |(at, _)| *at);
            let mut word = ShellWord::default();
            word.read(line, &mut rest);
            let end = rest.peek().map_or(line.len(), |(at, _)| *at);
            word.places.iter_mut().for_each(|place| *place -= start);
            word.raw = line.get(start..end).unwrap_or_default().to_owned();
            words.push(word);
            if rest.peek().is_none() {
                return words;
            }
        }
    }

    /// Reads up to a blank outside of quotes.
    fn read(&mut self, line: &str, rest: &mut Peekable<CharIndices<'_>>) {
        while let Some(&(at, c)) = rest.peek() {
            if self.quote.is_none() && c.is_whitespace() {
                return;
            }
            rest.next();
            match (self.quote, c) {
                (None, '\'' | '"') => self.quote = Some(c),
                (Some(quote), _) if quote == c => self.quote = None,
                (None, '\\') => {
                    if let Some((_, escaped)) = rest.next() {
                        self.push(at, escaped);
                    }
                }
                (Some('"'), '\\') => match line[at + 1..].chars().next() {
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => {
                        rest.next();
                        self.push(at, escaped);
                    }
                    _ => self.push(at, c),
                },
                _ => self.push(at, c),
            }
        }
    }

    fn push(&mut self, at: usize, c: char) {
        self.plain.push(c);
        self.places.resize(self.plain.len(), at);
    }

    /// The bytes of `plain` whose text begins before this place in `raw`.
    pub(super) fn plain_before(&self, raw: usize) -> usize {
        self.places.partition_point(|place| *place < raw)
    }

    /// Where in `raw` this byte of `plain` begins.
    pub(super) fn raw_before(&self, plain: usize) -> usize {
        self.places.get(plain).copied().unwrap_or(self.raw.len())
    }
}

/// A text as it must be written in an open quote, or without one, to mean itself. `None` if it cannot be: between
/// double quotes `!` is a line of the shell's history, and a backslash before it stays.
pub(super) fn quote_text(text: &str, quote: Option<char>) -> Option<String> {
    if quote == Some('"') && text.contains('!') {
        return None;
    }
    let mut written = String::new();
    for (at, c) in text.char_indices() {
        match quote {
            Some('\'') if c == '\'' => written.push_str("'\\'"),
            Some('"') if matches!(c, '"' | '\\' | '$' | '`') => written.push('\\'),
            Some(_) => {}
            // A file in the home of a user.
            None if at == 0 && text.starts_with("~/") => {}
            None if c.is_alphanumeric() || "_./:=@%+,-^".contains(c) => {}
            None => written.push('\\'),
        }
        written.push(c);
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str) -> Vec<String> {
        ShellWord::all(line).into_iter().map(|word| word.plain).collect()
    }

    #[test]
    fn words_are_read_as_a_shell_reads_them() {
        assert_eq!(plain("pmdb -p 8  "), ["pmdb", "-p", "8", ""]);
        assert_eq!(plain("pmdb"), ["pmdb"]);
        assert_eq!(plain(""), [""]);
        assert_eq!(plain(r#"a\ b 'c "d' "e 'f\"" g"h i"j"#), ["a b", "c \"d", "e 'f\"", "gh ij"]);
        assert_eq!(plain(r#""\a\$" '\'"#), [r"\a$", r"\"]);
        assert_eq!(plain("a\\"), ["a"]);
    }

    #[test]
    fn an_open_quote_and_places_are_known() {
        let words = ShellWord::all("pmdb ab\"c d");
        assert_eq!((words[1].quote, words[1].raw.as_str()), (Some('"'), "ab\"c d"));
        assert_eq!((words[1].plain_before(3), words[1].raw_before(2), words[1].raw_before(5)), (2, 3, 6));
        let word = ShellWord::begun_with("'", "a  $b");
        assert_eq!((word.plain.as_str(), word.quote, word.raw_before(3)), ("a  $b", Some('\''), 3));
        let word = ShellWord::begun_with("", "a\\ b");
        assert_eq!((word.plain.as_str(), word.quote, word.raw_before(2)), ("a b", None, 3));
    }

    #[test]
    fn what_is_written_means_itself() {
        for text in ["[stack]", "$(>made)", "it's \"q\" \\ `x`", "~x", "é;#"] {
            for (begin, quote) in [("", None), ("\"", Some('"')), ("'", Some('\''))] {
                let line = format!("{begin}{}{begin}", quote_text(text, quote).unwrap());
                assert_eq!(plain(&line), [text], "{line}");
            }
        }
        assert_eq!(quote_text("~/a b", None).as_deref(), Some("~/a\\ b"));
        assert_eq!(quote_text("a!b", Some('"')), None);
    }
}
