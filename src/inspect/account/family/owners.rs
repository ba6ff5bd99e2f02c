//! For each frame that a process of a family maps: the number of mappings, the only owner, and the kind. It takes a few
//! bytes for each frame, in blocks that are allocated for mapped frames.

use crate::budget::OutOfBudget;
use crate::inspect::Result;
use crate::inspect::heap::HeapUse;
use crate::inspect::hidden_words::{UNREAD, hide};
use crate::kernel::{FrameNumber, PageFlags, WordFile};
use crate::own::memory::Growth;
use crate::process::Machine;
use crate::report::FrameClass;
use std::collections::BTreeMap;
use std::ops::Range;

/// The frames of one block: 64 MiB of memory with pages of 4 KiB.
const BLOCK_FRAMES: u64 = 1 << 14;
const BLOCK: usize = BLOCK_FRAMES as usize;
/// The words of one read: 64 KiB.
const READ_WORDS: usize = 8192;
/// The most frames between two ranges that one read covers: it takes less time than a second system call.
const GAP_FRAMES: u64 = 64;

/// The owner of a frame that several processes map.
const SEVERAL: u16 = u16::MAX;
/// The most members that can be distinguished.
pub(super) const MOST_MEMBERS: usize = SEVERAL as usize - 1;

/// The kind of a frame, as its flags show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// The flags were not read yet.
    Unread,
    /// Anonymous memory, and private copies of file pages.
    Private,
    /// Private memory in a large folio, whose map count may be an average.
    PrivateInFolio,
    Merged,
    Shmem,
    ShmemInFolio,
    File,
    FileInFolio,
    /// Memory of the kernel that is mapped into processes.
    Kernel,
    /// Memory of a driver that is mapped into processes.
    Driver,
    Secret,
    /// A frame that Rss does not count: a zero page, a page of the hugetlb pool, a reserved frame of a driver.
    Beside,
    /// The flags cannot be read.
    Unknown,
}

/// The use of a frame in the heaps of the members that map it. If these differ, the greatest value applies: memory is
/// in use if one member uses it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum FrameHeap {
    /// The frame is in no heap, or heaps were not asked for.
    None,
    /// The frame has no chunk in use.
    Free,
    /// The frame may belong to a heap that was not walked to its end.
    Unclear,
    InUse,
}

impl From<HeapUse> for FrameHeap {
    fn from(page: HeapUse) -> Self {
        match page {
            HeapUse::None => FrameHeap::None,
            HeapUse::Free | HeapUse::Top => FrameHeap::Free,
            HeapUse::Unknown => FrameHeap::Unclear,
            HeapUse::Live | HeapUse::Both => FrameHeap::InUse,
        }
    }
}

/// What is known of a frame that a member maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OwnedFrame {
    /// The number of mappings by all members.
    pub times: u32,
    /// The index of the only member that maps the frame; `None` if there are several.
    pub owner: Option<usize>,
    pub kind: FrameKind,
    pub heap: FrameHeap,
    /// The first group that the frame was assigned to.
    pub group: Option<u32>,
}

/// Frames that were read together. Some of them are mapped and counted in Rss.
pub(super) struct MappedFrames {
    /// All frames of the read.
    pub frames: Range<u64>,
    /// The mapped frames in order, each with its map count if that was asked for and is known.
    pub mapped: Vec<(u64, OwnedFrame, Option<u64>)>,
}

/// The frames of a family.
#[derive(Default)]
pub(super) struct FrameOwners {
    blocks: Vec<FrameBlock>,
    /// The index of each block, by the number of the block.
    by_number: BTreeMap<u64, usize>,
    /// A cache of the numbers and indices of blocks, at the number modulo the length: consecutive frames are seldom in
    /// one block.
    found: Vec<(u64, usize)>,
    growth: Growth,
}

/// The blocks of the cache: those of 256 GiB with pages of 4 KiB.
const FOUND: usize = 1 << 12;

/// The runs whose frames are loaded together.
const TOUCHED: usize = 64;

struct FrameBlock {
    frames: Box<[BlockFrame]>,
    /// The group of each frame plus one, if frames are grouped; 0 for none.
    groups: Option<Box<[u32]>>,
}

/// A frame in a block. The fields are together, so that a frame costs one access to memory.
#[derive(Clone, Copy)]
struct BlockFrame {
    times: u32,
    /// The index of the owner plus one; 0 for none.
    owner: u16,
    kind: FrameKind,
    heap: FrameHeap,
}

impl Default for FrameBlock {
    fn default() -> Self {
        let unseen = BlockFrame { times: 0, owner: 0, kind: FrameKind::Unread, heap: FrameHeap::None };
        FrameBlock { frames: vec![unseen; BLOCK].into(), groups: None }
    }
}

/// Splits frames at the ends of blocks. Returns the number of each block, and the frames in it.
fn by_block(first: u64, frames: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
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
    /// Returns frames of a block, which is allocated if it is new.
    fn frames(&mut self, number: u64, within: Range<usize>) -> Result<&mut [BlockFrame], OutOfBudget> {
        Ok(self.block(number)?.frames.get_mut(within).unwrap_or_default())
    }

    /// Returns a block, which is allocated if it is new. Frame numbers of a capture may lie in as many blocks as its
    /// author likes.
    fn block(&mut self, number: u64) -> Result<&mut FrameBlock, OutOfBudget> {
        self.found.resize(FOUND, (u64::MAX, 0));
        let mut index = 0;
        if let Some(found) = self.found.get_mut(number as usize % FOUND) {
            if found.0 != number {
                let next = self.blocks.len();
                *found = (number, *self.by_number.entry(number).or_insert(next));
            }
            index = found.1;
        }
        if index == self.blocks.len() {
            self.growth.take(size_of::<[BlockFrame; BLOCK]>() as u64)?;
            self.blocks.push(FrameBlock::default());
        }
        self.blocks.get_mut(index).ok_or(OutOfBudget::Bytes)
    }

    /// Assigns frames without a group to one.
    pub fn set_group(&mut self, first: FrameNumber, frames: u64, group: u32) -> Result<(), OutOfBudget> {
        for (number, within) in by_block(first.get(), frames) {
            if self.block(number)?.groups.is_none() {
                self.growth.take(size_of::<[u32; BLOCK]>() as u64)?;
            }
            let groups = self.block(number)?.groups.get_or_insert_with(|| vec![0; BLOCK].into());
            for of_frame in groups.get_mut(within).unwrap_or_default() {
                if *of_frame == 0 {
                    *of_frame = group + 1;
                }
            }
        }
        Ok(())
    }

    /// Adds mappings by a member, in any order, and finds the kinds of new frames. `false_flags` are the flags that
    /// this kernel sets wrongly. Returns the number of mappings that Rss counts.
    pub fn add(
        &mut self,
        runs: &[(FrameNumber, u64)],
        member: usize,
        false_flags: PageFlags,
        machine: &Machine,
    ) -> Result<u64> {
        let (mut counted, unread) = self.add_mappings(runs, member)?;
        let (mut words, mut rest) = (Vec::new(), unread.as_slice());
        for stretch in stretches(&unread, machine) {
            read(machine, WordFile::FrameFlags, stretch, &mut words)?;
            let inside = rest.partition_point(|(_, end)| *end <= stretch.1);
            let (parts, more) = rest.split_at(inside);
            rest = more;
            for &(first, end) in parts {
                counted += self.set_kinds(first..end, &words, stretch.0, false_flags)?;
            }
        }
        Ok(counted)
    }

    /// Adds mappings by a member. Returns the number of those that Rss counts, and the frames whose flags were not read
    /// yet, in order. Such a frame is returned as often as it was added.
    fn add_mappings(
        &mut self,
        runs: &[(FrameNumber, u64)],
        member: usize,
    ) -> Result<(u64, Vec<(u64, u64)>), OutOfBudget> {
        let own = u16::try_from(member + 1).unwrap_or(SEVERAL);
        let mut counted = 0;
        let mut unread: Vec<(u64, u64)> = Vec::new();
        for together in runs.chunks(TOUCHED) {
            self.touch(together);
            let parts = together.iter().flat_map(|&(first, frames)| by_block(first.get(), frames));
            for (number, within) in parts {
                let base = number * BLOCK_FRAMES + within.start as u64;
                let frames = self.frames(number, within)?;
                let mut others = 0;
                for frame in frames.iter_mut() {
                    frame.add(own);
                    others += usize::from(matches!(frame.kind, FrameKind::Unread | FrameKind::Beside));
                }
                counted += (frames.len() - others) as u64;
                // Most frames were added before by another process.
                let new = if others == 0 { &[] } else { &*frames };
                for (_, number) in new.iter().zip(base..).filter(|(frame, _)| frame.kind == FrameKind::Unread) {
                    match unread.last_mut() {
                        Some((_, end)) if *end == number => *end += 1,
                        _ => unread.push((number, number + 1)),
                    }
                }
            }
        }
        unread.sort_unstable();
        Ok((counted, unread))
    }

    /// Loads the first frame of each run. The runs of one process lie apart, and the processor would wait for memory at
    /// each of them: so it waits for many at the same time.
    fn touch(&self, runs: &[(FrameNumber, u64)]) {
        let times = |&(first, _): &(FrameNumber, u64)| {
            let (number, at) = (first.get() / BLOCK_FRAMES, first.get() % BLOCK_FRAMES);
            let found = self.found.get(number as usize % FOUND).filter(|found| found.0 == number)?;
            Some(self.blocks.get(found.1)?.frames.get(at as usize)?.times)
        };
        std::hint::black_box(runs.iter().filter_map(times).fold(0, u32::wrapping_add));
    }

    /// Sets the kinds of frames by their flags. Returns how many of them Rss counts.
    fn set_kinds(
        &mut self,
        range: Range<u64>,
        words: &[u64],
        start: u64,
        false_flags: PageFlags,
    ) -> Result<u64, OutOfBudget> {
        let mut counted = 0;
        for (number, within) in by_block(range.start, range.end - range.start) {
            let base = number * BLOCK_FRAMES + within.start as u64;
            for (frame, number) in self.frames(number, within)?.iter_mut().zip(base..) {
                let word = words.get((number - start) as usize).filter(|&&word| word != UNREAD);
                frame.kind = word
                    .map_or(FrameKind::Unknown, |&word| FrameKind::of(PageFlags::from_bits_retain(word) - false_flags));
                counted += u64::from(frame.kind != FrameKind::Beside);
            }
        }
        Ok(counted)
    }

    /// Sets the kind of frames, whatever their flags.
    pub fn set_kind(&mut self, first: FrameNumber, frames: u64, kind: FrameKind) -> Result<(), OutOfBudget> {
        for (number, within) in by_block(first.get(), frames) {
            self.frames(number, within)?.iter_mut().for_each(|frame| frame.kind = kind);
        }
        Ok(())
    }

    /// Adds the use of frames in the heap of a member.
    pub fn set_heap(&mut self, first: FrameNumber, frames: u64, heap: FrameHeap) -> Result<(), OutOfBudget> {
        for (number, within) in by_block(first.get(), frames) {
            self.frames(number, within)?.iter_mut().for_each(|frame| frame.heap = frame.heap.max(heap));
        }
        Ok(())
    }

    /// Returns what is known of each of the frames; `None` for a frame that no member maps.
    pub fn of(&self, first: u64, frames: u64) -> impl Iterator<Item = Option<OwnedFrame>> {
        by_block(first, frames).flat_map(|(number, within)| {
            let block = self.by_number.get(&number).and_then(|&index| self.blocks.get(index));
            within.map(move |index| block?.frame(index))
        })
    }

    /// Returns the mapped frames that Rss counts, in order. With `counts`, their map counts are read.
    pub fn mapped_frames(&self, machine: &Machine, counts: bool) -> impl Iterator<Item = Result<MappedFrames>> {
        let is_exact = machine.has_exact_map_counts() == Some(true);
        let of_block = |(number, &index): (&u64, &usize)| {
            let block = self.blocks.get(index)?;
            let base = number * BLOCK_FRAMES;
            let mapped = |&frame: &u64| FrameBlock::frame(block, (frame - base) as usize).is_some();
            let mapped = (base..base + BLOCK_FRAMES).filter(mapped).map(|frame| (frame, frame + 1));
            let together = stretches(&mapped.collect::<Vec<_>>(), machine);
            Some(together.into_iter().map(move |stretch| (base, block, stretch)))
        };
        self.by_number.iter().filter_map(of_block).flatten().map(move |(base, block, stretch)| {
            let mut words = Vec::new();
            if counts {
                read(machine, WordFile::FrameCounts, stretch, &mut words)?;
            }
            let owned = |frame| {
                let owned = block.frame((frame - base) as usize)?;
                let count = words.get((frame - stretch.0) as usize).copied().filter(|&count| count != UNREAD);
                Some((frame, owned, count.filter(|_| is_exact || !owned.kind.is_in_folio())))
            };
            let frames = stretch.0..stretch.1;
            Ok(MappedFrames { mapped: frames.clone().filter_map(owned).collect(), frames })
        })
    }
}

impl FrameBlock {
    /// Returns a frame if it is mapped and Rss counts it.
    fn frame(&self, index: usize) -> Option<OwnedFrame> {
        let &BlockFrame { times, owner, kind, heap } = self.frames.get(index)?;
        let owner = (owner != SEVERAL).then(|| usize::from(owner).saturating_sub(1));
        let group = self.groups.as_ref().and_then(|groups| groups.get(index)?.checked_sub(1));
        (times > 0 && kind != FrameKind::Beside).then_some(OwnedFrame { times, owner, kind, heap, group })
    }
}

impl BlockFrame {
    /// Adds a mapping by the member `own`, its index plus one.
    fn add(&mut self, own: u16) {
        self.times = self.times.saturating_add(1);
        self.owner = match self.owner {
            0 => own,
            one if one == own => own,
            _ => SEVERAL,
        };
    }
}

impl FrameKind {
    /// Returns the kind of a mapped frame with these flags.
    fn of(flags: PageFlags) -> Self {
        let by_folio = |one, in_folio| if flags.is_in_large_folio() { in_folio } else { one };
        // Rss counts a frame with an error by its other flags.
        match FrameClass::of(flags - PageFlags::HWPOISON) {
            // No process maps such a frame: it was reused since.
            FrameClass::Slab | FrameClass::Free | FrameClass::PageTables | FrameClass::Offline => FrameKind::Unknown,
            FrameClass::Zero | FrameClass::Hugetlb | FrameClass::Reserved => FrameKind::Beside,
            FrameClass::Merged => FrameKind::Merged,
            FrameClass::Anonymous => by_folio(FrameKind::Private, FrameKind::PrivateInFolio),
            FrameClass::SharedMemory => by_folio(FrameKind::Shmem, FrameKind::ShmemInFolio),
            FrameClass::PageCache | FrameClass::Driver | FrameClass::NoMark | FrameClass::Poisoned => {
                by_folio(FrameKind::File, FrameKind::FileInFolio)
            }
        }
    }

    /// Returns whether the map count may be an average, on kernels with averages.
    pub fn is_in_folio(self) -> bool {
        matches!(self, FrameKind::PrivateInFolio | FrameKind::ShmemInFolio | FrameKind::FileInFolio)
    }
}

/// Joins ranges with a small gap between them, which one read then covers.
pub(in crate::inspect::account) fn stretches(ranges: &[(u64, u64)], machine: &Machine) -> Vec<(u64, u64)> {
    let gap = if machine.is_captured() { 0 } else { GAP_FRAMES };
    let mut all: Vec<(u64, u64)> = Vec::new();
    for &(first, end) in ranges {
        match all.last_mut() {
            Some(last) if first <= last.1.saturating_add(gap) => last.1 = last.1.max(end),
            _ => all.push((first, end)),
        }
    }
    all
}

/// Reads the words of the frames `first..end`. It reads fewer if memory ends before.
pub(in crate::inspect::account) fn read(
    machine: &Machine,
    file: WordFile,
    (first, end): (u64, u64),
    into: &mut Vec<u64>,
) -> Result<()> {
    into.clear();
    let mut next = first;
    while next < end {
        let wanted = usize::try_from(end - next).unwrap_or(usize::MAX).min(READ_WORDS);
        let done = into.len();
        into.resize(done + wanted, 0);
        let got = machine.frame_words(file, FrameNumber::new(next), into.get_mut(done..).unwrap_or_default())?;
        into.truncate(done + got);
        hide(machine, file, FrameNumber::new(next), into.get_mut(done..).unwrap_or_default(), &[]);
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
        assert_eq!(kind(&["buddy"]), FrameKind::Unknown);
        assert_eq!(kind(&["hwpoison", "anon", "lru"]), FrameKind::Private);
    }

    #[test]
    fn frames_that_were_not_read_are_listed_as_often_as_they_are_mapped() {
        let mut owners = FrameOwners::default();
        let run = |first, frames| (FrameNumber::new(first), frames);
        let runs = [run(100, 3), run(BLOCK_FRAMES - 1, 2), run(50, 1), run(101, 1)];
        let unread = vec![(50, 51), (100, 103), (101, 102), (BLOCK_FRAMES - 1, BLOCK_FRAMES + 1)];
        assert_eq!(owners.add_mappings(&runs, 0), Ok((0, unread)));
        // The words say that the first two are no memory that Rss counts.
        let beside = PageFlags::RESERVED.bits();
        assert_eq!(owners.set_kinds(100..103, &[0, beside, beside, 0], 99, PageFlags::empty()), Ok(1));
        assert_eq!(owners.add_mappings(&[run(100, 3)], 1), Ok((1, Vec::new())));
        // Words that cannot be read are of memory nevertheless.
        assert_eq!(owners.set_kinds(50..51, &[], 50, PageFlags::empty()), Ok(1));
    }

    proptest! {
        #[test]
        fn the_same_as_a_map(added in proptest::collection::vec((0u64..60, 1u64..40, 0usize..4), 0..30)) {
            let mut owners = FrameOwners::default();
            let mut map = BTreeMap::<u64, (u32, BTreeSet<usize>)>::new();
            for &(first, frames, member) in &added {
                let first = first + BLOCK_FRAMES - 30;
                owners.set_kind(FrameNumber::new(first), frames, FrameKind::File).expect("memory");
                prop_assert_eq!(owners.add_mappings(&[(FrameNumber::new(first), frames)], member), Ok((frames, Vec::new())));
                for frame in first..first + frames {
                    let entry = map.entry(frame).or_default();
                    entry.0 += 1;
                    entry.1.insert(member);
                }
            }
            let found = (0..2 * BLOCK_FRAMES).filter_map(|frame| {
                let index = *owners.by_number.get(&(frame / BLOCK_FRAMES))?;
                let one = owners.blocks.get(index)?.frame((frame % BLOCK_FRAMES) as usize)?;
                Some((frame, one.times, one.owner))
            });
            let found: Vec<_> = found.collect();
            let alone = |set: &BTreeSet<usize>| set.first().copied().filter(|_| set.len() == 1);
            let expected: Vec<_> = map.iter().map(|(&frame, (times, set))| (frame, *times, alone(set))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
