//! The words of the frames of all pieces, looked up by sorted frame number, and bit 56 of each page of a huge mapping,
//! which map counts correct.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::filter::Question;
use super::super::folio::Folio;
use super::super::page::Facts;
use super::chunk::{Piece, Pieces, UNREAD, Words};
use super::frames::{Chosen, Gather};
use super::huge;
use crate::kernel::{FrameNumber, PageFlags};
use crate::process::{self, Categories, Machine, WordFile};

/// Looks up what the filter needs, then the rest for the pages that it keeps.
pub(super) fn all(
    pieces: &mut Pieces,
    gather: &mut Gather,
    space: &AddressSpace,
    question: &Question,
) -> process::Result<()> {
    let machine = &*space.target().machine;
    let first = question.first(space);
    words(pieces, gather, machine, first & Facts::WORDS, &Chosen::All)?;
    let rest = question.need.difference(first) & Facts::WORDS;
    if !rest.is_empty() {
        let chosen = kept(pieces, space, question, first);
        words(pieces, gather, machine, rest, &chosen)?;
    }
    if (first | question.need).contains(Facts::COUNTS) {
        own_mappings(pieces, space);
    }
    Ok(())
}

/// Counts pmdb's own mappings of the frames. After the map counts: pmdb may map another page of a library at any time,
/// and must not subtract a mapping that is not counted.
fn own_mappings(pieces: &mut Pieces, space: &AddressSpace) {
    let of_files = pieces.all.iter().filter_map(|piece| {
        let viewed = space.regions().get(piece.region?)?;
        match &piece.words {
            Words::Read { at, stride: 1, .. } if viewed.region.inode != 0 => Some((piece, viewed, at)),
            _ => None,
        }
    });
    for (piece, viewed, at) in of_files {
        // If they are unknown, the counts stay as the kernel has them.
        let Some(observer) = space.observer().ok().filter(|observer| observer.maps(&viewed.region)) else {
            continue;
        };
        pieces.own.resize(pieces.entries.len(), 0);
        if let (Some(entries), Some(own)) = (pieces.entries.get(at.clone()), pieces.own.get_mut(at.clone())) {
            observer.count(&viewed.region, piece.range.start(), entries, space.page(), own);
        }
    }
}

/// The entries of pages that the filter keeps, for all that was read so far.
fn kept(pieces: &Pieces, space: &AddressSpace, question: &Question, need: Facts) -> Chosen {
    let Some(filter) = &question.filter else {
        return Chosen::All;
    };
    let mut chosen = vec![false; pieces.entries.len()];
    for piece in &pieces.all {
        let Words::Read { at, stride, .. } = &piece.words else {
            continue;
        };
        let chunk = pieces.chunk(piece, space, need);
        let start = space.page().index(piece.range.start());
        for page in chunk.pages() {
            if !filter.matches(&page, chunk.region) {
                continue;
            }
            let first = space.page().index(page.address) - start;
            let end = (first + page.pages).div_ceil(*stride) as usize;
            let first = at.start + (first / stride) as usize;
            let kept = chosen.get_mut(first..at.start + end).unwrap_or_default();
            kept.fill(true);
        }
    }
    Chosen::Some(chosen)
}

/// Looks up the words that `need` names.
pub(super) fn words(
    pieces: &mut Pieces,
    gather: &mut Gather,
    machine: &Machine,
    need: Facts,
    chosen: &Chosen,
) -> process::Result<()> {
    if need.is_empty() {
        return Ok(());
    }
    gather.clear();
    for piece in &pieces.all {
        if let Words::Read { at, stride: 1, .. } = &piece.words {
            let entries = pieces.entries.get(at.clone()).unwrap_or_default();
            gather.gather(entries, at.start, chosen);
        }
    }
    gather.sort();
    let entries = pieces.entries.len();
    let files = [
        (Facts::FLAGS, WordFile::FrameFlags, &mut pieces.flags),
        (Facts::COUNTS, WordFile::FrameCounts, &mut pieces.counts),
        (Facts::CGROUPS, WordFile::FrameCgroups, &mut pieces.cgroups),
    ];
    for (asked, file, words) in files {
        if need.contains(asked) {
            gather.read(machine, file, entries, words)?;
        }
    }
    if need.contains(Facts::ORDER) {
        orders(pieces, gather, machine)?;
    }
    huge::look_up(pieces, machine, need, chosen)
}

/// The folio orders of all frames whose flags have just been read. At the edges of runs a few more flags are read.
fn orders(pieces: &mut Pieces, gather: &Gather, machine: &Machine) -> process::Result<()> {
    pieces.orders.clear();
    pieces.orders.resize(pieces.entries.len(), UNREAD);
    let mut last: Option<Folio> = None;
    for run in gather.runs() {
        let slots = run.slots();
        let words = pieces.flags.get(slots.clone()).unwrap_or_default();
        let orders = pieces.orders.get_mut(slots).unwrap_or_default();
        let flags = |index: usize| {
            let word = words.get(index).filter(|&&word| word != UNREAD)?;
            Some(PageFlags::from_bits_retain(*word))
        };
        let first = FrameNumber::new(run.frame);
        Folio::each(machine, first, words.len(), &flags, &mut last, &mut |at, folio| {
            let orders = orders.get_mut(at).unwrap_or_default();
            orders.fill(folio.order.into());
        })?;
    }
    Ok(())
}

/// Sets bit 56 of the pages that one PMD maps by their own map counts: the kernel gives all of them that of the first
/// one (pagemap_pmd_range in fs/proc/task_mmu.c: up to Linux 6.10, and again after 6.12).
///
/// Fails when the target is gone, or when the kernel refuses map counts.
pub(super) fn set_exclusive(
    pieces: &mut Pieces,
    gather: &mut Gather,
    space: &AddressSpace,
    need: Facts,
) -> process::Result<()> {
    let huge = huge_entries(pieces, space);
    // The kernel's configuration shows whether counts are exact: unpacking it takes milliseconds.
    if !huge.contains(&true) || !space.has_exact_counts() {
        return Ok(());
    }
    if !need.contains(Facts::COUNTS) {
        words(pieces, gather, &space.target().machine, Facts::COUNTS, &Chosen::Some(huge))?;
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
fn huge_entries(pieces: &Pieces, space: &AddressSpace) -> Vec<bool> {
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
