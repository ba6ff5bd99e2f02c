//! Heaps in a capture without memory: written from walks, and read back with the results of those walks.

use super::arena::FoundArena;
use super::kept::Kept;
use super::piece_words::{PieceWords, split};
use super::pieces::PieceKind;
use super::recorded::{RecordedArena, RecordedHeaps, damaged};
use super::state::ArenaState;
use super::walk::{ChunkLayout, ChunkRun};
use super::{ArenaOutcome, HeapSearch, MappedChunks, Sums, Walk};
use crate::budget::Budget;
use crate::inspect::{AddressSpace, Result};
use crate::kernel::{AddressRange, VirtualAddress};

/// The outcomes of walks, each at the index that stands for it in a capture.
const ENDED: [fn(u64) -> ArenaOutcome; 5] = [
    |_| ArenaOutcome::Complete,
    |missing| ArenaOutcome::Part { missing },
    |at| ArenaOutcome::Broken(VirtualAddress::new(at)),
    |at| ArenaOutcome::Absent(VirtualAddress::new(at)),
    |_| ArenaOutcome::Scattered,
];

fn ended(outcome: ArenaOutcome) -> [u64; 2] {
    match outcome {
        ArenaOutcome::Complete => [0, 0],
        ArenaOutcome::Part { missing } => [1, missing],
        ArenaOutcome::Broken(at) => [2, at.get()],
        ArenaOutcome::Absent(at) => [3, at.get()],
        ArenaOutcome::Scattered => [4, 0],
    }
}

/// The counts of the heaps that were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecordedCounts {
    /// The number of chunks whose sizes were written.
    pub chunks: u64,
    /// The number of arenas.
    pub arenas: u64,
    /// The number of arenas that were not walked to their ends: no size of their chunks is written.
    pub incomplete: u64,
}

/// Walks the heaps, and passes their words to `write`: no contents of memory, only the sizes of chunks that were
/// proved.
///
/// # Errors
/// As [`HeapSearch::new`], and those of `write`.
pub fn record(
    space: &AddressSpace,
    budget: &Budget,
    write: &mut dyn FnMut(&[u64]) -> crate::process::Result<()>,
) -> Result<RecordedCounts> {
    let ends = |range: &AddressRange| [range.start().get(), range.end().get()];
    let list = |ranges: &[AddressRange]| {
        let ends: Vec<u64> = ranges.iter().flat_map(ends).collect();
        [vec![ranges.len() as u64], ends].concat()
    };
    let mut search = HeapSearch::new(space, budget.clone())?;
    search.kept = Kept::Words(PieceWords::default());
    let mapped = MappedChunks::of(space, budget.clone())?;
    let arenas: Vec<u64> = search.found.clone().map(|(_, found)| found.start).collect();
    write(&[search.unsearched()])?;
    write(&list(&mapped.ranges))?;
    write(&[arenas.len() as u64])?;
    write(&arenas)?;
    let mut counts = RecordedCounts { chunks: mapped.sum.chunks, arenas: arenas.len() as u64, incomplete: 0 };
    while let Some((_, found)) = search.found.next() {
        let walk = search.walk_again(&found)?.map(|(walk, _)| walk);
        let outcome = walk.as_ref().map_or(ArenaOutcome::Scattered, |walk| walk.outcome);
        let system_bytes = walk.as_ref().map_or(0, |walk| walk.state.system_bytes);
        let parts = walk.as_ref().map_or(Vec::new(), |walk| walk.parts.clone());
        let pieces = match walk.map(|walk| walk.kept) {
            Some(Kept::Words(pieces)) if outcome == ArenaOutcome::Complete => pieces,
            _ => PieceWords::default(),
        };
        write(&[system_bytes])?;
        write(&ended(outcome))?;
        write(&list(&parts))?;
        write(&[pieces.first, pieces.words.len() as u64])?;
        write(&pieces.words)?;
        let is_chunk = |word: &&u64| matches!(split(**word).1, Some(PieceKind::InUse | PieceKind::Free));
        counts.chunks += pieces.words.iter().filter(is_chunk).count() as u64;
        counts.incomplete += u64::from(outcome != ArenaOutcome::Complete);
    }
    Ok(counts)
}

impl Walk {
    /// Reads the next arena of a capture, with the result of its walk. A complete arena has its chunks in its parts,
    /// and as many bytes as it has from the kernel.
    pub(super) fn recorded(
        heaps: &mut RecordedHeaps<'_>,
        found: &FoundArena,
        layout: ChunkLayout,
        kept: Kept,
        budget: &mut Budget,
    ) -> Result<Walk> {
        let RecordedArena { system_bytes, ended: [ended, number], parts } = heaps.arena(budget)?;
        let outcome = usize::try_from(ended).ok().and_then(|ended| ENDED.get(ended)).ok_or_else(damaged)?(number);
        let state = ArenaState { system_bytes, ..found.state };
        let mut walk = Walk { state, parts, top: 0..0, sums: Sums::default(), kept, outcome };
        heaps.pieces(budget, &mut |piece, budget| {
            let (start, size) = (piece.start, piece.bytes);
            let is_in_use = piece.kind == PieceKind::InUse;
            let part = walk.parts.get(walk.parts.partition_point(|part| part.end() <= start));
            if piece.kind != PieceKind::Other
                && !part.is_some_and(|part| part.start() <= start && piece.end() <= part.end())
            {
                return Err(damaged());
            }
            match piece.kind {
                PieceKind::Top => return walk.add_top(start.get()..piece.end().get(), budget),
                // In other arenas these are the heads of heaps.
                PieceKind::Other if found.is_main => walk.sums.foreign += size,
                PieceKind::Other => {}
                _ => walk.sums.add(ChunkRun::one(start.get(), size, is_in_use), layout, budget)?,
            }
            Ok(walk.kept.add(piece, budget)?)
        })?;
        let own = walk.parts.iter().map(|part| part.len()).sum();
        // The break may begin where no chunk can.
        let is_whole = |missing| missing < layout.alignment + walk.sums.foreign;
        if outcome == ArenaOutcome::Complete && !system_bytes.checked_sub(own).is_some_and(is_whole) {
            return Err(damaged());
        }
        Ok(walk)
    }
}
