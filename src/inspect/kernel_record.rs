//! What the kernel's own record of a frame says: who holds the frame, and how often it is pinned.

use super::holders::{FrameHolders, holders, not_shown, small_page_pins, with_pins};
use super::page::Evidence;
use crate::kernel::{FrameNumber, Name, PageFlags};
use crate::process::{self, FrameOwner, FrameRecord, Machine, OwnerDetail, PageOfFile, RecordParts};
use crate::report::{Fact, FilePage, FreeBlock, KernelRecord, Reason, RecordedOwner, SlabPage};

/// Why a frame has no flags if there is no such memory.
pub(super) const BEYOND_MEMORY: Reason = Reason::NotApplicable("the frame number is beyond physical memory");

/// The record of a frame with these flags; `None` where the kernel's records cannot be read, and for a frame that is no
/// memory. Pins of large folios are read only where there are such: the first time, pmdb pins a page of its own.
pub fn kernel_record(machine: &Machine, frame: FrameNumber, flags: &Fact<PageFlags>) -> Option<KernelRecord> {
    let is_memory = match flags {
        Ok(flags) => !flags.contains(PageFlags::NOPAGE),
        // Memory of devices has none.
        Err(reason) => *reason != BEYOND_MEMORY,
    };
    if !is_memory {
        return None;
    }
    let flags = flags.as_ref().ok().copied();
    machine.require_records(RecordParts::FOLIO).ok()?;
    let read = |parts: RecordParts| {
        let mut record = [FrameRecord::default()];
        machine.frame_records(frame, parts, &mut record)?;
        Fact::Ok(record[0])
    };
    let mut record = read(RecordParts::all() - RecordParts::PINS);
    if let Ok(FrameRecord { order: Some(1..), .. }) = record {
        record = read_settled(|| read(RecordParts::all()), is_settled);
    }
    Some(match record {
        Ok(record) => {
            let mut described = describe_record(machine, &record, flags);
            add_detail(machine, frame, record.owner, &mut described);
            described
        }
        Err(reason) => KernelRecord {
            references: Err(reason.clone()),
            holders: Err(reason.clone()),
            pins: Err(reason.clone()),
            pins_at_most: None,
            owner: Err(reason),
            file_page: None,
            free_block: None,
            slab: None,
        },
    })
}

/// How often numbers are read that change meanwhile.
const TRIES: u32 = 3;

/// What two reads in a row agree on. A fork adds to the references of a huge page and to its mappings one by one:
/// between them they do not belong together.
fn read_settled<T>(read: impl Fn() -> Fact<T>, is_settled: impl Fn(&T, &T) -> bool) -> Fact<T> {
    let mut before = read()?;
    for _ in 0..TRIES {
        let again = read()?;
        if is_settled(&before, &again) {
            return Ok(again);
        }
        before = again;
    }
    Err(Reason::Changed)
}

fn is_settled(one: &FrameRecord, other: &FrameRecord) -> bool {
    let numbers = |record: &FrameRecord| (record.order, record.references, record.mappings, record.pins);
    numbers(one) == numbers(other)
}

/// Adds what the record leads to: the file, the free block, the cache or the page pool. What of it is unknown has the
/// reason.
fn add_detail(machine: &Machine, frame: FrameNumber, owner: Option<FrameOwner>, record: &mut KernelRecord) {
    use RecordedOwner::{File, Free, PagePool, Slab, Unrecorded};
    if !matches!(record.owner, Ok(File | Free | Slab | Unrecorded)) {
        return;
    }
    let detail = match machine.owner_detail(frame) {
        Ok(Some(detail)) => Ok(detail),
        Ok(None) => Err(Reason::Changed),
        Err(error) => Err(Reason::from(error)),
    };
    let reason = detail.as_ref().err().cloned().unwrap_or(Reason::Changed);
    let why = || reason.clone();
    match (owner, &record.owner, detail.ok()) {
        (Some(FrameOwner::File(page)), _, detail) => {
            let file = match detail {
                Some(OwnerDetail::File(named)) if named.file == (PageOfFile { index: 0, ..page }) => Some(named),
                _ => None,
            };
            record.file_page = Some(FilePage {
                device: page.device,
                inode: page.inode,
                index: page.index,
                deleted: file.as_ref().is_some_and(|file| file.is_deleted),
                filesystem: file.as_ref().map(|file| Name::copied(&file.filesystem)).ok_or_else(why),
                path: file.ok_or_else(why).and_then(|file| file.path.map(Name::new).ok_or(NO_NAME)),
            });
        }
        (_, Ok(Unrecorded), Some(OwnerDetail::PagePool)) => record.owner = Ok(PagePool),
        (_, Ok(Unrecorded), _) => {}
        (_, Ok(Free), detail) => {
            let block = if let Some(OwnerDetail::Free(block)) = detail { Some(block) } else { None };
            record.free_block = Some(FreeBlock {
                order: block.map(|block| block.order).ok_or_else(why),
                head: block.map(|block| block.first).ok_or_else(why),
            });
        }
        (.., detail) => {
            let cache = if let Some(OwnerDetail::Slab(cache)) = detail { Some(cache) } else { None };
            record.slab = Some(SlabPage {
                object_bytes: cache.as_ref().map(|cache| cache.object_bytes.into()).ok_or_else(why),
                cache: cache.map(|cache| Name::new(cache.name)).ok_or_else(why),
            });
        }
    }
}

const NO_NAME: Reason = Reason::NotApplicable("the kernel has no name of the file in memory");

/// Fails if the records do not give these facts here.
pub(super) fn require(machine: &Machine, need: Evidence) -> Fact<()> {
    let mut parts = RecordParts::FOLIO | RecordParts::REFERENCES;
    parts.set(RecordParts::PINS, need.contains(Evidence::PINS));
    Ok(machine.require_records(parts)?)
}

/// Records that are read together: as many as a processor keeps near it.
const AT_ONCE: usize = 1024;

/// Who holds the frames from `first` on, as far as these facts need it. Returns how many frames were looked at.
pub(super) fn read_holders(
    machine: &Machine,
    first: FrameNumber,
    need: Evidence,
    into: &mut [Option<FrameHolders>],
) -> process::Result<usize> {
    let some = RecordParts::FOLIO | RecordParts::REFERENCES;
    let parts = if need.contains(Evidence::PINS) { RecordParts::all() } else { some };
    let mut records = vec![FrameRecord::default(); into.len().min(AT_ONCE)];
    let mut at = first;
    for part in into.chunks_mut(AT_ONCE) {
        records.truncate(part.len());
        machine.frame_records(at, parts, &mut records)?;
        for ((holders, record), frame) in part.iter_mut().zip(&records).zip(at.get()..) {
            let again = || {
                let mut record = [FrameRecord::default()];
                machine.frame_records(FrameNumber::new(frame), parts, &mut record)?;
                Fact::Ok(record[0])
            };
            *holders = match record.order {
                Some(1..) => again().and_then(|second| {
                    if is_settled(record, &second) { Ok(second) } else { read_settled(again, is_settled) }
                }),
                _ => Ok(*record),
            }
            .ok()
            .and_then(|record| FrameHolders::of(&record));
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
    let has = |flag| flags.is_some_and(|flags| flags.contains(flag));
    let owner = record.owner.map(|owner| match owner {
        FrameOwner::Anonymous => RecordedOwner::Anonymous,
        FrameOwner::Merged => RecordedOwner::Merged,
        FrameOwner::File(_) => RecordedOwner::File,
        _ if has(PageFlags::BUDDY) => RecordedOwner::Free,
        _ if has(PageFlags::SLAB) => RecordedOwner::Slab,
        _ if has(PageFlags::PGTABLE) => RecordedOwner::PageTable,
        _ if has(PageFlags::HUGE) => RecordedOwner::HugetlbPool,
        _ => RecordedOwner::Unrecorded,
    });
    let owner = require(RecordParts::OWNER).and_then(|()| owner.ok_or_else(not_shown));
    KernelRecord { references, holders, pins, pins_at_most, owner, file_page: None, free_block: None, slab: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{AddressSpace, Pins};
    use crate::kernel::Device;
    use crate::process::fake::{HUGE, World, region};
    use crate::process::{NamedFile, SlabCache};
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
        let seen = |need: Evidence| {
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
        let pinned: Vec<_> = seen(Evidence::PINS | Evidence::REFERENCES).iter().map(brief).collect();
        let expected = [
            (HUGE, Some((4, Pins::Exactly(3), Some(0)))),
            (1, Some((1025, Pins::AtMost(1), Some(1024)))),
            (1, Some((1, Pins::Exactly(0), Some(0)))),
            (1, Some((3000, Pins::AtMost(2), Some(2999)))),
            (1, Some((2, Pins::Exactly(0), Some(1)))),
            (1, None),
        ];
        assert_eq!(pinned, expected);
        let references: Vec<_> =
            seen(Evidence::REFERENCES).iter().map(|(_, one)| one.map(|one| one.references)).collect();
        assert_eq!(references, [Some(4), Some(1025), Some(1), Some(3000), Some(2), None]);
        let may_be =
            seen(Evidence::PINS).iter().map(|(_, one)| one.and_then(FrameHolders::is_pinned)).collect::<Vec<_>>();
        assert_eq!(may_be, [Some(true), None, Some(false), None, Some(false), None]);
    }

    /// A fork adds references first, and mappings after them.
    #[test]
    fn numbers_in_the_middle_of_a_change_are_read_again() {
        let reads = |numbers: &'static [u32]| {
            let next = std::cell::Cell::new(0);
            let read = || Ok(numbers[next.replace((next.get() + 1).min(numbers.len() - 1))]);
            read_settled(read, |one, other| one == other)
        };
        assert_eq!(reads(&[250, 250]), Ok(250));
        assert_eq!(reads(&[133, 250, 513, 513]), Ok(513));
        assert_eq!(reads(&[1, 2, 3, 4, 5, 6]), Err(Reason::Changed));
    }

    /// The file, the free block or the slab cache is shown only if the record still has that owner.
    #[test]
    fn owners_have_what_their_records_lead_to() {
        let page = PageOfFile { device: Device { major: 8, minor: 1 }, inode: 77, index: 5 };
        let file = |inode| {
            let file = PageOfFile { inode, index: 0, ..page };
            let (path, filesystem) = (Some(b"/a\x1b".to_vec()), b"sda1".to_vec());
            OwnerDetail::File(NamedFile { file, path, filesystem, is_deleted: true })
        };
        let block = process::FreeBlock { first: FrameNumber::new(0x800), order: 4 };
        let cache = SlabCache { name: b"dentry".to_vec(), object_bytes: 192 };
        let record_of = |owner, flags: PageFlags, detail: Option<OwnerDetail>| {
            let mut record = anonymous(0, 1, None);
            record.owner = Some(owner);
            let mut world = World::new([]);
            world.records = Some([(0x805, record)].into());
            world.owners.extend(detail.map(|detail| (0x805, detail)));
            let (_, target) = world.target();
            kernel_record(&target.machine, FrameNumber::new(0x805), &Ok(flags)).expect("a record")
        };
        let of_file = |detail| {
            let record = record_of(FrameOwner::File(page), PageFlags::UPTODATE, detail);
            let file = record.file_page.expect("a page of a file");
            assert_eq!((record.owner, file.inode, file.index), (Ok(RecordedOwner::File), 77, 5));
            (file.path.map(|path| path.to_string()), file.filesystem.map(|name| name.to_string()), file.deleted)
        };
        assert_eq!(of_file(Some(file(77))), (Ok("/a\\x1b".to_owned()), Ok("sda1".to_owned()), true));
        for other in [None, Some(file(78)), Some(OwnerDetail::Free(block))] {
            assert_eq!(of_file(other), (Err(Reason::Changed), Err(Reason::Changed), false));
        }
        let free = |detail| {
            let record = record_of(FrameOwner::Unrecorded, PageFlags::BUDDY, detail);
            let block = record.free_block.expect("a free block");
            (record.owner, block.order, block.head.map(FrameNumber::get))
        };
        assert_eq!(free(Some(OwnerDetail::Free(block))), (Ok(RecordedOwner::Free), Ok(4), Ok(0x800)));
        assert_eq!(free(None), (Ok(RecordedOwner::Free), Err(Reason::Changed), Err(Reason::Changed)));
        let slab = |detail| {
            let record = record_of(FrameOwner::Unrecorded, PageFlags::SLAB, detail);
            let slab = record.slab.expect("a slab");
            (record.owner, slab.cache.map(|name| name.to_string()), slab.object_bytes)
        };
        assert_eq!(slab(Some(OwnerDetail::Slab(cache))), (Ok(RecordedOwner::Slab), Ok("dentry".to_owned()), Ok(192)));
        assert_eq!(slab(None), (Ok(RecordedOwner::Slab), Err(Reason::Changed), Err(Reason::Changed)));
        let without = |flags| {
            let record = record_of(FrameOwner::Unrecorded, flags, Some(file(77)));
            assert!(record.file_page.is_none() && record.free_block.is_none() && record.slab.is_none());
            record.owner
        };
        let pool = |owner, flags| record_of(owner, flags, Some(OwnerDetail::PagePool)).owner;
        assert_eq!(pool(FrameOwner::Unrecorded, PageFlags::empty()), Ok(RecordedOwner::PagePool));
        assert_eq!(pool(FrameOwner::Unrecorded, PageFlags::PGTABLE), Ok(RecordedOwner::PageTable));
        assert_eq!(pool(FrameOwner::Anonymous, PageFlags::empty()), Ok(RecordedOwner::Anonymous));
        assert_eq!(without(PageFlags::PGTABLE), Ok(RecordedOwner::PageTable));
        assert_eq!(without(PageFlags::HUGE), Ok(RecordedOwner::HugetlbPool));
        assert_eq!(without(PageFlags::empty()), Ok(RecordedOwner::Unrecorded));
    }
}
