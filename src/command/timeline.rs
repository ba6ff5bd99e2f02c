//! `as timeline` of `watch` and `compare`: what each sample shows of each page or stretch of pages.

use super::map::mark;
use super::snapshot::seconds;
use crate::inspect::{self, AddressNames, AddressSpace, Change, Chunk, PopulatedRow, RegionPart};
use crate::kernel::{AddressRange, PageSize};
use crate::render::Sink;
use crate::render::marks::{CountedPages, PageShare, PictureCell};
use crate::render::units::count;
use crate::report::{EventKind, Mark, Stopped, TimelineCells, TimelineRow, TimelineSample};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::SystemTime;

/// The most rows that the first sample may use.
const FIRST_ROWS: usize = 32;
/// The most rows, those of later memory included.
const MOST_ROWS: usize = 64;

/// The rows so far, and what the current sample has seen.
pub(super) struct TimelineBuilder {
    size: PageSize,
    /// By address.
    rows: Vec<PictureRow>,
    /// Rows that have not been emitted yet, in the order of their numbers.
    new: Vec<TimelineRow>,
    /// The most pages in a row.
    stretch: u64,
    /// Pages that have no row.
    left_out: u64,
    has_said_left_out: bool,
    /// Whether the current sample covers the whole range.
    is_whole: bool,
    /// What a cell shows before it has any page.
    blank: PictureCell,
    /// The processes of the last sample, once there was one.
    processes: Option<BTreeSet<u32>>,
    /// Whether a sample had processes.
    has_drawn: bool,
    /// The processes that came and those that went since the last sample that was emitted.
    came: Vec<u32>,
    went: Vec<u32>,
}

struct PictureRow {
    range: AddressRange,
    number: usize,
    cell: PictureCell,
    has_changed: bool,
}

impl TimelineBuilder {
    pub fn new(size: PageSize) -> Self {
        TimelineBuilder {
            size,
            rows: Vec::new(),
            new: Vec::new(),
            stretch: 1,
            left_out: 0,
            has_said_left_out: false,
            is_whole: false,
            blank: PictureCell::EMPTY,
            processes: None,
            has_drawn: false,
            came: Vec::new(),
            went: Vec::new(),
        }
    }

    /// A timeline of pages that are copied after a fork.
    pub fn of_copies(size: PageSize) -> Self {
        let share = PageShare { pages: 0, of: 0, what: CountedPages::Copied };
        TimelineBuilder {
            // Where both processes have no page, there is nothing that could be copied.
            blank: PictureCell::EMPTY.with(Some(share)),
            ..TimelineBuilder::new(size)
        }
    }

    /// Begins a sample of `ranges`. Memory that is new in them gets rows, as long as there are any left. With `names`,
    /// memory that a variable points to has rows of its own.
    pub fn begin(&mut self, space: &AddressSpace, ranges: &[AddressRange], names: Option<&AddressNames>) {
        self.is_whole = true;
        for row in &mut self.rows {
            (row.cell, row.has_changed) = (self.blank, false);
        }
        let covered: Vec<AddressRange> = self.rows.iter().map(|row| row.range).collect();
        let mut parts = Vec::new();
        for (index, viewed) in space.viewed_regions().iter().enumerate() {
            for asked in viewed.range().within(ranges) {
                let asked = asked.to_pages(self.size);
                let new = asked.outside(&covered);
                let named = new.flat_map(|part| names.map_or_else(|| vec![part], |names| names.parts(part)));
                parts.extend(named.map(|part| (part, index)));
            }
        }
        let is_first = self.rows.is_empty();
        let room = if is_first { FIRST_ROWS } else { (MOST_ROWS - self.rows.len()).div_ceil(2) };
        // Rows by address would show a region of gigabytes in as many rows as a library.
        if is_first
            && parts.len() > room
            && let Some(rows) = inspect::divided(space, &parts, room)
        {
            self.left_out = 0;
            for PopulatedRow { range, parts, pages } in rows {
                let populated = Some(pages << self.size.shift());
                self.add_row(space, range, &parts, populated, names);
            }
            return;
        }
        let together = if is_first { parts.len().div_ceil(room).max(1) } else { 1 };
        let groups: Vec<&[RegionPart]> = parts.chunks(together).collect();
        let groups = groups.get(..room.min(groups.len())).unwrap_or_default();
        self.left_out = parts.iter().map(|(part, _)| part.pages(self.size)).sum();
        let ranges = groups.iter().filter_map(|group| join_ranges(group));
        let ranges: Vec<AddressRange> = ranges.collect();
        if together == 1 {
            self.stretch = stretch(&ranges, self.size, room, self.stretch);
        }
        for (range, group) in ranges.into_iter().zip(groups) {
            self.left_out -= group.iter().map(|(part, _)| part.pages(self.size)).sum::<u64>();
            // Several regions in one group share one row.
            let pages = if together > 1 { 1 << 52 } else { self.stretch };
            for part in pieces(range, pages.saturating_mul(self.size.bytes())) {
                self.add_row(space, part, group, None, names);
            }
        }
        self.rows.sort_by_cached_key(|row| row.range);
    }

    /// Adds a row for what lies in `range` of a group of regions.
    fn add_row(
        &mut self,
        space: &AddressSpace,
        range: AddressRange,
        group: &[RegionPart],
        populated: Option<u64>,
        names: Option<&AddressNames>,
    ) {
        let inside = group.iter().filter_map(|(own, index)| Some((own.intersection(range)?, *index)));
        let most = largest(inside.clone());
        let region = most.and_then(|(_, index)| space.viewed_regions().get(index));
        let symbol = most.zip(names).and_then(|((own, _), names)| names.pointer_to(own.start()));
        let pages = inside.map(|(own, _)| own.pages(self.size)).sum();
        let number = self.rows.len();
        self.rows.push(PictureRow { range, number, cell: self.blank, has_changed: false });
        self.new.push(TimelineRow {
            row: number as u64,
            start: range.start(),
            end: range.end(),
            pages,
            bytes: pages << self.size.shift(),
            populated,
            region: region.map(|viewed| viewed.region.name.clone()),
            after: region.and_then(|viewed| viewed.after.clone()),
            symbol,
            regions: group.len() as u64,
        });
    }

    /// Adds the pages of a chunk to the sample.
    pub fn see(&mut self, chunk: &Chunk<'_>) {
        for page in chunk.pages() {
            if let Some(range) = page.range(self.size) {
                let mark = mark(&page);
                self.rows_in(range).for_each(|row| row.cell.add(mark));
            }
        }
    }

    /// Adds pages that both processes have after a fork, in the same frames or in different ones.
    pub fn see_shared(&mut self, range: AddressRange, is_copied: bool) {
        let size = self.size;
        for row in self.rows_in(range) {
            let pages = row.range.intersection(range).map_or(0, |part| part.pages(size));
            row.cell.mark = row.cell.mark.min(if is_copied { Mark::Copied } else { Mark::Shared });
            row.cell.count(if is_copied { pages } else { 0 }, pages);
        }
    }

    /// Emits new rows and the sample, with the processes that came and went since the one before.
    pub fn emit_of(&mut self, processes: BTreeSet<u32>, sink: &mut dyn Sink) -> Result<(), Stopped> {
        if let Some(before) = &self.processes {
            self.came.extend(processes.difference(before));
            self.went.extend(before.difference(&processes));
        }
        // Until a process comes, there is nothing to draw.
        self.has_drawn |= !processes.is_empty();
        self.processes = Some(processes);
        if self.has_drawn { self.emit(sink) } else { Ok(()) }
    }

    /// Marks the rows that changed since the sample before.
    pub fn change(&mut self, change: &Change) {
        if change.kind == EventKind::Executed {
            // The samples so far show the previous program.
            self.is_whole = false;
        }
        let bytes = change.pages << self.size.shift();
        let start = change.address;
        let pages = start.and_then(|start| AddressRange::of_length(start, bytes));
        if let Some(range) = change.range.or(pages) {
            self.rows_in(range).for_each(|row| row.has_changed = true);
        }
    }

    /// Discards the current sample until the next one begins.
    pub fn end(&mut self) {
        self.is_whole = false;
    }

    /// Emits new rows and the sample.
    pub fn emit(&mut self, sink: &mut dyn Sink) -> Result<(), Stopped> {
        for row in self.new.drain(..) {
            sink.emit(&row)?;
        }
        if !self.is_whole {
            return Ok(());
        }
        let mut rows: Vec<&PictureRow> = self.rows.iter().collect();
        rows.sort_by_cached_key(|row| row.number);
        let mut cells: Vec<TimelineCells> = Vec::new();
        for row in rows {
            let PictureCell { mark, is_mixed: mixed, share, .. } = row.cell;
            let (pages, of) = share.map(|share| (share.pages, share.of)).unzip();
            let one = TimelineCells { cells: 1, mark, mixed, pages, of, changed: row.has_changed };
            match cells.last_mut() {
                Some(last) if (TimelineCells { cells: 1, ..*last }) == one => last.cells += 1,
                _ => cells.push(one),
            }
        }
        let time = seconds(SystemTime::now());
        let (came, went) = (std::mem::take(&mut self.came), std::mem::take(&mut self.went));
        sink.emit(&TimelineSample { time, cells, came, went })?;
        if self.left_out > 0 && self.rows.len() == MOST_ROWS && !self.has_said_left_out {
            self.has_said_left_out = true;
            let message = format!(
                "{} pages that came later are not drawn: a picture has up to {MOST_ROWS} rows",
                count(self.left_out)
            );
            sink.note(message)?;
        }
        Ok(())
    }

    fn rows_in(&mut self, range: AddressRange) -> impl Iterator<Item = &mut PictureRow> {
        let first = self.rows.partition_point(|row| row.range.end() <= range.start());
        self.rows.iter_mut().skip(first).take_while(move |row| row.range.start() < range.end())
    }
}

/// The part with most of a row, the first of equally large ones: what a row shows is mostly its pages.
fn largest(inside: impl Iterator<Item = RegionPart>) -> Option<RegionPart> {
    inside.max_by_key(|(own, _)| (own.len(), Reverse(own.start())))
}

/// The range from the first to the last of neighbours.
fn join_ranges(group: &[RegionPart]) -> Option<AddressRange> {
    let (first, last) = (group.first()?, group.last()?);
    AddressRange::new(first.0.start(), last.0.end())
}

/// How many pages a row must have for all to fit, if each range has a row of its own at least.
fn stretch(ranges: &[AddressRange], size: PageSize, room: usize, least: u64) -> u64 {
    let rows = |stretch: u64| -> u64 {
        let rows = ranges.iter().map(|range| range.pages(size).div_ceil(stretch));
        rows.sum()
    };
    let mut stretch = least;
    while rows(stretch) > room as u64 && stretch < 1 << 52 {
        stretch *= 2;
    }
    stretch
}

/// The range in parts of so many bytes.
fn pieces(range: AddressRange, bytes: u64) -> impl Iterator<Item = AddressRange> {
    let mut start = range.start();
    std::iter::from_fn(move || {
        let end = start.checked_add(bytes).unwrap_or(range.end()).min(range.end());
        let piece = AddressRange::new(start, end);
        start = end;
        piece
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::VirtualAddress;

    fn range(start: u64, pages: u64) -> AddressRange {
        let start = VirtualAddress::new(start);
        AddressRange::new(start, start.checked_add(pages << 12).unwrap()).unwrap()
    }

    #[test]
    fn a_row_has_the_name_of_the_region_with_most_of_its_pages() {
        let of = |parts: &[(u64, usize)]| {
            let mut start = 0x1000;
            let mut next = |pages| {
                let range = range(start, pages);
                start = range.end().get() + 0x10_0000;
                range
            };
            let parts: Vec<RegionPart> = parts.iter().map(|&(pages, index)| (next(pages), index)).collect();
            largest(parts.into_iter()).map(|(_, index)| index)
        };
        assert_eq!(of(&[(1, 4), (16384, 5)]), Some(5));
        assert_eq!(of(&[(33, 4), (2, 5), (33, 6)]), Some(4));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_row_has_as_many_pages_as_it_takes_to_fit() {
        let size = PageSize::from_bytes(4096).unwrap();
        let ranges = [range(0x1000, 8), range(0x10_0000, 1)];
        for (room, pages) in [(9, 1), (8, 2), (5, 2), (3, 4), (2, 8)] {
            assert_eq!(stretch(&ranges, size, room, 1), pages, "{room}");
        }
        assert_eq!(stretch(&ranges, size, 9, 4), 4);
        // However large: that of the last row is not whole.
        let parts: Vec<u64> = pieces(range(0x1000, 10), 4 << 12).map(AddressRange::len).collect();
        assert_eq!(parts, [4 << 12, 4 << 12, 2 << 12]);
    }
}
