//! What a command emits.

use super::json_line;
use super::svg::Svg;
use super::text::Text;
use crate::kernel::{AddressRange, FrameRange, PageSize, VirtualAddress};
use crate::report::Declared;
use std::any::Any;
use std::fmt::Debug;

/// A record: how it is written as text, and what else the program makes of it. Its type, its fields and its JSON are
/// declared with `record!`.
pub trait Record: Erased {
    /// Writes it as text.
    fn write(&self, text: &mut Text);

    /// Draws it in a picture. Returns whether it did; otherwise its text becomes lines of the picture.
    fn draw(&self, _picture: &mut Svg) -> bool {
        false
    }

    /// The address of a row, which `$_` becomes.
    fn address(&self) -> Option<VirtualAddress> {
        None
    }

    /// What a row covers, which the variable of `foreach` becomes.
    fn range(&self) -> Option<RowRange> {
        None
    }

    /// The totals that become variables, each with the name of its variable.
    fn totals(&self, _page: PageSize) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether it may be left out where greetings are not wanted.
    fn is_greeting(&self) -> bool {
        false
    }

    /// Whether records follow for as long as the user lets them.
    fn begins_stream(&self) -> bool {
        false
    }
}

/// What a row covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowRange {
    /// Addresses.
    Addresses(AddressRange),
    /// Page frames.
    Frames(FrameRange),
}

/// What follows from the declaration of a record.
pub trait Erased: Any + Debug {
    /// Adds its JSON, without the end of the line.
    fn write_json(&self, line: &mut Vec<u8>) -> serde_json::Result<()>;

    /// A copy of it.
    fn boxed(&self) -> Box<dyn Record>;
}

impl<T: Declared + Record + Clone> Erased for T {
    fn write_json(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
        json_line::write(self, line)
    }

    fn boxed(&self) -> Box<dyn Record> {
        Box::new(self.clone())
    }
}

impl dyn Record {
    /// Whether it is a `T`.
    pub fn is<T: Record>(&self) -> bool {
        self.downcast_ref::<T>().is_some()
    }

    /// The record, if it is a `T`.
    pub fn downcast_ref<T: Record>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

#[cfg(test)]
impl dyn Record {
    /// Its JSON, as a program reads it.
    pub fn json(&self) -> serde_json::Value {
        let mut line = Vec::new();
        self.write_json(&mut line).expect("JSON");
        serde_json::from_slice(&line).expect("JSON")
    }
}
