//! The frames of huge mappings: a few words stand for all of their pages, where it is proved that they do.

use super::super::folio::Folio;
use super::super::page::Need;
use super::batch::{Batch, Words};
use super::chunk::UNREAD;
use super::lookup::Chosen;
use crate::kernel::{FrameNumber, PageFlags, PageMapEntry};
use crate::target::{self, Machine};
use std::ops::Range;

/// What the map counts of a huge mapping are.
enum Counts {
    /// The same for all of its pages; [`UNREAD`] where there is none to read.
    Same(u64),
    /// One for each page.
    Each(Vec<u64>),
}

impl Batch {
    /// Reads the flags of the head and of one tail, and as many map counts as it takes.
    pub fn look_up_huge(
        &mut self,
        machine: &dyn Machine,
        need: Need,
        chosen: &Chosen,
    ) -> target::Result<()> {
        for index in 0..self.pieces.len() {
            let words = self.pieces.get(index).map(|piece| &piece.words);
            let Some(Words::Read { at, stride, .. }) = words else {
                continue;
            };
            let (at, stride) = (at.clone(), *stride);
            if stride > 1 {
                self.look_up_piece(machine, need, chosen, index, at, stride)?;
            }
        }
        Ok(())
    }

    fn look_up_piece(
        &mut self,
        machine: &dyn Machine,
        need: Need,
        chosen: &Chosen,
        piece: usize,
        at: Range<usize>,
        stride: u64,
    ) -> target::Result<()> {
        let mut differing = Vec::new();
        for slot in at.clone().filter(|&slot| chosen.contains(slot)) {
            let Some(head) = self.entries.get(slot).and_then(|entry| entry.frame()) else {
                continue;
            };
            let mut flags = [PageFlags::empty(); 2];
            let read = machine.frame_flags(head, &mut flags);
            if need.contains(Need::FLAGS) && read? == flags.len() {
                self.tail_flags.resize(self.entries.len(), UNREAD);
                set(&mut self.flags, slot, flags[0].bits());
                set(&mut self.tail_flags, slot, flags[1].bits());
            }
            if need.contains(Need::CGROUPS) {
                let mut inode = [0];
                if machine.frame_cgroups(head, &mut inode)? > 0 {
                    set(&mut self.cgroups, slot, inode[0]);
                }
            }
            if need.contains(Need::ORDER) {
                let folio = Folio::find(machine, head, flags[0])?;
                let order = folio.map_or(UNREAD, |folio| folio.order.into());
                set(&mut self.orders, slot, order);
            }
            if need.contains(Need::COUNTS) {
                match counts(machine, head, flags[0], stride)? {
                    Counts::Same(count) => set(&mut self.counts, slot, count),
                    Counts::Each(counts) => differing.push((slot, counts)),
                }
            }
        }
        if !differing.is_empty() {
            self.expand(piece, at, stride, &differing);
        }
        Ok(())
    }

    /// Makes a word for each page of a piece in which one for each huge mapping does not do.
    fn expand(
        &mut self,
        piece: usize,
        at: Range<usize>,
        stride: u64,
        differing: &[(usize, Vec<u64>)],
    ) {
        let first = self.entries.len();
        let mut differing = differing.iter().peekable();
        for slot in at {
            let entry = self.entries.get(slot).copied().unwrap_or_default();
            let step = u64::from(entry.frame().is_some());
            let each = (0..stride).map(|page| PageMapEntry::new(entry.raw() + page * step));
            self.entries.extend(each);
            let end = self.entries.len();
            // What was not read has no words at all.
            let (flags, tail_flags) = (self.flags.get(slot).copied(), self.tail_flags.get(slot));
            if let Some(head) = flags {
                let tail = tail_flags.copied().unwrap_or(UNREAD);
                self.flags.push(head);
                self.flags.resize(end, tail);
            }
            for words in [&mut self.orders, &mut self.cgroups] {
                if let Some(&word) = words.get(slot) {
                    words.resize(end, word);
                }
            }
            match differing.next_if(|(differs, _)| *differs == slot) {
                Some((_, counts)) => self.counts.extend(counts),
                None => {
                    let count = self.counts.get(slot).copied().unwrap_or(UNREAD);
                    self.counts.resize(end, count);
                }
            }
        }
        let at = first..self.entries.len();
        let marked = self.mark_huge(at.len());
        if let Some(piece) = self.pieces.get_mut(piece)
            && let Words::Read { marks, .. } = &piece.words
        {
            piece.words = Words::Read {
                marks: marks.is_some().then_some(marked),
                at,
                stride: 1,
            };
        }
    }
}

fn set(words: &mut [u64], slot: usize, word: u64) {
    if let Some(place) = words.get_mut(slot) {
        *place = word;
    }
}

/// The map counts of the `pages` frames from `head` on. An anon-exclusive head (KPF_OWNER_2) proves that the folio has this one mapping;
/// otherwise each page may have its own count, as after a forked child has copied one of them.
fn counts(
    machine: &dyn Machine,
    head: FrameNumber,
    flags: PageFlags,
    pages: u64,
) -> target::Result<Counts> {
    let pages = match flags.contains(PageFlags::ANON | PageFlags::OWNER_2) {
        true => 1,
        false => pages,
    };
    let mut counts = vec![UNREAD; pages as usize];
    let read = machine.frame_counts(head, &mut counts)?;
    let first = counts.first().copied().unwrap_or(UNREAD);
    if counts.iter().take(read).all(|&count| count == first) && read == counts.len() {
        return Ok(Counts::Same(first));
    }
    if read == 0 {
        return Ok(Counts::Same(UNREAD));
    }
    Ok(Counts::Each(counts))
}
