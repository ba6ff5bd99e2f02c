//! What a filter asks, and of what.

use crate::eval::error::Result;
use crate::eval::space::Space;
use crate::kernel::PageFlags;
use crate::lang::Span;

/// What a filter asks of: a page, or a region.
pub(super) trait Answers<F> {
    fn boolean(&self, field: F) -> Option<bool>;
    fn integer(&self, field: F) -> Option<u64>;
    /// The least and the most that a number can be which [`Answers::integer`] does not know.
    fn bounds(&self, _: F) -> Option<(u64, u64)> {
        None
    }
    /// Whether a field that is text is as `is` has it.
    fn text_is(&self, field: F, is: &dyn Fn(&[u8]) -> bool) -> Option<bool>;
    fn flag(&self, flag: PageFlags) -> Option<bool>;
}

/// What making a filter ready has to know of the fields of `F`.
pub(super) trait Fields<F> {
    /// Notes that `field` is asked for, or says why it cannot be answered here.
    fn ask(&mut self, field: F, at: Span) -> Result<()>;
    /// Notes that a flag is asked for.
    fn ask_flag(&mut self, at: Span) -> Result<()>;
    /// What the numbers of `field` count in.
    fn space(&self, field: F) -> Option<Space>;
}
