//! Queries of regions by PROCMAP_QUERY (Linux 6.11), without reading the list of all regions.

use super::target_process::Process;
use super::{core_notes, maps_text};
use crate::access::Result;
use crate::kernel::{AddressRange, Device, Permissions, Region, VirtualAddress, maps};
use crate::source::{Answer, Mapping, Query};

/// The most regions that are queried one by one, with a system call each. Reading all regions of an ordinary process
/// lasts about as long.
pub const FEW_REGIONS: usize = 32;

impl Process {
    /// Queries the region at `address`. `None` if the kernel has no such query, or its answer is not final: then the
    /// caller needs the text.
    #[doc(hidden)]
    pub fn query_region_at(&self, address: VirtualAddress) -> Result<Option<Option<Region>>> {
        match self.query(Query::At(address))? {
            Answer::Found(mapping) => Ok(Some(self.with_true_name(mapping))),
            // Gate regions are in the text only. They are beyond the page map.
            Answer::Nothing if self.may_be_in_gate(address) => {
                let index = self.page_size().index(address);
                Ok(self.entry(index)?.map(|_| None))
            }
            Answer::Nothing => Ok(Some(None)),
            Answer::Unavailable => Ok(None),
        }
    }

    /// Returns whether a gate region can be at an address: [vsyscall] is 10 MiB below the end of the address space, and
    /// [vectors] of 32-bit ARM in its last 64 KiB. No other architecture has one (`get_gate_vma` in arch/).
    fn may_be_in_gate(&self, address: VirtualAddress) -> bool {
        const GATES: u64 = 16 << 20;
        let end = if self.layout().pointer_bytes == 4 { u64::from(u32::MAX) } else { u64::MAX };
        address.get() > end - GATES
    }

    /// Queries the regions of which a part is in `range`. `None` if the kernel has no query, or there are more than
    /// `most`: then the caller needs the text.
    #[doc(hidden)]
    pub fn query_regions_in(&self, range: AddressRange, most: usize) -> Result<Option<Vec<Region>>> {
        let mut regions = Vec::new();
        let mut from = range.start();
        while from < range.end() {
            match self.query(Query::From(from))? {
                Answer::Found(mapping) if mapping.start >= range.end().get() => break,
                Answer::Found(mapping) => {
                    from = VirtualAddress::new(mapping.end);
                    match self.with_true_name(mapping) {
                        Some(region) if regions.len() < most => regions.push(region),
                        _ => return Ok(None),
                    }
                }
                // Gate regions such as [vsyscall] are in the text only. They are beyond the page map.
                Answer::Nothing => {
                    let last = VirtualAddress::new(range.end().get().saturating_sub(1));
                    return Ok(self.entry(self.page_size().index(last))?.map(|_| regions));
                }
                Answer::Unavailable => return Ok(None),
            }
        }
        Ok(Some(regions))
    }

    /// Queries the regions with the name `[heap]` or `[stack]`. `None` if only the text has them, or there are none.
    #[doc(hidden)]
    pub fn query_regions_called(&self, name: &str) -> Result<Option<Vec<Region>>> {
        let stat = core_notes::stat(&*self.source).ok();
        let Some(start) = stat.and_then(|stat| match name {
            "[heap]" => stat.heap,
            "[stack]" => stat.stack,
            _ => None,
        }) else {
            return Ok(None);
        };
        let mut regions = Vec::new();
        // A region that ends where the stack began is a part of the stack.
        let mut from = start.checked_sub(1).unwrap_or(start);
        for _ in 0..FEW_REGIONS {
            let mapping = match self.query(Query::From(from))? {
                Answer::Found(mapping) => mapping,
                Answer::Nothing => return Ok(Some(regions).filter(|regions| !regions.is_empty())),
                Answer::Unavailable => break,
            };
            from = VirtualAddress::new(mapping.end);
            match self.with_true_name(mapping) {
                Some(region) if region.name.as_bytes() == name.as_bytes() => regions.push(region),
                // Memory without a name begins after the end of the heap (vma_is_initial_heap in include/linux/mm.h).
                Some(region) if region.range.start() > start && (region.name.is_empty() || name == "[stack]") => {
                    return Ok(Some(regions).filter(|regions| !regions.is_empty()));
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(None)
    }

    /// Queries the regions in `range`, and also the next one on each side where `range` does not begin or end inside a
    /// region, because it may grow into `range`.
    #[doc(hidden)]
    pub fn query_regions_around(&self, range: AddressRange, most: usize) -> Result<Option<Vec<Region>>> {
        let Some(mut found) = self.query_regions_in(range, most)? else {
            return Ok(None);
        };
        if found.first().is_none_or(|first| first.range.start() > range.start()) {
            match self.query_region_below(range.start(), u64::MAX)? {
                Some(below) => found.splice(..0, below).for_each(drop),
                None => return Ok(None),
            }
        }
        let end = found.last().map_or(range.end(), |last| last.range.end().max(range.end()));
        if let Answer::Found(mapping) = self.query(Query::From(end))? {
            found.extend(self.with_true_name(mapping));
        }
        // A region may have grown between two queries.
        found.dedup_by(|next, one| next.range.start() < one.range.end());
        Ok(Some(found))
    }

    /// Queries the regions below and above an address outside of all regions. `None` if only the text has them: a gate
    /// region such as [vsyscall] may be above the last.
    #[doc(hidden)]
    pub fn query_neighbours(&self, address: VirtualAddress) -> Result<Option<(Option<Region>, Region)>> {
        let Answer::Found(mapping) = self.query(Query::From(address))? else {
            return Ok(None);
        };
        let Some(above) = self.with_true_name(mapping).filter(|above| above.range.start() > address) else {
            return Ok(None);
        };
        let below = self.query_region_below(address, u64::MAX)?;
        Ok(below.map(|below| (below, above)))
    }

    /// Returns the nearest region below `start`, if fewer than `gap` bytes are between them; the outer `None` is that
    /// of [`query_region_at`](Self::query_region_at). The kernel only searches upwards, so this searches down in steps
    /// that double, and then bisects.
    fn query_region_below(&self, start: VirtualAddress, gap: u64) -> Result<Option<Option<Region>>> {
        let Some(last) = start.get().checked_sub(1).map(VirtualAddress::new) else {
            return Ok(Some(None));
        };
        let page = self.page_size();
        match self.query(Query::From(last))? {
            Answer::Found(mapping) if mapping.start < start.get() => return Ok(self.with_true_name(mapping).map(Some)),
            Answer::Found(_) => {}
            // Gate regions such as [vsyscall] are in the text only. They are beyond the page map.
            Answer::Nothing if self.entry(page.index(last))?.is_some() => {}
            Answer::Nothing | Answer::Unavailable => return Ok(None),
        }
        let lowest = start.get().saturating_sub(gap);
        // The end of the region is above `low` and not above `high`.
        let (mut low, mut high) = (lowest, start.get());
        let mut nearest = None;
        // A narrow gap is mostly empty: one query covers all of it.
        let mut step = if lowest > 0 { gap } else { page.bytes() };
        // Whether to query what follows `nearest`: mostly it is the region at `start`.
        let mut asks_next = true;
        while low < high {
            let from = match nearest {
                None => high.saturating_sub(step).max(low),
                Some(_) if asks_next => low,
                Some(_) => page.floor(VirtualAddress::new(low + (high - low) / 2)).get().max(low),
            };
            step = step.saturating_mul(2);
            match self.query(Query::From(VirtualAddress::new(from)))? {
                Answer::Found(mapping) if mapping.start < start.get() => {
                    low = mapping.end;
                    asks_next = nearest.is_none() || !asks_next;
                    nearest = Some(mapping);
                }
                Answer::Found(_) | Answer::Nothing => high = from,
                Answer::Unavailable => return Ok(None),
            }
        }
        Ok(Some(nearest.and_then(|one| self.with_true_name(one))))
    }

    /// Returns the nearest regions above `address` with less than `gap` bytes between them, the nearest first, at most
    /// `most`. It stops before one for which `ends` is true. `None` if the kernel has no query.
    #[cfg(feature = "symbols")]
    pub(crate) fn nearest_above(
        &self,
        address: VirtualAddress,
        gap: u64,
        most: usize,
        ends: fn(&Region) -> bool,
    ) -> Result<Option<Vec<Region>>> {
        let mut above: Vec<Region> = Vec::new();
        while above.len() < most {
            let end = above.last().map_or(address, |last| last.range.end());
            let next = match self.query(Query::From(end))? {
                Answer::Found(mapping) => self.with_true_name(mapping),
                Answer::Nothing => return Ok(Some(above)),
                Answer::Unavailable => return Ok(None),
            };
            let is_near = |next: &Region| next.range.start().get().saturating_sub(end.get()) < gap && !ends(next);
            match next.filter(is_near) {
                Some(next) => above.push(next),
                None => break,
            }
        }
        Ok(Some(above))
    }

    pub(super) fn with_true_name(&self, mapping: Mapping) -> Option<Region> {
        let mut region = region(mapping)?;
        maps_text::settle_unescaped(&*self.source, &mut region);
        Some(region)
    }

    /// Returns the nearest regions below `address` with less than `gap` bytes between them, the nearest first, at most
    /// `most`. It stops after one for which `ends` is true. `None` if the kernel has no query (before Linux 6.11).
    #[doc(hidden)]
    pub fn nearest_below(
        &self,
        address: VirtualAddress,
        gap: u64,
        most: usize,
        ends: fn(&Region) -> bool,
    ) -> Result<Option<Vec<Region>>> {
        let mut below: Vec<Region> = Vec::new();
        while below.len() < most && !below.last().is_some_and(ends) {
            let start = below.last().map_or(address, |last| last.range.start());
            match self.query_region_below(start, gap)? {
                Some(Some(region)) => below.push(region),
                Some(None) => break,
                None => return Ok(None),
            }
        }
        Ok(Some(below))
    }
}

/// Converts the answer of PROCMAP_QUERY to a region, as its line of `maps` decodes.
fn region(mapping: Mapping) -> Option<Region> {
    let range = AddressRange::new(VirtualAddress::new(mapping.start), VirtualAddress::new(mapping.end))?;
    let (name, deleted) = maps::name(&mapping.name);
    let has = |bit: u64| mapping.flags & bit != 0;
    let (major, minor) = mapping.device;
    Some(Region {
        range,
        permissions: Permissions {
            read: has(1),
            write: has(2),
            execute: has(4),
            shared: has(8),
            sharing_unknown: false,
            is_unknown: false,
        },
        offset: mapping.offset,
        device: Device { major, minor },
        inode: mapping.inode,
        name,
        deleted,
    })
}
