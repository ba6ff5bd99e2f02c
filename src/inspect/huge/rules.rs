//! The rules of mm/huge_memory.c, mm/khugepaged.c and mm/shmem.c on when the kernel makes a huge page. They do no I/O.

use super::super::classify::Backing;
use super::stretch::Stretch;
use crate::kernel::huge::HugeChoice;
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, Permissions};
use crate::process::HugeSettings;
use crate::report::HugeRefusal::{self, *};
use std::ops::RangeInclusive;

/// The facts that apply to the whole process.
#[derive(Clone, Debug)]
pub(super) struct HugeRules {
    /// The first two numbers of the kernel release.
    pub kernel: (u32, u32),
    pub settings: HugeSettings,
    /// The bytes of a huge page.
    pub bytes: u64,
    /// The pages of a huge page.
    pub pages: u64,
    /// Whether the process permits huge pages (PR_SET_THP_DISABLE); `None` if that is unknown.
    pub process: Option<bool>,
    /// Whether khugepaged collapses files (CONFIG_READ_ONLY_THP_FOR_FS); `None` if that is unknown. Linux 7.2 removed
    /// the option: the file system decides.
    pub files: Option<bool>,
}

/// The facts about a region on which the rules depend.
#[derive(Clone, Copy, Debug)]
pub(super) struct HugeRegion<'a> {
    pub range: AddressRange,
    pub permissions: Permissions,
    /// The file offset of the first byte; 0 without a file.
    pub offset: u64,
    pub backing: Backing,
    /// The mount option `huge`, for shared memory on a mounted file system.
    pub mount: Option<HugeChoice>,
    pub smaps: &'a Smaps,
}

/// The refusals for a whole region, of a fault and of khugepaged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OfRegion {
    pub fault: Vec<HugeRefusal>,
    pub khugepaged: Vec<HugeRefusal>,
}

/// The order of the kernel's checks. The kernel stops at the first refusal.
type Order = &'static [HugeRefusal];

/// The order for memory without a file since Linux 6.8: thp_vma_allowable_orders (include/linux/huge_mm.h) checks the
/// settings first.
const SETTINGS_FIRST: Order =
    &[NotBuilt, Never, NotAdvised, Kernel, AdvisedAgainst, Process, OnlyAdvised, Driver, Alignment, ReadOnly, Unseen];
/// The order for files and shared memory, and before Linux 6.8 for all memory (hugepage_vma_check in mm/huge_memory.c):
/// the settings come after the alignment.
const SETTINGS_LATER: Order = &[
    NotBuilt,
    Kernel,
    AdvisedAgainst,
    Process,
    OnlyAdvised,
    Driver,
    Alignment,
    FileOffset,
    SharedMemory,
    Never,
    NotAdvised,
    Copies,
    File,
    PageCache,
    ReadOnly,
    Unseen,
];
/// The order before Linux 6.0 (hugepage_vma_check in mm/khugepaged.c): mappings of drivers and the alignment come last.
const DRIVERS_LAST: Order = &[
    NotBuilt,
    Kernel,
    AdvisedAgainst,
    Process,
    SharedMemory,
    Never,
    NotAdvised,
    FileOffset,
    Copies,
    File,
    PageCache,
    Driver,
    Alignment,
    ReadOnly,
    Unseen,
];

/// The VmFlags of VM_SPECIAL (include/linux/mm.h) that mean a driver: VM_IO, VM_PFNMAP, VM_MIXEDMAP.
const DRIVERS: [&str; 3] = ["io", "pf", "mm"];

impl HugeRules {
    fn order(&self, of: Backing) -> Order {
        match of {
            Backing::Anonymous if self.kernel >= (6, 8) => SETTINGS_FIRST,
            _ if self.kernel >= (6, 0) => SETTINGS_LATER,
            _ => DRIVERS_LAST,
        }
    }

    /// Sorts refusals by the order of the kernel's checks.
    fn in_order(&self, of: Backing, mut reasons: Vec<HugeRefusal>) -> Vec<HugeRefusal> {
        let order = self.order(of);
        reasons.sort_by_cached_key(|reason| order.iter().position(|one| one == reason).unwrap_or(usize::MAX));
        reasons
    }

    /// Returns the refusals for a whole region.
    pub fn of_region(&self, region: &HugeRegion<'_>) -> OfRegion {
        let has = |flag: &str| region.smaps.has_flag(flag);
        // MADV_NOHUGEPAGE is a separate refusal. Its remedy, MADV_HUGEPAGE, would satisfy the settings too.
        let (is_advised, is_file) = (has("hg") || has("nh"), region.backing == Backing::File);
        let mut both = Vec::new();
        if self.settings.memory.is_none() {
            both.push(NotBuilt);
        }
        if region.backing == Backing::Kernel {
            both.push(Kernel);
        }
        if has("nh") {
            both.push(AdvisedAgainst);
        }
        if self.process == Some(false) {
            both.push(Process);
        }
        if region.backing != Backing::Kernel && DRIVERS.iter().any(|flag| has(flag)) {
            both.push(Driver);
        }
        let has_file = matches!(region.backing, Backing::File | Backing::Shmem);
        if has_file && !region.range.start().get().wrapping_sub(region.offset).is_multiple_of(self.bytes) {
            both.push(FileOffset);
        }
        if self.places(region).is_empty() {
            both.push(Alignment);
        }
        if region.backing == Backing::Shmem && !self.shares_huge(region.mount, self.bytes, is_advised) {
            both.push(SharedMemory);
        }
        // A fault maps a file in the page sizes of the page cache, whatever the region.
        let mut fault = if is_file { vec![PageCache] } else { both.clone() };
        let mut khugepaged = both;
        if region.backing == Backing::Anonymous {
            let setting = self.refused_by_setting(self.bytes, is_advised);
            fault.extend(setting);
            khugepaged.extend(setting);
        }
        if is_file {
            khugepaged.extend(self.refused_globally(is_advised));
            // Before Linux 6.8, only code was collapsed (file_thp_enabled in mm/huge_memory.c).
            let is_code = self.kernel >= (6, 8) || region.permissions.execute;
            if self.kernel < (7, 2) && (self.files == Some(false) || !is_code) {
                khugepaged.push(File);
            }
        }
        if has("de") && region.backing != Backing::Kernel && !khugepaged.contains(&Driver) {
            khugepaged.push(Driver);
        }
        // Before Linux 6.18, at least one page had to be writable (SCAN_PAGE_RO).
        if self.kernel < (6, 18) && region.backing == Backing::Anonymous && !region.permissions.write {
            khugepaged.push(ReadOnly);
        }
        self.add_unseen(region, is_advised, &mut fault, &mut khugepaged);
        OfRegion { fault: self.in_order(region.backing, fault), khugepaged: self.in_order(region.backing, khugepaged) }
    }

    /// Adds a refusal of the kernel (THPeligible is 0) that the rules do not explain. Before Linux 6.0, THPeligible
    /// ignored files.
    fn add_unseen(
        &self,
        region: &HugeRegion<'_>,
        is_advised: bool,
        fault: &mut Vec<HugeRefusal>,
        khugepaged: &mut Vec<HugeRefusal>,
    ) {
        let is_refused = region.smaps.may_be_huge == Some(false) && self.kernel >= (6, 0);
        let is_explained = khugepaged.iter().any(|&reason| reason != ReadOnly);
        if !is_refused || is_explained || region.backing == Backing::Hugetlb {
            return;
        }
        // PR_THP_DISABLE_EXCEPT_ADVISED came with Linux 6.18. `THP_enabled` does not show it.
        let reason = match region.backing {
            Backing::File => File,
            _ if self.kernel >= (6, 18) && !is_advised => OnlyAdvised,
            _ => Unseen,
        };
        khugepaged.push(reason);
        if region.backing != Backing::File {
            fault.push(reason);
        }
    }

    /// Returns why the settings refuse huge pages of `bytes` bytes to memory without a file, if they do.
    fn refused_by_setting(&self, bytes: u64, is_advised: bool) -> Option<HugeRefusal> {
        match self.settings.of(bytes).and_then(|size| size.memory) {
            None if bytes != self.bytes => Some(Never),
            None | Some(HugeChoice::Inherit) => self.refused_globally(is_advised),
            Some(choice) => setting_refusal(choice, is_advised),
        }
    }

    fn refused_globally(&self, is_advised: bool) -> Option<HugeRefusal> {
        setting_refusal(self.settings.memory?, is_advised)
    }

    /// Returns whether the settings permit huge pages of `bytes` bytes in a region.
    pub fn allows(&self, region: &HugeRegion<'_>, bytes: u64) -> bool {
        if self.process == Some(false) {
            return false;
        }
        let is_advised = region.smaps.has_flag("hg");
        match region.backing {
            Backing::Anonymous => self.refused_by_setting(bytes, is_advised).is_none(),
            Backing::Shmem => self.shares_huge(region.mount, bytes, is_advised),
            _ => false,
        }
    }

    /// Returns whether the settings permit huge pages of `bytes` bytes in shared memory (shmem_allowable_huge_orders in
    /// mm/shmem.c).
    fn shares_huge(&self, mount: Option<HugeChoice>, bytes: u64, is_advised: bool) -> bool {
        let global = self.settings.shared.unwrap_or(HugeChoice::Never);
        let allows = |choice| match choice {
            HugeChoice::Always | HugeChoice::WithinSize | HugeChoice::Force => true,
            HugeChoice::Advise | HugeChoice::Madvise => is_advised,
            _ => false,
        };
        match (global, mount) {
            (HugeChoice::Deny, _) => false,
            (HugeChoice::Force, Some(_)) => true,
            (_, Some(mount)) => allows(mount),
            // Since Linux 6.11, each size has a setting.
            (_, None) => match self.settings.of(bytes).and_then(|size| size.shared) {
                None if bytes != self.bytes => false,
                None | Some(HugeChoice::Inherit) => allows(global),
                Some(_) if global == HugeChoice::Force => false,
                Some(choice) => allows(choice),
            },
        }
    }

    /// Returns the aligned places for huge pages that are within the region.
    pub fn places(&self, region: &HugeRegion<'_>) -> RangeOfPlaces {
        let first = region.range.start().get().div_ceil(self.bytes);
        RangeOfPlaces { first, end: (region.range.end().get() / self.bytes).max(first) }
    }

    /// Returns why a fault in `stretch` would map a small page. `is_whole` is whether the region contains the whole
    /// place of the huge page.
    pub fn fault(&self, of: &OfRegion, region: &HugeRegion<'_>, stretch: &Stretch, is_whole: bool) -> Vec<HugeRefusal> {
        if region.backing == Backing::File {
            return of.fault.clone();
        }
        let mut reasons = Vec::new();
        // The first check of the kernel (__handle_mm_fault in mm/memory.c).
        if stretch.is_occupied() {
            reasons.push(Occupied);
        }
        reasons.extend_from_slice(&of.fault);
        self.add_alignment(region, is_whole, &mut reasons);
        if region.smaps.has_flag("um") {
            reasons.push(Userfault);
        }
        reasons
    }

    /// Returns why khugepaged would not collapse the small pages of `stretch` (hpage_collapse_scan_pmd,
    /// hpage_collapse_scan_file).
    pub fn khugepaged(
        &self,
        of: &OfRegion,
        region: &HugeRegion<'_>,
        stretch: &Stretch,
        is_whole: bool,
    ) -> Vec<HugeRefusal> {
        let mut reasons = of.khugepaged.clone();
        self.add_alignment(region, is_whole, &mut reasons);
        let most = |limit: Option<u64>, otherwise: u64| limit.unwrap_or(otherwise);
        let is_anonymous = region.backing == Backing::Anonymous;
        let (empty, swapped): (RangeInclusive<u64>, u64) = if is_anonymous {
            let empty = stretch.untouched + stretch.zeros;
            (empty..=empty, stretch.swapped)
        } else {
            let surely = stretch.untouched - stretch.cached - stretch.cached_in_swap - stretch.maybe_cached;
            (surely..=surely + stretch.maybe_cached, stretch.cached_in_swap)
        };
        let is_armed = ["um", "uw", "ui"].iter().any(|flag| region.smaps.has_flag(flag));
        if is_armed && is_anonymous && *empty.start() > 0 {
            reasons.push(Userfault);
        }
        if swapped > most(self.settings.max_swapped, self.pages / 8) {
            reasons.push(HugeRefusal::Swapped);
        }
        if stretch.write_protected > 0 {
            reasons.push(WriteProtected);
        }
        if stretch.guards > 0 {
            reasons.push(Guards);
        }
        if stretch.elsewhere > 0 {
            reasons.push(Elsewhere);
        }
        if is_whole && *empty.start() > most(self.settings.max_empty, self.pages - 1) {
            reasons.push(Empty);
        }
        // The limit came with Linux 5.8. Before that, no page might be shared.
        if is_anonymous && stretch.shared > most(self.settings.max_shared, 0) {
            reasons.push(Shared);
        }
        // hpage_collapse_scan_pmd compares the references with the mappings (SCAN_PAGE_COUNT).
        if stretch.is_held {
            reasons.push(Held);
        }
        if is_anonymous && stretch.small > 0 && region.smaps.field("Referenced") == Some(0) {
            reasons.push(Unused);
        }
        reasons
    }

    /// Returns why private copies of file pages stay small.
    pub fn copies(&self, of: &OfRegion, region: &HugeRegion<'_>) -> Vec<HugeRefusal> {
        let others = of.khugepaged.iter().copied().filter(|&reason| reason != File);
        self.in_order(region.backing, others.chain([Copies]).collect())
    }

    /// Returns the position of a refusal among all. Those for memory without a file come first.
    pub fn rank(&self, reason: HugeRefusal) -> usize {
        let rest: Order =
            &[Userfault, HugeRefusal::Swapped, WriteProtected, Guards, Elsewhere, Empty, Shared, Held, Unused];
        let orders = [&[Occupied][..], self.order(Backing::Anonymous), self.order(Backing::File), rest];
        orders.concat().iter().position(|&one| one == reason).unwrap_or(usize::MAX)
    }

    fn add_alignment(&self, region: &HugeRegion<'_>, is_whole: bool, reasons: &mut Vec<HugeRefusal>) {
        if !is_whole && !reasons.contains(&Alignment) {
            let occupied = reasons.first() == Some(&Occupied);
            let rest = reasons.split_off(usize::from(occupied));
            reasons.extend(self.in_order(region.backing, [&rest[..], &[Alignment]].concat()));
        }
    }
}

/// Returns the refusal of a setting, if it refuses huge pages.
fn setting_refusal(choice: HugeChoice, is_advised: bool) -> Option<HugeRefusal> {
    match choice {
        HugeChoice::Always => None,
        HugeChoice::Madvise if is_advised => None,
        HugeChoice::Madvise => Some(NotAdvised),
        _ => Some(Never),
    }
}

/// The numbers of consecutive aligned places for huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RangeOfPlaces {
    first: u64,
    end: u64,
}

impl RangeOfPlaces {
    pub fn is_empty(self) -> bool {
        self.first >= self.end
    }

    pub fn holds(self, place: u64) -> bool {
        (self.first..self.end).contains(&place)
    }
}
