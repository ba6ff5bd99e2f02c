//! For each frame that a process of a family maps: how often, which process has it alone, and what it is. Some bytes a
//! frame, in blocks that are made where frames are mapped.

use crate::inspect::Result;
use crate::kernel::{FrameNumber, PageFlags};
use crate::process::{Machine, WordFile};
use std::collections::BTreeMap;

/// Frames of one block: 64 MiB of memory where pages have 4 KiB.
const BLOCK_FRAMES: u64 = 1 << 14;
const BLOCK: usize = BLOCK_FRAMES as usize;
/// Words of one read: 64 KiB.
const READ_WORDS: usize = 8192;
/// Frames between two stretches that are read along sooner than a second system call is made.
const GAP_FRAMES: u64 = 64;

/// Several processes map the frame.
const SEVERAL: u16 = u16::MAX;
/// The most processes that can be distinguished.
pub(super) const MOST_MEMBERS: usize = SEVERAL as usize - 1;

/// What a frame is, by its flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// Its flags were not read yet.
    Unread,
    /// Anonymous memory, and private copies of file pages.
    Private,
    /// The same, but the kernel may average the map count over its large folio.
    PrivateInFolio,
    Merged,
    Shmem,
    ShmemInFolio,
    File,
    FileInFolio,
    /// Of the kernel, mapped into processes.
    Kernel,
    /// Nothing that Rss counts: a page of zeros, the hugetlb pool, a frame of a driver.
    Beside,
    /// Its flags cannot be read.
    Unknown,
}

/// What is known of a frame, of those that some member maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OwnedFrame {
    /// Mappings by all members.
    pub times: u32,
    /// The one member that maps it; `None` if there are several.
    pub owner: Option<usize>,
    pub kind: FrameKind,
}

/// All frames that were added.
#[derive(Default)]
pub(super) struct FrameOwners {
    blocks: BTreeMap<u64, Block>,
}

struct Block {
    times: Box<[u32]>,
    /// 0 for none, otherwise one more than the member.
    owners: Box<[u16]>,
    kinds: Box<[FrameKind]>,
}

impl Default for Block {
    fn default() -> Self {
        Block {
            times: vec![0; BLOCK].into(),
            owners: vec![0; BLOCK].into(),
            kinds: vec![FrameKind::Unread; BLOCK].into(),
        }
    }
}

/// Splits frames where blocks end: the number of the block, and the frames in it.
fn by_block(first: u64, frames: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let end = first.saturating_add(frames);
    let mut next = first;
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let (block, at) = (next / BLOCK_FRAMES, next % BLOCK_FRAMES);
        let count = (BLOCK_FRAMES - at).min(end - next);
        next += count;
        Some((block, at as usize..(at + count) as usize))
    })
}

impl FrameOwners {
    /// Finds out what frames are that were not seen before. The runs are in any order. This kernel sets `false_flags`
    /// where they do not hold.
    pub fn learn(&mut self, runs: &[(FrameNumber, u64)], false_flags: PageFlags, machine: &Machine) -> Result<()> {
        let mut unread: Vec<(u64, u64)> = Vec::new();
        for &(first, frames) in runs {
            for (number, within) in by_block(first.get(), frames) {
                let block = self.blocks.entry(number).or_default();
                let kinds = block.kinds.get(within.clone()).unwrap_or_default();
                let base = number * BLOCK_FRAMES + within.start as u64;
                // Mostly all of a run was seen before, or nothing.
                let mut at = 0;
                for part in kinds.chunk_by(|one, two| (*one == FrameKind::Unread) == (*two == FrameKind::Unread)) {
                    if part.first() == Some(&FrameKind::Unread) {
                        unread.push((base + at, base + at + part.len() as u64));
                    }
                    at += part.len() as u64;
                }
            }
        }
        unread.sort_unstable();
        let (mut words, mut rest) = (Vec::new(), unread.as_slice());
        for stretch in stretches(&unread) {
            read(machine, WordFile::FrameFlags, stretch, &mut words)?;
            let inside = rest.partition_point(|(_, end)| *end <= stretch.1);
            let (parts, more) = rest.split_at(inside);
            rest = more;
            for &(first, end) in parts {
                self.set_kinds(first, end, &words, stretch.0, false_flags);
            }
        }
        Ok(())
    }

    fn set_kinds(&mut self, first: u64, end: u64, words: &[u64], start: u64, false_flags: PageFlags) {
        for (number, within) in by_block(first, end - first) {
            let base = number * BLOCK_FRAMES;
            let Some(block) = self.blocks.get_mut(&number) else {
                continue;
            };
            for (index, kind) in block.kinds.iter_mut().enumerate().take(within.end).skip(within.start) {
                let word = words.get((base + index as u64 - start) as usize);
                *kind = word
                    .map_or(FrameKind::Unknown, |&word| FrameKind::of(PageFlags::from_bits_retain(word) - false_flags));
            }
        }
    }

    /// Sets what frames are, whatever their flags say.
    pub fn set_kind(&mut self, first: FrameNumber, frames: u64, kind: FrameKind) {
        for (number, within) in by_block(first.get(), frames) {
            let block = self.blocks.entry(number).or_default();
            block.kinds.get_mut(within).unwrap_or_default().fill(kind);
        }
    }

    /// Adds mappings by a member. Returns how many of them Rss counts.
    pub fn add(&mut self, first: FrameNumber, frames: u64, member: usize) -> u64 {
        let own = u16::try_from(member + 1).unwrap_or(SEVERAL);
        let mut counted = 0;
        for (number, within) in by_block(first.get(), frames) {
            let block = self.blocks.entry(number).or_default();
            let times = block.times.get_mut(within.clone()).unwrap_or_default();
            let owners = block.owners.get_mut(within.clone()).unwrap_or_default();
            let kinds = block.kinds.get(within).unwrap_or_default();
            counted += kinds.iter().filter(|&&kind| kind != FrameKind::Beside).count() as u64;
            for (times, owner) in times.iter_mut().zip(owners) {
                *times = times.saturating_add(1);
                *owner = match *owner {
                    0 => own,
                    one if one == own => own,
                    _ => SEVERAL,
                };
            }
        }
        counted
    }

    /// The mapped frames that Rss counts, in order, each with its map count if `counts` asks for it and it is known.
    /// Those that are read together come together.
    pub fn mapped(
        &self,
        machine: &Machine,
        counts: bool,
    ) -> impl Iterator<Item = Result<Vec<(OwnedFrame, Option<u64>)>>> {
        let is_exact = machine.has_exact_map_counts() == Some(true);
        let of_block = |(number, block): (&u64, _)| {
            let base = number * BLOCK_FRAMES;
            let mapped = |&frame: &u64| Block::frame(block, (frame - base) as usize).is_some();
            let mapped = (base..base + BLOCK_FRAMES).filter(mapped).map(|frame| (frame, frame + 1));
            let together = stretches(&mapped.collect::<Vec<_>>());
            together.into_iter().map(move |stretch| (base, block, stretch))
        };
        self.blocks.iter().flat_map(of_block).map(move |(base, block, stretch)| {
            let mut words = Vec::new();
            if counts {
                read(machine, WordFile::FrameCounts, stretch, &mut words)?;
            }
            let owned = |frame| {
                let owned = block.frame((frame - base) as usize)?;
                let count = words.get((frame - stretch.0) as usize).copied();
                Some((owned, count.filter(|_| is_exact || !owned.kind.is_in_folio())))
            };
            Ok((stretch.0..stretch.1).filter_map(owned).collect())
        })
    }
}

impl Block {
    /// A frame of it that is mapped and that Rss counts.
    fn frame(&self, index: usize) -> Option<OwnedFrame> {
        let (&times, &owner, &kind) = (self.times.get(index)?, self.owners.get(index)?, self.kinds.get(index)?);
        let owner = (owner != SEVERAL).then(|| usize::from(owner).saturating_sub(1));
        (times > 0 && kind != FrameKind::Beside).then_some(OwnedFrame { times, owner, kind })
    }
}

impl FrameKind {
    /// The kind of a mapped frame with these flags.
    fn of(flags: PageFlags) -> Self {
        use PageFlags as F;
        let is_in_folio = flags.is_in_large_folio();
        let by_folio = |one, in_folio| if is_in_folio { in_folio } else { one };
        match flags {
            // A frame that was reused since: a slab is never mapped, and its word has false bits.
            _ if flags.contains(F::SLAB) => FrameKind::Unknown,
            _ if flags.intersects(F::ZERO_PAGE | F::HUGE) => FrameKind::Beside,
            _ if flags.contains(F::RESERVED) => FrameKind::Beside,
            _ if flags.contains(F::KSM) => FrameKind::Merged,
            _ if flags.contains(F::ANON) => by_folio(FrameKind::Private, FrameKind::PrivateInFolio),
            _ if flags.contains(F::SWAPBACKED) => by_folio(FrameKind::Shmem, FrameKind::ShmemInFolio),
            _ => by_folio(FrameKind::File, FrameKind::FileInFolio),
        }
    }

    /// Whether its map count may be an average, on kernels that make such.
    pub fn is_in_folio(self) -> bool {
        matches!(self, FrameKind::PrivateInFolio | FrameKind::ShmemInFolio | FrameKind::FileInFolio)
    }
}

/// Joins ranges that are near each other, up to what one read takes.
fn stretches(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for &(first, end) in ranges {
        match all.last_mut() {
            Some(last) if first <= last.1.saturating_add(GAP_FRAMES) => last.1 = last.1.max(end),
            _ => all.push((first, end)),
        }
    }
    all
}

/// Reads the words of frames `first..end`: fewer where memory ends.
pub(super) fn read(machine: &Machine, file: WordFile, (first, end): (u64, u64), into: &mut Vec<u64>) -> Result<()> {
    into.clear();
    let mut next = first;
    while next < end {
        let wanted = usize::try_from(end - next).unwrap_or(usize::MAX).min(READ_WORDS);
        let done = into.len();
        into.resize(done + wanted, 0);
        let got = machine.frame_words(file, FrameNumber::new(next), into.get_mut(done..).unwrap_or_default())?;
        into.truncate(done + got);
        if got < wanted {
            break;
        }
        next += got as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn kinds_by_flags() {
        let kind = |names: &[&str]| {
            let flags = names.iter().filter_map(|name| PageFlags::from_flag_name(name));
            FrameKind::of(flags.fold(PageFlags::empty(), PageFlags::union))
        };
        assert_eq!(kind(&["anon", "swapbacked", "lru"]), FrameKind::Private);
        assert_eq!(kind(&["anon", "compound_head"]), FrameKind::PrivateInFolio);
        assert_eq!(kind(&["anon", "ksm"]), FrameKind::Merged);
        assert_eq!(kind(&["swapbacked", "lru"]), FrameKind::Shmem);
        assert_eq!(kind(&["lru", "compound_tail"]), FrameKind::FileInFolio);
        assert_eq!(kind(&["zero_page", "reserved"]), FrameKind::Beside);
        assert_eq!(kind(&["huge", "compound_head"]), FrameKind::Beside);
        assert_eq!(kind(&["slab", "anon", "ksm"]), FrameKind::Unknown);
    }

    proptest! {
        #[test]
        fn the_same_as_a_map(added in proptest::collection::vec((0u64..60, 1u64..40, 0usize..4), 0..30)) {
            let mut owners = FrameOwners::default();
            let mut map = BTreeMap::<u64, (u32, BTreeSet<usize>)>::new();
            for &(first, frames, member) in &added {
                let first = first + BLOCK_FRAMES - 30;
                owners.set_kind(FrameNumber::new(first), frames, FrameKind::File);
                prop_assert_eq!(owners.add(FrameNumber::new(first), frames, member), frames);
                for frame in first..first + frames {
                    let entry = map.entry(frame).or_default();
                    entry.0 += 1;
                    entry.1.insert(member);
                }
            }
            let found = (0..2 * BLOCK_FRAMES).filter_map(|frame| {
                let one = owners.blocks.get(&(frame / BLOCK_FRAMES))?.frame((frame % BLOCK_FRAMES) as usize)?;
                Some((frame, one.times, one.owner))
            });
            let found: Vec<_> = found.collect();
            let alone = |set: &BTreeSet<usize>| set.first().copied().filter(|_| set.len() == 1);
            let expected: Vec<_> = map.iter().map(|(&frame, (times, set))| (frame, *times, alone(set))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
