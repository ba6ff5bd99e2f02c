//! `capture FILE with memory`: the resident memory.

use super::super::floor::Error;
use crate::budget::Budget;
use crate::inspect::{ResidentMemory, is_resident};
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, Region};
use crate::process::Member;

/// What a capture with memory begins with.
pub(super) const MEMORY_WARNING: &str =
    "the file will contain memory of the process, with the passwords and keys that are in it";

/// Memory in a capture.
#[derive(Clone, Copy, Default)]
pub(super) struct MemoryCounts {
    pub(super) bytes: u64,
    pub(super) unread: u64,
    pub(super) left_out: u64,
}

impl MemoryCounts {
    /// Writes the resident memory. Regions that the program excludes from core files are left out, unless `all` are
    /// wanted.
    pub(super) fn keep(
        &mut self,
        member: &Member,
        ranges: Option<&[AddressRange]>,
        all: bool,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        let target = &member.process;
        let smaps = if all { Vec::new() } else { target.process.smaps(budget)? };
        for (region, range) in parts_of(&target.process.regions_within(budget)?, ranges) {
            if Smaps::at(&smaps, region.range.start()).is_some_and(|found| found.has_flag("dd")) {
                self.left_out += u64::from(is_resident(target, range)?);
                continue;
            }
            let mut memory = ResidentMemory::of(target, range)?;
            self.bytes += memory.for_each(budget, |start, bytes| member.keep_memory(start, bytes))?;
            self.unread += memory.unread.changed + memory.unread.unreadable;
        }
        Ok(())
    }
}

/// The parts of regions in `ranges`, or all of them.
fn parts_of<'r>(
    regions: &'r [Region],
    ranges: Option<&[AddressRange]>,
) -> impl Iterator<Item = (&'r Region, AddressRange)> {
    regions.iter().flat_map(move |region| {
        let wanted = ranges.unwrap_or(std::slice::from_ref(&region.range));
        let parts: Vec<AddressRange> = wanted.iter().filter_map(|range| range.intersection(region.range)).collect();
        parts.into_iter().map(move |part| (region, part))
    })
}
