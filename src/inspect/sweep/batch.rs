//! The words of some steps of a plan, read together: entries straight, then what is asked about their frames.

use super::super::filter::Question;
use super::super::page::Need;
use super::super::rules::Rules as _;
use super::super::view::View;
use super::chunk::{Chunk, Content, Entries, Mark};
use super::plan::{Action, READ_PAGES, Step};
use super::{behind, frames};
use crate::kernel::{AddressRange, PageMapEntry, PageSize};
use crate::report::Stopped;
use crate::target::{self, BehindRun, Categories, Populated};
use std::ops::{ControlFlow, Range};

/// Steps of one batch: enough that small regions share their reads of frames.
const STEPS: usize = 512;

/// Buffers and what they hold; used again from batch to batch.
#[derive(Default)]
pub(super) struct Batch {
    steps: Vec<Step>,
    /// Pages to be read, for the measure.
    pages: u64,
    pub pieces: Vec<Piece>,
    pub entries: Vec<PageMapEntry>,
    pub flags: Vec<u64>,
    /// The flags of first tails, for huge mappings; no longer than the last of these.
    pub tail_flags: Vec<u64>,
    pub counts: Vec<u64>,
    pub orders: Vec<u64>,
    pub cgroups: Vec<u64>,
    pub marks: Vec<Mark>,
    pub frames: frames::Gather,
}

/// A stretch of one region and where its words are.
pub(super) struct Piece {
    pub region: Option<usize>,
    pub range: AddressRange,
    pub words: Words,
    /// What is behind its untouched pages, when asked for.
    pub behind: Vec<BehindRun>,
}

pub(super) enum Words {
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
        self.orders.clear();
        self.cgroups.clear();
        self.marks.clear();
    }

    /// Whether it has enough to do.
    pub fn is_full(&self) -> bool {
        self.steps.len() >= STEPS || self.pages >= READ_PAGES
    }

    /// Adds a step, to be read by [`Batch::fill`].
    pub fn add(&mut self, step: Step, page: PageSize, need: Need) {
        let pages = step.range.pages(page);
        self.pages = self.pages.saturating_add(match step.action {
            Action::Read => pages,
            // Few words, unless their map counts differ.
            Action::ReadHuge => pages / 4,
            // Nothing to read; but the visitor has each to look at.
            Action::Skip if need.contains(Need::EACH) => pages / 64,
            Action::Skip => 0,
        });
        self.steps.push(step);
    }

    /// Reads what the steps ask for.
    ///
    /// Fails when the target is gone, or when the kernel refuses what `need` asks for.
    pub fn fill(&mut self, view: &View<'_>, question: Question<'_>) -> target::Result<()> {
        let need = question.need;
        let steps = std::mem::take(&mut self.steps);
        let mut left = &steps[..];
        while let Some(step) = left.first() {
            let together = match step.action {
                Action::Read => left.windows(2).take_while(|pair| goes_on(pair)).count() + 1,
                _ => 1,
            };
            let (now, later) = left.split_at(together);
            match step.action {
                Action::Skip if step.region.is_none() => self.hole(view, step.range)?,
                Action::Skip => self.piece(step.region, step.range, Words::Nothing),
                Action::Read => self.read_small(view, now, question)?,
                Action::ReadHuge => self.read_huge(view, step, question.need)?,
            }
            left = later;
        }
        self.steps = steps;
        if need.contains(Need::BEHIND) {
            for piece in &mut self.pieces {
                piece.behind = behind::runs(view, piece, &self.entries);
            }
        }
        self.look_up(view, question)
    }

    /// Has the visitor see what was read, in address order.
    pub fn deliver(
        &self,
        view: &View<'_>,
        need: Need,
        visit: &mut dyn FnMut(&Chunk<'_>) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        self.pieces
            .iter()
            .try_for_each(|piece| visit(&self.chunk(piece, view, need)))
    }

    /// A piece with the words that have been read.
    pub fn chunk<'a>(&'a self, piece: &'a Piece, view: &'a View<'_>, need: Need) -> Chunk<'a> {
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
                orders: self.orders.get(at.clone()).unwrap_or_default(),
                cgroups: self.cgroups.get(at.clone()).unwrap_or_default(),
                marks: marks
                    .as_ref()
                    .and_then(|marks| self.marks.get(marks.clone())),
                stride: *stride,
            }),
        };
        let zones = || view.zones().ok();
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
            zones: need.contains(Need::ZONES).then(zones).flatten(),
            exact_counts: need.contains(Need::COUNTS) && view.has_exact_counts(),
            behind: &piece.behind,
        }
    }

    fn piece(&mut self, region: Option<usize>, range: AddressRange, words: Words) {
        self.pieces.push(Piece {
            region,
            range,
            words,
            behind: Vec::new(),
        });
    }

    /// What lies in no region, as far as the page map goes and behind its end.
    fn hole(&mut self, view: &View<'_>, range: AddressRange) -> target::Result<()> {
        let (inside, outside) = view.covered(range)?;
        if let Some(inside) = inside {
            self.piece(None, inside, Words::Nothing);
        }
        if let Some(outside) = outside {
            self.piece(None, outside, Words::Outside);
        }
        Ok(())
    }

    /// Every entry of steps that go on where the one before ends: in one read, as there may be very many small regions.
    fn read_small(
        &mut self,
        view: &View<'_>,
        steps: &[Step],
        question: Question<'_>,
    ) -> target::Result<()> {
        let page = view.page();
        let Some(start) = steps.first().map(|step| step.range.start()) else {
            return Ok(());
        };
        let mut first = self.entries.len();
        let pages: u64 = steps.iter().map(|step| step.range.pages(page)).sum();
        self.entries
            .resize(first + pages as usize, PageMapEntry::default());
        let into = self.entries.get_mut(first..).unwrap_or_default();
        let read = view.target().process.entries(page.index(start), into)?;
        self.entries.truncate(first + read);
        for step in steps {
            let pages = step.range.pages(page) as usize;
            let at = first..self.entries.len().min(first + pages);
            let end = page.bytes().saturating_mul(at.len() as u64);
            let (inside, outside) = match step.range.start().checked_add(end) {
                Some(end) if end < step.range.end() => (
                    AddressRange::new(step.range.start(), end),
                    AddressRange::new(end, step.range.end()),
                ),
                _ => (Some(step.range), None),
            };
            first = at.end;
            if let Some(inside) = inside {
                let marks = self.mark(view, step.region, inside, at.clone(), question)?;
                let stride = 1;
                self.piece(step.region, inside, Words::Read { at, marks, stride });
            }
            if let Some(outside) = outside {
                self.piece(step.region, outside, Words::Outside);
            }
        }
        Ok(())
    }

    /// One entry for each huge mapping.
    fn read_huge(&mut self, view: &View<'_>, step: &Step, need: Need) -> target::Result<()> {
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
        let words = Words::Read {
            at: first..self.entries.len(),
            // Nobody is told what nobody asked for.
            marks: need
                .intersects(Need::HUGE | Need::KINDS)
                .then(|| self.mark_huge(self.entries.len() - first)),
            stride: bytes >> page.shift(),
        };
        self.piece(step.region, step.range, words);
        Ok(())
    }

    /// Marks a piece of so many entries as huge mappings.
    pub fn mark_huge(&mut self, entries: usize) -> Range<usize> {
        self.marks.push(Mark {
            first: 0,
            end: entries,
            categories: Categories::HUGE,
        });
        self.marks.len() - 1..self.marks.len()
    }

    /// Asks for the categories of the entries `at`, if anything in them leaves a question that only they answer.
    fn mark(
        &mut self,
        view: &View<'_>,
        region: Option<usize>,
        range: AddressRange,
        at: Range<usize>,
        question: Question<'_>,
    ) -> target::Result<Option<Range<usize>>> {
        let target = view.target();
        let mut wanted = Categories::empty();
        if question.need.contains(Need::HUGE) {
            wanted |= Categories::HUGE;
        }
        // The flags of a frame say whether it is the zero page; without them the scan does.
        if question.scans_for_zero(question.first(view)) {
            wanted |= Categories::ZERO;
        }
        let viewed = region.and_then(|index| view.regions().get(index));
        let hugetlb =
            viewed.is_some_and(|viewed| viewed.backing == super::super::classify::Backing::Hugetlb);
        // What is not present of the pool shows in a scan alone.
        if hugetlb {
            wanted |= Categories::HUGE | Categories::SWAPPED;
        }
        // Without marks in the entries, only the scan tells the pages of files that one PMD maps from copies of them.
        if wanted.contains(Categories::ZERO) && !view.huge_files_are_marked() {
            wanted |= Categories::HUGE;
        }
        if wanted.is_empty() || !target.process.categories().contains(wanted) {
            return Ok(None);
        }
        let entries = self.entries.get(at).unwrap_or_default();
        let may_be_zero = |entry: &PageMapEntry| {
            entry.is_present() && !entry.is_file_or_shared() && !entry.is_exclusive()
        };
        let page = view.page();
        let huge_pages = target
            .machine
            .huge_page_bytes()
            .map_or(1, |bytes| (bytes >> page.shift()).max(1));
        let of_region = viewed.map_or(range, |viewed| viewed.region.range);
        let of_region = page.index(of_region.start())..page.index(of_region.end());
        let asks = wanted.contains(Categories::ZERO) && entries.iter().any(may_be_zero)
            || wanted.contains(Categories::HUGE)
                && (hugetlb
                    || may_hold_huge(entries, page.index(range.start()), huge_pages, of_region));
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
            // It costs no more to hear of huge mappings too, and parts the huge page of zeros from the small one.
            target
                .process
                .populated(range, wanted | Categories::HUGE, &mut visit)?;
        }
        Ok(Some(from..self.marks.len()))
    }
}

/// Whether the second of two steps is read in the same way as the first, and begins where that ends.
fn goes_on(pair: &[Step]) -> bool {
    matches!(pair, [step, next]
        if next.action == step.action && next.range.start() == step.range.end())
}

/// Whether `entries` hold what may be a huge mapping, or a part of one: present at both ends of what there is of an aligned
/// stretch of `pages`, and with frames as far apart as the ends, unless these are hidden. `index` is the page index of the first;
/// a huge mapping lies within its region whole.
fn may_hold_huge(entries: &[PageMapEntry], index: u64, pages: u64, region: Range<u64>) -> bool {
    let mut rest = entries;
    let mut index = index;
    while !rest.is_empty() {
        let start = index - index % pages;
        let end = start.saturating_add(pages);
        let (stretch, beyond) = rest.split_at(rest.len().min((end - index) as usize));
        if region.start <= start
            && end <= region.end
            && let (Some(first), Some(last)) = (stretch.first(), stretch.last())
        {
            let whole = stretch.len() as u64 - 1;
            let apart = match (first.frame(), last.frame()) {
                (Some(first), Some(last)) => last.get().wrapping_sub(first.get()),
                _ => whole,
            };
            if first.is_present() && last.is_present() && apart == whole {
                return true;
            }
        }
        index = end;
        rest = beyond;
    }
    false
}
