//! The address space of a file cut into intervals, each with its symbol.
//!
//! Look-ups come from all over the file, so their cost is cache misses. The layout limits a look-up to one miss, in a
//! block of intervals. The arrays that find the block are small enough to stay in the cache.

/// In order of address; each goes up to the start of the next.
#[derive(Default)]
pub(super) struct IntervalMap {
    /// The first start of each [`STEP`] blocks.
    steps: Vec<u64>,
    /// The first start of each block.
    firsts: Vec<u64>,
    blocks: Vec<Block>,
    /// The number of intervals in the last block.
    used: usize,
    last: Option<u32>,
}

/// No symbol: other positions are those in the index.
pub(super) const NONE: u32 = u32::MAX;
/// Two cache lines of first starts.
const STEP: usize = 16;
/// Intervals in a block: their distances, and their symbols, take half a cache line each.
const BLOCK: usize = 8;
/// The distance of an unused place.
const UNUSED: u32 = u32::MAX;

/// Neighbouring intervals.
#[repr(align(64))]
struct Block {
    /// The distance of each start from the first.
    distances: [u32; BLOCK],
    symbols: [u32; BLOCK],
}

impl IntervalMap {
    /// Adds an interval from `start` on, which ends the last one.
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
        // All places but the first are still unused.
        let mut distances = [UNUSED; BLOCK];
        distances[0] = 0;
        self.blocks.push(Block { distances, symbols: [symbol; BLOCK] });
        self.used = 1;
    }

    /// The symbol of an address.
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
        // A count instead of a binary search: it has no branches to mispredict.
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
