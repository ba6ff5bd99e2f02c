//! Sets of numbers of pages and frames.

/// Runs that are collected before those that overlap or adjoin are joined.
pub(super) const FIRST_JOIN: usize = 1 << 16;

/// A set of numbers, such as those of pages or frames: sorted runs that neither overlap nor adjoin, as first number and
/// end. One frame may be mapped by very many pages (the zero page, merged pages), so memory follows the runs of
/// different numbers.
#[derive(Clone, Default, Debug)]
pub struct NumberSet {
    runs: Vec<(u64, u64)>,
    /// How many runs there were after they were joined last; the runs before that number are in order.
    joined: usize,
}

impl NumberSet {
    /// Adds the numbers from `first` on.
    pub fn add(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        match self.runs.last_mut() {
            _ if first == end => {}
            Some((_, last)) if *last == first => *last = end,
            _ => self.runs.push((first, end)),
        }
        if self.runs.len() > FIRST_JOIN.max(2 * self.joined) {
            self.join();
        }
    }

    /// Adds all of another set.
    pub fn add_all(&mut self, other: &NumberSet) {
        for (first, end) in &other.runs {
            self.add(*first, end - first);
        }
    }

    /// Puts the runs in order: needed before each question.
    pub fn join(&mut self) {
        self.runs.sort_unstable();
        self.runs.dedup_by(|next, run| {
            let joins = next.0 <= run.1;
            if joins {
                run.1 = run.1.max(next.1);
            }
            joins
        });
        self.joined = self.runs.len();
    }

    /// How many numbers it has, once it is joined.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|(first, end)| end - first).sum()
    }

    /// How many numbers it has that `other` does not have, once both are joined.
    pub fn count_outside(&self, other: &NumberSet) -> u64 {
        let mut both = other.clone();
        both.add_all(self);
        both.join();
        both.count() - other.count()
    }

    /// Whether it has a number, once it is joined.
    pub fn contains(&self, number: u64) -> bool {
        let after = self.runs.partition_point(|(first, _)| *first <= number);
        let run = after.checked_sub(1).and_then(|index| self.runs.get(index));
        run.is_some_and(|(_, end)| number < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(runs: &[(u64, u64)]) -> NumberSet {
        let mut set = NumberSet::default();
        runs.iter().for_each(|&(first, count)| set.add(first, count));
        set.join();
        set
    }

    #[test]
    fn each_number_counts_once() {
        let some = set(&[(9, 2), (4, 3), (10, 2), (4, 1), (20, 1), (7, 0)]);
        assert_eq!(some.runs, [(4, 7), (9, 12), (20, 21)]);
        assert_eq!(some.count(), 7);
        for (number, is_in) in [(3, false), (4, true), (6, true), (7, false), (11, true), (12, false), (20, true)] {
            assert_eq!(some.contains(number), is_in, "{number}");
        }
        assert_eq!(set(&[]).count(), 0);
        assert!(!set(&[]).contains(0));
        assert_eq!(some.count_outside(&set(&[(0, 5), (11, 20)])), 4);
        assert_eq!(set(&[]).count_outside(&some), 0);
    }

    #[test]
    fn one_number_that_comes_very_often_takes_little_memory() {
        let mut often = NumberSet::default();
        (0..8 * FIRST_JOIN as u64).for_each(|nth| often.add(7 * (nth % 2), 1));
        assert!(often.runs.capacity() <= 4 * FIRST_JOIN, "{}", often.runs.capacity());
    }
}
