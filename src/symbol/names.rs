//! The names of a module's symbols in memory, while many of them are needed.

use super::NoSymbols;
use super::elf::{File, FileRange, LONGEST_NAME};
use super::sources::Sources;
use super::table::Symbol;
use crate::budget::Budget;

/// String tables larger than this are never held in memory, and never searched.
const LARGEST: u64 = 256 << 20;

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
        sources
            .tables()
            .map(|(source, table)| strings(&source.file, table.strings, budget))
            .collect::<Result<_, _>>()
            .map(Names)
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

/// A string table, read whole.
pub(super) fn strings(file: &File, range: FileRange, budget: &mut Budget) -> Result<Vec<u8>, NoSymbols> {
    if range.size > LARGEST {
        Err(NoSymbols::Damaged("symbol names of implausible size"))
    } else {
        file.read_within(range, "symbol names", budget)
    }
}

/// The string at the beginning of `rest`; `None` if it is too long.
pub(super) fn up_to_end(rest: &[u8]) -> Option<&[u8]> {
    let within = rest.get(..LONGEST_NAME).unwrap_or(rest);
    let end = memchr::memchr(0, within)?;
    within.get(..end)
}
