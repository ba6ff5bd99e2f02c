//! The address space of a target for one command: its regions, read once, and facts about the machine, read on first
//! use.

mod backing;
mod smaps;

use super::Result;
use super::classify::{Backing, KernelBehaviour, RegionFacts};
use super::error::Availability;
use super::heap::uses::HeapUses;
use super::region::{Observer, ViewedRegion, backing};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::mounts::{FilesOn, MemoryFiles};
use crate::kernel::physical::Zones;
use crate::kernel::smaps::Smaps;
use crate::kernel::swaps::{SwapAreas, SwapLayout, SwapMeaning};
use crate::kernel::{AddressRange, Device, Name, PageFlags, PageSize, Region, SwapEntry, VirtualAddress};
use crate::process::{self, Held, KsmCounts, MapsText, Modules, Target};
use crate::report::{Fact, Reason};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A query to the kernel for the regions of a range; `None` if they are more than a limit.
type RegionQuery = fn(&process::Process, AddressRange, usize) -> process::Result<Option<Vec<Region>>>;

/// The regions of a target at one moment. Each command reads them anew. A clone is the same address space, and costs
/// next to nothing.
#[derive(Clone)]
pub struct AddressSpace(Arc<Inner>);

struct Inner {
    target: Target,
    page: PageSize,
    regions: Vec<ViewedRegion>,
    /// The text that the regions were decoded from.
    text: MapsText,
    complete: bool,
    cache: SpaceCache,
    /// The file of the region that was last asked about, kept open.
    held: Mutex<Option<(AddressRange, Held)>>,
}

/// The facts that were found out so far.
#[derive(Default)]
struct SpaceCache {
    swap_layout: OnceLock<SwapLayout>,
    merging: OnceLock<KsmCounts>,
    ksm_is_marked: OnceLock<bool>,
    swaps: OnceLock<process::Result<SwapAreas>>,
    zones: OnceLock<process::Result<Arc<Zones>>>,
    availability: OnceLock<Availability>,
    covered_pages: OnceLock<process::Result<u64>>,
    huge_bytes: OnceLock<u64>,
    smaps: OnceLock<process::Result<Vec<Smaps>>>,
    given_up: OnceLock<OutOfBudget>,
    kernel: OnceLock<(u32, u32)>,
    observer: OnceLock<process::Result<Observer>>,
    slots: OnceLock<process::Result<()>>,
    heap_uses: OnceLock<Result<HeapUses>>,
}

impl AddressSpace {
    /// Reads all regions of the target.
    ///
    /// Fails when `/proc/PID/maps` cannot be read or the target is gone.
    pub fn of(target: &Target) -> Result<AddressSpace> {
        let mut budget = target.process.budget();
        let (regions, text) = target.process.regions_and_text(&mut budget)?;
        Self::new(target, regions, text, true, budget)
    }

    /// Reads only the region that holds `address`, if any: enough for [`AddressSpace::detail`] of that one address.
    ///
    /// Fails when the kernel refuses, or the target is gone.
    pub fn at(target: &Target, address: VirtualAddress) -> Result<AddressSpace> {
        let regions = target.process.region_at(address)?.into_iter().collect();
        Self::new(target, regions, MapsText::default(), false, target.process.budget())
    }

    /// Reads only the regions that lie in `ranges`, if they are few and the kernel can be asked for them, otherwise
    /// all: enough for the [pages](Self::pages) of the ranges.
    ///
    /// Fails as [`AddressSpace::of`].
    pub fn in_ranges(target: &Target, ranges: &[AddressRange]) -> Result<AddressSpace> {
        Self::query_regions(target, ranges, process::Process::query_regions_in)
    }

    /// Reads the regions in `ranges`, and those next to them, which may grow into them.
    ///
    /// Fails as [`AddressSpace::of`].
    #[doc(hidden)]
    pub fn around(target: &Target, ranges: &[AddressRange]) -> Result<AddressSpace> {
        Self::query_regions(target, ranges, process::Process::query_regions_around)
    }

    /// Returns an address space of these regions, which were just read: enough for the pages in them.
    ///
    /// Fails as [`AddressSpace::of`].
    #[doc(hidden)]
    pub fn of_regions(target: &Target, regions: &[Region]) -> Result<AddressSpace> {
        Self::new(target, regions.to_vec(), MapsText::default(), false, target.process.budget())
    }

    fn query_regions(target: &Target, ranges: &[AddressRange], ask: RegionQuery) -> Result<AddressSpace> {
        if ranges.is_empty() || ranges.len() > process::FEW_REGIONS {
            return AddressSpace::of(target);
        }
        let mut regions: Vec<Region> = Vec::new();
        for range in ranges {
            let room = process::FEW_REGIONS.saturating_sub(regions.len());
            match ask(&target.process, *range, room)? {
                Some(more) => regions.extend(more),
                None => return AddressSpace::of(target),
            }
        }
        // A region may be in several of the ranges, and grow between two queries.
        regions.sort_by_cached_key(|one| one.range.start());
        regions.dedup_by(|next, one| next.range.start() < one.range.end());
        Self::new(target, regions, MapsText::default(), false, target.process.budget())
    }

    fn new(
        target: &Target,
        regions: Vec<Region>,
        text: MapsText,
        complete: bool,
        mut budget: Budget,
    ) -> Result<AddressSpace> {
        target.machine.forget_blocks();
        // A query for a device reads the list of mounts: one query for each device is enough.
        let mut known: Vec<(Device, Option<MemoryFiles>)> = Vec::new();
        let mapped_file = |region: &Region| target.modules.mapped_file(region).ok();
        let mut memory_files = |region: &Region| match known.iter().find(|one| one.0 == region.device) {
            Some(&(_, answer)) => Ok(answer),
            None => {
                let answer = match target.machine.files_on(region.device, &mut budget)? {
                    FilesOn::Memory(kind) => Some(kind),
                    // A file system that is no longer mounted is in no list of mounts.
                    FilesOn::NoMount => mapped_file(region).and_then(|file| file.memory_files()),
                    _ => None,
                };
                known.push((region.device, answer));
                Ok(answer)
            }
        };
        let pools_are_known = || target.machine.pools_are_known();
        let mut viewed: Vec<ViewedRegion> = Vec::with_capacity(regions.len());
        for region in regions {
            let backing = backing(&region, &mut memory_files, &pools_are_known, &mapped_file)?;
            viewed.push(ViewedRegion::new(region, backing, viewed.last()));
        }
        Ok(AddressSpace(Arc::new(Inner {
            target: target.clone(),
            page: target.process.page_size(),
            regions: viewed,
            text,
            complete,
            cache: SpaceCache::default(),
            held: Mutex::default(),
        })))
    }

    /// Returns the files that the target has mapped. The file of `region` stays open until another is asked for: to
    /// open it takes longer than most questions about its pages.
    pub(super) fn files(&self, region: &Region) -> &Modules {
        let modules = &self.0.target.modules;
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_none_or(|(of, _)| *of != region.range) {
            // The file that was held before is closed first.
            *held = None;
            *held = Some((region.range, modules.hold(region)));
        }
        modules
    }

    /// Returns the target.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// Returns the page size of the target.
    pub fn page_size(&self) -> PageSize {
        self.0.page
    }

    /// Returns the regions in address order; [`AddressSpace::at`] and [`in_ranges`](Self::in_ranges) read only some.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.0.regions.iter().map(|viewed| &viewed.region)
    }

    /// Returns the regions with their backing.
    pub fn viewed_regions(&self) -> &[ViewedRegion] {
        &self.0.regions
    }

    /// Returns the regions that `ranges` touch. The ranges are in order, and none overlap.
    pub(crate) fn regions_in<'s>(&'s self, ranges: &'s [AddressRange]) -> impl Iterator<Item = &'s ViewedRegion> {
        self.viewed_regions().iter().filter(|viewed| viewed.range().within(ranges).next().is_some())
    }

    /// Returns pmdb's own mappings, read when the first page of a file needs them.
    pub(super) fn observer(&self) -> process::Result<&Observer> {
        let observer = self.0.cache.observer.get_or_init(|| Observer::of(self.target()));
        observer.as_ref().map_err(Clone::clone)
    }

    /// Returns why pmdb's own mappings are unknown, if they were needed.
    #[doc(hidden)]
    pub fn own_mappings_unknown(&self) -> Option<Reason> {
        Some(self.0.cache.observer.get()?.as_ref().err()?.clone().into())
    }

    /// Returns the cache of the uses of pages for heaps.
    pub(super) fn heap_cache(&self) -> &OnceLock<Result<HeapUses>> {
        &self.0.cache.heap_uses
    }

    /// Returns whether [`AddressSpace::regions`] are all regions of the target.
    pub fn is_complete(&self) -> bool {
        self.0.complete
    }

    /// Returns the text that the regions were decoded from.
    pub(super) fn maps_text(&self) -> &MapsText {
        &self.0.text
    }

    /// Returns the region that contains `address`.
    pub fn viewed_region(&self, address: VirtualAddress) -> Option<&ViewedRegion> {
        let after = self.0.regions.partition_point(|viewed| viewed.region.range.start() <= address);
        let viewed = self.0.regions.get(after.checked_sub(1)?)?;
        viewed.region.range.contains(address).then_some(viewed)
    }

    /// Returns the index of the first region that ends after `address`; it must be at least `from`. The result is
    /// mostly `from` or the next index: spans mostly follow the regions, of which there may be very many.
    pub(super) fn region_from(&self, from: usize, address: VirtualAddress) -> usize {
        let ends_before = |viewed: &ViewedRegion| viewed.range().end() <= address;
        let rest = self.0.regions.get(from..).unwrap_or_default();
        match rest {
            [_, next, ..] if !ends_before(next) => from + usize::from(rest.first().is_some_and(ends_before)),
            rest => from + rest.partition_point(ends_before),
        }
    }

    /// Returns the spans of all regions: the meaning of `all`.
    pub fn spans(&self) -> Vec<AddressRange> {
        self.0.regions.iter().map(|viewed| viewed.range()).collect()
    }

    /// Returns the swap areas, read once.
    pub fn swaps(&self) -> process::Result<&SwapAreas> {
        let swaps = self.0.cache.swaps.get_or_init(|| self.0.target.machine.swaps());
        swaps.as_ref().map_err(Clone::clone)
    }

    /// Returns the device or file that holds a slot.
    pub fn swap_device(&self, slot: SwapEntry) -> Fact<Name> {
        let areas = self.swaps()?;
        let area = areas.area(slot, self.0.page);
        area.map(|area| area.name.clone()).ok_or_else(|| {
            Reason::NotOnThisKernel("/proc/swaps has no type numbers, and several areas may have this one".into())
        })
    }

    /// Returns the first two numbers of the kernel's release.
    pub(super) fn kernel(&self) -> (u32, u32) {
        let ask = || self.0.target.machine.kernel().number;
        *self.0.cache.kernel.get_or_init(ask)
    }

    /// Returns the zones and nodes of frames.
    pub fn zones(&self) -> process::Result<&Zones> {
        let zones = self.0.cache.zones.get_or_init(|| self.0.target.machine.zones());
        zones.as_deref().map_err(Clone::clone)
    }

    /// Splits `range` at the end of the page map: into the part that it covers, and the part above.
    ///
    /// Fails when the target is gone.
    pub(super) fn split_at_map_end(
        &self,
        range: AddressRange,
    ) -> process::Result<(Option<AddressRange>, Option<AddressRange>)> {
        let covers = |index: u64| Ok(self.0.target.process.entry(index)?.is_some());
        let last = VirtualAddress::new(range.end().get().saturating_sub(1));
        if covers(self.0.page.index(last))? {
            return Ok((Some(range), None));
        }
        let pages = self.0.cache.covered_pages.get_or_init(|| process::covered_pages(self.0.page, covers)).clone()?;
        let end = VirtualAddress::new(pages.saturating_mul(self.0.page.bytes()));
        let (start, end_of_range) = (range.start(), range.end());
        Ok((AddressRange::new(start, end.min(end_of_range)), AddressRange::new(end.max(start), end_of_range)))
    }

    /// Returns the facts about `viewed` that classification needs.
    pub(super) fn region_facts(&self, viewed: &ViewedRegion) -> RegionFacts {
        RegionFacts {
            backing: viewed.backing,
            is_shared: viewed.region.permissions.shared,
            is_pfn_mapped: self.is_pfn_mapped(viewed),
            may_be_copied: self.may_be_copied(viewed),
            may_be_huge: self.may_be_huge(viewed),
            merged: self.has_merged_pages(viewed),
        }
    }

    /// Returns the counts of samepage merging (KSM) on the machine.
    fn merging(&self) -> KsmCounts {
        *self.0.cache.merging.get_or_init(|| self.0.target.machine.merging())
    }

    /// Returns whether any page of the machine may be merged.
    pub(super) fn is_merging(&self) -> bool {
        self.merging().shared_pages != Some(0)
    }

    /// Returns whether some pages of the machine are merged, and their flags show which.
    pub(super) fn tells_merged_pages(&self) -> bool {
        let are_some = self.merging().shared_pages.is_some_and(|pages| pages > 0);
        are_some && self.ksm_is_marked() && self.availability().flags.is_ok()
    }

    /// Returns whether `KSM` of smaps may count mappings of the zero page that samepage merging made, which are not in
    /// Rss.
    #[doc(hidden)]
    pub fn counts_zeros_as_merged(&self) -> bool {
        self.merging().uses_zero_page != Some(false)
    }

    /// Returns whether the private pages of `viewed` are merged, for frames whose flags do not show it; `None` if
    /// unknown.
    fn has_merged_pages(&self, viewed: &ViewedRegion) -> Option<bool> {
        let flags_tell = || self.ksm_is_marked() && self.availability().flags.is_ok();
        let is_private = !viewed.region.permissions.shared;
        if !is_private || !self.is_merging() || flags_tell() {
            return Some(false);
        }
        *viewed.merged.get_or_init(|| {
            let smaps = Smaps::at(self.smaps(), viewed.range().start())?;
            let bytes = |field| smaps.field(field);
            // `KSM` came with Linux 6.6. It counts zero pages too if merging uses them; `Rss` does not.
            let all =
                bytes("KSM").is_some_and(|merged| bytes("Rss") == Some(merged) && bytes("Anonymous") == Some(merged));
            let is_offered = smaps.vm_flags.is_empty() || smaps.has_flag("mg");
            match bytes("KSM") {
                _ if !is_offered => Some(false),
                Some(0) => Some(false),
                _ if all && self.merging().uses_zero_page == Some(false) => Some(true),
                _ => None,
            }
        })
    }

    /// Returns whether `viewed` is a device mapping that may hold copies of the device's pages: a write to a private
    /// mapping makes such a copy in ordinary memory. The page map does not show it. Smaps counts it since Linux 6.2
    /// (before, `walk_page_vma` skipped such regions).
    fn may_be_copied(&self, viewed: &ViewedRegion) -> bool {
        let is_counted = self.kernel() >= (6, 2);
        let copied = || Smaps::at(self.smaps(), viewed.range().start())?.field("Anonymous").filter(|_| is_counted);
        viewed.backing != Backing::Kernel
            && !viewed.region.permissions.shared
            && self.is_pfn_mapped(viewed)
            && copied() != Some(0)
    }

    /// Returns whether a region is a private device mapping that may hold copies, which the page map does not show.
    #[doc(hidden)]
    pub fn may_hide_copies(&self) -> bool {
        self.viewed_regions().iter().any(|viewed| self.may_be_copied(viewed))
    }

    /// Returns whether smaps counts no huge mapping in `viewed`. `FilePmdMapped` came with Linux 5.4.
    pub(super) fn has_no_huge(&self, viewed: &ViewedRegion) -> bool {
        let fields = match viewed.backing {
            Backing::Hugetlb => return false,
            _ => ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"],
        };
        Smaps::at(self.smaps(), viewed.range().start())
            .is_some_and(|smaps| fields.iter().all(|field| smaps.field(field) == Some(0)))
    }

    /// Checks that the budget was enough for all facts about regions that were needed so far.
    ///
    /// # Errors
    /// The budget was used up.
    pub(super) fn check(&self) -> std::result::Result<(), OutOfBudget> {
        self.0.cache.given_up.get().map_or(Ok(()), |why| Err(*why))
    }

    /// Returns whether one PMD may map a part of `viewed`: that needs an aligned stretch within the region.
    pub fn may_be_huge(&self, viewed: &ViewedRegion) -> bool {
        let bytes = self.huge_bytes();
        let range = viewed.range();
        let first = range.start().get().checked_next_multiple_of(bytes);
        first.and_then(|first| first.checked_add(bytes)).is_some_and(|end| end <= range.end().get())
    }

    /// Returns the stretch around `address` that one PMD would map, if it is in `viewed`.
    pub(super) fn huge_stretch(&self, viewed: &ViewedRegion, address: VirtualAddress) -> Option<AddressRange> {
        let bytes = self.huge_bytes();
        let start = address.get() - address.get() % bytes;
        let end = VirtualAddress::new(start.checked_add(bytes)?);
        let stretch = AddressRange::new(VirtualAddress::new(start), end)?;
        (viewed.range().intersection(stretch) == Some(stretch)).then_some(stretch)
    }

    /// Returns the bytes that one PMD maps.
    pub fn huge_bytes(&self) -> u64 {
        *self.0.cache.huge_bytes.get_or_init(|| {
            let reported = self.0.target.machine.huge_page_bytes();
            // Linux before 4.11 does not show it. With every page size, a PMD maps as much as one page of entries does.
            let bytes = reported.unwrap_or(self.0.page.bytes().saturating_mul(self.0.page.bytes() / 8));
            bytes.max(1)
        })
    }

    /// Returns whether `viewed` is VM_PFNMAP. Before Linux 6.7, only smaps shows it: it is read once, and only if such
    /// a region is likely. If it cannot be read, the name decides.
    pub fn is_pfn_mapped(&self, viewed: &ViewedRegion) -> bool {
        // Almost no region can be VM_PFNMAP: the check and its cache are skipped for the others.
        viewed.may_be_pfn_mapped()
            && *viewed.pfn_mapped.get_or_init(|| match self.0.target.process.is_pfn_mapped(&viewed.region) {
                Ok(Some(answer)) => answer,
                Ok(None) | Err(_) if viewed.is_pfn_mapped_by_name() => true,
                Ok(None) | Err(_) => {
                    Smaps::at(self.smaps(), viewed.range().start()).is_some_and(|smaps| smaps.has_flag("pf"))
                }
            })
    }

    /// Returns which facts can be known here.
    pub fn availability(&self) -> &Availability {
        let of = || Availability::of(self.target());
        self.0.cache.availability.get_or_init(of)
    }

    /// Returns whether map counts are certainly those of single pages, and not averages over large folios. The first
    /// call may take milliseconds.
    pub fn has_exact_counts(&self) -> bool {
        self.0.target.machine.has_exact_map_counts() == Some(true)
    }
}

impl KernelBehaviour for AddressSpace {
    fn swap_meaning(&self, kind: u8) -> SwapMeaning {
        // Reading the kernel's configuration takes milliseconds.
        let layout = || self.0.target.machine.swap_layout();
        self.0.cache.swap_layout.get_or_init(layout).meaning(kind)
    }

    fn swap_in_use(&self) -> bool {
        // If /proc/swaps cannot be read, swap may be in use.
        self.swaps().map_or(true, |areas| !areas.0.is_empty())
    }

    fn ksm_is_marked(&self) -> bool {
        let is_false = |flags: PageFlags| flags.contains(PageFlags::KSM);
        let is_marked = || !self.0.target.machine.false_flags().is_some_and(is_false);
        *self.0.cache.ksm_is_marked.get_or_init(is_marked)
    }

    fn guards_are_marked(&self) -> bool {
        self.kernel() >= (6, 15)
    }

    fn huge_files_are_marked(&self) -> bool {
        self.kernel() >= (6, 11)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_whole_or_given_up_within_a_budget() {
        let tmpfs = Device { major: 0, minor: 30 };
        let of_file = |nth: u64, device| Region { device, inode: 3, ..crate::process::fake::region(8 * nth, 4) };
        let devices = [tmpfs, Device { major: 0, minor: 31 }, Device { major: 8, minor: 1 }];
        let regions = (1..300).zip(devices.into_iter().cycle()).map(|(nth, device)| of_file(nth, device));
        let (_, target) =
            crate::process::fake::World { tmpfs: Some(tmpfs), ..crate::process::fake::World::new(regions) }.target();
        let given_up = crate::budget::tests::whole_or_given_up(|budget| {
            match AddressSpace::of(&target.clone().with_budget(budget)) {
                Ok(space) => {
                    Ok(space.viewed_regions().iter().map(|one| (one.range(), one.backing)).collect::<Vec<_>>())
                }
                Err(super::super::Error::OutOfBudget(why)) => Err(why),
                Err(other) => panic!("{other}"),
            }
        });
        assert!(given_up > 50, "{given_up}");
    }

    /// Returns two device mappings, and the smaps of them and of `others`.
    fn devices_without_scan(others: u64) -> crate::process::fake::World {
        let device = |at: u64, flag: &str| {
            let region = Region {
                name: "/dev/some".into(),
                inode: 3,
                permissions: crate::kernel::Permissions { shared: true, ..Default::default() },
                ..crate::process::fake::region(at, 4)
            };
            let smaps = Smaps {
                range: region.range,
                fields: Vec::new(),
                vm_flags: vec!["rd".into(), flag.into()],
                may_be_huge: None,
                protection_key: None,
            };
            (region, smaps)
        };
        let ((hidden, one), (plain, other)) = (device(0x10, "pf"), device(0x20, "mm"));
        let others = (0..others).map(|number| Smaps::of(crate::process::fake::region(0x100 + 2 * number, 1).range));
        crate::process::fake::World {
            smaps: [one, other].into_iter().chain(others).collect(),
            scans: false,
            ..crate::process::fake::World::new([hidden, plain])
        }
    }

    #[test]
    fn pages_are_classified_by_all_of_smaps_or_not_at_all() {
        let (_, target) = devices_without_scan(300).target();
        let given_up = crate::budget::tests::whole_or_given_up(|budget| {
            let target = target.clone().with_budget(budget);
            let found = AddressSpace::of(&target).and_then(|space| {
                let mut states = vec![space.detail(VirtualAddress::new(0x10_000))?.page.state()];
                let mut pages = space.pages(&space.spans(), super::super::Evidence::empty());
                while let Some(chunk) = pages.next()? {
                    states.extend(chunk.pages().map(|page| page.state()));
                }
                Ok(states)
            });
            found.map_err(|error| match error {
                super::super::Error::OutOfBudget(why) => why,
                other => panic!("{other}"),
            })
        });
        assert!(given_up > 50, "{given_up}");
    }

    /// Before Linux 6.7 no scan skips a mapping of a driver, but smaps shows it.
    #[test]
    fn without_a_scan_smaps_shows_device_mappings() {
        let (_, target) = devices_without_scan(0).target();
        let space = AddressSpace::of(&target).expect("a space");
        let answers: Vec<bool> = space.viewed_regions().iter().map(|one| space.is_pfn_mapped(one)).collect();
        assert_eq!(answers, [true, false]);
    }
}
