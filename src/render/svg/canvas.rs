//! The picture as it grows: lines of text and rows of cells, one under the other.

use super::palette::{self, DIM, FAINT, GROUND, INK, Rgb, Scheme, hex};
use crate::render::marks::{PageShare, PictureCell};
use crate::render::theme::{columns, printable};
use crate::report::Mark;
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
/// Without the gap under it.
const FILLED_HEIGHT: usize = CELL_HEIGHT - 1;
const LETTER_SIZE: usize = 10;
/// Between entries of the legend.
const ENTRY_GAP: usize = 2 * CHARACTER / 10;

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

    /// Goes to the next line.
    pub fn new_line(&mut self) {
        self.down += LINE;
    }

    /// Goes to the next row of cells.
    pub fn new_row(&mut self) {
        self.down += CELL_HEIGHT;
    }

    /// A row of cells from `left` on. `title` gives the tooltip of cells by their numbers. Huge cells are drawn one by
    /// one, so that they can be counted.
    pub fn row(&mut self, left: usize, cells: &[PictureCell], title: impl Fn(Range<usize>) -> String) {
        let mut first = 0;
        for alike in cells.chunk_by(|one, other| one == other && !is_huge(*one)) {
            let end = first + alike.len();
            if let Some(cell) = alike.first().filter(|cell| !cell.is_blank()) {
                self.cells(left + first * CELL_WIDTH, *cell, alike.len(), &title(first..end));
            }
            first = end;
        }
        self.new_row();
    }

    /// A bar of parts side by side, each of so many units, with its tooltip.
    pub fn bar(&mut self, parts: &[(usize, Option<Rgb>, String)]) {
        let mut left = 0;
        for (width, colour, title) in parts.iter().filter(|(width, ..)| *width > 0) {
            let _ = write!(self.body, "<g><title>{}</title>", escaped(&printable(title)));
            self.rect(left, 0..CELL_HEIGHT, *width, *colour);
            self.body.push_str("</g>\n");
            left += width;
        }
        self.right = self.right.max(left);
        self.new_line();
    }

    /// An entry of the legend: a cell and its meaning, at `left` in this line, or at the start of the next one if it
    /// would pass `limit`. Returns where the next entry begins.
    pub fn legend_entry(&mut self, left: usize, limit: usize, cell: PictureCell, meaning: &str) -> usize {
        let ink = CELL_WIDTH + CHARACTER / 10;
        let left = self.begin_entry(left, limit, ink + width(columns(meaning)));
        self.cells(left, cell, 1, meaning);
        self.text(left + ink, meaning) + ENTRY_GAP
    }

    /// An entry without a cell, in the same way.
    pub fn legend_words(&mut self, left: usize, limit: usize, words: &str) -> usize {
        let left = self.begin_entry(left, limit, width(columns(words)));
        self.text_at(left, FONT_SIZE, words, Some(DIM)) + ENTRY_GAP
    }

    fn begin_entry(&mut self, left: usize, limit: usize, width: usize) -> usize {
        if left == 0 || left + width <= limit {
            return left;
        }
        self.new_line();
        0
    }

    /// Text before a row of cells, as high as their letters.
    pub fn label(&mut self, text: &str) {
        self.text_at(0, LETTER_SIZE, text, None);
    }

    /// Less important text beside a label.
    pub fn dim_label(&mut self, left: usize, text: &str) {
        self.text_at(left, LETTER_SIZE, text, Some(DIM));
    }

    /// Text in this line. Returns where it ends.
    pub fn text(&mut self, left: usize, text: &str) -> usize {
        self.text_at(left, FONT_SIZE, text, None)
    }

    fn text_at(&mut self, left: usize, base: usize, text: &str, scheme: Option<Scheme>) -> usize {
        let (x, y) = (MARGIN + left, self.down + base);
        let text = printable(text);
        let end = left + width(columns(&text));
        self.right = self.right.max(end);
        let colour = scheme.map(|scheme| format!(" {}", in_scheme(scheme))).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(self.body, r#"<text x="{x}" y="{y}"{colour} xml:space="preserve">{}</text>"#, escaped(&text));
        end
    }

    /// Cells that are alike: their letter is in the first, a star in each.
    fn cells(&mut self, left: usize, cell: PictureCell, number: usize, title: &str) {
        let width = number * CELL_WIDTH - usize::from(is_huge(cell));
        self.right = self.right.max(left + width);
        let _ = write!(self.body, "<g><title>{}</title>", escaped(&printable(title)));
        let tenths = cell.share.and_then(PageShare::tenths).map(|tenths| tenths as usize);
        let filled = match tenths {
            Some(tenths) => (tenths * FILLED_HEIGHT).div_ceil(10),
            None if cell.is_mixed => FILLED_HEIGHT.div_ceil(2),
            None => FILLED_HEIGHT,
        };
        let colour = if tenths.is_some() { Some(palette::SHARE) } else { palette::fill(cell.mark) };
        let empty = FILLED_HEIGHT - filled;
        if empty > 0 {
            self.rect(left, 0..empty, width, None);
        }
        if filled > 0 {
            self.rect(left, empty..FILLED_HEIGHT, width, colour);
        }
        let with_letters = match (tenths, cell.is_repeated) {
            (_, true) => number,
            (Some(_), false) => 0,
            (None, false) => 1,
        };
        let (letter_size, base) =
            if empty > 0 { (LETTER_SIZE - 2, LETTER_SIZE + 2) } else { (LETTER_SIZE, LETTER_SIZE) };
        let ink = match colour {
            Some(colour) if filled > 0 => format!(r#"fill="{}""#, hex(palette::ink_on(colour))),
            _ => in_scheme(DIM),
        };
        let letter = if cell.is_repeated { "*".to_owned() } else { escaped(&cell.letter().to_string()) };
        for index in 0..with_letters {
            let centre = MARGIN + left + index * CELL_WIDTH + CELL_WIDTH / 2;
            let y = self.down + base;
            let _ = write!(
                self.body,
                r#"<text x="{centre}" y="{y}" font-size="{letter_size}" text-anchor="middle" {ink}>{letter}</text>"#
            );
        }
        self.body.push_str("</g>\n");
    }

    /// A filled rectangle, its heights counted from this line; without a colour, the faint one of the scheme.
    fn rect(&mut self, left: usize, heights: Range<usize>, width: usize, colour: Option<Rgb>) {
        let colour = colour.map_or_else(|| in_scheme(FAINT), |colour| format!(r#"fill="{}""#, hex(colour)));
        let (x, y) = (MARGIN + left, self.down + heights.start);
        let height = heights.len();
        let _ = write!(self.body, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" {colour}/>"#);
    }

    /// The whole picture.
    pub fn finish(self, title: &str, description: &str) -> String {
        let (width, height) = (self.right + 2 * MARGIN, self.down + 2 * MARGIN);
        format!(
            concat!(
                r#"<?xml version="1.0" encoding="UTF-8"?>"#,
                "\n",
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title description">"#,
                "\n<title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n{style}\n",
                "<rect width=\"{width}\" height=\"{height}\" {ground}/>\n",
                r##"<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{font}" {ink} transform="translate(0 {margin})">"##,
                "\n{body}</g>\n</svg>\n"
            ),
            width = width,
            height = height,
            title = escaped(&printable(title)),
            description = escaped(&printable(description)),
            style = palette::style(),
            ground = in_scheme(GROUND),
            font = FONT_SIZE,
            ink = in_scheme(INK),
            margin = MARGIN,
            body = self.body,
        )
    }
}

/// Whether it shows a huge page and nothing else.
pub(super) fn is_huge(cell: PictureCell) -> bool {
    cell.mark == Mark::Huge && !cell.is_mixed && cell.share.is_none()
}

/// What so many columns of text take.
pub(super) fn width(columns: usize) -> usize {
    columns.saturating_mul(CHARACTER).div_ceil(10)
}

fn in_scheme(scheme: Scheme) -> String {
    format!(r#"class="{}" fill="{}""#, scheme.class, hex(scheme.light))
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
