//! Finds where memory and the records of its pages are in the kernel's address space.
//!
//! `/proc/kcore` lists each range of System RAM with its physical address. For each it also lists the range of the
//! records of its pages, without a physical address (`get_sparsemem_vmemmap_info` in fs/proc/kcore.c). No symbol of the
//! kernel is needed.

use super::image::Image;
use super::layout::{Member, PageLayout};
use std::collections::BTreeMap;

/// The kernel addresses of memory and of the records. No value of this type leaves `records`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bases {
    /// The kernel address of physical address 0.
    pub(super) memory: u64,
    /// The kernel address of the record of frame 0.
    pub(super) records: u64,
}

/// Returns the distances between kernel addresses and physical addresses. That of the direct map is among them.
pub(super) fn distances(image: &Image) -> Vec<u64> {
    let ram = image.segments().iter();
    let mut distances: Vec<u64> =
        ram.filter_map(|segment| Some(segment.start.wrapping_sub(segment.physical?))).collect();
    distances.sort_unstable();
    distances.dedup();
    distances
}

/// Returns possible addresses of the record of frame 0, by the ranges of records that fit ranges of memory; the best
/// first.
pub(super) fn record_bases(image: &Image, memory: u64, page_bytes: u64, record: u64) -> Vec<u64> {
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    let floor = |address: u64| address & !(page_bytes - 1);
    for ram in image.segments() {
        let Some(physical) = ram.physical.filter(|&physical| ram.start.wrapping_sub(physical) == memory) else {
            continue;
        };
        let offset = |physical: u64| (physical / page_bytes).saturating_mul(record);
        let (start, end) = (offset(physical), offset(physical.saturating_add(ram.length)));
        let length = floor(end.saturating_add(page_bytes - 1)).saturating_sub(floor(start));
        for records in image.segments().iter().filter(|segment| segment.physical.is_none()) {
            // If ranges overlap in a page, the kernel lists that page once.
            if records.length <= length && records.length.saturating_add(2 * page_bytes) > length {
                *votes.entry(records.start.wrapping_sub(floor(start))).or_default() += 1;
            }
        }
    }
    let mut bases: Vec<(u64, usize)> = votes.into_iter().collect();
    bases.sort_by_cached_key(|&(_, votes)| std::cmp::Reverse(votes));
    bases.into_iter().map(|(base, _)| base).take(MOST_BASES).collect()
}

/// The most places that are tried.
const MOST_BASES: usize = 8;

/// Finds the records by the kernel's table of sections, in both possible forms, one of which is right. Empty if
/// VMCOREINFO does not have the table.
pub(super) fn by_section(image: &Image, layout: &PageLayout, frame: u64, page_bytes: u64) -> Vec<u64> {
    /// The lower bits contain the state of the section (`SECTION_NID_SHIFT` in include/linux/mmzone.h).
    const STATES: u64 = 0x3f;
    let map = |is_sparse: bool| {
        let (size, member) = (layout.section?, layout.at(Member::SectionMap)?);
        let table = image.info("SYMBOL(mem_section)", 16)?;
        let shift = u32::try_from(image.info("NUMBER(SECTION_SIZE_BITS)", 10)?).ok().filter(|&shift| shift < 64)?;
        let section = frame.checked_mul(page_bytes)? >> shift;
        let in_root = page_bytes / size;
        // With CONFIG_SPARSEMEM_EXTREME this is a table of tables.
        let place = if is_sparse {
            image.word(table.checked_add(section / in_root * 8)?)?.checked_add(section % in_root * size)?
        } else {
            table.checked_add(section.checked_mul(size)?)?
        };
        Some(image.word(place.checked_add(member)?)? & !STATES)
    };
    [true, false].into_iter().filter_map(map).collect()
}
