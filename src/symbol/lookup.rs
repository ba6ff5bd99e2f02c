//! The symbol of an address: the rule, a look-up in one pass without an index, and the index.
//!
//! A symbol with a size covers `[address, address + size)`. If several cover an address, it belongs to the one that
//! starts last (an inner label, not the function around it). If none does, it belongs to the nearest symbol without a
//! size before it in the same section, unless a symbol with a size begins between them. If the tables do not list all
//! symbols of the section ([`Sources::lists_all`]), anything may follow such a symbol, and only its first byte belongs
//! to it. Among symbols with the same start, [`Rank`](super::table::Rank) decides, and then the plainest name: the
//! fewest leading underscores, then a current version, then the shortest (`malloc` rather than `__libc_malloc`, `sqrt`
//! rather than `sqrtf32x`).
//!
//! The index gives the same answers by binary search. It divides the addresses of the file into intervals, each with
//! its symbol. Look-ups are scattered over the file, so their cost is cache misses. The layout limits a look-up to one
//! miss, in a block of intervals; the arrays that find the block are small enough to stay in the cache.

use super::NoSymbols;
use super::demangle::split_version;
use super::files::Sources;
use super::table::{self, NO_NAME, NameBeginning, Rank, Spot, StringTables, Symbol, SymbolKind, SymbolPass};
use crate::budget::{Budget, OutOfBudget};
use crate::own::memory;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// The most symbols of equal start and rank whose names are compared.
const MOST_RIVALS: usize = 16;

/// The best symbols so far, which have the same start and rank.
#[derive(Clone, Default)]
struct Best {
    key: Option<(u64, Rank)>,
    rivals: Vec<Symbol>,
}

impl Best {
    /// Adds `symbol` unless a better one was added, and returns whether it did. Callers add symbols in the order of
    /// their tables.
    fn offer(&mut self, symbol: Symbol) -> bool {
        let key = Some((symbol.address, symbol.rank()));
        if key > self.key {
            self.key = key;
            self.rivals.clear();
        }
        let taken = key == self.key && self.rivals.len() < MOST_RIVALS;
        if taken {
            self.rivals.push(symbol);
        }
        taken
    }

    /// Returns the symbol with the plainest name; `beginning` reads the first bytes of a name.
    pub(super) fn choose(&self, mut beginning: impl FnMut(&Symbol) -> NameBeginning) -> Option<Symbol> {
        self.rivals
            .iter()
            .map(|symbol| (symbol, beginning(symbol)))
            .filter(|(_, name)| name.first() != Some(&0))
            .min_by_key(|(_, name)| {
                let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
                let length = name.iter().take_while(|&&byte| byte != 0).count();
                let (base, is_old) = split_version(name.get(..length).unwrap_or_default());
                (underscores, is_old, base.len(), length)
            })
            .map(|(symbol, _)| *symbol)
    }
}

/// The nearest symbols before a place in its section.
#[derive(Clone, Default)]
struct NearestSymbols {
    start: Option<u64>,
    has_size: bool,
    best: Best,
}

impl NearestSymbols {
    /// Adds `symbol` unless a nearer one was added.
    fn offer(&mut self, symbol: Symbol) {
        let start = Some(symbol.address);
        if start > self.start {
            *self = NearestSymbols { start, ..NearestSymbols::default() };
        }
        if start == self.start {
            self.has_size |= symbol.size > 0;
            self.best.offer(symbol);
        }
    }

    /// Returns the symbols without a size to which `address` belongs, if there are any. `is_next` is true if the tables
    /// list all symbols of the section.
    fn reaching(&self, address: u64, is_next: bool) -> Option<&Best> {
        (!self.has_size && (is_next || self.start == Some(address))).then_some(&self.best)
    }
}

/// Finds the symbol of a file address in one pass over the tables. Only the names of equal candidates are read.
pub(super) fn look_up(sources: &Sources, address: u64, budget: &mut Budget) -> Result<Option<Symbol>, NoSymbols> {
    let section = sources.image.elf.section_at(address);
    let mut covering = Best::default();
    let mut nearest = NearestSymbols::default();
    let mut pass = SymbolPass::new(sources);
    while let Some(symbol) = pass.next(budget)? {
        if symbol.kind == SymbolKind::Tls || symbol.address > address {
            continue;
        }
        if symbol.covers(address) {
            covering.offer(symbol);
        }
        if symbol.section.map(u32::from) == section && section.is_some() {
            nearest.offer(symbol);
        }
    }
    let beginning = |symbol: &Symbol| table::beginning_of_name(sources, symbol);
    let reaching = || nearest.reaching(address, sources.lists_all(section?));
    Ok(covering.choose(beginning).or_else(|| reaching()?.choose(beginning)))
}

/// The most symbols of an index: a larger one would need hundreds of megabytes. Beyond it every look-up is a pass.
const MOST_SYMBOLS: usize = 2 << 20;
/// Bytes for each symbol while the index is built: twice the symbol, because the vector doubles, and its places and
/// intervals.
const A_SYMBOL: usize = 2 * size_of::<Symbol>() + 64;

/// An index of all symbols by address.
pub(super) struct SymbolIndex {
    intervals: IntervalMap,
    /// The symbols, in order of address.
    symbols: Vec<Symbol>,
    /// The place of each name, separate from `symbols` so that the processor loads both at the same time.
    spots: Vec<Spot>,
    names: Arc<StringTables>,
}

impl SymbolIndex {
    /// Reads all symbols; `None` if there are too many.
    pub(super) fn build(sources: &Sources, budget: &mut Budget) -> Result<Option<SymbolIndex>, NoSymbols> {
        let mut symbols = Vec::new();
        let mut pass = SymbolPass::new(sources);
        while let Some(symbol) = pass.next(budget)? {
            if symbols.len() >= MOST_SYMBOLS {
                return Ok(None);
            }
            if symbol.kind != SymbolKind::Tls {
                if symbols.len() == symbols.capacity() {
                    memory::check((symbols.len() * A_SYMBOL) as u64)?;
                }
                symbols.push(symbol);
            }
        }
        symbols.sort_unstable_by_key(order);
        let names = StringTables::read(sources, budget)?;
        Ok(Some(SymbolIndex {
            intervals: sweep(sources, &symbols, &names, budget)?,
            spots: symbols.iter().map(Spot::of).collect(),
            symbols,
            names: Arc::new(names),
        }))
    }

    /// Returns the symbol of a file address, and its name.
    pub(super) fn symbol_at(&self, address: u64) -> Option<(Symbol, &[u8])> {
        let position = usize::try_from(self.intervals.at(address)?).ok()?;
        let symbol = *self.symbols.get(position)?;
        let name = self.names.at(*self.spots.get(position)?)?;
        Some((symbol, name))
    }

    /// Returns the names of all symbols.
    pub(super) fn names(&self) -> &Arc<StringTables> {
        &self.names
    }
}

/// Returns the key by which symbols are sorted: address, then the order of their tables.
fn order(symbol: &Symbol) -> (u64, u8, u32) {
    (symbol.address, symbol.table, symbol.number)
}

/// A symbol that covers the current place of the sweep. The one to which the place belongs is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CoveringSymbol {
    start: u64,
    rank: Rank,
    position: Reverse<u32>,
}

/// Visits in order all places where the answer can change, with the symbols that cover each.
fn sweep(
    sources: &Sources,
    symbols: &[Symbol],
    names: &StringTables,
    budget: &mut Budget,
) -> Result<IntervalMap, OutOfBudget> {
    let elf = &sources.image.elf;
    let mut places: Vec<u64> = symbols
        .iter()
        // A symbol without a size may have only its first byte.
        .flat_map(|symbol| [symbol.address, symbol.address.saturating_add(symbol.size.max(1))])
        .chain(elf.section_bounds())
        .collect();
    places.sort_unstable();
    places.dedup();

    let mut coming = (0..).zip(symbols).peekable();
    let mut covering: BinaryHeap<CoveringSymbol> = BinaryHeap::new();
    let mut nearest: HashMap<u16, NearestSymbols> = HashMap::new();
    let mut intervals = IntervalMap::default();
    for place in places {
        budget.go_on()?;
        while let Some((position, symbol)) = coming.next_if(|(_, one)| one.address <= place) {
            if symbol.size > 0 {
                covering.push(CoveringSymbol {
                    start: symbol.address,
                    rank: symbol.rank(),
                    position: Reverse(position),
                });
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
        let symbol = best_covering(symbols, &mut covering, place)
            .choose(beginning)
            .or_else(|| {
                let section = elf.section_at(place)?;
                let nearest = nearest.get(&u16::try_from(section).ok()?)?;
                nearest.reaching(place, sources.lists_all(section))?.choose(beginning)
            })
            .and_then(|symbol| symbols.binary_search_by_key(&order(&symbol), order).ok())
            .and_then(|position| u32::try_from(position).ok())
            .unwrap_or(NONE);
        intervals.add(place, symbol);
    }
    Ok(intervals)
}

/// Returns the best symbols that cover `place`. Removes those that end before it.
fn best_covering(symbols: &[Symbol], covering: &mut BinaryHeap<CoveringSymbol>, place: u64) -> Best {
    let symbol_of = |one: &CoveringSymbol| {
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

/// Intervals in order of address, each of which extends to the start of the next.
#[derive(Default)]
struct IntervalMap {
    /// The first start of each group of [`STEP`] blocks.
    steps: Vec<u64>,
    /// The first start of each block.
    firsts: Vec<u64>,
    blocks: Vec<IntervalBlock>,
    /// The number of intervals in the last block.
    used: usize,
    last: Option<u32>,
}

/// No symbol. Other numbers are positions in the index.
pub(super) const NONE: u32 = u32::MAX;
/// The number of blocks in a group: their starts fill two cache lines.
const STEP: usize = 16;
/// The number of intervals in a block: their distances, and their symbols, fill half a cache line each.
const BLOCK: usize = 8;
/// The distance of an unused slot.
const UNUSED: u32 = u32::MAX;

/// A block of consecutive intervals.
#[repr(align(64))]
struct IntervalBlock {
    /// The distance of each start from the first start.
    distances: [u32; BLOCK],
    symbols: [u32; BLOCK],
}

impl IntervalMap {
    /// Adds an interval that begins at `start` and ends the one before it.
    pub(super) fn add(&mut self, start: u64, symbol: u32) {
        if self.last.replace(symbol) == Some(symbol) {
            return;
        }
        let distance = self.firsts.last().map(|first| start.saturating_sub(*first));
        let distance = distance
            .and_then(|distance| u32::try_from(distance).ok())
            .filter(|&distance| distance < UNUSED && self.used < BLOCK);
        match (distance, self.blocks.last_mut()) {
            (Some(distance), Some(block)) => {
                let mut places = block.distances.iter_mut().zip(&mut block.symbols);
                if let Some((into, symbols)) = places.nth(self.used) {
                    (*into, *symbols) = (distance, symbol);
                }
                self.used += 1;
            }
            _ => self.begin(start, symbol),
        }
    }

    fn begin(&mut self, start: u64, symbol: u32) {
        if self.firsts.len().is_multiple_of(STEP) {
            self.steps.push(start);
        }
        self.firsts.push(start);
        // All slots but the first are still unused.
        let mut distances = [UNUSED; BLOCK];
        distances[0] = 0;
        self.blocks.push(IntervalBlock { distances, symbols: [symbol; BLOCK] });
        self.used = 1;
    }

    /// Returns the symbol of an address.
    pub(super) fn at(&self, address: u64) -> Option<u32> {
        let step = self.steps.partition_point(|&start| start <= address);
        let from = step.checked_sub(1)? * STEP;
        let to = self.firsts.len().min(from + STEP);
        let firsts = self.firsts.get(from..to)?;
        let into = firsts.partition_point(|&start| start <= address);
        let number = into.checked_sub(1)?;
        let distance = address.checked_sub(*firsts.get(number)?)?;
        let distance = u32::try_from(distance).unwrap_or(UNUSED).min(UNUSED - 1);
        let block = self.blocks.get(from + number)?;
        // This counts instead of a binary search, because it has no branches to mispredict.
        let starts = block.distances.iter();
        let after = starts.map(|&one| usize::from(one <= distance)).sum::<usize>();
        block.symbols.get(after.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_symbol_of_the_last_interval_that_starts_at_or_before_it() {
        // Some starts are close together, some farther apart than a distance can hold.
        let mut starts = Vec::new();
        let mut next = 0x1000u64;
        for number in 0..1000u64 {
            starts.push(next);
            next += match number % 37 {
                0 => u64::from(u32::MAX) - 1,
                1 => u64::from(u32::MAX),
                2 => 1 << 40,
                other => 1 + other * 7,
            };
        }
        let mut intervals = IntervalMap::default();
        for (&start, symbol) in starts.iter().zip(0..) {
            intervals.add(start, symbol);
            // The same symbol goes on.
            intervals.add(start + 1, symbol);
        }
        assert_eq!(intervals.at(0xfff), None);
        for (pair, symbol) in starts.windows(2).zip(0..) {
            for address in [pair[0], (pair[0] + pair[1]) / 2, pair[1] - 1] {
                assert_eq!(intervals.at(address), Some(symbol), "{address:#x}");
            }
        }
        assert_eq!(intervals.at(u64::MAX), Some(999));
        assert_eq!(IntervalMap::default().at(5), None);
    }
}
