//! A range of the target's memory: an ordered list of disjoint spans, and the way it was written.

use crate::inspect::Evidence;
use crate::kernel::{AddressRange, Name, VirtualAddress};
use std::fmt;

/// The way a range was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `A..B` or `A, +LENGTH`
    Written,
    /// `all`: what was mapped when it was evaluated. Commands that run for long use the whole address space instead.
    All,
    /// The region of an address, or the regions of a name such as `[heap]`.
    Region(Name),
    /// The regions of a file, by its whole name.
    Module(Name),
    /// A symbol with a size.
    Symbol(Name),
}

/// Spans of addresses in ascending order, with gaps between them; at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spans {
    ranges: Vec<AddressRange>,
    origin: Origin,
}

impl Spans {
    /// Makes a range of one span.
    pub fn one(range: AddressRange, origin: Origin) -> Self {
        Spans { ranges: vec![range], origin }
    }

    /// Makes a range of ranges in any order; those that overlap or touch are joined. `None` if there are none.
    pub fn new(ranges: impl IntoIterator<Item = AddressRange>, origin: Origin) -> Option<Self> {
        let ranges = AddressRange::joined(&ranges.into_iter().collect::<Vec<_>>());
        (!ranges.is_empty()).then_some(Spans { ranges, origin })
    }

    /// Returns the spans, in ascending order.
    pub fn ranges(&self) -> &[AddressRange] {
        &self.ranges
    }

    /// Returns the way the range was written.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns whether unmapped parts are shown: in a range that was written as addresses they are, in a name or `all`
    /// not.
    pub fn holes(&self) -> Evidence {
        match self.origin {
            Origin::Written => Evidence::HOLES,
            _ => Evidence::empty(),
        }
    }

    /// Returns the first address.
    pub fn start(&self) -> VirtualAddress {
        self.ranges.first().map_or_else(VirtualAddress::default, |range| range.start())
    }

    /// Returns the address after the last one.
    pub fn end(&self) -> VirtualAddress {
        self.ranges.last().map_or_else(VirtualAddress::default, |range| range.end())
    }

    /// Returns the number of bytes, without gaps.
    pub fn size(&self) -> u64 {
        self.ranges.iter().map(|range| range.len()).sum()
    }

    /// Returns whether one of the spans contains `address`.
    pub fn contains(&self, address: VirtualAddress) -> bool {
        let after = self.ranges.partition_point(|range| range.end() <= address);
        self.ranges.get(after).is_some_and(|range| range.contains(address))
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{range}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: u64, end: u64) -> Option<AddressRange> {
        AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end))
    }

    proptest! {
        #[test]
        fn the_same_addresses_in_order_and_apart(bounds in prop::collection::vec((0u64..60, 1u64..12), 0..8)) {
            let given: Vec<_> = bounds.iter().filter_map(|&(start, length)| range(start, start + length)).collect();
            let spans = Spans::new(given.iter().copied(), Origin::Written);
            prop_assert_eq!(spans.is_none(), given.is_empty());
            let Some(spans) = spans else { return Ok(()) };
            let covered = (0..80).map(VirtualAddress::new).filter(|&address| given.iter().any(|one| one.contains(address)));
            let mut size = 0;
            for address in covered {
                prop_assert!(spans.contains(address));
                size += 1;
            }
            prop_assert_eq!(spans.size(), size);
            prop_assert!(spans.ranges().windows(2).all(|pair| pair[0].end() < pair[1].start()));
        }
    }
}
