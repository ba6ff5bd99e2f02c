//! Reading memory without a page fault: only pages with a frame are read, and the frame is checked before and after.

use super::Result;
use super::{AddressSpace, classify::Backing};
use crate::budget::Budget;
use crate::kernel::{AddressRange, PageMapEntry, VirtualAddress};
use crate::process::Target;
use crate::process::{self, Categories};

/// Pages checked and read at a time: it bounds the time between the check and the read.
pub(super) const MOST_PAGES: u64 = 256;

/// How often a page is read again that moves meanwhile.
const TRIES: u32 = 3;

/// How far a read came, and why no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryRead {
    /// Bytes that were read, from the first on.
    pub bytes: usize,
    /// What comes after them; `None` when all was read.
    pub ended: Option<ReadEnd>,
}

/// Why memory was read no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadEnd {
    /// No frame is mapped in the next page: it was not touched.
    NotResident,
    /// The next page went, or got another frame, during each read.
    Changed,
    /// A frame is mapped in the next page, and yet the kernel does not read it: memory of a device, say.
    Unreadable,
    /// A frame was mapped in the next page, and the capture does not have its memory.
    NotCaptured,
}

/// Reads the memory of `target` from `start` on, up to the first page without a frame, which the read would fault in.
/// It reads the page map before and after. Bytes of a page that went or got another frame meanwhile do not count.
///
/// # Errors
/// The target is gone, or its memory may not be read.
pub fn read_resident(target: &Target, start: VirtualAddress, into: &mut [u8]) -> Result<MemoryRead> {
    MemoryReader::default().read(target, start, into)
}

/// Reads ranges one after the other, as [`read_resident`] does. After a page that cannot be read it checks fewer pages
/// at a time: the next one probably cannot be read either, and all that is checked after it is checked again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryReader {
    pages: u64,
}

impl Default for MemoryReader {
    fn default() -> Self {
        MemoryReader { pages: MOST_PAGES }
    }
}

impl MemoryReader {
    /// How many pages it checks and reads at a time.
    pub fn pages(self) -> u64 {
        self.pages
    }

    /// Reads up to the first page that cannot be read.
    ///
    /// # Errors
    /// Those of [`read_resident`].
    pub fn read(&mut self, target: &Target, start: VirtualAddress, into: &mut [u8]) -> Result<MemoryRead> {
        let mut done = 0;
        let ended = loop {
            let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) else {
                break None;
            };
            let Some(start) = start.checked_add(done as u64) else {
                break Some(ReadEnd::NotResident);
            };
            let (read, ended) = read_some(target, start, rest, self.pages)?;
            done += read;
            if ended.is_some() {
                self.pages = 1;
                break ended;
            }
            self.pages = (2 * self.pages).min(MOST_PAGES);
        };
        Ok(MemoryRead { bytes: done, ended })
    }
}

/// Whether a page of `range` has a frame.
///
/// # Errors
/// The target is gone.
#[cfg(feature = "cli")]
pub fn is_resident(target: &Target, range: AddressRange) -> Result<bool> {
    let first = present(target, range).next().transpose()?;
    Ok(first.is_some())
}

/// Whether a capture or core has memory, besides that of the kernel that every one has. Of a process that is so.
///
/// # Errors
/// The target is gone.
pub fn has_memory(space: &AddressSpace) -> Result<bool> {
    let process = &space.target().process;
    if process.capture_times().is_none() {
        return Ok(true);
    }
    for viewed in space.viewed_regions().iter().filter(|viewed| viewed.backing != Backing::Kernel) {
        for part in process.captured_within(viewed.range()) {
            for found in present(space.target(), part) {
                if process.memory(found?.start(), &mut [0]).is_ok_and(|read| read > 0) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// The stretches of `range` whose pages have frames. A core without entries tells of which it has the memory.
pub(super) fn present(target: &Target, range: AddressRange) -> impl Iterator<Item = process::Result<AddressRange>> {
    let process = &target.process;
    let of_map = process.has_page_map().then(|| process.populated(range, Categories::PRESENT));
    let of_core = if of_map.is_some() { Vec::new() } else { process.captured_within(range) };
    let found = of_map.into_iter().flatten().filter_map(move |found| match found {
        Ok(found) if found.categories.contains(Categories::PRESENT) => found.range.intersection(range).map(Ok),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    found.chain(of_core.into_iter().map(Ok))
}

/// What was not read of present memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unread {
    /// Pages that went, or got another frame, during each read.
    pub changed: u64,
    /// Pages that the kernel refuses to read.
    pub unreadable: u64,
}

/// Bytes of one part of [`ResidentMemory`].
const PART: usize = 1 << 20;

/// The resident memory of a range, in parts of at most a megabyte.
#[must_use]
pub struct ResidentMemory<'a> {
    target: &'a Target,
    present: std::vec::IntoIter<AddressRange>,
    /// What is left of the stretch that is being read.
    remaining: Option<AddressRange>,
    reader: MemoryReader,
    bytes: Vec<u8>,
    /// What could not be read so far.
    pub unread: Unread,
}

impl<'a> ResidentMemory<'a> {
    /// What is resident now; it is read part by part.
    ///
    /// # Errors
    /// The target is gone.
    pub fn of(target: &'a Target, range: AddressRange) -> Result<Self> {
        let present = present(target, range).collect::<process::Result<Vec<_>>>()?.into_iter();
        Ok(ResidentMemory {
            target,
            present,
            remaining: None,
            reader: MemoryReader::default(),
            bytes: Vec::new(),
            unread: Unread::default(),
        })
    }

    /// Gives `take` all parts, each with its address. Returns the number of bytes.
    ///
    /// # Errors
    /// Those of [`ResidentMemory::next`].
    #[cfg(feature = "cli")]
    pub fn for_each(&mut self, budget: &mut Budget, mut take: impl FnMut(VirtualAddress, &[u8])) -> Result<u64> {
        let mut all = 0;
        while let Some((start, bytes)) = self.next(budget)? {
            all += bytes.len() as u64;
            take(start, bytes);
        }
        Ok(all)
    }

    /// The next part.
    ///
    /// # Errors
    /// As [`read_resident`], and those of `budget`.
    pub fn next(&mut self, budget: &mut Budget) -> Result<Option<(VirtualAddress, &[u8])>> {
        let page = self.target.process.page_size();
        while let Some(range) = self.remaining.take().or_else(|| self.present.next()) {
            budget.go_on()?;
            let start = range.start();
            let wanted = usize::try_from(range.len()).unwrap_or(PART).min(PART);
            self.bytes.resize(wanted.max(self.bytes.len()), 0);
            let into = self.bytes.get_mut(..wanted).unwrap_or_default();
            let MemoryRead { bytes: read, ended } = self.reader.read(self.target, start, into)?;
            // The rest of the page in which it ended.
            let skipped = ended.map_or(0, |end| {
                let Unread { changed, unreadable } = &mut self.unread;
                *(if end == ReadEnd::Unreadable { unreadable } else { changed }) += 1;
                page.bytes() - page.offset(VirtualAddress::new(start.get() + read as u64))
            });
            let next = start.checked_add(read as u64 + skipped);
            self.remaining = next.and_then(|next| AddressRange::new(next, range.end()));
            if read > 0 {
                return Ok(Some((start, self.bytes.get(..read).unwrap_or_default())));
            }
        }
        Ok(None)
    }
}

/// The first address of `range` in whose page no frame is mapped; `None` if all have one.
///
/// # Errors
/// The target is gone.
pub fn first_absent(target: &Target, range: AddressRange) -> Result<Option<VirtualAddress>> {
    let page = target.process.page_size();
    if !target.process.has_page_map() {
        return Ok(None);
    }
    let mut next = page.index(range.start());
    let end = next + range.pages(page);
    while next < end {
        let pages = (end - next).min(MOST_PAGES);
        let found = entries(target, next, pages)?;
        let resident = count_resident(&found) as u64;
        next += resident;
        if resident < pages {
            let absent = VirtualAddress::new(next << page.shift());
            return Ok(Some(absent.max(range.start())));
        }
    }
    Ok(None)
}

/// Reads at most `most` pages.
fn read_some(target: &Target, start: VirtualAddress, into: &mut [u8], most: u64) -> Result<(usize, Option<ReadEnd>)> {
    let page = target.process.page_size();
    let end = VirtualAddress::new(start.get().saturating_add(into.len() as u64));
    let Some(range) = AddressRange::new(start, end) else {
        return Ok((0, Some(ReadEnd::NotResident)));
    };
    let (first, pages) = (page.index(start), range.pages(page).min(most));
    // The number of bytes in the first `pages` pages.
    let all = into.len();
    let bytes_in = |pages: usize| {
        let bytes = (pages as u64 * page.bytes()).saturating_sub(page.offset(start));
        usize::try_from(bytes).map_or(all, |bytes| bytes.min(all))
    };
    if !target.process.has_page_map() {
        let read = target.process.memory(start, into)?;
        return Ok((read, (read < into.len()).then_some(ReadEnd::NotCaptured)));
    }
    for attempt in 0..TRIES {
        let before = entries(target, first, pages)?;
        let resident = count_resident(&before);
        match (resident, attempt) {
            (0, 0) => return Ok((0, Some(ReadEnd::NotResident))),
            // It was present before the read, and is not afterwards.
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
            (true, settled) if read <= settled => {
                let is_capture = target.machine.is_captured();
                return Ok((read, Some(if is_capture { ReadEnd::NotCaptured } else { ReadEnd::Unreadable })));
            }
            (_, settled) => return Ok((settled, None)),
        }
    }
    Ok((0, Some(ReadEnd::Changed)))
}

/// How many pages from the first on have a frame.
fn count_resident(entries: &[PageMapEntry]) -> usize {
    entries.iter().take_while(|entry| entry.is_present()).count()
}

/// Page-map entries, fewer where the page map ends.
pub(super) fn entries(target: &Target, first: u64, pages: u64) -> Result<Vec<PageMapEntry>> {
    let mut entries = vec![PageMapEntry::default(); usize::try_from(pages).unwrap_or(0)];
    let read = target.process.entries(first, &mut entries)?;
    entries.truncate(read);
    Ok(entries)
}
