//! Line programs: which row an address lies in, and where the rows of a line are.

use super::NoLines;
use super::ranges::NOWHERE;
use super::sections::Bytes;
use crate::budget::Budget;
use gimli::{ColumnType, LineRow, Unit};
use std::ops::ControlFlow;

/// Where in the source an instruction comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    /// File address of the first instruction.
    pub(super) address: u64,
    /// Number of the file in the unit's table.
    pub(super) file: u64,
    /// `None` for code that the compiler added.
    pub(super) line: Option<u64>,
    /// `None` if unknown.
    pub(super) column: Option<u64>,
    /// Whether a debugger would stop there.
    pub(super) is_statement: bool,
}

impl Row {
    fn of(row: &LineRow) -> Row {
        Row {
            address: row.address(),
            file: row.file_index(),
            line: row.line().map(std::num::NonZero::get),
            column: match row.column() {
                ColumnType::LeftEdge => None,
                ColumnType::Column(column) => Some(column.get()),
            },
            is_statement: row.is_stmt(),
        }
    }
}

/// A row, and the address of the next one: its own, if it has no code.
pub(super) type Stretch = (Row, u64);

/// Whether to go on.
type Passed = Result<ControlFlow<()>, NoLines>;

/// Visits the rows of a unit until `visit` breaks. Sequences that linkers left out of the program are skipped. `visit`
/// also receives the start of each row's sequence.
fn pass(
    unit: &Unit<Bytes<'_>>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(u64, &LineRow) -> Passed,
) -> Result<(), NoLines> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let mut rows = program.rows();
    let mut begin = None;
    while let Some((_, row)) = rows.next_row()? {
        budget.go_on()?;
        let start = *begin.get_or_insert(row.address());
        if row.end_sequence() {
            begin = None;
        }
        if start != NOWHERE && visit(start, row)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Visits the rows of a unit until `visit` breaks.
pub(super) fn each_row(
    unit: &Unit<Bytes<'_>>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(Stretch) -> ControlFlow<()>,
) -> Result<(), NoLines> {
    let mut before: Option<Row> = None;
    pass(unit, budget, &mut |_, row| {
        let next = (!row.end_sequence()).then(|| Row::of(row));
        Ok(match std::mem::replace(&mut before, next) {
            Some(before) if before.address <= row.address() => visit((before, row.address())),
            _ => ControlFlow::Continue(()),
        })
    })
}

/// Visits the stretches of addresses that the line program of a unit covers.
pub(super) fn each_sequence(
    unit: &Unit<Bytes<'_>>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(u64, u64) -> Result<(), NoLines>,
) -> Result<(), NoLines> {
    pass(unit, budget, &mut |start, row| {
        if row.end_sequence() && start < row.address() {
            visit(start, row.address())?;
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The row that `address` lies in.
pub(super) fn row_at(unit: &Unit<Bytes<'_>>, address: u64, budget: &mut Budget) -> Result<Option<Stretch>, NoLines> {
    let mut found = None;
    each_row(unit, budget, &mut |(row, end)| {
        if row.address <= address && address < end {
            found = Some((row, end));
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(found)
}
