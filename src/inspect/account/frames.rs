//! The account of the machine: each frame in one class by its flags, beside the counters of the kernel.
//!
//! ```
//! use pmdb::inspect::account::frame_account;
//! use pmdb::kernel::FrameRange;
//! use pmdb::{FrameNumber, Target};
//!
//! let machine = Target::attach(std::process::id())?.machine;
//! let range = FrameRange::new(FrameNumber::new(0x1000), FrameNumber::new(0x2000)).ok_or("no frames")?;
//! let mut account = frame_account(&machine, range);
//! // Only root may read the flags of frames.
//! while let Ok(Some(_)) = account.next() {}
//! for (class, frames) in account.finish().classes {
//!     println!("{frames} frames {}", class.word());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::super::Result;
use super::super::frames::{FrameRow, FrameSums, FrameSweep, machine_frames};
use super::super::hidden_words::offline_frames;
use super::super::kept::Step;
use super::super::page::Evidence;
use crate::budget::Budget;
use crate::kernel::{FrameRange, PageFlags};
use crate::process::{Machine, MemoryCounters};
use crate::report::FrameClass;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A sweep that assigns frames to classes. Dropping it stops the worker threads.
#[must_use]
pub struct FrameAccount {
    machine: Arc<Machine>,
    frames: FrameSweep,
    classes: FrameClasses,
    sums: FrameAccountSums,
}

/// Assigns frames to classes, in the order of the frames.
pub(super) struct FrameClasses {
    false_flags: PageFlags,
    /// The class of the last frame that is no tail of a large folio: on older kernels, tails show no flags of the
    /// folio.
    head: FrameClass,
}

impl FrameClasses {
    /// Returns a value for the frames of a machine.
    pub fn new(machine: &Machine) -> Self {
        FrameClasses { false_flags: machine.false_flags().unwrap_or_default(), head: FrameClass::NoMark }
    }

    /// Returns the class of the next frames, which have these flags.
    pub fn of(&mut self, flags: PageFlags) -> FrameClass {
        let flags = flags - self.false_flags;
        let is_bare_tail = flags == PageFlags::COMPOUND_TAIL || flags == THP_TAIL;
        self.head = if is_bare_tail { self.head } else { FrameClass::of(flags) };
        self.head
    }
}

/// The number of frames in each class.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FrameAccountSums {
    /// The number of frames of each class that has any.
    pub classes: BTreeMap<FrameClass, u64>,
    /// The number of frame numbers without system memory: the kernel shows no flags of holes and of device memory.
    pub holes: u64,
    /// The sums of the sweep over the frames.
    pub swept: Option<FrameSums>,
}

/// Begins the account of a range of frames.
pub fn frame_account(machine: &Arc<Machine>, range: FrameRange) -> FrameAccount {
    FrameAccount {
        machine: Arc::clone(machine),
        frames: machine_frames(machine, range, Evidence::FLAGS),
        classes: FrameClasses::new(machine),
        sums: FrameAccountSums::default(),
    }
}

impl FrameAccount {
    /// Limits the sweep by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        FrameAccount { frames: self.frames.with_budget(budget), ..self }
    }

    /// Returns the next equal frames or the progress; `None` after the last step.
    ///
    /// # Errors
    /// Fails like [`FrameSweep::next`].
    pub fn next(&mut self) -> Result<Option<Step<FrameRow>>> {
        Ok(match self.frames.next()? {
            None => None,
            Some(Step::Visited { done, total }) => Some(Step::Visited { done, total }),
            Some(Step::Found(row)) => {
                self.add(&row);
                Some(Step::Found(row))
            }
        })
    }

    fn add(&mut self, row: &FrameRow) {
        let Some(flags) = row.facts.flags.filter(|flags| !flags.contains(PageFlags::NOPAGE)) else {
            let offline = offline_frames(&self.machine, row.first, row.frames);
            if offline > 0 {
                *self.sums.classes.entry(FrameClass::Offline).or_default() += offline;
            }
            self.sums.holes += row.frames - offline;
            return;
        };
        let class = self.classes.of(flags);
        *self.sums.classes.entry(class).or_default() += row.frames;
    }

    /// Returns the sums.
    pub fn finish(self) -> FrameAccountSums {
        FrameAccountSums { swept: Some(self.frames.finish()), ..self.sums }
    }
}

/// The flags that a tail of a transparent huge page has before Linux 6.10.
const THP_TAIL: PageFlags = PageFlags::COMPOUND_TAIL.union(PageFlags::THP);

impl FrameClass {
    /// Returns the class of a frame with these flags: the first that applies.
    pub(super) fn of(flags: PageFlags) -> Self {
        use PageFlags as F;
        let cached = F::LRU | F::UPTODATE | F::DIRTY | F::WRITEBACK;
        let classes = [
            (F::HWPOISON, FrameClass::Poisoned),
            (F::OFFLINE, FrameClass::Offline),
            (F::BUDDY, FrameClass::Free),
            (F::PGTABLE, FrameClass::PageTables),
            (F::SLAB, FrameClass::Slab),
            (F::ZERO_PAGE, FrameClass::Zero),
            (F::HUGE, FrameClass::Hugetlb),
            (F::KSM, FrameClass::Merged),
            (F::ANON, FrameClass::Anonymous),
            (F::SWAPBACKED, FrameClass::SharedMemory),
            (cached, FrameClass::PageCache),
            (F::RESERVED, FrameClass::Reserved),
            (F::MMAP, FrameClass::Driver),
        ];
        let found = classes.into_iter().find(|(flag, _)| flags.intersects(*flag));
        found.map_or(FrameClass::NoMark, |(_, class)| class)
    }
}

/// Returns the counter of the kernel for a class: the fields of `/proc/meminfo`, and the bytes. Returns `None` if there
/// is no counter.
pub fn counter(class: FrameClass, counters: &MemoryCounters) -> Option<(&'static str, u64)> {
    let known = |name, bytes: Option<u64>| bytes.map(|bytes| (name, bytes));
    match class {
        FrameClass::Anonymous => known("AnonPages", counters.anonymous),
        FrameClass::SharedMemory => known("Shmem", counters.shared),
        FrameClass::PageCache => {
            known("Buffers + Cached - Shmem", counters.shared.map(|shared| counters.cache.saturating_sub(shared)))
        }
        FrameClass::Hugetlb => known("Hugetlb", counters.hugetlb),
        FrameClass::Slab => Some(("Slab", counters.slab)),
        FrameClass::PageTables => known("PageTables", counters.page_tables),
        FrameClass::Free => Some(("MemFree", counters.free)),
        FrameClass::Poisoned => known("HardwareCorrupted", counters.poisoned),
        _ => None,
    }
}

/// Returns the counters of frames that no flag marks: a name and bytes each.
pub fn counted_without_mark(counters: &MemoryCounters) -> Vec<(&'static str, u64)> {
    let counted = [
        ("KernelStack", counters.kernel_stacks),
        ("Percpu", counters.per_processor),
        ("VmallocUsed", Some(counters.vmalloc)),
        ("SecPageTables", counters.second_page_tables),
        ("free lists of processors", counters.free_of_processors),
    ];
    counted.into_iter().filter_map(|(name, bytes)| Some((name, bytes.filter(|&bytes| bytes > 0)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_flags() {
        let class_of = |names: &[&str]| {
            let flags = names.iter().filter_map(|name| PageFlags::from_flag_name(name));
            FrameClass::of(flags.fold(PageFlags::empty(), PageFlags::union))
        };
        assert_eq!(class_of(&["anon", "swapbacked", "lru", "uptodate"]), FrameClass::Anonymous);
        assert_eq!(class_of(&["swapbacked", "lru", "uptodate"]), FrameClass::SharedMemory);
        assert_eq!(class_of(&["referenced", "uptodate", "lru"]), FrameClass::PageCache);
        assert_eq!(class_of(&["zero_page", "reserved"]), FrameClass::Zero);
        assert_eq!(class_of(&["reserved"]), FrameClass::Reserved);
        assert_eq!(class_of(&["mmap"]), FrameClass::Driver);
        assert_eq!(class_of(&["buddy"]), FrameClass::Free);
        assert_eq!(class_of(&[]), FrameClass::NoMark);
    }
}
