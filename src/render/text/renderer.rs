//! Renders records as text.

use super::Text;
use crate::render::{Record, Renderer};
use std::io::{self, Write};

impl Renderer for Text {
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()> {
        if record.ends_pictures() {
            self.end_pictures();
        }
        record.write(self);
        self.flush(out)
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        Text::name_columns(self, titles);
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.end_command();
        self.flush(out)
    }
}
