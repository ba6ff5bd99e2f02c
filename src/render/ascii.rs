//! Text for terminals that show only ASCII.

use super::Renderer;
use super::record::Record;
use super::text::More;
use std::io::{self, Write};

/// Another renderer's text with each character that is not ASCII replaced by one that is, so that columns stay in
/// place.
pub struct Ascii<R>(pub R);

impl<R: Renderer> Renderer for Ascii<R> {
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.0.record(record, &mut text)?;
        out.write_all(&in_ascii(&text))
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        self.0.name_columns(titles);
    }

    fn show(&mut self, more: More) {
        self.0.show(more);
    }

    fn pause(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.0.pause(&mut text)?;
        out.write_all(&in_ascii(&text))
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.0.finish(&mut text)?;
        out.write_all(&in_ascii(&text))
    }
}

fn in_ascii(text: &[u8]) -> Vec<u8> {
    if text.is_ascii() {
        text.to_vec()
    } else {
        String::from_utf8_lossy(text).chars().map(character).collect::<String>().into_bytes()
    }
}

/// The replacement of a character that pmdb itself writes; `?` for others, which come from names.
fn character(c: char) -> char {
    match c {
        '\u{2192}' => '>',
        '\u{2026}' => '~',
        '\u{2012}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2588}'..='\u{258c}' => '#',
        '\u{258d}'..='\u{258f}' => ' ',
        '\u{d7}' => 'x',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        c if c.is_ascii() => c,
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_takes_as_much_room_as_before() {
        let text = "untouched \u{2192} present\u{2026} caf\u{e9}\n";
        assert_eq!(in_ascii(text.as_bytes()), b"untouched > present~ caf?\n");
        assert_eq!(in_ascii(b"\x1b[1mplain\x1b[0m"), b"\x1b[1mplain\x1b[0m");
    }
}
