//! The words of some steps of a plan, read together: entries straight, then what is asked about their frames.

use super::super::page::Need;
use super::super::view::View;
use super::chunk::{Chunk, Content, Entries, Mark, UNREAD};
use super::frames;
use super::plan::{Action, READ_PAGES, Step};
use crate::kernel::{AddressRange, FrameNumber, PageFlags, PageMapEntry};
use crate::target::{self, Categories, Populated};
use std::ops::{ControlFlow, Range};

/// Steps of one batch: enough that small regions share their reads of frames.
const STEPS: usize = 512;

/// Buffers and what they hold; used again from batch to batch.
#[derive(Default)]
pub(super) struct Batch {
    steps: Vec<Step>,
    /// Pages to be read, for the measure.
    pages: u64,
    pieces: Vec<Piece>,
    entries: Vec<PageMapEntry>,
    flags: Vec<u64>,
    /// The flags of first tails, for huge mappings; no longer than the last of these.
    tail_flags: Vec<u64>,
    counts: Vec<u64>,
    marks: Vec<Mark>,
    frames: frames::Gather,
}

/// A stretch of one region and where its words are.
struct Piece {
    region: Option<usize>,
    range: AddressRange,
    words: Words,
}

enum Words {
    Nothing,
    Outside,
    Read {
        /// Indices into the batch's entries, flags and counts.
        at: Range<usize>,
        /// Indices into the batch's marks; `None` when categories were not asked for.
        marks: Option<Range<usize>>,
        stride: u64,
    },
}

impl Batch {
    /// Empties it for the next steps.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.pages = 0;
        self.pieces.clear();
        self.entries.clear();
        self.flags.clear();
        self.tail_flags.clear();
        self.counts.clear();
        self.marks.clear();
    }

    /// Adds a step to be read by [`Batch::fill`]; says whether there is room for more.
    pub fn add(&mut self, step: Step, view: &View<'_>) -> bool {
        self.pages += match step.action {
            Action::Skip => 0,
            Action::Read => step.range.pages(view.page()),
            // Few words, unless their map counts differ.
            Action::ReadHuge => step.range.pages(view.page()) / 4,
        };
        self.steps.push(step);
        self.steps.len() < STEPS && self.pages < READ_PAGES
    }

    /// Reads what the steps ask for.
    ///
    /// Fails when the target is gone, or when the kernel refuses what `need` asks for.
    pub fn fill(&mut self, view: &View<'_>, need: Need) -> target::Result<()> {
        let steps = std::mem::take(&mut self.steps);
        for step in &steps {
            self.read(view, step, need)?;
        }
        self.steps = steps;
        self.join(view, need)
    }

    /// Its chunks in address order.
    pub fn chunks<'a>(&'a self, view: &'a View<'_>, need: Need) -> impl Iterator<Item = Chunk<'a>> {
        self.pieces.iter().map(move |piece| {
            let region = piece.region.and_then(|index| view.regions().get(index));
            let content = match &piece.words {
                Words::Nothing => Content::Nothing,
                Words::Outside => Content::Outside,
                Words::Read { at, marks, stride } => Content::Read(Entries {
                    entries: self.entries.get(at.clone()).unwrap_or_default(),
                    flags: self.flags.get(at.clone()).unwrap_or_default(),
                    tail_flags: match stride {
                        1 => &[],
                        _ => self.tail_flags.get(at.clone()).unwrap_or_default(),
                    },
                    counts: self.counts.get(at.clone()).unwrap_or_default(),
                    marks: marks
                        .as_ref()
                        .and_then(|marks| self.marks.get(marks.clone())),
                    stride: *stride,
                }),
            };
            Chunk {
                region,
                region_index: piece.region,
                start: piece.range.start(),
                pages: piece.range.pages(view.page()),
                content,
                place: region.map(|viewed| view.place(viewed)),
                rules: view,
                size: view.page(),
                need,
            }
        })
    }

    fn read(&mut self, view: &View<'_>, step: &Step, need: Need) -> target::Result<()> {
        match step.action {
            Action::Skip => {
                self.piece(step.region, step.range, Words::Nothing);
                Ok(())
            }
            Action::Read => self.read_small(view, step, need),
            Action::ReadHuge => self.read_huge(view, step),
        }
    }

    fn piece(&mut self, region: Option<usize>, range: AddressRange, words: Words) {
        self.pieces.push(Piece {
            region,
            range,
            words,
        });
    }

    fn read_small(&mut self, view: &View<'_>, step: &Step, need: Need) -> target::Result<()> {
        let page = view.page();
        let first = self.entries.len();
        let pages = step.range.pages(page) as usize;
        self.entries.resize(first + pages, PageMapEntry::default());
        let index = page.index(step.range.start());
        let into = self.entries.get_mut(first..).unwrap_or_default();
        let read = view.target().process.entries(index, into)?;
        self.entries.truncate(first + read);
        let end = page.bytes().saturating_mul(read as u64);
        let (inside, outside) = match step.range.start().checked_add(end) {
            Some(end) if end < step.range.end() => (
                AddressRange::new(step.range.start(), end),
                AddressRange::new(end, step.range.end()),
            ),
            _ => (Some(step.range), None),
        };
        if let Some(inside) = inside {
            let marks = self.mark(view, step.region, inside, first, need)?;
            let words = Words::Read {
                at: first..self.entries.len(),
                marks,
                stride: 1,
            };
            self.piece(step.region, inside, words);
        }
        if let Some(outside) = outside {
            self.piece(step.region, outside, Words::Outside);
        }
        Ok(())
    }

    /// One entry for each huge mapping.
    fn read_huge(&mut self, view: &View<'_>, step: &Step) -> target::Result<()> {
        let page = view.page();
        let Some(bytes) = view.target().machine.huge_page_bytes() else {
            return Ok(());
        };
        let first = self.entries.len();
        let mut at = Some(step.range.start());
        while let Some(address) = at.filter(|&address| address < step.range.end()) {
            let mut entry = [PageMapEntry::default()];
            view.target()
                .process
                .entries(page.index(address), &mut entry)?;
            self.entries.extend(entry);
            at = address.checked_add(bytes);
        }
        let mark = self.marks.len();
        self.marks.push(Mark {
            first: 0,
            end: self.entries.len() - first,
            categories: Categories::HUGE,
        });
        let words = Words::Read {
            at: first..self.entries.len(),
            marks: Some(mark..mark + 1),
            stride: bytes >> page.shift(),
        };
        self.piece(step.region, step.range, words);
        Ok(())
    }

    /// Asks for the categories of the entries from `first` on, if anything in them leaves a question that only they answer.
    fn mark(
        &mut self,
        view: &View<'_>,
        region: Option<usize>,
        range: AddressRange,
        first: usize,
        need: Need,
    ) -> target::Result<Option<Range<usize>>> {
        let target = view.target();
        let mut wanted = Categories::empty();
        if need.contains(Need::HUGE) {
            wanted |= Categories::HUGE;
        }
        // The flags of a frame say whether it is the zero page; without them the scan does.
        if need.contains(Need::KINDS) && !need.contains(Need::FLAGS) {
            wanted |= Categories::ZERO;
        }
        if wanted.is_empty() || !target.process.categories().contains(wanted) {
            return Ok(None);
        }
        let entries = self.entries.get(first..).unwrap_or_default();
        let may_be_zero = |entry: &PageMapEntry| {
            entry.is_present() && !entry.is_file_or_shared() && !entry.is_exclusive()
        };
        let page = view.page();
        let huge_pages = target
            .machine
            .huge_page_bytes()
            .map_or(1, |bytes| (bytes >> page.shift()).max(1));
        let hugetlb = region
            .and_then(|index| view.regions().get(index))
            .is_some_and(|viewed| viewed.backing == super::super::classify::Backing::Hugetlb);
        let asks = wanted.contains(Categories::ZERO) && entries.iter().any(may_be_zero)
            || wanted.contains(Categories::HUGE)
                && (hugetlb || may_hold_huge(entries, page.index(range.start()), huge_pages));
        let from = self.marks.len();
        if asks {
            let marks = &mut self.marks;
            let mut visit = |stretch: Populated| {
                if let Some(inside) = stretch.range.intersection(range) {
                    let index = page.index(inside.start()) - page.index(range.start());
                    marks.push(Mark {
                        first: index as usize,
                        end: (index + inside.pages(page)) as usize,
                        categories: stretch.categories,
                    });
                }
                ControlFlow::Continue(())
            };
            target.process.populated(range, wanted, &mut visit)?;
        }
        Ok(Some(from..self.marks.len()))
    }

    /// Finds out about the frames: flags and map counts, sorted by frame, for all pieces at once.
    fn join(&mut self, view: &View<'_>, need: Need) -> target::Result<()> {
        if !need.intersects(Need::FLAGS | Need::COUNTS) {
            return Ok(());
        }
        let machine = &*view.target().machine;
        self.frames.clear();
        for piece in &self.pieces {
            if let Words::Read { at, stride: 1, .. } = &piece.words {
                let entries = self.entries.get(at.clone()).unwrap_or_default();
                self.frames.gather(entries, at.start);
            }
        }
        self.frames.sort();
        if need.contains(Need::FLAGS) {
            self.frames.read(
                self.entries.len(),
                &mut self.flags,
                PageFlags::empty(),
                |first, into| machine.frame_flags(first, into),
                |flags| flags.bits(),
            )?;
        }
        if need.contains(Need::COUNTS) {
            self.frames.read(
                self.entries.len(),
                &mut self.counts,
                0,
                |first, into| machine.frame_counts(first, into),
                |count| count,
            )?;
        }
        self.join_huge(view, need)
    }

    /// The frames of huge mappings: the flags of the head and of one tail stand for all, and a map count only where it is
    /// proved to.
    fn join_huge(&mut self, view: &View<'_>, need: Need) -> target::Result<()> {
        let machine = &*view.target().machine;
        let mut mixed: Vec<(usize, usize)> = Vec::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            let Words::Read { at, stride, .. } = &piece.words else {
                continue;
            };
            if *stride == 1 {
                continue;
            }
            for slot in at.clone() {
                let Some(head) = self.entries.get(slot).and_then(|entry| entry.frame()) else {
                    continue;
                };
                let mut two = [PageFlags::empty(); 2];
                let flags_read = machine.frame_flags(head, &mut two);
                if need.contains(Need::FLAGS) && flags_read? == two.len() {
                    self.tail_flags.resize(self.entries.len(), UNREAD);
                    let words = [&mut self.flags, &mut self.tail_flags];
                    for (words, flags) in words.into_iter().zip(two) {
                        if let Some(word) = words.get_mut(slot) {
                            *word = flags.bits();
                        }
                    }
                }
                if need.contains(Need::COUNTS) {
                    // Anon-exclusive: the whole folio has this one mapping. Otherwise each page may have its own count, as
                    // after a forked child has copied one of them.
                    let alone = PageFlags::ANON | PageFlags::OWNER_2;
                    let pages = if two[0].contains(alone) { 1 } else { *stride };
                    match uniform_count(machine, head, pages)? {
                        Some(count) => {
                            if let Some(word) = self.counts.get_mut(slot) {
                                *word = count;
                            }
                        }
                        None => mixed.push((index, slot)),
                    }
                }
            }
        }
        self.expand(view, need, &mixed)
    }

    /// Makes entries of each page out of the huge mappings whose pages differ.
    fn expand(
        &mut self,
        view: &View<'_>,
        need: Need,
        mixed: &[(usize, usize)],
    ) -> target::Result<()> {
        let page = view.page();
        let machine = &*view.target().machine;
        // From the back, so that what is still to come keeps its place.
        for &(index, slot) in mixed.iter().rev() {
            let Some(piece) = self.pieces.get(index) else {
                continue;
            };
            let Words::Read { at, stride, .. } = &piece.words else {
                continue;
            };
            let (at, stride, region, range) = (at.clone(), *stride, piece.region, piece.range);
            let Some(&head) = self.entries.get(slot) else {
                continue;
            };
            let Some(frame) = head.frame() else { continue };
            let first = self.entries.len();
            let each = (0..stride).map(|into| PageMapEntry::new(head.raw() + into));
            self.entries.extend(each);
            if need.contains(Need::FLAGS) {
                let head_flags = self.flags.get(slot).copied().unwrap_or(UNREAD);
                let tail_flags = self.tail_flags.get(slot).copied().unwrap_or(UNREAD);
                self.flags.push(head_flags);
                self.flags.resize(first + stride as usize, tail_flags);
            }
            self.counts.resize(first + stride as usize, UNREAD);
            let counts = self.counts.get_mut(first..).unwrap_or_default();
            machine.frame_counts(frame, counts)?;
            let mark = self.marks.len();
            self.marks.push(Mark {
                first: 0,
                end: stride as usize,
                categories: Categories::HUGE,
            });
            let all_huge = |at: Range<usize>| {
                let one = Mark {
                    first: 0,
                    end: at.len(),
                    categories: Categories::HUGE,
                };
                (at, one)
            };
            let start_of = |slot: usize| {
                let into = ((slot - at.start) as u64 * stride) << page.shift();
                range.start().checked_add(into).unwrap_or(range.end())
            };
            let mut parts = Vec::new();
            if let Some(before) = AddressRange::new(range.start(), start_of(slot)) {
                parts.push((before, all_huge(at.start..slot), stride));
            }
            if let Some(here) = AddressRange::new(start_of(slot), start_of(slot + 1)) {
                let here_at = first..first + stride as usize;
                parts.push((here, all_huge(here_at), 1));
            }
            if let Some(after) = AddressRange::new(start_of(slot + 1), range.end()) {
                parts.push((after, all_huge(slot + 1..at.end), stride));
            }
            self.marks.truncate(mark);
            let pieces = parts.into_iter().map(|(range, (at, mark), stride)| {
                self.marks.push(mark);
                let last = self.marks.len();
                Piece {
                    region,
                    range,
                    words: Words::Read {
                        at,
                        marks: Some(last - 1..last),
                        stride,
                    },
                }
            });
            let pieces: Vec<Piece> = pieces.collect();
            self.pieces.splice(index..=index, pieces);
        }
        Ok(())
    }
}

/// The map count that all `pages` frames from `head` on have; `None` when they differ.
fn uniform_count(
    machine: &dyn target::Machine,
    head: FrameNumber,
    pages: u64,
) -> target::Result<Option<u64>> {
    let mut counts = vec![0; pages as usize];
    let read = machine.frame_counts(head, &mut counts)?;
    let Some((&first, rest)) = counts.split_first().filter(|_| read > 0) else {
        return Ok(Some(UNREAD));
    };
    Ok(rest.iter().all(|&count| count == first).then_some(first))
}

/// Whether `entries` hold what may be a huge mapping: present at both ends of an aligned stretch of `pages`, and with
/// frames as far apart as the ends, unless these are hidden. `index` is the page index of the first.
fn may_hold_huge(entries: &[PageMapEntry], index: u64, pages: u64) -> bool {
    if pages == 1 {
        return entries.iter().any(|entry| entry.is_present());
    }
    let skip = (pages - index % pages) % pages;
    let aligned = entries.get(skip as usize..).unwrap_or_default();
    aligned
        .chunks_exact(pages as usize)
        .any(|stretch| match (stretch.first(), stretch.last()) {
            (Some(first), Some(last)) => {
                first.is_present()
                    && last.is_present()
                    && match (first.frame(), last.frame()) {
                        (Some(first), Some(last)) => {
                            last.get().wrapping_sub(first.get()) == pages - 1
                        }
                        _ => true,
                    }
            }
            _ => false,
        })
}
