//! The populated part of a process's page map, as a capture keeps it.

use crate::budget::Budget;
use crate::kernel::{AddressRange, FrameNumber, PageMapEntry, PageSize, WordFile};
use crate::process::{Error, PopulatedRange, Process, Result};
use crate::source::capture::{Recorder, SharedCapture, WordIndex, WordWriter};
use crate::source::{PageRegion, Source, covered_pages};

/// The number of words in one read: 64 KiB.
const READ: usize = 8192;

/// A run of consecutive frames: the first, and their number.
pub(super) type FirstAndCount = (u64, u64);

/// Reads the words of a run in parts.
pub(super) struct RunReader<'a> {
    source: &'a dyn Source,
    file: WordFile,
    first: u64,
    left: u64,
    words: Vec<u64>,
}

impl<'a> RunReader<'a> {
    pub(super) fn new(source: &'a dyn Source, file: WordFile, (first, left): FirstAndCount) -> Self {
        RunReader { source, file, first, left, words: Vec::new() }
    }

    /// Reads the next part. Returns it with the number of its first word.
    pub(super) fn next(&mut self, budget: &mut Budget) -> Result<Option<(u64, &[u64])>> {
        if self.left == 0 {
            return Ok(None);
        }
        budget.go_on()?;
        let (first, wanted) = (self.first, usize::try_from(self.left).unwrap_or(READ).min(READ));
        self.words.resize(wanted, 0);
        let read = self.source.words(self.file, first, &mut self.words)?;
        self.first += read as u64;
        self.left = if read < wanted { 0 } else { self.left - read as u64 };
        Ok(Some((first, self.words.get(..read).unwrap_or_default())))
    }
}

/// A run of pages in consecutive frames.
struct Present {
    page: u64,
    /// The frame of the first page; 0 if frames are hidden.
    frame: u64,
    count: u64,
}

impl Present {
    /// Returns the frame of one of the pages, or of the page after them.
    fn frame_of(&self, page: u64) -> u64 {
        if self.frame == 0 { 0 } else { self.frame + (page - self.page) }
    }
}

/// Runs of mapped pages that are left out of the capture.
pub(super) struct LeftOutPages {
    page: PageSize,
    /// The runs in order: the first page of each, and the page after its last.
    pub(super) runs: Vec<(u64, u64)>,
}

impl LeftOutPages {
    pub(super) fn new(page: PageSize) -> Self {
        LeftOutPages { page, runs: Vec::new() }
    }

    pub(super) fn add(&mut self, range: Option<AddressRange>) {
        let Some(range) = range else {
            return;
        };
        let first = self.page.index(range.start());
        let end = first + range.pages(self.page);
        match self.runs.last_mut() {
            Some((_, last)) if *last == first => *last = end,
            _ => self.runs.push((first, end)),
        }
    }
}

/// Reads the page map of a process.
pub(super) struct PageReader<'a> {
    process: &'a Process,
    source: &'a dyn Source,
    shared: &'a SharedCapture,
    words: WordWriter,
    stretches: Vec<PageRegion>,
    /// The runs of present pages.
    present: Vec<Present>,
    /// The number of pages whose entries are not empty.
    pub(super) pages: u64,
}

impl<'a> PageReader<'a> {
    pub(super) fn new(process: &'a Process, source: &'a dyn Source, shared: &'a SharedCapture) -> Self {
        let words = WordWriter::new(&format!("{}/pagemap", source.identity().pid));
        PageReader { process, source, shared, words, stretches: Vec::new(), present: Vec::new(), pages: 0 }
    }

    /// Writes the entries of a region: one for each populated page, and one for each gap.
    pub(super) fn region(&mut self, region: AddressRange, budget: &mut Budget) -> Result<()> {
        let page = self.process.page_size();
        let mut at = page.index(region.start());
        for stretch in self.process.populated(region, self.process.categories()) {
            let PopulatedRange { range, categories } = stretch?;
            let (start, end) = (range.start().get(), range.end().get());
            self.stretches.push(PageRegion { start, end, categories: categories.bits() });
            let (first, count) = (page.index(range.start()), range.pages(page));
            self.gap(at, first)?;
            self.entries((first, count), budget)?;
            at = first + count;
        }
        self.gap(at, page.index(region.start()) + region.pages(page))
    }

    /// Writes one entry for a run of empty pages, whose entries are all equal.
    fn gap(&mut self, first: u64, end: u64) -> Result<()> {
        let mut word = [0];
        if first < end && self.source.words(WordFile::PageMap, first, &mut word)? == 1 && word != [0] {
            self.words.repeat(&self.shared.archive, first, end - first, word[0])?;
        }
        Ok(())
    }

    fn entries(&mut self, run: FirstAndCount, budget: &mut Budget) -> Result<()> {
        let mut parts = RunReader::new(self.source, WordFile::PageMap, run);
        while let Some((first, found)) = parts.next(budget)? {
            self.pages += found.len() as u64;
            for (page, &word) in (first..).zip(found) {
                let entry = PageMapEntry::new(word);
                if entry.is_present() {
                    self.add_present(page, entry.frame().map_or(0, FrameNumber::get));
                }
            }
            self.words.add(&self.shared.archive, first, found)?;
        }
        Ok(())
    }

    fn add_present(&mut self, page: u64, frame: u64) {
        match self.present.last_mut() {
            Some(run) if run.page + run.count == page && run.frame_of(page) == frame => run.count += 1,
            _ => self.present.push(Present { page, frame, count: 1 }),
        }
    }

    /// Returns the frames of the present pages.
    pub(super) fn frames(&self) -> impl Iterator<Item = FirstAndCount> {
        self.present.iter().filter(|run| run.frame != 0).map(|run| (run.frame, run.count))
    }

    /// Reads the entries again after the words of their frames. Returns the runs of pages that have another frame now,
    /// or none.
    pub(super) fn find_changed(&self, budget: &mut Budget) -> Result<Vec<(u64, u64)>> {
        let mut changed: Vec<(u64, u64)> = Vec::new();
        let mut entries = vec![0; READ];
        let mut left = self.present.as_slice();
        while let Some(run) = left.first() {
            budget.go_on()?;
            // Runs that are close together are read in one call.
            let near = left.iter().take_while(|other| other.page + other.count <= run.page + READ as u64).count();
            let (now, later) = left.split_at(near.max(1));
            left = later;
            let end = now.last().map_or(0, |run| run.page + run.count);
            let mut at = run.page;
            while at < end {
                let wanted = usize::try_from(end - at).unwrap_or(READ).min(READ);
                let part = entries.get_mut(..wanted).unwrap_or_default();
                let read = self.source.words(WordFile::PageMap, at, part)?;
                part.get_mut(read..).unwrap_or_default().fill(0);
                let next = at + wanted as u64;
                for one in now {
                    for page in one.page.max(at)..(one.page + one.count).min(next) {
                        let entry = PageMapEntry::new(part.get((page - at) as usize).copied().unwrap_or_default());
                        let frame = entry.frame().map_or(0, FrameNumber::get);
                        match changed.last_mut() {
                            _ if entry.is_present() && frame == one.frame_of(page) => {}
                            Some((start, count)) if *start + *count == page => *count += 1,
                            _ => changed.push((page, 1)),
                        }
                    }
                }
                at = next;
            }
        }
        Ok(changed)
    }

    pub(super) fn finish(self, recorder: &Recorder) -> Result<WordIndex> {
        let page = self.process.page_size();
        let source = self.source;
        let end = covered_pages(page, |index| Ok::<_, Error>(source.words(WordFile::PageMap, index, &mut [0])? == 1))?;
        let scannable = if self.process.has_scan() { self.process.categories().bits() } else { 0 };
        recorder.keep_populated(&self.stretches, scannable);
        self.words.finish(&self.shared.archive, end)
    }
}
