//! `map [RANGE] [where FILTER] [by KEY]`: the address space, drawn.

use super::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example, rows};
use crate::eval::{self, Extent, Spans};
use crate::inspect::{AddressSpace, Answer, Evidence, FactReader, Page, Question};
use crate::kernel::{AddressRange, Kind, Name, PageFact, PageFlags, PageSize, Permissions, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, after, clause, filter, one_of, range, word};
use crate::lang::{self, PageField, Spanned, display};
use crate::render::Record;
use crate::render::marks::{self, CountedPages, Legend, PageShare, PictureCell};
use crate::render::svg::Svg;
use crate::render::text::Text;
use crate::render::text::block::region_name;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, MapCells, MapKey, Mark, PagesByReason, Reason, Shape};
use nom::Parser;
use nom::combinator::opt;
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// The most cells of a region.
const MOST_CELLS: u64 = 512;

/// `map [RANGE] [where FILTER] [by KEY]`
#[derive(Debug)]
pub struct Map {
    /// What is drawn; all of the process if absent.
    range: Option<Spanned<lang::Range>>,
    /// Which pages are drawn; all if absent.
    filter: Option<Spanned<lang::FilterExpression<PageField>>>,
    /// Of what cells show how full they are; their most important pages if absent.
    by: Option<MapKey>,
}

impl Command for Map {
    const RECORDS: &'static [Shape] = &[MapRegion::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("map").whole(),
        group: Group::Look,
        summary: "draw the address space",
        text: "\
Draws a block of cells for each region. The heading gives the bytes of a cell. An empty region has only a heading.

  where FILTER  only pages that match
  by resident   the share of each cell that is in memory
  by sharing    of the resident pages, the share that is mapped elsewhere too
  by lazy_free  of the resident pages, the share that was freed with MADV_FREE
  > ./FILE.svg  a picture for a browser or a document, as wide as the setting `width`

The letter of a cell is the most important kind of page in it, in the order of the legend. A lower-case letter marks \
a cell with other pages too.

In a shell, quote the command: pmdb PID 'map > ./FILE.svg'. A redirection of the shell itself writes text.

With `by`, a cell is a digit: 0 for nothing, 1 to 9 for the share in tenths, # for all.",
        examples: &[
            example("map", "draw the whole process"),
            example("map demo_buffer", "draw one page in each cell"),
            example("map demo_buffer > ./demo.svg", "write the picture to a file"),
            example("map where present and not exclusive", "draw the pages that others share"),
            example("map by resident", "draw how much of each cell is in memory"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        // Without a filter or a key behind them, `where` and `by` are names like any other.
        let filtered = preceded(word("where"), filter::<PageField>).parse(input).is_ok();
        let keyed = preceded(word("by"), one_of::<MapKey>).parse(input).is_ok();
        let (mut input, range) = if filtered || keyed { (input, None) } else { opt(range).parse(input)? };
        let (mut where_, mut by) = (None, None);
        while clause(&mut input, &mut where_, after("where", filter))?
            || clause(&mut input, &mut by, after("by", one_of))?
        {}
        Ok((input, Map { range, filter: where_, by }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(range) = &self.range {
            write!(f, " {}", range.node)?;
        }
        display::clause(f, "where", self.filter.as_ref().map(|filter| &filter.node))?;
        display::clause(f, "by", self.by.map(MapKey::word))
    }

    fn nature(&self) -> Nature {
        Nature { draws: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let spans = match self.range.as_ref().map(|range| eval::range(range, context.state)) {
            None => None,
            Some(Ok(Extent::Addresses(spans))) => Some(spans),
            Some(Ok(Extent::Frames(_))) => {
                return Err(Error::refused("map draws addresses, not page frames", "`walk pfn:A..pfn:B` lists them"));
            }
            Some(Err(error)) => return Err(error.into()),
        };
        let target = context.target()?;
        let space = match &spans {
            Some(spans) => AddressSpace::within(&target, spans.ranges())?,
            None => AddressSpace::of(&target)?,
        };
        let filter = self.filter.as_ref().map(|filter| eval::page_filter(filter, &space, context.state)).transpose()?;
        let holes = spans.as_ref().map_or(Evidence::empty(), Spans::holes);
        let ranges = spans.map_or_else(|| space.spans(), |spans| spans.ranges().to_vec());
        let reader = FactReader::of_pages(&space);
        let measure = self.by.map(|by| Measure::new(by, &reader)).transpose()?;
        let more = measure.map_or(Evidence::empty(), |measure| measure.need);
        let need = space.obtainable(Evidence::KINDS | Evidence::HUGE | more) | holes;
        let question = Question::new(filter.as_ref(), need);
        let mut unknown = PagesByReason::default();
        let mut drawing: Option<DrawnPart> = None;
        let mut ended = rows::sweep(&space, &ranges, question, context.sink, |sweep, sink| {
            while let Some(kept) = sweep.next(sink)? {
                for page in kept.pages {
                    kept.totals.add(&page);
                    if let Some(reason) = measure.and_then(|measure| measure.why_unknown(&page, &reader)) {
                        unknown.add(page.pages, reason);
                    }
                    let goes_on = drawing.as_mut().is_some_and(|drawing| drawing.add(&page, kept.region));
                    if !goes_on {
                        let next = DrawnPart::begin(&space, &ranges, &page, kept.region, measure);
                        let done = std::mem::replace(&mut drawing, next);
                        if let Some(drawing) = &mut drawing {
                            drawing.add(&page, kept.region);
                        }
                        done.map_or(Ok(()), |done| sink.emit(&done.record(&space)))?;
                    }
                }
            }
            Ok(())
        })?;
        if let Some(done) = drawing.filter(|_| ended.stopped.is_none()) {
            ended.add_stop(context.sink.emit(&done.record(&space)));
        }
        if let Some(reason) = unknown.reason() {
            let pages = counted(unknown.pages(), "page");
            context.sink.note(format!("the shares leave out {pages} of which it is unknown ({})", reason.cause()))?;
        }
        ended.close(context.sink, false)?;
        Ok(Flow::Done)
    }
}

/// The drawn part of one region.
struct DrawnPart {
    size: PageSize,
    range: AddressRange,
    region: Option<usize>,
    cell_pages: u64,
    cells: Vec<PictureCell>,
    /// How many pages were drawn in each: with a filter, not all of them.
    drawn: Vec<u64>,
    measure: Option<Measure>,
}

/// What `by` asks of pages.
#[derive(Clone, Copy)]
struct Measure {
    by: MapKey,
    need: Evidence,
}

impl Measure {
    fn new(by: MapKey, reader: &FactReader) -> Result<Self, Error> {
        let asked = match by {
            MapKey::Resident => None,
            MapKey::Sharing => Some(PageFact::Exclusive),
            MapKey::LazyFree => Some(PageFact::Flags),
        };
        let need = asked.map(|fact| reader.require(PageField::Fact(fact))).transpose()?.flatten();
        Ok(Measure { by, need: need.unwrap_or_default() })
    }

    /// Whether a page has it; `None` for a page that is not asked, or has no answer.
    fn of(self, page: &Page) -> Option<bool> {
        match self.by {
            MapKey::Resident => Some(page.state() == State::Present && !page.is_zero()),
            _ if page.state() != State::Present || page.is_zero() => None,
            MapKey::Sharing => page.exclusive().map(|exclusive| !exclusive),
            MapKey::LazyFree => page.flags.map(PageFlags::is_lazily_freed),
        }
    }

    /// Why it is unknown whether a page that is asked has it, if it is.
    fn why_unknown(self, page: &Page, reader: &FactReader) -> Option<Reason> {
        if self.of(page).is_some() || page.state() != State::Present || page.is_zero() {
            return None;
        }
        match reader.answer(PageField::Fact(PageFact::Exclusive), page, None) {
            Answer::Unknown(gap) if self.by == MapKey::Sharing => Some(reader.reason(gap, None)),
            _ => Some(Reason::words_hidden()),
        }
    }
}

impl DrawnPart {
    /// The wanted part of the page's region around the page.
    fn begin(
        space: &AddressSpace,
        ranges: &[AddressRange],
        page: &Page,
        region: Option<usize>,
        measure: Option<Measure>,
    ) -> Option<Self> {
        let size = space.page();
        let viewed = region.and_then(|index| space.regions().get(index));
        // The first page may begin before the range does.
        let is_in = |range: &AddressRange| size.floor(range.start()) <= page.address && page.address < range.end();
        let asked = ranges.iter().copied().find(is_in);
        let own = page.range(size);
        let bounds = [viewed.map(|viewed| viewed.range()), asked];
        let start = bounds.iter().flatten().map(|one| one.start()).max();
        let end = bounds.iter().flatten().map(|one| one.end()).min();
        // Cells are of whole pages.
        let end = end.and_then(|end| end.get().checked_next_multiple_of(size.bytes())).map(VirtualAddress::new);
        let whole = start.zip(end).and_then(|(start, end)| AddressRange::new(size.floor(start), end));
        // A hole is as long as its page record.
        let range = match viewed {
            Some(_) => whole.or(own),
            None => own,
        }?;
        let pages = range.pages(size);
        let cell_pages = pages.div_ceil(MOST_CELLS).next_power_of_two();
        let cells = usize::try_from(pages.div_ceil(cell_pages)).unwrap_or_default();
        let share = measure.map(|measure| PageShare { pages: 0, of: 0, what: CountedPages::By(measure.by) });
        let cells = vec![PictureCell::EMPTY.with(share); cells];
        let drawn = vec![0; cells.len()];
        Some(DrawnPart { size, range, region, cell_pages, cells, drawn, measure })
    }

    /// Draws pages. Returns whether they lie in this part.
    fn add(&mut self, page: &Page, region: Option<usize>) -> bool {
        if self.region != region || !self.range.contains(page.address) {
            return false;
        }
        let before = page.address.get() - self.range.start().get();
        let first = before / self.size.bytes();
        let last = first.saturating_add(page.pages.max(1)) - 1;
        let [from, to] = [first, last].map(|page| usize::try_from(page / self.cell_pages));
        let (Ok(from), Ok(to)) = (from, to) else {
            return true;
        };
        let mark = mark(page);
        let answer = self.measure.and_then(|measure| measure.of(page));
        let cells = self.cells.iter_mut().zip(&mut self.drawn).skip(from).take(to - from + 1);
        for ((cell, drawn), number) in cells.zip(from as u64..) {
            cell.add(mark);
            let start = number * self.cell_pages;
            let pages = (last + 1).min(start + self.cell_pages) - first.max(start);
            *drawn += pages;
            if let Some(is) = answer {
                cell.count(if is { pages } else { 0 }, pages);
            }
        }
        true
    }

    fn record(self, space: &AddressSpace) -> MapRegion {
        let viewed = self.region.and_then(|index| space.regions().get(index));
        let mut cells: Vec<MapCells> = Vec::new();
        let mut left = self.range.pages(self.size);
        for (cell, drawn) in self.cells.iter().zip(&self.drawn) {
            let (pages, of) = cell.share.map(|share| (share.pages, share.of)).unzip();
            let all = left.min(self.cell_pages);
            left -= all;
            let mixed = cell.is_mixed || cell.mark != Mark::Nothing && *drawn < all;
            let one = MapCells { cells: 1, mark: cell.mark, mixed, pages, of };
            match cells.last_mut() {
                Some(last) if (MapCells { cells: 1, ..*last }) == one => last.cells += 1,
                _ => cells.push(one),
            }
        }
        MapRegion {
            start: self.range.start(),
            end: self.range.end(),
            perms: viewed.map(|viewed| viewed.region.permissions),
            name: viewed.map(|viewed| viewed.region.name.clone()),
            pages: self.range.pages(self.size),
            cell_pages: self.cell_pages,
            by: self.measure.map(|measure| measure.by),
            cells,
        }
    }
}

/// The mark of a page.
pub(super) fn mark(page: &Page) -> Mark {
    match page.state() {
        State::Poisoned | State::Hwpoison => Mark::Poisoned,
        State::Guard => Mark::Guard,
        State::Swapped | State::Migrating => Mark::Swapped,
        State::PfnMapped | State::Outside if page.kind == Some(Kind::Vdso) => Mark::Vdso,
        State::Device | State::PfnMapped => Mark::Device,
        State::Untouched | State::UffdWp => Mark::Untouched,
        State::Outside => Mark::Unknown,
        State::Unmapped => Mark::Nothing,
        State::Present if page.huge == Some(true) => Mark::Huge,
        State::Present => match page.kind {
            Some(Kind::PrivateCopy) => Mark::PrivateCopy,
            Some(Kind::Anonymous) => Mark::Anonymous,
            Some(Kind::Ksm) => Mark::Ksm,
            Some(Kind::Shmem) => Mark::Shmem,
            Some(Kind::File) => Mark::File,
            Some(Kind::Zero | Kind::HugeZero) => Mark::Zero,
            Some(Kind::Hugetlb) => Mark::Huge,
            Some(Kind::Vdso) => Mark::Vdso,
            Some(Kind::DeviceMemory | Kind::DriverMemory) => Mark::Device,
            Some(Kind::Secret) => Mark::Shmem,
            _ => Mark::Unknown,
        },
    }
}

record! {
    /// A region of `map`.
    pub struct MapRegion as "map-region" {
        /// First address that is drawn.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Its permissions; `null` for addresses in no region.
        perms: Option<Permissions>,
        /// As `maps` names it; `null` for addresses in no region.
        name: Option<Name>,
        /// Pages that are drawn.
        pages: u64,
        /// Pages in a cell; the last cell may have fewer.
        cell_pages: u64,
        /// The share that the cells show; `null` for the most important page.
        by: Option<MapKey>,
        /// The cells in order, neighbours that are alike together.
        cells: Vec<MapCells>,
    }
}

impl Record for MapRegion {
    fn write(&self, text: &mut Text) {
        text.picture(draw, self);
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.heading(|lines| head(lines, self, 1));
        if !is_empty(self) {
            let cell_bytes = cell_bytes(self);
            let address = |cell: usize| {
                let bytes = (cell as u64).saturating_mul(cell_bytes);
                let address = self.start.checked_add(bytes).unwrap_or(self.end);
                address.min(self.end)
            };
            picture.cells(&marks::each(&self.cells, self.by), |start, end| {
                format!("{}..{}", address(start), address(end))
            });
        }
        true
    }
}

/// Blanks before a row of cells.
const INDENT: usize = 2;
/// The most rows of cells of a region.
const MOST_ROWS: usize = 4;

/// `0x5600d2d30000..0x5600d2d40000 rw-p 64 KiB [heap] a cell is 4 KiB`, and its cells.
fn draw(lines: &mut Lines, legend: &mut Legend, region: &MapRegion) {
    let room = lines.style.columns().saturating_sub(INDENT).max(8);
    let each = marks::each(&region.cells, region.by);
    let (cells, together) = fit_cells(&each, room * MOST_ROWS);
    head(lines, region, together);
    if is_empty(region) {
        return;
    }
    for row in cells.chunks(room) {
        let line = lines.line();
        line.limit(None).plain(" ".repeat(INDENT));
        legend.push_cells(line, row);
    }
}

/// What the region is, and what a cell is if `together` of those of the record are drawn as one.
fn head(lines: &mut Lines, region: &MapRegion, together: u64) {
    let bytes = region.end.get().saturating_sub(region.start.get());
    let line = lines.line();
    line.indent(4).push(Role::Address, format!("{}..{}", region.start, region.end));
    if let Some(perms) = region.perms {
        line.plain(format!("  {perms}"));
    }
    line.plain("  ").push(Role::Size, size(bytes)).plain("  ");
    match &region.name {
        Some(name) => {
            let (role, name) = region_name(name);
            line.push(role, name);
        }
        None => _ = line.push(Role::Dim, "in no region"),
    }
    let told = match is_empty(region) {
        true if region.cells.iter().any(|cell| cell.mark == Mark::Untouched) => "untouched".to_owned(),
        true => "nothing".to_owned(),
        false => {
            let cell = cell_bytes(region).saturating_mul(together);
            format!("{} per cell", size(cell))
        }
    };
    line.push(Role::Dim, format!("  {told}"));
}

/// Bytes that a cell of the record stands for.
fn cell_bytes(region: &MapRegion) -> u64 {
    let bytes = region.end.get().saturating_sub(region.start.get());
    let page = bytes / region.pages.max(1);
    region.cell_pages.saturating_mul(page)
}

/// Whether there is nothing to draw.
fn is_empty(region: &MapRegion) -> bool {
    region.cells.iter().all(|cell| cell.mark >= Mark::Untouched)
}

/// At most `most` cells, and how many cells of the record each of them joins.
fn fit_cells(each: &[PictureCell], most: usize) -> (Vec<PictureCell>, u64) {
    let together = each.len().div_ceil(most).next_power_of_two();
    let joined = each.chunks(together).map(PictureCell::join_cells);
    (joined.collect(), together as u64)
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::{data, va};

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(map_region()), Box::new(map_by())]
    }

    fn map_by() -> MapRegion {
        let cells = |cells, mark, pages, of| MapCells { cells, mark, mixed: false, pages: Some(pages), of: Some(of) };
        MapRegion {
            by: Some(MapKey::Sharing),
            pages: 384,
            end: va(0x5555_5555_9000 + 384 * 4096),
            cells: vec![
                cells(10, Mark::Anonymous, 0, 4),
                cells(2, Mark::Anonymous, 1, 4),
                cells(30, Mark::Anonymous, 3, 3),
                cells(54, Mark::Untouched, 0, 0),
            ],
            ..map_region()
        }
    }

    pub fn map_region() -> MapRegion {
        let cells = |cells, mark, mixed| MapCells { cells, mark, mixed, pages: None, of: None };
        MapRegion {
            start: va(0x5555_5555_9000),
            end: va(0x5555_5599_9000),
            perms: Some(data().perms),
            name: Some(Name::from("[heap]")),
            pages: 1088,
            cell_pages: 4,
            by: None,
            cells: vec![
                cells(100, Mark::Anonymous, false),
                cells(4, Mark::Guard, false),
                cells(12, Mark::PrivateCopy, true),
                cells(156, Mark::Untouched, false),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_do_not_fit_are_joined_and_say_so() {
        let alike = |cells, mark| MapCells { cells, mark, mixed: false, pages: None, of: None };
        let cells = marks::each(&[alike(6, Mark::Anonymous), alike(3, Mark::Untouched)], None);
        let letters = |most| {
            let (cells, together) = fit_cells(&cells, most);
            let text: String = cells.iter().map(|cell| cell.letter()).collect();
            (text, together)
        };
        assert_eq!(letters(16), ("AAAAAA...".to_owned(), 1));
        assert_eq!(letters(5), ("AAA..".to_owned(), 2));
        assert_eq!(letters(4), ("Aa.".to_owned(), 4));
    }

    #[test]
    fn joined_cells_show_what_they_have_together() {
        let of = |cells, pages, of| MapCells {
            cells,
            mark: if of == 0 { Mark::Untouched } else { Mark::Anonymous },
            mixed: false,
            pages: Some(pages),
            of: Some(of),
        };
        let cells = [of(1, 0, 4), of(1, 4, 4), of(1, 1, 1000), of(1, 999, 1000), of(2, 0, 0)];
        let cells = marks::each(&cells, Some(MapKey::Sharing));
        let letters = |most| fit_cells(&cells, most).0.iter().map(|cell| cell.letter()).collect::<String>();
        assert_eq!(letters(6), "0#19..");
        assert_eq!(letters(3), "55.");
    }
}
