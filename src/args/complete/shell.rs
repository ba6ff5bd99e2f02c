//! The words of a line of a shell: how they are read, and how a text is quoted.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word in a line, which may end within a quote.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ShellWord {
    /// The word as it is written.
    pub(super) raw: String,
    /// The word as a program gets it.
    pub(super) plain: String,
    /// The offset in `raw` of each byte of `plain`.
    places: Vec<usize>,
    /// The quote that is open at the end.
    pub(super) quote: Option<char>,
}

impl ShellWord {
    /// Reads a word from which the shell has removed the quote at its beginning.
    pub(super) fn begun_with(quote: &str, raw: &str) -> Self {
        let mut word = ShellWord { quote: quote.chars().next_back(), ..ShellWord::default() };
        let mut rest = raw.char_indices().peekable();
        // Blanks outside of quotes belong to the word too.
        while rest.peek().is_some() {
            word.read(raw, &mut rest);
            if let Some((at, blank)) = rest.next() {
                word.push(at, blank);
            }
        }
        word.raw = raw.to_owned();
        word
    }

    /// Reads the words of a line. The last one is empty after a blank.
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

    /// Reads to the next blank outside of quotes.
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

    /// Returns the number of bytes of `plain` that begin before this offset in `raw`.
    pub(super) fn plain_before(&self, raw: usize) -> usize {
        self.places.partition_point(|place| *place < raw)
    }

    /// Returns the offset in `raw` at which this byte of `plain` begins.
    pub(super) fn raw_before(&self, plain: usize) -> usize {
        self.places.get(plain).copied().unwrap_or(self.raw.len())
    }
}

/// Returns a text as it must be written within `quote`, or without one. Returns `None` for a `!` in double quotes: the
/// shell replaces it by its history, and keeps a backslash before it.
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
            // A path in the home of the user, which the shell expands.
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
