//! What one command looks at: the regions, read once, and what holds for the machine, read when first wanted.

use super::classify::{Backing, Place};
use super::page::Need;
use super::rules::Rules;
use super::{Error, Result};
use crate::kernel::mounts::MemoryFiles;
use crate::kernel::smaps::Smaps;
use crate::kernel::swaps::{SwapAreas, SwapLayout, SwapMeaning};
use crate::kernel::zones::Zones;
use crate::kernel::{
    AddressRange, Device, FrameNumber, Name, PageFlags, PageMapEntry, PageSize, PhysicalAddress,
    Region, SwapEntry, VirtualAddress,
};
use crate::report::{Fact, Reason};
use crate::target::{self, Categories, Target};
use std::sync::{Arc, OnceLock};

/// A region and what pages need to know of it.
#[derive(Debug)]
pub struct ViewedRegion {
    /// The region as `maps` gives it.
    pub region: Region,
    /// What stands behind it.
    pub backing: Backing,
    pfn_mapped: OnceLock<bool>,
}

/// The regions of a target at one moment. Made anew for each command: regions are never used again from an earlier one.
pub struct View<'a> {
    target: &'a Target,
    page: PageSize,
    regions: Vec<ViewedRegion>,
    complete: bool,
    swap_layout: OnceLock<SwapLayout>,
    ksm_in_use: OnceLock<bool>,
    swaps: OnceLock<target::Result<SwapAreas>>,
    zones: OnceLock<target::Result<Arc<Zones>>>,
    availability: OnceLock<Availability>,
    covered_pages: OnceLock<target::Result<u64>>,
    huge_bytes: OnceLock<u64>,
    smaps: OnceLock<target::Result<Vec<Smaps>>>,
    kernel: OnceLock<(u32, u32)>,
}

/// What can be known here, found out by trying. A filter on what cannot is refused before anything is walked.
#[derive(Clone, Debug)]
pub struct Availability {
    /// Frame numbers.
    pub frames: Fact<()>,
    /// `/proc/kpageflags`, and frame numbers to look it up by.
    pub flags: Fact<()>,
    /// `/proc/kpagecount`, and frame numbers to look it up by.
    pub counts: Fact<()>,
    /// Soft-dirty bits.
    pub soft_dirty: Fact<()>,
    /// What PAGEMAP_SCAN tells; empty where there is none.
    pub categories: Categories,
}

impl<'a> View<'a> {
    /// Reads all regions of the target.
    ///
    /// Fails when `/proc/PID/maps` cannot be read or the target is gone.
    pub fn of(target: &'a Target) -> Result<View<'a>> {
        let regions = target.process.regions()?;
        Ok(Self::new(target, regions, true))
    }

    /// Reads only the region that holds `address`, if any: enough for [`View::detail`] of that one address.
    ///
    /// Fails when the kernel refuses, or the target is gone.
    pub fn at(target: &'a Target, address: VirtualAddress) -> Result<View<'a>> {
        let region = target.process.region_at(address)?;
        Ok(Self::new(target, region.into_iter().collect(), false))
    }

    fn new(target: &'a Target, regions: Vec<Region>, complete: bool) -> View<'a> {
        // Asking about a device reads the list of mounts: once is enough.
        let mut known: Vec<(Device, Option<MemoryFiles>)> = Vec::new();
        let mut memory_files = |device: Device| match known.iter().find(|one| one.0 == device) {
            Some(&(_, answer)) => answer,
            None => {
                let answer = target.machine.memory_files(device);
                known.push((device, answer));
                answer
            }
        };
        let pools_are_told = || target.machine.pools_are_told();
        let regions = regions
            .into_iter()
            .map(|region| ViewedRegion {
                backing: backing(&region, &mut memory_files, &pools_are_told),
                region,
                pfn_mapped: OnceLock::new(),
            })
            .collect();
        View {
            target,
            page: target.process.layout().page,
            regions,
            complete,
            swap_layout: OnceLock::new(),
            ksm_in_use: OnceLock::new(),
            swaps: OnceLock::new(),
            zones: OnceLock::new(),
            availability: OnceLock::new(),
            covered_pages: OnceLock::new(),
            huge_bytes: OnceLock::new(),
            smaps: OnceLock::new(),
            kernel: OnceLock::new(),
        }
    }

    /// What is looked at.
    pub fn target(&self) -> &'a Target {
        self.target
    }

    /// The target's page size.
    pub fn page(&self) -> PageSize {
        self.page
    }

    /// The regions in address order; with [`View::at`] at most one.
    pub fn regions(&self) -> &[ViewedRegion] {
        &self.regions
    }

    /// Whether [`View::regions`] are all that the target has.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The region that holds `address`.
    pub fn region(&self, address: VirtualAddress) -> Option<&ViewedRegion> {
        let after = self
            .regions
            .partition_point(|viewed| viewed.region.range.start() <= address);
        let viewed = self.regions.get(after.checked_sub(1)?)?;
        viewed.region.range.contains(address).then_some(viewed)
    }

    /// The spans of all regions: what `all` means.
    pub fn spans(&self) -> Vec<AddressRange> {
        self.regions.iter().map(|viewed| viewed.range()).collect()
    }

    /// Swap areas, read once.
    pub fn swaps(&self) -> target::Result<&SwapAreas> {
        let swaps = self.swaps.get_or_init(|| self.target.machine.swaps());
        swaps.as_ref().map_err(Clone::clone)
    }

    /// The device or file that holds a slot.
    pub fn swap_device(&self, slot: SwapEntry) -> Fact<Name> {
        let areas = self.swaps().map_err(|error| reason(&error))?;
        let area = areas.area(slot, self.page);
        area.map(|area| area.name.clone()).ok_or_else(|| {
            Reason::NotOnThisKernel(
                "/proc/swaps has no type numbers, and several areas may have this one".into(),
            )
        })
    }

    /// The first two numbers of the kernel's release.
    pub(super) fn kernel(&self) -> (u32, u32) {
        let ask = || self.target.machine.kernel().number;
        *self.kernel.get_or_init(ask)
    }

    /// Zones and nodes of frames.
    pub fn zones(&self) -> target::Result<&Zones> {
        let zones = self.zones.get_or_init(|| self.target.machine.zones());
        zones.as_deref().map_err(Clone::clone)
    }

    /// How much of `range` the page map covers: a part at its beginning, and behind that what lies outside.
    ///
    /// Fails when the target is gone.
    pub(super) fn covered(
        &self,
        range: AddressRange,
    ) -> target::Result<(Option<AddressRange>, Option<AddressRange>)> {
        let covers = |index: u64| {
            let mut entry = [PageMapEntry::default()];
            let read = self.target.process.entries(index, &mut entry)?;
            Ok(read > 0)
        };
        let last = VirtualAddress::new(range.end().get().saturating_sub(1));
        if covers(self.page.index(last))? {
            return Ok((Some(range), None));
        }
        let pages = self
            .covered_pages
            .get_or_init(|| target::covered_pages(self.page, covers))
            .clone()?;
        let end = VirtualAddress::new(pages.saturating_mul(self.page.bytes()));
        let (start, end_of_range) = (range.start(), range.end());
        Ok((
            AddressRange::new(start, end.min(end_of_range)),
            AddressRange::new(end.max(start), end_of_range),
        ))
    }

    /// What pages of `viewed` need to know of it.
    pub(super) fn place(&self, viewed: &ViewedRegion) -> Place {
        Place {
            backing: viewed.backing,
            shared: viewed.region.permissions.shared,
            pfn_mapped: self.is_pfn_mapped(viewed),
            may_be_huge: self.may_be_huge(viewed),
        }
    }

    /// Whether one PMD may map a part of `viewed`: it takes an aligned stretch within one region.
    pub(super) fn may_be_huge(&self, viewed: &ViewedRegion) -> bool {
        let bytes = *self.huge_bytes.get_or_init(|| {
            let told = self.target.machine.huge_page_bytes();
            // Linux before 4.11 does not tell; a page of entries is a PMD's with all page sizes.
            told.unwrap_or(self.page.bytes().saturating_mul(self.page.bytes() / 8))
        });
        let range = viewed.range();
        let first = range.start().get().checked_next_multiple_of(bytes.max(1));
        first
            .and_then(|first| first.checked_add(bytes))
            .is_some_and(|end| end <= range.end().get())
    }

    /// Whether `viewed` is VM_PFNMAP. Before Linux 6.7 only smaps tells, which is read once and where such a region is likely; where that
    /// cannot be read, what is known by its name to be so.
    pub fn is_pfn_mapped(&self, viewed: &ViewedRegion) -> bool {
        *viewed.pfn_mapped.get_or_init(|| {
            viewed.may_be_pfn_mapped()
                && match self.target.process.is_pfn_mapped(&viewed.region) {
                    Ok(Some(told)) => told,
                    Ok(None) | Err(_) if viewed.is_pfn_mapped_by_name() => true,
                    Ok(None) | Err(_) => {
                        let smaps = self.smaps.get_or_init(|| self.target.process.smaps());
                        let smaps = smaps.as_deref().unwrap_or_default();
                        Smaps::at(smaps, viewed.range().start())
                            .is_some_and(|smaps| smaps.has_flag("pf"))
                    }
                }
        })
    }

    /// Whether a file or shared memory is behind `viewed`, which can be asked what it has of pages that are not mapped.
    pub(super) fn has_object(&self, viewed: &ViewedRegion) -> bool {
        matches!(viewed.backing, Backing::File | Backing::Shmem) && !self.is_pfn_mapped(viewed)
    }

    /// What can be known here.
    pub fn availability(&self) -> &Availability {
        self.availability.get_or_init(|| {
            let machine = &*self.target.machine;
            let frames = match self.target.process.frames_hidden() {
                true => Err(Reason::FrameHidden),
                false => Ok(()),
            };
            let probe = |read: target::Result<usize>| match (&frames, read) {
                (_, Err(error)) => Err(reason(&error)),
                (Err(hidden), Ok(_)) => Err(hidden.clone()),
                (Ok(()), Ok(_)) => Ok(()),
            };
            Availability {
                flags: probe(machine.frame_flags(FrameNumber::new(1), &mut [PageFlags::empty()])),
                counts: probe(machine.frame_counts(FrameNumber::new(1), &mut [0])),
                frames,
                soft_dirty: match machine.has_soft_dirty() {
                    Some(true) => Ok(()),
                    Some(false) => Err(Reason::NotOnThisKernel(
                        "this kernel does not track soft-dirty pages (CONFIG_MEM_SOFT_DIRTY)"
                            .into(),
                    )),
                    None => Err(Reason::NotOnThisKernel(
                        "cannot tell whether this kernel tracks soft-dirty pages".into(),
                    )),
                },
                categories: self.target.process.categories(),
            }
        })
    }

    /// Whether map counts are of one page, and not averages over large folios, for all that can be told. To find out may take
    /// milliseconds.
    pub fn has_exact_counts(&self) -> bool {
        self.target.machine.has_exact_map_counts() == Some(true)
    }

    /// Refuses what cannot be known here, naming it: for filters, before a walk.
    pub fn require(&self, need: Need) -> Result<()> {
        let available = self.availability();
        let kinds = match available.categories.contains(Categories::ZERO) {
            true => Ok(()),
            false => available.flags.clone(),
        };
        let huge = match available.categories.contains(Categories::HUGE) {
            true => Ok(()),
            false => Err(no_scan()),
        };
        let zones = match need.contains(Need::ZONES) {
            true => available
                .frames
                .clone()
                .and_then(|()| self.zones().map(|_| ()).map_err(|error| reason(&error))),
            false => Ok(()),
        };
        let cgroups = match need.contains(Need::CGROUPS) {
            true => available.frames.clone().and_then(|()| {
                let machine = &self.target.machine;
                let read = machine.frame_cgroups(FrameNumber::new(1), &mut [0]);
                read.map(drop).map_err(|error| reason(&error))
            }),
            false => Ok(()),
        };
        let facts = [
            (Need::ORDER, "the orders of folios", &available.flags),
            (Need::ZONES, "zones and nodes of frames", &zones),
            (Need::CGROUPS, "memory cgroups of frames", &cgroups),
            (Need::FRAMES, "frame numbers", &available.frames),
            (Need::FLAGS, "page flags", &available.flags),
            (Need::COUNTS, "map counts", &available.counts),
            (Need::SOFT_DIRTY, "soft-dirty bits", &available.soft_dirty),
            (Need::KINDS, "the zero page", &kinds),
            (Need::HUGE, "huge mappings", &huge),
        ];
        for (asked, what, fact) in facts {
            if let (true, Err(reason)) = (need.contains(asked), fact) {
                return Err(Error::Unknown {
                    what,
                    reason: reason.clone(),
                });
            }
        }
        Ok(())
    }

    /// `need` with what has to be read for it. All but states follows from entries, orders from flags; and where pages are merged,
    /// only flags tell which.
    pub(super) fn with_implied(&self, need: Need) -> Need {
        let need = match need.has_entries() {
            true => need | Need::ENTRIES,
            false => need,
        };
        let merged = need.contains(Need::KINDS)
            && !need.contains(Need::FLAGS)
            && self.availability().flags.is_ok()
            && self.ksm_in_use();
        // Nor is a page that one PMD maps told from a copy without them.
        let unmarked = need.contains(Need::KINDS)
            && !self.huge_files_are_marked()
            && self.availability().flags.is_ok();
        match merged || unmarked || need.contains(Need::ORDER) {
            true => need | Need::FLAGS,
            false => need,
        }
    }

    /// As much of `need` as can be known here, for commands that show what there is to show.
    pub fn obtainable(&self, need: Need) -> Need {
        Need::all()
            .iter()
            .filter(|&one| need.contains(one))
            .filter(|&one| one == Need::KINDS || self.require(one).is_ok())
            .collect()
    }
}

impl Rules for View<'_> {
    fn swap_meaning(&self, kind: u8) -> SwapMeaning {
        // Reading the kernel's configuration takes milliseconds.
        let layout = || self.target.machine.swap_layout();
        self.swap_layout.get_or_init(layout).meaning(kind)
    }

    fn swap_in_use(&self) -> bool {
        // Where /proc/swaps cannot be read, swap may be in use.
        self.swaps().map_or(true, |areas| !areas.0.is_empty())
    }

    fn ksm_in_use(&self) -> bool {
        let is_false = |flags: PageFlags| flags.contains(PageFlags::KSM);
        let in_use = || !self.target.machine.false_flags().is_some_and(is_false);
        *self.ksm_in_use.get_or_init(in_use)
    }

    fn guards_are_marked(&self) -> bool {
        self.kernel() >= (6, 15)
    }

    fn huge_files_are_marked(&self) -> bool {
        self.kernel() >= (6, 11)
    }
}

impl ViewedRegion {
    /// The addresses it covers.
    pub fn range(&self) -> AddressRange {
        self.region.range
    }

    /// Only drivers and the kernel itself make VM_PFNMAP mappings: never plain memory, never files of a disk.
    fn may_be_pfn_mapped(&self) -> bool {
        match self.backing {
            Backing::Kernel => true,
            Backing::File => self.region.device.major == 0,
            Backing::Anonymous | Backing::Shmem | Backing::Hugetlb => self.is_device_file(),
        }
    }

    fn is_device_file(&self) -> bool {
        let name = self.region.name.as_bytes();
        name.starts_with(b"/dev/") && !name.starts_with(b"/dev/shm/")
            || name.starts_with(b"/sys/")
            || name.starts_with(b"/proc/")
    }

    fn is_pfn_mapped_by_name(&self) -> bool {
        self.region.name.as_bytes().starts_with(b"[vvar") || self.physical_base().is_some()
    }

    /// For `/dev/mem` and the resource files of PCI devices: the physical address that the region's first byte maps. `maps` shows it
    /// as the offset: for `/dev/mem` it is one, and to that of a resource file the kernel adds where the resource lies
    /// (`pci_mmap_resource_range`).
    pub fn physical_base(&self) -> Option<PhysicalAddress> {
        let name = self.region.name.as_bytes();
        let file = self.region.name.file_name();
        let is_resource = name.starts_with(b"/sys/devices/")
            && file
                .as_bytes()
                .strip_prefix(b"resource")
                .is_some_and(|number| number.first().is_some_and(u8::is_ascii_digit));
        (name == b"/dev/mem" || is_resource).then_some(PhysicalAddress::new(self.region.offset))
    }
}

/// What stands behind a region, from its inode and device. Names are anybody's choice: they count where they are the kernel's own, and
/// where nothing else tells.
fn backing(
    region: &Region,
    memory_files: &mut dyn FnMut(Device) -> Option<MemoryFiles>,
    pools_are_told: &dyn Fn() -> bool,
) -> Backing {
    let name = region.name.as_bytes();
    let shared = region.permissions.shared;
    match name {
        b"[vdso]" | b"[vsyscall]" | b"[uprobes]" | b"[sigpage]" | b"[vectors]" => Backing::Kernel,
        _ if name.starts_with(b"[vvar") => Backing::Kernel,
        // A private mapping of /dev/zero is anonymous memory by another name (mmap(2) before MAP_ANONYMOUS).
        b"/dev/zero" if !shared => Backing::Anonymous,
        _ if region.inode == 0 => Backing::Anonymous,
        _ => match memory_files(region.device) {
            Some(MemoryFiles::Shared) => Backing::Shmem,
            Some(MemoryFiles::Hugetlb) => Backing::Hugetlb,
            None if is_called_hugetlb(region) && !pools_are_told() => Backing::Hugetlb,
            None => Backing::File,
        },
    }
}

/// What private memory, memfd and System V segments that ask for huge pages are called; the latter two live on tmpfs otherwise.
fn is_called_hugetlb(region: &Region) -> bool {
    let name = region.name.as_bytes();
    region.device.major == 0
        && (name == b"/anon_hugepage" || name.starts_with(b"/memfd:") || name.starts_with(b"/SYSV"))
}

/// Why the kind of a page in a region is not known.
pub fn kind_untold() -> Reason {
    Reason::NotOnThisKernel("what was read does not tell".into())
}

/// Why PAGEMAP_SCAN has not told.
pub fn no_scan() -> Reason {
    Reason::NotOnThisKernel("only PAGEMAP_SCAN tells, which came with Linux 6.7".into())
}

/// The reason that an error of the floor below is to a reader.
pub(super) fn reason(error: &target::Error) -> Reason {
    match error {
        target::Error::NotPermitted { what, remedy } => Reason::NotPermitted {
            what: what.clone(),
            remedy: Some(remedy.clone()).filter(|remedy| !remedy.is_empty()),
        },
        // It went, or was found in the midst of a change.
        target::Error::Gone { .. } => Reason::Changed,
        target::Error::NotAvailable { .. }
        | target::Error::Malformed(_)
        | target::Error::Ambiguous { .. }
        | target::Error::Io { .. } => Reason::NotOnThisKernel(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_reason_of_its_class() {
        let refused = target::Error::NotPermitted {
            what: "may not".into(),
            remedy: "sudo".into(),
        };
        assert_eq!(
            (reason(&refused).cause(), reason(&refused).remedy()),
            ("may not", Some("sudo"))
        );
        let what = || "process 1 has exited".to_owned();
        assert_eq!(
            reason(&target::Error::Gone { what: what() }),
            Reason::Changed
        );
        let missing = target::Error::NotAvailable { what: what() };
        assert_eq!(reason(&missing), Reason::NotOnThisKernel(what()));
    }

    #[test]
    fn a_device_decides_before_a_name() {
        let region = |name: &str, minor| Region {
            name: name.into(),
            inode: 7,
            device: Device { major: 0, minor },
            ..crate::inspect::fake::region(1, 1)
        };
        // Of device 1 it is known that it is tmpfs, of 2 that it is a pool's, of 3 nothing.
        let mut files = |device: Device| match device.minor {
            1 => Some(MemoryFiles::Shared),
            2 => Some(MemoryFiles::Hugetlb),
            _ => None,
        };
        for name in ["/anon_hugepage", "/memfd:x", "/SYSV00000000", "/tmp/file"] {
            let mut is = |minor, told: bool| backing(&region(name, minor), &mut files, &|| told);
            for told in [true, false] {
                assert_eq!(is(1, told), Backing::Shmem, "{name}");
                assert_eq!(is(2, told), Backing::Hugetlb, "{name}");
            }
            assert_eq!(is(3, true), Backing::File, "{name}");
            let by_name = match name {
                "/tmp/file" => Backing::File,
                _ => Backing::Hugetlb,
            };
            assert_eq!(is(3, false), by_name, "{name}");
        }
    }

    /// Before Linux 6.7 no scan passes over a mapping of a driver, but smaps tells.
    #[test]
    fn device_mappings_without_a_scan_are_told_by_smaps() {
        let device = |at: u64, flag: &str| {
            let region = Region {
                name: "/dev/some".into(),
                inode: 3,
                permissions: crate::kernel::Permissions {
                    shared: true,
                    ..Default::default()
                },
                ..crate::inspect::fake::region(at, 4)
            };
            let smaps = Smaps {
                range: region.range,
                fields: Vec::new(),
                vm_flags: vec!["rd".into(), flag.into()],
            };
            (region, smaps)
        };
        let ((hidden, one), (plain, other)) = (device(0x10, "pf"), device(0x20, "mm"));
        let world = crate::inspect::fake::World {
            smaps: vec![one, other],
            ..crate::inspect::fake::World::new([hidden, plain])
        };
        let (_, target) = world.target();
        let view = View::of(&target).expect("a view");
        let told: Vec<bool> = view
            .regions()
            .iter()
            .map(|one| view.is_pfn_mapped(one))
            .collect();
        assert_eq!(told, [true, false]);
    }
}
