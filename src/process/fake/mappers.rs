//! The mappers of frames, as the kernel's own records would have them.

use super::{MapperPages, PAGE, World, region};
use crate::budget::Budget;
use crate::kernel::VirtualAddress;
use crate::source::{Error, Identity, Meanwhile, RecordedMapper, RecordedPage, Result};

/// Those that `machine` has.
pub(super) fn read(
    machine: &World,
    frame: u64,
    meanwhile: Meanwhile<'_>,
    budget: &mut Budget,
) -> Result<Vec<RecordedMapper>> {
    let Some(mappers) = machine.mappers.as_ref().and_then(|mappers| mappers.get(&frame)) else {
        return Err(Error::not_available("the mappers of this frame"));
    };
    // As `maps` and the page map of the process have it.
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
