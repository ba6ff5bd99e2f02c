//! Looking for a frame in one process.

use super::crew::Check;
use crate::inspect::Result;
use crate::kernel::{AddressRange, FrameNumber, PageMapEntry, PageSize, VirtualAddress};
use crate::report::Stopped;
use crate::target::{Categories, Process};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Entries of one read: 64 KiB.
const BATCH: usize = 8192;
/// Pages that are read at once, with those between them: 4 KiB of entries, sooner read than a second system call is made.
const NEAR: usize = 512;
/// Pages without anything that are read along between two stretches: half as long as a second system call takes.
const GAP: u64 = 64;
/// Neighbours that map the frame, found in one process: so many are told of before more are looked for.
const MANY: usize = 256;
/// Entries that may be read before what was found is told of.
const FAR: u64 = 1 << 18;

/// Pages of a process, by their first bytes.
pub type Places = BTreeSet<VirtualAddress>;

/// What is looked for.
#[derive(Clone, Copy)]
pub struct Hunter {
    pub frame: FrameNumber,
    pub page: PageSize,
}

/// Room for entries, used again from process to process.
pub struct Room(Vec<PageMapEntry>);

impl Default for Room {
    fn default() -> Self {
        Room(vec![PageMapEntry::default(); BATCH])
    }
}

/// What was found in a process so far.
#[derive(Default)]
pub struct Found {
    /// The first of neighbouring pages that all map the frame, and how many they are.
    pub runs: Vec<(VirtualAddress, u64)>,
    /// Entries that were read.
    read: u64,
    /// The audience wants no more.
    pub stopped: Option<Stopped>,
}

impl Found {
    /// Whether it is time to tell what was found.
    fn is_enough(&self) -> bool {
        self.runs.len() >= MANY || !self.runs.is_empty() && self.read >= FAR
    }
}

impl Hunter {
    /// Every address there could be.
    pub fn everything(&self) -> Option<AddressRange> {
        let last = self.page.floor(VirtualAddress::new(u64::MAX));
        AddressRange::new(VirtualAddress::default(), last)
    }

    /// Whether the page at `address` maps the frame.
    pub fn is_at(&self, process: &dyn Process, address: VirtualAddress) -> Result<bool> {
        let mut entry = [PageMapEntry::default()];
        let read = process.entries(self.page.index(address), &mut entry)?;
        let [entry] = entry;
        Ok(read == 1 && entry.frame() == Some(self.frame))
    }

    /// Those of the pages at `places` that map the frame.
    pub fn are_at(
        &self,
        process: &dyn Process,
        places: &Places,
        Room(room): &mut Room,
        check: &mut Check<'_>,
    ) -> Result<Places> {
        let places: Vec<VirtualAddress> = places.iter().copied().collect();
        let mut there = Places::new();
        let mut left = &places[..];
        while let Some(&first) = left.first() {
            check()?;
            let first = self.page.index(first);
            let nth = |place: VirtualAddress| (self.page.index(place) - first) as usize;
            let (near, far) = left.split_at(left.partition_point(|&place| nth(place) < NEAR));
            let pages = near.last().map_or(0, |&last| nth(last) + 1);
            let into = room.get_mut(..pages).unwrap_or_default();
            let read = process.entries(first, into)?;
            let entries = room.get(..read).unwrap_or_default();
            let maps = |&place: &VirtualAddress| {
                let entry = entries.get(nth(place));
                entry.is_some_and(|entry| entry.frame() == Some(self.frame))
            };
            there.extend(near.iter().copied().filter(maps));
            left = far;
        }
        Ok(there)
    }

    /// Whether the kernel says what is populated. Where it does not, every entry has to be read, of regions alone: what lies between them
    /// would take for ever.
    pub fn is_scanned(process: &dyn Process) -> bool {
        process.categories().contains(Categories::HUGE)
    }

    /// Goes through what is populated in `range`, where that [is scanned](Self::is_scanned) any addresses, otherwise those of a region. What
    /// is left of it is returned, if there is something to tell before, or if `check` says to stop.
    pub fn search(
        &self,
        process: &dyn Process,
        range: AddressRange,
        found: &mut Found,
        room: &mut Room,
        check: &mut Check<'_>,
    ) -> Result<Option<AddressRange>> {
        let rest = |from: Option<VirtualAddress>| {
            let from = from?;
            AddressRange::new(from, range.end())
        };
        if !Self::is_scanned(process) {
            return Ok(rest(self.read(process, range, found, room, check)?));
        }
        let mut ended = Ok(None);
        // Stretches that are read at once.
        let mut together: Option<AddressRange> = None;
        process.populated(range, Categories::PRESENT, &mut |stretch| {
            if !stretch.categories.contains(Categories::PRESENT) {
                return ControlFlow::Continue(());
            }
            let whole = together.and_then(|near| self.joined(near, stretch.range));
            if whole.is_some() {
                together = whole;
                return ControlFlow::Continue(());
            }
            let Some(before) = together.replace(stretch.range) else {
                return ControlFlow::Continue(());
            };
            ended = self.read(process, before, found, room, check);
            match ended {
                Ok(None) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })?;
        if let (Ok(None), Some(last)) = (&ended, together) {
            ended = self.read(process, last, found, room, check);
        }
        Ok(rest(ended?))
    }

    /// Two stretches and the gap between them, if that is sooner read than a second system call is made.
    fn joined(&self, one: AddressRange, next: AddressRange) -> Option<AddressRange> {
        let gap = AddressRange::new(one.end(), next.start())?;
        let whole = AddressRange::new(one.start(), next.end())?;
        let is_near = gap.pages(self.page) <= GAP && whole.pages(self.page) <= BATCH as u64;
        is_near.then_some(whole)
    }

    /// Reads the entries of `range`; returns from where on it did not.
    fn read(
        &self,
        process: &dyn Process,
        range: AddressRange,
        found: &mut Found,
        Room(room): &mut Room,
        check: &mut Check<'_>,
    ) -> Result<Option<VirtualAddress>> {
        let mut index = self.page.index(range.start());
        let mut left = range.pages(self.page);
        let address = |index: u64| VirtualAddress::new(index << self.page.shift());
        // The last of the runs goes on with this page.
        let mut open = None;
        while left > 0 {
            if let Err(why) = check() {
                found.stopped = Some(why);
                return Ok(Some(address(index)));
            }
            if open.is_none() && found.is_enough() {
                return Ok(Some(address(index)));
            }
            let batch = usize::try_from(left).unwrap_or(BATCH).min(BATCH);
            let into = room.get_mut(..batch).unwrap_or_default();
            let read = process.entries(index, into)?;
            let entries = room.get(..read).unwrap_or_default();
            for (entry, index) in entries.iter().zip(index..) {
                if entry.frame() != Some(self.frame) {
                    continue;
                }
                match found.runs.last_mut() {
                    Some((_, pages)) if open == Some(index) => *pages += 1,
                    _ => found.runs.push((address(index), 1)),
                }
                open = Some(index + 1);
            }
            found.read += read as u64;
            if read < batch {
                break;
            }
            index += batch as u64;
            left -= batch as u64;
            open = open.filter(|&next| next == index);
        }
        Ok(None)
    }
}
