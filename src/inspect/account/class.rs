//! The class in which a mapping of a page is counted, decided without I/O from the findings of a sweep.
//!
//! The checks of [`CountingRules::count`] are in the order of precedence: what Rss leaves out, pages without memory
//! here, pages of the kernel, merged pages, private pages, shared memory and files.

use super::super::classify::Backing;
use super::super::heap::HeapUse;
use super::super::page::Page;
use super::super::region::ViewedRegion;
use super::sums::{AccountEntry, Amount, Marks, Place};
use crate::kernel::{Kind, PageFlags, State};
use crate::report::{AccountClass, BesideRss};

/// The facts about the kernel and the process on which the counting depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountingRules {
    /// Whether map counts are of single pages; `None` if that is unknown.
    pub exact: Option<bool>,
    /// Whether the tails of a folio show its flags, as since Linux 6.10.
    pub tails_show_flags: bool,
    /// Whether smaps counts pages with hardware errors in Rss (`is_pfn_swap_entry` in include/linux/swapops.h, since
    /// Linux 6.9).
    pub have_counts_failed: bool,
    /// Whether a region of the process may be locked. The flag of a frame may be due to another process, such as the
    /// parent: children do not inherit locks.
    pub may_lock: bool,
    /// Whether pages whose flags were not read are not lazily freed.
    pub none_freed: bool,
}

/// The processes that map a page of a file or of shared memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherMappers {
    Here,
    Others,
    Unclear,
}

/// How often the process maps a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MapTimes {
    Known(u64),
    /// At least once: frame numbers are hidden, or there are too many mappings to count.
    Unknown,
}

impl CountingRules {
    /// Returns the entry in which a page is counted that the process maps `times` times; `None` for a page without
    /// memory.
    pub fn count(&self, page: &Page, viewed: &ViewedRegion, times: MapTimes) -> Option<AccountEntry> {
        let place = match (page.state(), page.kind) {
            (State::Present, Some(Kind::Zero | Kind::HugeZero)) => Place::Beside(BesideRss::ZeroPages),
            (State::Present, Some(Kind::Hugetlb)) => Place::Beside(BesideRss::Hugetlb),
            (State::Present, _) if is_of_driver(page, viewed) => Place::Beside(bare_frames(viewed)),
            (State::Present, _) => return Some(self.resident(page, viewed, times)),
            (State::Migrating | State::Device, _) => Place::Class(AccountClass::Elsewhere),
            (State::Hwpoison, _) if self.have_counts_failed => Place::Class(AccountClass::Elsewhere),
            (State::Swapped, _) => Place::Beside(BesideRss::Swapped),
            (State::Guard, _) => Place::Beside(BesideRss::Guards),
            (State::PfnMapped, _) => Place::Beside(bare_frames(viewed)),
            _ => return None,
        };
        Some(AccountEntry {
            place,
            has: Marks::empty(),
            may_have: Marks::empty(),
            is_private: None,
            zeros: Amount::default(),
        })
    }

    /// Returns the entry of a page that Rss counts.
    fn resident(&self, page: &Page, viewed: &ViewedRegion, times: MapTimes) -> AccountEntry {
        let is_private = page.is_private(self.exact);
        let (sharing, several) = self.sharing(page, is_private, times);
        let class = match page.kind {
            Some(Kind::Vdso) => AccountClass::Kernel,
            Some(Kind::DriverMemory) => AccountClass::Driver,
            Some(Kind::Secret) => AccountClass::Secret,
            Some(Kind::Ksm) => AccountClass::Merged,
            Some(kind @ (Kind::Anonymous | Kind::PrivateCopy)) => match is_private {
                Some(true) if kind == Kind::Anonymous => AccountClass::Anonymous,
                Some(true) => AccountClass::PrivateCopies,
                Some(false) => AccountClass::Forked,
                None => AccountClass::PrivateUnclear,
            },
            Some(Kind::Shmem) => match sharing {
                OtherMappers::Here => AccountClass::ShmemHere,
                OtherMappers::Others => AccountClass::ShmemOthers,
                OtherMappers::Unclear => AccountClass::ShmemUnclear,
            },
            Some(Kind::File) => match sharing {
                OtherMappers::Here => AccountClass::FileHere,
                OtherMappers::Others => AccountClass::FileOthers,
                OtherMappers::Unclear => AccountClass::FileUnclear,
            },
            _ => AccountClass::Unclear,
        };
        let (has, may_have) = self.marks(page, viewed, class, several);
        let class = match (class, page.heap) {
            (AccountClass::Anonymous, Some(HeapUse::Live | HeapUse::Both)) => AccountClass::HeapInUse,
            (AccountClass::Anonymous, Some(HeapUse::Free | HeapUse::Top)) => AccountClass::HeapFree,
            (AccountClass::Anonymous, Some(HeapUse::Unknown)) => AccountClass::HeapUnclear,
            _ => class,
        };
        AccountEntry { place: Place::Class(class), has, may_have, is_private, zeros: Amount::default() }
    }

    /// Returns who maps a page of an object, and whether the process maps it several times; `None` if that is unknown.
    fn sharing(&self, page: &Page, is_private: Option<bool>, times: MapTimes) -> (OtherMappers, Option<bool>) {
        let count = page.map_count.filter(|_| !page.count_is_average);
        match (is_private, times, count) {
            (Some(true), ..) => (OtherMappers::Here, Some(false)),
            (Some(false), MapTimes::Known(times), Some(count)) if times > 1 && times == count => {
                (OtherMappers::Here, Some(true))
            }
            (Some(false), MapTimes::Known(times), Some(_)) => (OtherMappers::Others, Some(times > 1)),
            (Some(false), MapTimes::Known(0 | 1), None) => (OtherMappers::Others, Some(false)),
            (_, MapTimes::Known(times), _) => (OtherMappers::Unclear, Some(times > 1)),
            (_, MapTimes::Unknown, _) => (OtherMappers::Unclear, None),
        }
    }

    /// Returns the marks that a page has, and those that it may have.
    fn marks(&self, page: &Page, viewed: &ViewedRegion, class: AccountClass, several: Option<bool>) -> (Marks, Marks) {
        use AccountClass::{Anonymous, FileHere, FileOthers, FileUnclear, Forked, PrivateCopies, PrivateUnclear};
        let (mut has, mut may_have) = (Marks::empty(), Marks::empty());
        let mut note = |mark, is: Option<bool>| match is {
            Some(true) => has |= mark,
            Some(false) => {}
            None => may_have |= mark,
        };
        let is_file = matches!(class, FileHere | FileOthers | FileUnclear);
        let is_private_kind = matches!(class, Anonymous | PrivateCopies | Forked | PrivateUnclear);
        // Before Linux 6.10, only the first page shows the flags of a folio.
        let flags = page.flags.filter(|flags| self.tails_show_flags || !flags.contains(PageFlags::COMPOUND_TAIL));
        let flagged = |flag| flags.map(|flags| flags.contains(flag));
        note(Marks::HUGE, page.huge);
        // Smaps decides later which regions are locked.
        note(Marks::LOCKED, if self.may_lock { flagged(PageFlags::MLOCKED) } else { Some(false) });
        if is_file {
            note(Marks::DIRTY, flagged(PageFlags::DIRTY));
        }
        if is_private_kind {
            let is_freed = flags.map(PageFlags::is_lazily_freed).or(self.none_freed.then_some(false));
            note(Marks::LAZILY_FREED, is_freed);
        }
        let is_writable = viewed.region.permissions.write;
        match class {
            Forked => note(Marks::TO_COPY, Some(is_writable)),
            PrivateUnclear if is_writable => note(Marks::TO_COPY, None),
            _ => {}
        }
        if !is_private_kind && class != AccountClass::Merged {
            note(Marks::SEVERAL, several);
            note(Marks::WITH_PMDB, Some(several == Some(false) && page.is_shared_with_pmdb()));
        }
        (has, may_have)
    }
}

/// Returns the sum for frames that are no memory of the process.
fn bare_frames(viewed: &ViewedRegion) -> BesideRss {
    match viewed.backing {
        Backing::Kernel => BesideRss::KernelData,
        _ => BesideRss::Drivers,
    }
}

/// Returns whether a present page is a raw frame, which a driver or the kernel has mapped and Rss does not count.
fn is_of_driver(page: &Page, viewed: &ViewedRegion) -> bool {
    match page.kind {
        Some(Kind::DeviceMemory) => true,
        // An ordinary page of the kernel has an entry like that of a file.
        Some(Kind::Vdso) => viewed.backing == Backing::Kernel && !page.entry.is_file_or_shared(),
        // A raw frame in a private mapping looks like anonymous memory. The frame of a page that has moved since has
        // other flags, but is not reserved.
        Some(Kind::Anonymous | Kind::PrivateCopy) => {
            page.flags.is_some_and(|flags| flags.contains(PageFlags::RESERVED) && !flags.contains(PageFlags::ANON))
        }
        _ => false,
    }
}
