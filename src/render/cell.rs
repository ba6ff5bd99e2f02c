//! The cells of a table.

use super::theme::Role;
use super::units::{Number, sampled_size};
use crate::kernel::{FrameNumber, Name, PhysicalAddress, VirtualAddress};
use std::borrow::Cow;

/// A cell: its text, and its role if it is not the column's.
#[derive(Debug)]
pub struct Cell<'a> {
    pub(super) words: CellText<'a>,
    pub(super) short: Option<Cow<'a, str>>,
    pub(super) role: Option<Role>,
    /// Whether its shortest text has letters for flags.
    pub(super) has_letters: bool,
}

/// The text of a cell. Numbers become text only in the line itself, because long tables have very many.
#[derive(Debug)]
pub enum CellText<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An address or a frame number.
    Hexadecimal(u64),
    /// A number of bytes.
    Size(u64),
    /// A number of things.
    Count(u64),
    /// A bar as long as this part of the largest one in its column. It is drawn where all rows are known.
    Bar(u64),
}

impl CellText<'_> {
    /// Its text; nothing for a bar, whose length other rows decide.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            CellText::Text(text) => Cow::Borrowed(text),
            CellText::Hexadecimal(number) => Number::hexadecimal(*number).as_str().to_owned().into(),
            CellText::Size(bytes) => Number::size(*bytes).as_str().to_owned().into(),
            CellText::Count(number) => Number::count(*number).as_str().to_owned().into(),
            CellText::Bar(_) => Cow::Borrowed(""),
        }
    }

    /// The same, without what it was made of.
    fn into_owned(self) -> CellText<'static> {
        match self {
            CellText::Text(text) => CellText::Text(text.into_owned().into()),
            CellText::Hexadecimal(number) => CellText::Hexadecimal(number),
            CellText::Size(bytes) => CellText::Size(bytes),
            CellText::Count(number) => CellText::Count(number),
            CellText::Bar(part) => CellText::Bar(part),
        }
    }
}

impl<'a> Cell<'a> {
    /// In the column's own role.
    pub fn new(words: impl Into<CellText<'a>>) -> Self {
        Cell { words: words.into(), short: None, role: None, has_letters: false }
    }
    /// A number of things, as [`count`](super::units::count) writes it.
    pub fn count(number: u64) -> Self {
        Cell::new(CellText::Count(number))
    }
    /// A number of bytes, as [`size`](super::units::size) writes it.
    pub fn size(bytes: u64) -> Self {
        Cell::new(CellText::Size(bytes))
    }
    /// In a row that is written before the next is known: its sizes have the unit that rows like it have.
    pub fn sampled(self) -> Self {
        match self.words {
            CellText::Size(bytes) => Cell { words: sampled_size(bytes).into(), ..self },
            _ => self,
        }
    }
    /// In another role.
    pub fn of(role: Role, words: impl Into<CellText<'a>>) -> Self {
        Cell { role: Some(role), ..Cell::new(words) }
    }
    /// With a shorter text for too little room, in a column that may be cut or in the last one.
    pub fn or(self, short: impl Into<Cow<'a, str>>) -> Self {
        Cell { short: Some(short.into()), ..self }
    }
    /// Whose shortest text has letters for flags.
    pub fn letters(self) -> Self {
        Cell { has_letters: true, ..self }
    }
    /// The same, without the record that it was made of.
    pub(crate) fn into_owned(self) -> Cell<'static> {
        let Cell { words, short, role, has_letters } = self;
        Cell { words: words.into_owned(), short: short.map(|short| short.into_owned().into()), role, has_letters }
    }
}

macro_rules! words {
    ($($type:ty: $value:ident => $words:expr),+ $(,)?) => {
        $(impl<'a> From<$type> for CellText<'a> {
            fn from($value: $type) -> Self {
                $words
            }
        })+
    };
}

words!(
    &'a str: text => CellText::Text(Cow::Borrowed(text)),
    &'a String: text => CellText::Text(Cow::Borrowed(text)),
    String: text => CellText::Text(Cow::Owned(text)),
    Cow<'a, str>: text => CellText::Text(text),
    &'a Name: name => CellText::Text(name.escaped()),
    &'a VirtualAddress: address => CellText::Hexadecimal(address.get()),
    &'a PhysicalAddress: address => CellText::Hexadecimal(address.get()),
    &'a FrameNumber: frame => CellText::Hexadecimal(frame.get()),
    &'a u32: number => CellText::Text(number.to_string().into()),
);
