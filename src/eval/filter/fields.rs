//! The fields that a filter uses, and the values that they have for a page or region.

use crate::eval::error::Result;
use crate::eval::space::Space;
use crate::kernel::PageFlags;
use crate::lang::Span;

/// The values of fields for one page or region; `None` for what it does not have.
pub(super) trait Answers<F> {
    fn boolean(&self, _: F) -> Option<bool> {
        None
    }
    fn integer(&self, _: F) -> Option<u64> {
        None
    }
    /// The least and the greatest value that a field can have where [`Answers::integer`] does not know it.
    fn bounds(&self, _: F) -> Option<(u64, u64)> {
        None
    }
    /// Whether `is` holds for the value of a text field.
    fn text_is(&self, _field: F, _is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        None
    }
    fn flag(&self, _: PageFlags) -> Option<bool> {
        None
    }
}

/// What compiling a filter has to know of the fields `F`.
pub(super) trait Fields<F> {
    /// Records that the filter uses `field`, or fails if its value cannot be known here.
    fn ask(&mut self, field: F, at: Span) -> Result<()>;
    /// Records that the filter uses a page flag.
    fn ask_flag(&mut self, at: Span) -> Result<()>;
    /// What the numbers of `field` count in.
    fn space(&self, field: F) -> Option<Space>;
}
