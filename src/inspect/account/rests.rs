//! The unmapped rests of large anonymous folios that are mapped in part. When a process frees half of a huge page, its
//! Rss falls, but the memory stays in use until the other half is freed too, or until the kernel splits the folio when
//! memory is short (`deferred_split_scan` in mm/huge_memory.c).
//!
//! Since Linux 6.12 the kernel shows the sizes of such folios on the machine. Folios begin at multiples of their size:
//! only there are flags read. On older kernels they are read at the ends of runs of mapped frames, since in such a folio
//! a mapped frame is next to an unmapped one.

use super::super::Result;
use super::super::folio::Folio;
use super::family::{read_words, stretches};
use crate::budget::Budget;
use crate::kernel::{FrameNumber, PageFlags, WordFile, joined};
use crate::process::Machine;
use crate::report::{Fact, Reason};
use std::collections::BTreeMap;
use std::ops::Range;

/// The runs of frames after which they are searched.
const TOGETHER: usize = 1 << 16;

/// The large anonymous folios of one region or member that are mapped in part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FolioRest {
    /// The index of the region of one process, or of the member of a family.
    pub owner: usize,
    /// The number of folios.
    pub folios: u64,
    /// The bytes of the folios.
    pub of: u64,
    /// The bytes of the folios that no process maps.
    pub bytes: u64,
}

/// A search for such folios among the mapped frames of anonymous memory.
#[derive(Default)]
pub(super) struct RestSearch {
    /// The frames that were added since the last search, as ranges.
    runs: Vec<(u64, u64)>,
    /// The folios that were found, by their first frames.
    found: BTreeMap<u64, FoundRest>,
    /// Why the folios are unknown, if so.
    unknown: Option<Reason>,
    /// The sizes of such folios on the machine, in frames; `None` if the kernel does not show them.
    sizes: Option<Vec<u64>>,
}

struct FoundRest {
    owner: usize,
    frames: u64,
    unmapped: u64,
}

impl RestSearch {
    /// Returns a search for processes of a machine.
    pub fn of(machine: &Machine) -> Self {
        let shift = machine.page_size().shift();
        let sizes = machine.partly_mapped_sizes();
        let sizes = sizes.map(|sizes| sizes.iter().map(|bytes| bytes >> shift).collect::<Vec<_>>());
        let has_none = sizes.as_ref().is_some_and(Vec::is_empty);
        let unknown = if has_none { None } else { why_unknown(machine).err() };
        RestSearch { unknown, sizes, ..RestSearch::default() }
    }

    /// Returns whether frames are to be added.
    pub fn needs_frames(&self) -> bool {
        self.unknown.is_none() && !self.sizes.as_ref().is_some_and(Vec::is_empty)
    }

    /// Adds mapped frames of anonymous memory.
    pub fn add(&mut self, first: FrameNumber, frames: u64) {
        if !self.needs_frames() {
            return;
        }
        let (first, end) = (first.get(), first.get().saturating_add(frames));
        match self.runs.last_mut() {
            Some((_, last)) if *last == first => *last = end,
            _ => self.runs.push((first, end)),
        }
    }

    /// Returns whether the added runs are to be searched.
    pub fn is_full(&self) -> bool {
        self.runs.len() >= TOGETHER
    }

    /// Searches the frames that were added for folios that are mapped in part. They are of the region or member
    /// `owner`.
    pub fn search(&mut self, owner: usize, machine: &Machine, budget: &mut Budget) -> Result<()> {
        let runs = std::mem::take(&mut self.runs);
        let runs = joined(runs.into_iter().map(|(first, end)| first..end).collect());
        if let Some(sizes) = self.sizes.clone() {
            return sizes.iter().try_for_each(|&size| self.search_of_size(size, &runs, (owner, machine), budget));
        }
        // At the start of a run, its first frame decides; at its end, the frame after it too.
        let mut edges = Vec::with_capacity(2 * runs.len());
        for run in &runs {
            edges.push((run.start, run.start, run.start + 1));
            edges.push((run.end - 1, run.end, run.end + 1));
        }
        let wanted: Vec<(u64, u64)> = edges.iter().map(|&(frame, _, end)| (frame, end)).collect();
        let (mut rest, mut words, mut seen) = (edges.as_slice(), Vec::new(), 0);
        for stretch in stretches(&wanted, machine) {
            budget.go_on()?;
            read_words(machine, WordFile::FrameFlags, stretch, &mut words)?;
            let inside = rest.partition_point(|&(frame, ..)| frame < stretch.1);
            let (here, more) = rest.split_at(inside);
            rest = more;
            let flags = |frame: u64| {
                let word = words.get(usize::try_from(frame.checked_sub(stretch.0)?).ok()?)?;
                Some(PageFlags::from_bits_retain(*word))
            };
            for &(frame, tail, _) in here {
                let is_cut = flags(tail).is_some_and(|flags| flags.contains(PageFlags::COMPOUND_TAIL));
                if frame >= seen
                    && is_cut
                    && let Some(flags) = flags(frame)
                    && let Some(folio) = Folio::find(machine, FrameNumber::new(frame), flags)?
                {
                    seen = folio.head.get() + folio.frames();
                    self.look_at(folio, owner, machine)?;
                }
            }
        }
        Ok(())
    }

    /// Searches runs of frames for folios of `size` frames.
    fn search_of_size(
        &mut self,
        size: u64,
        runs: &[Range<u64>],
        (owner, machine): (usize, &Machine),
        budget: &mut Budget,
    ) -> Result<()> {
        // The number of the runs' frames in each place of a folio.
        let mut places: Vec<(u64, u64)> = Vec::new();
        for run in runs {
            let mut start = run.start;
            while start < run.end {
                let head = start / size * size;
                let end = run.end.min(head.saturating_add(size));
                match places.last_mut() {
                    Some((last, frames)) if *last == head => *frames += end - start,
                    _ => places.push((head, end - start)),
                }
                start = end;
            }
        }
        for (head, _) in places.into_iter().filter(|&(_, frames)| frames < size) {
            budget.go_on()?;
            let head = FrameNumber::new(head);
            let flags = Folio::flags_of(machine, head)?.filter(|flags| flags.contains(PageFlags::COMPOUND_HEAD));
            if let Some(flags) = flags
                && let Some(folio) = Folio::find(machine, head, flags)?
            {
                self.look_at(folio, owner, machine)?;
            }
        }
        Ok(())
    }

    /// Adds a folio if a part of it has no mappings.
    fn look_at(&mut self, folio: Folio, owner: usize, machine: &Machine) -> Result<()> {
        let head = folio.head.get();
        let is_anonymous = Folio::flags_of(machine, folio.head)?.is_some_and(|flags| {
            flags.contains(PageFlags::ANON) && !flags.intersects(PageFlags::HUGE | PageFlags::KSM)
        });
        if !is_anonymous || self.found.contains_key(&head) {
            return Ok(());
        }
        let mut counts = Vec::new();
        read_words(machine, WordFile::FrameCounts, (head, head + folio.frames()), &mut counts)?;
        let unmapped = counts.iter().filter(|&&count| count == 0).count() as u64;
        // If all of it is unmapped, it was freed since.
        if unmapped > 0 && unmapped < folio.frames() {
            self.found.insert(head, FoundRest { owner, frames: folio.frames(), unmapped });
        }
        Ok(())
    }

    /// Returns the folios of each region or member, the largest rest first.
    pub fn rests(&self, machine: &Machine) -> Fact<Vec<FolioRest>> {
        if let Some(reason) = &self.unknown {
            return Err(reason.clone());
        }
        let mut owners: BTreeMap<usize, FolioRest> = BTreeMap::new();
        let size = machine.page_size().bytes();
        for found in self.found.values() {
            let owner = found.owner;
            let rest = owners.entry(owner).or_insert(FolioRest { owner, folios: 0, of: 0, bytes: 0 });
            rest.folios += 1;
            rest.of += found.frames * size;
            rest.bytes += found.unmapped * size;
        }
        let mut rests: Vec<FolioRest> = owners.into_values().collect();
        rests.sort_by_cached_key(|rest| std::cmp::Reverse(rest.bytes));
        Ok(rests)
    }
}

/// Checks that the words of frames show which pages of a folio are mapped.
fn why_unknown(machine: &Machine) -> Fact<()> {
    if machine.is_captured() {
        return Err(Reason::NotApplicable("a capture does not have the words of unmapped frames"));
    }
    for file in [WordFile::FrameFlags, WordFile::FrameCounts] {
        machine.frame_words(file, FrameNumber::new(1), &mut [0])?;
    }
    if machine.has_exact_map_counts() != Some(true) {
        return Err(Reason::NotOnThisKernel("map counts of large folios may be averages".into()));
    }
    Ok(())
}
