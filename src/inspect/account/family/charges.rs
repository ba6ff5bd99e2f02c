//! The frames that are charged to a memory cgroup: those that its processes map, and those in no page table.

use super::super::frames::FrameClasses;
use super::Family;
use super::owners::{FrameKind, FrameOwners};
use crate::budget::Budget;
use crate::inspect::Result;
use crate::inspect::frames::{FrameRow, FrameSweep, machine_frames};
use crate::inspect::kept::Step;
use crate::inspect::page::Evidence;
use crate::kernel::{FrameRange, PageFlags};
use crate::process::Machine;
use crate::report::{ChargeClass, FrameClass};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A search for the frames that are charged to some cgroups. Dropping it stops the worker threads.
#[must_use]
pub struct ChargeSearch<'a> {
    machine: &'a Arc<Machine>,
    owners: &'a FrameOwners,
    groups: BTreeSet<u64>,
    frames: FrameSweep,
    classes: FrameClasses,
    /// Whether the last frame that is no tail of a large folio is charged to the cgroups.
    is_charged: bool,
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
        let need = Evidence::FLAGS | Evidence::COUNTS | Evidence::CGROUPS;
        ChargeSearch {
            machine: &self.machine,
            owners: &self.frames,
            groups,
            frames: machine_frames(&self.machine, range, need).with_budget(self.budget.clone()),
            classes: FrameClasses::new(&self.machine),
            is_charged: false,
            sums: GroupCharges::default(),
        }
    }
}

impl ChargeSearch<'_> {
    /// Limits the search by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        ChargeSearch { frames: self.frames.with_budget(budget), ..self }
    }

    /// Makes the next step. Returns the progress, or that frames were found; `None` after the last step.
    ///
    /// # Errors
    /// Fails if words of frames cannot be read, or the budget is used up.
    pub fn next(&mut self) -> Result<Option<Step<()>>> {
        Ok(match self.frames.next()? {
            None => None,
            Some(Step::Visited { done, total }) => Some(Step::Visited { done, total }),
            Some(Step::Found(row)) => {
                self.add(&row)?;
                Some(Step::Found(()))
            }
        })
    }

    fn add(&mut self, row: &FrameRow) -> Result<()> {
        let flags = row.facts.flags.unwrap_or_default();
        let class = self.classes.of(flags);
        self.is_charged = match row.facts.cgroup {
            // `page_cgroup_ino` (mm/memcontrol.c) shows the cgroup of the tails of a folio only since Linux 6.4.
            Some(0) if flags.contains(PageFlags::COMPOUND_TAIL) => self.is_charged,
            group => group.is_some_and(|group| self.groups.contains(&group)),
        };
        if !self.is_charged {
            return Ok(());
        }
        let (first, size) = (row.first.get(), self.machine.page_size().bytes());
        let by_flags = match class {
            FrameClass::Anonymous | FrameClass::Merged => ChargeClass::Anonymous,
            FrameClass::SharedMemory => ChargeClass::SharedMemory,
            FrameClass::PageCache => ChargeClass::PageCache,
            FrameClass::Hugetlb => ChargeClass::Hugetlb,
            _ => ChargeClass::Kernel,
        };
        let is_exact = self.machine.has_exact_map_counts() == Some(true) || !flags.is_in_large_folio();
        let unmapped = match (by_flags, row.facts.map_count) {
            (ChargeClass::Hugetlb | ChargeClass::Kernel, _) | (_, Some(0)) => by_flags,
            (_, Some(_)) if is_exact => ChargeClass::MappedOutside,
            _ => ChargeClass::Unclear,
        };
        for owned in self.owners.of(first, row.frames) {
            self.sums.in_page_tables += if owned.is_some() { size } else { 0 };
            let class = match owned.map(|owned| owned.kind) {
                // The kernel charges pages that it or a driver maps as its own memory.
                Some(FrameKind::Driver | FrameKind::Kernel) => ChargeClass::Kernel,
                Some(_) => ChargeClass::Mapped,
                None => unmapped,
            };
            *self.sums.classes.entry(class).or_default() += size;
        }
        Ok(())
    }

    /// Returns the sums.
    pub fn finish(self) -> GroupCharges {
        self.sums
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
