//! When the kernel makes a huge page. Pure: the rules of mm/huge_memory.c, mm/khugepaged.c and mm/shmem.c on what was
//! read.

use super::super::classify::Backing;
use super::stretch::Stretch;
use crate::kernel::huge::HugeChoice;
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, Permissions};
use crate::process::HugeSettings;
use crate::report::HugeRefusal::{self, *};
use std::ops::RangeInclusive;

/// What is the same for the whole process.
#[derive(Clone, Debug)]
pub(super) struct HugeRules {
    /// The first two numbers of the kernel's release.
    pub kernel: (u32, u32),
    pub settings: HugeSettings,
    /// Bytes of a huge page.
    pub bytes: u64,
    /// Pages in it.
    pub pages: u64,
    /// Whether the process has not switched huge pages off.
    pub process: Option<bool>,
    /// Whether khugepaged collapses files (CONFIG_READ_ONLY_THP_FOR_FS); `None` if unknown. The option went with Linux
    /// 7.2: since then the filesystem decides.
    pub files: Option<bool>,
}

/// What the rules need to know of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct HugeRegion<'a> {
    pub range: AddressRange,
    pub permissions: Permissions,
    /// The offset of its first byte in its file; 0 without one.
    pub offset: u64,
    pub backing: Backing,
    /// For shared memory on a mounted filesystem: its option `huge`.
    pub mount: Option<HugeChoice>,
    pub smaps: &'a Smaps,
}

/// The reasons that hold for a whole region, for each who makes huge pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OfRegion {
    pub fault: Vec<HugeRefusal>,
    pub khugepaged: Vec<HugeRefusal>,
}

/// The first reason is that of the kernel: they are in the order of its checks.
type Order = &'static [HugeRefusal];

/// Since Linux 6.8 thp_vma_allowable_orders (include/linux/huge_mm.h) looks at the settings for memory without a file
/// first.
const SETTINGS_FIRST: Order =
    &[NotBuilt, Never, NotAdvised, Kernel, AdvisedAgainst, Process, OnlyAdvised, Driver, Alignment, ReadOnly, Unseen];
/// For files and shared memory, and before Linux 6.8 (hugepage_vma_check in mm/huge_memory.c), after the ends.
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
/// Before Linux 6.0 (hugepage_vma_check in mm/khugepaged.c) what a driver maps, and the ends, came last.
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

/// VmFlags of what VM_SPECIAL is (include/linux/mm.h): memory-mapped I/O, bare frames, both mixed.
const DRIVERS: [&str; 3] = ["io", "pf", "mm"];

impl HugeRules {
    fn order(&self, of: Backing) -> Order {
        match of {
            Backing::Anonymous if self.kernel >= (6, 8) => SETTINGS_FIRST,
            _ if self.kernel >= (6, 0) => SETTINGS_LATER,
            _ => DRIVERS_LAST,
        }
    }

    /// Puts reasons into the order of the kernel's checks.
    fn in_order(&self, of: Backing, mut reasons: Vec<HugeRefusal>) -> Vec<HugeRefusal> {
        let order = self.order(of);
        reasons.sort_by_cached_key(|reason| order.iter().position(|one| one == reason).unwrap_or(usize::MAX));
        reasons
    }

    /// The reasons that hold for a whole region.
    pub fn of_region(&self, region: &HugeRegion<'_>) -> OfRegion {
        let has = |flag: &str| region.smaps.has_flag(flag);
        // MADV_NOHUGEPAGE is a reason of its own. MADV_HUGEPAGE would end it, and satisfies the settings too.
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
        // A fault maps a file as it is cached, wherever.
        let mut fault = if is_file { vec![PageCache] } else { both.clone() };
        let mut khugepaged = both;
        if region.backing == Backing::Anonymous {
            let setting = self.refused_by_setting(self.bytes, is_advised);
            fault.extend(setting);
            khugepaged.extend(setting);
        }
        if is_file {
            khugepaged.extend(self.refused_globally(is_advised));
            // Before Linux 6.8 only code (file_thp_enabled in mm/huge_memory.c).
            let is_code = self.kernel >= (6, 8) || region.permissions.execute;
            if self.kernel < (7, 2) && (self.files == Some(false) || !is_code) {
                khugepaged.push(File);
            }
        }
        if has("de") && region.backing != Backing::Kernel && !khugepaged.contains(&Driver) {
            khugepaged.push(Driver);
        }
        // Before Linux 6.18 one page had to be writable (SCAN_PAGE_RO).
        if self.kernel < (6, 18) && region.backing == Backing::Anonymous && !region.permissions.write {
            khugepaged.push(ReadOnly);
        }
        self.add_unseen(region, is_advised, &mut fault, &mut khugepaged);
        OfRegion { fault: self.in_order(region.backing, fault), khugepaged: self.in_order(region.backing, khugepaged) }
    }

    /// The kernel's own answer (THPeligible) shows what else refuses. Before Linux 6.0 it left files out.
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
        // PR_THP_DISABLE_EXCEPT_ADVISED came with Linux 6.18, and `THP_enabled` does not show it.
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

    /// Whether the settings refuse huge pages of `bytes` bytes to memory without a file.
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

    /// Whether the settings let memory have huge pages of `bytes` bytes.
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

    /// The same of shared memory (shmem_allowable_huge_orders in mm/shmem.c).
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
            // Since Linux 6.11 there is a setting for each size.
            (_, None) => match self.settings.of(bytes).and_then(|size| size.shared) {
                None if bytes != self.bytes => false,
                None | Some(HugeChoice::Inherit) => allows(global),
                Some(_) if global == HugeChoice::Force => false,
                Some(choice) => allows(choice),
            },
        }
    }

    /// The aligned places for huge pages that lie in the region.
    pub fn places(&self, region: &HugeRegion<'_>) -> RangeOfPlaces {
        let first = region.range.start().get().div_ceil(self.bytes);
        RangeOfPlaces { first, end: (region.range.end().get() / self.bytes).max(first) }
    }

    /// Why a fault in `stretch` would map a small page. `is_whole`: it is the place of a whole huge page.
    pub fn fault(&self, of: &OfRegion, region: &HugeRegion<'_>, stretch: &Stretch, is_whole: bool) -> Vec<HugeRefusal> {
        if region.backing == Backing::File {
            return of.fault.clone();
        }
        let mut reasons = Vec::new();
        // The first that the kernel looks at (__handle_mm_fault in mm/memory.c).
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

    /// Why khugepaged would leave the small pages of `stretch` (hpage_collapse_scan_pmd, hpage_collapse_scan_file).
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
        // Since Linux 5.8; before, no page might be shared.
        if is_anonymous && stretch.shared > most(self.settings.max_shared, 0) {
            reasons.push(Shared);
        }
        if is_anonymous && stretch.small > 0 && region.smaps.field("Referenced") == Some(0) {
            reasons.push(Unused);
        }
        reasons
    }

    /// Why private copies of the pages of a file stay small.
    pub fn copies(&self, of: &OfRegion, region: &HugeRegion<'_>) -> Vec<HugeRefusal> {
        let others = of.khugepaged.iter().copied().filter(|&reason| reason != File);
        self.in_order(region.backing, others.chain([Copies]).collect())
    }

    /// Where a reason stands among all: those for memory without a file come first.
    pub fn rank(&self, reason: HugeRefusal) -> usize {
        let rest: Order = &[Userfault, HugeRefusal::Swapped, WriteProtected, Guards, Elsewhere, Empty, Shared, Unused];
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

/// Whether a setting refuses huge pages.
fn setting_refusal(choice: HugeChoice, is_advised: bool) -> Option<HugeRefusal> {
    match choice {
        HugeChoice::Always => None,
        HugeChoice::Madvise if is_advised => None,
        HugeChoice::Madvise => Some(NotAdvised),
        _ => Some(Never),
    }
}

/// Aligned places for huge pages, by number.
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
