//! The backing content of untouched pages of files, shared memory and the hugetlb pool, read only when asked for.

use super::super::address_space::AddressSpace;
use super::pieces::{Piece, Pieces, Words};
use crate::kernel::{AddressRange, PageMapEntry};
use crate::process::BackingRun;

/// Reads the backing content of the untouched pages of all pieces.
pub(super) fn find(pieces: &mut Pieces, space: &AddressSpace) {
    for piece in &mut pieces.all {
        piece.content = runs(space, piece, &pieces.entries);
    }
}

/// The backing runs of all untouched pages of `piece`. If they cannot be read, one run says why.
fn runs(space: &AddressSpace, piece: &Piece, entries: &[PageMapEntry]) -> Vec<BackingRun> {
    let region = piece.region.and_then(|index| space.regions().get(index));
    let Some(region) = region.filter(|viewed| space.has_content(viewed)) else {
        return Vec::new();
    };
    let untouched = match &piece.words {
        Words::Nothing => Some(piece.range),
        Words::Read { at, stride: 1, .. } => {
            let entries = entries.get(at.clone()).unwrap_or_default();
            untouched(space, piece.range, entries)
        }
        Words::Read { .. } | Words::Present | Words::Outside => None,
    };
    let Some(range) = untouched else {
        return Vec::new();
    };
    space.backing_content(region, range)
}

/// From the first to the last untouched page.
fn untouched(space: &AddressSpace, range: AddressRange, entries: &[PageMapEntry]) -> Option<AddressRange> {
    let is_empty = |entry: &PageMapEntry| !entry.is_present() && entry.swap().is_none();
    let first = entries.iter().position(is_empty)? as u64;
    let last = entries.iter().rposition(is_empty)? as u64;
    let bytes = space.page().bytes();
    let start = range.start().checked_add(first * bytes)?;
    AddressRange::new(start, range.start().checked_add((last + 1) * bytes)?)
}
