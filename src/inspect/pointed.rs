//! Anonymous memory that has no name, found by the variables that point to it.
//!
//! A word of the variables of a program or library names the memory whose beginning it holds: the user data of a chunk
//! that glibc's `malloc` has mapped by itself, or a page. Another pointer to the middle names nothing. Of several
//! variables the first counts, and one that is only a pointer before one in a larger object.
//!
//! The kernel joins neighbouring mappings to one region, so that a page in the middle of it may begin a mapping. A name
//! ends with its chunk; that of other memory ends before the next chunk, and before the next page whose address a
//! variable holds.

use super::Result;
use super::heap::{decode, mapped_chunks};
use super::memory::ResidentMemory;
use crate::budget::Budget;
use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::process::Target;
use crate::symbol::TargetSymbols;
use std::collections::BTreeMap;

/// The most resident bytes of variables that are read.
const MOST_READ: u64 = 32 << 20;
/// The most words of one variable that name memory each for itself. An array of pointers has more.
const MOST_ALONE: usize = 4;
/// The most addresses that variables hold and that are kept.
const MOST_HELD: usize = 1 << 16;

/// Memory that a variable points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PointedRange {
    /// The memory, in whole pages.
    pub(super) range: AddressRange,
    /// The address that the variable holds. The head of a chunk is before it.
    pub(super) held: VirtualAddress,
    /// The address of the word that holds it.
    pub(super) word: VirtualAddress,
    /// The first address of the variable with that word.
    variable: VirtualAddress,
    /// If many words of the variable name memory: the first address of all that they name.
    pub(super) first_of_many: Option<VirtualAddress>,
}

/// The anonymous memory of a process that variables point to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PointedMemory {
    /// In address order, without overlaps.
    ranges: Vec<PointedRange>,
}

/// Where a named range may begin.
struct Beginning {
    /// The end of a chunk; of other memory `None`: it ends where its region does, or where the next range begins.
    end: Option<u64>,
    held: u64,
    /// The word that names it; `None` if it only ends the range before it.
    holder: Option<Holder>,
}

impl PointedMemory {
    /// Finds the memory that variables point to. `names` are those of all regions of the target.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub(super) fn find(names: &TargetSymbols<'_>, budget: &mut Budget) -> Result<PointedMemory> {
        let places = UnnamedRegions::of(names.regions());
        let mut held = HeldAddresses { names, places: &places, held: BTreeMap::new(), last: None };
        if !places.0.is_empty() {
            held.read(names.target(), budget)?;
        }
        let held = held.held;
        let named = held.iter().filter(|(_, holder)| holder.is_some());
        let pointers: Vec<u64> = named.map(|(address, _)| *address).collect();
        let chunks = mapped_chunks(names.target(), &places.0, &pointers, budget)?;
        let holder = |address: u64| held.get(&address).copied().flatten();
        let mut beginnings: BTreeMap<u64, Beginning> = BTreeMap::new();
        for (&start, chunk) in &chunks {
            let held = chunk.pointer.unwrap_or(start);
            let end = Some(chunk.range.end().get());
            beginnings.insert(start, Beginning { end, held, holder: chunk.pointer.and_then(holder) });
        }
        let page_size = names.target().process.page_size();
        for (&address, &holder) in &held {
            let at = VirtualAddress::new(address);
            if page_size.offset(at) == 0 {
                let holder = holder.filter(|_| names.module_at(at).is_none());
                beginnings.entry(address).or_insert(Beginning { end: None, held: address, holder });
            }
        }
        let mut ranges = ranges(&beginnings, &places);
        gather(&mut ranges);
        Ok(PointedMemory { ranges })
    }

    /// Returns the range that contains `address`.
    pub(super) fn at(&self, address: VirtualAddress) -> Option<&PointedRange> {
        let after = self.ranges.partition_point(|one| one.range.start() <= address);
        self.ranges.get(after.checked_sub(1)?).filter(|one| one.range.contains(address))
    }

    /// Returns the parts of `range` that variables point to, in address order. Neighbours that many words of one
    /// variable name are one part.
    #[cfg(feature = "cli")]
    pub(super) fn within(&self, range: AddressRange) -> Vec<AddressRange> {
        let first = self.ranges.partition_point(|one| one.range.end() <= range.start());
        let inside = self.ranges.iter().skip(first);
        let inside: Vec<_> =
            inside.map_while(|one| Some((one.range.intersection(range)?, one.first_of_many))).collect();
        let is_one = |a: &(AddressRange, Option<_>), b: &(AddressRange, Option<_>)| {
            a.1.is_some() && a.1 == b.1 && a.0.end() == b.0.start()
        };
        let parts = inside.chunk_by(is_one);
        parts.filter_map(|part| AddressRange::new(part.first()?.0.start(), part.last()?.0.end())).collect()
    }

    /// Returns the bytes from `address` to the next range.
    pub(super) fn bytes_before_next(&self, address: VirtualAddress) -> u64 {
        let next = self.ranges.get(self.ranges.partition_point(|one| one.range.start() < address));
        next.map_or(u64::MAX, |next| next.range.start().get() - address.get())
    }
}

/// Returns the named ranges: each ends before the next beginning, and only chunks go on over pointers to their middle.
fn ranges(beginnings: &BTreeMap<u64, Beginning>, places: &UnnamedRegions) -> Vec<PointedRange> {
    let mut ranges: Vec<PointedRange> = Vec::new();
    let mut end_of_chunk = 0;
    for (&start, beginning) in beginnings {
        if start < end_of_chunk {
            continue;
        }
        end_of_chunk = beginning.end.unwrap_or(end_of_chunk);
        let next = || beginnings.range(start + 1..).next().map_or(u64::MAX, |(next, _)| *next);
        let end_of_region = || places.at(start).map_or(start, |range| range.end().get());
        let end = beginning.end.unwrap_or_else(|| end_of_region().min(next()));
        let range = AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end));
        if let (Some(range), Some(holder)) = (range, beginning.holder) {
            let (held, word) = (VirtualAddress::new(beginning.held), VirtualAddress::new(holder.word));
            ranges.push(PointedRange { range, held, word, variable: holder.variable, first_of_many: None });
        }
    }
    ranges
}

/// Gives the ranges of a variable with many words their first address.
fn gather(ranges: &mut [PointedRange]) {
    let mut of_variables: BTreeMap<VirtualAddress, (VirtualAddress, usize)> = BTreeMap::new();
    for one in &*ranges {
        of_variables.entry(one.variable).or_insert((one.range.start(), 0)).1 += 1;
    }
    for one in ranges {
        let known = of_variables.get(&one.variable);
        one.first_of_many = known.filter(|(_, words)| *words > MOST_ALONE).map(|(first, _)| *first);
    }
}

/// Returns whether a region is anonymous memory without a name.
pub(super) fn is_unnamed(region: &Region) -> bool {
    region.inode == 0 && region.name.as_bytes().is_empty() && !region.permissions.shared
}

/// The regions of anonymous memory that have no name, in address order.
struct UnnamedRegions(Vec<AddressRange>);

impl UnnamedRegions {
    fn of<'a>(regions: impl Iterator<Item = &'a Region>) -> Self {
        UnnamedRegions(regions.filter(|region| is_unnamed(region)).map(|region| region.range).collect())
    }

    fn at(&self, address: u64) -> Option<AddressRange> {
        let after = self.0.partition_point(|range| range.start().get() <= address);
        let range = self.0.get(after.checked_sub(1)?).copied()?;
        range.contains(VirtualAddress::new(address)).then_some(range)
    }
}

/// The word that holds an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holder {
    word: u64,
    /// The first address of the variable that it is in.
    variable: VirtualAddress,
    /// Whether it is a part of a larger object.
    is_inside: bool,
}

/// The addresses in anonymous memory that variables hold.
struct HeldAddresses<'a> {
    names: &'a TargetSymbols<'a>,
    places: &'a UnnamedRegions,
    /// The best holder of each; `None` if it is in no symbol.
    held: BTreeMap<u64, Option<Holder>>,
    /// The symbol of the last holder. Arrays hold many.
    last: Option<AddressRange>,
}

impl HeldAddresses<'_> {
    /// Reads the variables, as far as they are resident.
    fn read(&mut self, target: &Target, budget: &mut Budget) -> Result<()> {
        let layout = target.process.layout();
        let width = u64::from(layout.pointer_bytes);
        let page = layout.page.bytes();
        // The head of a chunk is a few bytes before the user data, and its mapping begins at a page. With an alignment
        // that the program asks for, the user data begins at a power of two.
        let may_begin = |held: u64| {
            let offset = held % page;
            offset == 0 || (offset.is_power_of_two() && offset >= 2 * width)
        };
        let bounds = self.places.0.first().zip(self.places.0.last());
        let (lowest, highest) = bounds.map_or((0, 0), |(first, last)| (first.start().get(), last.end().get()));
        let mut read = 0;
        for range in self.names.memory_of_variables()? {
            let mut memory = ResidentMemory::of(target, range)?;
            while let Some((start, bytes)) = memory.next(budget)? {
                let words = bytes.chunks_exact(usize::from(layout.pointer_bytes));
                for (number, bytes) in (0..).zip(words) {
                    let held = decode(bytes, layout.pointer_bytes, layout.is_little_endian).unwrap_or(0);
                    if held >= lowest && held < highest && may_begin(held) && self.places.at(held).is_some() {
                        budget.go_on()?;
                        self.add(held, start.get() + number * width, width);
                    }
                }
                read += bytes.len() as u64;
                if read >= MOST_READ {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, held: u64, word: u64, width: u64) {
        let known = self.held.get(&held).copied();
        let is_best = known.flatten().is_some_and(|holder| !holder.is_inside);
        if is_best || (known.is_none() && self.held.len() == MOST_HELD) {
            return;
        }
        let holder = self.holder(word, width);
        let best = self.held.entry(held).or_default();
        if let Some(holder) = holder
            && best.is_none_or(|best| best.is_inside && !holder.is_inside)
        {
            *best = Some(holder);
        }
    }

    /// Returns the word as a holder, if it is in a variable. A symbol without a size may be the end of something else.
    fn holder(&mut self, word: u64, width: u64) -> Option<Holder> {
        let whole = AddressRange::of_length(VirtualAddress::new(word), width)?;
        let contains = |symbol: &AddressRange| symbol.start() <= whole.start() && whole.end() <= symbol.end();
        if !self.last.as_ref().is_some_and(contains) {
            let symbol = self.names.at(whole.start())?;
            self.last = AddressRange::of_length(symbol.start, symbol.size);
        }
        let symbol = self.last.filter(contains)?;
        Some(Holder { word, variable: symbol.start(), is_inside: symbol.len() > width })
    }
}
