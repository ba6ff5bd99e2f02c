//! What the kernel's own record of a frame says: who holds the frame, and how often it is pinned.

use super::holders::{FrameHolders, holders, not_shown, small_page_pins, with_pins};
use super::page::Facts;
use crate::kernel::{FrameNumber, PageFlags};
use crate::process::{self, FrameOwner, FrameRecord, Machine, RecordParts};
use crate::report::{Fact, FilePage, KernelRecord};

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
        Ok(record) => describe_record(machine, &record, flags),
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

/// Fails if the records do not give these facts here.
pub(super) fn require(machine: &Machine, need: Facts) -> Fact<()> {
    let mut parts = RecordParts::FOLIO | RecordParts::REFERENCES;
    parts.set(RecordParts::PINS, need.contains(Facts::PINS));
    Ok(machine.require_records(parts)?)
}

/// Records that are read together: as many as a processor keeps near it.
const AT_ONCE: usize = 1024;

/// Who holds the frames from `first` on, as far as these facts need it. Returns how many frames were looked at.
pub(super) fn read_holders(
    machine: &Machine,
    first: FrameNumber,
    need: Facts,
    into: &mut [Option<FrameHolders>],
) -> process::Result<usize> {
    let some = RecordParts::FOLIO | RecordParts::REFERENCES;
    let parts = if need.contains(Facts::PINS) { RecordParts::all() } else { some };
    let mut records = vec![FrameRecord::default(); into.len().min(AT_ONCE)];
    let mut at = first;
    for part in into.chunks_mut(AT_ONCE) {
        records.truncate(part.len());
        machine.frame_records(at, parts, &mut records)?;
        for (holders, record) in part.iter_mut().zip(&records) {
            *holders = FrameHolders::of(record);
        }
        at = at.checked_add(part.len() as u64).unwrap_or(at);
    }
    Ok(into.len())
}

/// What the record says in words and numbers.
fn describe_record(machine: &Machine, record: &FrameRecord, flags: Option<PageFlags>) -> KernelRecord {
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
    let holders = holders.map(|holders| with_pins(holders, pins.as_ref().map_or(0, |&pins| pins), is_large));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{AddressSpace, Pins};
    use crate::process::fake::{HUGE, World, region};
    use std::collections::HashMap;

    fn anonymous(order: u8, references: u32, pins: Option<u32>) -> FrameRecord {
        let mut record = FrameRecord::default();
        (record.order, record.references, record.mappings, record.pins) =
            (Some(order), Some(references), Some(1), pins);
        (record.flags, record.owner) = (Some(PageFlags::empty()), Some(FrameOwner::Anonymous));
        record
    }

    /// Pages of each kind, with frames that are not in the order of the pages.
    #[test]
    fn a_sweep_has_the_holders_of_each_page() {
        let mut world = World::new([region(HUGE, 2 * HUGE)]);
        world.maps_huge(HUGE, 8 * HUGE);
        let small = [(0x900, 1025, None), (0x700, 1, None), (0x704, 3000, None), (0x703, 2, None)];
        let mut records: HashMap<u64, FrameRecord> =
            (8 * HUGE..9 * HUGE).map(|frame| (frame, anonymous(9, 4, Some(3)))).collect();
        for (at, (frame, references, pins)) in (0..).zip(small) {
            world.maps(2 * HUGE + at, 1, frame);
            records.insert(frame, anonymous(0, references, pins));
        }
        // Its record is not shown.
        world.maps(2 * HUGE + 10, 1, 0x705);
        let (_, target) = World { records: Some(records), ..world }.target();
        let space = AddressSpace::of(&target).expect("a space");
        let seen = |need: Facts| {
            let mut seen = Vec::new();
            let mut pages = space.pages(&space.spans(), need);
            while let Some(chunk) = pages.next().expect("a sweep") {
                let frames = chunk.pages().filter(|page| page.frame().is_some());
                seen.extend(frames.map(|page| (page.pages, page.holders)));
            }
            seen
        };
        let brief = |(pages, holders): &(u64, Option<FrameHolders>)| {
            let numbers = holders.map(|one| (one.references, one.pins, one.holders().map(|holders| holders.others)));
            (*pages, numbers)
        };
        let pinned: Vec<_> = seen(Facts::PINS | Facts::REFERENCES).iter().map(brief).collect();
        let expected = [
            (HUGE, Some((4, Pins::Exactly(3), Some(0)))),
            (1, Some((1025, Pins::Exactly(1), Some(0)))),
            (1, Some((1, Pins::Exactly(0), Some(0)))),
            (1, Some((3000, Pins::AtMost(2), Some(2999)))),
            (1, Some((2, Pins::Exactly(0), Some(1)))),
            (1, None),
        ];
        assert_eq!(pinned, expected);
        let references: Vec<_> = seen(Facts::REFERENCES).iter().map(|(_, one)| one.map(|one| one.references)).collect();
        assert_eq!(references, [Some(4), Some(1025), Some(1), Some(3000), Some(2), None]);
        let may_be = seen(Facts::PINS).iter().map(|(_, one)| one.and_then(FrameHolders::is_pinned)).collect::<Vec<_>>();
        assert_eq!(may_be, [Some(true), Some(true), Some(false), Some(true), Some(false), None]);
    }
}
