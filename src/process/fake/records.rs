//! The kernel's records of frames in a fake world.

use super::none;
use super::source::FakeSource;
use super::{MapperPages, PAGE, World, region};
use crate::access::{Error, Identity, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Region, SwapEntry, TableEntry, VirtualAddress};
use crate::records::{FrameRecord, Meanwhile, OwnerDetail, RecordParts, RecordedMapper, RecordedPage, SwappedRange};
use crate::source::{KernelRecords, RecordsOf};

impl KernelRecords for FakeSource {
    fn frames(&self, first: u64, _: RecordParts, into: &mut [FrameRecord]) -> Result<()> {
        self.require_records(RecordsOf::Frames(RecordParts::all()))?;
        for (frame, record) in (first..).zip(into) {
            let known = self.0.records.as_ref().and_then(|records| records.get(&frame));
            *record = known.copied().unwrap_or_default();
        }
        Ok(())
    }

    fn mappers(&self, frame: u64, meanwhile: Meanwhile<'_>, budget: &mut Budget) -> Result<Vec<RecordedMapper>> {
        mappers(&self.0, frame, meanwhile, budget)
    }

    fn owner_detail(&self, frame: u64) -> Result<Option<OwnerDetail>> {
        Ok(self.0.owners.get(&frame).cloned())
    }

    fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()> {
        self.require_records(RecordsOf::PageTables)?;
        for (page, entry) in (first..).zip(into) {
            *entry = self.0.tables.as_ref().and_then(|tables| tables.get(&page)).copied();
        }
        Ok(())
    }

    fn slots(&self, region: &Region, range: AddressRange, _: &mut Budget) -> Result<Vec<SwappedRange>> {
        self.require_records(RecordsOf::Slots)?;
        if self.0.slots_fail {
            return none();
        }
        assert_eq!(region.range.intersection(range), Some(range));
        let pages = range.start().get() / PAGE..range.end().get() / PAGE;
        let slots = self.0.slots.iter().flat_map(|slots| slots.range(pages.clone()));
        let mut ranges: Vec<SwappedRange> = Vec::new();
        for (&page, &slot) in slots {
            let [start, end] = [page, page + 1].map(|page| VirtualAddress::new(page * PAGE));
            let follows = |last: &SwappedRange| {
                let next = SwapEntry { offset: last.slot.offset + last.range.len() / PAGE, ..last.slot };
                last.range.end() == start && next == slot
            };
            let (start, slot) = match ranges.pop_if(|last| follows(last)) {
                Some(last) => (last.range.start(), last.slot),
                None => (start, slot),
            };
            ranges.push(SwappedRange::new(AddressRange::new(start, end).expect("pages"), slot));
        }
        Ok(ranges)
    }
}

/// Returns the mappings of a frame by the records of `machine`.
fn mappers(machine: &World, frame: u64, meanwhile: Meanwhile<'_>, budget: &mut Budget) -> Result<Vec<RecordedMapper>> {
    let Some(mappers) = machine.mappers.as_ref().and_then(|mappers| mappers.get(&frame)) else {
        return Err(Error::not_available("the mappers of this frame"));
    };
    // The region and the frame by `maps` and the page map of the process.
    let known = |pid, page: u64| {
        let mut all = machine.processes.iter();
        let world = all.find_map(|(one, world)| world.as_ref().filter(|_| one.pid == pid))?;
        let address = VirtualAddress::new(page * PAGE);
        let regions = world.regions.lock().expect("a lock");
        let region = regions.iter().find(|one| one.range.contains(address))?;
        let kind = u64::from(region.permissions.write) << 32 | region.inode;
        let is_mapped = world.entries.get(&page).is_some_and(|entry| entry & ((1 << 55) - 1) == frame);
        Some(RecordedPage::new(address, is_mapped, region, Some(kind).filter(|_| machine.mapper_kinds)))
    };
    let unknown = |page| RecordedPage::new(VirtualAddress::new(page * PAGE), false, &region(page, 1), None);
    let mapper = |(pid, pages): &MapperPages| {
        budget.go_on()?;
        let process = Identity { pid: *pid, start_time: World::new([]).start_time, name: "fake".into() };
        let pages = pages.iter().map(|&page| known(*pid, page).unwrap_or_else(|| unknown(page)));
        Ok(RecordedMapper::new(process, pages.collect()))
    };
    let mut mappers: Vec<RecordedMapper> = mappers.iter().map(mapper).collect::<Result<_>>()?;
    if meanwhile(&mappers) {
        let world = |pid| machine.processes.iter().find(|(one, _)| one.pid == pid).and_then(|one| one.1.as_ref());
        mappers.retain(|mapper| world(mapper.process.pid).is_some_and(|world| !world.is_exited()));
    }
    Ok(mappers)
}
