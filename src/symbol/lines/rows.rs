//! Line programs: the row of an address, and the code of a line in one unit.

use super::scopes::{FunctionScope, NOWHERE};
use super::sections::SectionReader;
use super::{NoLines, path};
use crate::budget::Budget;
use gimli::{ColumnType, Dwarf, IncompleteLineProgram, LineRow, LineRows, Unit};
use std::collections::HashSet;

/// The source position of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InstructionRow {
    /// The file address of the first instruction.
    pub(super) address: u64,
    /// The number of the file in the unit's table.
    pub(super) file: u64,
    /// The line; `None` for code that the compiler added.
    pub(super) line: Option<u64>,
    /// The column; `None` if unknown.
    pub(super) column: Option<u64>,
    /// Whether a debugger would stop there.
    is_statement: bool,
}

impl InstructionRow {
    fn of(row: &LineRow) -> InstructionRow {
        InstructionRow {
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

/// A row, and the address of the next one, which is equal if the row has no code.
pub(super) type RowStretch = (InstructionRow, u64);

/// Reads the rows of a unit. Sequences that linkers left out of the program are skipped.
pub(super) struct RowPass<'a> {
    rows: Option<LineRows<SectionReader<'a>, IncompleteLineProgram<SectionReader<'a>>>>,
    /// The start of the current sequence.
    begin: Option<u64>,
    before: Option<InstructionRow>,
}

impl<'a> RowPass<'a> {
    pub(super) fn new(unit: &Unit<SectionReader<'a>>) -> Self {
        RowPass { rows: unit.line_program.clone().map(|program| program.rows()), begin: None, before: None }
    }

    /// Returns the next row, and the start of its sequence.
    fn row(&mut self, budget: &mut Budget) -> Result<Option<(u64, LineRow)>, NoLines> {
        while let Some(rows) = &mut self.rows
            && let Some((_, row)) = rows.next_row()?
        {
            budget.go_on()?;
            let start = *self.begin.get_or_insert(row.address());
            if row.end_sequence() {
                self.begin = None;
            }
            if start != NOWHERE {
                return Ok(Some((start, *row)));
            }
        }
        Ok(None)
    }

    /// Returns the next row, and its end.
    pub(super) fn stretch(&mut self, budget: &mut Budget) -> Result<Option<RowStretch>, NoLines> {
        while let Some((_, row)) = self.row(budget)? {
            let (address, next) = (row.address(), (!row.end_sequence()).then(|| InstructionRow::of(&row)));
            let before = std::mem::replace(&mut self.before, next);
            if let Some(before) = before.filter(|before| before.address <= address) {
                return Ok(Some((before, address)));
            }
        }
        Ok(None)
    }

    /// Returns the next range of addresses that the line program covers.
    pub(super) fn sequence(&mut self, budget: &mut Budget) -> Result<Option<(u64, u64)>, NoLines> {
        while let Some((start, row)) = self.row(budget)? {
            if row.end_sequence() && start < row.address() {
                return Ok(Some((start, row.address())));
            }
        }
        Ok(None)
    }
}

/// Returns the row that contains `address`.
pub(super) fn row_at(
    unit: &Unit<SectionReader<'_>>,
    address: u64,
    budget: &mut Budget,
) -> Result<Option<RowStretch>, NoLines> {
    let mut rows = RowPass::new(unit);
    while let Some((row, end)) = rows.stretch(budget)? {
        if row.address <= address && address < end {
            return Ok(Some((row, end)));
        }
    }
    Ok(None)
}

/// The most rows of one line, in all units together.
pub(super) const MOST_ROWS: usize = 1 << 16;

/// A run of code of a line in one function, or in one copy of an inlined one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CodePlace {
    /// The first row.
    pub(super) row: InstructionRow,
    /// The address after the code: equal to the first, if the line only begins here and the code belongs to the next
    /// one.
    pub(super) end: u64,
    /// Whether the code is the first statement of the line in its function or copy, where a debugger stops; or the
    /// first code, if the line has no statement there.
    pub(super) is_first: bool,
    /// The functions around the code, the outermost first.
    pub(super) chain: Vec<FunctionScope>,
}

/// Returns the numbers of the files that a name selects, in order.
pub(super) fn files_meant(
    dwarf: &Dwarf<SectionReader<'_>>,
    unit: &Unit<SectionReader<'_>>,
    wanted: &[u8],
    budget: &mut Budget,
) -> Result<Vec<u64>, NoLines> {
    let mut files = Vec::new();
    let may_be = |name: &[u8]| path::may_be_meant(name, wanted);
    for file in path::files(dwarf, unit, may_be) {
        budget.go_on()?;
        files.extend(file.filter(|(_, path)| path::is_meant(path, wanted)).map(|(number, _)| number));
    }
    Ok(files)
}

/// Returns the line with code or a statement: `line`, or the next one that has. In optimized programs many lines have
/// code, but no statement where a debugger would stop.
pub(super) fn line_with_code(
    unit: &Unit<SectionReader<'_>>,
    files: &[u64],
    line: u64,
    budget: &mut Budget,
) -> Result<Option<u64>, NoLines> {
    let mut best: Option<u64> = None;
    let mut rows = RowPass::new(unit);
    while best != Some(line)
        && let Some((row, end)) = rows.stretch(budget)?
    {
        if let Some(found) = row.line
            && (row.is_statement || row.address < end)
            && found >= line
            && best.is_none_or(|known| found < known)
            && files.binary_search(&row.file).is_ok()
        {
            best = Some(found);
        }
    }
    Ok(best)
}

/// Returns the first `most` rows of a line, in order of their addresses, and whether there are more.
pub(super) fn rows_of(
    unit: &Unit<SectionReader<'_>>,
    files: &[u64],
    line: u64,
    most: usize,
    budget: &mut Budget,
) -> Result<(Vec<RowStretch>, bool), NoLines> {
    let mut stretches: Vec<RowStretch> = Vec::new();
    let mut rows = RowPass::new(unit);
    while stretches.len() <= most
        && let Some((row, end)) = rows.stretch(budget)?
    {
        if row.line == Some(line) && (row.is_statement || row.address < end) && files.binary_search(&row.file).is_ok() {
            stretches.push((row, end));
        }
    }
    let is_cut = stretches.len() > most;
    stretches.truncate(most);
    stretches.sort_by_cached_key(|(row, end)| (row.address, *end));
    Ok((stretches, is_cut))
}

/// Joins adjacent rows of one statement; `chains` has the functions around each.
pub(super) fn join_rows(rows: Vec<RowStretch>, chains: Vec<Vec<FunctionScope>>) -> Vec<CodePlace> {
    let mut seen = HashSet::new();
    let mut places: Vec<CodePlace> = Vec::new();
    for ((row, end), mut chain) in rows.into_iter().zip(chains) {
        if row.address == end {
            leave_call(&row, &mut chain);
        }
        if let Some(last) = places.last_mut()
            && last.end == row.address
            && last.chain == chain
            && last.row.file == row.file
            && (last.row.is_statement || !row.is_statement)
            && (last.row.column == row.column || !row.is_statement || last.row.address == last.end)
        {
            if last.row.address == last.end {
                last.row = InstructionRow { is_statement: last.row.is_statement, ..row };
            }
            last.end = end;
            continue;
        }
        let function = chain.last().map(|scope| scope.entry.0);
        let is_first = row.is_statement && function.is_none_or(|function| seen.insert(function));
        // A statement without code, between two others, is left out.
        if is_first || row.address < end {
            places.push(CodePlace { row, end, is_first, chain });
        }
    }
    for place in &mut places {
        let function = place.chain.last().map(|scope| scope.entry.0);
        place.is_first |= function.is_some_and(|function| seen.insert(function));
    }
    if places.iter().all(|place| !place.is_first)
        && let Some(first) = places.first_mut()
    {
        first.is_first = true;
    }
    places
}

/// Handles a statement without code that may be an inlined call: the code after it belongs to the called function, the
/// statement to the caller.
fn leave_call(row: &InstructionRow, chain: &mut Vec<FunctionScope>) {
    let is_there = |scope: &FunctionScope| {
        let call = scope.call;
        call.is_some_and(|call| call.line == row.line && call.file == row.file)
    };
    if let Some(number) = chain.iter().position(is_there) {
        chain.truncate(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::lines::scopes::InlinedCall;
    use gimli::UnitOffset;

    fn stretch(begin: u64, end: u64, column: u64, is_statement: bool) -> RowStretch {
        let row = InstructionRow { address: begin, file: 1, line: Some(7), column: Some(column), is_statement };
        (row, end)
    }

    fn chain_of(entry: usize) -> Vec<FunctionScope> {
        vec![FunctionScope { entry: UnitOffset(entry), call: None }]
    }

    fn places_of(rows: &[(RowStretch, usize)]) -> Vec<(u64, u64, bool)> {
        let (rows, chains) = rows.iter().map(|&(row, entry)| (row, chain_of(entry))).unzip();
        let places = join_rows(rows, chains);
        places.iter().map(|one| (one.row.address, one.end, one.is_first)).collect()
    }

    #[test]
    fn rows_of_one_statement_are_one_place() {
        let rows = [
            (stretch(10, 14, 5, true), 1),
            (stretch(14, 16, 5, true), 1),
            (stretch(16, 20, 9, false), 1),
            // Another statement of the line, which continues after a gap.
            (stretch(20, 24, 9, true), 1),
            (stretch(30, 34, 9, true), 1),
        ];
        let expected = [(10, 20, true), (20, 24, false), (30, 34, false)];
        assert_eq!(places_of(&rows), expected);
    }

    #[test]
    fn a_line_without_statements_has_a_first_place_too() {
        let rows = [(stretch(10, 14, 5, false), 1), (stretch(20, 24, 5, false), 1), (stretch(30, 34, 5, false), 2)];
        let expected = [(10, 14, true), (20, 24, false), (30, 34, true)];
        assert_eq!(places_of(&rows), expected);
        let outside = join_rows(vec![stretch(10, 14, 5, false)], vec![Vec::new()]);
        assert!(outside[0].is_first);
    }

    #[test]
    fn each_copy_has_its_first_place() {
        let rows = [
            (stretch(10, 14, 5, true), 1),
            (stretch(14, 18, 5, true), 2),
            (stretch(18, 20, 5, false), 3),
            (stretch(20, 24, 5, true), 3),
        ];
        let expected = [(10, 14, true), (14, 18, true), (18, 20, false), (20, 24, true)];
        assert_eq!(places_of(&rows), expected);
    }

    #[test]
    fn an_inlined_call_is_not_in_the_called_function() {
        let called = |line| FunctionScope {
            entry: UnitOffset(2),
            call: Some(InlinedCall { file: 1, line: Some(line), column: None }),
        };
        for (line, functions) in [(7, 1), (6, 2)] {
            let chain = [chain_of(1), vec![called(line)]].concat();
            let places = join_rows(vec![stretch(10, 10, 5, true)], vec![chain]);
            assert_eq!(places[0].chain.len(), functions);
        }
    }

    #[test]
    fn a_statement_without_code_is_listed_if_nothing_else_is() {
        let rows = [
            (stretch(10, 10, 5, true), 1),
            (stretch(10, 10, 9, true), 1),
            (stretch(20, 24, 5, true), 2),
            (stretch(24, 24, 9, true), 2),
            (stretch(30, 30, 5, true), 2),
            (stretch(40, 40, 5, true), 3),
            (stretch(40, 44, 9, true), 3),
        ];
        let expected = [(10, 10, true), (20, 24, true), (40, 44, true)];
        assert_eq!(places_of(&rows), expected);
    }
}
