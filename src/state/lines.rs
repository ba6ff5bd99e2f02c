//! The lines that were typed, for `history`.

use std::collections::VecDeque;

/// Lines in the order in which they were typed, numbered from 1. When there are too many the oldest go; the others keep
/// their numbers.
#[derive(Clone, Debug, Default)]
pub struct LineHistory {
    lines: VecDeque<String>,
    gone: usize,
}

impl LineHistory {
    /// Adds a line and keeps at most `limit` of them.
    pub fn push(&mut self, line: impl Into<String>, limit: usize) {
        self.lines.push_back(line.into());
        self.keep(limit);
    }

    /// Drops the oldest until at most `limit` are left.
    pub fn keep(&mut self, limit: usize) {
        let surplus = self.lines.len().saturating_sub(limit);
        self.lines.drain(..surplus);
        self.gone += surplus;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether nothing was typed yet.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The last `count` lines with their numbers, the oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = (usize, &str)> {
        let skipped = self.lines.len().saturating_sub(count);
        let first = self.gone + skipped + 1;
        self.lines.iter().skip(skipped).enumerate().map(move |(index, line)| (first + index, line.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_numbers_stay() {
        let mut history = LineHistory::default();
        for line in ["a", "b", "c", "d"] {
            history.push(line, 3);
        }
        assert_eq!(history.len(), 3);
        assert_eq!(history.last(2).collect::<Vec<_>>(), [(3, "c"), (4, "d")]);
        assert_eq!(history.last(9).next(), Some((2, "b")));
        history.keep(0);
        assert!(history.is_empty());
    }
}
