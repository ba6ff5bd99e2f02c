//! The marks of pictures: their letters, the same in every picture.

use crate::render::text::lines::{Line, Lines};
use crate::render::theme::Role;
use crate::report::{MapCells, MapKey, Mark};
use std::collections::BTreeSet;

/// A cell of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PictureCell {
    pub mark: Mark,
    pub is_mixed: bool,
    /// Whether it changed but has the same mark as before.
    pub is_repeated: bool,
    /// Drawn in place of the mark, if pages were asked.
    pub share: Option<PageShare>,
}

/// How many of the pages in a cell have what the picture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageShare {
    pub pages: u64,
    /// The pages that were asked.
    pub of: u64,
    /// What it shows.
    pub what: CountedPages,
}

/// What a picture shows of the pages in a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum CountedPages {
    /// With `map by`.
    By(MapKey),
    /// With `compare … as timeline`.
    Copied,
}

impl CountedPages {
    /// What is said of the pages that are counted.
    pub fn words(self) -> &'static str {
        match self {
            CountedPages::By(MapKey::Resident) => "pages are resident",
            CountedPages::By(MapKey::Sharing) => "resident pages are mapped elsewhere too",
            CountedPages::By(MapKey::LazyFree) => "resident pages are lazily freed",
            CountedPages::Copied => "pages were copied since the fork",
        }
    }

    /// What a share is of.
    fn share(self) -> &'static str {
        match self {
            CountedPages::By(MapKey::Resident) => "resident pages",
            CountedPages::By(MapKey::Sharing) => "resident pages that are mapped elsewhere too",
            CountedPages::By(MapKey::LazyFree) => "lazily freed pages among resident ones",
            CountedPages::Copied => "pages copied since the fork",
        }
    }
}

impl PageShare {
    /// The share from the numbers of a record, if it has them.
    pub fn new(pages: Option<u64>, of: Option<u64>, what: Option<CountedPages>) -> Option<Self> {
        Some(PageShare { pages: pages?, of: of?, what: what? })
    }

    /// How many tenths, rounded so that only none is 0 and only all is 10; `None` if no page was asked.
    pub fn tenths(self) -> Option<u32> {
        match (self.pages, self.of) {
            (_, 0) => None,
            (0, _) => Some(0),
            (pages, of) if pages >= of => Some(10),
            (pages, of) => {
                let tenths = u128::from(pages) * 10 / u128::from(of);
                Some(tenths.clamp(1, 9) as u32)
            }
        }
    }

    /// `0` for none, `1` to `9` for the tenths that are full, `#` for all.
    fn digit(self) -> Option<char> {
        Some(char::from_digit(self.tenths()?, 10).unwrap_or('#'))
    }
}

impl PictureCell {
    /// A cell without pages; most are such in a sparse region.
    pub const EMPTY: PictureCell =
        PictureCell { mark: Mark::Nothing, is_mixed: false, is_repeated: false, share: None };

    /// Adds a page; the more important mark stays.
    pub fn add(&mut self, mark: Mark) {
        let before = self.mark;
        self.mark = before.min(mark);
        self.is_mixed |= before != Mark::Nothing && before != mark;
    }

    pub fn new(mark: Mark, is_mixed: bool) -> Self {
        PictureCell { mark, is_mixed, ..PictureCell::EMPTY }
    }

    /// The same cell, with a share of its pages.
    pub fn with(self, share: Option<PageShare>) -> Self {
        PictureCell { share, ..self }
    }

    /// Counts pages that were asked, and those of them that have what is shown.
    pub fn count(&mut self, pages: u64, of: u64) {
        if let Some(share) = &mut self.share {
            share.pages = share.pages.saturating_add(pages);
            share.of = share.of.saturating_add(of);
        }
    }

    /// The letter: a digit for a share; a small letter if the cell has other pages too.
    pub fn letter(self) -> char {
        match (self.share.and_then(PageShare::digit), self.is_mixed) {
            (Some(digit), _) => digit,
            _ if self.is_repeated => '*',
            // Beside digits, only cells without pages have letters.
            (None, true) if self.share.is_none() => letter(self.mark).to_ascii_lowercase(),
            (None, _) => letter(self.mark),
        }
    }

    /// The role of its letter.
    pub fn role(self) -> Role {
        match self.share.and_then(PageShare::digit) {
            Some('0') => Role::Dim,
            Some('#') => Role::Warn,
            Some(_) => Role::Good,
            None => role(self.mark),
        }
    }

    /// Joins several cells into one, with the most important mark.
    pub fn join_cells(cells: &[PictureCell]) -> PictureCell {
        let marks = cells.iter().map(|cell| cell.mark);
        let mark = marks.clone().min().unwrap_or(Mark::Nothing);
        let differ = marks.clone().any(|other| other != mark);
        let shares = cells.iter().filter_map(|cell| cell.share);
        let share = shares.reduce(|one, other| PageShare {
            pages: one.pages.saturating_add(other.pages),
            of: one.of.saturating_add(other.of),
            ..one
        });
        PictureCell::new(mark, differ || cells.iter().any(|cell| cell.is_mixed)).with(share)
    }

    /// Whether nothing is drawn in it.
    pub fn is_blank(self) -> bool {
        letter(self.mark) == ' '
    }
}

/// The cells of a record, one by one. With a key they show shares.
pub(crate) fn each(cells: &[MapCells], by: Option<MapKey>) -> Vec<PictureCell> {
    let what = by.map(CountedPages::By);
    let each = cells.iter().flat_map(|cells| {
        let cell = PictureCell::new(cells.mark, cells.mixed).with(PageShare::new(cells.pages, cells.of, what));
        let count = usize::try_from(cells.cells).unwrap_or(usize::MAX);
        std::iter::repeat_n(cell, count)
    });
    each.collect()
}

/// How a picture shows what is not a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    /// In text.
    AsLetters,
    /// In SVG.
    AsShapes,
}

/// The marks that were drawn, for the legend.
#[derive(Debug, Default)]
pub(crate) struct Legend {
    marks: BTreeSet<Mark>,
    shares: BTreeSet<CountedPages>,
    is_mixed: bool,
    is_repeated: bool,
    has_blank: bool,
}

impl Legend {
    pub const TITLE: &str = "legend:";

    pub fn add(&mut self, cell: PictureCell) {
        if cell.is_blank() {
            self.has_blank = true;
            return;
        }
        if let Some(share) = cell.share.filter(|share| share.digit().is_some()) {
            self.shares.insert(share.what);
            return;
        }
        self.marks.insert(cell.mark);
        self.is_mixed |= cell.is_mixed && cell.share.is_none();
        self.is_repeated |= cell.is_repeated;
    }

    /// Takes the marks, the most important first, and the remarks out of the legend.
    pub fn take(&mut self, shown: Shown) -> (impl Iterator<Item = Mark> + use<>, Vec<String>) {
        let Legend { marks, shares, is_mixed, is_repeated, has_blank } = std::mem::take(self);
        let share = |what: CountedPages| match shown {
            Shown::AsLetters => format!("0-9 for tenths of {}, # for all", what.share()),
            Shown::AsShapes => format!("height: share of {}", what.share()),
        };
        let mixed = match shown {
            Shown::AsLetters => "lower case: mixed cell",
            Shown::AsShapes => "half as high: mixed cell",
        };
        let remarks =
            [(is_mixed, mixed), (is_repeated, "*: changed"), (has_blank, "blank: no page, or none that matches")];
        let remarks = remarks.into_iter().filter(|(is, _)| *is).map(|(_, words)| words.to_owned());
        (marks.into_iter(), shares.into_iter().map(share).chain(remarks).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.shares.is_empty()
    }

    /// Adds the letters of cells to a line, to be explained.
    pub fn push_cells(&mut self, line: &mut Line, cells: &[PictureCell]) {
        for part in cells.chunk_by(|one, other| one.role() == other.role()) {
            let letters: String = part.iter().map(|cell| cell.letter()).collect();
            let role = part.first().map_or(Role::Plain, |cell| cell.role());
            line.push(role, letters);
        }
        cells.iter().for_each(|cell| self.add(*cell));
    }

    /// Says what the letters mean, the most important first, and forgets them.
    pub fn write(&mut self, lines: &mut Lines) {
        if self.is_empty() {
            return;
        }
        let (marks, remarks) = self.take(Shown::AsLetters);
        let line = lines.line();
        line.indent(2).plain(Legend::TITLE);
        let mut has_marks = false;
        for mark in marks {
            let words = format!("{} {}", letter(mark), mark.word());
            line.word(" ", role(mark), words);
            has_marks = true;
        }
        let mut separator = if has_marks { "; " } else { " " };
        for remark in remarks {
            line.word(std::mem::replace(&mut separator, "; "), Role::Plain, remark);
        }
    }
}

pub(crate) const fn letter(mark: Mark) -> char {
    match mark {
        Mark::Poisoned => '!',
        Mark::Guard => 'G',
        Mark::Swapped => 'W',
        Mark::Huge => 'H',
        Mark::PrivateCopy => 'C',
        Mark::Anonymous => 'A',
        Mark::Ksm => 'K',
        Mark::Shmem => 'S',
        Mark::File => 'F',
        Mark::Device => 'D',
        Mark::Vdso => 'V',
        Mark::Copied => 'N',
        Mark::Shared => 'O',
        Mark::Zero => 'Z',
        Mark::Unknown => '?',
        Mark::Untouched => '.',
        Mark::Nothing => ' ',
    }
}

pub(crate) const fn role(mark: Mark) -> Role {
    match mark {
        Mark::Poisoned | Mark::Guard => Role::Bad,
        Mark::Swapped => Role::Warn,
        Mark::Huge => Role::Frame,
        Mark::PrivateCopy => Role::Symbol,
        Mark::Anonymous => Role::Good,
        Mark::Ksm | Mark::Shmem => Role::Keyword,
        Mark::File => Role::Address,
        Mark::Device | Mark::Vdso | Mark::Unknown => Role::Note,
        Mark::Copied | Mark::Shared | Mark::Zero | Mark::Untouched | Mark::Nothing => Role::Dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_has_its_own_letter() {
        let letters = Mark::ALL.iter().map(|mark| letter(*mark));
        assert_eq!(letters.collect::<BTreeSet<_>>().len(), Mark::ALL.len());
    }
}
