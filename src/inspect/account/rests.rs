//! The rest of large anonymous folios of which only a part is mapped. When a process gives back half of a huge page, its
//! Rss falls, and the memory stays in use: until the other half goes too, or the kernel splits the folio because memory
//! is short (`deferred_split_scan` in mm/huge_memory.c).
//!
//! Beside some mapped frame of such a folio is one of the same folio that is not mapped. So flags are read only where
//! runs of mapped frames begin and end.

use super::super::Result;
use super::super::folio::Folio;
use super::family::{read_words, stretches};
use crate::budget::Budget;
use crate::kernel::{FrameNumber, PageFlags, WordFile, joined};
use crate::process::Machine;
use crate::report::{Fact, Reason};
use std::collections::BTreeMap;

/// Runs of frames after which they are looked at.
const TOGETHER: usize = 1 << 16;

/// Large anonymous folios that are mapped in part, and first found at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FolioRest {
    /// The index of the region of one process, or of the member of a family.
    pub owner: usize,
    /// How many folios.
    pub folios: u64,
    /// All their bytes.
    pub of: u64,
    /// Of these, bytes that nobody maps.
    pub bytes: u64,
}

/// Finds them among the frames of anonymous memory that are mapped.
#[derive(Default)]
pub(super) struct RestSearch {
    /// The frames that were added since the last search.
    runs: Vec<(u64, u64)>,
    /// The folios found, by their first frames.
    found: BTreeMap<u64, FoundRest>,
    /// Why they are unknown.
    unknown: Option<Reason>,
    /// The kernel counts none on this machine.
    has_none: bool,
}

struct FoundRest {
    owner: usize,
    frames: u64,
    unmapped: u64,
}

impl RestSearch {
    /// Of processes of a machine.
    pub fn of(machine: &Machine) -> Self {
        // Without this, memory in scattered frames costs a read for each.
        let has_none = machine.partly_mapped_folios() == Some(0);
        let unknown = if has_none { None } else { why_unknown(machine).err() };
        RestSearch { unknown, has_none, ..RestSearch::default() }
    }

    /// Adds mapped frames of anonymous memory.
    pub fn add(&mut self, first: FrameNumber, frames: u64) {
        if self.has_none || self.unknown.is_some() {
            return;
        }
        let (first, end) = (first.get(), first.get().saturating_add(frames));
        match self.runs.last_mut() {
            Some((_, last)) if *last == first => *last = end,
            _ => self.runs.push((first, end)),
        }
    }

    /// Whether it is time to search.
    pub fn is_full(&self) -> bool {
        self.runs.len() >= TOGETHER
    }

    /// Looks at the folios of the frames that were added, which are of this region or member.
    pub fn search(&mut self, owner: usize, machine: &Machine, budget: &mut Budget) -> Result<()> {
        let runs = std::mem::take(&mut self.runs);
        let runs = joined(runs.into_iter().map(|(first, end)| first..end).collect());
        // Where a run begins, its first frame tells; where it ends, also the frame after it.
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

    /// Adds a folio, if some of it is mapped nowhere.
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
        // All of it is unmapped if it was freed meanwhile.
        if unmapped > 0 && unmapped < folio.frames() {
            self.found.insert(head, FoundRest { owner, frames: folio.frames(), unmapped });
        }
        Ok(())
    }

    /// What was found, the largest first.
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

/// Whether the words of frames show which pages of a folio are mapped.
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
