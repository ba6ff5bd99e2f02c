//! Reading memory without making the target fault: only what has a frame, asked before and after.

use super::classify::Backing;
use super::region::ViewedRegion;
use super::rules::Rules;
use super::{Result, View};
use crate::kernel::swaps::SwapMeaning;
use crate::kernel::{AddressRange, Kind, PageMapEntry, State, VirtualAddress};
use crate::target::{Behind, Categories, Target};
use std::ops::ControlFlow;

/// Pages that are asked about at a time: bounds how long it may be between the page map and the read.
const MOST_PAGES: u64 = 256;

/// How often a page that moves while it is read is looked at again.
const TRIES: u32 = 3;

/// How far a read came, and why no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRead {
    /// Bytes that were read, from the first on.
    pub bytes: usize,
    /// What comes after them; `None` when all was read.
    pub ended: Option<ReadEnd>,
}

/// Why memory was read no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadEnd {
    /// No frame is mapped in the next page: it was not touched.
    NotResident,
    /// The next page has gone, or has got another frame, each time that it was read.
    Changed,
    /// A frame is mapped in the next page, and yet the kernel does not read it: memory of a device, say.
    Unreadable,
}

/// Reads the memory of `target` from `start` on, as far as every page has a frame: what has none would be faulted in. The page map is asked
/// before and after; bytes of a page that has gone or got another frame meanwhile do not count.
///
/// # Errors
/// The target is gone, or its memory may not be read.
pub fn read_resident(
    target: &Target,
    start: VirtualAddress,
    into: &mut [u8],
) -> Result<MemoryRead> {
    let mut done = 0;
    let ended = loop {
        let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) else {
            break None;
        };
        let Some(start) = start.checked_add(done as u64) else {
            break Some(ReadEnd::NotResident);
        };
        let (read, ended) = read_some(target, start, rest)?;
        done += read;
        if ended.is_some() {
            break ended;
        }
    };
    Ok(MemoryRead { bytes: done, ended })
}

/// The first address of `range` in whose page no frame is mapped; `None` if all have one.
///
/// # Errors
/// The target is gone.
pub fn first_absent(target: &Target, range: AddressRange) -> Result<Option<VirtualAddress>> {
    let page = target.process.layout().page;
    let (first, end) = (
        page.index(range.start()),
        page.index(range.start()) + range.pages(page),
    );
    let mut next = first;
    while next < end {
        let pages = (end - next).min(MOST_PAGES);
        let found = entries(target, next, pages)?;
        let resident = resident(&found) as u64;
        next += resident;
        if resident < pages {
            let absent = VirtualAddress::new(next << page.shift());
            return Ok(Some(absent.max(range.start())));
        }
    }
    Ok(None)
}

/// The pages that `range` touches, no more than so many of them.
fn first_pages(target: &Target, range: AddressRange) -> (u64, u64) {
    let page = target.process.layout().page;
    (page.index(range.start()), range.pages(page).min(MOST_PAGES))
}

/// Reads what may be read at a time.
fn read_some(
    target: &Target,
    start: VirtualAddress,
    into: &mut [u8],
) -> Result<(usize, Option<ReadEnd>)> {
    let page = target.process.layout().page;
    let end = VirtualAddress::new(start.get().saturating_add(into.len() as u64));
    let Some(range) = AddressRange::new(start, end) else {
        return Ok((0, Some(ReadEnd::NotResident)));
    };
    let (first, pages) = first_pages(target, range);
    // How many of the bytes lie in so many pages.
    let all = into.len();
    let bytes_in = |pages: usize| {
        let bytes = (pages as u64 * page.bytes()).saturating_sub(page.offset(start));
        usize::try_from(bytes).map_or(all, |bytes| bytes.min(all))
    };
    for attempt in 0..TRIES {
        let before = entries(target, first, pages)?;
        let resident = resident(&before);
        match (resident, attempt) {
            (0, 0) => return Ok((0, Some(ReadEnd::NotResident))),
            // It was there, and is not after it was read.
            (0, _) => break,
            _ => {}
        }
        let wanted = bytes_in(resident);
        let part = into.get_mut(..wanted).unwrap_or_default();
        let read = target.process.memory(start, part)?;
        let after = entries(target, first, resident as u64)?;
        let same = before
            .iter()
            .zip(&after)
            .take(resident)
            .take_while(|(before, after)| after.is_present() && before.frame() == after.frame())
            .count();
        let settled = bytes_in(same);
        match (read < wanted, settled) {
            (_, 0) => {}
            (true, settled) if read <= settled => return Ok((read, Some(ReadEnd::Unreadable))),
            (_, settled) => return Ok((settled, None)),
        }
    }
    Ok((0, Some(ReadEnd::Changed)))
}

/// How many pages from the first on have a frame.
fn resident(entries: &[PageMapEntry]) -> usize {
    entries
        .iter()
        .take_while(|entry| entry.is_present())
        .count()
}

/// Page-map entries, fewer where the page map ends.
fn entries(target: &Target, first: u64, pages: u64) -> Result<Vec<PageMapEntry>> {
    let mut entries = vec![PageMapEntry::default(); usize::try_from(pages).unwrap_or(0)];
    let read = target.process.entries(first, &mut entries)?;
    entries.truncate(read);
    Ok(entries)
}

/// Where bytes of memory come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// From the process, where a frame was mapped before and after.
    Memory,
    /// From the page cache of the file that is mapped there: what the process would see, were it to look.
    File,
    /// From the process, where no frame was mapped before, but this was the state: reading has brought it in.
    Faulted(State),
}

/// What there is from some address on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    /// So many bytes.
    Bytes {
        /// How many.
        count: usize,
        /// Where they come from.
        source: Source,
    },
    /// Nothing that may be read.
    Absent(Absent),
}

/// Pages that are alike, and cannot be read or were not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absent {
    /// From the address asked for on.
    pub range: AddressRange,
    /// What their state is.
    pub state: State,
    /// What they would be.
    pub kind: Option<Kind>,
    /// For pages that are present, what kept them from being read; otherwise that they are not.
    pub why: ReadEnd,
}

impl View<'_> {
    /// What there is from the start of `wanted` on: bytes, as many as `into` takes and are of one source, or a stretch of `wanted` without.
    ///
    /// Nothing is faulted in unless `fault` says to.
    ///
    /// # Errors
    /// The target is gone, or its memory may not be read.
    pub fn contents(&self, wanted: AddressRange, into: &mut [u8], fault: bool) -> Result<Contents> {
        let start = wanted.start();
        let read = read_resident(self.target(), start, into)?;
        let bytes = |count, source| Ok(Contents::Bytes { count, source });
        let why = match read {
            MemoryRead { bytes: 1.., .. } => return bytes(read.bytes, Source::Memory),
            MemoryRead { ended, .. } => ended.unwrap_or(ReadEnd::NotResident),
        };
        let absent = self.absent(wanted, why)?;
        let most = usize::try_from(absent.range.len()).unwrap_or(usize::MAX);
        let most = most.min(into.len());
        let into = into.get_mut(..most).unwrap_or_default();
        if fault && !matches!(absent.state, State::Unmapped) {
            let read = self.target().process.memory(start, into)?;
            if read > 0 {
                return bytes(read, Source::Faulted(absent.state));
            }
        }
        match self.cached(&absent, into)? {
            0 => Ok(Contents::Absent(absent)),
            read => bytes(read, Source::File),
        }
    }

    /// The pages from the start of `wanted` on that are as the first.
    fn absent(&self, wanted: AddressRange, why: ReadEnd) -> Result<Absent> {
        let page = self.page();
        let start = wanted.start();
        let detail = self.detail(start)?;
        let raw = detail.entry.map(PageMapEntry::raw);
        let viewed = self.region(start);
        let next = page
            .floor(start)
            .checked_add(page.bytes())
            .unwrap_or(wanted.end());
        let end = match (viewed, raw) {
            _ if why != ReadEnd::NotResident || detail.page.state == State::Present => next,
            (None, _) => {
                let above = self.regions().iter().map(|viewed| viewed.range().start());
                above
                    .filter(|&region| region > start)
                    .min()
                    .unwrap_or(wanted.end())
            }
            (Some(viewed), None) => viewed.range().end(),
            (Some(viewed), Some(0)) => self.alike(viewed, next, wanted.end())?,
            (Some(viewed), Some(raw)) => self.same_entries(raw, next, viewed.range().end())?,
        };
        let range = AddressRange::new(start, end.min(wanted.end()));
        Ok(Absent {
            range: range.unwrap_or(wanted),
            state: detail.page.state,
            kind: detail.page.kind,
            why,
        })
    }

    /// Where in `viewed`, from `from` on, pages are no longer untouched, or there is something else behind them.
    fn alike(
        &self,
        viewed: &ViewedRegion,
        from: VirtualAddress,
        limit: VirtualAddress,
    ) -> Result<VirtualAddress> {
        let end = viewed.range().end().min(limit);
        let Some(rest) = AddressRange::new(from, end).map(|rest| rest.to_pages(self.page())) else {
            return Ok(end);
        };
        let mut populated = rest.end();
        let process = &self.target().process;
        process.populated(rest, Categories::empty(), &mut |stretch| {
            populated = stretch.range.start();
            ControlFlow::Break(())
        })?;
        let page = self.page();
        let first = VirtualAddress::new(from.get().saturating_sub(page.bytes()));
        let Some(untouched) = AddressRange::new(first, populated) else {
            return Ok(populated);
        };
        if !self.has_object(viewed) {
            return Ok(populated);
        }
        let runs = self.target().modules.behind(&viewed.region, untouched);
        let first = runs.ok().and_then(|runs| runs.into_iter().next());
        Ok(first.map_or(populated, |run| run.range.end()))
    }

    /// Where entries are no longer `raw`.
    fn same_entries(
        &self,
        raw: u64,
        from: VirtualAddress,
        end: VirtualAddress,
    ) -> Result<VirtualAddress> {
        let page = self.page();
        let first = page.index(from);
        let pages = AddressRange::new(from, end).map_or(0, |range| range.pages(page));
        let entries = entries(self.target(), first, pages.min(MOST_PAGES))?;
        let alike = |entry: &&PageMapEntry| {
            let (one, other) = (PageMapEntry::new(raw), **entry);
            let swap = |entry: PageMapEntry| entry.swap().map(|slot| slot.kind);
            // Of slots of swap each has its own number; of markers the number says which.
            other.raw() == raw
                || swap(one).is_some()
                    && swap(one) == swap(other)
                    && one.raw() >> 55 == other.raw() >> 55
                    && self.is_swapped(one)
        };
        let same = entries.iter().take_while(alike).count() as u64;
        Ok(from.checked_add(same * page.bytes()).unwrap_or(end))
    }

    /// Whether an entry is of a slot of a swap area.
    fn is_swapped(&self, entry: PageMapEntry) -> bool {
        let meaning = entry.swap().map(|slot| self.swap_meaning(slot.kind));
        meaning == Some(SwapMeaning::Area)
    }

    /// Bytes of the page cache at the start of `absent`: only where a file is mapped there and the process has no page of its own.
    fn cached(&self, absent: &Absent, into: &mut [u8]) -> Result<usize> {
        let start = absent.range.start();
        let Some(viewed) = self.region(start) else {
            return Ok(0);
        };
        let may = absent.state == State::Untouched && absent.kind == Some(Kind::Cached);
        if !may || viewed.backing != Backing::File {
            return Ok(0);
        }
        let modules = &self.target().modules;
        let mut whole = into.len();
        // What is asked about was one run; that it is still cached is asked just before.
        let runs = modules.behind(&viewed.region, absent.range);
        match runs.ok().and_then(|runs| runs.into_iter().next()) {
            Some(run) if matches!(run.behind, Ok(Behind::Contents { cached: true })) => {
                let cached = run.range.end().get().saturating_sub(start.get());
                whole = whole.min(usize::try_from(cached).unwrap_or(usize::MAX));
            }
            _ => return Ok(0),
        }
        let into = into.get_mut(..whole).unwrap_or_default();
        let Ok(read) = modules.cached(&viewed.region, start, into) else {
            return Ok(0);
        };
        let end = start.checked_add(read as u64);
        let Some(range) = end.and_then(|end| AddressRange::new(start, end)) else {
            return Ok(0);
        };
        let page = self.page();
        let after = entries(self.target(), page.index(start), range.pages(page))?;
        // The process may have made copies of its own meanwhile.
        let untouched = after.iter().take_while(|entry| entry.raw() == 0).count() as u64;
        let settled = (untouched * page.bytes()).saturating_sub(page.offset(start));
        Ok(read.min(usize::try_from(settled).unwrap_or(usize::MAX)))
    }
}
