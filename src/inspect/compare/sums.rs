//! The sums over several processes. A page of the compared process, or a copied frame, counts once, however many others
//! have it.

use super::super::{NumberSet, PageRelation, SharedPages, Snapshot};
use crate::kernel::{AddressRange, PageSize, VirtualAddress};
use crate::report::SharedCounts;
use std::time::Instant;

/// The pages that a process shares with all others, and the copies.
pub struct SharedSums {
    size: PageSize,
    processes: u64,
    /// The number of pages that the process has.
    here: u64,
    /// Its pages that another process also has, in the same frame or in a different one.
    with_others: NumberSet,
    /// Its pages that another process maps in the same frame at the same address.
    shared: NumberSet,
    /// Its pages that another process maps in the same frame at any address.
    shared_anywhere: NumberSet,
    /// Its pages that its next write copies.
    about_to_copy: NumberSet,
    /// The frames of others at addresses where the process has a different frame.
    copied: NumberSet,
    /// The frames of pages that only others have.
    there: NumberSet,
}

impl SharedSums {
    pub(super) fn new(size: PageSize) -> Self {
        let none = NumberSet::default;
        SharedSums {
            size,
            processes: 0,
            here: 0,
            with_others: none(),
            shared: none(),
            shared_anywhere: none(),
            about_to_copy: none(),
            copied: none(),
            there: none(),
        }
    }

    /// Adds neighbouring pages with the same relation to `there`, where they begin at `theirs`. Pages in different
    /// frames are copies only after a fork.
    pub(super) fn add(
        &mut self,
        pages: &SharedPages,
        is_forked: bool,
        there: &Snapshot,
        theirs: Option<VirtualAddress>,
    ) {
        let (first, count) = (self.size.index(pages.address), pages.pages);
        let range = |start| AddressRange::of_length(start, count.saturating_mul(self.size.bytes()));
        let places = theirs.and_then(range).into_iter().flat_map(|range| there.places_in(range));
        match pages.relation {
            PageRelation::Shared | PageRelation::Elsewhere => {
                self.with_others.add(first, count);
                self.shared_anywhere.add(first, count);
                if pages.relation == PageRelation::Shared {
                    self.shared.add(first, count);
                }
                if pages.copied_by_next_write {
                    self.about_to_copy.add(first, count);
                }
            }
            PageRelation::Different if is_forked => {
                self.with_others.add(first, count);
                places.for_each(|place| self.copied.add(place, 1));
            }
            PageRelation::Different | PageRelation::OnlySecond => places.for_each(|place| self.there.add(place, 1)),
            // Only this process has the pages.
            _ => {}
        }
    }

    /// Adds frames of memory that has no counterpart in the first process.
    pub(super) fn add_there(&mut self, places: impl Iterator<Item = u64>) {
        places.for_each(|place| self.there.add(place, 1));
    }

    /// Adds the counts of a process, whose pages are all added.
    pub(super) fn end_process(&mut self, counts: &SharedCounts) {
        self.processes += 1;
        self.here = self.here.max(counts.shared + counts.copied + counts.only_here);
    }

    /// Returns the number of processes that were added.
    pub fn processes(&self) -> u64 {
        self.processes
    }

    /// Returns the sums, and the copied frames.
    pub fn finish(mut self) -> (SharedCounts, NumberSet) {
        let all = [&mut self.with_others, &mut self.shared, &mut self.shared_anywhere, &mut self.about_to_copy];
        all.into_iter().chain([&mut self.copied, &mut self.there]).for_each(NumberSet::join);
        let counts = SharedCounts {
            shared: self.shared_anywhere.count(),
            shared_elsewhere: self.shared_anywhere.count() - self.shared.count(),
            copied: self.copied.count(),
            only_here: self.here.saturating_sub(self.with_others.count()),
            only_there: self.there.count(),
            about_to_copy: self.about_to_copy.count(),
        };
        (counts, self.copied)
    }
}

/// The sums of a comparison at several times.
pub struct CopiesOverTime {
    size: PageSize,
    /// The time of the last sample, and the frames that were copied by then.
    last: Option<(Instant, NumberSet)>,
}

impl CopiesOverTime {
    /// Returns a value without samples.
    pub fn new(size: PageSize) -> Self {
        CopiesOverTime { size, last: None }
    }

    /// Adds a sample. Returns its sums, and the bytes per second that were copied since the last sample.
    pub fn add(&mut self, taken: Instant, sums: SharedSums) -> (SharedCounts, Option<u64>) {
        let (counts, copied) = sums.finish();
        let rate = self.last.as_ref().map(|(then, before)| {
            let bytes = copied.count_outside(before).saturating_mul(self.size.bytes()) as f64;
            (bytes / taken.duration_since(*then).as_secs_f64().max(1e-9)) as u64
        });
        self.last = Some((taken, copied));
        (counts, rate)
    }
}
