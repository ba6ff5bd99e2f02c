//! The snapshots of a session: how they are made, which two can be compared, and where.

use super::{Origin, Spans};
use crate::access::{Identity, MemoryLifetime};
use crate::budget::Budget;
use crate::inspect::{self, AddressSpace, Evidence, OpenSnapshot, Snapshot, SnapshotProgress};
use crate::kernel::{AddressRange, Name, Region};
use crate::process::{Liveness, Target};
use crate::symbol::Symbols;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A snapshot with a name, and the range that it covers.
pub struct NamedSnapshot<S = Snapshot> {
    /// The name that the user gave.
    pub name: String,
    /// The process, with its name at that time.
    pub process: Identity,
    /// The time of the snapshot.
    pub time: SystemTime,
    /// Whether the snapshot is of a capture or core, whose times are whole seconds.
    pub is_of_file: bool,
    /// The address space of the pages; `None` if the process never gets another one.
    lifetime: Option<Arc<dyn MemoryLifetime>>,
    /// The auxiliary vector, for comparisons with a capture: each run of a program has random addresses in it.
    vector: Option<Vec<u8>>,
    /// The range of the snapshot; `None` for the whole process.
    pub spans: Option<Spans>,
    /// The page map.
    pub snapshot: S,
}

/// A snapshot that is being made.
pub type OpenNamedSnapshot = NamedSnapshot<OpenSnapshot>;

impl OpenNamedSnapshot {
    /// Sets the budget.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.snapshot = self.snapshot.with_budget(budget);
        self
    }

    /// Reads the next pages, and returns the progress; `None` after the last ones.
    ///
    /// # Errors
    /// Fails as [`OpenSnapshot::advance`].
    pub fn advance(&mut self) -> inspect::Result<Option<SnapshotProgress>> {
        self.snapshot.advance()
    }

    /// Reads all remaining pages.
    ///
    /// # Errors
    /// Fails as [`OpenSnapshot::advance`].
    pub fn finish(self) -> inspect::Result<NamedSnapshot> {
        let NamedSnapshot { name, process, time, is_of_file, lifetime, vector, spans, snapshot } = self;
        let snapshot = snapshot.finish()?;
        Ok(NamedSnapshot { name, process, time, is_of_file, lifetime, vector, spans, snapshot })
    }
}

/// The facts that a snapshot keeps besides the page map.
#[derive(Clone, Copy, Default)]
pub struct Keep {
    /// [`Evidence::FLAGS`] and [`Evidence::COUNTS`].
    pub extra: Evidence,
    /// A hash of the contents of each resident page.
    pub contents: bool,
}

/// Why two snapshots are not compared, and the remedy.
pub struct ComparisonRefusal {
    /// The reason.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

/// The part of memory in which two snapshots are compared.
pub struct CommonSpans {
    /// The addresses; `None` for the whole range of the snapshots, if both have the same.
    pub ranges: Option<Vec<AddressRange>>,
    /// Whether only a part of the requested range is in both.
    pub is_part: bool,
}

impl NamedSnapshot {
    /// Begins a snapshot of the spans, or of the whole process.
    ///
    /// # Errors
    /// Fails if a fact to keep is not available here, the target is gone, or the kernel refuses a read.
    pub fn begin(
        name: String,
        target: &Target,
        symbols: &Symbols,
        spans: Option<Spans>,
        keep: Keep,
    ) -> inspect::Result<OpenNamedSnapshot> {
        let lifetime = target.process.memory_lifetime();
        let captured = || Spans::new(target.process.captured_parts(), Origin::Written);
        let spans = spans.filter(|spans| *spans.origin() != Origin::All).or_else(captured);
        let space = match &spans {
            Some(spans) => current_space(spans, target)?,
            None => AddressSpace::of(target)?,
        };
        let ranges = match &spans {
            Some(spans) => current_ranges(spans, &space, symbols, target),
            None => space.spans(),
        };
        space.require(keep.extra)?;
        let extra = keep.extra | space.obtainable(Evidence::SOFT_DIRTY);
        let file = target.process.capture_times();
        let time = match file {
            // A capture whose time exceeds that of any clock is not opened.
            Some([begun, _]) => {
                SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(begun)).unwrap_or(SystemTime::UNIX_EPOCH)
            }
            None => SystemTime::now(),
        };
        let vector = target.process.auxiliary_vector().ok();
        let snapshot = Snapshot::begin(&space, ranges, extra, keep.contents);
        let (process, is_of_file) = (target.process.identity(), file.is_some());
        Ok(NamedSnapshot { name, process, time, is_of_file, lifetime, vector, spans, snapshot })
    }

    /// Begins a snapshot of the present, with the same range and the same facts.
    ///
    /// # Errors
    /// Fails as [`NamedSnapshot::begin`].
    pub fn now(&self, target: &Target, symbols: &Symbols) -> inspect::Result<OpenNamedSnapshot> {
        let keep = Keep {
            extra: self.snapshot.extra() & (Evidence::FLAGS | Evidence::COUNTS),
            contents: self.snapshot.has_contents(),
        };
        Self::begin(crate::lang::NOW.to_owned(), target, symbols, self.spans.clone(), keep)
    }

    /// Checks that the snapshot is of the attached process, and of the program that it runs: addresses of two address
    /// spaces are unrelated.
    ///
    /// # Errors
    /// Fails if it is of another one.
    pub fn refuse_other(&self, target: &Target) -> Result<(), ComparisonRefusal> {
        let Identity { pid, name, .. } = &self.process;
        let attached = target.process.identity();
        let this = &self.name;
        // A core has no start time. The auxiliary vector has random addresses, so it decides.
        let is_file = target.machine.is_captured();
        let is_of_core = self.is_of_file && !self.process.has_start_time() || is_file && !attached.has_start_time();
        let is_same_vector = || target.process.auxiliary_vector().ok() == self.vector;
        // An exit is reported by the next command that reads the process.
        let has_exited = || matches!(target.process.liveness(), Ok(Liveness::Exited(_)));
        if is_of_core && *pid == attached.pid {
            let is_same = self.vector.is_some() && is_same_vector() || has_exited();
            return if is_same { Ok(()) } else { Err(self.of_other_program(*pid)) };
        }
        let is_same = self.process.is_same_process(&attached);
        let attached = attached.pid;
        let is_same_program = || match &self.lifetime {
            Some(lifetime) if !is_file => lifetime.is_alive(),
            _ => self.vector.is_none() || is_same_vector(),
        };
        Err(if is_same {
            if is_same_program() || has_exited() {
                return Ok(());
            }
            ComparisonRefusal {
                message: format!(
                    "the snapshot `{this}` is of an earlier program: process {pid} ran {name} then. It has executed \
                     another one since, and has none of these pages"
                ),
                hint: "`snapshot NAME` makes one of the program that it runs now".to_owned(),
            }
        } else if *pid == attached {
            ComparisonRefusal {
                message: format!("the snapshot `{this}` is of an earlier process {pid} ({name}), which has ended"),
                hint: "`snapshot NAME` makes one of this process".to_owned(),
            }
        } else {
            ComparisonRefusal {
                message: format!(
                    "the snapshot `{this}` is of process {pid} ({name}), and process {attached} is attached"
                ),
                hint: format!("use `attach {pid}` first; `compare PID` compares two processes"),
            }
        })
    }

    /// Makes the error of another process or program. Without start times it is unknown which of the two differs.
    fn of_other_program(&self, pid: u32) -> ComparisonRefusal {
        let (this, name) = (&self.name, &self.process.name);
        ComparisonRefusal {
            message: format!("the snapshot `{this}` is of another program, or of an earlier process {pid} ({name})"),
            hint: "`snapshot NAME` makes one of this program".to_owned(),
        }
    }

    /// Returns where this snapshot and a later one can be compared, inside the range if one is requested.
    ///
    /// # Errors
    /// Fails if both have nothing in common there, because the answer that nothing changed would be wrong.
    pub fn compared(&self, to: &NamedSnapshot, asked: Option<&Spans>) -> Result<CommonSpans, ComparisonRefusal> {
        let common = self.common(to);
        // A name may have other addresses now than it had then, so the sampled addresses of both count.
        let sampled = |_| self.snapshot.spans().to_vec();
        let (ranges, is_part) = match asked {
            None => {
                // A capture may be of only a part.
                let is_part = |one: &NamedSnapshot| one.is_of_file && one.spans.is_some();
                (common, is_part(self) || is_part(to))
            }
            Some(asked) => match common.or_else(|| self.spans.as_ref().map(sampled)) {
                None => (Some(asked.ranges().to_vec()), false),
                Some(covered) => {
                    let both = intersection(&covered, asked.ranges());
                    let is_whole = both == asked.ranges() || *asked.origin() == Origin::All;
                    (Some(both), !is_whole)
                }
            },
        };
        if ranges.as_ref().is_some_and(Vec::is_empty) {
            let (from, to) = (self.coverage(), to.coverage());
            return Err(ComparisonRefusal {
                message: format!("there is nothing to compare: {from}, {to}"),
                hint: "both snapshots must cover `in RANGE`".to_owned(),
            });
        }
        Ok(CommonSpans { ranges, is_part })
    }

    /// Returns the addresses that both cover; `None` if both were made of the same range.
    fn common(&self, other: &NamedSnapshot) -> Option<Vec<AddressRange>> {
        match (&self.spans, &other.spans) {
            (one, other) if one == other => None,
            (None, Some(spans)) | (Some(spans), None) => Some(spans.ranges().to_vec()),
            (Some(one), Some(other)) => Some(intersection(one.ranges(), other.ranges())),
            (None, None) => None,
        }
    }

    fn coverage(&self) -> String {
        match &self.spans {
            None => format!("`{}` covers the whole process", self.name),
            Some(spans) => {
                let (start, end) = (spans.start(), spans.end());
                format!("`{}` covers {start}..{end}", self.name)
            }
        }
    }
}

fn intersection(some: &[AddressRange], others: &[AddressRange]) -> Vec<AddressRange> {
    some.iter().flat_map(|one| one.within(others)).collect()
}

/// Returns the addresses of the range, if they are the same at all times. Those of a name depend on the regions.
pub fn fixed_ranges(spans: &Spans) -> Option<&[AddressRange]> {
    let changes = match spans.origin() {
        Origin::All | Origin::Module(_) => true,
        Origin::Region(name) => is_of_one_thing(name),
        _ => false,
    };
    (!changes).then(|| spans.ranges())
}

/// Returns the regions that are needed to sample the current addresses of the range.
///
/// # Errors
/// Fails as [`AddressSpace::of`].
pub fn current_space(spans: &Spans, target: &Target) -> inspect::Result<AddressSpace> {
    fixed_ranges(spans).map_or_else(|| AddressSpace::of(target), |ranges| AddressSpace::around(target, ranges))
}

/// Returns whether the kernel gives the name to a single object. The regions of a file have the name of the file.
fn is_of_one_thing(name: &Name) -> bool {
    name.as_bytes().starts_with(b"[")
}

/// Returns the current addresses of the range: a name selects all that has it now.
pub fn current_ranges(spans: &Spans, space: &AddressSpace, symbols: &Symbols, target: &Target) -> Vec<AddressRange> {
    let regions = |wanted: &dyn Fn(&Region) -> bool| -> Vec<AddressRange> {
        let regions = space.viewed_regions().iter().filter(|viewed| wanted(&viewed.region));
        regions.map(|viewed| viewed.range()).collect()
    };
    match spans.origin() {
        Origin::All => space.spans(),
        Origin::Module(file) => {
            let mapped = regions(&|region| region.inode != 0 && region.name == *file);
            let all: Vec<Region> = space.viewed_regions().iter().map(|one| one.region.clone()).collect();
            let bss = symbols.over(target, &all).bss_of(file).unwrap_or_default();
            let with_bss = Spans::new(mapped.iter().copied().chain(bss), spans.origin().clone());
            with_bss.map_or(mapped, |spans| spans.ranges().to_vec())
        }
        Origin::Region(name) if is_of_one_thing(name) => regions(&|region| region.name == *name),
        _ => spans.ranges().to_vec(),
    }
}
