//! Records as JSON: one object a line, stable names, nothing cut.

use super::Renderer;
use super::record::Record;
use crate::report::{EchoedText, ErrorReport, TargetReport};
use std::io::{self, Write};

/// Writes each record as one line.
#[derive(Clone, Copy, Default, Debug)]
pub struct Json;

impl Renderer for Json {
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::with_capacity(512);
        record.write_json(&mut line)?;
        line.push(b'\n');
        out.write_all(&line)
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Writes each record as one line, with the field `capture`: the target is a capture.
#[derive(Clone, Copy, Debug)]
pub struct JsonOfCapture {
    /// When it was begun, in seconds since 1970.
    pub captured: u64,
}

impl Renderer for JsonOfCapture {
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::with_capacity(512);
        record.write_json(&mut line)?;
        // Every record has a type, so that another field can follow.
        line.pop();
        writeln!(line, ",\"capture\":{}}}", self.captured)?;
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
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()> {
        if self.has_error_records && (record.is::<ErrorReport>() || record.is::<TargetReport>()) {
            self.pause(out)?;
            return Json.record(record, out);
        }
        let mut text = Vec::new();
        self.text.record(record, &mut text)?;
        in_record(&text, out)
    }

    fn pause(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.text.pause(&mut text)?;
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
    if text.is_empty() { Ok(()) } else { Json.record(&EchoedText { text }, out) }
}
