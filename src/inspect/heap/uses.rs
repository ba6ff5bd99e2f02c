//! The use of each page for the heaps of a process: whether it holds chunks in use or free ones.

use super::pieces::{HeapPiece, PieceKind};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::words::worded;
use crate::kernel::{AddressRange, PageSize, VirtualAddress};

worded! {
    /// The use of a page for the heaps of glibc.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum HeapUse, word {
        /// Only free chunks: nothing in it is in use.
        Free = "free",
        /// Only chunks in use, or heads of the allocator.
        Live = "live",
        /// Chunks in use beside free ones, or beside the top.
        Both = "both",
        /// Only the free end of an arena, from which chunks are cut.
        Top = "top",
        /// The page is in no heap of glibc.
        None = "none",
        /// The page may belong to an arena that was not walked to its end.
        Unknown = "unknown",
    }
}

/// The bits of pieces in a page.
const LIVE: u8 = 1;
const FREE: u8 = 2;
const TOP: u8 = 4;

/// Returns the bit of a kind of piece. Heads of the allocator, and memory that the program got from `sbrk`, count as in
/// use.
fn bit(kind: PieceKind) -> u8 {
    match kind {
        PieceKind::InUse | PieceKind::Other => LIVE,
        PieceKind::Free => FREE,
        PieceKind::Top => TOP,
    }
}

/// Successive pages with the same use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    start: u64,
    end: u64,
    is: HeapUse,
}

/// The pages of the heaps of a process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::inspect) struct HeapUses {
    runs: Vec<Run>,
}

impl HeapUses {
    /// Returns the use of the page at `address`, and the end of the pages with that use.
    pub(in crate::inspect) fn at(&self, address: VirtualAddress) -> (HeapUse, VirtualAddress) {
        let address = address.get();
        let next = self.runs.partition_point(|run| run.end <= address);
        let (is, end) = match self.runs.get(next) {
            Some(run) if run.start <= address => (run.is, run.end),
            Some(run) => (HeapUse::None, run.start),
            None => (HeapUse::None, u64::MAX),
        };
        (is, VirtualAddress::new(end))
    }

    /// Adds the pages of an arena, or of chunks that are separate mappings.
    pub(super) fn add(&mut self, pages: PageUses) {
        self.runs.extend(pages.runs);
        self.runs.extend(pages.open.map(|open| open.run(pages.page)));
    }

    /// Sorts the runs by address; the rest of `unknown` becomes [`HeapUse::Unknown`].
    pub(super) fn finish(mut self, unknown: &[AddressRange], budget: &mut Budget) -> Result<Self, OutOfBudget> {
        self.runs.sort_by_cached_key(|run| run.start);
        let mut known = std::mem::take(&mut self.runs).into_iter().peekable();
        for range in unknown {
            let mut at = range.start().get();
            while let Some(run) = known.next_if(|run| run.start < range.end().get()) {
                budget.hold(2 * size_of::<Run>() as u64)?;
                self.push(at, run.start, HeapUse::Unknown);
                self.push(run.start.max(at), run.end, run.is);
                at = at.max(run.end);
            }
            self.push(at, range.end().get(), HeapUse::Unknown);
        }
        for run in known {
            self.push(run.start, run.end, run.is);
        }
        Ok(self)
    }

    fn push(&mut self, start: u64, end: u64, is: HeapUse) {
        push(&mut self.runs, Run { start, end, is });
    }
}

/// The uses of the pages of the arenas that were walked so far.
#[derive(Default)]
pub(super) struct FoundUses {
    pub(super) uses: HeapUses,
    /// The chunks that are separate mappings.
    pub(super) mapped: Vec<AddressRange>,
    /// Whether an arena may be elsewhere, or was not walked to its end.
    pub(super) is_part: bool,
}

impl FoundUses {
    /// Adds the pages of an arena; `None` if no walk came to its end.
    pub(super) fn add(&mut self, pages: Option<PageUses>) {
        match pages {
            Some(pages) => self.uses.add(pages),
            None => self.is_part = true,
        }
    }
}

/// The pages of one arena during a walk. Pieces are added in address order.
#[derive(Clone, Debug)]
pub(super) struct PageUses {
    page: PageSize,
    runs: Vec<Run>,
    /// The page in which the last piece ended.
    open: Option<OpenPage>,
}

/// A page to which further pieces may be added.
#[derive(Clone, Copy, Debug)]
struct OpenPage {
    start: u64,
    /// The pieces in it, a bit each.
    pieces: u8,
}

impl OpenPage {
    fn run(self, page: PageSize) -> Run {
        Run { start: self.start, end: self.start + page.bytes(), is: use_of(self.pieces) }
    }
}

impl PageUses {
    pub(super) fn new(page: PageSize) -> Self {
        PageUses { page, runs: Vec::new(), open: None }
    }

    /// Adds a piece to its pages.
    pub(super) fn add(&mut self, piece: HeapPiece, budget: &mut Budget) -> Result<(), OutOfBudget> {
        let (page, bit) = (self.page.bytes(), bit(piece.kind));
        let (mut at, end) = (piece.start.get(), piece.end().get());
        while at < end {
            let first = at - at % page;
            match &mut self.open {
                Some(open) if open.start == first => open.pieces |= bit,
                _ => {
                    self.close(budget)?;
                    self.open = Some(OpenPage { start: first, pieces: bit });
                }
            }
            let (next, whole) = (first + page, end - end % page);
            at = next;
            if next < whole {
                self.close(budget)?;
                push(&mut self.runs, Run { start: next, end: whole, is: use_of(bit) });
                at = whole;
            }
        }
        Ok(())
    }

    fn close(&mut self, budget: &mut Budget) -> Result<(), OutOfBudget> {
        budget.hold(2 * size_of::<Run>() as u64)?;
        if let Some(open) = self.open.take() {
            push(&mut self.runs, open.run(self.page));
        }
        Ok(())
    }
}

/// Returns the use of a page with these pieces.
fn use_of(pieces: u8) -> HeapUse {
    match pieces {
        LIVE => HeapUse::Live,
        TOP => HeapUse::Top,
        pieces if pieces & LIVE == 0 => HeapUse::Free,
        _ => HeapUse::Both,
    }
}

/// Adds a run, or extends the last one if it has the same use.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        _ if run.start >= run.end => {}
        Some(last) if last.end == run.start && last.is == run.is => last.end = run.end,
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: PageSize = PageSize::FOUR_KIB;

    /// Returns the words of the pages from 0x10000 on.
    fn words(uses: &HeapUses, pages: u64) -> Vec<&'static str> {
        (0..pages).map(|page| uses.at(VirtualAddress::new(0x1_0000 + page * 0x1000)).0.word()).collect()
    }

    fn uses(pieces: &[(u64, u64, PieceKind)]) -> HeapUses {
        let mut pages = PageUses::new(PAGE);
        for &(start, end, kind) in pieces {
            let piece = HeapPiece::new(0x1_0000 + start, 0x1_0000 + end, kind);
            pages.add(piece, &mut Budget::unlimited()).expect("no limit");
        }
        let mut all = HeapUses::default();
        all.add(pages);
        all
    }

    #[test]
    fn a_page_is_what_its_pieces_are() {
        use PieceKind::{Free, InUse as Live, Top};
        let all = uses(&[
            (0x0, 0x100, Live),
            (0x100, 0x1000, Live),
            (0x1000, 0x1010, Free),
            (0x1010, 0x1020, Live),
            (0x1020, 0x4fe0, Free),
            (0x4fe0, 0x6000, Live),
            (0x6000, 0x7000, Free),
            (0x7000, 0x7010, Live),
            (0x7010, 0x9800, Top),
        ]);
        let all = all.finish(&[], &mut Budget::unlimited()).expect("no limit");
        let found = words(&all, 11);
        assert_eq!(
            found,
            ["live", "both", "free", "free", "both", "live", "free", "both", "top", "top", "none"],
            "{all:?}"
        );
        assert_eq!(all.at(VirtualAddress::new(0x1_2000)), (HeapUse::Free, VirtualAddress::new(0x1_4000)));
        assert_eq!(all.at(VirtualAddress::new(0x1000)), (HeapUse::None, VirtualAddress::new(0x1_0000)));
    }

    #[test]
    fn what_was_not_walked_is_unknown() {
        let all = uses(&[(0x1000, 0x2000, PieceKind::Other), (0x5000, 0x6000, PieceKind::Free)]);
        let range = |start, end| AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)).expect("one");
        let unknown = [range(0x1_0000, 0x1_3000), range(0x1_4000, 0x1_5000)];
        let all = all.finish(&unknown, &mut Budget::unlimited()).expect("no limit");
        assert_eq!(words(&all, 7), ["unknown", "live", "unknown", "none", "unknown", "free", "none"]);
    }

    /// Compares the runs with a mark for each byte.
    #[test]
    fn runs_say_what_single_bytes_say() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let (mut at, mut pieces, mut plain) = (random(0x1800), Vec::new(), [0_u8; 64]);
            for _ in 0..random(20) {
                let (size, piece) = (1 + random(0x2400), PieceKind::ALL[random(4) as usize]);
                pieces.push((at, at + size, piece));
                (at..at + size).for_each(|byte| plain[(byte / 0x1000) as usize] |= bit(piece));
                at += size + [0, 0, 16][random(3) as usize];
            }
            let all = uses(&pieces).finish(&[], &mut Budget::unlimited()).expect("no limit");
            let expected = plain.map(|pieces| if pieces == 0 { "none" } else { use_of(pieces).word() });
            assert_eq!(words(&all, 64), expected, "{pieces:x?}");
        }
    }
}
