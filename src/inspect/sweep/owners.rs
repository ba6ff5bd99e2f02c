//! Bit 56 of each page of a huge mapping.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::page::Facts;
use super::chunk::UNREAD;
use super::frames::{Chosen, Gather};
use super::lookup;
use super::pieces::{Piece, Pieces, Words};
use crate::kernel::PageFlags;
use crate::process::{self, Categories};

/// Sets bit 56 of the pages that one PMD maps by their own map counts: the kernel gives all of them that of the first
/// one (pagemap_pmd_range in fs/proc/task_mmu.c: up to Linux 6.10, and again after 6.12).
///
/// Fails when the target is gone, or when the kernel refuses map counts.
pub(super) fn set(pieces: &mut Pieces, gather: &mut Gather, space: &AddressSpace, need: Facts) -> process::Result<()> {
    let huge = huge(pieces, space);
    // The kernel's configuration shows whether counts are exact: unpacking it takes milliseconds.
    if !huge.contains(&true) || !space.has_exact_counts() {
        return Ok(());
    }
    if !need.contains(Facts::COUNTS) {
        lookup::words(pieces, gather, &space.target().machine, Facts::COUNTS, &Chosen::Some(huge))?;
    }
    for piece in &pieces.all {
        let Some(at) = slots(piece, space) else {
            continue;
        };
        let counts = pieces.counts.get(at.clone()).unwrap_or_default();
        let entries = pieces.entries.get_mut(at).unwrap_or_default();
        for (entry, &count) in entries.iter_mut().zip(counts).filter(|(_, count)| **count != UNREAD) {
            *entry = entry.with_exclusive(count == 1);
        }
    }
    if !need.contains(Facts::COUNTS) {
        pieces.counts.clear();
    }
    Ok(())
}

/// Which entries are those of huge mappings, as far as a scan or the flags of their frames tell.
fn huge(pieces: &Pieces, space: &AddressSpace) -> Vec<bool> {
    let mut huge = vec![false; pieces.entries.len()];
    for piece in &pieces.all {
        let (Some(at), Words::Read { marks, .. }) = (slots(piece, space), &piece.words) else {
            continue;
        };
        let flags = pieces.flags.get(at.clone()).unwrap_or_default();
        let chosen = huge.get_mut(at).unwrap_or_default();
        match marks.as_ref().and_then(|marks| pieces.marks.get(marks.clone())) {
            Some(marks) => {
                for mark in marks.iter().filter(|mark| mark.categories.contains(Categories::HUGE)) {
                    chosen.get_mut(mark.first..mark.end).unwrap_or_default().fill(true);
                }
            }
            None => {
                for (chosen, &flags) in chosen.iter_mut().zip(flags).filter(|(_, flags)| **flags != UNREAD) {
                    *chosen = PageFlags::from_bits_retain(flags).is_in_large_folio();
                }
            }
        }
    }
    huge
}

/// The entries of a piece. Pages of the hugetlb pool are counted whole: their bit is right.
fn slots(piece: &Piece, space: &AddressSpace) -> Option<std::ops::Range<usize>> {
    let Words::Read { at, .. } = &piece.words else {
        return None;
    };
    let viewed = space.regions().get(piece.region?)?;
    (viewed.backing != Backing::Hugetlb).then(|| at.clone())
}
