//! Regions in a picture: a bar of all their memory, and rows of cells, all of the same size.

use super::canvas::{self, CELL_WIDTH, Canvas};
use super::cells::{cells_that_fit, meaning, meaning_of_share};
use super::palette;
use crate::kernel::{Permissions, VirtualAddress};
use crate::render::marks::{Legend, PageShare, PictureCell, Shown};
use crate::render::theme::cut;
use crate::render::units::{counted, size};
use crate::report::{Mark, MarkPages};
use std::collections::BTreeMap;

/// A row of a map has a multiple of so many cells.
const CELLS: usize = 8;
/// Columns of the name in a label, and of a label without its address.
const NAME: usize = 20;
const LABEL: usize = 18 + NAME + 2;
/// In a narrow picture, labels are above the cells: the fewest cells beside them.
const BESIDE: usize = 40;

/// A region, or addresses between regions.
#[derive(Debug)]
pub(crate) struct DrawnRegion {
    pub start: VirtualAddress,
    pub end: VirtualAddress,
    pub perms: Option<Permissions>,
    /// `None` between regions.
    pub name: Option<String>,
    pub page_bytes: u64,
    pub cell_pages: u64,
    pub cells: Vec<PictureCell>,
    pub marks: Vec<MarkPages>,
}

/// A cell and the bytes in it, counted from the start of its region.
struct Column {
    cell: PictureCell,
    from: u64,
    to: u64,
}

impl DrawnRegion {
    fn bytes(&self) -> u64 {
        self.end.get().saturating_sub(self.start.get())
    }

    fn cell_bytes(&self) -> u64 {
        self.cell_pages.saturating_mul(self.page_bytes)
    }

    /// Whether there is nothing to draw.
    fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.mark >= Mark::Untouched)
    }

    /// Its cells, each of `scale` bytes. One cell shows a whole huge page.
    fn columns(&self, scale: u64) -> Vec<Column> {
        let together = usize::try_from(scale / self.cell_bytes().max(1)).unwrap_or(usize::MAX).max(1);
        let joined: Vec<PictureCell> = self.cells.chunks(together).map(PictureCell::join_cells).collect();
        let mut columns = Vec::new();
        let mut from = 0;
        for alike in joined.chunk_by(|one, other| one == other) {
            let Some(cell) = alike.first().copied() else { continue };
            let to = scale.saturating_mul(alike.len() as u64).saturating_add(from).min(self.bytes());
            let step = if canvas::is_huge(cell) { scale.max(huge_page(self.page_bytes)) } else { scale };
            while from < to {
                let next = from.saturating_add(step).min(to);
                columns.push(Column { cell, from, to: next });
                from = next;
            }
        }
        columns
    }

    /// `0x5600d2d30000  64 KiB rw-p [heap]`, with so many columns for the address.
    fn label(&self, address: usize) -> String {
        let perms = self.perms.map(|perms| perms.to_string()).unwrap_or_default();
        let name = self.name.as_deref().unwrap_or("in no region");
        format!("{:<address$}  {:>8}  {perms:<4}  {}", self.start.to_string(), size(self.bytes()), cut(name, NAME))
    }

    fn address(&self, bytes: u64) -> VirtualAddress {
        self.start.checked_add(bytes).unwrap_or(self.end).min(self.end)
    }
}

/// A huge page of one entry in the table above: so many entries fit in a table of one page.
fn huge_page(page_bytes: u64) -> u64 {
    page_bytes.saturating_mul(page_bytes / 8)
}

/// Draws all regions. Returns what the bar says, for people who do not see it.
pub(super) fn draw(canvas: &mut Canvas, width: usize, regions: &[DrawnRegion]) -> String {
    let mut legend = Legend::default();
    let scale = regions.iter().filter(|region| !region.is_empty()).map(DrawnRegion::cell_bytes).max();
    let scale = scale.unwrap_or_default().max(1);
    let drawn: Vec<Vec<Column>> = regions.iter().map(|region| region.columns(scale)).collect();
    let filled = regions.iter().zip(&drawn).filter(|(region, _)| !region.is_empty());
    filled.flat_map(|(_, columns)| columns).for_each(|column| legend.add(column.cell));

    let (marks, remarks) = legend.take(Shown::AsShapes);
    let said = match shares(regions) {
        Some(share) => draw_share(canvas, width, share, marks),
        None => draw_marks(canvas, width, &bytes_by_mark(regions)),
    };
    let mut about = Vec::new();
    if !drawn.iter().flatten().all(|column| column.cell.mark >= Mark::Untouched) {
        about.push(format!("{} per cell", size(scale)));
    }
    let huge = regions.iter().map(|region| huge_page(region.page_bytes)).max().unwrap_or_default();
    if huge > scale && drawn.iter().flatten().any(|column| canvas::is_huge(column.cell)) {
        about.push(format!("one cell for a huge page ({})", size(huge)));
    }
    about.extend(remarks);
    let mut left = 0;
    for words in about {
        left = canvas.legend_words(left, width, &words);
    }
    canvas.new_line();
    canvas.gap();

    let address = regions.iter().map(|region| region.start.to_string().len()).max().unwrap_or_default();
    let mut rest = regions.iter().zip(&drawn).peekable();
    while let Some((region, columns)) = rest.next() {
        if !region.is_empty() {
            draw_region(canvas, width, address, region, columns);
            continue;
        }
        let (mut number, mut bytes) = (1, region.bytes());
        while let Some((next, _)) = rest.next_if(|(next, _)| next.is_empty()) {
            number += 1;
            bytes = next.bytes().saturating_add(bytes);
        }
        let is_untouched = region.cells.iter().any(|cell| cell.mark == Mark::Untouched);
        let what = if is_untouched { "untouched" } else { "nothing" };
        canvas.dim_label(
            0,
            &match number {
                1 => format!("{}  {what}", region.label(address)),
                _ => format!(
                    "{:<address$}  {:>8}  {}: {what}",
                    region.start.to_string(),
                    size(bytes),
                    counted(number, "region")
                ),
            },
        );
        canvas.new_row();
    }
    said
}

fn draw_region(canvas: &mut Canvas, width: usize, address: usize, region: &DrawnRegion, columns: &[Column]) {
    canvas.label(&region.label(address));
    let mut left = canvas::width(address + LABEL);
    if width < left + BESIDE * CELL_WIDTH {
        canvas.new_row();
        left = 0;
    }
    let room = cells_that_fit(width - left, CELLS);
    for row in columns.chunks(room) {
        let cells: Vec<PictureCell> = row.iter().map(|column| column.cell).collect();
        canvas.row(left, &cells, |some| {
            let [from, to] = [row.get(some.start), row.get(some.end.saturating_sub(1))];
            let from = region.address(from.map_or(0, |column| column.from));
            let to = region.address(to.map_or(0, |column| column.to));
            format!("{from}..{to}: {}", meaning(cells.get(some.start)))
        });
    }
}

/// The share of all cells, if they show shares.
fn shares(regions: &[DrawnRegion]) -> Option<PageShare> {
    let cells = regions.iter().flat_map(|region| &region.cells);
    PictureCell::join_cells(&cells.copied().collect::<Vec<_>>()).share
}

/// The bytes of each mark.
fn bytes_by_mark(regions: &[DrawnRegion]) -> BTreeMap<Mark, u64> {
    let mut bytes: BTreeMap<Mark, u64> = BTreeMap::new();
    for region in regions {
        for one in &region.marks {
            let sum = bytes.entry(one.mark).or_default();
            *sum = one.pages.saturating_mul(region.page_bytes).saturating_add(*sum);
        }
    }
    bytes
}

/// The bar of all memory that was touched, and the legend.
fn draw_marks(canvas: &mut Canvas, width: usize, bytes: &BTreeMap<Mark, u64>) -> String {
    let words = |(mark, bytes): (&Mark, &u64)| format!("{} {}", mark.word(), size(*bytes));
    let touched: Vec<(&Mark, &u64)> = bytes.iter().filter(|(mark, _)| **mark < Mark::Untouched).collect();
    let sizes: Vec<u64> = touched.iter().map(|(_, bytes)| **bytes).collect();
    let parts = widths(width, &sizes).into_iter().zip(&touched);
    let parts = parts.map(|(width, (mark, bytes))| (width, palette::fill(**mark), words((mark, bytes))));
    canvas.bar(&parts.collect::<Vec<_>>());
    let mut left = canvas.text(0, Legend::TITLE) + 2 * CELL_WIDTH;
    for (mark, bytes) in bytes {
        left = canvas.legend_entry(left, width, PictureCell::new(*mark, false), &words((mark, bytes)));
    }
    canvas.new_line();
    let all: Vec<String> = bytes.iter().map(words).collect();
    all.join(", ")
}

/// The bar of a share, what it is, and the marks of cells without one.
fn draw_share(canvas: &mut Canvas, width: usize, share: PageShare, marks: impl Iterator<Item = Mark>) -> String {
    let words = meaning_of_share(share);
    let parts = widths(width, &[share.pages, share.of.saturating_sub(share.pages)]);
    let parts = parts.into_iter().zip([Some(palette::SHARE), None]);
    let parts: Vec<_> = parts.map(|(width, colour)| (width, colour, words.clone())).collect();
    canvas.bar(&parts);
    let mut left = canvas.text(0, &format!("{} {words}", Legend::TITLE)) + 2 * CELL_WIDTH;
    for mark in marks {
        left = canvas.legend_entry(left, width, PictureCell::new(mark, false), mark.word());
    }
    canvas.new_line();
    words
}

/// How wide each part of a bar is: at least one unit, however small.
fn widths(width: usize, parts: &[u64]) -> Vec<usize> {
    let all = parts.iter().map(|part| u128::from(*part)).sum::<u128>().max(1);
    let of = |part: u64| usize::try_from(u128::from(part) * width as u128 / all).unwrap_or(width);
    let wide = parts.iter().map(|part| of(*part).max(usize::from(*part > 0)));
    let mut widths: Vec<usize> = wide.collect();
    // What rounding adds or leaves is the largest part's.
    let sum = widths.iter().sum::<usize>();
    if let Some(largest) = widths.iter_mut().max() {
        *largest = (*largest + width).saturating_sub(sum);
    }
    widths
}
