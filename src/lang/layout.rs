//! The format, size and count behind a `/`, as in gdb; counts and times, as literals or variables.

use crate::kernel::words::worded;
use crate::lang::span::Spanned;
use std::time::Duration;

/// The format after `/`. Each part is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// How many units; for `find` the most matches.
    pub count: Option<u64>,
    /// A `-` before the count: the units before the address. Only for `x`.
    pub backward: bool,
    /// The format of each unit.
    pub format: Option<Format>,
    /// The size of a unit.
    pub unit: Option<Unit>,
}

worded! {
    /// The letter of a form, as in gdb.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Format, letter {
        /// `x`
        Hexadecimal = "x",
        /// `d`
        Signed = "d",
        /// `u`
        Unsigned = "u",
        /// `o`
        Octal = "o",
        /// `t`
        Binary = "t",
        /// `a`: an address with its symbol.
        Address = "a",
        /// `c`
        Character = "c",
        /// `z`: hexadecimal, padded with zeros to the size of the value.
        PaddedHexadecimal = "z",
        /// `s`: text that ends with a zero.
        Text = "s",
        /// `f`: the bits of a floating-point number.
        Float = "f",
    }
}

worded! {
    /// The letter of a size, as in gdb.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit, letter {
        /// `b`
        Byte = "b",
        /// `h`: two bytes.
        HalfWord = "h",
        /// `w`: four bytes.
        Word = "w",
        /// `g`: eight bytes.
        GiantWord = "g",
    }
}

impl Format {
    /// What it is, for the help.
    pub const fn doc(self) -> &'static str {
        match self {
            Format::Hexadecimal => "hexadecimal",
            Format::Signed => "decimal, signed",
            Format::Unsigned => "decimal, unsigned",
            Format::Octal => "octal",
            Format::Binary => "binary",
            Format::Address => "an address with its symbol",
            Format::Character => "a character",
            Format::PaddedHexadecimal => "hexadecimal, padded with zeros",
            Format::Text => "text up to a zero",
            Format::Float => "a floating-point number",
        }
    }
}

impl Unit {
    /// Bytes in it.
    pub const fn bytes(self) -> u8 {
        match self {
            Unit::Byte => 1,
            Unit::HalfWord => 2,
            Unit::Word => 4,
            Unit::GiantWord => 8,
        }
    }
}

/// How many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// `20`
    Number(u64),
    /// `$n`, without the `$`.
    Variable(String),
}

/// A length of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    /// `100ms`
    Duration(Duration),
    /// `$t`, without the `$`: seconds, or a text such as `100ms`.
    Variable(String),
}

/// How many rows are shown, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// `limit` or `top`.
    pub which: Which,
    /// The number of rows.
    pub rows: Spanned<Count>,
}

worded! {
    /// Which rows are shown, where not all are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Which, word {
        /// The first ones.
        First = "limit",
        /// The largest ones, the largest first.
        Largest = "top",
    }
}
