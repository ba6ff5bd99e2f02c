//! The entries of the page tables of a process, as far as its page map has the same frames.

use crate::kernel::{FrameNumber, PageMapEntry, TableEntry};
use crate::process::{RecordParts, Target};
use crate::report::{Fact, Reason};

/// Fails if the page tables of the process cannot be read here.
pub(super) fn require(target: &Target) -> Fact<()> {
    target.machine.require_records(RecordParts::FOLIO)?;
    Ok(target.process.require_table_entries()?)
}

/// The entry that maps the page with this index; `None` if nothing does, and where the kernel's records cannot be read.
/// `is_hidden`: the page map does not show what is mapped there.
pub(super) fn table_entry(
    target: &Target,
    page: u64,
    entry: PageMapEntry,
    is_hidden: bool,
) -> Option<Fact<TableEntry>> {
    target.machine.require_records(RecordParts::FOLIO).ok()?;
    let read = || {
        target.process.require_table_entries()?;
        let mut found = [None];
        target.process.table_entries(page, &mut found)?;
        Fact::Ok(found[0])
    };
    match (read(), entry.frame()) {
        (Ok(Some(found)), None) if is_hidden => Some(Ok(found)),
        (Ok(Some(found)), frame) if frame == Some(found.frame) => Some(Ok(found)),
        (Ok(None), Some(_)) if entry.is_present() => Some(Err(Reason::NotApplicable(UNUSED))),
        (Ok(None), None) => None,
        (Ok(_), _) => Some(Err(Reason::Changed)),
        (Err(_), None) => None,
        (Err(reason), Some(_)) => Some(Err(reason)),
    }
}

/// On arm64 such an entry is not told from one of swap.
const UNUSED: &str = "the processor does not use the entry: nobody may access the page now";

/// The same entry, if it maps this frame.
pub(super) fn confirmed(found: Option<TableEntry>, frame: Option<FrameNumber>) -> Option<TableEntry> {
    found.filter(|found| frame == Some(found.frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{AddressSpace, Evidence};
    use crate::kernel::{TableBits, VirtualAddress};
    use crate::process::fake::{HUGE, PAGE, World, region};
    use std::collections::HashMap;

    const READ: TableBits = TableBits::PRESENT.union(TableBits::USER).union(TableBits::ACCESSED);
    const WRITTEN: TableBits = READ.union(TableBits::WRITE).union(TableBits::DIRTY);

    fn entry(level: u8, frame: u64, bits: TableBits) -> TableEntry {
        TableEntry { level, bits, protection_key: None, frame: FrameNumber::new(frame) }
    }

    /// A huge page, four small ones, and one whose entry has changed since the page map was read.
    fn world() -> World {
        let mut world = World::new([region(HUGE, 2 * HUGE)]);
        world.maps_huge(HUGE, 8 * HUGE);
        let mut tables: HashMap<u64, TableEntry> =
            (0..HUGE).map(|at| (HUGE + at, entry(2, 8 * HUGE + at, WRITTEN))).collect();
        world.maps(2 * HUGE, 6, 0x900);
        for (at, bits) in (0..).zip([READ, READ, WRITTEN, READ - TableBits::ACCESSED]) {
            tables.insert(2 * HUGE + at, entry(1, 0x900 + at, bits));
        }
        tables.insert(2 * HUGE + 4, entry(1, 0x777, READ));
        World { records: Some(HashMap::new()), tables: Some(tables), ..world }
    }

    #[test]
    fn a_sweep_has_the_bits_of_pages_whose_frames_agree() {
        let (_, target) = world().target();
        let space = AddressSpace::of(&target).expect("a space");
        space.require(Evidence::TABLES).expect("tables");
        let mut seen = Vec::new();
        let mut pages = space.pages(&space.spans(), Evidence::TABLES);
        while let Some(chunk) = pages.next().expect("a sweep") {
            let mapped = chunk.pages().filter(|page| page.frame().is_some());
            seen.extend(mapped.map(|page| (page.pages, page.table)));
        }
        let rest = [(2, Some(READ)), (1, Some(WRITTEN)), (1, Some(READ - TableBits::ACCESSED)), (2, None)];
        let huge: u64 = seen.iter().take_while(|(_, bits)| *bits == Some(WRITTEN)).map(|(pages, _)| pages).sum();
        assert_eq!(huge, HUGE);
        assert_eq!(seen.get(seen.len() - 4..), Some(&rest[..]));
    }

    #[test]
    fn the_entry_of_a_page_has_its_frame_or_a_reason() {
        let (_, target) = world().target();
        let space = AddressSpace::of(&target).expect("a space");
        let at = |page: u64| space.detail(VirtualAddress::new(page * PAGE)).expect("a page").table_entry;
        assert_eq!(at(2 * HUGE + 2), Some(Ok(entry(1, 0x902, WRITTEN))));
        assert_eq!(at(HUGE + 5), Some(Ok(entry(2, 8 * HUGE + 5, WRITTEN))));
        assert_eq!(at(2 * HUGE + 4), Some(Err(Reason::Changed)));
        assert_eq!(at(2 * HUGE + 5), Some(Err(Reason::NotApplicable(UNUSED))));
        assert_eq!(at(2 * HUGE + 7), None);
        // Where the records can be read, but the tables not.
        let (_, target) = World { tables: None, ..world() }.target();
        let space = AddressSpace::of(&target).expect("a space");
        let detail = space.detail(VirtualAddress::new(2 * HUGE * PAGE)).expect("a page");
        assert!(matches!(detail.table_entry, Some(Err(Reason::NotOnThisKernel(_)))), "{:?}", detail.table_entry);
        assert!(space.require(Evidence::TABLES).is_err());
        let (_, target) = World { records: None, ..world() }.target();
        let space = AddressSpace::of(&target).expect("a space");
        assert_eq!(space.detail(VirtualAddress::new(2 * HUGE * PAGE)).expect("a page").table_entry, None);
    }
}
