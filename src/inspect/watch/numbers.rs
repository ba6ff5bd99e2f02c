//! Sets of page or frame numbers.

/// The number of runs at which runs that overlap or adjoin are joined first.
pub(super) const FIRST_JOIN: usize = 1 << 16;

/// A set of numbers of pages or frames, as sorted runs that neither overlap nor adjoin, each with its first number and
/// its end. Very many pages may map one frame (the zero page, merged pages): memory depends on the runs of different
/// numbers.
#[derive(Clone, Default, Debug)]
pub struct NumberSet {
    runs: Vec<(u64, u64)>,
    /// The number of runs after the last join. The runs before this index are in order.
    joined: usize,
}

impl NumberSet {
    /// Adds `count` numbers from `first` on.
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

    /// Adds all numbers of another set.
    pub fn add_all(&mut self, other: &NumberSet) {
        for (first, end) in &other.runs {
            self.add(*first, end - first);
        }
    }

    /// Sorts and joins the runs, which all questions below need.
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

    /// Returns how many numbers the set has. It must be joined.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|(first, end)| end - first).sum()
    }

    /// Returns how many numbers the set has that `other` lacks. Both must be joined.
    pub fn count_outside(&self, other: &NumberSet) -> u64 {
        let mut both = other.clone();
        both.add_all(self);
        both.join();
        both.count() - other.count()
    }

    /// Returns whether the set has a number. It must be joined.
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
