//! The picture as it grows: lines of text and rows of cells, one under the other.

use crate::render::marks::PictureCell;
use crate::render::theme::{Role, columns, printable};
use std::fmt::Write;
use std::ops::Range;

/// The margin on all sides.
const MARGIN: usize = 16;
/// From one line of text to the next.
const LINE: usize = 18;
/// The width of a character in tenths of a unit: 0.6 of the font size.
const CHARACTER: usize = 72;
const FONT_SIZE: usize = 12;
pub(super) const CELL_WIDTH: usize = 8;
const CELL_HEIGHT: usize = 14;
const LETTER_SIZE: usize = 10;

/// What has been drawn so far.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
    /// Where the next line begins.
    down: usize,
    /// The right end of the longest line.
    right: usize,
}

impl Canvas {
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// A line of text.
    pub fn line(&mut self, text: &str) {
        self.text(0, text);
        self.down += LINE;
    }

    /// Room between two things.
    pub fn gap(&mut self) {
        self.down += LINE / 2;
    }

    /// A row of cells from `left` on. `title` gives the tooltip of cells by their numbers.
    pub fn row(&mut self, left: usize, cells: &[PictureCell], title: impl Fn(Range<usize>) -> String) {
        let mut first = 0;
        for alike in cells.chunk_by(|one, other| one == other) {
            let behind = first + alike.len();
            if let Some(cell) = alike.first().filter(|cell| !cell.is_blank()) {
                let title = title(first..behind);
                self.cells(left + first * CELL_WIDTH, *cell, alike.len(), &title);
            }
            first = behind;
        }
        self.down += CELL_HEIGHT;
    }

    /// An entry of the legend: a cell and its meaning, at `left` in this line, or at the start of the next one if it
    /// would pass `limit`. Returns where the next entry begins.
    pub fn legend_entry(&mut self, left: usize, limit: usize, cell: PictureCell, meaning: &str) -> usize {
        let ink = CELL_WIDTH + CHARACTER / 10;
        let left = if left + ink + width(columns(meaning)) > limit {
            self.new_line();
            0
        } else {
            left
        };
        self.cells(left, cell, 1, meaning);
        self.text(left + ink, meaning) + 2 * CHARACTER / 10
    }

    /// Goes to the next line.
    pub fn new_line(&mut self) {
        self.down += LINE;
    }

    /// Text before a row of cells, as high as their letters.
    pub fn label(&mut self, text: &str) {
        self.text_at(0, LETTER_SIZE, text);
    }

    /// Text in this line. Returns where it ends.
    pub fn text(&mut self, left: usize, text: &str) -> usize {
        self.text_at(left, FONT_SIZE, text)
    }

    fn text_at(&mut self, left: usize, base: usize, text: &str) -> usize {
        let (x, y) = (MARGIN + left, self.down + base);
        let text = printable(text);
        let end = left + width(columns(&text));
        self.right = self.right.max(end);
        // Writing to a string does not fail.
        let _ = writeln!(self.body, r#"<text x="{x}" y="{y}" xml:space="preserve">{}</text>"#, escaped(&text));
        end
    }

    fn cells(&mut self, left: usize, cell: PictureCell, number: usize, title: &str) {
        let (x, y) = (MARGIN + left, self.down);
        let width = number * CELL_WIDTH;
        self.right = self.right.max(left + width);
        let (ground, ink) = colours(cell.role());
        let mut centres = String::new();
        for index in 0..number {
            let _ = write!(centres, "{} ", x + index * CELL_WIDTH + CELL_WIDTH.div_ceil(2));
        }
        let letters = cell.letter().to_string().repeat(number);
        let _ = writeln!(
            self.body,
            concat!(
                r#"<g><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>"#,
                r#"<text x="{}" y="{}" font-size="{}" text-anchor="middle" fill="{}">{}</text></g>"#
            ),
            escaped(&printable(title)),
            x,
            y,
            width,
            CELL_HEIGHT - 1,
            ground,
            centres.trim_end(),
            y + LETTER_SIZE,
            LETTER_SIZE,
            ink,
            escaped(&letters),
        );
    }

    /// The whole picture.
    pub fn finish(self, title: &str) -> String {
        let (width, height) = (self.right + 2 * MARGIN, self.down + 2 * MARGIN);
        format!(
            concat!(
                r#"<?xml version="1.0" encoding="UTF-8"?>"#,
                "\n",
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#,
                "\n<title>{title}</title>\n",
                "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
                r##"<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{font}" fill="#1f2328" transform="translate(0 {margin})">"##,
                "\n{body}</g>\n</svg>\n"
            ),
            width = width,
            height = height,
            title = escaped(&printable(title)),
            font = FONT_SIZE,
            margin = MARGIN,
            body = self.body,
        )
    }
}

/// What so many columns of text take.
pub(super) fn width(columns: usize) -> usize {
    columns.saturating_mul(CHARACTER).div_ceil(10)
}

/// The colour of a cell and of its letter, which can be read on it.
fn colours(role: Role) -> (String, String) {
    let hex = |[red, green, blue]: [u8; 3]| format!("#{red:02x}{green:02x}{blue:02x}");
    let colour = role.rgb_on_white().map_or("#1f2328".into(), hex);
    match role {
        Role::Dim => ("#f6f6f6".into(), colour),
        _ => (colour, "#ffffff".into()),
    }
}

/// Printable text as XML has it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}
