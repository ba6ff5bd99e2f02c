//! Renders records as text or pictures for people, or as JSON for programs. Only this room formats output.
//!
//! All text passes one gate (`printable`), so that no name or message can move a terminal's cursor.

mod ascii;
pub(crate) mod columns;
pub mod gdb;
mod json;
mod json_line;
pub(crate) mod marks;
pub(crate) mod printable;
mod record;
pub(crate) mod svg;
pub(crate) mod text;
pub mod theme;
pub mod units;

pub use crate::lang::ColorChoice;
pub use ascii::Ascii;
pub use json::{Json, JsonOfCapture, TextInJson};
pub use printable::{cut, printable};
pub use record::{DeclaredRecord, Record, RowRange, Sink};
pub use svg::Svg;
pub use text::{RemarksMade, Text};
pub use theme::{Background, ColorContext, Role, Theme};

use std::io::{self, Write};

/// Turns records into bytes, one after the other, and keeps none.
pub trait Renderer {
    /// Writes one record. Errors are those of `out`.
    fn record(&mut self, record: &dyn Record, out: &mut dyn Write) -> io::Result<()>;

    /// Takes the titles of columns that are left out last, until the end of the command.
    fn name_columns(&mut self, _titles: &[&'static str]) {}

    /// Writes the rest at the end of a command, and is ready for the next.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;
}
