//! Where bytes stand in memory: in resident pages, and in untouched ones that the page cache has. Nothing is faulted in.
//!
//! ```
//! use pmdb::inspect::Step;
//! use pmdb::{AddressRange, AddressSpace, Evidence, Target};
//!
//! let buffer = b"somewhere in here is a needle".to_vec();
//! let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
//! let space = AddressSpace::in_ranges(&Target::attach(std::process::id())?, &[range])?;
//! let mut search = space.find(&[range], Evidence::empty(), b"needle")?;
//! while let Some(step) = search.next()? {
//!     if let Step::Found(found) = step {
//!         println!("{} ({})", found.address, found.source.word());
//!     }
//! }
//! println!("in {} bytes", search.finish()?.searched);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::contents::{AFTER_END, ByteSource};
use super::filter::Question;
use super::heap::LiveChunks;
use super::kept::{KeptPages, PageSums, Step};
use super::memory::MemoryReader;
use super::page::{Evidence, Page};
use super::{AddressSpace, Error, Result, ViewedRegion};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Kind, State, VirtualAddress};
use crate::process;
use crate::report::{PagesByReason, Reason};
use memchr::memmem::Finder;
use std::collections::VecDeque;

/// Bytes that are read at a time.
const WINDOW: usize = 1 << 20;

/// A place where the bytes stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FoundBytes {
    /// Address of the first byte.
    pub address: VirtualAddress,
    /// Where they were read: the file if some come from the page cache.
    pub source: ByteSource,
}

/// What a search read.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SearchedMemory {
    /// Number of places that were found.
    pub matches: u64,
    /// Places that are not in a chunk in use; `None` where all count.
    pub outside: Option<u64>,
    /// Places of which that is unknown.
    pub unclear: Option<u64>,
    /// Bytes that were searched.
    pub searched: u64,
    /// Present pages that could not be read, or that changed during each read.
    pub unread: u64,
    /// Untouched pages that were searched in the page cache of their file.
    pub cached: u64,
    /// Untouched pages that are or may be in the page cache, but could not be searched there.
    pub cache_unread: PagesByReason,
    /// Why the first page was not read that a capture or a core lacks.
    pub missing: Option<Reason>,
    /// The pages; `None` of a core that has no page map.
    pub pages: Option<PageSums>,
}

/// A search of memory, in address order.
#[must_use]
pub struct MemorySearch {
    space: AddressSpace,
    ranges: Vec<AddressRange>,
    finder: Finder<'static>,
    /// Where else to search; `None` of a core that has no page map.
    pages: Option<KeptPages>,
    /// What is to be searched of the pages that came last.
    parts: VecDeque<(AddressRange, ByteSource)>,
    reader: MemoryReader,
    window: Window,
    budget: Budget,
    limit: u64,
    /// Only what lies in these counts.
    chunks: Option<LiveChunks>,
    found: SearchedMemory,
    missing: Option<process::Error>,
    /// Whether memory was read that not every capture has, as it has that of the vdso.
    has_memory: bool,
}

impl AddressSpace {
    /// Searches the pages of `ranges` (in order, disjoint) that `question` keeps for `bytes`. Matches may overlap.
    ///
    /// # Errors
    /// There is a filter, and the target is a core, which has no page map.
    pub fn find(&self, ranges: &[AddressRange], question: impl Into<Question>, bytes: &[u8]) -> Result<MemorySearch> {
        let question = question.into();
        let has_pages = self.target().process.has_page_map() || question.filter.is_some();
        let question = Question { need: question.need | Evidence::CONTENT, ..question };
        let mut search = MemorySearch {
            space: self.clone(),
            ranges: ranges.to_vec(),
            finder: Finder::new(bytes).into_owned(),
            pages: has_pages.then(|| self.kept_pages(ranges, question)).transpose()?,
            parts: VecDeque::new(),
            reader: MemoryReader::default(),
            window: Window::default(),
            budget: Budget::unlimited(),
            // An empty text has no place.
            limit: if bytes.is_empty() { 0 } else { u64::MAX },
            chunks: None,
            found: SearchedMemory::default(),
            missing: None,
            has_memory: false,
        };
        if !has_pages {
            search.add_stored();
        }
        Ok(search)
    }
}

impl MemorySearch {
    /// The same, with what it may take.
    pub fn with_budget(self, budget: Budget) -> Self {
        let pages = self.pages.map(|pages| pages.with_budget(budget.clone()));
        MemorySearch { pages, budget, ..self }
    }

    /// The same, which ends after so many matches.
    pub fn limit(self, matches: u64) -> Self {
        MemorySearch { limit: self.limit.min(matches), ..self }
    }

    /// The same, for what lies in chunks in use.
    pub fn in_chunks(mut self, chunks: LiveChunks) -> Self {
        (self.found.outside, self.found.unclear) = (Some(0), Some(0));
        MemorySearch { chunks: Some(chunks), ..self }
    }

    /// The next step; `None` after the last.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub fn next(&mut self) -> Result<Option<Step<FoundBytes>>> {
        while !self.is_enough() {
            if let Some(found) = self.window.find(&self.finder) {
                if self.counts(&found)? {
                    return Ok(Some(Step::Found(found)));
                }
                continue;
            }
            if let Some((part, source)) = self.parts.pop_front() {
                self.budget.look()?;
                self.read(part, source)?;
                continue;
            }
            let step = self.next_parts()?;
            if step.is_some() || self.parts.is_empty() {
                return Ok(step);
            }
        }
        Ok(None)
    }

    /// Counts a place. Returns whether it is one that was asked for.
    fn counts(&mut self, found: &FoundBytes) -> Result<bool> {
        let is_in = match (&mut self.chunks, AddressRange::of_length(found.address, self.finder.needle().len() as u64))
        {
            (Some(chunks), Some(range)) => {
                self.budget.go_on()?;
                chunks.holds(range)
            }
            _ => Some(true),
        };
        let SearchedMemory { matches, outside, unclear, .. } = &mut self.found;
        *match is_in {
            Some(true) => matches,
            Some(false) => outside.get_or_insert(0),
            None => unclear.get_or_insert(0),
        } += 1;
        Ok(is_in == Some(true))
    }

    /// Number of places that were found so far.
    pub fn matches(&self) -> u64 {
        self.found.matches
    }

    /// Whether it has found as many as it may.
    pub fn is_enough(&self) -> bool {
        self.found.matches >= self.limit
    }

    /// What was read.
    ///
    /// # Errors
    /// Nothing was found and nothing was read, because a capture or core does not have it.
    pub fn finish(self) -> Result<SearchedMemory> {
        match self.missing {
            Some(missing) if self.found.matches == 0 && !self.has_memory => Err(missing.into()),
            missing => {
                let pages = self.pages.map(KeptPages::finish);
                Ok(SearchedMemory { missing: missing.map(Reason::from), pages, ..self.found })
            }
        }
    }

    /// All memory of a core without a page map is to be searched.
    fn add_stored(&mut self) {
        let process = &self.space.target().process;
        let stored = process.captured_parts();
        for range in self.space.viewed_regions().iter().flat_map(|viewed| viewed.range().within(&self.ranges)) {
            self.parts.extend(range.within(&stored).map(|part| (part, ByteSource::Memory)));
            // What was reserved and never written can be a million times larger.
            for absent in range.outside(&stored) {
                if let (None, Err(missing)) = (&self.missing, process.memory(absent.start(), &mut [0])) {
                    self.missing = Some(missing);
                }
                self.found.unread += absent.pages(self.space.page_size());
            }
        }
    }

    /// Adds the next resident and cached pages to the parts; `None` after the last.
    fn next_parts(&mut self) -> Result<Option<Step<FoundBytes>>> {
        let MemorySearch { space, ranges, pages: Some(pages), parts, found, .. } = self else {
            return Ok(None);
        };
        pages.find_map(|page, region, totals| {
            totals.add(page);
            let viewed = region.and_then(|index| space.viewed_regions().get(index));
            if let Some(reason) = why_unsearched(page, viewed) {
                found.cache_unread.add(page.pages, reason);
            }
            if let Some(source) = source_of(page) {
                let pages = page.range(space.page_size());
                let within = pages.into_iter().flat_map(|pages| pages.within(ranges));
                within.for_each(|part| add_part(parts, part, source));
            }
            None
        })
    }

    /// Reads the first bytes of a part that was just resident or in the page cache. The others go back to the parts.
    fn read(&mut self, part: AddressRange, source: ByteSource) -> Result<()> {
        let (page, from) = (self.space.page_size(), part.start());
        let most = match source {
            ByteSource::File => WINDOW,
            _ => WINDOW.min((self.reader.pages() * page.bytes()) as usize),
        };
        // To the end of a page.
        let most = most - page.offset(from) as usize;
        let wanted = usize::try_from(part.len()).map_or(most, |left| left.min(most));
        // What a match could begin with that goes on behind.
        self.window.begin(from, self.finder.needle().len().saturating_sub(1));
        let (read, skipped) = match source {
            ByteSource::File => self.read_cached(from, wanted)?,
            _ => self.read_memory(from, wanted)?,
        };
        self.window.add(read, source);
        self.found.searched += read as u64;
        let end = VirtualAddress::new(from.get() + read as u64);
        if let (ByteSource::File, Some(read)) = (source, AddressRange::new(from, end)) {
            self.found.cached += read.pages(page);
        }
        let next = match skipped {
            0 => end,
            pages => page.floor(end).checked_add(pages * page.bytes()).unwrap_or(part.end()),
        };
        if let Some(rest) = AddressRange::new(next, part.end()) {
            self.parts.push_front((rest, source));
        }
        Ok(())
    }

    /// Reads memory. Returns the bytes, and the pages after them to pass over.
    fn read_memory(&mut self, from: VirtualAddress, wanted: usize) -> Result<(usize, u64)> {
        let into = self.window.room(wanted);
        let (read, ended) = match self.reader.read(self.space.target(), from, into) {
            Ok(read) => (read.bytes, read.ended.is_some()),
            Err(Error::Target(missing @ process::Error::NotAvailable { .. })) => {
                self.missing.get_or_insert(missing);
                (0, true)
            }
            Err(error) => return Err(error),
        };
        let is_vdso =
            || self.space.viewed_region(from).is_some_and(|viewed| viewed.region.name.as_bytes() == b"[vdso]");
        self.has_memory |= read > 0 && !is_vdso();
        self.found.unread += u64::from(ended);
        Ok((read, u64::from(ended || read == 0)))
    }

    /// Reads the page cache. Returns the bytes, and the pages after them to pass over.
    fn read_cached(&mut self, from: VirtualAddress, wanted: usize) -> Result<(usize, u64)> {
        let into = self.window.room(wanted);
        let reason = match self.space.read_cached(from, into)? {
            Ok(read) => return Ok((read, u64::from(read == 0))),
            Err(reason) => reason,
        };
        let page = self.space.page_size();
        // A change meanwhile, and the end of a file, concern this page only.
        let pages = match reason {
            Reason::Changed | AFTER_END => 1,
            _ => (page.offset(from) + wanted as u64).div_ceil(page.bytes()),
        };
        if reason != AFTER_END {
            self.found.cache_unread.add(pages, reason);
        }
        Ok((0, pages))
    }
}

/// Why an untouched page may be in the page cache, and is not searched there.
fn why_unsearched(page: &Page, viewed: Option<&ViewedRegion>) -> Option<Reason> {
    let is_unknown = (page.state(), page.content) == (State::Untouched, None);
    viewed.filter(|_| is_unknown)?.why_content_unknown().cloned()
}

/// Where the bytes of a page are read, if they are.
fn source_of(page: &Page) -> Option<ByteSource> {
    match (page.state(), page.kind) {
        (State::Present, _) => Some(ByteSource::Memory),
        (State::Untouched, Some(Kind::Cached)) => Some(ByteSource::File),
        _ => None,
    }
}

/// Adds a part of memory to those before it. Neighbours are one, so that they are read together.
fn add_part(parts: &mut VecDeque<(AddressRange, ByteSource)>, part: AddressRange, source: ByteSource) {
    if let Some((last, of_last)) = parts.back_mut()
        && (last.end(), *of_last) == (part.start(), source)
        && let Some(together) = AddressRange::new(last.start(), part.end())
    {
        *last = together;
    } else {
        parts.push_back((part, source));
    }
}

/// The last bytes that were read.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// The bytes from the first on that were read.
    filled: usize,
    /// Where they end in memory.
    end: VirtualAddress,
    /// Where the next match is looked for.
    from: usize,
    /// The parts that come from the page cache.
    of_file: Vec<AddressRange>,
}

impl Window {
    /// Goes on at `at`, with the last `keep` bytes if they end there.
    fn begin(&mut self, at: VirtualAddress, keep: usize) {
        let keep = if self.end == at { keep } else { 0 };
        let surplus = self.filled.saturating_sub(keep);
        self.bytes.copy_within(surplus..self.filled, 0);
        self.filled -= surplus;
        (self.end, self.from) = (at, 0);
        let begins = self.start();
        self.of_file.retain(|range| range.end() > begins);
    }

    /// Where the next bytes go.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.filled + bytes;
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes.get_mut(self.filled..end).unwrap_or_default()
    }

    /// Takes in so many bytes, which were read into the room.
    fn add(&mut self, bytes: usize, source: ByteSource) {
        let end = VirtualAddress::new(self.end.get() + bytes as u64);
        if source == ByteSource::File {
            self.of_file.extend(AddressRange::new(self.end, end));
        }
        self.filled += bytes;
        self.end = end;
    }

    /// Where the first byte is in memory.
    fn start(&self) -> VirtualAddress {
        VirtualAddress::new(self.end.get() - self.filled as u64)
    }

    /// The next match.
    fn find(&mut self, finder: &Finder<'_>) -> Option<FoundBytes> {
        let rest = self.bytes.get(self.from..self.filled).unwrap_or_default();
        let at = self.from + finder.find(rest)?;
        self.from = at + 1;
        let address = VirtualAddress::new(self.start().get() + at as u64);
        let found = AddressRange::of_length(address, finder.needle().len() as u64);
        let touches = |part: &AddressRange| found.is_some_and(|found| found.intersection(*part).is_some());
        let source = if self.of_file.iter().any(touches) { ByteSource::File } else { ByteSource::Memory };
        Some(FoundBytes { address, source })
    }
}
