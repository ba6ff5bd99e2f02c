//! The frames that are charged to a memory cgroup: those that its processes map, and those in no page table.

use super::super::frames::FrameClasses;
use super::Family;
use super::charged_frames::{ChargedFrames, ChargedRun};
use super::owners::{FrameKind, FrameOwners};
use crate::budget::Budget;
use crate::inspect::Result;
use crate::inspect::kept::Step;
use crate::kernel::FrameRange;
use crate::process::Machine;
use crate::report::{ChargeClass, FrameClass};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A search for the frames that are charged to some cgroups. Dropping it stops the worker threads.
#[must_use]
pub struct ChargeSearch<'a> {
    machine: &'a Arc<Machine>,
    owners: &'a FrameOwners,
    frames: ChargedFrames,
    classes: FrameClasses,
    sums: GroupCharges,
}

/// The bytes that are charged to some cgroups.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GroupCharges {
    /// The bytes of each class that has any. The flags of frames show only a part of the memory of the kernel.
    pub classes: BTreeMap<ChargeClass, u64>,
    /// The bytes of frames that the processes map, of any class.
    pub in_page_tables: u64,
}

impl GroupCharges {
    /// Returns the bytes of all classes. The counters of a capture may be any numbers.
    pub fn bytes(&self) -> u64 {
        self.classes.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

impl Family {
    /// Begins a search for the frames of `range` that are charged to the cgroups with these inode numbers. The family
    /// must have made its last step.
    pub fn charges(&self, range: FrameRange, groups: BTreeSet<u64>) -> ChargeSearch<'_> {
        ChargeSearch {
            machine: &self.machine,
            owners: &self.frames,
            frames: ChargedFrames::of(&self.machine, range, groups, self.budget.clone()),
            classes: FrameClasses::new(&self.machine),
            sums: GroupCharges::default(),
        }
    }
}

impl ChargeSearch<'_> {
    /// Limits the search by a budget.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.frames.set_budget(budget);
        self
    }

    /// Makes the next step. Returns the progress; `None` after the last step.
    ///
    /// # Errors
    /// Fails if words of frames cannot be read, or the budget is used up.
    pub fn next(&mut self) -> Result<Option<Step<()>>> {
        let Some(runs) = self.frames.next()? else {
            return Ok(None);
        };
        for run in runs {
            self.sums.add(run, (self.machine, self.owners), &mut self.classes);
        }
        let (done, total) = self.frames.progress();
        Ok(Some(Step::Visited { done, total }))
    }

    /// Returns the sums.
    pub fn finish(self) -> GroupCharges {
        self.sums
    }
}

impl GroupCharges {
    /// Adds charged frames.
    fn add(&mut self, run: &ChargedRun, (machine, owners): (&Machine, &FrameOwners), classes: &mut FrameClasses) {
        let &ChargedRun { first, frames, flags, map_count } = run;
        let class = classes.of(flags);
        let size = machine.page_size().bytes();
        let by_flags = match class {
            FrameClass::Anonymous | FrameClass::Merged => ChargeClass::Anonymous,
            FrameClass::SharedMemory => ChargeClass::SharedMemory,
            FrameClass::PageCache => ChargeClass::PageCache,
            FrameClass::Hugetlb => ChargeClass::Hugetlb,
            _ => ChargeClass::Kernel,
        };
        let is_exact = machine.has_exact_map_counts() == Some(true) || !flags.is_in_large_folio();
        let unmapped = match (by_flags, map_count) {
            (ChargeClass::Hugetlb | ChargeClass::Kernel, _) | (_, 0) => by_flags,
            _ if is_exact => ChargeClass::MappedOutside,
            _ => ChargeClass::Unclear,
        };
        for owned in owners.of(first, frames) {
            self.in_page_tables += if owned.is_some() { size } else { 0 };
            let class = match owned.map(|owned| owned.kind) {
                // The kernel charges pages that it or a driver maps as its own memory.
                Some(FrameKind::Driver | FrameKind::Kernel) => ChargeClass::Kernel,
                Some(_) => ChargeClass::Mapped,
                None => unmapped,
            };
            *self.classes.entry(class).or_default() += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_hostile_capture_add_up() {
        let classes = BTreeMap::from([(ChargeClass::Kernel, u64::MAX), (ChargeClass::Sockets, 4096)]);
        assert_eq!(GroupCharges { classes, in_page_tables: 0 }.bytes(), u64::MAX);
    }
}
