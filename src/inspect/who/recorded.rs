//! Many mappings, found by the kernel's records alone: all page-table entries are read, then the map count, then all
//! entries again. Of each kind of region, one mapping is checked in `/proc`. The regions of the other mappings differ
//! from it only in their ranges.

use super::scan::FrameScanner;
use super::visit::{asks_regions, open};
use crate::budget::Budget;
use crate::inspect::frames::count_of;
use crate::inspect::{Error, Result};
use crate::kernel::Region;
use crate::process::{Machine, ProcessHandle, RecordedMapper, RecordedPage};
use std::collections::HashMap;
use std::sync::Arc;

/// The fewest mappings for this way. Fewer are each read in `/proc`.
const MANY: usize = 16;
/// The fewest mappings of each kind on average. With fewer, it takes no longer to read each in `/proc`.
const OF_A_KIND: usize = 4;
/// The most attempts: the two readings may differ, as processes start and end.
const TRIES: u32 = 3;

/// One region of each kind, by the number of the kind.
pub type Kinds = HashMap<u64, KnownRegion>;

/// A region, and all regions of its process if memory without a file may have a symbol in it. Processes that share such
/// memory at one address do so since a fork, and so the symbol is the same.
pub struct KnownRegion {
    pub region: Region,
    pub regions: Option<Arc<[Region]>>,
}

/// Reads the mappings of one frame.
pub struct RecordReader<'a> {
    pub machine: &'a Arc<Machine>,
    pub scanner: FrameScanner,
    /// Whether PROCMAP_QUERY may be used.
    pub scan: bool,
    /// The limit of the search. With one, a few mappings are read in `/proc`.
    pub limit: Option<u64>,
}

impl RecordReader<'_> {
    /// Returns the processes that may map the frame. It also returns a region of each kind if the mappings are many,
    /// proved to be there, and all that the kernel counts.
    pub fn read(&self, budget: &mut Budget) -> Result<(Vec<RecordedMapper>, Option<Kinds>)> {
        let frame = self.scanner.frame;
        let mut mappers = Vec::new();
        for _ in 0..TRIES {
            let mut of_kinds = budget.clone();
            let (mut kinds, mut counted) = (Ok(None), None);
            let mut prove = |found: &[RecordedMapper]| {
                kinds = self.kinds(found, &mut of_kinds);
                let is_proved = matches!(kinds, Ok(Some(_)));
                counted = count_of(self.machine, frame).ok().filter(|&all| is_proved && all == count(found));
                counted.is_some()
            };
            mappers = self.machine.mappers(frame, &mut prove, budget)?;
            match kinds? {
                Some(kinds) if counted == Some(count(&mappers)) => return Ok((mappers, Some(kinds))),
                Some(_) => {}
                None => break,
            }
        }
        Ok((mappers, None))
    }

    /// Returns a region of each kind from `/proc`; `None` if the mappings are few or of too many kinds, or if `/proc`
    /// shows something else.
    fn kinds(&self, mappers: &[RecordedMapper], budget: &mut Budget) -> Result<Option<Kinds>> {
        let pages = || mappers.iter().flat_map(|mapper| mapper.pages.iter().map(move |page| (mapper, page)));
        let numbers = pages().map(|(_, page)| page.kind.filter(|_| page.is_mapped)).collect::<Option<Vec<u64>>>();
        let Some(mut numbers) = numbers.filter(|all| self.limit.is_none() && all.len() >= MANY) else {
            return Ok(None);
        };
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        if count < OF_A_KIND * numbers.len() {
            return Ok(None);
        }
        let mut kinds = Kinds::new();
        for (mapper, page) in pages() {
            let Some(kind) = page.kind else { continue };
            let is_known = |kind: &KnownRegion| kind.regions.is_none() || kind.region.range == page.range;
            match kinds.get(&kind) {
                Some(known) if is_known(known) => continue,
                Some(_) => return Ok(None),
                None => budget.go_on()?,
            }
            match self.region(mapper, page, budget) {
                Ok(Some(region)) => _ = kinds.insert(kind, region),
                Ok(None) | Err(Error::Target(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(kinds))
    }

    /// Returns the region of a recorded page, if `/proc` shows the same region.
    fn region(&self, mapper: &RecordedMapper, page: &RecordedPage, budget: &Budget) -> Result<Option<KnownRegion>> {
        let target = open(self.machine, &ProcessHandle::of_numbers(mapper.process.pid, 0), self.scan, budget)?;
        let process = &target.process;
        if process.identity() != mapper.process || !self.scanner.is_at(process, page.address)? {
            return Ok(None);
        }
        let region = process.region_at(page.address)?;
        let is_same = |one: &Region| (one.range, one.permissions) == (page.range, page.permissions);
        let Some(region) = region.filter(is_same) else {
            return Ok(None);
        };
        let regions = match asks_regions(&region, &target) {
            // JIT-compiled code has different names in each process.
            true if region.permissions.execute => return Ok(None),
            true => Some(process.regions()?.into()),
            false => None,
        };
        Ok(Some(KnownRegion { region, regions }))
    }
}

/// Returns the number of pages of all mappers.
fn count(mappers: &[RecordedMapper]) -> u64 {
    mappers.iter().map(|mapper| mapper.pages.len() as u64).sum()
}
