//! The settlement of what the pages of a region left unknown in its account, with the sums of smaps for the region.
//!
//! Only what follows from the sums is settled. They must be of the same pages: smaps and the page map are read one
//! after the other. If several answers fit, nothing is settled.

use super::super::classify::Backing;
use super::super::region::ViewedRegion;
use super::sums::{Account, Amount};
use crate::kernel::smaps::Smaps;
use crate::report::{AccountClass, AccountMark, BesideRss};

use AccountClass::{
    Anonymous, Driver, Elsewhere, FileHere, FileOthers, FileUnclear, Forked, HeapFree, HeapInUse, HeapUnclear, Kernel,
    Merged, PrivateCopies, PrivateUnclear, Secret, ShmemHere, ShmemOthers, ShmemUnclear, Unclear,
};

/// The classes of anonymous memory, which smaps sums up as `Anonymous`.
pub(super) const PRIVATE: [AccountClass; 8] =
    [Anonymous, HeapInUse, HeapFree, HeapUnclear, PrivateCopies, Forked, Merged, PrivateUnclear];

/// Settles the account of a whole region.
pub(super) fn settle(account: &mut Account, smaps: &Smaps, viewed: &ViewedRegion, zeros_count_as_merged: bool) {
    let Some(rss) = smaps.field("Rss") else {
        return;
    };
    let all = account.total();
    let unclear = account.of(Unclear);
    // Pages of an unknown kind may be the zero page, which Rss leaves out.
    if all < rss || all - rss > unclear || account.of(Elsewhere) > 0 {
        return;
    }
    let zeros = all - rss;
    if zeros > 0 && viewed.backing != Backing::Anonymous {
        return;
    }
    if zeros > 0 {
        account.remove(Unclear, zeros);
        account.put_beside(BesideRss::ZeroPages, zeros);
    }
    settle_kind(account, smaps, viewed.backing);
    settle_merged(account, smaps, zeros_count_as_merged);
    settle_sharing(account, smaps, viewed);
    settle_marks(account, smaps, viewed);
}

/// Separates private pages from pages of the object.
fn settle_kind(account: &mut Account, smaps: &Smaps, backing: Backing) {
    let unclear = account.of(Unclear);
    let missing = smaps.field("Anonymous").and_then(|bytes| bytes.checked_sub(account.of_all(&PRIVATE)));
    if let Some(missing) = missing.filter(|&missing| missing <= unclear) {
        account.shift(Unclear, PrivateUnclear, missing);
        let of_object = match backing {
            Backing::Shmem => ShmemUnclear,
            Backing::File => FileUnclear,
            Backing::Driver => Driver,
            Backing::Secret => Secret,
            Backing::Anonymous | Backing::Hugetlb | Backing::Kernel => return,
        };
        account.shift(Unclear, of_object, unclear - missing);
    }
}

/// Separates merged pages from private ones. Zero-filled pages that were merged (`use_zero_pages`) are in `KSM` and not
/// in Rss: if there are no zero pages, `KSM` counts only merged pages.
fn settle_merged(account: &mut Account, smaps: &Smaps, zeros_count_as_merged: bool) {
    let is_exact = !zeros_count_as_merged || account.beside(BesideRss::ZeroPages) == 0;
    let missing = smaps.field("KSM").and_then(|bytes| bytes.checked_sub(account.of(Merged)));
    if let Some(missing) = missing.filter(|&missing| is_exact && missing <= account.of(PrivateUnclear)) {
        account.shift(PrivateUnclear, Merged, missing);
    }
}

/// Separates pages with one mapping from pages with several.
fn settle_sharing(account: &mut Account, smaps: &Smaps, viewed: &ViewedRegion) {
    let private = smaps.uss();
    let shared = smaps.shared();
    let open = account.of_all(&[PrivateUnclear, ShmemUnclear, FileUnclear]);
    // The remaining bytes of `KSM` may be merged zero pages, or merged pages of the unknown classes.
    let is_merged_possible = match smaps.field("KSM") {
        Some(bytes) => bytes > account.of(Merged),
        None => smaps.has_flag("mg"),
    };
    let shares_else = account.of_all(&[Merged, Kernel, Driver, Secret, Unclear]) > 0;
    if open == 0 || is_merged_possible || shares_else {
        return;
    }
    let several = |class| account.marked(class, AccountMark::Several);
    let (Some(shmem), Some(file)) = (several(ShmemHere), several(FileHere)) else {
        return;
    };
    let here = account.of_all(&[Anonymous, HeapInUse, HeapFree, HeapUnclear, PrivateCopies, ShmemHere, FileHere]);
    let (missing_private, missing_shared) = (
        private.checked_sub(here.saturating_sub(shmem + file)),
        shared.checked_sub(account.of_all(&[Forked, ShmemOthers, FileOthers]) + shmem + file),
    );
    let (Some(missing_private), Some(missing_shared)) = (missing_private, missing_shared) else {
        return;
    };
    if missing_private + missing_shared != open {
        return;
    }
    // The sums are of all unknown classes together. They decide each class if there is only one, or if all pages are
    // alike.
    let single = [PrivateUnclear, ShmemUnclear, FileUnclear].iter().any(|&class| account.of(class) == open);
    if !single && missing_private > 0 && missing_shared > 0 {
        return;
    }
    let copies = if viewed.backing == Backing::Anonymous { Anonymous } else { PrivateCopies };
    let mut missing = missing_private;
    for (from, to) in [(PrivateUnclear, copies), (ShmemUnclear, ShmemHere), (FileUnclear, FileHere)] {
        let bytes = account.of(from).min(missing);
        missing -= bytes;
        account.shift(from, to, bytes);
        if bytes > 0 {
            // A page with one mapping is neither copied by a write nor mapped several times.
            for mark in [AccountMark::ToCopy, AccountMark::Several] {
                let known = account.amount(to, mark).known;
                account.set_amount(to, mark, Amount { known, unknown: 0 });
            }
        }
    }
    for (from, to) in [(ShmemUnclear, ShmemOthers), (FileUnclear, FileOthers)] {
        if account.marked(from, AccountMark::Several) == Some(0) {
            account.shift(from, to, account.of(from));
        }
    }
    if missing_shared > 0 {
        settle_forked(account, viewed);
    }
    account.private = Amount { known: private, unknown: 0 };
}

/// Counts the remaining private pages as shared since a fork.
fn settle_forked(account: &mut Account, viewed: &ViewedRegion) {
    let forked = account.of(PrivateUnclear);
    if forked == 0 {
        return;
    }
    let before = account.amount(Forked, AccountMark::ToCopy);
    account.shift(PrivateUnclear, Forked, forked);
    let written = if viewed.region.permissions.write { forked } else { 0 };
    let known = before.known.saturating_add(written);
    account.set_amount(Forked, AccountMark::ToCopy, Amount { known, unknown: before.unknown });
}

/// Settles which pages are huge, and which are dirty in a region of a file without private copies.
fn settle_marks(account: &mut Account, smaps: &Smaps, viewed: &ViewedRegion) {
    let huge = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"].map(|field| smaps.field(field));
    let is_huge = match huge.iter().copied().sum::<Option<u64>>() {
        Some(0) => Some(false),
        Some(bytes) if bytes == account.total() => Some(true),
        _ => None,
    };
    if let Some(is_huge) = is_huge {
        for &class in AccountClass::ALL {
            let bytes = account.of(class);
            let known = if is_huge { bytes } else { 0 };
            if account.amount(class, AccountMark::Huge).unknown > 0 {
                account.set_amount(class, AccountMark::Huge, Amount { known, unknown: 0 });
            }
        }
    }
    let several = account.marked(FileHere, AccountMark::Several);
    let is_plain = viewed.backing == Backing::File
        && account.of_all(&PRIVATE) == 0
        && account.of_all(&[FileUnclear, Unclear, Kernel, Driver, Secret]) == 0
        && several == Some(0);
    for (class, field) in [(FileHere, "Private_Dirty"), (FileOthers, "Shared_Dirty")] {
        let open = account.amount(class, AccountMark::Dirty).unknown;
        if let (true, Some(known)) = (is_plain && open > 0, smaps.field(field)) {
            account.set_amount(class, AccountMark::Dirty, Amount { known, unknown: 0 });
        }
    }
}

/// Counts locked frames only in locked regions: in other regions, another mapping locks the frame.
pub(super) fn settle_locked(account: &mut Account, smaps: Option<&Smaps>) {
    let is_locked = told_flag(smaps, "lo");
    for &class in AccountClass::ALL {
        let Amount { known, unknown } = account.amount(class, AccountMark::Locked);
        let settled = match is_locked {
            Some(true) => continue,
            Some(false) => Amount::default(),
            None => Amount { known: 0, unknown: known + unknown },
        };
        account.set_amount(class, AccountMark::Locked, settled);
    }
}

/// Counts the pages of droppable memory as droppable, and not as lazily freed: their frames have the same flags
/// (`folio_add_new_anon_rmap` in mm/rmap.c). All pages of such a region are droppable, also those that are not yet on
/// the LRU and lack the flags.
pub(super) fn settle_droppable(account: &mut Account, smaps: Option<&Smaps>) {
    let is_droppable = told_flag(smaps, "dp");
    for &class in AccountClass::ALL {
        let marked = account.amount(class, AccountMark::LazilyFreed);
        let unclear = Amount { known: 0, unknown: marked.known + marked.unknown };
        let (lazily_freed, droppable) = match is_droppable {
            Some(true) => (Amount::default(), Amount { known: account.of(class), unknown: 0 }),
            Some(false) => (marked, Amount::default()),
            None => (unclear, unclear),
        };
        account.set_amount(class, AccountMark::LazilyFreed, lazily_freed);
        account.set_amount(class, AccountMark::Droppable, droppable);
    }
}

/// Returns whether a region has this code in `VmFlags`; `None` if smaps does not show the codes.
fn told_flag(smaps: Option<&Smaps>, code: &str) -> Option<bool> {
    smaps.filter(|smaps| !smaps.vm_flags.is_empty()).map(|smaps| smaps.has_flag(code))
}
