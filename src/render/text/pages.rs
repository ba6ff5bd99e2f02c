//! Tables of pages, frames and groups: `walk`; the columns that they share with other commands, and the totals under
//! them.

use crate::kernel::words::Worded;
use crate::kernel::{AddressRange, FrameRange, Key, Kind, PageFlags, PageSize, State, VirtualAddress};
use crate::render::bar::{BAR, bar_of_largest};
use crate::render::columns::{
    Cell, Column, END, MakeCell, PAGES, SIZE, START, Table, fact, length, map_count, none, reason, unknown,
};
use crate::render::text::block::{ANONYMOUS, mapped_file_name};
use crate::render::text::lines::{Lines, Style};
use crate::render::text::{Text, words};
use crate::render::theme::Role;
use crate::render::units::{count, counted, size};
use crate::render::{Record, RowRange};
use crate::report::{Fact, Frames, FramesSummary, PageGroup, PagesRow, PhysicalExtent, WalkSummary};

impl Record for PagesRow {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&PAGE_ROWS, self);
    }

    fn address(&self) -> Option<VirtualAddress> {
        Some(self.start)
    }

    fn range(&self) -> Option<RowRange> {
        AddressRange::new(self.start, self.end).map(RowRange::Addresses)
    }
}

impl Record for Frames {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&FRAME_ROWS, self);
    }

    fn range(&self) -> Option<RowRange> {
        let end = self.pfn.checked_add(self.frames)?;
        FrameRange::new(self.pfn, end).map(RowRange::Frames)
    }
}

impl Record for PageGroup {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&groups(self), self);
    }
}

pub const STATE: Column = Column::word("state", 9, Role::Plain);
pub const FRAME: Column = Column::word("frame", 9, Role::Frame);
pub const MANY_PAGES: Column = Column::number("pages", 10, Role::Size);
pub const PHYSICAL: Column = Column::word("physical", 13, Role::Physical);
const COUNT: Column = Column::number("mapcount", 8, Role::Size);
pub const FLAGS: Column = Column::name("flags", 17, Role::Flag);
/// The same as letters where the terminal is narrow.
const LETTERS: Column = Column::name("flags", 6, Role::Flag).uncut(17).rank(3);

/// `walk`
pub static PAGE_ROWS: Table<PagesRow> = Table::of(&[
    START.cell(|_, pages| Cell::new(&pages.start)),
    END.rank(5).cell(|_, pages| Cell::new(&pages.end)),
    SIZE.cell(|_, pages| length(pages.start, pages.end)),
    PAGES.rank(4).cell(|_, pages| Cell::count(pages.pages)),
    STATE.cell(|_, pages| state(pages.state)),
    Column::word("kind", 12, Role::Plain).cell(|_, pages| kind(pages)),
    FRAME.rank(1).cell(|_, pages| fact(&pages.pfn)),
    COUNT.rank(2).cell(|_, pages| match (&pages.kind, &pages.words.map_count) {
        // The kernel does not count them.
        (Ok(Kind::Zero | Kind::HugeZero), Ok(0)) => none(),
        _ => map_count(&pages.words),
    }),
    Column::name("region", 11, Role::Name).cell(|_, pages| region(pages)),
    LETTERS.cell(|style, pages| {
        let flags = &pages.words.flags;
        names_or_letters(style, flags, pages.huge == Ok(true))
    }),
]);

/// `walk` of frames
pub static FRAME_ROWS: Table<Frames> = Table::of(&[
    FRAME.cell(|_, frames| Cell::new(&frames.pfn)),
    PHYSICAL.rank(3).cell(|_, frames| frames.physical.as_ref().map_or_else(unknown, Cell::new)),
    SIZE.cell(|_, frames| frames.bytes.map_or_else(unknown, Cell::size)),
    Column::number("frames", 7, Role::Size).rank(1).cell(|_, frames| Cell::count(frames.frames)),
    COUNT.cell(|_, frames| map_count(&frames.words)),
    Column::word("zone", 7, Role::Name).cell(|_, frames| fact(&frames.zone)),
    Column::number("node", 4, Role::Size).rank(2).cell(|_, frames| fact(&frames.node)),
    FLAGS.cell(|_, frames| flags(&frames.words.flags, false)),
]);

/// `walk … by KEY`, and `by KEY, KEY`.
static GROUPS: Table<PageGroup> = Table::of(&[
    MANY_PAGES.cell(|_, group| Cell::count(group.pages)),
    SIZE.cell(|_, group| Cell::size(group.bytes)),
    BAR.cell(|_, group| bar_of_largest(group.bytes)),
]);

/// Runs are in the order of their addresses, and compare by nothing.
static RUNS: Table<PageGroup> =
    Table::of(&[MANY_PAGES.cell(|_, group| Cell::count(group.pages)), SIZE.cell(|_, group| Cell::size(group.bytes))]);

/// The table of a group. Keys come last: they may be long, and are never cut.
pub fn groups(group: &PageGroup) -> Table<PageGroup> {
    let width = if group.second_by.is_some() { 14 } else { 20 };
    let key =
        |by: &str, cell: MakeCell<PageGroup>| Column::word(words::group_heading(by), width, Role::Plain).cell(cell);
    let first = key(&group.by, |_, group| group_key(&group.by, &group.key));
    let second = group.second_by.as_ref().map(|by| {
        key(by, |_, group| {
            let by = group.second_by.as_deref().unwrap_or_default();
            group_key(by, group.second_key.as_deref().unwrap_or_default())
        })
    });
    let values = if group.by == "run" { &RUNS } else { &GROUPS };
    if is_reversed(group) { values.by([second, Some(first)]) } else { values.by([Some(first), second]) }
}

/// Whether the second of two keys is shown first, because the first is long and long values stand last.
fn is_reversed(group: &PageGroup) -> bool {
    let is_long = |word: &str| Key::all().any(|key| key.is_long() && key.word() == word);
    is_long(&group.by) && group.second_by.as_ref().is_some_and(|second| !is_long(second))
}

fn group_key<'a>(by: &str, key: &'a str) -> Cell<'a> {
    let cell = match (by, State::from_word(key)) {
        ("region", _) if key.is_empty() => Cell::of(Role::Dim, ANONYMOUS),
        ("state", Some(state)) => Cell::of(words::state_role(state), key),
        _ => Cell::of(Role::Plain, key),
    };
    match (by, key.split_once(" /")) {
        ("region", Some((range, path))) => {
            let file = path.rsplit('/').next().unwrap_or(path);
            cell.or(format!("{range} {file}"))
        }
        ("flags", _) => cell.or(key.replace(',', ", ")),
        _ => cell,
    }
}

pub fn state(state: State) -> Cell<'static> {
    Cell::of(words::state_role(state), state.word())
}

fn kind(pages: &PagesRow) -> Cell<'_> {
    match (&pages.kind, pages.frames, &pages.huge) {
        (Err(why), ..) => reason(why),
        // There is one zero page: the word says so.
        (Ok(kind @ (Kind::Zero | Kind::HugeZero)), ..) => Cell::new(kind.word()),
        (Ok(kind), Some(frames), _) => {
            let frames = match frames {
                2.. => format!("{} frames", count(frames)),
                _ => "one frame".to_owned(),
            };
            Cell::new(format!("{}, {frames}", kind.word()))
        }
        (Ok(kind @ (Kind::Anonymous | Kind::File | Kind::Shmem)), None, Ok(true)) => {
            Cell::new(format!("{} huge", kind.word()))
        }
        (Ok(kind), ..) => Cell::new(kind.word()),
    }
}

fn region(pages: &PagesRow) -> Cell<'_> {
    match &pages.region {
        Some(name) => {
            // Its private mappings are anonymous.
            let is_shared = matches!(pages.kind, Ok(Kind::Shmem));
            let (role, name) = mapped_file_name(name, is_shared);
            Cell::of(role, name)
        }
        None => none(),
    }
}

/// Flags of most pages in use, or implied by the kind.
const EVERYDAY: PageFlags = PageFlags::UPTODATE
    .union(PageFlags::LRU)
    .union(PageFlags::MMAP)
    .union(PageFlags::ANON)
    .union(PageFlags::SWAPBACKED)
    .union(PageFlags::COMPOUND_HEAD)
    .union(PageFlags::COMPOUND_TAIL);

/// Flags as the letters of page-types, without places for those that are not set.
fn letters<'a>(flags: &Fact<PageFlags>) -> Cell<'a> {
    match flags {
        Ok(flags) if flags.is_empty() => Cell::of(Role::Dim, "none set"),
        Ok(flags) => Cell::new(flags.set_letters()).letters(),
        Err(why) => reason(why),
    }
}

/// Flags by name, or as letters where the terminal is narrow: in all rows of a table alike.
pub fn names_or_letters<'a>(style: &Style, flags: &Fact<PageFlags>, pmd_mapped: bool) -> Cell<'a> {
    if style.is_narrow() { letters(flags) } else { self::flags(flags, pmd_mapped) }
}

/// Flags by name, the everyday ones last. If there is no room for all, they are the letters of page-types.
pub fn flags<'a>(flags: &Fact<PageFlags>, pmd_mapped: bool) -> Cell<'a> {
    let flags = match flags {
        Ok(flags) => *flags,
        Err(why) => return reason(why),
    };
    let telling = words::flag_names(flags.difference(EVERYDAY), pmd_mapped);
    let everyday = flags.intersection(EVERYDAY).names();
    if flags.is_empty() {
        return Cell::of(Role::Dim, "none set");
    }
    Cell::new([telling.as_slice(), &everyday].concat().join(" ")).or(flags.set_letters()).letters()
}

impl Record for WalkSummary {
    fn write(&self, text: &mut Text) {
        text.answer_of_rows(walk_summary, self);
        text.line(|lines, summary| remarks(lines, summary.cut_short, summary.changed), self);
        text.notes();
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", self.pages), ("_bytes", self.bytes)]
    }

    fn ends_pictures(&self) -> bool {
        true
    }
}

impl Record for FramesSummary {
    fn write(&self, text: &mut Text) {
        text.answer_of_rows(frames_summary, self);
        text.line(|lines, summary| remarks(lines, summary.cut_short, false), self);
        text.notes();
    }

    fn totals(&self, _: PageSize) -> Vec<(&'static str, u64)> {
        vec![("_pages", self.frames), ("_bytes", self.bytes)]
    }
}

/// The limit of devices with 32-bit addresses.
const FOUR_GIB: u64 = 1 << 32;

/// `512 pages, 2 MiB: 500 present, 12 untouched`, and how contiguous they are.
pub fn walk_summary(lines: &mut Lines, summary: &WalkSummary) {
    let line = lines.line();
    line.indent(2).plain(match summary.undecided {
        0 => total(summary.pages, "page", summary.bytes),
        _ => total_known(summary.pages, "page", summary.bytes),
    });
    let mut separator = ": ";
    for (state, pages) in summary.states.iter().filter(|(_, pages)| **pages > 0) {
        let text = format!("{} {}", count(*pages), state.word());
        line.word(separator, words::state_role(*state), text);
        separator = ", ";
    }
    if let (Some(runs), Some(longest)) = (summary.runs, summary.longest_run_bytes)
        && runs > 0
    {
        let runs = counted(runs, "physical run");
        line.word("; ", Role::Plain, runs).word(", ", Role::Plain, format!("the longest {}", size(longest)));
        if let Some(start) = summary.longest_run_start {
            line.plain(" at ").push(Role::Address, start);
        }
    }
    if let Some(PhysicalExtent { lowest, highest, zeros }) = summary.physical {
        let line = lines.line();
        line.indent(2)
            .plain("physical addresses ")
            .push(Role::Physical, lowest)
            .plain(" to ")
            .push(Role::Physical, highest);
        line.plain(match (lowest.get() < FOUR_GIB, highest.get() < FOUR_GIB) {
            (_, true) => ": all below 4 GiB",
            (true, false) => ": some below 4 GiB, some not",
            (false, false) => ": none below 4 GiB",
        });
        if zeros > 0 {
            line.plain(format!(" ({} left out)", counted(zeros, "zero page")));
        }
    }
}

/// Notes that the totals are incomplete, or that regions changed meanwhile.
pub fn remarks(lines: &mut Lines, is_cut_short: bool, is_changed: bool) {
    if is_cut_short {
        cut_short(lines);
    }
    if is_changed {
        note_change(lines, "the regions");
    }
}

/// `512 pages, 2 MiB`; `no page matches`.
pub fn total(number: u64, noun: &str, bytes: u64) -> String {
    match number {
        0 => format!("no {noun} matches"),
        _ => format!("{}, {}", counted(number, noun), size(bytes)),
    }
}

/// The same where a filter has no answer for some: `no page is known to match`.
fn total_known(number: u64, noun: &str, bytes: u64) -> String {
    match number {
        0 => format!("no {noun} is known to match"),
        _ => total(number, noun, bytes),
    }
}

/// Notes that `what` changed during the command.
pub fn note_change(lines: &mut Lines, what: &str) {
    let line = lines.line();
    line.prose(Role::Warn, format!("{what} changed during the command: run it again for a consistent answer"));
}

/// `512 frames, 2 MiB`, and where memory ends if the range goes past that.
pub fn frames_summary(lines: &mut Lines, summary: &FramesSummary) {
    let line = lines.line();
    line.indent(2).plain(match summary.undecided {
        0 => total(summary.frames, "frame", summary.bytes),
        _ => total_known(summary.frames, "frame", summary.bytes),
    });
    if let Some(end) = summary.memory_ends {
        line.plain("; physical memory ends before frame ").push(Role::Frame, end);
    }
}

/// Notes that a walk was not finished.
fn cut_short(lines: &mut Lines) {
    let line = lines.line();
    line.push(Role::Note, "stopped early: the totals cover only the rows above");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::field::{FilterField, PageField};

    fn titles<T>(table: &Table<T>) -> Vec<&'static str> {
        table.columns().iter().map(|column| column.title).collect()
    }

    #[test]
    fn headings_of_pages_are_fields() {
        let of_more_than_a_page = ["end", "size", "pages", "frames", "region", "flags"];
        let headings = [titles(&PAGE_ROWS), titles(&FRAME_ROWS)].concat();
        for heading in headings.iter().filter(|heading| !of_more_than_a_page.contains(heading)) {
            assert!(PageField::from_name(heading).is_some(), "{heading}");
        }
    }
}
