//! Lines of text, one below the other.

use super::style::Style;
use crate::render::line::Line;
use crate::render::theme::Role;
use std::io::{self, Write};

/// The column of the values of labelled lines.
pub const VALUE: usize = 10;

/// Lines of text under construction. A line ends where the next one begins.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) style: Style,
    text: Vec<u8>,
    last: Option<Line>,
}

impl Lines {
    pub(crate) fn new(style: Style) -> Self {
        Lines { style, text: Vec::new(), last: None }
    }

    /// Begins a line that wraps at the width of the terminal.
    pub fn line(&mut self) -> &mut Line {
        self.text();
        let line = Line::new(self.style.theme, self.style.width);
        self.last.insert(line)
    }

    /// Begins a labelled line; it wraps under its value.
    pub fn field(&mut self, label: &str) -> &mut Line {
        let line = self.line();
        line.push(Role::Label, label).indent_at(VALUE)
    }

    /// Adds a line that is complete.
    pub fn add(&mut self, mut line: Line) {
        line.end(self.text());
    }

    /// The text so far. The last line ends here.
    pub fn text(&mut self) -> &mut Vec<u8> {
        if let Some(mut line) = self.last.take() {
            line.end(&mut self.text);
        }
        &mut self.text
    }

    /// Writes the text, and forgets it.
    pub fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let written = out.write_all(self.text());
        self.text.clear();
        written
    }
}
