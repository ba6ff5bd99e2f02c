//! Huge mappings: a few words stand for all of their pages, where this is certain.

use super::super::address_space::AddressSpace;
use super::super::folio::Folio;
use super::super::page::Facts;
use super::chunk::{PageStretches, StretchWords, UNREAD};
use super::frames::EntryChoice;
use super::plan::PlanStep;
use crate::kernel::{FrameNumber, PageFlags, PageMapEntry};
use crate::process::{self, Machine, Process};
use std::ops::Range;

/// Reads one entry for each huge mapping of `step`. Returns false if one of them is no longer huge: then all entries
/// have to be read.
pub(super) fn read_huge(
    stretches: &mut PageStretches,
    space: &AddressSpace,
    step: &PlanStep,
    need: Facts,
) -> process::Result<bool> {
    let page = space.page();
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
    let marks = need.intersects(Facts::HUGE | Facts::KINDS);
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
enum HugeCounts {
    /// The same for all of its pages; [`UNREAD`] where there is none to read.
    Same(u64),
    /// One for each page.
    Each(Vec<u64>),
}

/// Reads the flags of the heads and of one tail each, and as many map counts as it takes.
pub(super) fn look_up(
    stretches: &mut PageStretches,
    machine: &Machine,
    need: Facts,
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
    need: Facts,
    chosen: &EntryChoice,
    stretch: usize,
) -> process::Result<()> {
    let (at, stride) = match stretches.all.get(stretch).map(|stretch| &stretch.words) {
        Some(StretchWords::Read { at, stride, .. }) if *stride > 1 => (at.clone(), *stride),
        _ => return Ok(()),
    };
    let mut differing = Vec::new();
    for slot in at.clone().filter(|&slot| chosen.contains(slot)) {
        let Some(head) = stretches.entries.get(slot).and_then(|entry| entry.frame()) else {
            continue;
        };
        let mut flags = [PageFlags::empty(); 2];
        let read = machine.frame_flags(head, &mut flags);
        if need.contains(Facts::FLAGS) && read? == flags.len() {
            stretches.tail_flags.resize(stretches.entries.len(), UNREAD);
            set_word(&mut stretches.flags, slot, flags[0].bits());
            set_word(&mut stretches.tail_flags, slot, flags[1].bits());
        }
        if need.contains(Facts::CGROUPS) {
            let mut inode = [0];
            if machine.frame_cgroups(head, &mut inode)? > 0 {
                set_word(&mut stretches.cgroups, slot, inode[0]);
            }
        }
        if need.contains(Facts::ORDER) {
            let folio = Folio::find(machine, head, flags[0])?;
            let order = folio.map_or(UNREAD, |folio| folio.order.into());
            set_word(&mut stretches.orders, slot, order);
        }
        if need.contains(Facts::COUNTS) {
            match map_counts(machine, head, flags[0], stride)? {
                HugeCounts::Same(count) => set_word(&mut stretches.counts, slot, count),
                HugeCounts::Each(counts) => differing.push((slot, counts)),
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
        // What was not read has no words at all.
        let (flags, tail_flags) = (stretches.flags.get(slot).copied(), stretches.tail_flags.get(slot));
        if let Some(head) = flags {
            let tail = tail_flags.copied().unwrap_or(UNREAD);
            stretches.flags.push(head);
            stretches.flags.resize(end, tail);
        }
        for words in [&mut stretches.orders, &mut stretches.cgroups] {
            if let Some(&word) = words.get(slot) {
                words.resize(end, word);
            }
        }
        match differing.next_if(|(differs, _)| *differs == slot) {
            Some((_, counts)) => stretches.counts.extend(counts),
            None => {
                let count = stretches.counts.get(slot).copied().unwrap_or(UNREAD);
                stretches.counts.resize(end, count);
            }
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

fn set_word(words: &mut [u64], slot: usize, word: u64) {
    if let Some(place) = words.get_mut(slot) {
        *place = word;
    }
}

/// The map counts of the `pages` frames from `head` on. An anon-exclusive head (KPF_OWNER_2) proves that the folio has
/// this one mapping; otherwise each page may have its own count, as after a forked child has copied one of them.
fn map_counts(machine: &Machine, head: FrameNumber, flags: PageFlags, pages: u64) -> process::Result<HugeCounts> {
    let pages = if flags.contains(PageFlags::ANON | PageFlags::OWNER_2) { 1 } else { pages };
    let mut counts = vec![UNREAD; pages as usize];
    let read = machine.frame_counts(head, &mut counts)?;
    let first = counts.first().copied().unwrap_or(UNREAD);
    if counts.iter().take(read).all(|&count| count == first) && read == counts.len() {
        return Ok(HugeCounts::Same(first));
    }
    if read == 0 {
        return Ok(HugeCounts::Same(UNREAD));
    }
    Ok(HugeCounts::Each(counts))
}
