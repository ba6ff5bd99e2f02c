//! The main arena in several pieces: the break could not grow, or the library keeps the arena on huge pages
//! (`glibc.malloc.hugetlb=2`). The library then maps memory for it, and keeps no list of the pieces.
//!
//! Each piece but the break is a mapping, and so begins and ends at a page. Its chunks end with two heads, or with the
//! top. Walks start at every page, and in the break wherever a chunk may begin. The pieces that they find are the arena
//! only if their bytes are those that it has from the kernel.

use super::pieces::PieceKind;
use super::walk::{Broken, ChunkLayout, ChunkRun, FLAGS, Stretch, StretchEnd};
use super::words::{END_OF_MEMORY, ProcessWords, Words};
use super::{ArenaOutcome, ArenaState, Ended, Walk, anonymous, in_order};
use crate::budget::Budget;
use crate::inspect::memory::present;
use crate::inspect::{AddressSpace, Backing, Result};
use crate::kernel::{AddressRange, VirtualAddress};

/// A range of memory in which pieces may be.
struct Place {
    range: AddressRange,
    /// Whether it is the break: chunks may begin anywhere in it, and the arena counts memory that the program takes
    /// there.
    is_break: bool,
}

fn places(space: &AddressSpace) -> Vec<Place> {
    let breaks: Vec<AddressRange> =
        space.regions().filter(|region| region.name.as_bytes() == b"[heap]").map(|region| region.range).collect();
    let is_pool = |backing: Backing| backing == Backing::Hugetlb;
    let of_pool = space.viewed_regions().iter().filter(|viewed| is_pool(viewed.backing)).map(|viewed| &viewed.region);
    let of_pool = of_pool.filter(|region| region.permissions.write && !region.permissions.shared);
    let mut ranges: Vec<AddressRange> = of_pool.map(|region| region.range).chain(anonymous(space)).collect();
    ranges.retain(|range| !breaks.contains(range));
    let ranges = in_order(ranges);
    // Adjacent regions are one mapping whose parts have different settings.
    let joined = |ranges: &[AddressRange], is_break| {
        AddressRange::joined(ranges).into_iter().map(move |range| Place { range, is_break }).collect::<Vec<_>>()
    };
    let mut places = joined(&ranges, false);
    places.extend(joined(&breaks, true));
    places.sort_by_cached_key(|place| place.range.start());
    places
}

impl Walk {
    /// Finds the pieces of the main arena, and adds up those that are sound.
    pub(super) fn scattered(
        &mut self,
        words: &mut ProcessWords<'_>,
        layout: ChunkLayout,
        space: &AddressSpace,
    ) -> Result<Ended> {
        let ArenaState { top, system_bytes, .. } = self.state;
        let Some(head) = words.word(top + layout.pointer_bytes)? else {
            return Ok(Err(Broken::Absent(top).into()));
        };
        let Some(end) = top.checked_add(head & !FLAGS).filter(|end| *end < END_OF_MEMORY) else {
            return Ok(Err(Broken::Chunk(top).into()));
        };
        let mut bytes = 0;
        for place in places(space) {
            match self.pieces(words, layout, &place, top..end, space)? {
                Ok(found) => bytes += found,
                Err(broken) => return Ok(Err(broken.into())),
            }
        }
        // The break may begin where no chunk can.
        let rest = system_bytes.checked_sub(bytes);
        Ok(match rest {
            _ if bytes == 0 => Err(ArenaOutcome::Scattered),
            Some(rest) if rest < layout.alignment && !self.top.is_empty() => Ok(()),
            Some(missing) => Err(ArenaOutcome::Part { missing }),
            None => Err(Broken::Chunk(top).into()),
        })
    }

    /// Adds up the pieces in one place, and returns their bytes.
    fn pieces(
        &mut self,
        words: &mut ProcessWords<'_>,
        layout: ChunkLayout,
        place: &Place,
        top: std::ops::Range<u64>,
        space: &AddressSpace,
    ) -> Result<std::result::Result<u64, Broken>> {
        let step = if place.is_break { layout.alignment } else { layout.page.bytes() };
        let (mut bytes, mut last) = (0, None);
        let mut at = place.range.start().get();
        for resident in present(space.target(), place.range) {
            let resident = resident?;
            at = at.max(resident.start().get());
            while at < resident.end().get() {
                words.budget().go_on()?;
                let has_top = (at..place.range.end().get()).contains(&top.start);
                let (top, end) = if has_top { (top.start, top.end) } else { (u64::MAX, place.range.end().get()) };
                let stretch = Stretch { layout, top, end, is_of_threads: false };
                let Some(found) = piece(words, &stretch, at)? else {
                    at += step;
                    continue;
                };
                if let Some(before) = last.filter(|before| place.is_break && *before < at) {
                    bytes += at - before;
                    self.sums.foreign += at - before;
                    self.keep(before..at, PieceKind::Other, words.budget())?;
                }
                let first = layout.first_chunk(at).unwrap_or(at);
                match self.stretch(words, &stretch, first)? {
                    Err(broken) => return Ok(Err(broken)),
                    Ok(StretchEnd::Top(top)) => self.add_top(top..end, words.budget())?,
                    Ok(StretchEnd::Fence(_)) => {}
                }
                let start = VirtualAddress::new(at);
                self.parts.extend(AddressRange::new(start, VirtualAddress::new(found)));
                bytes += found - at;
                (at, last) = (found, Some(found));
            }
        }
        Ok(Ok(bytes))
    }
}

/// Returns the end of the piece that begins at `at`; `None` if no piece begins there.
fn piece(words: &mut ProcessWords<'_>, stretch: &Stretch, at: u64) -> Result<Option<u64>> {
    let Some(first) = stretch.layout.first_chunk(at) else {
        return Ok(None);
    };
    let mut runs = 0;
    let count = &mut |some: &[ChunkRun], _: &mut Budget| {
        runs += some.len();
        Ok(())
    };
    Ok(match stretch.walk(words, first, count)? {
        Ok(StretchEnd::Top(_)) => Some(stretch.end),
        Ok(StretchEnd::Fence(end)) if runs > 0 => {
            let whole = end.checked_next_multiple_of(stretch.layout.page.bytes());
            // The rest of the top may have been too small for a chunk, and then has only a head.
            whole.filter(|whole| whole - end < stretch.layout.alignment + stretch.layout.head())
        }
        _ => None,
    })
}
