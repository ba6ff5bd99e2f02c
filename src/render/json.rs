//! Records as JSON: one object a line, stable names, nothing cut.

use super::Renderer;
use super::printable::is_ascii;
use crate::kernel::name::is_plain;
use crate::report::{Record, Text};
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Writes each record as one line.
#[derive(Clone, Copy, Default, Debug)]
pub struct Json;

impl Renderer for Json {
    fn record(&mut self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::with_capacity(512);
        let mut serializer = serde_json::Serializer::with_formatter(&mut line, Printable);
        record.serialize(&mut serializer).map_err(io::Error::from)?;
        line.push(b'\n');
        out.write_all(&line)
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Text for people in the `text` records of a program.
pub struct TextInJson<R> {
    /// Makes the text.
    pub text: R,
    /// Whether errors, and what happened to the target, stay records of their own.
    pub has_error_records: bool,
}

impl<R: Renderer> Renderer for TextInJson<R> {
    fn record(&mut self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        if self.has_error_records && matches!(record, Record::Error(_) | Record::Target(_)) {
            return Json.record(record, out);
        }
        let mut text = Vec::new();
        self.text.record(record, &mut text)?;
        in_record(&text, out)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.text.finish(&mut text)?;
        in_record(&text, out)
    }
}

fn in_record(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let text = String::from_utf8_lossy(text).into_owned();
    if text.is_empty() { Ok(()) } else { Json.record(&Record::Text(Text { text }), out) }
}

/// Escapes characters that are valid in JSON but dangerous on a terminal, as `\uXXXX`: DEL, the C1 control characters
/// (one of which begins terminal commands), and those that change the direction of text.
struct Printable;

impl Formatter for Printable {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if is_ascii(fragment) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(|c| !is_plain(c)) {
            let (plain, tail) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut chars = tail.chars();
            if let Some(hidden) = chars.next() {
                for unit in hidden.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}
