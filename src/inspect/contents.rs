//! What is at an address: bytes of memory or of the page cache, or why there are none. An untouched page of a file may
//! have bytes in the page cache, which are read from there without filling it.

use super::classify::KernelBehaviour;
use super::detail::PageDetail;
use super::memory::{MOST_PAGES, MemoryRead, ReadEnd, entries, read_resident};
use super::page::Page;
use super::region::ViewedRegion;
use super::states::StateSet;
use super::{AddressSpace, Result};
use crate::kernel::swaps::SwapMeaning;
use crate::kernel::{AddressRange, Kind, PageMapEntry, State, VirtualAddress};
use crate::process::{BackingContent, Categories};
use crate::report::{Fact, Reason, Why};

/// Pages of the same kind that are reported together, where each costs a query: some milliseconds of work.
const MOST_ALIKE: u64 = 1 << 16;

/// Why the page cache has no bytes in the rest of the page in which a file ends.
pub const AFTER_END: Reason = Reason::NotApplicable("after the end of the file");

/// Where bytes of memory come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ByteSource {
    /// From the process, where a frame was mapped before and after.
    Memory,
    /// From the page cache of the mapped file: what the process would read.
    File,
    /// From the process, in pages of this state: the read has faulted them in.
    Faulted(State),
}

impl ByteSource {
    /// The source of bytes from both: the one that says less about the process.
    #[must_use]
    pub fn weaker(self, other: ByteSource) -> ByteSource {
        match (self, other) {
            (ByteSource::File, _) | (_, ByteSource::File) => ByteSource::File,
            (faulted @ ByteSource::Faulted(_), _) | (_, faulted @ ByteSource::Faulted(_)) => faulted,
            (ByteSource::Memory, ByteSource::Memory) => ByteSource::Memory,
        }
    }

    /// The state of the pages before they were read.
    pub fn state(self) -> State {
        match self {
            ByteSource::Memory => State::Present,
            ByteSource::File => State::Untouched,
            ByteSource::Faulted(before) => before,
        }
    }

    /// Its word in records.
    pub fn word(self) -> &'static str {
        match self {
            ByteSource::Memory | ByteSource::Faulted(_) => "memory",
            ByteSource::File => "file",
        }
    }
}

/// What was read from an address on.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Contents {
    /// Bytes.
    Bytes {
        /// How many.
        count: usize,
        /// Where they come from.
        source: ByteSource,
    },
    /// Pages that may not be read.
    Absent(Absent),
}

/// Pages of the same kind that were not read.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Absent {
    /// From the address asked for on.
    pub range: AddressRange,
    /// Their states.
    pub states: StateSet,
    /// Their kind.
    pub kind: Option<Kind>,
    /// Why they were not read.
    pub why: ReadEnd,
    /// Why it is unknown whether the page cache has the first of them, or why it was not read from there.
    pub unknown: Option<Reason>,
}

impl Absent {
    /// The reasons for a record: `state` is its field of the state, if that is uncertain, and `unknown` that of what is
    /// unknown.
    #[must_use]
    pub fn why(&self, state: &'static str, unknown: &'static str) -> Why {
        let mut why = self.states.why(state);
        if let Some(reason) = &self.unknown {
            why.note(unknown, reason);
        }
        why
    }
}

impl AddressSpace {
    /// Reads from the start of `wanted` on: as many bytes as `into` takes and one source has, or the stretch that may
    /// not be read.
    ///
    /// Without `fault`, no page is faulted in. Device memory is never read: a device may take the read for a command.
    ///
    /// # Errors
    /// The target is gone, or its memory may not be read.
    pub fn contents(&self, wanted: AddressRange, into: &mut [u8], fault: bool) -> Result<Contents> {
        let start = wanted.start();
        let read = read_resident(self.target(), start, into)?;
        let bytes = |count, source| Ok(Contents::Bytes { count, source });
        let why = match read {
            MemoryRead { bytes: 1.., .. } => return bytes(read.bytes, ByteSource::Memory),
            MemoryRead { ended, .. } => ended.unwrap_or(ReadEnd::NotResident),
        };
        let PageDetail { page, content, .. } = self.detail(start)?;
        if fault && !matches!(page.state(), State::Unmapped | State::PfnMapped) {
            let end = VirtualAddress::new(start.get().saturating_add(into.len() as u64));
            let near = AddressRange::new(start, end.min(wanted.end())).unwrap_or(wanted);
            let alike = self.absent(near, why, &page)?.range.len();
            let alike = usize::try_from(alike).unwrap_or(usize::MAX).min(into.len());
            let part = into.get_mut(..alike).unwrap_or_default();
            let read = self.target().process.memory(start, part)?;
            if read > 0 {
                return bytes(read, ByteSource::Faulted(page.state()));
            }
        }
        let mut unknown = why_unknown(&page, content);
        if (page.state(), page.kind) == (State::Untouched, Some(Kind::Cached)) {
            match self.read_cached(start, into)? {
                Ok(read) => return bytes(read, ByteSource::File),
                Err(reason) => unknown = Some(reason),
            }
        }
        Ok(Contents::Absent(Absent { unknown, ..self.absent(wanted, why, &page)? }))
    }

    /// The pages from the start of `wanted` on that are like its first page, `first`.
    fn absent(&self, wanted: AddressRange, why: ReadEnd, first: &Page) -> Result<Absent> {
        let page = self.page_size();
        let start = wanted.start();
        let viewed = self.viewed_region(start);
        let next = page.floor(start).checked_add(page.bytes()).unwrap_or(wanted.end());
        let end = match viewed {
            _ if why != ReadEnd::NotResident || first.state() == State::Present => next,
            None => {
                let above = self.viewed_regions().iter().map(|viewed| viewed.range().start());
                above.filter(|&region| region > start).min().unwrap_or(wanted.end())
            }
            Some(viewed) if first.state() == State::Outside => viewed.range().end(),
            Some(viewed) if first.entry.is_empty() => self.end_of_alike(viewed, next, wanted.end())?,
            Some(viewed) => self.end_of_same_entries(first.entry, next, viewed.range().end())?,
        };
        let range = AddressRange::new(start, end.min(wanted.end()));
        Ok(Absent { range: range.unwrap_or(wanted), states: first.states, kind: first.kind, why, unknown: None })
    }

    /// Where in `viewed`, from `from` on, pages are no longer untouched, or have other backing content. Where each page
    /// costs a query, the number of pages is limited.
    fn end_of_alike(
        &self,
        viewed: &ViewedRegion,
        from: VirtualAddress,
        limit: VirtualAddress,
    ) -> Result<VirtualAddress> {
        let page = self.page_size();
        let process = &self.target().process;
        let mut end = viewed.range().end().min(limit);
        if !process.has_scan() || self.has_object(viewed) {
            let soon = from.checked_add(MOST_ALIKE * page.bytes());
            end = end.min(soon.unwrap_or(end));
        }
        let Some(rest) = AddressRange::new(from, end).map(|rest| rest.to_pages(page)) else {
            return Ok(end);
        };
        let first = process.populated(rest, Categories::empty()).next().transpose()?;
        let populated = first.map_or(end, |stretch| stretch.range.start());
        if !self.has_object(viewed) {
            return Ok(populated);
        }
        let first = VirtualAddress::new(from.get().saturating_sub(page.bytes()));
        Ok(self.end_of_same_content(viewed, first, populated))
    }

    /// The first page in `from..end` with other backing content, or `end`. The queried windows grow: the cost follows
    /// the length of the answer.
    fn end_of_same_content(&self, viewed: &ViewedRegion, from: VirtualAddress, end: VirtualAddress) -> VirtualAddress {
        let modules = self.files(&viewed.region);
        let mut pages = MOST_PAGES;
        let (mut at, mut before) = (from, None);
        loop {
            let stop = at.checked_add(pages * self.page_size().bytes());
            let stop = stop.map_or(end, |stop| stop.min(end));
            let Some(window) = AddressRange::new(at, stop) else {
                return end;
            };
            let runs = modules.backing_content(&viewed.region, window);
            let Some(run) = runs.ok().and_then(|runs| runs.into_iter().next()) else {
                return if before.is_none() { end } else { at };
            };
            let now = run.content.ok();
            if *before.get_or_insert(now) != now {
                return at;
            }
            if run.range.end() < stop {
                return run.range.end();
            }
            at = stop;
            pages = (pages * 2).min(MOST_ALIKE);
        }
    }

    /// Where entries are no longer the same as `first`; the soft-dirty bit does not count.
    fn end_of_same_entries(
        &self,
        first: PageMapEntry,
        from: VirtualAddress,
        end: VirtualAddress,
    ) -> Result<VirtualAddress> {
        let page = self.page_size();
        let index = page.index(from);
        let pages = AddressRange::new(from, end).map_or(0, |range| range.pages(page));
        let entries = entries(self.target(), index, pages.min(MOST_PAGES))?;
        let wanted = first.without_soft_dirty();
        let alike = |entry: &&PageMapEntry| {
            let other = entry.without_soft_dirty();
            let swap = |entry: PageMapEntry| entry.swap().map(|slot| slot.kind);
            // Each swap slot has its own number; the number of a marker says which one it is.
            other == wanted
                || swap(wanted).is_some()
                    && swap(wanted) == swap(other)
                    && wanted.raw() >> 55 == other.raw() >> 55
                    && self.is_swapped(wanted)
        };
        let same = entries.iter().take_while(alike).count() as u64;
        Ok(from.checked_add(same * page.bytes()).unwrap_or(end))
    }

    /// Whether an entry is a slot of a swap area.
    fn is_swapped(&self, entry: PageMapEntry) -> bool {
        let meaning = entry.swap().map(|slot| self.swap_meaning(slot.kind));
        meaning == Some(SwapMeaning::Area)
    }

    /// Bytes of the page cache at `start`, an untouched page of a file or of shared memory: at least one, or the reason
    /// why there are none.
    ///
    /// # Errors
    /// The target is gone.
    pub fn read_cached(&self, start: VirtualAddress, into: &mut [u8]) -> Result<Fact<usize>> {
        let none = || Ok(Err(Reason::NotApplicable("no file is mapped at this address")));
        let viewed = self.viewed_region(start);
        let Some(viewed) = viewed.filter(|viewed| self.has_object(viewed)) else {
            return none();
        };
        let end = VirtualAddress::new(start.get().saturating_add(into.len() as u64));
        let wanted = AddressRange::new(start, end.min(viewed.range().end()));
        let Some(wanted) = wanted else {
            return none();
        };
        let modules = self.files(&viewed.region);
        let into = into.get_mut(..usize::try_from(wanted.len()).unwrap_or(usize::MAX));
        let read = match modules.read_cached(&viewed.region, start, into.unwrap_or_default()) {
            Ok(read) => read,
            Err(error) => return Ok(Err(error.into())),
        };
        let end = start.checked_add(read as u64);
        let page = self.page_size();
        let Some(range) = end.and_then(|end| AddressRange::new(start, end)) else {
            // A page that has its first byte, but none here, is the last one of its file.
            let has_first =
                || modules.read_cached(&viewed.region, page.floor(start), &mut [0]).is_ok_and(|read| read > 0);
            return Ok(Err(if page.offset(start) > 0 && has_first() { AFTER_END } else { Reason::Changed }));
        };
        let after = entries(self.target(), page.index(start), range.pages(page))?;
        // The process may have made copies of its own meanwhile.
        let untouched = after.iter().take_while(|entry| entry.is_empty()).count() as u64;
        let settled = (untouched * page.bytes()).saturating_sub(page.offset(start));
        Ok(match usize::try_from(settled).unwrap_or(usize::MAX) {
            0 => Err(Reason::Changed),
            settled => Ok(read.min(settled)),
        })
    }
}

/// Why the backing content of an untouched page is unknown.
fn why_unknown(page: &Page, content: Fact<BackingContent>) -> Option<Reason> {
    let is_asked = page.state() == State::Untouched && matches!(page.kind, Some(Kind::File | Kind::Shmem));
    content.err().filter(|reason| is_asked && !matches!(reason, Reason::NotApplicable(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::{PAGE, World, region};
    use std::sync::atomic::Ordering;

    /// A file of `pages` untouched pages.
    fn untouched_file(pages: u64, content: impl Fn(u64) -> BackingContent) -> World {
        let mut file = region(16, pages);
        (file.inode, file.device.major) = (7, 8);
        World { content: (16..16 + 4096).map(|page| (page, content(page))).collect(), ..World::new([file]) }
    }

    fn absent(world: World) -> (std::sync::Arc<World>, u64) {
        let (world, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let start = VirtualAddress::new(16 * PAGE);
        let wanted = AddressRange::new(start, VirtualAddress::new(u64::MAX)).expect("a range");
        let contents = space.contents(wanted, &mut [0; 200], false);
        let Contents::Absent(absent) = contents.expect("an answer") else {
            panic!("expected absent pages");
        };
        assert_eq!(absent.states, State::Untouched.into());
        let pages = absent.range.len() / PAGE;
        (world, pages)
    }

    #[test]
    fn the_cost_follows_the_number_of_equal_pages() {
        // The end of the file is far away; the equal pages end soon.
        let content = |page| BackingContent::Contents { cached: page >= 16 + 3 };
        let (world, pages) = absent(untouched_file(1 << 24, content));
        assert_eq!(pages, 3);
        let asked = world.behind_pages.load(Ordering::Relaxed);
        assert!(asked < 2 * MOST_PAGES, "asked about {asked} pages");
    }

    #[test]
    fn without_a_scan_the_number_of_entries_read_is_limited() {
        let mut world = World::new([region(16, 1 << 24)]);
        world.scans = false;
        let (_, pages) = absent(world);
        assert_eq!(pages, MOST_ALIKE + 1);
        // A scan answers at once.
        let (_, pages) = absent(World::new([region(16, 1 << 24)]));
        assert_eq!(pages, 1 << 24);
    }

    #[test]
    fn the_weaker_source_wins() {
        let swapped = ByteSource::Faulted(State::Swapped);
        for (one, other, weaker) in [
            (ByteSource::Memory, ByteSource::Memory, ByteSource::Memory),
            (ByteSource::Memory, ByteSource::File, ByteSource::File),
            (ByteSource::Memory, swapped, swapped),
            (swapped, ByteSource::File, ByteSource::File),
        ] {
            assert_eq!(one.weaker(other), weaker);
            assert_eq!(other.weaker(one), weaker);
        }
    }
}
