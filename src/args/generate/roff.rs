//! A manual page in the macros of man(7).

use pmdb::report::term_and_meaning;

/// The date of the pages, that of the last change to their texts.
const DATE: &str = "2026-11-29";

/// A place within a word where a line may break: U+200B, the zero-width space.
const BREAK: char = '\u{200b}';

/// The most columns of a source line for which mandoc gives no warning of style.
const LONGEST: usize = 80;

/// The most columns of an unfilled line, which with its indent fits a terminal of 80 columns.
const UNFILLED: usize = 72;

/// A manual page that is being written.
pub(super) struct ManPage {
    text: String,
    /// Whether a heading directly precedes, which begins a paragraph itself.
    is_below_heading: bool,
}

impl ManPage {
    pub(super) fn new(name: &str, section: u8, title: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        // .nh and .ad l: no word is hyphenated, as many are commands and fields, and a usage gets no extra spaces.
        let text = format!(".TH {name} {section} {DATE} \"pmdb {version}\" \"{title}\"\n.nh\n.ad l\n");
        ManPage { text, is_below_heading: false }
    }

    pub(super) fn section(&mut self, title: &str) -> &mut Self {
        self.heading("SH", &title.to_uppercase())
    }

    pub(super) fn subsection(&mut self, title: &str) -> &mut Self {
        self.heading("SS", title)
    }

    fn heading(&mut self, request: &str, title: &str) -> &mut Self {
        self.text.push_str(&format!(".{request} {}\n", escaped(title)));
        self.is_below_heading = true;
        self
    }

    fn paragraph(&mut self) {
        if !std::mem::take(&mut self.is_below_heading) {
            self.text.push_str(".PP\n");
        }
    }

    /// Adds an unfilled line. A line that is too long continues in further lines with an indent.
    pub(super) fn line(&mut self, line: &str) -> &mut Self {
        self.is_below_heading = false;
        let words = line.trim_start();
        // With a wide indent, a long line would become a column of single words.
        let lead = match line.len() - words.len() {
            far if line.len() > UNFILLED => far.min(16),
            lead => lead,
        };
        let (line, indent) = (&format!("{:lead$}{words}", ""), lead + 4);
        let longest = if line.len() > UNFILLED { UNFILLED - indent } else { UNFILLED };
        for (index, part) in fold_line(line, longest, |_| true).into_iter().enumerate() {
            let part = if index == 0 { part.to_owned() } else { format!("{:indent$}{}", "", part.trim_start()) };
            self.text.push_str(&format!(".nf\n{}\n.fi\n", escaped(&part)));
        }
        self
    }

    /// Adds filled text.
    fn fill_line(&mut self, text: &str) {
        for line in fold_line(text, LONGEST, is_single) {
            let line = escaped(line.trim_start());
            // Escapes made the line longer.
            fold_line(&line, LONGEST, is_single)
                .into_iter()
                .for_each(|line| self.text.push_str(&format!("{}\n", guard_line(line.trim_start()))));
        }
    }

    /// Adds the usage of a command, filled and with a hanging indent.
    pub(super) fn usage(&mut self, usage: &str) -> &mut Self {
        for line in usage.lines() {
            self.is_below_heading = false;
            self.text.push_str(".HP 4\n");
            // A long list of words may break after each.
            self.fill_line(&line.replace('|', &format!("|{BREAK}")));
        }
        self
    }

    /// Adds questions, each with its answer indented.
    pub(super) fn answers(&mut self, text: &str) -> &mut Self {
        for line in text.lines().filter(|line| !line.is_empty()) {
            if is_indented(line) {
                self.text.push_str(".RS 4\n");
                self.fill_line(line.trim_start());
                self.text.push_str(".RE\n");
                self.is_below_heading = false;
            } else {
                self.paragraph();
                self.fill_line(line);
            }
        }
        self
    }

    /// Adds a term and its meaning.
    pub(super) fn row(&mut self, word: &str, meaning: &str) -> &mut Self {
        self.is_below_heading = false;
        let word = word.replace('\n', "; ");
        self.text.push_str(&format!(".TP\n\\fB{}\\fR\n", escaped(&word)));
        self.fill_line(meaning);
        self
    }

    /// Adds a term without a meaning to a list of rows.
    fn word(&mut self, word: &str) {
        self.paragraph();
        self.text.push_str(&format!("\\fB{}\\fR\n", escaped(word)));
    }

    /// Adds a text of the help: paragraphs, rows, and lines to type.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        let lines: Vec<&str> = text.lines().collect();
        for group in lines.chunk_by(|one, next| is_indented(one) == is_indented(next)) {
            match is_indented(group[0]) {
                false => self.paragraphs(group),
                true if group.iter().any(|line| term_and_meaning(line).is_some()) => self.rows(group),
                true => {
                    self.paragraph();
                    group.iter().for_each(|line| _ = self.line(line));
                }
            }
        }
        self
    }

    fn paragraphs(&mut self, lines: &[&str]) {
        for paragraph in lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty()) {
            self.paragraph();
            paragraph.iter().for_each(|line| self.fill_line(line));
        }
    }

    fn rows(&mut self, lines: &[&str]) {
        for line in lines {
            match term_and_meaning(line) {
                Some((term, meaning)) => _ = self.row(term, meaning),
                None => self.word(line.trim_start()),
            }
        }
    }

    /// Returns the whole page, with consecutive unfilled lines joined into one block.
    pub(super) fn finish(&self) -> String {
        self.text.replace(".fi\n.nf\n", "")
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with(' ')
}

/// Returns whether a blank is single, given the bytes around it: such a blank separates words, and not columns.
fn is_single((before, after): (u8, u8)) -> bool {
    before != b' ' && after != b' '
}

/// Splits a line into parts of at most `longest` bytes, at blanks for which `may_break` allows the bytes around. A part
/// without such a blank is longer.
fn fold_line(line: &str, longest: usize, may_break: impl Fn((u8, u8)) -> bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while rest.len() > longest {
        let is_break = |at: usize| {
            let bytes = rest.as_bytes();
            let around = || (bytes[at - 1], bytes.get(at + 1).copied().unwrap_or_default());
            bytes[at] == b' ' && may_break(around())
        };
        let text = rest.len() - rest.trim_start().len();
        let breaks = || (text + 1..rest.len()).filter(|at| is_break(*at));
        let Some(at) = breaks().rfind(|at| *at <= longest).or_else(|| breaks().next()) else {
            break;
        };
        parts.push(rest[..at].trim_end());
        rest = rest[at..].trim_start();
    }
    parts.push(rest);
    parts
}

/// Returns a source line that troff does not take for a request.
fn guard_line(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

/// Returns the text with escapes for troff, which replaces some ASCII by typographic characters: text copied from the
/// page must be what was written.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    if text.starts_with(['.', '\'']) {
        escaped.push_str("\\&");
    }
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            // Other characters than ASCII are lost in the C locale.
            '\u{2026}' => escaped.push_str("..."),
            BREAK => escaped.push_str("\\:"),
            '\u{d7}' => escaped.push_str("\\(mu"),
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> String {
        let mut page = ManPage::new("X", 1, "");
        page.section("s").text(text);
        page.finish().split_once(".SH S\n").unwrap().1.to_owned()
    }

    #[test]
    fn a_term_may_have_several_parts_and_no_meaning() {
        assert_eq!(
            page("Terms:\n\n  [a]  [b]    a region\n  no meaning\n  c           text"),
            "Terms:\n.TP\n\\fB[a]  [b]\\fR\na region\n.PP\n\\fBno meaning\\fR\n.TP\n\\fBc\\fR\ntext\n"
        );
    }

    #[test]
    fn long_lines_are_filled_or_folded() {
        let words = "word ".repeat(40);
        let text = page(words.trim_end());
        assert!(text.lines().all(|line| line.len() <= LONGEST), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
        let text = page(&format!("{} .dot", "word".repeat(19)));
        assert_eq!(text.lines().nth(1), Some("\\&.dot"));
        let mut unfilled = ManPage::new("X", 1, "");
        unfilled.line(&format!("rule = {}", "a | ".repeat(40)));
        let text = unfilled.finish();
        assert!(text.lines().skip(2).all(|line| line.len() <= UNFILLED + 8), "{text}");
    }

    #[test]
    fn lines_to_type_stay_as_they_are() {
        assert_eq!(page("  a 'b'\n    c"), ".nf\n  a \\(aqb\\(aq\n    c\n.fi\n");
        assert_eq!(page("One.\nTwo.\n\n.Three"), "One.\nTwo.\n.PP\n\\&.Three\n");
    }
}
