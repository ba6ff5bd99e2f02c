//! The sums over several processes: a page of the process that is compared with them, and a copied frame, counts once
//! however many of them have it.

use super::super::{NumberSet, PageRelation, SharedPages, Snapshot};
use crate::kernel::{AddressRange, PageSize, VirtualAddress};
use crate::report::SharedCounts;
use std::time::Instant;

/// What all other processes share with the first one, and what was copied.
pub struct SharedSums {
    size: PageSize,
    processes: u64,
    /// Pages that the first process has.
    here: u64,
    /// Pages of the first process that another one has too, in the same frame or in a different one.
    with_others: NumberSet,
    /// Pages that another process maps in the same frame at the same address.
    shared: NumberSet,
    /// Pages that another process maps in the same frame, wherever.
    shared_anywhere: NumberSet,
    /// Pages that the next write of the first process copies.
    about_to_copy: NumberSet,
    /// Frames of the others at places where the first process has another frame.
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

    /// Adds neighbouring pages with the same relation to `there`, where they begin at `theirs`. Without a fork, pages
    /// in different frames are no copies.
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
            // Only the first process has it.
            _ => {}
        }
    }

    /// Adds frames of memory that has no counterpart in the first process.
    pub(super) fn add_there(&mut self, places: impl Iterator<Item = u64>) {
        places.for_each(|place| self.there.add(place, 1));
    }

    /// Ends a process, of which these are the counts.
    pub(super) fn end_process(&mut self, counts: &SharedCounts) {
        self.processes += 1;
        self.here = self.here.max(counts.shared + counts.copied + counts.only_here);
    }

    /// How many processes were added.
    pub fn processes(&self) -> u64 {
        self.processes
    }

    /// The sums, and the copied frames.
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

/// The sums of a comparison as they grow.
pub struct CopiesOverTime {
    size: PageSize,
    /// When the last sample was taken, and the frames that were copied before it.
    last: Option<(Instant, NumberSet)>,
}

impl CopiesOverTime {
    /// Without a sample yet.
    pub fn new(size: PageSize) -> Self {
        CopiesOverTime { size, last: None }
    }

    /// Adds a sample. Returns its sums, and how many bytes were copied in a second since the one before.
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
