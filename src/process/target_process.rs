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

/// A process, decoded from what its source gives.
#[derive(Clone)]
pub struct Process {
    pub(super) source: Arc<dyn Source>,
    cache: Arc<ProcessCache>,
    budget: Budget,
}

/// Facts found out once for a process, and its settings. All views of the same process share them.
struct ProcessCache {
    page: PageSize,
    abilities: OnceLock<Abilities>,
    /// Of the program that runs now.
    layout: RwLock<Option<WordLayout>>,
    /// Whether the newer calls may be used.
    scan: AtomicBool,
}

/// What the kernel shows to pmdb, of any process.
#[derive(Clone, Copy)]
pub(super) struct Abilities {
    /// The categories that PAGEMAP_SCAN knows on this kernel.
    scannable: Categories,
    are_frames_hidden: bool,
}

impl Abilities {
    fn of(source: &dyn Source) -> Self {
        let entry = source.word(Probe::OwnEntry).map(PageMapEntry::new);
        // Its own page map may be closed to a program that changed its ids; or the page is already in swap.
        let by_right = || source.word(Probe::FrameRight) == Some(0);
        Abilities {
            scannable: Categories::supported(|question| source.scan(question, &mut []).is_ok()),
            // Root in a container or a user namespace seems to have this right too, so the entry is what counts.
            are_frames_hidden: entry.map_or_else(by_right, PageMapEntry::is_frame_hidden),
        }
    }
}

impl Process {
    /// The process that a source reads.
    pub fn new(source: Arc<dyn Source>) -> Self {
        let known = ProcessCache {
            page: source.page_size(),
            abilities: OnceLock::new(),
            layout: RwLock::default(),
            scan: AtomicBool::new(true),
        };
        Process { source, cache: Arc::new(known), budget: Budget::unlimited() }
    }

    /// The same process, with what each reading of all its regions may take.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Process { budget, ..self }
    }

    /// What each reading of all its regions may take.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// The process that a source reads, with known abilities.
    pub(super) fn with(source: Arc<dyn Source>, abilities: Abilities) -> Self {
        let process = Self::new(source);
        process.cache.abilities.get_or_init(|| abilities);
        process
    }

    /// The same process, read through another source.
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

    /// Who it is. Its name changes when it runs another program.
    pub fn identity(&self) -> Identity {
        self.source.identity()
    }

    /// The size of its pages.
    pub fn page_size(&self) -> PageSize {
        self.cache.page
    }

    /// Page size, pointer width and byte order. The program is looked at for them.
    pub fn layout(&self) -> WordLayout {
        let cached = &self.cache.layout;
        if let Some(layout) = *cached.read().unwrap_or_else(PoisonError::into_inner) {
            return layout;
        }
        let layout = WordLayout::of(&*self.source);
        *cached.write().unwrap_or_else(PoisonError::into_inner) = Some(layout);
        layout
    }

    /// Whether it is still there and still the same. After [`Liveness::Executed`] the handles have been reopened.
    pub fn liveness(&self) -> Result<Liveness> {
        let liveness = self.source.liveness()?;
        if liveness == Liveness::Executed {
            let cached = &self.cache.layout;
            *cached.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(liveness)
    }

    /// When it was captured (begun and ended, in seconds since 1970); `None` if it is no capture.
    #[doc(hidden)]
    pub fn capture_times(&self) -> Option<[u64; 2]> {
        self.source.origin().times()
    }

    /// Whether it is an ELF core file.
    #[cfg(feature = "cli")]
    pub(crate) fn is_core(&self) -> bool {
        self.source.origin().is_core()
    }

    /// Whether there is a page map: a core file of the kernel has none.
    pub(crate) fn has_page_map(&self) -> bool {
        self.source.origin().has_page_map()
    }

    /// The parts of a capture that are passed over.
    #[cfg(feature = "cli")]
    pub(crate) fn passed_over(&self) -> crate::source::PassedOver {
        self.source.origin().passed_over()
    }

    /// The only ranges that a capture has entries of, or a core without entries has memory of; empty if it has all.
    pub(crate) fn captured_parts(&self) -> Vec<AddressRange> {
        self.source.origin().parts().to_vec()
    }

    /// The parts of `range` that a capture has entries of, or a core without entries has memory of.
    pub(crate) fn captured_within(&self, range: AddressRange) -> Vec<AddressRange> {
        let parts = self.captured_parts();
        if parts.is_empty() { vec![range] } else { range.within(&parts).collect() }
    }

    /// The processes of a captured family that the capture does not have, or has only in part.
    #[cfg(feature = "cli")]
    pub(crate) fn missing_processes(&self) -> Vec<crate::source::MissingProcess> {
        self.source.origin().missing_processes().to_vec()
    }

    /// Words of the heap from the one with this number on; `None` of anything but a capture that has them.
    pub(crate) fn heap_words(&self, first: u64) -> Result<Option<Vec<u64>>> {
        self.source.get(HeapWords(first), &mut self.budget())
    }

    /// Refuses a target without a page map.
    pub(crate) fn require_page_map(&self) -> Result<()> {
        if self.has_page_map() { Ok(()) } else { self.entry(0).map(drop) }
    }

    /// Refuses a range that a capture does not have the page map of.
    pub(crate) fn require_entries(&self, range: AddressRange) -> Result<()> {
        let page = self.layout().page;
        let first = page.index(range.start());
        self.source.origin().require_entries(first, first.saturating_add(range.pages(page)))
    }

    /// The `e_machine` of the programs of the machine.
    pub(crate) fn machine(&self) -> Option<u16> {
        self.source.word(Probe::Machine).and_then(|machine| u16::try_from(machine).ok())
    }

    /// The `e_machine` of its program, if known: a machine of 64 bits may run programs of 32 bits.
    #[cfg(feature = "cli")]
    pub(crate) fn program_machine(&self) -> Option<u16> {
        let is_64 = self.layout().pointer_bytes == 8;
        self.machine().map(|machine| crate::kernel::core_file::machine_of(machine, is_64))
    }

    /// The auxiliary vector, in words of the process.
    #[cfg(feature = "cli")]
    pub(crate) fn auxiliary_vector(&self) -> Result<Vec<u8>> {
        self.source.fetch(File::Auxiliary)
    }

    /// Whether a page changed while its entry and its frame were captured.
    pub(crate) fn is_unsettled(&self, page: u64) -> bool {
        self.source.origin().is_unsettled(page)
    }

    /// The address space that it has now; `None` if it never gets another one.
    #[doc(hidden)]
    pub fn memory_lifetime(&self) -> Option<Arc<dyn MemoryLifetime>> {
        self.source.origin().memory_lifetime()
    }

    /// All its regions in address order (`/proc/PID/maps`), read anew at each call.
    pub fn regions(&self) -> Result<Vec<Region>> {
        self.regions_within(&mut self.budget())
    }

    /// The same within a budget: a process may have millions of regions. Each is a step.
    pub fn regions_within(&self, budget: &mut Budget) -> Result<Vec<Region>> {
        self.regions_and_text(budget).map(|(regions, _)| regions)
    }

    /// The same, and the text that they were read from.
    #[doc(hidden)]
    pub fn regions_and_text(&self, budget: &mut Budget) -> Result<(Vec<Region>, MapsText)> {
        let (regions, text) = maps_text::read(&*self.source, budget)?;
        Ok((regions, MapsText::new(text)))
    }

    /// All its regions, if they are not many.
    #[cfg(feature = "symbols")]
    pub(crate) fn few_regions(&self, budget: &mut Budget) -> Result<Option<Vec<Region>>> {
        maps_text::read_short(&*self.source, budget)
    }

    /// The regions that map files, and the vdso, in address order; `None` if only the text has them.
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

    /// Reads on in `/proc/PID/maps` after `so_far` bytes that are the same as `before`. Returns how many more are the
    /// same, 0 at the end of both; `None` if something differs, or there is no such text.
    #[doc(hidden)]
    pub fn maps_unchanged_from(&self, before: &MapsText, so_far: usize) -> Result<Option<usize>> {
        // The kernel gives no more than a page at a time.
        let mut text = Vec::with_capacity(4 << 10);
        self.source.maps(so_far as u64, &mut text)?;
        Ok(before.same_from(so_far, &text))
    }

    /// The region that holds `address`, or `None`. By PROCMAP_QUERY where the kernel has it (6.11).
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

    /// Page-map entries from page index `first` on; how many were read is returned. Fewer than asked for means that the
    /// page map ends there (`[vsyscall]`, the kernel half). A target that is gone is an error, not an end.
    pub fn entries(&self, first: u64, into: &mut [PageMapEntry]) -> Result<usize> {
        self.source.words(WordFile::PageMap, first, as_words(into))
    }

    /// The entry of the page with this index; `None` past the end of the page map.
    pub fn entry(&self, index: u64) -> Result<Option<PageMapEntry>> {
        let mut entry = [PageMapEntry::default()];
        let read = self.entries(index, &mut entry)?;
        Ok((read > 0).then_some(entry[0]))
    }

    /// Whether the entries of its page tables can be read here.
    ///
    /// # Errors
    /// They cannot, or were not proved to be those of its page map.
    #[doc(hidden)]
    pub fn require_table_entries(&self) -> Result<()> {
        self.source.fetch(RecordsOf::PageTables)
    }

    /// The entries of its page tables that map the pages from page index `first` on; `None` where nothing is mapped. An
    /// entry counts only if the page map has the same frame.
    #[doc(hidden)]
    pub fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()> {
        self.source.kernel_records()?.table_entries(first, into)
    }

    /// Which categories [`Process::populated`] can tell here.
    pub fn categories(&self) -> Categories {
        match self.scannable() {
            none if none.is_empty() => IN_ENTRIES,
            known => known,
        }
    }

    /// Whether the kernel reports what is populated (PAGEMAP_SCAN).
    pub fn has_scan(&self) -> bool {
        !self.scannable().is_empty()
    }

    /// Whether PAGEMAP_SCAN and PROCMAP_QUERY may be used. They are where the kernel has them; switched off, plain
    /// reads give the same answers.
    pub fn set_scan(&self, on: bool) {
        self.cache.scan.store(on, Ordering::Relaxed);
    }

    /// The stretches of `range` that have anything in their page-map entries (present or a non-present entry), in
    /// address order, with those of the `wanted` categories that hold. The kernel passes over VM_PFNMAP regions. Where
    /// there is no PAGEMAP_SCAN, plain reads find the same stretches (without `ZERO` and `HUGE`). Never changes the
    /// target.
    pub fn populated(&self, range: AddressRange, wanted: Categories) -> PopulatedRanges<'_> {
        PopulatedRanges::new(&*self.source, self.page_size(), range, wanted, self.scannable(), self.budget())
    }

    /// The first populated stretch of `spans` whose writes the process tracks through userfaultfd, as far as a scan
    /// tells.
    pub fn write_tracked(&self, spans: &[AddressRange]) -> Result<Option<AddressRange>> {
        const TRACKED: Categories = Categories::WRITE_TRACKED;
        if !self.categories().contains(TRACKED) {
            return Ok(None);
        }
        let mut all = spans.iter().flat_map(|span| self.populated(*span, TRACKED));
        let first = all.find(|one| one.as_ref().map_or(true, |stretch| stretch.categories.contains(TRACKED)));
        Ok(first.transpose()?.map(|stretch| stretch.range))
    }

    /// Clears the soft-dirty bits of all pages, which write-protects them: the one operation here that changes how the
    /// process runs. Call it only when the user asked for it. A kernel without such bits accepts it too.
    pub fn clear_soft_dirty(&self) -> Result<()> {
        self.source.clear_soft_dirty()
    }

    /// Whether the kernel hides the pages of the region (VM_PFNMAP), judged by a scan, which skips such regions; `None`
    /// where only smaps tells.
    #[doc(hidden)]
    pub fn is_pfn_mapped(&self, region: &Region) -> Result<Option<bool>> {
        if !self.has_scan() {
            return Ok(None);
        }
        let start = region.range.start();
        let passed_over = populated::is_passed_over(&*self.source, start, self.page_size())?;
        // A scan skips holes too: if the region has gone meanwhile, the scan proves nothing.
        match passed_over {
            Some(true) if self.region_at(start)?.is_none() => Ok(None),
            answer => Ok(answer),
        }
    }

    /// Reads memory at `address` through `/proc/PID/mem`, and returns how much was read. This faults pages in: call it
    /// only for pages that were found resident just before.
    pub fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        self.source.bytes(Place::Memory, address, into)
    }

    /// Whether frame numbers are hidden from this opener.
    pub fn are_frames_hidden(&self) -> bool {
        self.abilities().are_frames_hidden
    }

    /// The findings that differ from process to process.
    #[doc(hidden)]
    pub fn findings(&self) -> Result<Vec<Finding>> {
        findings::of_process(&*self.source, &mut self.budget())
    }

    /// The finding about its page tables.
    #[doc(hidden)]
    pub fn tables_finding(&self) -> Finding {
        findings::tables(self.require_table_entries())
    }

    /// What the kernel counts in each region (`/proc/PID/smaps`). The kernel walks all page tables for it, which takes
    /// long for many regions and much memory.
    pub fn smaps(&self, budget: &mut Budget) -> Result<Vec<Smaps>> {
        let text = self.source.get(File::Smaps, budget)?;
        let counted = smaps::regions(&text).map(|region| {
            budget.go_on()?;
            Ok(region?)
        });
        counted.collect()
    }

    /// Bytes of its regions that are locked (`VmLck`); `None` if unknown.
    pub(crate) fn locked_bytes(&self) -> Option<u64> {
        let status = self.status().ok()?;
        status.memory.iter().find(|(name, _)| name == "VmLck").map(|&(_, bytes)| bytes)
    }

    /// What the kernel counts of all its memory (`/proc/PID/smaps_rollup`, since Linux 4.14). It walks all page tables
    /// for it.
    pub fn rollup(&self) -> Result<Smaps> {
        let text = self.source.fetch(File::SmapsRollup)?;
        let nothing = || Error::not_available(format!("process {} has no memory", self.identity().pid));
        Ok(smaps::regions(&text).next().ok_or_else(nothing)??)
    }
}
