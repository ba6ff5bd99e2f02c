//! How memory and numbers are written out: the letters and counts behind a `/`, as in gdb.

/// What stands behind `/`: each part at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// How many; for `find` at most so many.
    pub count: Option<u64>,
    /// Whether they are those before an address: a `-` in front. Only of `x`.
    pub backward: bool,
    /// In which form.
    pub format: Option<Format>,
    /// In units of what.
    pub unit: Option<Unit>,
}

/// The letter of a form, as in gdb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `x`
    Hexadecimal,
    /// `d`
    Signed,
    /// `u`
    Unsigned,
    /// `o`
    Octal,
    /// `t`
    Binary,
    /// `a`: an address with its symbol.
    Address,
    /// `c`
    Character,
    /// `z`: hexadecimal, padded with zeros to the size of the value.
    PaddedHexadecimal,
    /// `s`: text that ends with a zero.
    Text,
    /// `f`: the bits of a floating-point number.
    Float,
}

/// The letter of a size, as in gdb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `b`
    Byte,
    /// `h`: two bytes.
    HalfWord,
    /// `w`: four bytes.
    Word,
    /// `g`: eight bytes.
    GiantWord,
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
