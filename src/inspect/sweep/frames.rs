//! The words of the frames of all stretches: read by sorted frame number, in runs, with small gaps read along. Of a
//! huge mapping a few words stand for all of its pages where this is certain, and map counts correct bit 56 of each
//! page.

use super::super::address_space::AddressSpace;
use super::super::classify::Backing;
use super::super::filter::Question;
use super::super::folio::Folio;
use super::super::hidden_words::{hide, known_words, why_hidden};
use super::super::kernel_record;
use super::super::page::Evidence;
use super::chunk::{PageStretch, PageStretches, StretchWords};
use super::columns::{Column, Columns, UNREAD};
use super::plan::PlanStep;
use super::wanted::{EntryChoice, WantedFrames};
use super::{folios, huge};
use crate::kernel::{FrameNumber, PageFlags, PageMapEntry, WordFile};
use crate::process::{self, Categories, Machine, Process};
use std::ops::Range;

/// Looks up what the filter needs, then the rest for the pages that it keeps.
pub(super) fn look_up_frames(
    stretches: &mut PageStretches,
    wanted: &mut WantedFrames,
    space: &AddressSpace,
    question: &Question,
) -> process::Result<()> {
    for stretch in stretches.all.iter_mut().filter(|_| !question.spared.is_empty()) {
        if question.spares(stretch.region.and_then(|index| space.viewed_regions().get(index)))
            && !is_droppable(&stretches.entries, &stretch.words, space)
        {
            stretch.spared = question.spared;
        }
    }
    let first = question.needed_of_all(space);
    look_up_words(stretches, wanted, space, first & Evidence::WORDS, &EntryChoice::All)?;
    let mut rest = question.need.difference(first) & Evidence::WORDS;
    // What was read for pins has the references too.
    rest.set(Evidence::REFERENCES, rest.contains(Evidence::REFERENCES) && !first.contains(Evidence::PINS));
    if !rest.is_empty() {
        let chosen = choose_kept(stretches, space, question, first);
        look_up_words(stretches, wanted, space, rest, &chosen)?;
    }
    if (first | question.need).contains(Evidence::COUNTS) {
        count_own_mappings(stretches, space);
    }
    Ok(())
}

/// Whether a stretch is of droppable memory (MAP_DROPPABLE, Linux 6.11), which no sum of the kernel shows: the flags of
/// a page do. Its pages are exclusive, since a child does not get them, and the zero page is not.
fn is_droppable(entries: &[PageMapEntry], words: &StretchWords, space: &AddressSpace) -> bool {
    let StretchWords::Read { at, .. } = words else {
        return false;
    };
    let entries = entries.get(at.clone()).filter(|_| space.kernel() >= (6, 11)).unwrap_or_default();
    let first = entries.iter().find(|entry| entry.is_exclusive()).and_then(|entry| entry.frame());
    let mut flags = [PageFlags::empty()];
    first.is_some_and(|frame| space.target().machine.frame_flags(frame, &mut flags).is_ok())
        && flags[0].contains(PageFlags::ANON)
        && !flags[0].contains(PageFlags::SWAPBACKED)
}

/// Counts pmdb's own mappings of the frames. After the map counts: pmdb may map another page of a library at any time,
/// and must not subtract a mapping that is not counted.
fn count_own_mappings(stretches: &mut PageStretches, space: &AddressSpace) {
    let of_files = stretches.all.iter().filter_map(|stretch| {
        let viewed = space.viewed_regions().get(stretch.region?)?;
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
        let own = stretches.columns.of_mut(Column::Own);
        own.resize(stretches.entries.len(), 0);
        if let (Some(entries), Some(own)) = (stretches.entries.get(at.clone()), own.get_mut(at.clone())) {
            observer.count(&viewed.region, stretch.range.start(), entries, space.page_size(), own);
        }
    }
}

/// The entries of pages that the filter keeps, for all that was read so far.
fn choose_kept(stretches: &PageStretches, space: &AddressSpace, question: &Question, need: Evidence) -> EntryChoice {
    let Some(filter) = &question.filter else {
        return EntryChoice::All;
    };
    let mut chosen = vec![false; stretches.entries.len()];
    for stretch in &stretches.all {
        let StretchWords::Read { at, stride, .. } = &stretch.words else {
            continue;
        };
        let chunk = stretches.chunk(stretch, space, need);
        let start = space.page_size().index(stretch.range.start());
        for page in chunk.pages() {
            if !filter.matches(&page, chunk.region) {
                continue;
            }
            let first = space.page_size().index(page.address) - start;
            let end = (first + page.pages).div_ceil(*stride) as usize;
            let first = at.start + (first / stride) as usize;
            let kept = chosen.get_mut(first..at.start + end).unwrap_or_default();
            kept.fill(true);
        }
    }
    EntryChoice::Some(chosen)
}

/// Looks up the words that `need` names.
fn look_up_words(
    stretches: &mut PageStretches,
    wanted: &mut WantedFrames,
    space: &AddressSpace,
    need: Evidence,
    chosen: &EntryChoice,
) -> process::Result<()> {
    if need.is_empty() {
        return Ok(());
    }
    let machine = &*space.target().machine;
    let spared = stretches.all.iter().fold(Evidence::empty(), |spared, stretch| spared | stretch.spared);
    // Map counts are read of fewer frames, and gathered apart. What is spared comes first: it tells some of them.
    for asked in [need & spared, need.difference(spared)] {
        if !asked.difference(Evidence::COUNTS).is_empty() {
            wanted.gather(stretches, asked, |slot| chosen.contains(slot));
        }
        look_up_columns(stretches, wanted, machine, asked)?;
    }
    if need.contains(Evidence::COUNTS) {
        look_up_counts(stretches, wanted, space, chosen)?;
    }
    look_up_huge(stretches, machine, need, chosen)?;
    if need.contains(Evidence::FOLIOS) { folios::find_folios(stretches, space) } else { Ok(()) }
}

/// Looks up the words of what was gathered, without map counts.
fn look_up_columns(
    stretches: &mut PageStretches,
    wanted: &WantedFrames,
    machine: &Machine,
    need: Evidence,
) -> process::Result<()> {
    let entries = stretches.entries.len();
    for (column, file) in Column::plain(need) {
        let words = stretches.columns.begin(column, entries);
        wanted.fill(words, |first, into| known_words(machine, file, first, into))?;
        hide_words(&mut stretches.columns, wanted, machine, column, file);
    }
    if need.contains(Evidence::ORDER) {
        find_orders(stretches, wanted, machine)?;
    }
    if need.intersects(Evidence::RECORDS) {
        stretches.columns.holders.resize(entries, None);
        wanted.fill(&mut stretches.columns.holders, |first, into| {
            kernel_record::read_holders(machine, first, need, into)
        })?;
    }
    Ok(())
}

/// Looks up map counts. Bit 56 of an entry outside of huge mappings is a map count of 1, where the kernel counts each
/// page (pte_to_pagemap_entry in fs/proc/task_mmu.c): counts are read only for the other entries.
fn look_up_counts(
    stretches: &mut PageStretches,
    wanted: &mut WantedFrames,
    space: &AddressSpace,
    chosen: &EntryChoice,
) -> process::Result<()> {
    let mut counts = std::mem::take(stretches.columns.begin(Column::Counts, stretches.entries.len()));
    for stretch in stretches.all.iter().filter(|_| space.has_exact_counts()) {
        let (Some(at), StretchWords::Read { stride: 1, .. }) = (slots(stretch, space), &stretch.words) else {
            continue;
        };
        let entries = stretches.entries.get(at.clone()).unwrap_or_default();
        let counts = counts.get_mut(at.clone()).unwrap_or_default();
        let flags = if stretch.spared.contains(Evidence::FLAGS) { &[] } else { stretches.columns.of(Column::Flags) };
        for (entry, (slot, count)) in entries.iter().zip(at.zip(counts.iter_mut())) {
            let is_counted = flags.get(slot).is_none_or(|&flags| is_counted(flags));
            if entry.is_present() && entry.is_exclusive() && chosen.contains(slot) && is_counted {
                *count = 1;
            }
        }
        let viewed = stretch.region.and_then(|index| space.viewed_regions().get(index));
        for block in huge::blocks(space, viewed, stretch.range, entries) {
            counts.get_mut(block).unwrap_or_default().fill(UNREAD);
        }
    }
    let is_open = |slot| chosen.contains(slot) && counts.get(slot) == Some(&UNREAD);
    wanted.gather(stretches, Evidence::COUNTS, is_open);
    let machine = &space.target().machine;
    let read = wanted.fill(&mut counts, |first, into| known_words(machine, WordFile::FrameCounts, first, into));
    *stretches.columns.of_mut(Column::Counts) = counts;
    hide_words(&mut stretches.columns, wanted, machine, Column::Counts, WordFile::FrameCounts);
    read
}

/// Whether flags are those of a frame that the kernel counts the mappings of: it shows them, and the frame is not
/// reserved.
fn is_counted(flags: u64) -> bool {
    let is_shown = flags != 0 && flags != UNREAD;
    is_shown && !PageFlags::from_bits_retain(flags).contains(PageFlags::RESERVED)
}

/// Makes [`UNREAD`] of the words of wanted frames that the kernel does not show.
fn hide_words(columns: &mut Columns, wanted: &WantedFrames, machine: &Machine, column: Column, file: WordFile) {
    // Only words of 0 may be hidden, and most columns have none.
    if !columns.of(column).contains(&0) {
        return;
    }
    let mut words = std::mem::take(columns.of_mut(column));
    let all_flags = if column == Column::Flags { &[] } else { columns.of(Column::Flags) };
    for run in wanted.runs() {
        let flags = all_flags.get(run.slots()).unwrap_or_default();
        let words = words.get_mut(run.slots()).unwrap_or_default();
        hide(machine, file, FrameNumber::new(run.frame), words, flags);
    }
    *columns.of_mut(column) = words;
}

/// The folio orders of all frames whose flags have just been read. At the edges of runs a few more flags are read.
fn find_orders(stretches: &mut PageStretches, wanted: &WantedFrames, machine: &Machine) -> process::Result<()> {
    let mut all = std::mem::take(stretches.columns.begin(Column::Orders, stretches.entries.len()));
    let mut last: Option<Folio> = None;
    for run in wanted.runs() {
        let slots = run.slots();
        let words = stretches.columns.of(Column::Flags).get(slots.clone()).unwrap_or_default();
        let orders = all.get_mut(slots).unwrap_or_default();
        let flags = |index: usize| {
            let word = words.get(index).filter(|&&word| word != UNREAD)?;
            Some(PageFlags::from_bits_retain(*word))
        };
        let frames = run.frame..run.frame + words.len() as u64;
        Folio::each(machine, frames, &flags, &mut last, &mut |at, folio| {
            let orders = orders.get_mut(at).unwrap_or_default();
            orders.fill(folio.order.into());
        })?;
    }
    *stretches.columns.of_mut(Column::Orders) = all;
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
    need: Evidence,
) -> process::Result<()> {
    let huge = huge_entries(stretches, space);
    // The kernel's configuration shows whether counts are exact: unpacking it takes milliseconds.
    if !huge.contains(&true) || !space.has_exact_counts() {
        return Ok(());
    }
    if !need.contains(Evidence::COUNTS) {
        look_up_words(stretches, wanted, space, Evidence::COUNTS, &EntryChoice::Some(huge))?;
    }
    for stretch in &stretches.all {
        let Some(at) = slots(stretch, space) else {
            continue;
        };
        let counts = stretches.columns.of(Column::Counts).get(at.clone()).unwrap_or_default();
        let entries = stretches.entries.get_mut(at).unwrap_or_default();
        for (entry, &count) in entries.iter_mut().zip(counts).filter(|(_, count)| **count != UNREAD) {
            *entry = entry.with_exclusive(count == 1);
        }
    }
    if !need.contains(Evidence::COUNTS) {
        stretches.columns.of_mut(Column::Counts).clear();
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
        let flags = stretches.columns.of(Column::Flags).get(at.clone()).unwrap_or_default();
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
    let viewed = space.viewed_regions().get(stretch.region?)?;
    (viewed.backing != Backing::Hugetlb).then(|| at.clone())
}

/// Reads one entry for each huge mapping of `step`. Returns false if one of them is no longer huge: then all entries
/// have to be read.
pub(super) fn read_huge(
    stretches: &mut PageStretches,
    space: &AddressSpace,
    step: &PlanStep,
    need: Evidence,
) -> process::Result<bool> {
    let page = space.page_size();
    let target = space.target();
    let Some(bytes) = target.machine.huge_page_bytes() else {
        return Ok(false);
    };
    let stride = (bytes >> page.shift()).max(1);
    let indices = page.index(step.range.start())..page.index(step.range.end());
    let first = stretches.entries.len();
    read_heads(&target.process, indices, stride, &mut stretches.entries)?;
    let heads = stretches.entries.get(first..).unwrap_or_default();
    // A huge mapping is present, and its first frame is aligned.
    let is_head = |entry: &PageMapEntry| {
        entry.is_present() && entry.frame().is_none_or(|frame| frame.get().is_multiple_of(stride))
    };
    if !heads.iter().all(is_head) {
        stretches.entries.truncate(first);
        return Ok(false);
    }
    let at = first..stretches.entries.len();
    // Marks are made only where they are needed.
    let marks = need.intersects(Evidence::HUGE | Evidence::KINDS);
    let marks = marks.then(|| stretches.mark_huge(at.len()));
    stretches.push(step.region, step.range, StretchWords::Read { at, marks, stride });
    Ok(true)
}

/// The first entries of the huge mappings of `stride` pages each at the page indices `indices`. One read returns the
/// last entry of a mapping and the first of its neighbour: a system call costs more than the extra entry.
fn read_heads(
    process: &Process,
    indices: Range<u64>,
    stride: u64,
    heads: &mut Vec<PageMapEntry>,
) -> process::Result<()> {
    let mut index = indices.start;
    while index < indices.end {
        let mut entries = [PageMapEntry::default(); 2];
        let second = index.saturating_add(stride);
        if second < indices.end {
            process.entries(second - 1, &mut entries)?;
            let [last, head] = entries;
            let first = match last.frame() {
                Some(_) => PageMapEntry::new(last.raw().wrapping_sub(stride - 1)),
                None => last,
            };
            heads.extend([first, head]);
            index = second.saturating_add(stride);
        } else {
            process.entries(index, &mut entries[..1])?;
            heads.push(entries[0]);
            index = second;
        }
    }
    Ok(())
}

/// The map counts of a huge mapping.
enum HugeMapCounts {
    /// The same for all of its pages; [`UNREAD`] where there is none to read.
    Same(u64),
    /// One for each page.
    Each(Vec<u64>),
}

/// Reads the flags of the heads and of one tail each, and as many map counts as it takes.
fn look_up_huge(
    stretches: &mut PageStretches,
    machine: &Machine,
    need: Evidence,
    chosen: &EntryChoice,
) -> process::Result<()> {
    for stretch in 0..stretches.all.len() {
        look_up_piece(stretches, machine, need, chosen, stretch)?;
    }
    Ok(())
}

fn look_up_piece(
    stretches: &mut PageStretches,
    machine: &Machine,
    need: Evidence,
    chosen: &EntryChoice,
    stretch: usize,
) -> process::Result<()> {
    let (at, stride, spared) = match stretches.all.get(stretch).map(|stretch| (&stretch.words, stretch.spared)) {
        Some((StretchWords::Read { at, stride, .. }, spared)) if *stride > 1 => (at.clone(), *stride, spared),
        _ => return Ok(()),
    };
    let need = need.difference(spared);
    let mut differing = Vec::new();
    for slot in at.clone().filter(|&slot| chosen.contains(slot)) {
        let Some(head) = stretches.entries.get(slot).and_then(|entry| entry.frame()) else {
            continue;
        };
        let mut flags = [PageFlags::empty(); 2];
        let read = machine.frame_flags(head, &mut flags);
        if read.is_ok() && flags[0].is_empty() && why_hidden(machine, head).is_some() {
            continue;
        }
        if need.contains(Evidence::FLAGS) && read? == flags.len() {
            stretches.columns.of_mut(Column::TailFlags).resize(stretches.entries.len(), UNREAD);
            stretches.columns.set(Column::Flags, slot, flags[0].bits());
            stretches.columns.set(Column::TailFlags, slot, flags[1].bits());
        }
        for (column, file) in Column::plain(need).filter(|(column, _)| *column != Column::Flags) {
            let mut word = [0];
            if known_words(machine, file, head, &mut word)? > 0 {
                stretches.columns.set(column, slot, word[0]);
            }
        }
        if need.contains(Evidence::ORDER) {
            let folio = Folio::find(machine, head, flags[0])?;
            let order = folio.map_or(UNREAD, |folio| folio.order.into());
            stretches.columns.set(Column::Orders, slot, order);
        }
        if need.intersects(Evidence::RECORDS) {
            stretches.columns.holders.resize(stretches.entries.len(), None);
            let holders = stretches.columns.holders.get_mut(slot..=slot).unwrap_or_default();
            kernel_record::read_holders(machine, head, need, holders)?;
        }
        if need.contains(Evidence::COUNTS) {
            match map_counts(machine, head, flags[0], stride)? {
                HugeMapCounts::Same(count) => stretches.columns.set(Column::Counts, slot, count),
                HugeMapCounts::Each(counts) => differing.push((slot, counts)),
            }
        }
    }
    if !differing.is_empty() {
        expand(stretches, stretch, at, stride, &differing);
    }
    Ok(())
}

/// Makes a word for each page of a stretch where one for each huge mapping is not enough.
fn expand(
    stretches: &mut PageStretches,
    stretch: usize,
    at: Range<usize>,
    stride: u64,
    differing: &[(usize, Vec<u64>)],
) {
    let first = stretches.entries.len();
    let mut differing = differing.iter().peekable();
    for slot in at {
        let entry = stretches.entries.get(slot).copied().unwrap_or_default();
        let step = u64::from(entry.frame().is_some());
        let each = (0..stride).map(|page| PageMapEntry::new(entry.raw() + page * step));
        stretches.entries.extend(each);
        let end = stretches.entries.len();
        stretches.columns.repeat(slot, stride as usize, end);
        if let Some((_, counts)) = differing.next_if(|(differs, _)| *differs == slot) {
            let into = stretches.columns.of_mut(Column::Counts).get_mut(end - counts.len()..);
            into.unwrap_or_default().copy_from_slice(counts);
        }
    }
    let at = first..stretches.entries.len();
    let marked = stretches.mark_huge(at.len());
    if let Some(stretch) = stretches.all.get_mut(stretch)
        && let StretchWords::Read { marks, .. } = &stretch.words
    {
        stretch.words = StretchWords::Read { marks: marks.is_some().then_some(marked), at, stride: 1 };
    }
}

/// The map counts of the `pages` frames from `head` on. An anon-exclusive head (KPF_OWNER_2) proves that the folio has
/// this one mapping; otherwise each page may have its own count, as after a forked child has copied one of them.
fn map_counts(machine: &Machine, head: FrameNumber, flags: PageFlags, pages: u64) -> process::Result<HugeMapCounts> {
    let pages = if flags.contains(PageFlags::ANON | PageFlags::OWNER_2) { 1 } else { pages };
    let mut counts = vec![UNREAD; pages as usize];
    let read = machine.frame_counts(head, &mut counts)?;
    let first = counts.first().copied().unwrap_or(UNREAD);
    if counts.iter().take(read).all(|&count| count == first) && read == counts.len() {
        return Ok(HugeMapCounts::Same(first));
    }
    if read == 0 {
        return Ok(HugeMapCounts::Same(UNREAD));
    }
    Ok(HugeMapCounts::Each(counts))
}
