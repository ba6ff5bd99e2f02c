//! Who holds the folio of a frame: its references by holder, and how often it is pinned.

use crate::kernel::PageFlags;
use crate::process::{FrameOwner, FrameRecord};
use crate::report::{Fact, Holders, REFERENCES_OF_A_PIN, Reason};

/// Who holds the folio of a frame, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FrameHolders {
    /// References to the folio. A pin of a page that is no large folio counts as 1024.
    pub references: u32,
    /// The logarithm of how many frames the folio has.
    pub order: u8,
    /// How often it is pinned.
    pub pins: Pins,
    /// The references that are explained.
    explained: Option<ExplainedReferences>,
}

/// How often a folio is pinned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pins {
    /// So often: large folios have a count of their own, and pages with few references have none.
    Exactly(u32),
    /// As often as the references allow, or less.
    AtMost(u32),
    /// Not known here.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ExplainedReferences {
    mappings: u32,
    page_cache: u32,
    swap_cache: u32,
    filesystem: u32,
}

impl FrameHolders {
    pub(super) fn of(record: &FrameRecord) -> Option<FrameHolders> {
        let (references, order) = (record.references?, record.order?);
        // The page cache has a reference for each page; before Linux 6.7 only one for a page of the hugetlb pool.
        let of = |mappings, flags| holders(record, references.into(), mappings, flags, 1);
        let known = |mappings| of(mappings, None).or_else(|_| of(mappings, Some(PageFlags::HUGE))).ok();
        let holders = record.mappings.and_then(known);
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let pins = if order > 0 {
            record.pins.map_or(Pins::Unknown, Pins::Exactly)
        } else {
            match small_page_pins(references.into(), holders.as_ref()) {
                (Ok(pins), _) => Pins::Exactly(number(pins)),
                (Err(_), most) => most.map_or(Pins::Unknown, |most| Pins::AtMost(number(most))),
            }
        };
        let explained = holders.map(|holders| ExplainedReferences {
            mappings: number(holders.mappings),
            page_cache: number(holders.page_cache),
            swap_cache: number(holders.swap_cache),
            filesystem: number(holders.filesystem),
        });
        Some(FrameHolders { references, order, pins, explained })
    }

    /// Whether it is pinned; `None` where that is not known: 1,024 references look like a pin.
    pub fn is_pinned(self) -> Option<bool> {
        match self.pins {
            Pins::Exactly(pins) => Some(pins > 0),
            Pins::AtMost(_) | Pins::Unknown => None,
        }
    }

    /// Whether pins or other unexplained references keep it in its frames. One reference more may be of a batch for the
    /// LRU lists, which the kernel empties before it moves pages.
    pub(super) fn is_kept(self) -> bool {
        let has_others = || self.holders().is_some_and(|holders| holders.others > 1);
        matches!(self.pins, Pins::Exactly(1..) | Pins::AtMost(_)) || has_others()
    }

    /// How often it is pinned.
    ///
    /// # Errors
    /// Not known, with the reason.
    pub fn pins(self) -> Fact<u64> {
        match self.pins {
            Pins::Exactly(pins) => Ok(pins.into()),
            Pins::AtMost(_) => Err(ambiguous()),
            Pins::Unknown => Err(not_shown()),
        }
    }

    /// Its references by holder, if those of mappings and files are known.
    pub fn holders(self) -> Option<Holders> {
        let ExplainedReferences { mappings, page_cache, swap_cache, filesystem } = self.explained?;
        let [mappings, page_cache, swap_cache, filesystem] =
            [mappings, page_cache, swap_cache, filesystem].map(u64::from);
        let explained = mappings + page_cache + swap_cache + filesystem;
        let others = u64::from(self.references).saturating_sub(explained);
        let known = Holders { mappings, page_cache, swap_cache, filesystem, pins: 0, others };
        Some(match self.pins {
            Pins::Exactly(pins) => with_pins(known, pins.into(), self.order > 0),
            _ => known,
        })
    }
}

/// The holders, with pins taken out of the others.
pub(super) fn with_pins(holders: Holders, pins: u64, is_large: bool) -> Holders {
    let for_each = if is_large { 1 } else { REFERENCES_OF_A_PIN };
    let of_pins = pins.saturating_mul(for_each).min(holders.others);
    Holders { pins: of_pins, others: holders.others - of_pins, ..holders }
}

fn ambiguous() -> Reason {
    let why = "a page that is no large folio counts a pin as 1024 references, and any others look the same";
    Reason::NotOnThisKernel(why.into())
}

/// Why a frame has no record.
pub fn not_shown() -> Reason {
    Reason::NotOnThisKernel("the kernel does not show its record of this frame".into())
}

/// The references of a folio by holder (`folio_expected_ref_count` in include/linux/mm.h). Where it is not 0,
/// `cache_of_pool` is how many references the page cache has to a page of the hugetlb pool: before Linux 6.7 one.
pub(super) fn holders(
    record: &FrameRecord,
    references: u64,
    mappings: u64,
    flags: Option<PageFlags>,
    cache_of_pool: u64,
) -> Fact<Holders> {
    let (Some(order), Some(own), Some(owner)) = (record.order, record.flags, record.owner) else {
        return Err(not_shown());
    };
    let pages = 1u64 << order;
    let is_of_pool = flags.is_some_and(|flags| flags.contains(PageFlags::HUGE));
    let (mut page_cache, mut swap_cache, mut filesystem) = (0, 0, 0);
    match owner {
        FrameOwner::Anonymous | FrameOwner::Merged if own.contains(PageFlags::SWAPCACHE) => swap_cache = pages,
        FrameOwner::File(_) if own.contains(PageFlags::SWAPCACHE) => swap_cache = pages,
        FrameOwner::File(_) => {
            page_cache = if is_of_pool && cache_of_pool > 0 { cache_of_pool } else { pages };
            filesystem = u64::from(own.contains(PageFlags::PRIVATE) && !is_of_pool);
        }
        _ => {}
    }
    let explained = mappings.saturating_add(page_cache + swap_cache + filesystem);
    let others = references.checked_sub(explained).ok_or(Reason::Changed)?;
    Ok(Holders { mappings, page_cache, swap_cache, filesystem, pins: 0, others })
}

/// The pins of a page that is no large folio, or the most that there can be: they are counted among the references, and
/// nothing tells 1,024 others from a pin (try_grab_folio in mm/gup.c).
pub(super) fn small_page_pins(references: u64, holders: Option<&Holders>) -> (Fact<u64>, Option<u64>) {
    // Explained references are no pins.
    match holders.map_or(references, |holders| holders.others) / REFERENCES_OF_A_PIN {
        0 => (Ok(0), None),
        most => (Err(ambiguous()), Some(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Device;

    fn record(order: u8, flags: PageFlags, owner: FrameOwner) -> FrameRecord {
        let mut record = FrameRecord::default();
        (record.order, record.flags, record.owner) = (Some(order), Some(flags), Some(owner));
        record
    }

    fn file() -> FrameOwner {
        FrameOwner::File(crate::process::PageOfFile { device: Device { major: 8, minor: 1 }, inode: 5, index: 7 })
    }

    #[test]
    fn references_have_holders() {
        let shown = |record: &FrameRecord, references, mappings| {
            let holders = holders(record, references, mappings, None, 0).expect("holders");
            (holders.mappings, holders.page_cache, holders.swap_cache, holders.filesystem, holders.others)
        };
        let none = PageFlags::empty();
        assert_eq!(shown(&record(0, none, FrameOwner::Anonymous), 1, 1), (1, 0, 0, 0, 0));
        assert_eq!(shown(&record(0, none, FrameOwner::Anonymous), 1025, 1), (1, 0, 0, 0, 1024));
        assert_eq!(shown(&record(4, PageFlags::PRIVATE, file()), 20, 2), (2, 16, 0, 1, 1));
        assert_eq!(shown(&record(0, PageFlags::SWAPCACHE, FrameOwner::Anonymous), 2, 1), (1, 0, 1, 0, 0));
        // Mappings were added meanwhile.
        assert_eq!(holders(&record(0, none, file()), 2, 3, None, 0), Err(Reason::Changed));
        // Pages of the pool: one reference for all of a page, in older kernels.
        let of_pool = Some(PageFlags::HUGE);
        let old = holders(&record(9, none, file()), 2, 1, of_pool, 1).expect("holders");
        assert_eq!((old.page_cache, old.others), (1, 0));
        let new = holders(&record(9, none, file()), 513, 1, of_pool, 0).expect("holders");
        assert_eq!((new.page_cache, new.others), (512, 0));
    }

    #[test]
    fn pins_of_small_pages_are_never_certain() {
        let with = |others| Holders { mappings: 1, page_cache: 0, swap_cache: 0, filesystem: 0, pins: 0, others };
        assert_eq!(small_page_pins(1023, None), (Ok(0), None));
        for (others, expected) in
            [(1023, None), (1024, Some(1)), (1025, Some(1)), (1999, Some(1)), (3 * 1024 + 1, Some(3))]
        {
            let (pins, most) = small_page_pins(others + 1, Some(&with(others)));
            assert_eq!((pins.ok(), most), (expected.is_none().then_some(0), expected), "{others}");
        }
        let mut record = record(0, PageFlags::empty(), FrameOwner::Anonymous);
        (record.references, record.mappings, record.pins) = (Some(1025), Some(1), None);
        let held = FrameHolders::of(&record).expect("holders");
        assert_eq!((held.pins, held.is_pinned(), held.pins().is_err()), (Pins::AtMost(1), None, true));
        assert_eq!(held.holders().map(|holders| (holders.pins, holders.others)), Some((0, 1024)));
        assert_eq!(small_page_pins(5000, None).1, Some(4));
        // Many mappings are no pin.
        assert_eq!(small_page_pins(2000, Some(&with(0))), (Ok(0), None));
    }
}
