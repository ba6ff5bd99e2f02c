//! The rows of `huge` for the reasons why memory is not on huge pages.

use crate::kernel::VirtualAddress;
use crate::kernel::words::{Worded as _, fragment};
use crate::render::Record;
use crate::render::columns::{Cell, Column, ColumnOf, END, START, Table, amount, none};
use crate::render::text::Text;
use crate::render::text::block::{ANONYMOUS, mapped_file_name};
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{HugeBy, HugeRefusal, RegionBrief};
use std::borrow::Cow;
use std::cmp::Reverse;

record! {
    /// A row of `huge`: a reason for small pages.
    pub struct HugeRow as "huge-reason" {
        /// Who makes no huge page.
        by: HugeBy,
        /// Why not; `null` if no obstacle is visible now.
        reason: Option<HugeRefusal>,
        /// Bytes that it concerns: untouched ones for a fault, small pages for khugepaged. Several reasons may concern
        /// the same bytes.
        bytes: u64,
        /// All bytes of this kind: untouched ones for a fault, those in small pages or in swap for khugepaged.
        of: u64,
        /// Of `bytes`, those for which the kernel finds this reason first.
        first: u64,
        /// Of these, the bytes for which there is no other reason.
        only: u64,
        /// The region with most of them.
        region: Option<RegionBrief>,
        /// Of these, those in that region.
        region_bytes: u64,
        /// Of a range: the parts of memory that it concerns, in order; left out if there are many.
        [optional] parts: Option<Vec<HugePart>>,
    }

    /// A part of memory that a reason concerns: neighbouring places of huge pages in one region.
    #[derive(Eq)]
    pub struct HugePart {
        /// First address.
        start: VirtualAddress,
        /// The address after the last one.
        end: VirtualAddress,
        /// Bytes in it that the reason concerns.
        bytes: u64,
    }
}

impl Record for HugeRow {
    fn write(&self, text: &mut Text) {
        let [table, parts] = match self.by {
            HugeBy::Fault => [&UNTOUCHED, &UNTOUCHED_PARTS],
            HugeBy::Khugepaged => [&RESIDENT, &RESIDENT_PARTS],
        };
        let Some(all) = &self.parts else {
            return text.row_of_share(table, self, Some(&words(self)), (self.bytes, self.of));
        };
        for part in all {
            let row = HugeRow { parts: Some(vec![part.clone()]), ..self.clone() };
            text.row_of_share(parts, &row, Some(&words(self)), (part.bytes, self.of));
        }
    }
}

/// Reasons of khugepaged, and those of page faults.
static RESIDENT: Table<HugeRow> = Table::of(&[
    BYTES.cell(|_, row| Cell::size(row.bytes)),
    ONLY.cell(|_, row| amount(row.only)),
    MOSTLY_IN.cell(|_, row| mostly_in(row)),
    WHY_SMALL.cell(|_, row| reason(row)),
]);

static UNTOUCHED: Table<HugeRow> = Table::of(&[
    BYTES.cell(|_, row| Cell::size(row.bytes)),
    ONLY.cell(|_, row| amount(row.only)),
    MOSTLY_IN.cell(|_, row| mostly_in(row)),
    IN_THE_WAY.cell(|_, row| reason(row)),
]);

/// The same of a range, if it has few parts: a row for each.
static RESIDENT_PARTS: Table<HugeRow> =
    Table::of(&[PART_START, PART_END, PART_BYTES, WHY_SMALL.cell(|_, row| reason(row))]);
static UNTOUCHED_PARTS: Table<HugeRow> =
    Table::of(&[PART_START, PART_END, PART_BYTES, IN_THE_WAY.cell(|_, row| reason(row))]);

const PART_START: ColumnOf<HugeRow> = START.cell(|_, row| part(row, |part| Cell::new(&part.start)));
const PART_END: ColumnOf<HugeRow> = END.cell(|_, row| part(row, |part| Cell::new(&part.end)));
const PART_BYTES: ColumnOf<HugeRow> = BYTES.cell(|_, row| part(row, |part| Cell::size(part.bytes)));

/// A cell of the only part of a row.
fn part(row: &HugeRow, cell: fn(&HugePart) -> Cell<'_>) -> Cell<'_> {
    row.parts.as_ref().and_then(|parts| parts.first()).map_or_else(none, cell)
}

const WHY_SMALL: Column = Column::word("resident: why it stays small", 34, Role::Plain);
const IN_THE_WAY: Column = Column::word("untouched: what is in the way of a huge page", 34, Role::Plain);
const BYTES: Column = Column::number("bytes", 8, Role::Size);
const ONLY: Column = Column::number("only this", 9, Role::Size);
const MOSTLY_IN: Column = Column::name("mostly in", 14, Role::Address).rank(1);

fn reason(row: &HugeRow) -> Cell<'static> {
    let role = if row.reason.is_none() { Role::Good } else { Role::Plain };
    Cell::of(role, words(row))
}

/// Sorts the rows: those of resident memory first, and of these the largest.
pub(super) fn sort(rows: &mut [HugeRow]) {
    rows.sort_by_cached_key(|row| (Reverse(row.by), Reverse(weight(row))));
}

/// What decides which of two rows comes first, and which reason is the main one.
pub(super) fn weight(row: &HugeRow) -> (u64, u64) {
    (row.bytes, row.only)
}

pub(super) fn words(row: &HugeRow) -> Cow<'static, str> {
    match (row.reason, row.by) {
        (Some(reason), _) => fragment(reason.about()).into(),
        (None, HugeBy::Fault) => "nothing: the next access maps one".into(),
        (None, HugeBy::Khugepaged) => "no obstacle now".into(),
    }
}

/// `libc.so.6`; the address of a region without a name.
fn mostly_in(row: &HugeRow) -> Cell<'_> {
    row.region.as_ref().map_or_else(none, |region| match mapped_file_name(&region.name, region.without_path).1 {
        name if name == ANONYMOUS => Cell::new(&region.start),
        name => Cell::of(Role::Name, name),
    })
}
