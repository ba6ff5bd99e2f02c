//! The index over a module's symbols: the address space of the file cut into intervals, each with its symbol.
//!
//! It gives the same answers as [`look_up`](super::lookup::look_up), by binary search instead of a pass over the table.

use super::NoSymbols;
use super::elf::Elf;
use super::interval_map::{IntervalMap, NONE};
use super::lookup::{Best, Nearest};
use super::names::{Names, Spot};
use super::sources::Sources;
use super::table::{self, Kind, NO_NAME, Rank, Symbol};
use crate::budget::Budget;
use crate::source::memory;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;

/// For more symbols no index is built (it would take hundreds of megabytes): every look-up remains a pass.
const MOST_SYMBOLS: usize = 2 << 20;
/// Memory of a symbol while the index is built: itself, twice as the vector doubles, and its places and intervals.
const A_SYMBOL: usize = 2 * size_of::<Symbol>() + 64;

/// What is kept of all symbols.
pub(super) struct Index {
    intervals: IntervalMap,
    /// In order of address.
    symbols: Vec<Symbol>,
    /// The place of each name, beside `symbols`: the processor then loads both at the same time.
    spots: Vec<Spot>,
    names: Names,
}

impl Index {
    /// Reads all symbols; `None` if there are too many.
    pub(super) fn build(sources: &Sources, budget: &mut Budget) -> Result<Option<Index>, NoSymbols> {
        let (mut symbols, mut fits) = (Vec::new(), Ok(()));
        let mut too_many = false;
        table::visit(sources, budget, &mut |symbol| {
            too_many = symbols.len() >= MOST_SYMBOLS;
            if too_many {
                return ControlFlow::Break(());
            }
            if symbol.kind != Kind::Tls {
                if symbols.len() == symbols.capacity() {
                    fits = memory::check((symbols.len() * A_SYMBOL) as u64);
                }
                symbols.push(symbol);
            }
            match fits {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        fits?;
        if too_many {
            return Ok(None);
        }
        symbols.sort_unstable_by_key(order);
        let names = Names::read(sources, budget)?;
        Ok(Some(Index {
            intervals: sweep(&sources.image.elf, &symbols, &names),
            spots: symbols.iter().map(Spot::of).collect(),
            symbols,
            names,
        }))
    }

    /// The symbol at a file address, and its name.
    pub(super) fn symbol_at(&self, address: u64) -> Option<(Symbol, &[u8])> {
        let position = usize::try_from(self.intervals.at(address)?).ok()?;
        let symbol = *self.symbols.get(position)?;
        let name = self.names.at(*self.spots.get(position)?)?;
        Some((symbol, name))
    }

    /// The names of all symbols.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }
}

/// By address; symbols with the same start stay in the order of their tables.
fn order(symbol: &Symbol) -> (u64, u8, u32) {
    (symbol.address, symbol.table, symbol.number)
}

/// A symbol that covers the current place of the sweep; the one that the place belongs to comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Covering {
    start: u64,
    rank: Rank,
    position: Reverse<u32>,
}

/// Visits all places where the answer can change, in order, with the symbols that cover each.
fn sweep(elf: &Elf, symbols: &[Symbol], names: &Names) -> IntervalMap {
    let mut places: Vec<u64> = symbols
        .iter()
        .flat_map(|symbol| [symbol.address, symbol.address.saturating_add(symbol.size)])
        .chain(elf.section_bounds())
        .collect();
    places.sort_unstable();
    places.dedup();

    let mut coming = (0..).zip(symbols).peekable();
    let mut covering: BinaryHeap<Covering> = BinaryHeap::new();
    let mut nearest: HashMap<u16, Nearest> = HashMap::new();
    let mut intervals = IntervalMap::default();
    for place in places {
        while let Some((position, symbol)) = coming.next_if(|(_, one)| one.address <= place) {
            if symbol.size > 0 {
                covering.push(Covering { start: symbol.address, rank: symbol.rank(), position: Reverse(position) });
            }
            if let Some(section) = symbol.section {
                nearest.entry(section).or_default().offer(*symbol);
            }
        }
        let beginning = |symbol: &Symbol| {
            let mut bytes = NO_NAME;
            bytes.iter_mut().zip(names.from(symbol)).for_each(|(into, &byte)| *into = byte);
            bytes
        };
        let symbol = speaking(symbols, &mut covering, place)
            .choose(beginning)
            .or_else(|| {
                let section = u16::try_from(elf.section_at(place)?).ok()?;
                nearest.get(&section)?.reaching()?.choose(beginning)
            })
            .and_then(|symbol| symbols.binary_search_by_key(&order(&symbol), order).ok())
            .and_then(|position| u32::try_from(position).ok())
            .unwrap_or(NONE);
        intervals.add(place, symbol);
    }
    intervals
}

/// The best of the symbols that cover `place`. Those that end before it leave the heap for good.
fn speaking(symbols: &[Symbol], covering: &mut BinaryHeap<Covering>, place: u64) -> Best {
    let symbol_of = |one: &Covering| {
        let symbol = symbols.get(usize::try_from(one.position.0).ok()?)?;
        symbol.covers(place).then_some(*symbol)
    };
    let mut best = Best::default();
    let mut kept = Vec::new();
    while let Some(top) = covering.pop() {
        match symbol_of(&top) {
            None => continue,
            Some(symbol) => {
                let taken = best.offer(symbol);
                kept.push(top);
                if !taken {
                    break;
                }
            }
        }
    }
    covering.extend(kept);
    best
}
