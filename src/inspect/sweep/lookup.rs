//! What is asked about the frames of a batch, looked up by their numbers, sorted, for all pieces at once.

use super::super::filter::Question;
use super::super::folio::Folio;
use super::super::page::Need;
use super::super::view::View;
use super::batch::{Batch, Words};
use super::chunk::UNREAD;
use crate::kernel::{FrameNumber, PageFlags};
use crate::target::{self, Machine};

/// Of which entries of a batch the frames are looked up.
pub(super) enum Chosen {
    All,
    /// Those that a filter keeps, by index of entry.
    Some(Vec<bool>),
}

impl Chosen {
    pub fn contains(&self, index: usize) -> bool {
        match self {
            Chosen::All => true,
            // What was added since stands for an entry that was chosen.
            Chosen::Some(chosen) => chosen.get(index).copied().unwrap_or(true),
        }
    }
}

impl Batch {
    /// First what the filter needs; the rest only for the pages that it keeps.
    pub fn look_up(&mut self, view: &View<'_>, question: Question<'_>) -> target::Result<()> {
        let first = question.first(view);
        self.look_up_words(view, first & Need::WORDS, &Chosen::All)?;
        let rest = question.need.difference(first) & Need::WORDS;
        if rest.is_empty() {
            return Ok(());
        }
        let chosen = self.kept(view, question, first);
        self.look_up_words(view, rest, &chosen)
    }

    /// The entries of pages that the filter keeps, for all that was read so far.
    fn kept(&self, view: &View<'_>, question: Question<'_>, need: Need) -> Chosen {
        let Some(filter) = question.filter else {
            return Chosen::All;
        };
        let mut chosen = vec![false; self.entries.len()];
        for piece in &self.pieces {
            let Words::Read { at, stride, .. } = &piece.words else {
                continue;
            };
            let chunk = self.chunk(piece, view, need);
            let start = view.page().index(piece.range.start());
            for page in chunk.pages() {
                if !filter.matches(&page, chunk.region) {
                    continue;
                }
                let first = view.page().index(page.address) - start;
                let end = (first + page.pages).div_ceil(*stride) as usize;
                let first = at.start + (first / stride) as usize;
                let kept = chosen.get_mut(first..at.start + end).unwrap_or_default();
                kept.fill(true);
            }
        }
        Chosen::Some(chosen)
    }

    fn look_up_words(
        &mut self,
        view: &View<'_>,
        need: Need,
        chosen: &Chosen,
    ) -> target::Result<()> {
        if need.is_empty() {
            return Ok(());
        }
        let machine = &*view.target().machine;
        self.frames.clear();
        for piece in &self.pieces {
            if let Words::Read { at, stride: 1, .. } = &piece.words {
                let entries = self.entries.get(at.clone()).unwrap_or_default();
                self.frames.gather(entries, at.start, chosen);
            }
        }
        self.frames.sort();
        let entries = self.entries.len();
        if need.contains(Need::FLAGS) {
            self.frames.read(
                entries,
                &mut self.flags,
                PageFlags::empty(),
                |first, into| machine.frame_flags(first, into),
                |flags| flags.bits(),
            )?;
        }
        if need.contains(Need::COUNTS) {
            self.frames.read(
                entries,
                &mut self.counts,
                0,
                |first, into| machine.frame_counts(first, into),
                |count| count,
            )?;
        }
        if need.contains(Need::CGROUPS) {
            self.frames.read(
                entries,
                &mut self.cgroups,
                0,
                |first, into| machine.frame_cgroups(first, into),
                |inode| inode,
            )?;
        }
        if need.contains(Need::ORDER) {
            self.orders(machine)?;
        }
        self.look_up_huge(machine, need, chosen)
    }

    /// The orders of the folios of all frames whose flags have just been read. Most follow from these; at the edges of what is mapped a
    /// few words more are read.
    fn orders(&mut self, machine: &dyn Machine) -> target::Result<()> {
        self.orders.clear();
        self.orders.resize(self.entries.len(), UNREAD);
        let mut last: Option<Folio> = None;
        for run in self.frames.runs() {
            let slots = run.slots();
            let words = self.flags.get(slots.clone()).unwrap_or_default();
            let orders = self.orders.get_mut(slots).unwrap_or_default();
            let flags = |index: usize| {
                let word = words.get(index).filter(|&&word| word != UNREAD)?;
                Some(PageFlags::from_bits_retain(*word))
            };
            let first = FrameNumber::new(run.frame);
            Folio::each(
                machine,
                first,
                words.len(),
                &flags,
                &mut last,
                &mut |at, folio| {
                    let orders = orders.get_mut(at).unwrap_or_default();
                    orders.fill(folio.order.into());
                },
            )?;
        }
        Ok(())
    }
}
