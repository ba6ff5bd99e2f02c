//! `find … in heap live`: the chunks in use, and why there are none.

use super::super::floor::{Context, Error};
use super::super::heap::why_incomplete;
use crate::inspect::AddressSpace;
use crate::inspect::heap::{LiveChunks, require_memory};
use crate::process::Target;

/// The chunks in use.
pub(super) fn chunks(target: &Target, context: &Context) -> Result<LiveChunks, Error> {
    // What leads to the arenas may be outside of the range that is searched.
    let space = AddressSpace::of(target)?;
    require_memory(&space)?;
    let chunks = LiveChunks::of(&space, &context.sink.budget())?;
    if !chunks.is_unknown() {
        return Ok(chunks);
    }
    let message = match (chunks.incomplete(), chunks.unsearched()) {
        (Some(outcome), _) => format!("no heap was read to its end: {}", why_incomplete(outcome)),
        (None, 0) => "no heap of glibc was found".to_owned(),
        (None, _) => "no heap of glibc was found: variables are in swap, or too many".to_owned(),
    };
    Err(Error::refused(message, "`heap` shows what is known of it; without `in heap live` all memory is searched"))
}
