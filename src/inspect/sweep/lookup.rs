//! The words of the frames of all stretches, looked up by sorted frame number, and bit 56 of each page of a huge
//! mapping, which map counts correct.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::filter::Question;
use super::super::folio::Folio;
use super::super::page::Facts;
use super::chunk::{PageStretch, PageStretches, StretchWords, UNREAD};
use super::frames::{EntryChoice, WantedFrames};
use super::huge;
use crate::kernel::{FrameNumber, PageFlags};
use crate::process::{self, Categories, Machine, WordFile};

/// Looks up what the filter needs, then the rest for the pages that it keeps.
pub(super) fn look_up_frames(
    stretches: &mut PageStretches,
    wanted: &mut WantedFrames,
    space: &AddressSpace,
    question: &Question,
) -> process::Result<()> {
    let machine = &*space.target().machine;
    let first = question.needed_of_all(space);
    look_up_words(stretches, wanted, machine, first & Facts::WORDS, &EntryChoice::All)?;
    let rest = question.need.difference(first) & Facts::WORDS;
    if !rest.is_empty() {
        let chosen = choose_kept(stretches, space, question, first);
        look_up_words(stretches, wanted, machine, rest, &chosen)?;
    }
    if (first | question.need).contains(Facts::COUNTS) {
        count_own_mappings(stretches, space);
    }
    Ok(())
}

/// Counts pmdb's own mappings of the frames. After the map counts: pmdb may map another page of a library at any time,
/// and must not subtract a mapping that is not counted.
fn count_own_mappings(stretches: &mut PageStretches, space: &AddressSpace) {
    let of_files = stretches.all.iter().filter_map(|stretch| {
        let viewed = space.regions().get(stretch.region?)?;
        match &stretch.words {
            StretchWords::Read { at, stride: 1, .. } if viewed.region.inode != 0 => Some((stretch, viewed, at)),
            _ => None,
        }
    });
    for (stretch, viewed, at) in of_files {
        // If they are unknown, the counts stay as the kernel has them.
        let Some(observer) = space.observer().ok().filter(|observer| observer.maps(&viewed.region)) else {
            continue;
        };
        stretches.own.resize(stretches.entries.len(), 0);
        if let (Some(entries), Some(own)) = (stretches.entries.get(at.clone()), stretches.own.get_mut(at.clone())) {
            observer.count(&viewed.region, stretch.range.start(), entries, space.page(), own);
        }
    }
}

/// The entries of pages that the filter keeps, for all that was read so far.
fn choose_kept(stretches: &PageStretches, space: &AddressSpace, question: &Question, need: Facts) -> EntryChoice {
    let Some(filter) = &question.filter else {
        return EntryChoice::All;
    };
    let mut chosen = vec![false; stretches.entries.len()];
    for stretch in &stretches.all {
        let StretchWords::Read { at, stride, .. } = &stretch.words else {
            continue;
        };
        let chunk = stretches.chunk(stretch, space, need);
        let start = space.page().index(stretch.range.start());
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
    EntryChoice::Some(chosen)
}

/// Looks up the words that `need` names.
pub(super) fn look_up_words(
    stretches: &mut PageStretches,
    wanted: &mut WantedFrames,
    machine: &Machine,
    need: Facts,
    chosen: &EntryChoice,
) -> process::Result<()> {
    if need.is_empty() {
        return Ok(());
    }
    wanted.clear();
    for stretch in &stretches.all {
        if let StretchWords::Read { at, stride: 1, .. } = &stretch.words {
            let entries = stretches.entries.get(at.clone()).unwrap_or_default();
            wanted.add(entries, at.start, chosen);
        }
    }
    wanted.sort();
    let entries = stretches.entries.len();
    let files = [
        (Facts::FLAGS, WordFile::FrameFlags, &mut stretches.flags),
        (Facts::COUNTS, WordFile::FrameCounts, &mut stretches.counts),
        (Facts::CGROUPS, WordFile::FrameCgroups, &mut stretches.cgroups),
    ];
    for (asked, file, words) in files {
        if need.contains(asked) {
            wanted.read(machine, file, entries, words)?;
        }
    }
    if need.contains(Facts::ORDER) {
        find_orders(stretches, wanted, machine)?;
    }
    huge::look_up(stretches, machine, need, chosen)
}

/// The folio orders of all frames whose flags have just been read. At the edges of runs a few more flags are read.
fn find_orders(stretches: &mut PageStretches, wanted: &WantedFrames, machine: &Machine) -> process::Result<()> {
    stretches.orders.clear();
    stretches.orders.resize(stretches.entries.len(), UNREAD);
    let mut last: Option<Folio> = None;
    for run in wanted.runs() {
        let slots = run.slots();
        let words = stretches.flags.get(slots.clone()).unwrap_or_default();
        let orders = stretches.orders.get_mut(slots).unwrap_or_default();
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
    stretches: &mut PageStretches,
    wanted: &mut WantedFrames,
    space: &AddressSpace,
    need: Facts,
) -> process::Result<()> {
    let huge = huge_entries(stretches, space);
    // The kernel's configuration shows whether counts are exact: unpacking it takes milliseconds.
    if !huge.contains(&true) || !space.has_exact_counts() {
        return Ok(());
    }
    if !need.contains(Facts::COUNTS) {
        look_up_words(stretches, wanted, &space.target().machine, Facts::COUNTS, &EntryChoice::Some(huge))?;
    }
    for stretch in &stretches.all {
        let Some(at) = slots(stretch, space) else {
            continue;
        };
        let counts = stretches.counts.get(at.clone()).unwrap_or_default();
        let entries = stretches.entries.get_mut(at).unwrap_or_default();
        for (entry, &count) in entries.iter_mut().zip(counts).filter(|(_, count)| **count != UNREAD) {
            *entry = entry.with_exclusive(count == 1);
        }
    }
    if !need.contains(Facts::COUNTS) {
        stretches.counts.clear();
    }
    Ok(())
}

/// Which entries are those of huge mappings, as far as a scan or the flags of their frames tell.
fn huge_entries(stretches: &PageStretches, space: &AddressSpace) -> Vec<bool> {
    let mut huge = vec![false; stretches.entries.len()];
    for stretch in &stretches.all {
        let (Some(at), StretchWords::Read { marks, .. }) = (slots(stretch, space), &stretch.words) else {
            continue;
        };
        let flags = stretches.flags.get(at.clone()).unwrap_or_default();
        let chosen = huge.get_mut(at).unwrap_or_default();
        match marks.as_ref().and_then(|marks| stretches.marks.get(marks.clone())) {
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

/// The entries of a stretch. Pages of the hugetlb pool are counted whole: their bit is right.
fn slots(stretch: &PageStretch, space: &AddressSpace) -> Option<std::ops::Range<usize>> {
    let StretchWords::Read { at, .. } = &stretch.words else {
        return None;
    };
    let viewed = space.regions().get(stretch.region?)?;
    (viewed.backing != Backing::Hugetlb).then(|| at.clone())
}
