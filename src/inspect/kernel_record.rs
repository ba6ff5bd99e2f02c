//! What the kernel's own record of a frame says: who holds the frame, and how often it is pinned.

use crate::kernel::{FrameNumber, PageFlags};
use crate::process::{FrameOwner, FrameRecord, Machine, RecordParts};
use crate::report::{Fact, FilePage, Holders, KernelRecord, REFERENCES_OF_A_PIN, Reason};

/// The record of a frame; `None` where the kernel's records cannot be read. Pins of large folios are read only where
/// there are such: the first time, pmdb pins a page of its own.
pub fn kernel_record(machine: &Machine, frame: FrameNumber, flags: Option<PageFlags>) -> Option<KernelRecord> {
    machine.require_records(RecordParts::FOLIO).ok()?;
    let read = |parts: RecordParts| {
        let mut record = [FrameRecord::default()];
        machine.frame_records(frame, parts, &mut record)?;
        Fact::Ok(record[0])
    };
    let mut record = read(RecordParts::all() - RecordParts::PINS);
    if let Ok(FrameRecord { order: Some(1..), .. }) = record {
        record = read(RecordParts::all());
    }
    Some(match record {
        Ok(record) => described(machine, &record, flags),
        Err(reason) => KernelRecord {
            references: Err(reason.clone()),
            holders: Err(reason.clone()),
            pins: Err(reason.clone()),
            pins_at_most: None,
            owner: Err(reason),
            file_page: None,
        },
    })
}

/// What the record says in words and numbers.
fn described(machine: &Machine, record: &FrameRecord, flags: Option<PageFlags>) -> KernelRecord {
    let require = |part| Ok(machine.require_records(part)?);
    let of_part = |part, value: Option<u64>| require(part).and_then(|()| value.ok_or_else(not_shown));
    let references = of_part(RecordParts::REFERENCES, record.references.map(u64::from));
    let is_large = record.order.is_some_and(|order| order > 0);
    let holders = references.clone().and_then(|references| {
        let part = if is_large { RecordParts::LARGE_MAPPINGS } else { RecordParts::MAPPINGS };
        let mappings = of_part(part, record.mappings)?;
        require(RecordParts::OWNER)?;
        let cache_of_pool = if machine.kernel().number < (6, 7) { 1 } else { 0 };
        holders(record, references, mappings, flags, cache_of_pool)
    });
    let (pins, pins_at_most) = match (is_large, &references) {
        (true, _) => (of_part(RecordParts::PINS, record.pins.map(u64::from)), None),
        (false, Err(reason)) => (Err(reason.clone()), None),
        (false, Ok(references)) => small_page_pins(*references, holders.as_ref().ok()),
    };
    let holders = holders.map(|holders| {
        let for_each = if is_large { 1 } else { REFERENCES_OF_A_PIN };
        let of_pins = pins.as_ref().map_or(0, |pins| pins.saturating_mul(for_each)).min(holders.others);
        Holders { pins: of_pins, others: holders.others - of_pins, ..holders }
    });
    let file_page = match record.owner {
        Some(FrameOwner::File(page)) => Some(FilePage { device: page.device, inode: page.inode, index: page.index }),
        _ => None,
    };
    let owner = record.owner.map(|owner| match owner {
        FrameOwner::Anonymous => "anonymous",
        FrameOwner::Merged => "merged",
        FrameOwner::File(_) => "file",
        _ => "unrecorded",
    });
    let owner = require(RecordParts::OWNER).and_then(|()| owner.ok_or_else(not_shown));
    KernelRecord { references, holders, pins, pins_at_most, owner, file_page }
}

fn not_shown() -> Reason {
    Reason::NotOnThisKernel("the kernel does not show its record of this frame".into())
}

/// The references of a folio by holder (`folio_expected_ref_count` in include/linux/mm.h). Where it is not 0,
/// `cache_of_pool` is how many references the page cache has to a page of the hugetlb pool: before Linux 6.7 one.
fn holders(
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

/// The pins of a page that is no large folio, or the most that there can be: they are counted among the references.
fn small_page_pins(references: u64, holders: Option<&Holders>) -> (Fact<u64>, Option<u64>) {
    let most = references / REFERENCES_OF_A_PIN;
    if most == 0 {
        return (Ok(0), None);
    }
    match holders.map(|holders| (holders.others / REFERENCES_OF_A_PIN, holders.others % REFERENCES_OF_A_PIN)) {
        // One reference more is normal.
        Some((pins, 0 | 1)) => (Ok(pins), None),
        _ => (
            Err(Reason::NotOnThisKernel(
                "1024 references look like one pin, and not all references of this page are explained".into(),
            )),
            Some(most),
        ),
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
        FrameOwner::File(crate::process::FilePage { device: Device { major: 8, minor: 1 }, inode: 5, index: 7 })
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
    fn pins_of_small_pages_are_exact_only_where_the_rest_fits() {
        let with = |others| Holders { mappings: 1, page_cache: 0, swap_cache: 0, filesystem: 0, pins: 0, others };
        assert_eq!(small_page_pins(1023, None), (Ok(0), None));
        assert_eq!(small_page_pins(1025, Some(&with(1024))), (Ok(1), None));
        assert_eq!(small_page_pins(3 * 1024 + 2, Some(&with(3 * 1024 + 1))), (Ok(3), None));
        let (pins, most) = small_page_pins(2000, Some(&with(1999)));
        assert!(pins.is_err());
        assert_eq!(most, Some(1));
        assert_eq!(small_page_pins(5000, None).1, Some(4));
        // Many mappings are no pin.
        assert_eq!(small_page_pins(2000, Some(&with(0))), (Ok(0), None));
    }
}
