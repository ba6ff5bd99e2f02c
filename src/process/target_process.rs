//! One process: its regions, its page map, its memory.

use super::findings;
use super::maps_text::{self, MapsText};
use super::modules::WordLayout;
use super::populated::{self, IN_ENTRIES, PopulatedRanges};
use crate::access::{Error, Identity, Liveness, MemoryLifetime, Result};
use crate::budget::Budget;
use crate::kernel::smaps::{self, Smaps};
use crate::kernel::{AddressRange, PageMapEntry, PageSize, Region, TableEntry, VirtualAddress, WordFile};
use crate::source::{Answer, Categories, File, Finding, HeapWords, Place, Probe, Query, RecordsOf, Source, as_words};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// A process, decoded from the answers of its source.
#[derive(Clone)]
pub struct Process {
    pub(super) source: Arc<dyn Source>,
    cache: Arc<ProcessCache>,
    budget: Budget,
}

/// Facts that are found once for a process, and its settings. All clones and views of the process share them.
struct ProcessCache {
    page: PageSize,
    abilities: OnceLock<Abilities>,
    /// The layout of the executable that runs now.
    layout: RwLock<Option<WordLayout>>,
    /// Whether PAGEMAP_SCAN and PROCMAP_QUERY may be used.
    scan: AtomicBool,
}

/// The facts that the kernel shows to pmdb about any process.
#[derive(Clone, Copy)]
pub(super) struct Abilities {
    /// The categories that PAGEMAP_SCAN has on this kernel.
    scannable: Categories,
    are_frames_hidden: bool,
}

impl Abilities {
    fn of(source: &dyn Source) -> Self {
        let entry = source.word(Probe::OwnEntry).map(PageMapEntry::new);
        // A program that changed its ids may not read its page map; or the page is already in swap.
        let by_right = || source.word(Probe::FrameRight) == Some(0);
        Abilities {
            scannable: Categories::supported(|question| source.scan(question, &mut []).is_ok()),
            // Root in a container or a user namespace seems to have this right too, so the entry decides.
            are_frames_hidden: entry.map_or_else(by_right, PageMapEntry::is_frame_hidden),
        }
    }
}

impl Process {
    /// Makes the process that a source reads.
    pub fn new(source: Arc<dyn Source>) -> Self {
        let known = ProcessCache {
            page: source.page_size(),
            abilities: OnceLock::new(),
            layout: RwLock::default(),
            scan: AtomicBool::new(true),
        };
        Process { source, cache: Arc::new(known), budget: Budget::unlimited() }
    }

    /// Sets the budget of each reading of all its regions.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Process { budget, ..self }
    }

    /// Returns the budget of each reading of all its regions.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Makes the process that a source reads, with known abilities.
    pub(super) fn with(source: Arc<dyn Source>, abilities: Abilities) -> Self {
        let process = Self::new(source);
        process.cache.abilities.get_or_init(|| abilities);
        process
    }

    /// Returns the same process, read through another source.
    pub(super) fn over(&self, source: Arc<dyn Source>) -> Self {
        Process { source, ..self.clone() }
    }

    pub(super) fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    pub(super) fn abilities(&self) -> Abilities {
        let ask = || Abilities::of(&*self.source);
        *self.cache.abilities.get_or_init(ask)
    }

    fn scannable(&self) -> Categories {
        if self.cache.scan.load(Ordering::Relaxed) { self.abilities().scannable } else { Categories::empty() }
    }

    /// Returns the id, the start time and the name of the process. The name changes with exec.
    pub fn identity(&self) -> Identity {
        self.source.identity()
    }

    /// Returns the page size of the process.
    pub fn page_size(&self) -> PageSize {
        self.cache.page
    }

    /// Returns page size, pointer width and byte order, by the auxiliary vector.
    pub fn layout(&self) -> WordLayout {
        let cached = &self.cache.layout;
        if let Some(layout) = *cached.read().unwrap_or_else(PoisonError::into_inner) {
            return layout;
        }
        let layout = WordLayout::of(&*self.source);
        *cached.write().unwrap_or_else(PoisonError::into_inner) = Some(layout);
        layout
    }

    /// Returns whether the process still exists, and runs the same program. After [`Liveness::Executed`] the handles
    /// have been reopened.
    pub fn liveness(&self) -> Result<Liveness> {
        let liveness = self.source.liveness()?;
        if liveness == Liveness::Executed {
            let cached = &self.cache.layout;
            *cached.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(liveness)
    }

    /// Returns when the capture was begun and ended, in seconds since 1970; `None` if the process is not in a capture.
    #[doc(hidden)]
    pub fn capture_times(&self) -> Option<[u64; 2]> {
        self.source.origin().times()
    }

    /// Returns whether the source is an ELF core file.
    #[cfg(feature = "cli")]
    pub(crate) fn is_core(&self) -> bool {
        self.source.origin().is_core()
    }

    /// Returns whether there is a page map. A core file of the kernel has none.
    pub(crate) fn has_page_map(&self) -> bool {
        self.source.origin().has_page_map()
    }

    /// Returns the parts of a capture that are skipped.
    #[cfg(feature = "cli")]
    pub(crate) fn passed_over(&self) -> crate::source::PassedOver {
        self.source.origin().passed_over()
    }

    /// Returns the only ranges of which a capture has entries, or a core without entries has memory; empty if it has
    /// all.
    pub(crate) fn captured_parts(&self) -> Vec<AddressRange> {
        self.source.origin().parts().to_vec()
    }

    /// Returns the parts of `range` of which a capture has entries, or a core without entries has memory.
    pub(crate) fn captured_within(&self, range: AddressRange) -> Vec<AddressRange> {
        let parts = self.captured_parts();
        if parts.is_empty() { vec![range] } else { range.within(&parts).collect() }
    }

    /// Returns the processes of a captured family that are missing from the capture, or incomplete.
    #[cfg(feature = "cli")]
    pub(crate) fn missing_processes(&self) -> Vec<crate::source::MissingProcess> {
        self.source.origin().missing_processes().to_vec()
    }

    /// Returns words about the heap from number `first` on; `None` unless the source is a capture that has them.
    pub(crate) fn heap_words(&self, first: u64) -> Result<Option<Vec<u64>>> {
        self.source.get(HeapWords(first), &mut self.budget())
    }

    /// Fails for a target without a page map.
    pub(crate) fn require_page_map(&self) -> Result<()> {
        if self.has_page_map() { Ok(()) } else { self.entry(0).map(drop) }
    }

    /// Fails for a range of which a capture does not have the page map.
    pub(crate) fn require_entries(&self, range: AddressRange) -> Result<()> {
        let page = self.layout().page;
        let first = page.index(range.start());
        self.source.origin().require_entries(first, first.saturating_add(range.pages(page)))
    }

    /// Returns the `e_machine` of the machine's programs.
    pub(crate) fn machine(&self) -> Option<u16> {
        self.source.word(Probe::Machine).and_then(|machine| u16::try_from(machine).ok())
    }

    /// Returns the `e_machine` of the executable, if known. A 64-bit machine may run 32-bit programs.
    #[cfg(feature = "cli")]
    pub(crate) fn program_machine(&self) -> Option<u16> {
        let is_64 = self.layout().pointer_bytes == 8;
        self.machine().map(|machine| crate::kernel::core_file::machine_of(machine, is_64))
    }

    /// Reads the auxiliary vector, in words of the process.
    #[cfg(feature = "cli")]
    pub(crate) fn auxiliary_vector(&self) -> Result<Vec<u8>> {
        self.source.fetch(File::Auxiliary)
    }

    /// Returns whether a page changed while its entry and its frame were captured.
    pub(crate) fn is_unsettled(&self, page: u64) -> bool {
        self.source.origin().is_unsettled(page)
    }

    /// Returns the current address space; `None` if the process never gets another one.
    #[doc(hidden)]
    pub fn memory_lifetime(&self) -> Option<Arc<dyn MemoryLifetime>> {
        self.source.origin().memory_lifetime()
    }

    /// Reads all regions in address order (`/proc/PID/maps`), anew at each call.
    pub fn regions(&self) -> Result<Vec<Region>> {
        self.regions_within(&mut self.budget())
    }

    /// Reads all regions within a budget, because a process may have millions. Each costs one step.
    pub fn regions_within(&self, budget: &mut Budget) -> Result<Vec<Region>> {
        self.regions_and_text(budget).map(|(regions, _)| regions)
    }

    /// Reads all regions within a budget, and the text of which they were decoded.
    #[doc(hidden)]
    pub fn regions_and_text(&self, budget: &mut Budget) -> Result<(Vec<Region>, MapsText)> {
        let (regions, text) = maps_text::read(&*self.source, budget)?;
        Ok((regions, MapsText::new(text)))
    }

    /// Reads all regions, if they are few.
    #[cfg(feature = "symbols")]
    pub(crate) fn few_regions(&self, budget: &mut Budget) -> Result<Option<Vec<Region>>> {
        maps_text::read_short(&*self.source, budget)
    }

    /// Queries the regions that map files, and the vdso, in address order; `None` if only the text has them.
    #[cfg(feature = "symbols")]
    pub(crate) fn module_regions(&self, budget: &mut Budget) -> Result<Option<Vec<Region>>> {
        let may_ask = self.cache.scan.load(Ordering::Relaxed);
        let mappings = if may_ask { self.source.get(crate::source::FileMappings, budget)? } else { None };
        let regions = mappings.and_then(|found| found.into_iter().map(|one| self.with_true_name(one)).collect());
        let Some::<Vec<Region>>(mut regions) = regions else {
            return Ok(None);
        };
        let vector = self.source.fetch(File::Auxiliary)?;
        if let Some(vdso) = crate::kernel::status::vdso(&vector, self.layout().pointer_bytes) {
            match self.query_region_at(VirtualAddress::new(vdso))? {
                Some(Some(region)) if region.name.as_bytes() == b"[vdso]" => regions.push(region),
                // The region was moved or unmapped.
                _ => return Ok(None),
            }
        }
        regions.sort_by_cached_key(|region| region.range.start());
        Ok(Some(regions))
    }

    /// Reads more of `/proc/PID/maps`, after `so_far` bytes that are equal to `before`. Returns how many more are
    /// equal, 0 at the end of both; `None` if they differ, or there is no text to compare with.
    #[doc(hidden)]
    pub fn maps_unchanged_from(&self, before: &MapsText, so_far: usize) -> Result<Option<usize>> {
        // A read returns at most a page.
        let mut text = Vec::with_capacity(4 << 10);
        self.source.maps(so_far as u64, &mut text)?;
        Ok(before.same_from(so_far, &text))
    }

    /// Returns the region that contains `address`, by PROCMAP_QUERY if the kernel has it (6.11).
    pub fn region_at(&self, address: VirtualAddress) -> Result<Option<Region>> {
        if let Some(answer) = self.query_region_at(address)? {
            return Ok(answer);
        }
        let mut regions = self.regions()?.into_iter();
        Ok(regions.find(|region| region.range.contains(address)))
    }

    pub(super) fn query(&self, question: Query) -> Result<Answer> {
        if self.cache.scan.load(Ordering::Relaxed) { self.source.fetch(question) } else { Ok(Answer::Unavailable) }
    }

    /// Reads page-map entries from page index `first` on. Returns how many were read: fewer than `into` holds means
    /// that the page map ends there (`[vsyscall]`, the kernel half). A target that is gone is an error, not an end.
    pub fn entries(&self, first: u64, into: &mut [PageMapEntry]) -> Result<usize> {
        self.source.words(WordFile::PageMap, first, as_words(into))
    }

    /// Returns the entry of the page with this index; `None` past the end of the page map.
    pub fn entry(&self, index: u64) -> Result<Option<PageMapEntry>> {
        let mut entry = [PageMapEntry::default()];
        let read = self.entries(index, &mut entry)?;
        Ok((read > 0).then_some(entry[0]))
    }

    /// Checks that the entries of its page tables can be read here.
    ///
    /// # Errors
    /// Fails if they cannot be read, or were not proved to agree with its page map.
    #[doc(hidden)]
    pub fn require_table_entries(&self) -> Result<()> {
        self.source.fetch(RecordsOf::PageTables)
    }

    /// Reads the page-table entries that map the pages from index `first` on; `None` for a page that is not mapped. An
    /// entry counts only if the page map has the same frame.
    #[doc(hidden)]
    pub fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()> {
        self.source.kernel_records()?.table_entries(first, into)
    }

    /// Returns the categories that [`Process::populated`] can find here.
    pub fn categories(&self) -> Categories {
        match self.scannable() {
            none if none.is_empty() => IN_ENTRIES,
            known => known,
        }
    }

    /// Returns whether the kernel reports populated pages (PAGEMAP_SCAN).
    pub fn has_scan(&self) -> bool {
        !self.scannable().is_empty()
    }

    /// Sets whether PAGEMAP_SCAN and PROCMAP_QUERY may be used, on kernels that have them. Without them plain reads
    /// find the same.
    pub fn set_scan(&self, on: bool) {
        self.cache.scan.store(on, Ordering::Relaxed);
    }

    /// Returns the runs of pages in `range` whose page-map entries are not empty, in address order, each with its
    /// categories among `wanted`. The kernel skips VM_PFNMAP regions. Without PAGEMAP_SCAN plain reads find the same
    /// runs (without `ZERO` and `HUGE`). Never changes the target.
    pub fn populated(&self, range: AddressRange, wanted: Categories) -> PopulatedRanges<'_> {
        PopulatedRanges::new(&*self.source, self.page_size(), range, wanted, self.scannable(), self.budget())
    }

    /// Returns the first populated run in `spans` whose writes the process tracks through userfaultfd, if a scan can
    /// show it.
    pub fn write_tracked(&self, spans: &[AddressRange]) -> Result<Option<AddressRange>> {
        const TRACKED: Categories = Categories::WRITE_TRACKED;
        if !self.categories().contains(TRACKED) {
            return Ok(None);
        }
        let mut all = spans.iter().flat_map(|span| self.populated(*span, TRACKED));
        let first = all.find(|one| one.as_ref().map_or(true, |stretch| stretch.categories.contains(TRACKED)));
        Ok(first.transpose()?.map(|stretch| stretch.range))
    }

    /// Clears the soft-dirty bits of all pages, which write-protects them: this is the only function here that changes
    /// how the process runs. Call it only at the request of the user. A kernel without such bits accepts it too.
    pub fn clear_soft_dirty(&self) -> Result<()> {
        self.source.clear_soft_dirty()
    }

    /// Returns whether the kernel hides the pages of the region (VM_PFNMAP), by a scan, which skips such regions;
    /// `None` if only smaps shows it.
    #[doc(hidden)]
    pub fn is_pfn_mapped(&self, region: &Region) -> Result<Option<bool>> {
        if !self.has_scan() {
            return Ok(None);
        }
        let start = region.range.start();
        let passed_over = populated::is_passed_over(&*self.source, start, self.page_size())?;
        // A scan skips holes too: if the region was unmapped since, the scan proves nothing.
        match passed_over {
            Some(true) if self.region_at(start)?.is_none() => Ok(None),
            answer => Ok(answer),
        }
    }

    /// Reads memory at `address` through `/proc/PID/mem`, and returns how many bytes were read. This faults pages in:
    /// call it only for pages that were found resident just before.
    pub fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        self.source.bytes(Place::Memory, address, into)
    }

    /// Returns whether frame numbers are hidden from this opener.
    pub fn are_frames_hidden(&self) -> bool {
        self.abilities().are_frames_hidden
    }

    /// Returns the findings that differ between processes.
    #[doc(hidden)]
    pub fn findings(&self) -> Result<Vec<Finding>> {
        findings::of_process(&*self.source, &mut self.budget())
    }

    /// Returns the finding about the page tables of the process.
    #[doc(hidden)]
    pub fn tables_finding(&self) -> Finding {
        findings::tables(self.require_table_entries())
    }

    /// Reads the kernel's counts for each region (`/proc/PID/smaps`). The kernel walks all page tables for them, which
    /// lasts long for many regions and much memory.
    pub fn smaps(&self, budget: &mut Budget) -> Result<Vec<Smaps>> {
        let text = self.source.get(File::Smaps, budget)?;
        let counted = smaps::regions(&text).map(|region| {
            budget.go_on()?;
            Ok(region?)
        });
        counted.collect()
    }

    /// Reads the kernel's counts for the whole process (`/proc/PID/smaps_rollup`, since Linux 4.14), for which it walks
    /// all page tables.
    pub fn rollup(&self) -> Result<Smaps> {
        let text = self.source.fetch(File::SmapsRollup)?;
        let nothing = || Error::not_available(format!("process {} has no memory", self.identity().pid));
        Ok(smaps::regions(&text).next().ok_or_else(nothing)??)
    }
}
