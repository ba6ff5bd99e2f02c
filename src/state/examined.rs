//! What `x` showed last: the default form and size of the next `x`, and where it continues.

use crate::kernel::VirtualAddress;
use crate::lang::{Format, Layout, Unit};

/// What lasts from one `x` to the next, as in gdb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Examined {
    /// The form of the last `x`.
    pub format: Format,
    /// Its size.
    pub unit: Unit,
    /// How many it showed: the next shows as many if it has neither a format nor an address.
    pub count: u64,
    /// The address after the last that was shown.
    pub next: Option<VirtualAddress>,
}

impl Default for Examined {
    fn default() -> Self {
        Examined { format: Format::Hexadecimal, unit: Unit::Word, count: 1, next: None }
    }
}

impl Examined {
    /// The form and size for `layout`. Parts that it leaves out are as in the last `x`, or the default of the form.
    /// `pointer` is the size of an address of the target. `goes_on` says that it begins where the last one ended, so
    /// that a text keeps its character size.
    pub fn settle(&mut self, layout: Layout, pointer: Unit, goes_on: bool) -> (Format, Unit) {
        let format = layout.format.unwrap_or(self.format);
        let last = match (self.format, layout.format) {
            (Format::Text, None) if goes_on => self.unit,
            // The size of characters holds for one text only, as in gdb.
            (Format::Text, _) => Unit::Byte,
            _ => self.unit,
        };
        let unit = layout.unit.unwrap_or(match (layout.format, last) {
            (None, unit) => unit,
            (Some(Format::Address), _) => pointer,
            (Some(Format::Float), unit @ (Unit::Word | Unit::GiantWord)) => unit,
            (Some(Format::Float), _) => Unit::GiantWord,
            (Some(Format::Character | Format::Text), _) => Unit::Byte,
            (Some(_), unit) => unit,
        });
        // No text has characters of eight bytes.
        let unit = match (format, unit) {
            (Format::Text, Unit::GiantWord) => Unit::Byte,
            (_, unit) => unit,
        };
        (self.format, self.unit) = (format, unit);
        (format, unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form and size of each of these in turn, as gdb 13 has them.
    #[test]
    fn omitted_parts_are_as_in_gdb() {
        use Format::*;
        use Unit::*;
        let mut examined = Examined::default();
        for (format, unit, expected) in [
            (None, None, (Hexadecimal, Word)),
            (Some(Signed), None, (Signed, Word)),
            (None, Some(GiantWord), (Signed, GiantWord)),
            (Some(Text), None, (Text, Byte)),
            (None, None, (Text, Byte)),
            (Some(Hexadecimal), None, (Hexadecimal, Byte)),
            (Some(Address), None, (Address, GiantWord)),
            (Some(Hexadecimal), None, (Hexadecimal, GiantWord)),
            (Some(Character), None, (Character, Byte)),
            (Some(Float), None, (Float, GiantWord)),
            (Some(Float), Some(Word), (Float, Word)),
            (Some(Float), None, (Float, Word)),
            (Some(Text), Some(GiantWord), (Text, Byte)),
            (Some(Text), Some(HalfWord), (Text, HalfWord)),
            // The size of characters does not last.
            (None, None, (Text, Byte)),
            (Some(Text), Some(Word), (Text, Word)),
            (Some(Hexadecimal), None, (Hexadecimal, Byte)),
        ] {
            let layout = Layout { format, unit, ..Layout::default() };
            assert_eq!(examined.settle(layout, GiantWord, false), expected, "{layout:?}");
        }
        let address = Layout { format: Some(Address), ..Layout::default() };
        assert_eq!(examined.settle(address, Word, false), (Address, Word));
    }
}
