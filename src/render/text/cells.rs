//! Cells that several tables have.

use super::block::{missing, region_file_name, region_name, symbol_text};
use super::style::Style;
use super::words;
use crate::kernel::{Name, VirtualAddress};
use crate::render::columns::{Cell, Words};
use crate::render::theme::Role;
use crate::render::units::count;
use crate::report::{Fact, FrameWords, Reason, SymbolBrief};

/// What stands for a value that there is not.
pub fn none<'a>() -> Cell<'a> {
    Cell::of(Role::Dim, "-")
}

/// What stands for a value that is not known.
pub fn unknown<'a>() -> Cell<'a> {
    Cell::of(Role::Warn, "?")
}

/// The cell of a value that may not exist.
pub fn optional<'a, T>(value: &'a Option<T>) -> Cell<'a>
where
    &'a T: Into<Words<'a>>,
{
    value.as_ref().map_or_else(none, Cell::new)
}

/// The cell of a fact, or the word for a missing one.
pub fn fact<'a, T>(fact: &'a Fact<T>) -> Cell<'a>
where
    &'a T: Into<Words<'a>>,
{
    fact.as_ref().map_or_else(reason, Cell::new)
}

/// The word for a value that is missing for this reason.
pub fn reason<'a>(reason: &Reason) -> Cell<'a> {
    let (role, text) = missing(Some(reason));
    Cell::of(role, text)
}

/// The bytes from one address to another.
pub fn length<'a>(start: VirtualAddress, end: VirtualAddress) -> Cell<'a> {
    Cell::size(end.get().saturating_sub(start.get()))
}

/// A number of bytes; 0 is of less interest.
pub fn amount<'a>(bytes: u64) -> Cell<'a> {
    match bytes {
        0 => Cell::of(Role::Dim, Words::Size(0)),
        bytes => Cell::size(bytes),
    }
}

pub fn map_count(words: &FrameWords) -> Cell<'_> {
    match &words.map_count {
        Ok(times) if !words.map_count_average => Cell::count(*times),
        Ok(times) => Cell::new(words::map_count(count(*times), true)),
        Err(why) => reason(why),
    }
}

pub fn symbol(symbol: &Option<SymbolBrief>) -> Cell<'_> {
    match symbol {
        Some(symbol) => Cell::new(symbol_text(symbol)),
        None => none(),
    }
}

/// The name of a region that there may not be; its file name where there is less room.
pub fn region_file<'a>(style: &Style, name: Option<&'a Name>) -> Cell<'a> {
    let Some(name) = name else {
        return none();
    };
    let (role, text) = match style.width {
        Some(_) => region_file_name(name),
        None => region_name(name),
    };
    Cell::of(role, text)
}

/// The name of a region, without its folder if there is no room for that.
pub fn region<'a>(style: &Style, name: &'a Name, deleted: bool) -> Cell<'a> {
    let deleted = if deleted { " (deleted)" } else { "" };
    let (role, text) = region_name(name);
    let cell = Cell::of(role, text + deleted);
    match style.width {
        Some(_) => cell.or(region_file_name(name).1 + deleted),
        // Nothing is cut.
        None => cell,
    }
}
