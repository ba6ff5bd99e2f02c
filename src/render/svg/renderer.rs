//! Renders records as a picture.

use super::Svg;
use crate::render::timeline::Timeline;
use crate::render::{Record, Renderer};
use std::io::{self, Write};

impl Renderer for Svg {
    fn record(&mut self, record: &dyn Record, _out: &mut dyn Write) -> io::Result<()> {
        if self.canvas.is_empty() {
            let title = self.title.clone();
            self.canvas.line(&title);
            self.canvas.gap();
        }
        if record.ends_pictures() {
            self.end_pictures();
        }
        if record.draw(self) {
            return Ok(());
        }
        let mut text = Vec::new();
        self.text.record(record, &mut text)?;
        self.lines(&text);
        Ok(())
    }

    /// Writes nothing for a command without records.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.end_pictures();
        self.timeline = Timeline::default();
        let mut text = Vec::new();
        self.text.finish(&mut text)?;
        self.lines(&text);
        let canvas = std::mem::take(&mut self.canvas);
        if canvas.is_empty() {
            Ok(())
        } else {
            out.write_all(canvas.finish(&self.title, &self.description.join(" ")).as_bytes())
        }
    }
}
