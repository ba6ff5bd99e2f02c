//! The memory in chunks in use, for searches. Questions are asked in address order, in which the pieces of each arena
//! are stored.

use super::kept::Kept;
use super::piece_words::{PieceWords, split};
use super::pieces::PieceKind;
use super::{ArenaOutcome, HeapSearch, MappedChunks, anonymous, in_order};
use crate::budget::Budget;
use crate::inspect::{AddressSpace, Result};
use crate::kernel::AddressRange;

/// The chunks in use of all arenas, as they were at one moment.
#[derive(Clone, Debug, Default)]
pub struct LiveChunks {
    /// The bytes of a pointer. A chunk begins with two, and in use it also has the first of the two that begin the
    /// next.
    pointer_bytes: u64,
    arenas: Vec<Pieces>,
    mapped: Vec<AddressRange>,
    /// Memory that may belong to an arena that was not walked to its end.
    unclear: Vec<AddressRange>,
    /// The outcome of the first walk that did not reach the end of its arena.
    incomplete: Option<ArenaOutcome>,
    unsearched: u64,
}

impl LiveChunks {
    /// Walks all arenas, and stores their chunks in use.
    ///
    /// # Errors
    /// As [`HeapSearch::new`].
    pub fn of(space: &AddressSpace, budget: &Budget) -> Result<LiveChunks> {
        let mut search = HeapSearch::new(space, budget.clone())?;
        search.kept = Kept::Words(PieceWords::default());
        let pointer_bytes = u64::from(space.target().process.layout().pointer_bytes);
        let mut live = LiveChunks { pointer_bytes, unsearched: search.unsearched(), ..LiveChunks::default() };
        let mut parts = Vec::new();
        while let Some((_, found)) = search.found.next() {
            match search.walk_again(&found)?.map(|(walk, _)| walk) {
                Some(walk) if walk.outcome == ArenaOutcome::Complete => {
                    parts.extend(walk.parts);
                    if let Kept::Words(words) = walk.kept {
                        live.arenas.push(Pieces::of(words));
                    }
                }
                walk => {
                    let outcome = walk.map_or(ArenaOutcome::Scattered, |walk| walk.outcome);
                    live.incomplete.get_or_insert(outcome);
                }
            }
        }
        live.mapped = in_order(MappedChunks::of(space, budget.clone())?.ranges);
        if live.incomplete.is_some() {
            parts.extend(&live.mapped);
            let known = in_order(parts);
            live.unclear = anonymous(space).iter().flat_map(|range| range.outside(&known)).collect();
        }
        Ok(live)
    }

    /// Returns whether no arena was walked to its end.
    pub fn is_unknown(&self) -> bool {
        self.arenas.is_empty()
    }

    /// Returns the outcome of the first walk that did not reach the end of its arena.
    pub fn incomplete(&self) -> Option<ArenaOutcome> {
        self.incomplete
    }

    /// Returns the bytes of variables that were not searched for an arena, if none was found.
    pub fn unsearched(&self) -> u64 {
        self.unsearched
    }

    /// Returns whether `range` lies in one chunk in use, without its head; `None` if that is unknown.
    pub(in crate::inspect) fn holds(&mut self, range: AddressRange) -> Option<bool> {
        let (w, start, end) = (self.pointer_bytes, range.start().get(), range.end().get());
        let Some(in_chunk) = start.checked_sub(2 * w) else {
            return Some(false);
        };
        // A chunk in use has the first word of the next chunk, too.
        let has = |piece: &Piece| end <= piece.end + w;
        if let Some(piece) = self.arenas.iter_mut().find_map(|arena| arena.at(in_chunk)) {
            return Some(piece.is_in_use && has(&piece));
        }
        let is_in = |ranges: &[AddressRange], at: u64| {
            let next = ranges.partition_point(|one| one.end().get() <= at);
            ranges.get(next).is_some_and(|one| one.start().get() <= at && end <= one.end().get())
        };
        match range.within(&self.unclear).next() {
            Some(_) => None,
            // After the last one there is nothing of it.
            None => Some(is_in(&self.mapped, in_chunk)),
        }
    }
}

/// A piece of an arena.
struct Piece {
    end: u64,
    is_in_use: bool,
}

/// The pieces of one arena, and the piece that was last returned.
#[derive(Clone, Debug)]
struct Pieces {
    words: PieceWords,
    number: usize,
    start: u64,
    end: u64,
}

impl Pieces {
    fn of(words: PieceWords) -> Self {
        let end = words.words.iter().fold(words.first, |at, word| at.saturating_add(split(*word).0));
        Pieces { start: words.first, end, number: 0, words }
    }

    /// Returns the piece at an address. Calls in address order visit each piece once.
    fn at(&mut self, address: u64) -> Option<Piece> {
        if address < self.words.first || address >= self.end {
            return None;
        }
        if address < self.start {
            (self.number, self.start) = (0, self.words.first);
        }
        loop {
            let (bytes, kind) = split(*self.words.words.get(self.number)?);
            let end = self.start.saturating_add(bytes);
            if address < end {
                return kind.map(|kind| Piece { end, is_in_use: kind == PieceKind::InUse });
            }
            (self.number, self.start) = (self.number + 1, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::heap::HeapPiece;
    use crate::kernel::VirtualAddress;

    fn live(pointer_bytes: u64, pieces: &[(u64, u64, PieceKind)]) -> LiveChunks {
        let mut words = PieceWords::default();
        for &(start, end, kind) in pieces {
            words.add(HeapPiece::new(start, end, kind), &mut Budget::unlimited()).expect("no limit");
        }
        LiveChunks { pointer_bytes, arenas: vec![Pieces::of(words)], ..LiveChunks::default() }
    }

    fn range(start: u64, bytes: u64) -> AddressRange {
        AddressRange::of_length(VirtualAddress::new(start), bytes).expect("a range")
    }

    #[test]
    fn what_a_chunk_in_use_has_begins_after_its_head_and_ends_in_the_next_one() {
        use PieceKind::{Free, InUse, Other, Top};
        let mut live = live(
            8,
            &[
                (0x1000, 0x1040, Other),
                (0x1040, 0x1060, InUse),
                (0x1060, 0x10a0, InUse),
                (0x10a0, 0x2000, Free),
                (0x2000, 0x2020, InUse),
                (0x2020, 0x3000, Top),
                // Another part of the arena.
                (0x8000, 0x8030, InUse),
                (0x8030, 0x8040, Other),
            ],
        );
        let spans = [0x1050..0x1068, 0x1070..0x10a8, 0x2010..0x2028, 0x8010..0x8038];
        // The addresses in order, and then in reverse.
        for round in 0..2 {
            for at in 0xff0..0x8060 {
                for bytes in [1, 8, 20] {
                    let is_in = spans.iter().any(|span| span.start <= at && at + bytes <= span.end);
                    assert_eq!(live.holds(range(at, bytes)), Some(is_in), "{at:#x} {bytes} {round}");
                }
            }
        }
        live.mapped = vec![range(0x10_0000, 0x2_1000)];
        live.unclear = vec![range(0x20_0000, 0x1000)];
        for (at, bytes, is_in) in [
            (0x10_0008, 8, Some(false)),
            (0x10_0010, 8, Some(true)),
            (0x12_0ff8, 8, Some(true)),
            (0x12_0ff8, 9, Some(false)),
            (0x12_1000, 8, Some(false)),
            (0x1f_fff8, 9, None),
            (0x20_0100, 8, None),
            (0x1050, 8, Some(true)),
            (0, 8, Some(false)),
        ] {
            assert_eq!(live.holds(range(at, bytes)), is_in, "{at:#x}");
        }
    }

    #[test]
    fn words_of_32_bits_have_smaller_heads() {
        let mut live = live(4, &[(0x1008, 0x1018, PieceKind::InUse), (0x1018, 0x2000, PieceKind::Free)]);
        for at in 0x1000..0x1040 {
            assert_eq!(live.holds(range(at, 4)), Some((0x1010..=0x1018).contains(&at)), "{at:#x}");
        }
    }
}
