//! Floating-point numbers of the target.

use std::fmt;

/// A `float` or a `double`.
#[derive(Clone, Copy, Debug)]
pub enum Float {
    /// Of 32 bits.
    Single(f32),
    /// Of 64 bits.
    Double(f64),
}

impl Float {
    /// Its value, exactly.
    pub fn get(self) -> f64 {
        match self {
            Float::Single(value) => value.into(),
            Float::Double(value) => value,
        }
    }

    /// With the other sign.
    pub(super) fn negate(self) -> Self {
        match self {
            Float::Single(value) => Float::Single(-value),
            Float::Double(value) => Float::Double(-value),
        }
    }

    /// How many bytes it has.
    pub fn bytes(self) -> u8 {
        match self {
            Float::Single(_) => 4,
            Float::Double(_) => 8,
        }
    }

    /// Its bits, as they lie in memory.
    pub fn bits(self) -> u64 {
        match self {
            Float::Single(value) => value.to_bits().into(),
            Float::Double(value) => value.to_bits(),
        }
    }
}

/// The same size and the same bits.
impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.bits() == other.bits()
    }
}

impl Eq for Float {}

/// As few digits as tell it from its neighbours.
impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Float::Single(value) => write!(f, "{value:?}"),
            Float::Double(value) => write!(f, "{value:?}"),
        }
    }
}
