//! The sums of a walk over an arena: its chunks by size and by place, and the pages on which chunks in use keep free
//! memory.

use super::walk::{ChunkLayout, ChunkRun, ChunkSum};
use crate::budget::Budget;
use crate::inspect::Result;
use crate::kernel::AddressRange;

/// The number of classes of chunk sizes, which are powers of two.
const CLASSES: usize = 64;

/// The chunks of one size class: from `smallest` to less than twice that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SizeClass {
    /// The size of the smallest chunk of the class.
    pub smallest: u64,
    /// The chunks in use.
    pub in_use: ChunkSum,
    /// The free chunks.
    pub free: ChunkSum,
}

/// The most chunks in use on the pages of each kind of [`KeptPages`] but the last.
const MOST_CHUNKS: [u64; 4] = [1, 2, 4, 8];

/// Pages on which free memory lies beside a number of chunks in use, or parts of them: no trim gives them back.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KeptPages {
    /// The fewest chunks in use on such a page.
    pub least: u64,
    /// The most chunks in use on such a page; `None` if there is no limit.
    pub most: Option<u64>,
    /// The number of such pages.
    pub pages: u64,
    /// The free bytes on these pages.
    pub free: u64,
    /// The size classes of the chunks in use there: the smallest size of the class, and the number of pages that hold a
    /// chunk of it.
    pub sizes: Vec<(u64, u64)>,
}

/// Chunks that lie side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretched {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) in_use: ChunkSum,
    pub(super) free: ChunkSum,
}

/// The sums of a walk.
#[derive(Clone)]
pub(super) struct Sums {
    pub(super) between: u64,
    pub(super) foreign: u64,
    /// The ranges that a trim gives back, in the order of the walk.
    pub(super) trimmed: Vec<AddressRange>,
    pub(super) stretches: Vec<Stretched>,
    sizes: [(ChunkSum, ChunkSum); CLASSES],
    kept: [KeptSum; MOST_CHUNKS.len() + 1],
    page: OpenPage,
}

/// Pages with free memory beside chunks in use.
#[derive(Clone, Copy)]
struct KeptSum {
    pages: u64,
    free: u64,
    /// The number of these pages that hold a chunk of each class.
    sizes: [u64; CLASSES],
}

/// The page that the walk is on.
#[derive(Clone, Copy, Default)]
struct OpenPage {
    number: u64,
    chunks: u64,
    free: u64,
    /// The classes of the chunks in use, a bit each.
    classes: u64,
}

impl Default for Sums {
    fn default() -> Self {
        Sums {
            between: 0,
            foreign: 0,
            trimmed: Vec::new(),
            stretches: Vec::new(),
            sizes: [(ChunkSum::default(), ChunkSum::default()); CLASSES],
            kept: [KeptSum { pages: 0, free: 0, sizes: [0; CLASSES] }; MOST_CHUNKS.len() + 1],
            page: OpenPage::default(),
        }
    }
}

impl Sums {
    #[inline]
    pub(super) fn add(&mut self, run: ChunkRun, layout: ChunkLayout, budget: &mut Budget) -> Result<()> {
        let (used, unused) = (u64::from(run.used), u64::from(run.chunks - run.used));
        let class = run.size.checked_ilog2().unwrap_or_default() as usize;
        if let Some((in_use, free)) = self.sizes.get_mut(class) {
            in_use.add_alike(used, run.size);
            free.add_alike(unused, run.size);
        }
        if self.stretches.last().is_none_or(|last| last.end != run.start) {
            budget.hold(2 * size_of::<Stretched>() as u64)?;
            let (start, in_use, free) = (run.start, ChunkSum::default(), ChunkSum::default());
            self.stretches.push(Stretched { start, end: start, in_use, free });
        }
        if let Some(last) = self.stretches.last_mut() {
            last.end = run.end();
            last.in_use.add_alike(used, run.size);
            last.free.add_alike(unused, run.size);
        }
        self.add_to_pages(run, class, layout);
        self.between += unused * run.size;
        // A chunk that has a whole page is the only one that begins in its first page.
        if run.size >= layout.page.bytes()
            && unused > 0
            && let Some(range) = layout.trimmed(run.start, run.size)
        {
            budget.hold(size_of::<AddressRange>() as u64)?;
            self.between -= range.len();
            self.trimmed.push(range);
        }
        Ok(())
    }

    /// Adds chunks to the page that they begin in. The last one is added to the page that it ends in, too: the pages
    /// between have no other chunk.
    #[inline]
    fn add_to_pages(&mut self, run: ChunkRun, class: usize, layout: ChunkLayout) {
        let (used, unused) = (u64::from(run.used), u64::from(run.chunks - run.used));
        let (end, shift) = (run.end(), layout.page.shift());
        let (first, last) = (run.start >> shift, (end - 1) >> shift);
        let is_last_in_use = run.in_use >> (run.chunks - 1) & 1;
        let (after_first, of_last) = (end.saturating_sub((first + 1) << shift), end - (last << shift));
        let beyond = if is_last_in_use == 1 { 0 } else { after_first };
        self.add_to_page(first, used, class, unused * run.size - beyond);
        if last != first {
            self.add_to_page(last, is_last_in_use, class, if is_last_in_use == 1 { 0 } else { of_last });
        }
    }

    #[inline]
    fn add_to_page(&mut self, number: u64, used: u64, class: usize, free: u64) {
        if self.page.number != number {
            self.close_page();
            self.page.number = number;
        }
        self.page.chunks += used;
        self.page.classes |= u64::from(used > 0) << class;
        self.page.free += free;
    }

    fn close_page(&mut self) {
        let OpenPage { chunks, free, mut classes, .. } = std::mem::take(&mut self.page);
        let kind = MOST_CHUNKS.partition_point(|most| *most < chunks);
        let Some(kept) = self.kept.get_mut(kind).filter(|_| chunks > 0 && free > 0) else {
            return;
        };
        kept.pages += 1;
        kept.free += free;
        while let Some(of_class) = kept.sizes.get_mut(classes.trailing_zeros() as usize) {
            *of_class += 1;
            classes &= classes - 1;
        }
    }

    /// Returns the sums of all chunks in use, and of all free ones.
    pub(super) fn totals(&self) -> (ChunkSum, ChunkSum) {
        let mut totals = (ChunkSum::default(), ChunkSum::default());
        for (in_use, free) in self.sizes {
            totals.0.join(in_use);
            totals.1.join(free);
        }
        totals
    }

    /// Returns the chunks by size, the smallest first.
    pub(super) fn classes(&self) -> Vec<SizeClass> {
        let classes = self.sizes.iter().enumerate().filter(|(_, (used, free))| used.chunks + free.chunks > 0);
        classes.map(|(log, &(in_use, free))| SizeClass { smallest: 1 << log, in_use, free }).collect()
    }

    /// Returns the pages that chunks in use keep, those with the fewest chunks first. Call it after the walk.
    pub(super) fn kept(&mut self) -> Vec<KeptPages> {
        self.close_page();
        let mut all = Vec::new();
        let mut least = 1;
        for (sum, most) in self.kept.iter().zip(MOST_CHUNKS.map(Some).into_iter().chain([None])) {
            let of_class = sum.sizes.iter().enumerate().filter(|(_, pages)| **pages > 0);
            let sizes = of_class.map(|(log, pages)| (1 << log, *pages)).collect();
            all.push(KeptPages { least, most, pages: sum.pages, free: sum.free, sizes });
            least = most.unwrap_or_default() + 1;
        }
        all.retain(|kept| kept.pages > 0);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::MOST_ALIKE;
    use super::*;
    use crate::kernel::PageSize;

    const LAYOUT: ChunkLayout = ChunkLayout { pointer_bytes: 8, alignment: 16, page: PageSize::FOUR_KIB };

    fn sums(chunks: &[(u64, u64, bool)]) -> Sums {
        let page = |address: u64| address / 0x1000;
        let mut runs: Vec<ChunkRun> = Vec::new();
        for &(start, size, is_in_use) in chunks {
            match runs.last_mut() {
                Some(run)
                    if run.end() == start
                        && run.size == size
                        && run.chunks < MOST_ALIKE
                        && page(run.start) == page(start) =>
                {
                    run.in_use |= u64::from(is_in_use) << run.chunks;
                    run.used += u32::from(is_in_use);
                    run.chunks += 1;
                }
                _ => runs.push(ChunkRun::one(start, size, is_in_use)),
            }
        }
        let mut sums = Sums::default();
        for run in runs {
            sums.add(run, LAYOUT, &mut Budget::unlimited()).expect("no limit");
        }
        sums
    }

    #[test]
    fn chunks_in_use_keep_the_pages_on_which_free_memory_lies() {
        // One page with three chunks in use, two that a chunk at an edge keeps, and one that nothing is free on.
        let mut sums = sums(&[
            (0x1_0000, 0x100, true),
            (0x1_0100, 0x100, false),
            (0x1_0200, 0x40, true),
            (0x1_0240, 0xdd0, true),
            (0x1_1010, 0x3ff0, false),
            (0x1_5000, 0x30, true),
            (0x1_5030, 0xfd0, true),
            (0x2_0000, 0x800, false),
            (0x2_0800, 0x800, true),
        ]);
        let kept = |least, most, pages, free, sizes: &[(u64, u64)]| KeptPages {
            least,
            most,
            pages,
            free,
            sizes: sizes.to_vec(),
        };
        assert_eq!(
            sums.kept(),
            [
                kept(1, Some(1), 2, 0xff0 + 0x800, &[(0x800, 2)]),
                kept(3, Some(4), 1, 0x100, &[(0x40, 1), (0x100, 1), (0x800, 1)]),
            ]
        );
        let stretch = |start, end, in_use: (u64, u64), free: (u64, u64)| {
            let sum = |(chunks, bytes)| ChunkSum { chunks, bytes };
            Stretched { start, end, in_use: sum(in_use), free: sum(free) }
        };
        assert_eq!(
            sums.stretches,
            [
                stretch(0x1_0000, 0x1_6000, (5, 0x1f10), (2, 0x40f0)),
                stretch(0x2_0000, 0x2_1000, (1, 0x800), (1, 0x800)),
            ]
        );
    }

    /// Compares the kept pages with counts of single bytes.
    #[test]
    fn pages_are_kept_as_single_bytes_show() {
        let mut state = 11_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let (mut at, mut chunks, mut is_in_use) = (0x1_0000 + 16 * random(300), Vec::new(), true);
            for _ in 0..random(40) {
                let most = [4, 40, 700][random(3) as usize];
                let size = 16 * (2 + random(most));
                // Small neighbours of one size come in runs.
                let alike = if most == 4 { random(80) } else { 0 };
                for _ in 0..=alike {
                    // No two free chunks are neighbours.
                    is_in_use = !is_in_use || random(3) > 0;
                    chunks.push((at, size, is_in_use));
                    at += size;
                }
            }
            let mut pages = std::collections::BTreeMap::<u64, (std::collections::BTreeSet<u64>, u64)>::new();
            for &(start, size, is_in_use) in &chunks {
                for byte in start..start + size {
                    let page = pages.entry(byte / 0x1000).or_default();
                    if is_in_use {
                        page.0.insert(start);
                    } else {
                        page.1 += 1;
                    }
                }
            }
            pages.retain(|_, (used, free)| !used.is_empty() && *free > 0);
            for kept in sums(&chunks).kept() {
                let has = |used: usize| used as u64 >= kept.least && kept.most.is_none_or(|most| used as u64 <= most);
                let of_kind: Vec<u64> =
                    pages.values().filter(|(used, _)| has(used.len())).map(|(_, free)| *free).collect();
                assert_eq!((kept.pages, kept.free), (of_kind.len() as u64, of_kind.iter().sum()), "{chunks:x?}");
            }
            let all: u64 = sums(&chunks).kept().iter().map(|kept| kept.pages).sum();
            assert_eq!(all, pages.len() as u64, "{chunks:x?}");
        }
    }
}
