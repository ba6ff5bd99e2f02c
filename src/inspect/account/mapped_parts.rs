//! The parts of an object that are in page tables.

use crate::kernel::joined;
use std::ops::Range;

/// The number of parts after which those that touch are joined.
const JOIN_AFTER: usize = 1 << 12;

/// Parts of an object, as ranges of offsets.
#[derive(Default)]
pub(super) struct MappedParts {
    parts: Vec<Range<u64>>,
    /// The number of parts after which they are joined next, if it is more than the minimum.
    most: usize,
}

impl MappedParts {
    pub fn add(&mut self, part: Range<u64>) {
        match self.parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => self.parts.push(part),
        }
        if self.parts.len() > self.most.max(JOIN_AFTER) {
            self.join();
            self.most = self.parts.len().saturating_mul(2);
        }
    }

    fn join(&mut self) {
        self.parts = joined(std::mem::take(&mut self.parts));
    }

    /// Returns the bytes of all parts.
    pub fn bytes(&mut self) -> u64 {
        self.join();
        self.parts.iter().map(|part| part.end - part.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_overlap_count_once() {
        let mut parts = MappedParts::default();
        for part in [0..10, 10..20, 40..50, 15..25, 45..46] {
            parts.add(part);
        }
        assert_eq!(parts.bytes(), 25 + 10);
        (0..3 * JOIN_AFTER as u64).rev().for_each(|at| parts.add(at..at + 1));
        assert!(parts.parts.len() <= 2 * JOIN_AFTER, "joined on the way");
        assert_eq!(parts.bytes(), 3 * JOIN_AFTER as u64);
    }
}
