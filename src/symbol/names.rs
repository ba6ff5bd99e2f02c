//! The names of a module's symbols in memory, while many of them are needed.

use super::NoSymbols;
use super::elf::{File, FileRange, LONGEST_NAME, Source, Table};
use super::sources::Sources;
use super::table::Symbol;
use crate::budget::Budget;
use std::ops::ControlFlow;

/// String tables larger than this are never held in memory, and never searched.
const LARGEST: u64 = 256 << 20;

/// What is read, for errors.
const WHAT: &str = "symbol names";

/// Where a name begins: the number of its table, and the offset there.
#[derive(Clone, Copy)]
pub(super) struct Spot(u32);

/// The bits of the offset, below [`LARGEST`]; the number of the table is above them.
const OFFSET_BITS: u32 = LARGEST.trailing_zeros();
const OFFSET: u32 = (1 << OFFSET_BITS) - 1;

impl Spot {
    /// Where the name of a symbol begins.
    pub(super) fn of(symbol: &Symbol) -> Spot {
        let table = u32::from(symbol.table);
        if symbol.name <= OFFSET && table < 1 << (u32::BITS - OFFSET_BITS) {
            Spot(table << OFFSET_BITS | symbol.name)
        } else {
            Spot(u32::MAX)
        }
    }
}

/// The string tables of a module, one for each symbol table.
pub(super) struct Names(Vec<Vec<u8>>);

impl Names {
    /// Reads them whole.
    pub(super) fn read(sources: &Sources, budget: &mut Budget) -> Result<Names, NoSymbols> {
        Names::read_some(sources, &|_| true, budget)
    }

    /// Reads those that are wanted, by the number of their table. The others stay empty.
    pub(super) fn read_some(
        sources: &Sources,
        is_wanted: &dyn Fn(u8) -> bool,
        budget: &mut Budget,
    ) -> Result<Names, NoSymbols> {
        let read = |(number, (source, table)): (u8, (&Source, &Table))| {
            if is_wanted(number) { strings(&source.file, table.strings, budget) } else { Ok(Vec::new()) }
        };
        sources.numbered().map(read).collect::<Result<_, _>>().map(Names)
    }

    /// A string table.
    pub(super) fn of_table(&self, number: u8) -> &[u8] {
        self.0.get(usize::from(number)).map_or(&[], Vec::as_slice)
    }

    /// The string table from the beginning of a symbol's name on, for comparing only its first bytes.
    pub(super) fn from(&self, symbol: &Symbol) -> &[u8] {
        self.behind(Spot::of(symbol)).unwrap_or_default()
    }

    fn behind(&self, Spot(spot): Spot) -> Option<&[u8]> {
        let names = self.0.get(usize::try_from(spot >> OFFSET_BITS).ok()?)?;
        names.get(usize::try_from(spot & OFFSET).ok()?..)
    }

    /// The name there; `None` if it is too long.
    pub(super) fn at(&self, spot: Spot) -> Option<&[u8]> {
        up_to_end(self.behind(spot)?)
    }

    /// A symbol's name; `None` if it is too long.
    pub(super) fn get(&self, symbol: &Symbol) -> Option<&[u8]> {
        self.at(Spot::of(symbol))
    }
}

/// Whether `is_there` finds what it looks for, which has `length` bytes at most, in one of the parts of a string table.
/// The table is not kept: to make room for a large one takes longer than to search it.
pub(super) fn has(
    file: &File,
    range: FileRange,
    length: usize,
    is_there: &dyn Fn(&[u8]) -> bool,
    budget: &mut Budget,
) -> Result<bool, NoSymbols> {
    check_size(range)?;
    // The end of one part and the beginning of the next.
    let mut joint = Vec::new();
    let flow = file.pass::<u8>(range, WHAT, budget, &mut |part, _| {
        joint.extend(part.iter().take(length));
        let found = is_there(part) || is_there(&joint);
        joint.clear();
        joint.extend(part.get(part.len().saturating_sub(length)..).unwrap_or(part));
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(flow.is_break())
}

/// A string table, read whole.
pub(super) fn strings(file: &File, range: FileRange, budget: &mut Budget) -> Result<Vec<u8>, NoSymbols> {
    check_size(range)?;
    file.read_within(range, WHAT, budget)
}

fn check_size(range: FileRange) -> Result<(), NoSymbols> {
    if range.size > LARGEST { Err(NoSymbols::Damaged("symbol names of implausible size")) } else { Ok(()) }
}

/// The string at the beginning of `rest`; `None` if it is too long.
pub(super) fn up_to_end(rest: &[u8]) -> Option<&[u8]> {
    let within = rest.get(..LONGEST_NAME).unwrap_or(rest);
    let end = memchr::memchr(0, within)?;
    within.get(..end)
}
