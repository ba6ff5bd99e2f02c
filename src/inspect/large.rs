//! How large folios are mapped: whole or in part, by one entry or page by page.

use super::folio::Folio;
use super::page::Page;
use crate::kernel::{Kind, PageSize};
use crate::report::{HowMapped, LargeFolios};
use std::collections::BTreeMap;

/// Adds up the large folios among pages in address order.
#[derive(Debug)]
pub(super) struct Large {
    size: PageSize,
    part: Option<Part>,
    uses: Uses,
}

/// By order, and by how they are mapped.
type Uses = BTreeMap<(u8, HowMapped), Pages>;

/// Pages of one folio that follow each other in the folio and in the address space.
#[derive(Clone, Copy, Debug)]
struct Part {
    folio: Folio,
    how: HowMapped,
    /// Which page of the folio comes first.
    first: u64,
    /// The page index at which that one is mapped.
    at: u64,
    pages: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Pages {
    all: u64,
    partly: u64,
    unaligned: u64,
}

impl Large {
    pub(super) fn new(size: PageSize) -> Self {
        Large { size, part: None, uses: BTreeMap::new() }
    }

    /// Takes the next page. Those of small folios, and of the huge page of zeros, do not count.
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
            self.push(Part { folio, how, first, at: at + done, pages });
            done += pages;
        }
    }

    fn push(&mut self, next: Part) {
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

fn count(uses: &mut Uses, part: Part) {
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

    fn page(at: u64, frame: u64, pages: u64, order: u8, huge: bool) -> Page {
        Page {
            address: VirtualAddress::new(at << 12),
            pages,
            entry: PageMapEntry::new(1 << 63 | frame),
            states: State::Present.into(),
            kind: Some(Kind::Anonymous),
            flags: None,
            map_count: None,
            own_mappings: 0,
            huge: Some(huge),
            count_is_average: false,
            order: Some(order),
            zone: None,
            cgroup: None,
            content: None,
        }
    }

    #[test]
    fn whole_partial_and_unaligned() {
        let mut large = Large::new(PageSize::FOUR_KIB);
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
