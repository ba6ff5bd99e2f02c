//! `limit N` and `top N`: which rows are shown, and the note about the others.

use super::Error;
use crate::eval;
use crate::lang::{self, Which};
use crate::render::Sink;
use crate::render::units::counted;
use crate::report::Stopped;
use crate::state::DebugState;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many rows are shown, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    pub which: Which,
    pub most: u64,
}

impl Cut {
    /// The cut of a line, with the value of its variable.
    ///
    /// # Errors
    /// The count is 0, or the variable holds no count.
    pub fn of(written: Option<&lang::Cut>, state: &DebugState) -> Result<Option<Cut>, Error> {
        let Some(written) = written else {
            return Ok(None);
        };
        let most = eval::count(&written.rows, state)?;
        let which = written.which;
        match (most, which) {
            (0, Which::First) => Err(Error::nothing_wanted("limit")),
            (0, Which::Largest) => Err(Error::nothing_wanted("top")),
            _ => Ok(Some(Cut { which, most })),
        }
    }

    /// How many, as a length.
    pub fn rows(self) -> usize {
        usize::try_from(self.most).unwrap_or(usize::MAX)
    }

    /// The N of `limit N`, for a stream that ends there.
    pub fn limit(cut: Option<Cut>) -> Option<u64> {
        cut.filter(|cut| cut.which == Which::First).map(|cut| cut.most)
    }

    /// The N of `top N`.
    pub fn top(cut: Option<Cut>) -> Option<u64> {
        cut.filter(|cut| cut.which == Which::Largest).map(|cut| cut.most)
    }
}

/// Keeps the first or the largest rows, and returns how many were left out.
pub(super) fn keep<T>(rows: &mut Vec<T>, cut: Option<Cut>, size: impl Fn(&T) -> u64) -> usize {
    if Cut::top(cut).is_some() {
        rows.sort_by_key(|row| Reverse(size(row)));
    }
    let all = rows.len();
    rows.truncate(cut.map_or(all, Cut::rows));
    all - rows.len()
}

/// The end of the note about rows that are not shown.
pub const CUT: &str = " (the totals include them)";

/// Notes how many rows are not shown.
pub(super) fn say_cut(more: usize, what: &str, sink: &mut dyn Sink) -> Result<(), Stopped> {
    if more == 0 {
        return Ok(());
    }
    let rows = counted(more as u64, &format!("more {what}"));
    sink.note(format!("{rows}{CUT}"))
}

/// The largest of a stream of rows; among equals, the first.
pub(super) struct Largest<T, S = u64> {
    most: usize,
    seen: usize,
    /// By size, and among equals by the place in the stream.
    kept: BTreeMap<(S, Reverse<usize>), T>,
}

impl<T, S: Ord> Largest<T, S> {
    pub fn new(most: u64) -> Self {
        Largest { most: usize::try_from(most).unwrap_or(usize::MAX), seen: 0, kept: BTreeMap::new() }
    }

    pub fn add(&mut self, size: S, row: T) {
        self.kept.insert((size, Reverse(self.seen)), row);
        self.seen += 1;
        if self.kept.len() > self.most {
            self.kept.pop_first();
        }
    }

    /// The rows, the largest first, and how many were left out.
    pub fn finish(self) -> (Vec<T>, usize) {
        let more = self.seen - self.kept.len();
        (self.kept.into_values().rev().collect(), more)
    }
}

/// Shows the largest rows, if `top` asked for them, and notes how many others there are.
pub(super) fn show_largest<T, S: Ord>(
    largest: Option<Largest<T, S>>,
    what: &str,
    sink: &mut dyn Sink,
    mut emit: impl FnMut(&T, &mut dyn Sink) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let Some(largest) = largest else {
        return Ok(());
    };
    let (rows, more) = largest.finish();
    rows.iter().try_for_each(|row| emit(row, sink))?;
    say_cut(more, what, sink)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_of_equal_ones_the_first() {
        let mut largest = Largest::new(3);
        for (size, row) in [(1, "a"), (5, "b"), (3, "c"), (5, "d"), (3, "e")] {
            largest.add(size, row);
        }
        assert_eq!(largest.finish(), (vec!["b", "d", "c"], 2));
    }
}
