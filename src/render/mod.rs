//! Renders records as text or pictures for people, or as JSON for programs. Only this room formats output.
//!
//! All text passes one gate (`theme::printable`), so that no name or message can move a terminal's cursor.

mod ascii;
pub(crate) mod bar;
mod cell;
pub(crate) mod columns;
mod fit;
pub mod gdb;
mod json;
mod json_line;
pub(crate) mod marks;
mod record;
mod ruler;
pub(crate) mod svg;
pub(crate) mod text;
pub mod theme;
pub(crate) mod timeline;
pub mod units;
#[cfg(test)]
mod vision;

pub use crate::lang::ColorChoice;
pub use ascii::Ascii;
pub use json::{Json, JsonOfCapture, TextInJson};
pub use record::{DeclaredRecord, Record, Renderer, RowRange, Sink};
pub use svg::Svg;
pub use text::{More, RemarksMade, Text, TextColumn};
pub use theme::{Background, ColorContext, Role, Theme, cut, printable};
pub use units::zone_fault;
