//! `map [RANGE] [where FILTER] [by KEY]`: the address space, drawn.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use super::rows::{self, SweepEnd};
use crate::eval::{self, Extent, Spans};
use crate::inspect::{AddressSpace, Evidence, Page, Question, RegionMap};
use crate::kernel::{Kind, Name, Permissions, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, after, clause, filter, one_of, range, word};
use crate::lang::{self, PageField, Spanned, display};
use crate::render::marks::{self, Legend, PictureCell};
use crate::render::svg::{DrawnRegion, Svg};
use crate::render::text::Text;
use crate::render::text::block::{mapped_file_name, mapped_name, object_number, region_name};
use crate::render::text::lines::{Line, Lines};
use crate::render::theme::{Role, columns};
use crate::render::units::{counted, size};
use crate::render::{More, Record, Sink};
use crate::report::record::record;
use crate::report::{Declared, MapCells, MapKey, Mark, MarkPages, Shape};
use nom::Parser;
use nom::combinator::opt;
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

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
        name: CommandName::new("map").of_session().whole(),
        group: Group::Look,
        summary: "draw the address space",
        text: "\
Draws each region as a row of cells. A cell is a page, or has the size after the name. Empty regions have a word.

  where FILTER  only pages that match; many neighbours that are alike have a line each
  by resident   the share of each cell that is in memory
  by sharing    of the resident pages, the share that is mapped elsewhere too
  by lazy_free  of the resident pages, the share that was freed with MADV_FREE
  > ./FILE.svg  a picture for a browser or a document, as wide as the setting `width`

A cell shows the first kind of the legend that occurs in it. A lower-case letter marks a cell with other pages too.

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
            Some(spans) => AddressSpace::in_ranges(&target, spans.ranges())?,
            None => AddressSpace::of(&target)?,
        };
        let filter = self.filter.as_ref().map(|filter| eval::page_filter(filter, &space, context.state)).transpose()?;
        let holes = spans.as_ref().map_or(Evidence::empty(), Spans::holes);
        let ranges = spans.map_or_else(|| space.spans(), |spans| spans.ranges().to_vec());
        let more = self.by.map_or(Ok(Evidence::empty()), |by| space.need_of_map(by))?;
        let need = space.obtainable(Evidence::KINDS | Evidence::HUGE | more) | holes;
        let look = |page: &Page| Some(mark(page)).filter(|&mark| mark != Mark::Nothing);
        let map = space.map(&ranges, Question::new(filter.as_ref(), need), self.by, look)?;
        let mut map = map.with_budget(context.sink.budget());
        if self.filter.is_some() {
            context.sink.show(More::SmallRows);
        }
        let show = |part, sink: &mut dyn Sink| Ok(sink.emit(&record(part, &space, self.by))?);
        let stopped = rows::pull(context.sink, "pages", || map.next(), show)?;
        if let Some(reason) = map.unknown().reason() {
            let pages = counted(map.unknown().pages(), "page");
            context.sink.note(format!("the shares leave out {pages} of which it is unknown ({})", reason.cause()))?;
        }
        SweepEnd::of(map.finish(), stopped).close(context.sink, false)?;
        Ok(Flow::Done)
    }
}

/// The record of a part, neighbours that are alike together.
fn record(part: RegionMap<Mark>, space: &AddressSpace, by: Option<MapKey>) -> MapRegion {
    let viewed = part.region.and_then(|index| space.viewed_regions().get(index));
    let mut cells: Vec<MapCells> = Vec::new();
    for cell in &part.cells {
        let (pages, of) = by.map(|_| (cell.has, cell.asked)).unzip();
        let one = MapCells { cells: 1, mark: cell.mark.unwrap_or(Mark::Nothing), mixed: cell.is_mixed, pages, of };
        match cells.last_mut() {
            Some(last) if (MapCells { cells: 1, ..*last }) == one => last.cells += 1,
            _ => cells.push(one),
        }
    }
    MapRegion {
        start: part.range.start(),
        end: part.range.end(),
        perms: viewed.map(|viewed| viewed.region.permissions),
        name: viewed.map(|viewed| viewed.region.name.clone()),
        object: viewed.and_then(|viewed| viewed.region.object_number()),
        pages: part.range.pages(space.page_size()),
        cell_pages: part.cell_pages,
        by,
        cells,
        marks: part.marks.into_iter().map(|(mark, pages)| MarkPages { mark, pages }).collect(),
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
        /// The inode, or of a System V segment its number, if other objects may have the same name.
        [optional] object: Option<u64>,
        /// Pages that are drawn.
        pages: u64,
        /// Pages in a cell; the last cell may have fewer.
        cell_pages: u64,
        /// The share that the cells show; `null` for the most important page.
        by: Option<MapKey>,
        /// The cells in order, neighbours that are alike together.
        cells: Vec<MapCells>,
        /// The pages of each mark, the most important first.
        marks: Vec<MarkPages>,
    }
}

impl Record for MapRegion {
    fn write(&self, text: &mut Text) {
        let key = || format!("{:?} {:?} {} {:?}", self.perms, self.name, self.pages, self.cells);
        text.part_of_picture(draw, self, (self.start.get(), self.end.get()), key);
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.add_region(DrawnRegion {
            start: self.start,
            end: self.end,
            perms: self.perms,
            name: self
                .name
                .as_ref()
                .map(|name| format!("{}{}", mapped_file_name(name, self.object.is_some()).1, number(self))),
            page_bytes: page_bytes(self),
            cell_pages: self.cell_pages,
            cells: marks::each(&self.cells, self.by),
            marks: self.marks.clone(),
        });
        true
    }
}

/// Blanks before a row of cells.
const INDENT: usize = 2;
/// The most rows of cells of a region.
const MOST_ROWS: usize = 4;

/// The largest number of cells that are drawn after the name of a region. Each of them is a page.
const MOST_BEHIND_NAME: usize = 8;

/// `0x5600d2d30000..0x5600d2d40000 rw-p 64 KiB [heap] 4 KiB per cell`, and its cells below or, if they are few, behind.
fn draw(lines: &mut Lines, legend: &mut Legend, region: &MapRegion) {
    let room = lines.style.columns().saturating_sub(INDENT).max(8);
    let each = marks::each(&region.cells, region.by);
    let (cells, together) = fit_cells(&each, room * MOST_ROWS);
    let cell = cell_bytes(region).saturating_mul(together);
    if is_empty(region) {
        let is_untouched = region.cells.iter().any(|cell| cell.mark == Mark::Untouched);
        let contents = if is_untouched { "untouched" } else { "nothing" };
        head(lines, region, contents.len()).word("  ", Role::Dim, contents);
    } else if cells.len() <= MOST_BEHIND_NAME && cell == page_bytes(region) {
        let line = head(lines, region, cells.len());
        line.plain("  ");
        legend.push_cells(line, &cells);
    } else {
        let contents = if cell == page_bytes(region) { String::new() } else { format!("{} per cell", size(cell)) };
        let line = head(lines, region, contents.len());
        if !contents.is_empty() {
            line.word("  ", Role::Dim, contents);
        }
        for row in cells.chunks(room) {
            let line = lines.line();
            line.limit(None).plain(" ".repeat(INDENT));
            legend.push_cells(line, row);
        }
    }
}

/// Begins the line of a region, with room for so many columns of contents.
fn head<'a>(lines: &'a mut Lines, region: &MapRegion, contents: usize) -> &'a mut Line {
    let bytes = region.end.get().saturating_sub(region.start.get());
    let width = lines.style.width;
    let line = lines.line();
    line.indent(4).push(Role::Address, format!("{}..{}", region.start, region.end));
    if let Some(perms) = region.perms {
        line.plain(format!("  {perms}"));
    }
    line.plain("  ").push(Role::Size, size(bytes)).plain("  ");
    let number = number(region);
    let room = width.map(|width| width.saturating_sub(line.column() + "   ".len() + number.len() + contents));
    let is_object = region.object.is_some();
    let (role, name) = match &region.name {
        // The end of the path where there is no room for all of it.
        Some(name) if room.is_some_and(|room| columns(&region_name(name).1) > room) => {
            mapped_file_name(name, is_object)
        }
        Some(name) => mapped_name(name, is_object),
        None => (Role::Dim, "in no region".into()),
    };
    line.push(role, name + number.as_str())
}

fn number(region: &MapRegion) -> String {
    let name = region.name.as_ref().map_or(&[][..], Name::as_bytes);
    object_number(name, region.object)
}

/// Bytes that a cell of the record stands for.
fn cell_bytes(region: &MapRegion) -> u64 {
    region.cell_pages.saturating_mul(page_bytes(region))
}

fn page_bytes(region: &MapRegion) -> u64 {
    region.end.get().saturating_sub(region.start.get()) / region.pages.max(1)
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

    fn pages(mark: Mark, pages: u64) -> MarkPages {
        MarkPages { mark, pages }
    }

    fn map_by() -> MapRegion {
        let cells = |cells, mark, pages, of| MapCells { cells, mark, mixed: false, pages: Some(pages), of: Some(of) };
        MapRegion {
            by: Some(MapKey::Sharing),
            pages: 384,
            marks: vec![pages(Mark::Anonymous, 168), pages(Mark::Untouched, 216)],
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
            object: None,
            pages: 1088,
            cell_pages: 4,
            by: None,
            cells: vec![
                cells(100, Mark::Anonymous, false),
                cells(4, Mark::Guard, false),
                cells(12, Mark::PrivateCopy, true),
                cells(156, Mark::Untouched, false),
            ],
            marks: vec![
                pages(Mark::Guard, 16),
                pages(Mark::PrivateCopy, 30),
                pages(Mark::Anonymous, 418),
                pages(Mark::Untouched, 624),
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
