//! Scans one process for a frame. The flags and the map count of the frame show where it can be mapped, and how often.

use crate::budget::{Budget, OutOfBudget};
use crate::inspect::{Result, is_average};
use crate::kernel::{AddressRange, FrameNumber, PageFlags, PageMapEntry, PageSize, VirtualAddress};
use crate::process::{Categories, Machine, Process};
use crate::report::{Fact, Reason};
use std::collections::BTreeSet;

/// The entries of one read: 64 KiB.
const READ_ENTRIES: usize = 8192;
/// The pages that one read covers to check some of them: 4 KiB of entries take less time than a second system call.
const NEAR_PAGES: usize = 512;
/// The most empty pages between two populated ranges that one read covers: it takes half as long as a second system
/// call.
const GAP_PAGES: u64 = 64;
/// The runs in one process after which they are reported, before the scan continues.
const REPORT_RUNS: usize = 256;
/// The entries read in one process after which any runs are reported, before the scan continues.
const REPORT_ENTRIES: u64 = 1 << 18;

/// Pages of a process, by their first bytes.
pub type PageSet = BTreeSet<VirtualAddress>;

/// Scans processes for one frame.
#[derive(Clone, Copy)]
pub struct FrameScanner {
    pub frame: FrameNumber,
    pub page: PageSize,
}

/// A buffer of entries, which is reused for all processes.
pub struct ScanBuffer(Vec<PageMapEntry>);

impl Default for ScanBuffer {
    fn default() -> Self {
        ScanBuffer(vec![PageMapEntry::default(); READ_ENTRIES])
    }
}

/// The pages found in a process so far.
#[derive(Default)]
pub struct ScanHits {
    /// The runs of neighbouring pages that map the frame: the first page and the number of pages.
    pub runs: Vec<(VirtualAddress, u64)>,
    /// The number of entries read.
    read: u64,
    /// The reason why the scan ended early.
    pub stopped: Option<OutOfBudget>,
}

impl ScanHits {
    /// Returns whether the runs are to be reported before the scan continues.
    fn is_due(&self) -> bool {
        self.runs.len() >= REPORT_RUNS || !self.runs.is_empty() && self.read >= REPORT_ENTRIES
    }
}

/// A scan of one process.
pub struct ProcessScan<'a> {
    pub scanner: FrameScanner,
    pub process: &'a Process,
    pub buffer: &'a mut ScanBuffer,
    pub budget: &'a mut Budget,
    pub hits: ScanHits,
}

impl FrameScanner {
    /// Returns the range of all addresses.
    pub fn all_addresses(&self) -> Option<AddressRange> {
        let last = self.page.floor(VirtualAddress::new(u64::MAX));
        AddressRange::new(VirtualAddress::default(), last)
    }

    /// Returns whether the page at `address` maps the frame.
    pub fn is_at(&self, process: &Process, address: VirtualAddress) -> Result<bool> {
        let entry = process.entry(self.page.index(address))?;
        Ok(entry.and_then(PageMapEntry::frame) == Some(self.frame))
    }

    /// Returns those of `pages` that map the frame.
    pub fn still_mapped(
        &self,
        process: &Process,
        pages: &PageSet,
        ScanBuffer(buffer): &mut ScanBuffer,
        budget: &mut Budget,
    ) -> Result<PageSet> {
        let pages: Vec<VirtualAddress> = pages.iter().copied().collect();
        let mut still = PageSet::new();
        let mut left = &pages[..];
        while let Some(&first) = left.first() {
            budget.look()?;
            let first = self.page.index(first);
            let nth = |page: VirtualAddress| (self.page.index(page) - first) as usize;
            let (near, far) = left.split_at(left.partition_point(|&page| nth(page) < NEAR_PAGES));
            let pages = near.last().map_or(0, |&last| nth(last) + 1);
            let into = buffer.get_mut(..pages).unwrap_or_default();
            let read = process.entries(first, into)?;
            let entries = buffer.get(..read).unwrap_or_default();
            let maps = |&page: &VirtualAddress| {
                let entry = entries.get(nth(page));
                entry.is_some_and(|entry| entry.frame() == Some(self.frame))
            };
            still.extend(near.iter().copied().filter(maps));
            left = far;
        }
        Ok(still)
    }

    /// Returns the range from `one` to `next`, if one read of it takes less time than two reads.
    fn join_if_near(&self, one: AddressRange, next: AddressRange) -> Option<AddressRange> {
        let gap = AddressRange::new(one.end(), next.start())?;
        let whole = AddressRange::new(one.start(), next.end())?;
        let is_near = gap.pages(self.page) <= GAP_PAGES && whole.pages(self.page) <= READ_ENTRIES as u64;
        is_near.then_some(whole)
    }
}

impl ProcessScan<'_> {
    /// Scans `range`. Returns the rest of it if runs are to be reported first, or if the budget is used up. Without
    /// [PAGEMAP_SCAN](Process::has_scan), it reads all entries of the range. That must then be of one region, as the
    /// addresses between regions would take too long.
    pub fn scan(&mut self, range: AddressRange) -> Result<Option<AddressRange>> {
        let (scanner, process) = (self.scanner, self.process);
        let rest = |from: Option<VirtualAddress>| {
            let from = from?;
            AddressRange::new(from, range.end())
        };
        if !process.has_scan() {
            return Ok(rest(self.read(range)?));
        }
        // The populated ranges for one read.
        let mut together: Option<AddressRange> = None;
        for stretch in process.populated(range, Categories::PRESENT) {
            let stretch = stretch?;
            if !stretch.categories.contains(Categories::PRESENT) {
                continue;
            }
            let whole = together.and_then(|near| scanner.join_if_near(near, stretch.range));
            if whole.is_some() {
                together = whole;
            } else if let Some(before) = together.replace(stretch.range)
                && let Some(ended) = self.read(before)?
            {
                return Ok(rest(Some(ended)));
            }
        }
        together.map_or(Ok(None), |last| Ok(rest(self.read(last)?)))
    }

    /// Reads the entries of `range`. Returns the address at which it ended early.
    fn read(&mut self, range: AddressRange) -> Result<Option<VirtualAddress>> {
        let FrameScanner { frame, page } = self.scanner;
        let (ScanBuffer(buffer), hits) = (&mut *self.buffer, &mut self.hits);
        let mut index = page.index(range.start());
        let mut left = range.pages(page);
        let address = |index: u64| VirtualAddress::new(index << page.shift());
        // The index of the page that would continue the last run.
        let mut open = None;
        while left > 0 {
            if let Err(why) = self.budget.look() {
                hits.stopped = Some(why);
                return Ok(Some(address(index)));
            }
            if open.is_none() && hits.is_due() {
                return Ok(Some(address(index)));
            }
            let batch = usize::try_from(left).unwrap_or(READ_ENTRIES).min(READ_ENTRIES);
            let into = buffer.get_mut(..batch).unwrap_or_default();
            let read = self.process.entries(index, into)?;
            let entries = buffer.get(..read).unwrap_or_default();
            for (entry, index) in entries.iter().zip(index..) {
                if entry.frame() != Some(frame) {
                    continue;
                }
                match hits.runs.last_mut() {
                    Some((_, pages)) if open == Some(index) => *pages += 1,
                    _ => hits.runs.push((address(index), 1)),
                }
                open = Some(index + 1);
            }
            hits.read += read as u64;
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

/// The places where a frame can be mapped, as its flags show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MappingPlaces {
    /// No process can map the frame, for this reason.
    Unmappable(&'static str),
    /// A page of the page cache, also of shared memory: it is mapped only at its offset in its file.
    File,
    /// Anonymous memory, or a page that a driver inserted: it can be mapped anywhere, but probably at the same address
    /// in relatives.
    Anonymous,
    /// A zero page or a merged page: a mapping suggests no place of others.
    SharedConstant,
}

impl MappingPlaces {
    pub fn of(flags: &Fact<PageFlags>) -> Self {
        let flags = match flags {
            Ok(flags) => *flags,
            Err(Reason::NotApplicable(why)) => return MappingPlaces::Unmappable(why),
            Err(_) => return MappingPlaces::Anonymous,
        };
        // A page with a page type is not mapped, as the type and the map count share a word of `struct page`. Types are
        // checked first: kernels from 6.12 on set false flags on pages of the slab.
        let types = [
            (PageFlags::BUDDY, "it is free"),
            (PageFlags::SLAB, "it belongs to the kernel's object allocator"),
            (PageFlags::PGTABLE, "it is a page table"),
            (PageFlags::OFFLINE, "it is offline"),
            (PageFlags::NOPAGE, "there is no memory at this frame number"),
        ];
        for (flag, why) in types {
            if flags.contains(flag) {
                return MappingPlaces::Unmappable(why);
            }
        }
        // A page that a driver inserted was never read in, and so is not UPTODATE.
        let in_page_cache = flags.contains(PageFlags::UPTODATE) && !flags.contains(PageFlags::ANON);
        if flags.intersects(PageFlags::ZERO_PAGE.union(PageFlags::KSM)) {
            MappingPlaces::SharedConstant
        } else if in_page_cache && !flags.contains(PageFlags::RESERVED) {
            MappingPlaces::File
        } else {
            MappingPlaces::Anonymous
        }
    }
}

/// Checks that the map count of a frame is the number of its mappings. Returns the reason if it is not.
pub fn is_counted(flags: &Fact<PageFlags>, count: &Fact<u64>, machine: &Machine) -> Fact<()> {
    let count = count.clone()?;
    let flags = flags.clone()?;
    if flags.contains(PageFlags::ZERO_PAGE) {
        Err(Reason::NotApplicable("the kernel does not count mappings of the zero page"))
    } else if count == 0 {
        Err(Reason::NotApplicable("the kernel does not count mappings by a driver, such as those of /dev/mem"))
    } else if flags.contains(PageFlags::HUGE) && !flags.contains(PageFlags::ANON) {
        // Since 2.6.20 (CONFIG_ARCH_WANT_HUGE_PMD_SHARE), several processes may share a page table of hugetlb memory,
        // which is counted once.
        Err(Reason::NotApplicable("the kernel counts processes that share page tables of hugetlb memory as one"))
    } else if is_average(machine, Some(flags), Some(count)) {
        Err(Reason::NotOnThisKernel(
            "the map count may be an average over a large folio (CONFIG_NO_PAGE_MAPCOUNT)".to_owned(),
        ))
    } else {
        Ok(())
    }
}
