//! All facts about one address.

use super::address_space::AddressSpace;
use super::classify::{Backing, KernelBehaviour, PageObservation, RegionFacts, classify};
use super::error::{copied_or_not, no_scan, soft_dirty};
use super::fact::why_not_exclusive;
use super::folio::{Folio, is_aligned};
use super::frames::{FrameDetail, frame_detail, is_average, resources};
use super::page::{Page, huge_without_scan};
use super::region::ViewedRegion;
use super::table_entry::table_entry;
use super::{Error, Result};
use crate::kernel::{
    AddressRange, FrameNumber, Kind, PageFlags, PageMapEntry, PageSize, PhysicalAddress, Region, State, SwapEntry,
    TableEntry, VirtualAddress,
};
use crate::process::{BackingContent, Categories, Target};
use crate::report::{Fact, FolioMapping, FramePlace, KernelRecord, Reason};

/// One address and the page it lies in. Each fact that is not known says why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PageDetail {
    /// The address asked for.
    pub address: VirtualAddress,
    /// Its page, with whatever of the facts below is known.
    pub page: Page,
    /// The raw page-map entry; `None` where the page map ends before it.
    pub entry: Option<PageMapEntry>,
    /// The frame.
    pub frame: Fact<FrameNumber>,
    /// The physical address of the byte asked for.
    pub physical: Fact<PhysicalAddress>,
    /// `/proc/kpageflags`
    pub flags: Fact<PageFlags>,
    /// `/proc/kpagecount`
    pub map_count: Fact<u64>,
    /// How many of these mappings are pmdb's own.
    pub own_mappings: Fact<u64>,
    /// Whether it is mapped here and nowhere else.
    pub exclusive: Fact<bool>,
    /// Whether one PMD maps it, or it is from the hugetlb pool.
    pub huge: Fact<bool>,
    /// What the file or shared memory behind an untouched page has.
    pub content: Fact<BackingContent>,
    /// The folio that the frame belongs to, and how it is mapped around this page.
    pub folio: Fact<(Folio, FolioMapping)>,
    /// The kernel's own record of the frame, where that can be read.
    pub record: Option<KernelRecord>,
    /// The entry of the page table that maps the page, where the kernel's records can be read.
    pub table_entry: Option<Fact<TableEntry>>,
    /// Written to since soft-dirty bits were cleared.
    pub soft_dirty: Fact<bool>,
    /// Where the frame lies, and the cgroup that it is charged to.
    pub place: FramePlace,
    /// Whether userfaultfd write protection is asynchronous here, and only records writes; `None` if unknown.
    pub write_tracked: Option<bool>,
    /// The swap area and slot that hold its contents.
    pub swap: Fact<SwapEntry>,
    /// The region it lies in.
    pub region: Option<Region>,
    /// For an address in no region: the nearest one below and above.
    pub nearest: Option<(Option<Region>, Option<Region>)>,
}

/// What was read of a page.
struct PageReading {
    entry: Option<PageMapEntry>,
    categories: Option<Categories>,
    content: Fact<BackingContent>,
    /// The slot that its shared memory has for it, if it is in swap.
    slot: Fact<Option<SwapEntry>>,
}

/// How often a page is read that changes meanwhile.
const TRIES: u32 = 3;

impl AddressSpace {
    /// Finds out all facts about `address` and its region, of one moment. Facts that keep changing meanwhile are
    /// unknown.
    ///
    /// Fails when the kernel refuses, or the target is gone.
    pub fn detail_at(target: &Target, address: VirtualAddress) -> Result<(AddressSpace, PageDetail)> {
        let mut tries = 0;
        loop {
            tries += 1;
            let space = AddressSpace::at(target, address)?;
            let detail = space.detail(address)?;
            let now = target.process.region_at(address)?;
            if is_same_place(detail.region.as_ref(), now.as_ref(), address) {
                return Ok((space, detail));
            }
            if tries == TRIES {
                return Ok((space, detail.without_unsettled()));
            }
        }
    }
}

/// Whether both regions map the same memory at `address`. They may differ elsewhere.
fn is_same_place(one: Option<&Region>, other: Option<&Region>, address: VirtualAddress) -> bool {
    let place = |region: &Region| (region.permissions, region.device, region.inode, region.file_offset(address));
    one.map(place) == other.map(place)
}

impl AddressSpace {
    /// Whether a page of `viewed` without bit 61 may be the file's own: before Linux 6.11 that bit is missing where a
    /// PMD maps it.
    #[doc(hidden)]
    pub fn may_be_unmarked_file(&self, viewed: &ViewedRegion) -> bool {
        !self.huge_files_are_marked() && self.may_be_huge(viewed)
    }

    /// Finds out all facts about `address`, in the region that was there when this was made.
    ///
    /// Fails when the target is gone.
    pub fn detail(&self, address: VirtualAddress) -> Result<PageDetail> {
        let viewed = self.viewed_region(address);
        // The frame may be freed and reused between the reads. All facts about it must come from one moment.
        let mut tries = 0;
        loop {
            tries += 1;
            let reading = self.read_page(address, viewed)?;
            let detail = self.describe(address, viewed, &reading)?;
            self.check()?;
            let is_unsettled = self.target().process.is_unsettled(self.page_size().index(address));
            if !is_unsettled && self.entry(address)?.map(frame_bits) == reading.entry.map(frame_bits) {
                return Ok(detail);
            }
            if is_unsettled || tries == TRIES {
                return Ok(detail.without_unsettled());
            }
        }
    }

    fn entry(&self, address: VirtualAddress) -> Result<Option<PageMapEntry>> {
        let index = self.page_size().index(address);
        Ok(self.target().process.entry(index)?)
    }

    fn read_page(&self, address: VirtualAddress, viewed: Option<&ViewedRegion>) -> Result<PageReading> {
        let process = &self.target().process;
        let page = self.page_size();
        let start = page.floor(address);
        let of_pool = viewed.is_some_and(|viewed| viewed.backing == Backing::Hugetlb);
        let mut asked = Categories::ZERO | Categories::HUGE | Categories::WRITE_TRACKED;
        // The page map shows next to nothing of hugetlb entries that are not present.
        asked.set(Categories::SWAPPED, of_pool);
        let known = process.categories() & asked;
        let scans = known.contains(Categories::HUGE);
        let entry = self.entry(address)?;
        let range = start.checked_add(page.bytes()).and_then(|end| AddressRange::new(start, end));
        let categories = match (range, entry) {
            (Some(range), Some(entry)) if (entry.is_present() || entry.is_uffd_wp() || of_pool) && scans => {
                let found = process.populated(range, known).next().transpose()?;
                Some(found.map_or(Categories::empty(), |stretch| stretch.categories))
            }
            _ => None,
        };
        let is_empty = entry.is_some_and(|entry| !entry.is_present() && entry.swap().is_none());
        let content = match (range, viewed, entry) {
            (Some(range), Some(viewed), Some(_)) if is_empty && self.has_content(viewed) => {
                let first = self.backing_content(viewed, range).into_iter().next();
                first.ok_or(Reason::Changed).and_then(|run| Ok(run.content?))
            }
            _ => Err(Reason::NotApplicable(
                "only untouched pages of files, shared memory and the hugetlb pool have this state",
            )),
        };
        let slot = match (range, viewed) {
            (Some(range), Some(viewed)) if is_empty && self.may_have_slots(viewed) => {
                let found = self.require_slots().and_then(|()| self.slots(viewed, range));
                found.map(|found| found.first().map(|found| found.slot)).map_err(Reason::from)
            }
            _ => Ok(None),
        };
        Ok(PageReading { entry, categories, content, slot })
    }

    fn describe(
        &self,
        address: VirtualAddress,
        viewed: Option<&ViewedRegion>,
        reading: &PageReading,
    ) -> Result<PageDetail> {
        let entry = reading.entry.unwrap_or_default();
        let place = viewed.map(|viewed| self.region_facts(viewed));
        let is_hidden = place.is_some_and(|place| place.is_pfn_mapped) && entry.is_empty();
        let table_entry = table_entry(self.target(), self.page_size().index(address), entry, is_hidden);
        let in_table = table_entry.as_ref().and_then(|entry| entry.as_ref().ok()).map(|entry| entry.frame);
        let here = FrameHere { entry, is_hidden, of_device: in_table.filter(|_| is_hidden) };
        let read = ReadPage { space: self, address, viewed, place, reading, here };
        let frame = read.here.frame();
        let FrameDetail { flags, map_count, folio, record, place } = frame_detail(&self.target().machine, &frame);
        let folio = match folio {
            // How much of it is mapped here, the page map does not show.
            Ok(_) if read.here.of_device.is_some() => Err(read.here.none()),
            Ok(folio) => Ok((folio, self.folio_mapping(address, viewed, folio, reading)?)),
            Err(reason) => Err(reason),
        };
        let known_count = map_count.as_ref().ok().copied();
        let own_mappings = viewed.map_or(Ok(0), |viewed| self.own_mappings(viewed, address, entry, known_count));
        let page = Page {
            own_mappings: *own_mappings.as_ref().unwrap_or(&0),
            order: folio.as_ref().ok().map(|(folio, _)| folio.order),
            ..read.page(flags.as_ref().ok().copied(), known_count)
        };
        let physical = read.physical(&page);
        Ok(PageDetail {
            address,
            exclusive: match (page.state(), page.exclusive()) {
                (State::Present, Some(exclusive)) => Ok(exclusive),
                (State::Present, None) => Err(why_not_exclusive(&page).reason(&map_count.clone().map(drop))),
                _ => Err(read.here.none()),
            },
            content: reading.content.clone(),
            write_tracked: read.write_tracked(),
            soft_dirty: read.soft_dirty(),
            place: read.frame_place(&frame, &physical, place),
            swap: read.swap(&page),
            huge: read.huge(page.state(), page.kind, page.flags),
            region: viewed.map(|viewed| viewed.region.clone()),
            nearest: if viewed.is_none() { Some(self.nearest(address)?) } else { None },
            page,
            entry: reading.entry,
            frame,
            physical,
            flags,
            map_count,
            own_mappings,
            folio,
            record,
            table_entry,
        })
    }

    /// How often pmdb itself maps the page at `address`. A page that is mapped once is not.
    fn own_mappings(
        &self,
        viewed: &ViewedRegion,
        address: VirtualAddress,
        entry: PageMapEntry,
        map_count: Option<u64>,
    ) -> Fact<u64> {
        let others = map_count.map_or(u64::from(!entry.is_exclusive()), |count| count.saturating_sub(1));
        if !entry.is_present() || others == 0 || !viewed.region.maps_object() {
            return Ok(0);
        }
        let mut own = [0];
        let start = self.page_size().floor(address);
        self.observer()?.count(&viewed.region, start, &[entry], self.page_size(), &mut own);
        Ok(own[0].min(map_count.map_or(u64::MAX, |_| others)))
    }

    /// How much of the folio of the frame at `address` is mapped around it, in the folio's order.
    fn folio_mapping(
        &self,
        address: VirtualAddress,
        viewed: Option<&ViewedRegion>,
        folio: Folio,
        reading: &PageReading,
    ) -> Result<FolioMapping> {
        let at = self.page_size().index(address);
        let frame = reading.entry.and_then(PageMapEntry::frame);
        let index = frame.and_then(|frame| folio.index(frame));
        let index = index.unwrap_or_default();
        let aligned = is_aligned(folio, index, at);
        let by_one_entry = reading.categories.is_some_and(|categories| categories.contains(Categories::HUGE));
        let whole = folio.order == 0 || by_one_entry && aligned;
        let Some(viewed) = viewed.filter(|viewed| !whole && viewed.backing != Backing::Hugetlb) else {
            return Ok(FolioMapping { mapped_pages: folio.frames(), aligned });
        };
        let places = folio.places(index, at, viewed.range(), self.page_size());
        let mapped_pages = folio.mapped_pages(&self.target().process, index, at, places)?;
        Ok(FolioMapping { mapped_pages, aligned })
    }

    /// The regions that end below `address` and start above it.
    pub(crate) fn nearest(&self, address: VirtualAddress) -> Result<(Option<Region>, Option<Region>)> {
        if !self.is_complete()
            && let Some((below, above)) = self.target().process.query_neighbours(address)?
        {
            return Ok((below, Some(above)));
        }
        let all;
        let regions: Vec<&Region> = if self.is_complete() {
            self.viewed_regions().iter().map(|viewed| &viewed.region).collect()
        } else {
            all = self.target().process.regions().map_err(Error::from)?;
            all.iter().collect()
        };
        let above = regions.partition_point(|region| region.range.start() <= address);
        let below =
            above.checked_sub(1).and_then(|below| regions.get(below)).filter(|region| region.range.end() <= address);
        Ok((below.map(|region| (*region).clone()), regions.get(above).map(|region| (*region).clone())))
    }
}

/// A page that was read, and where it is.
struct ReadPage<'a> {
    space: &'a AddressSpace,
    address: VirtualAddress,
    viewed: Option<&'a ViewedRegion>,
    place: Option<RegionFacts>,
    reading: &'a PageReading,
    here: FrameHere,
}

impl ReadPage<'_> {
    /// The page with what was read and these words of its frame.
    fn page(&self, flags: Option<PageFlags>, map_count: Option<u64>) -> Page {
        let PageReading { entry, categories, content, slot } = self.reading;
        let evidence = PageObservation {
            entry: *entry,
            flags: flags.filter(|_| self.here.of_device.is_none()),
            categories: *categories,
            content: content.clone().ok(),
            slot: slot.clone().ok().flatten(),
        };
        let (content, slot) = (evidence.content, evidence.slot);
        let (states, kind) = classify(evidence, self.place, self.space);
        Page {
            entry: self.here.entry,
            kind,
            flags,
            map_count,
            huge: self.huge(states.likeliest(), kind, flags).ok(),
            count_is_average: is_average(&self.space.target().machine, flags, map_count),
            device_frame: self.here.of_device,
            content,
            slot,
            ..Page::new(self.space.page_size().floor(self.address), states)
        }
    }

    /// Whether one PMD maps it, or it is from the hugetlb pool.
    fn huge(&self, state: State, kind: Option<Kind>, flags: Option<PageFlags>) -> Fact<bool> {
        let is_never_huge = || {
            self.place.is_some_and(|place| !place.may_be_huge)
                || self.viewed.is_some_and(|viewed| self.space.has_no_huge(viewed))
        };
        match (state, self.reading.categories) {
            (State::Present, Some(categories)) => Ok(categories.contains(Categories::HUGE)),
            (State::Present, None) => {
                huge_without_scan(kind, flags).or_else(|| is_never_huge().then_some(false)).ok_or_else(no_scan)
            }
            // A hugetlb page with failed memory is still huge.
            (State::Hwpoison, Some(categories)) if categories.contains(Categories::HUGE) => Ok(true),
            _ => Err(self.here.none()),
        }
    }

    /// The physical address of the byte asked for.
    fn physical(&self, page: &Page) -> Fact<PhysicalAddress> {
        let may_be_copied = self.place.is_some_and(|place| place.may_be_copied);
        match page.state() {
            State::PfnMapped if self.here.of_device.is_none() => {
                self.here.of_driver(self.address, self.viewed, may_be_copied)
            }
            _ => self.here.physical(self.address, self.space.page_size()),
        }
    }

    /// Where the frame lies. Device memory has no frame here, but it has a physical address.
    fn frame_place(
        &self,
        frame: &Fact<FrameNumber>,
        physical: &Fact<PhysicalAddress>,
        place: FramePlace,
    ) -> FramePlace {
        if frame.is_ok() {
            return place;
        }
        let machine = &self.space.target().machine;
        FramePlace { iomem: physical.clone().and_then(|physical| resources(machine, physical)), ..place }
    }

    /// Whether userfaultfd write protection only records writes.
    fn write_tracked(&self) -> Option<bool> {
        let is_known = self.space.target().process.categories().contains(Categories::WRITE_TRACKED);
        let categories = self.reading.categories.filter(|_| is_known);
        categories.map(|categories| categories.contains(Categories::WRITE_TRACKED))
    }

    /// Whether it was written to since soft-dirty bits were cleared.
    fn soft_dirty(&self) -> Fact<bool> {
        let entry = self.reading.entry.ok_or(Reason::NotApplicable("the page map ends before this page"))?;
        soft_dirty(&self.space.target().machine)?;
        if entry.is_empty() { Err(Reason::NotApplicable("no page is there")) } else { Ok(entry.is_soft_dirty()) }
    }

    /// The swap area and slot that hold its contents.
    fn swap(&self, page: &Page) -> Fact<SwapEntry> {
        match (page.state(), page.entry.swap()) {
            (state, _) if state != State::Guard && page.entry.is_swap_hidden() => {
                Err(Reason::not_permitted("hidden: swap slots need CAP_SYS_ADMIN"))
            }
            (State::Swapped, Some(swap)) => Ok(swap),
            (State::Swapped, None) => page.slot.ok_or(Reason::Changed),
            _ if page.kind == Some(Kind::MaybeSwapped) => Err(unknown_slot(&self.reading.slot)),
            _ => Err(Reason::NotApplicable("the page is not in swap")),
        }
    }
}

/// What the page map and the page tables show of the frame at an address.
struct FrameHere {
    entry: PageMapEntry,
    /// Whether something is mapped of which the page map shows nothing: memory of a device.
    is_hidden: bool,
    /// The frame of such a mapping, from page tables.
    of_device: Option<FrameNumber>,
}

impl FrameHere {
    fn frame(&self) -> Fact<FrameNumber> {
        let hidden = || if self.entry.is_present() { Reason::FrameHidden } else { self.none() };
        self.entry.frame().or(self.of_device).ok_or_else(hidden)
    }

    /// Why there is no frame.
    fn none(&self) -> Reason {
        if self.is_hidden {
            Reason::NotOnThisKernel("the page map does not show the frames of device mappings (VM_PFNMAP)".into())
        } else {
            Reason::NotApplicable("no frame is mapped here")
        }
    }

    /// The physical address of the byte at `address`.
    fn physical(&self, address: VirtualAddress, size: PageSize) -> Fact<PhysicalAddress> {
        let start = self.frame()?.physical(size);
        let byte = start.and_then(|start| start.checked_add(size.offset(address)));
        byte.ok_or_else(|| self.none())
    }

    /// The physical address of a byte that a driver has mapped without a frame, as the mapped file shows it.
    fn of_driver(
        &self,
        address: VirtualAddress,
        viewed: Option<&ViewedRegion>,
        may_be_copied: bool,
    ) -> Fact<PhysicalAddress> {
        match viewed.and_then(|viewed| viewed.physical_base().zip(Some(viewed))) {
            Some(_) if may_be_copied => Err(copied_or_not()),
            Some((base, viewed)) => {
                let into = address.get() - viewed.range().start().get();
                base.checked_add(into).ok_or_else(|| self.none())
            }
            None => Err(Reason::NotOnThisKernel(
                "the kernel hides the frames of VM_PFNMAP mappings, and the mapped file does not show them".into(),
            )),
        }
    }
}

impl PageDetail {
    /// Drops the facts that may be of another moment than the entry.
    fn without_unsettled(mut self) -> Self {
        self.flags = self.flags.and(Err(Reason::Changed));
        self.map_count = self.map_count.and(Err(Reason::Changed));
        self.folio = self.folio.and(Err(Reason::Changed));
        self.place = self.place.changed();
        self.exclusive = self.exclusive.and(Err(Reason::Changed));
        self.huge = self.huge.and(Err(Reason::Changed));
        self.page.kind = None;
        self.page.huge = None;
        self.page.flags = None;
        self.page.map_count = None;
        self.page.own_mappings = 0;
        self.own_mappings = Ok(0);
        self.record = None;
        self.table_entry = self.table_entry.map(|_| Err(Reason::Changed));
        self.page.order = None;
        self
    }
}

/// Why the slot of a page of shared memory is unknown, which most likely is in swap.
fn unknown_slot(slot: &Fact<Option<SwapEntry>>) -> Reason {
    match slot {
        Err(reason) => reason.clone(),
        Ok(_) => Reason::NotOnThisKernel("the page map does not show the slots of shared memory".into()),
    }
}

/// The bits that identify the frame or slot: all but the soft-dirty and exclusive bits.
fn frame_bits(entry: PageMapEntry) -> u64 {
    const EXCLUSIVE: u64 = 1 << 56;
    entry.without_soft_dirty().raw() & !EXCLUSIVE
}
