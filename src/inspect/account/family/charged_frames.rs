//! The frames that are charged to some memory cgroups. The cgroup of each frame is read, and flags and map counts of
//! these frames only.

use super::owners::stretches;
use crate::budget::Budget;
use crate::inspect::Result;
use crate::inspect::ordered_pool::{Pool, TaskSize, Work};
use crate::kernel::{FrameNumber, FrameRange, PageFlags, WordFile};
use crate::process::{self, Machine};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The frames whose cgroups one read covers: 64 KiB. Folios are aligned, so that none with a cgroup extends over two
/// reads that are aligned too.
const READ_FRAMES: u64 = 8192;

/// Neighbouring charged frames with the same words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChargedRun {
    pub first: u64,
    pub frames: u64,
    pub flags: PageFlags,
    pub map_count: u64,
}

/// A search for charged frames. Dropping it stops the worker threads.
pub(super) struct ChargedFrames {
    pool: Pool<ChargeReader>,
    range: FrameRange,
    /// The first frame that was not planned yet.
    next: u64,
    read: u64,
}

impl ChargedFrames {
    /// Begins a search for the frames of `range` that are charged to the cgroups with these inode numbers.
    pub fn of(machine: &Arc<Machine>, range: FrameRange, groups: BTreeSet<u64>, budget: Budget) -> Self {
        let reader = ChargeReader { machine: Arc::clone(machine), groups };
        let pool = Pool::new(Arc::new(reader), budget);
        ChargedFrames { pool, range, next: range.start().get(), read: 0 }
    }

    pub fn set_budget(&mut self, budget: Budget) {
        self.pool.set_budget(budget);
    }

    /// Returns the charged frames of the next read, in order; `None` after the last one.
    pub fn next(&mut self) -> Result<Option<&[ChargedRun]>> {
        let (next, end) = (&mut self.next, self.range.end().get());
        let Some(batch) = self.pool.next(|batch| Ok(batch.plan(next, end)))? else {
            return Ok(None);
        };
        self.read += batch.cgroups.len() as u64;
        Ok(Some(&batch.runs))
    }

    /// Returns the number of frames whose cgroups were read, and of all.
    pub fn progress(&self) -> (u64, u64) {
        (self.read, self.range.frames())
    }
}

/// Reads batches, on any thread.
struct ChargeReader {
    machine: Arc<Machine>,
    groups: BTreeSet<u64>,
}

/// Buffers for the words of some frames.
#[derive(Default)]
struct FrameWords {
    flags: Vec<u64>,
    counts: Vec<u64>,
}

impl Work for ChargeReader {
    type Task = ChargedBatch;
    type Buffers = FrameWords;

    fn work(&self, batch: &mut ChargedBatch, words: &mut FrameWords, _: &mut Budget) -> Result<()> {
        Ok(batch.read(&self.machine, &self.groups, words)?)
    }
}

/// Frames that are read together, and those of them that are charged.
#[derive(Default)]
struct ChargedBatch {
    first: u64,
    frames: usize,
    cgroups: Vec<u64>,
    runs: Vec<ChargedRun>,
}

/// Frames that are charged to the groups by their own words, and frames behind them without a cgroup: the rest of a
/// large folio, maybe.
struct Charged {
    first: u64,
    end: u64,
    rest: u64,
}

impl ChargedBatch {
    /// Takes the next frames of `next..end`.
    fn plan(&mut self, next: &mut u64, end: u64) -> TaskSize {
        let aligned = (*next / READ_FRAMES + 1).saturating_mul(READ_FRAMES);
        let frames = aligned.min(end).saturating_sub(*next);
        (self.first, self.frames) = (*next, frames as usize);
        *next += frames;
        match frames {
            0 => TaskSize::Nothing,
            READ_FRAMES => TaskSize::Full,
            _ => TaskSize::Small,
        }
    }

    fn read(&mut self, machine: &Machine, groups: &BTreeSet<u64>, words: &mut FrameWords) -> process::Result<()> {
        self.runs.clear();
        self.cgroups.clear();
        self.cgroups.resize(self.frames, 0);
        let known = machine.frame_words(WordFile::FrameCgroups, FrameNumber::new(self.first), &mut self.cgroups)?;
        self.cgroups.truncate(known);
        let charged = self.charged(groups);
        // With the first frame of the rest, which shows whether that belongs to a folio.
        let wanted: Vec<_> = charged.iter().map(|one| (one.first, one.rest.min(one.end + 1))).collect();
        let mut left = charged.as_slice();
        for stretch in stretches(&wanted, machine) {
            words.read(machine, stretch)?;
            let inside = left.partition_point(|one| one.end <= stretch.1);
            let (parts, later) = left.split_at(inside);
            left = later;
            for one in parts {
                self.add_runs(words, stretch.0, one.first, one.end);
            }
            // One after the other, as the buffers are used again.
            for one in parts {
                let is_tail = words.flags_of(stretch.0, one.end).contains(PageFlags::COMPOUND_TAIL);
                if one.end < one.rest && is_tail {
                    self.add_tails(machine, one)?;
                }
            }
        }
        self.runs.sort_unstable_by_key(|run| run.first);
        Ok(())
    }

    /// Returns the parts that are charged to the groups.
    fn charged(&self, groups: &BTreeSet<u64>) -> Vec<Charged> {
        let mut charged: Vec<Charged> = Vec::new();
        let mut first = self.first;
        for alike in self.cgroups.chunk_by(|one, other| one == other) {
            let end = first + alike.len() as u64;
            let group = alike.first().copied().unwrap_or_default();
            match charged.last_mut() {
                Some(last) if last.rest == first && group == 0 => last.rest = end,
                Some(last) if last.end == first && groups.contains(&group) => (last.end, last.rest) = (end, end),
                _ if groups.contains(&group) => charged.push(Charged { first, end, rest: end }),
                _ => {}
            }
            first = end;
        }
        charged
    }

    /// Adds the frames `first..end`, whose words were read from `start` on.
    fn add_runs(&mut self, words: &FrameWords, start: u64, first: u64, end: u64) {
        for frame in first..end {
            let (flags, map_count) = (words.flags_of(start, frame), words.count_of(start, frame));
            match self.runs.last_mut() {
                Some(run) if (run.flags, run.map_count) == (flags, map_count) && run.first + run.frames == frame => {
                    run.frames += 1;
                }
                _ => self.runs.push(ChargedRun { first: frame, frames: 1, flags, map_count }),
            }
        }
    }

    /// Adds the tails of a folio, which show no cgroup before Linux 6.4 (`page_cgroup_ino` in mm/memcontrol.c).
    fn add_tails(&mut self, machine: &Machine, after: &Charged) -> process::Result<()> {
        let mut words = FrameWords::default();
        words.read(machine, (after.end, after.rest))?;
        let is_tail = |frame: &u64| words.flags_of(after.end, *frame).contains(PageFlags::COMPOUND_TAIL);
        let tails = (after.end..after.rest).take_while(is_tail).count() as u64;
        self.add_runs(&words, after.end, after.end, after.end + tails);
        Ok(())
    }
}

impl FrameWords {
    fn read(&mut self, machine: &Machine, (first, end): (u64, u64)) -> process::Result<()> {
        let frames = usize::try_from(end - first).unwrap_or(usize::MAX);
        for (file, words) in [(WordFile::FrameFlags, &mut self.flags), (WordFile::FrameCounts, &mut self.counts)] {
            words.clear();
            words.resize(frames, 0);
            machine.frame_words(file, FrameNumber::new(first), words)?;
        }
        Ok(())
    }

    fn flags_of(&self, start: u64, frame: u64) -> PageFlags {
        PageFlags::from_bits_retain(word(&self.flags, start, frame))
    }

    fn count_of(&self, start: u64, frame: u64) -> u64 {
        word(&self.counts, start, frame)
    }
}

/// Returns the word of a frame among those from `start` on.
fn word(words: &[u64], start: u64, frame: u64) -> u64 {
    words.get((frame - start) as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::World;
    use proptest::prelude::*;
    use std::sync::atomic::Ordering;

    const HERE: u64 = 77;
    const BELOW: u64 = 78;
    const TAIL: PageFlags = PageFlags::COMPOUND_TAIL;

    /// The charged frames of the first `frames`, one by one, and how many flags were read.
    fn found(world: World, frames: u64) -> (Vec<(u64, u64, u64)>, u64) {
        let (world, target) = world.target();
        let range = FrameRange::new(FrameNumber::new(0), FrameNumber::new(frames)).expect("frames");
        let groups = BTreeSet::from([HERE, BELOW]);
        let mut search = ChargedFrames::of(&target.machine, range, groups, Budget::unlimited());
        let mut all = Vec::new();
        while let Some(runs) = search.next().expect("words") {
            let each = |run: &ChargedRun| {
                let &ChargedRun { first, frames, flags, map_count } = run;
                (first..first + frames).map(move |frame| (frame, flags.bits(), map_count))
            };
            all.extend(runs.iter().flat_map(each));
        }
        assert_eq!(search.progress(), (frames, frames));
        (all, world.flags_read.load(Ordering::Relaxed))
    }

    fn world(charged: impl IntoIterator<Item = (u64, u64)>) -> World {
        let mut world = World::new([]);
        world.refused.clear();
        world.charged.extend(charged);
        world
    }

    #[test]
    fn only_words_of_charged_frames_are_read() {
        let others = (0..100_000).map(|frame| (frame, 5));
        let charged = (500..600).chain(9000..9010).map(|frame| (frame, HERE));
        let (all, read) = found(world(others.chain(charged)), 100_000);
        assert_eq!(all.len(), 110);
        assert!(read <= 112, "{read}");
    }

    /// Before Linux 6.4 tails of a folio have no cgroup.
    #[test]
    fn tails_are_charged_as_their_head() {
        let mut world = world([(512, HERE), (1024, 5), (1536, BELOW), (2048, HERE)]);
        for (head, frames) in [(512, 512), (1024, 512), (1536, 512)] {
            world.flags.extend((head + 1..head + frames).map(|frame| (frame, TAIL.bits())));
        }
        let (all, _) = found(world, 4096);
        let frames: Vec<u64> = all.iter().map(|(frame, ..)| *frame).collect();
        let expected: Vec<u64> = (512..1024).chain(1536..2049).collect();
        assert_eq!(frames, expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_same_as_frame_by_frame(
            parts in proptest::collection::vec((0u64..60, prop::sample::select(vec![0, 5, HERE, BELOW]), any::<bool>()), 0..60),
            start in READ_FRAMES - 1800..READ_FRAMES,
        ) {
            let (mut world, mut frame) = (world([]), start);
            for (frames, group, is_tail) in parts {
                for _ in 0..frames {
                    world.charged.insert(frame, group);
                    world.flags.insert(frame, if is_tail { TAIL.bits() } else { frame / 3 });
                    world.counts.insert(frame, frame / 7);
                    frame += 1;
                }
            }
            let end = (frame + 10).max(1);
            let word = |words: &std::collections::HashMap<u64, u64>, frame| words.get(&frame).copied().unwrap_or(0);
            let (mut expected, mut is_charged) = (Vec::new(), false);
            for frame in 0..end {
                let (group, flags) = (word(&world.charged, frame), word(&world.flags, frame));
                // Nothing is the rest of a folio before the read.
                is_charged &= frame % READ_FRAMES > 0;
                is_charged = match group {
                    0 => is_charged && flags & TAIL.bits() != 0,
                    group => [HERE, BELOW].contains(&group),
                };
                if is_charged {
                    expected.push((frame, flags, word(&world.counts, frame)));
                }
            }
            prop_assert_eq!(found(world, end).0, expected);
        }
    }
}
