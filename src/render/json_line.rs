//! The JSON of one record: an object with its type and its fields.

use super::theme::is_ascii;
use crate::kernel::text::is_plain;
use crate::report::Declared;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::ser::Formatter;
use std::io;
use std::io::Write;

/// Adds the JSON of a record.
///
/// # Errors
/// Those of the serializer.
pub fn write<T: Declared>(record: &T, line: &mut Vec<u8>) -> serde_json::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(line, Printable);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("type", T::SHAPE.name)?;
    record.write_object(&mut map)?;
    map.end()
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
