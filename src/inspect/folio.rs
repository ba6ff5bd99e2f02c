//! Folios: the pages that the kernel manages as one, and how large ones are mapped: whole or in part, by one entry or
//! page by page. `/proc/kpageflags` marks the first as a head and the others as its tails.

use super::hidden_words::known_words;
use super::page::{FolioFit, Page};
use crate::kernel::{AddressRange, FrameNumber, Kind, PageFlags, PageMapEntry, PageSize, WordFile};
use crate::process::{self, Machine, Process};
use crate::report::{FolioReport, HowMapped, LargeFolios};
use std::collections::BTreeMap;
use std::ops::Range;

/// 2^`order` frames that belong together, from `head` on. A page by itself is a folio of order 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Folio {
    /// The first frame, a multiple of 2^`order`.
    pub head: FrameNumber,
    /// The logarithm of how many frames it has.
    pub order: u8,
}

/// 16 GiB of 4 KiB pages: no kernel has larger ones in its hugetlb pool.
const LARGEST: u8 = 22;

impl Folio {
    /// The number of its frames.
    pub fn frames(self) -> u64 {
        1 << self.order
    }

    /// Which of its frames `frame` is, from 0; `None` for a frame of another folio.
    pub fn index(self, frame: FrameNumber) -> Option<u64> {
        let index = frame.checked_sub(self.head.get())?.get();
        (index < self.frames()).then_some(index)
    }

    /// The folio of this order that holds `frame`. Folios begin at multiples of their size: the buddy allocator and the
    /// hugetlb pool align them so.
    pub fn around(frame: FrameNumber, order: u8) -> Folio {
        let mask = (1u64 << order.min(LARGEST)) - 1;
        Folio { head: FrameNumber::new(frame.get() & !mask), order }
    }

    /// The page indices in `region` at which its pages are, if its page `index` is mapped at page index `at`.
    pub(super) fn places(self, index: u64, at: u64, region: AddressRange, page: PageSize) -> Range<u64> {
        let begins = at.saturating_sub(index);
        let first = page.index(region.start()).max(begins);
        let end = page.index(region.end()).min(begins.saturating_add(self.frames()));
        first..end.max(first)
    }

    /// How many of the entries from page index `first` on map its pages at their places, if its page `index` is mapped
    /// at page index `at`.
    pub(super) fn count_mapped(self, index: u64, at: u64, first: u64, entries: &[PageMapEntry]) -> u64 {
        let mapped = (first..).zip(entries).filter(|(page, entry)| {
            let belongs = (page + index).checked_sub(at);
            let mapped = entry.frame().and_then(|frame| self.index(frame));
            mapped.is_some() && mapped == belongs
        });
        mapped.count() as u64
    }

    /// The same, with the entries of these places, which it reads.
    pub(super) fn mapped_pages(
        self,
        process: &Process,
        index: u64,
        at: u64,
        places: Range<u64>,
    ) -> process::Result<u64> {
        let mut entries = vec![PageMapEntry::default(); (places.end - places.start) as usize];
        let read = process.entries(places.start, &mut entries)?;
        Ok(self.count_mapped(index, at, places.start, entries.get(..read).unwrap_or_default()))
    }

    /// How it is mapped, if its page `index` is mapped at page index `at`, and `mapped` of its pages around that.
    pub(super) fn fit(self, index: u64, at: u64, mapped: u64) -> FolioFit {
        match is_aligned(self, index, at) {
            _ if mapped < self.frames() => FolioFit::Part,
            true => FolioFit::Aligned,
            false => FolioFit::Unaligned,
        }
    }

    /// Finds the folios of these frames, given the flags of each by its index (`None` if unknown). `set` receives the
    /// indices of each folio, and the folio. At the ends a few more words are read. `last` is the last folio found in
    /// earlier frames.
    pub(super) fn each(
        machine: &Machine,
        frames: Range<u64>,
        flags: &dyn Fn(usize) -> Option<PageFlags>,
        last: &mut Option<Folio>,
        set: &mut dyn FnMut(Range<usize>, Folio),
    ) -> process::Result<()> {
        let first = frames.start;
        let frames = (frames.end - first) as usize;
        let mut at = 0;
        while at < frames {
            let frame = FrameNumber::new(first + at as u64);
            let here = at;
            at += 1;
            let Some(known) = flags(here) else {
                continue;
            };
            if last.is_none_or(|folio| folio.index(frame).is_none()) {
                *last = Folio::find_with(frame, known, &mut |other| {
                    let index = other.get().checked_sub(first);
                    match index.and_then(|index| usize::try_from(index).ok()) {
                        Some(index) if index < frames => Ok(flags(index)),
                        _ => Folio::flags_of(machine, other),
                    }
                })?;
            }
            if let Some((folio, index)) = last.and_then(|folio| Some((folio, folio.index(frame)?))) {
                let pages = usize::try_from(folio.frames() - index).unwrap_or(frames);
                at = here.saturating_add(pages).min(frames);
                set(here..at, folio);
            }
        }
        Ok(())
    }

    /// The report on it as the folio of `frame`.
    pub fn report(self, frame: FrameNumber, page: PageSize) -> FolioReport {
        FolioReport {
            order: self.order,
            bytes: page.bytes() << self.order,
            head: self.head,
            index: self.index(frame).unwrap_or_default(),
            mapped: None,
        }
    }

    /// The folio of `frame`, which has these flags; see [`Folio::find_with`].
    pub(super) fn find(machine: &Machine, frame: FrameNumber, flags: PageFlags) -> process::Result<Option<Folio>> {
        Folio::find_with(frame, flags, &mut |frame| Folio::flags_of(machine, frame))
    }

    /// The flags of one frame; `None` beyond memory.
    pub(super) fn flags_of(machine: &Machine, frame: FrameNumber) -> process::Result<Option<PageFlags>> {
        let mut word = [0];
        let read = known_words(machine, WordFile::FrameFlags, frame, &mut word)?;
        Ok((read > 0).then_some(PageFlags::from_bits_retain(word[0])))
    }

    /// The folio of `frame`, which has these flags. `flags_of` reads the flags of another frame, `None` beyond memory.
    /// It is called for the few frames where a folio can begin or end. Returns `None` if heads and tails contradict
    /// each other, as when a folio is split meanwhile.
    pub(super) fn find_with<E>(
        frame: FrameNumber,
        flags: PageFlags,
        flags_of: &mut dyn FnMut(FrameNumber) -> Result<Option<PageFlags>, E>,
    ) -> Result<Option<Folio>, E> {
        let mut folio = Folio::around(frame, 0);
        if !flags.intersects(PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL) {
            return Ok(Some(folio));
        }
        let mut has = |at: FrameNumber, flag: PageFlags| Ok(flags_of(at)?.is_some_and(|flags| flags.contains(flag)));
        if !flags.contains(PageFlags::COMPOUND_HEAD) {
            // Its possible first frames, backwards: all but the true one are tails.
            loop {
                if folio.order == LARGEST {
                    return Ok(None);
                }
                let larger = Folio::around(frame, folio.order + 1);
                let found = larger.head != folio.head && has(larger.head, PageFlags::COMPOUND_HEAD)?;
                folio = larger;
                if found {
                    break;
                }
            }
        }
        // If the frame after it is a tail, it is at least twice as large.
        while folio.order < LARGEST
            && let Some(next) = folio.head.checked_add(folio.frames())
            && has(next, PageFlags::COMPOUND_TAIL)?
        {
            folio.order += 1;
            // Its head must be aligned to the doubled size.
            if Folio::around(folio.head, folio.order).head != folio.head {
                return Ok(None);
            }
        }
        Ok((folio.order > 0).then_some(folio))
    }
}

/// Adds up the large folios among pages in address order.
#[derive(Debug)]
pub(super) struct FolioTotals {
    size: PageSize,
    part: Option<FolioPart>,
    uses: Uses,
}

/// By order, and by how they are mapped.
type Uses = BTreeMap<(u8, HowMapped), PageCounts>;

/// Pages of one folio that follow each other in the folio and in the address space.
#[derive(Clone, Copy, Debug)]
struct FolioPart {
    folio: Folio,
    how: HowMapped,
    /// Which page of the folio comes first.
    first: u64,
    /// The page index at which that one is mapped.
    at: u64,
    pages: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct PageCounts {
    all: u64,
    partly: u64,
    unaligned: u64,
}

impl FolioTotals {
    pub(super) fn new(size: PageSize) -> Self {
        FolioTotals { size, part: None, uses: BTreeMap::new() }
    }

    /// Takes the next page. Those of small folios, and of the huge zero page, do not count.
    pub(super) fn add(&mut self, page: &Page) {
        let (Some(order), Some(frame), false) = (page.order.filter(|&order| order > 0), page.frame(), page.is_zero())
        else {
            return;
        };
        let how = match (page.kind, page.huge) {
            (Some(Kind::Hugetlb), _) => HowMapped::Hugetlb,
            (_, Some(true)) => HowMapped::Pmd,
            (_, Some(false)) => HowMapped::Pte,
            (_, None) => HowMapped::Unknown,
        };
        let at = self.size.index(page.address);
        let mut done = 0;
        while let Some(frame) = frame.checked_add(done).filter(|_| done < page.pages) {
            let folio = Folio::around(frame, order);
            let first = folio.index(frame).unwrap_or_default();
            let pages = (folio.frames() - first).min(page.pages - done);
            self.push(FolioPart { folio, how, first, at: at + done, pages });
            done += pages;
        }
    }

    fn push(&mut self, next: FolioPart) {
        match &mut self.part {
            Some(part)
                if part.folio == next.folio
                    && part.how == next.how
                    && part.first + part.pages == next.first
                    && part.at + part.pages == next.at =>
            {
                part.pages += next.pages;
            }
            part => {
                if let Some(done) = part.replace(next) {
                    count(&mut self.uses, done);
                }
            }
        }
    }

    /// What was added up, the largest first.
    pub(super) fn finish(&self) -> Vec<LargeFolios> {
        let mut uses = self.uses.clone();
        if let Some(part) = self.part {
            count(&mut uses, part);
        }
        let bytes = |pages: u64| pages.saturating_mul(self.size.bytes());
        let uses = uses.iter().rev();
        uses.map(|(&(order, how), pages)| LargeFolios {
            order,
            size: bytes(1 << order),
            mapped: how,
            bytes: bytes(pages.all),
            partly: bytes(pages.partly),
            unaligned: bytes(pages.unaligned),
        })
        .collect()
    }
}

fn count(uses: &mut Uses, part: FolioPart) {
    let uses = uses.entry((part.folio.order, part.how)).or_default();
    uses.all += part.pages;
    if part.pages < part.folio.frames() {
        uses.partly += part.pages;
    }
    if !is_aligned(part.folio, part.first, part.at) {
        uses.unaligned += part.pages;
    }
}

/// Whether the address of the folio is a multiple of its size, if its page `first` is mapped at page index `at`. Only
/// then can one entry map all of it.
pub(super) fn is_aligned(folio: Folio, first: u64, at: u64) -> bool {
    at % folio.frames() == first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{PageMapEntry, State, VirtualAddress};
    use std::collections::HashMap;
    use std::convert::Infallible;

    /// Memory with folios of these orders one after the other from frame 2^20 on.
    fn memory(orders: &[u8]) -> HashMap<u64, PageFlags> {
        let mut flags = HashMap::new();
        let mut at = 1 << 20;
        for &order in orders {
            for index in 0..1u64 << order {
                let flag = match (order, index) {
                    (0, _) => PageFlags::ANON,
                    (_, 0) => PageFlags::COMPOUND_HEAD,
                    _ => PageFlags::COMPOUND_TAIL,
                };
                flags.insert(at + index, flag);
            }
            at += 1 << order;
        }
        flags
    }

    fn find(memory: &HashMap<u64, PageFlags>, frame: u64, reads: &mut u32) -> Option<Folio> {
        let result: Result<_, Infallible> = Folio::find_with(FrameNumber::new(frame), memory[&frame], &mut |frame| {
            *reads += 1;
            Ok(memory.get(&frame.get()).copied())
        });
        result.unwrap_or(None)
    }

    #[test]
    fn every_page_of_every_folio() {
        // Each begins where it can.
        let orders = [9, 4, 2, 2, 1, 0, 0, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9];
        let memory = memory(&orders);
        let mut head = 1 << 20;
        for order in orders {
            let folio = Folio { head: FrameNumber::new(head), order };
            for index in 0..folio.frames() {
                let mut reads = 0;
                assert_eq!(find(&memory, head + index, &mut reads), Some(folio));
                assert!(reads <= 20, "{reads} reads for order {order}");
                assert_eq!(folio.index(FrameNumber::new(head + index)), Some(index));
            }
            assert_eq!(folio.index(FrameNumber::new(head + folio.frames())), None);
            head += folio.frames();
        }
    }

    #[test]
    fn contradictory_flags_give_no_folio() {
        let tail_without_head = HashMap::from([(1 << 20 | 5, PageFlags::COMPOUND_TAIL)]);
        assert_eq!(find(&tail_without_head, 1 << 20 | 5, &mut 0), None);
        let head_alone = HashMap::from([(1 << 20, PageFlags::COMPOUND_HEAD)]);
        assert_eq!(find(&head_alone, 1 << 20, &mut 0), None);
        // A head at an odd frame is not aligned to two frames, so it can have no tail.
        let askew = HashMap::from([(3, PageFlags::COMPOUND_HEAD), (4, PageFlags::COMPOUND_TAIL)]);
        assert_eq!(find(&askew, 3, &mut 0), None);
    }

    fn page(at: u64, frame: u64, pages: u64, order: u8, huge: bool) -> Page {
        Page {
            pages,
            entry: PageMapEntry::new(1 << 63 | frame),
            kind: Some(Kind::Anonymous),
            huge: Some(huge),
            order: Some(order),
            ..Page::new(VirtualAddress::new(at << 12), State::Present.into())
        }
    }

    #[test]
    fn whole_partial_and_unaligned() {
        let mut large = FolioTotals::new(PageSize::FOUR_KIB);
        for page in [
            page(512, 1024, 512, 9, true),
            // Two folios as one page, then one of which a page in the middle is gone.
            page(1024, 16, 8, 2, false),
            page(1032, 32, 1, 2, false),
            page(1034, 34, 2, 2, false),
            // Whole, but where no single entry could map it.
            page(1041, 64, 2, 2, false),
            page(1043, 66, 2, 2, false),
            page(1050, 99, 1, 0, false),
        ] {
            large.add(&page);
        }
        let brief = |one: &LargeFolios| {
            let pages = [one.bytes, one.partly, one.unaligned].map(|bytes| bytes >> 12);
            (one.order, one.mapped, pages)
        };
        let all: Vec<_> = large.finish().iter().map(brief).collect();
        assert_eq!(all, [(9, HowMapped::Pmd, [512, 0, 0]), (2, HowMapped::Pte, [15, 3, 4])]);
    }
}
