//! A manual page in the language of man(7).

/// A page under construction.
pub(super) struct Page(String);

impl Page {
    pub(super) fn new(name: &str, section: u8, title: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Page(format!(".TH {name} {section} \"\" \"pmdb {version}\" \"{title}\"\n"))
    }

    pub(super) fn section(&mut self, title: &str) -> &mut Self {
        self.0.push_str(&format!(".SH {}\n", escaped(&title.to_uppercase())));
        self
    }

    pub(super) fn subsection(&mut self, title: &str) -> &mut Self {
        self.0.push_str(&format!(".SS {}\n", escaped(title)));
        self
    }

    /// A line that is not filled.
    pub(super) fn line(&mut self, line: &str) -> &mut Self {
        self.0.push_str(&format!(".nf\n{}\n.fi\n", escaped(line)));
        self
    }

    /// A word and its meaning.
    pub(super) fn row(&mut self, word: &str, meaning: &str) -> &mut Self {
        let word = word.replace('\n', "; ");
        let (word, meaning) = (escaped(&word), escaped(meaning));
        self.0.push_str(&format!(".TP\n\\fB{word}\\fR\n{meaning}\n"));
        self
    }

    /// A text of the help: paragraphs, rows, and lines to type.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        let mut paragraph = true;
        for line in text.lines() {
            let word = line.trim_start();
            if word.is_empty() {
                paragraph = true;
                continue;
            }
            match word.split_once("  ") {
                _ if !line.starts_with(' ') => {
                    if std::mem::take(&mut paragraph) {
                        self.0.push_str(".PP\n");
                    }
                    self.0.push_str(&format!("{}\n", escaped(line)));
                }
                Some((word, meaning)) => _ = self.row(word, meaning.trim_start()),
                None => {
                    self.0.push_str(".PP\n");
                    self.line(line);
                }
            }
        }
        self
    }

    /// The whole page. Consecutive unfilled lines are joined into one block.
    pub(super) fn finish(&self) -> String {
        self.0.replace(".fi\n.nf\n", "").replace(".fi\n.PP\n.nf\n", "")
    }
}

/// Text with escapes for troff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
