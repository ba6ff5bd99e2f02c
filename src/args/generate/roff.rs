//! A manual page in the language of man(7).

use pmdb::report::term_and_meaning;

/// A page under construction.
pub(super) struct Page {
    text: String,
    /// Whether a heading stands just above: it begins a paragraph itself.
    is_below_heading: bool,
}

impl Page {
    pub(super) fn new(name: &str, section: u8, title: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        // Words are not hyphenated: many are commands and fields.
        let text = format!(".TH {name} {section} \"\" \"pmdb {version}\" \"{title}\"\n.nh\n");
        Page { text, is_below_heading: false }
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

    /// A line that is not filled.
    pub(super) fn line(&mut self, line: &str) -> &mut Self {
        self.is_below_heading = false;
        self.text.push_str(&format!(".nf\n{}\n.fi\n", escaped(line)));
        self
    }

    /// A word and its meaning.
    pub(super) fn row(&mut self, word: &str, meaning: &str) -> &mut Self {
        self.is_below_heading = false;
        let word = word.replace('\n', "; ");
        let (word, meaning) = (escaped(&word), escaped(meaning));
        self.text.push_str(&format!(".TP\n\\fB{word}\\fR\n{meaning}\n"));
        self
    }

    /// A word in a list of rows, without a meaning.
    fn word(&mut self, word: &str) {
        self.paragraph();
        self.text.push_str(&format!("\\fB{}\\fR\n", escaped(word)));
    }

    /// A text of the help: paragraphs, rows, and lines to type.
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
            paragraph.iter().for_each(|line| self.text.push_str(&format!("{}\n", escaped(line))));
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

    /// The whole page. Consecutive unfilled lines are joined into one block.
    pub(super) fn finish(&self) -> String {
        self.text.replace(".fi\n.nf\n", "")
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with(' ')
}

/// Text with escapes for troff, which makes typographic characters of some of ASCII: what is copied from the page must
/// be what was written.
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
            // In the C locale characters that are not ASCII are lost.
            '\u{2026}' => escaped.push_str("..."),
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
        let mut page = Page::new("X", 1, "");
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
    fn lines_to_type_stay_as_they_are() {
        assert_eq!(page("  a 'b'\n    c"), ".nf\n  a \\(aqb\\(aq\n    c\n.fi\n");
        assert_eq!(page("One.\nTwo.\n\n.Three"), "One.\nTwo.\n.PP\n\\&.Three\n");
    }
}
