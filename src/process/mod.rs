//! The target decoded: a process, found by number or name, its machine, and the files behind its regions.
//!
//! Here and nowhere else bytes are fetched from a [`Source`] and decoded with `kernel`.

#[cfg(feature = "cli")]
mod capture;
mod captured;
mod cgroups;
mod core_notes;
mod counters;
mod descriptors;
#[cfg(test)]
pub(crate) mod fake;
mod findings;
mod frame_records;
mod group_limits;
mod handles;
mod huge;
mod machine;
mod maps_text;
mod modules;
mod online;
mod pool;
mod populated;
mod region_query;
mod status;
mod target_process;
#[cfg(test)]
mod tests;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use capture::{Capture, CaptureContent, Member, unopened};

pub use crate::access::{Error, Identity, InMemory, Liveness, ProcessEntry, ReadAt, Result};
pub use crate::records::{
    FrameOwner, FrameRecord, FreeBlock, NamedFile, OwnerDetail, PageOfFile, RecordParts, RecordedMapper, RecordedPage,
    SlabCache, SwappedRange,
};
pub use crate::source::{
    BackingContent, BackingRun, Categories, Credentials, Feature, Finding, Held, MissingProcess, covered_pages,
};
#[cfg(feature = "cli")]
pub(crate) use crate::source::{PassedOver, kept_under_no_key};
pub use cgroups::CgroupMemory;
pub use counters::{MemoryCounters, SwapUse};
pub use descriptors::{KernelDescriptor, KernelMemory, MemoryDescriptor, MemoryDescriptors, PinningDescriptor};
pub use group_limits::{GroupLimit, GroupLimits};
pub use handles::{ProcessHandle, ProcessHandles};
pub use huge::{HugeSettings, HugeSize};
pub use machine::{KernelVersion, KsmCounts, Machine, OpenedProcess};
#[doc(hidden)]
pub use maps_text::MapsText;
pub use modules::{Modules, OpenedFile, WordLayout};
pub use online::MemoryAt;
pub use populated::{PopulatedRange, PopulatedRanges};
#[doc(hidden)]
pub use region_query::FEW_REGIONS;
pub use status::{ProcessStatus, Thread};
pub use target_process::Process;

use crate::access::log::Log;
use crate::budget::Budget;
use crate::kernel::status::Stat;
use crate::kernel::{Name, maps};
use crate::source::{List, Listed, Source, live, recorded};
use machine::entry;
#[cfg(feature = "cli")]
use std::collections::BTreeSet;
use std::sync::Arc;

/// One target, whole: what commands look at. A clone is the same target, and costs next to nothing.
#[derive(Clone)]
pub struct Target {
    /// Its process.
    pub process: Process,
    /// The machine it runs on.
    pub machine: Arc<Machine>,
    /// The files behind its regions.
    pub modules: Modules,
}

impl Target {
    /// Attaches to the process with that id: opens what pmdb reads of it. A thread id stands for its process. Nothing
    /// of the process changes.
    ///
    /// # Errors
    /// [`Gone`](Error::Gone) if there is no such process or it is a zombie, [`NotAvailable`](Error::NotAvailable) for a
    /// kernel thread, [`NotPermitted`](Error::NotPermitted) if its page map may not be read.
    pub fn attach(pid: u32) -> Result<Self> {
        live::process(pid).map(Self::new)
    }

    /// The target that a source gives.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Target {
            process: Process::new(Arc::clone(&source)),
            machine: Arc::new(Machine::new(Arc::clone(&source))),
            modules: Modules::new(source),
        }
    }

    /// The target in a capture or an ELF core file that was written at `time`, in seconds since 1970.
    ///
    /// # Errors
    /// The file is none, is damaged, or cannot be read.
    #[cfg(feature = "cli")]
    #[doc(hidden)]
    pub fn of_capture(file: Box<dyn ReadAt>, time: u64) -> Result<Self> {
        let is_core = crate::source::core::is_core(&*file);
        let source = if is_core { crate::source::core::open(file, time) } else { crate::source::capture::open(file) };
        source.map(Self::new)
    }

    /// Another process of the same capture.
    ///
    /// # Errors
    /// It is not in it.
    #[cfg(feature = "cli")]
    pub(crate) fn member(&self, pid: u32) -> Result<Self> {
        if pid == self.process.identity().pid {
            return Ok(self.clone());
        }
        let handles = self.machine.process_handles()?.processes;
        let source = self.process.source();
        // The source says why a process is missing.
        let is_missing = self.process.missing_processes().iter().any(|one| one.pid == pid);
        let is_member = is_missing || handles.iter().any(|one| one.pid == pid);
        let what = || Error::not_in("this capture", &format!("process {pid}"));
        if is_member { source.open(pid, &Held::default()).map(Self::new) } else { Err(what()) }
    }

    /// The same target, with numbers for names.
    #[cfg(feature = "cli")]
    #[must_use]
    pub(crate) fn without_names(&self) -> Self {
        Target::new(crate::source::capture::Nameless::over(Arc::clone(self.process.source())))
    }

    /// The same target, with what each reading of all its regions may take.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Target { process: self.process.with_budget(budget), ..self }
    }

    /// The same target; `log` records what is read of it.
    #[doc(hidden)]
    #[must_use]
    pub fn recorded(&self, log: &Arc<Log>) -> Self {
        let source = recorded::source(self.process.source(), log);
        Target {
            process: self.process.over(Arc::clone(&source)),
            machine: Arc::new(self.machine.over(Arc::clone(&source))),
            modules: Modules::new(source),
        }
    }
}

/// The machine that pmdb runs on, with no target.
pub fn machine() -> Arc<Machine> {
    Arc::new(Machine::new(live::machine()))
}

/// The process that was meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ResolvedProcess {
    /// Its number.
    pub pid: u32,
    /// By what it was found.
    pub by: ResolvedBy,
}

/// By what a process was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ResolvedBy {
    /// By its own number.
    Process,
    /// By the number of one of its threads. A note says so to the user.
    Thread(u32),
    /// By name.
    Name,
    /// As `self`: pmdb. A note warns the user that each command changes pmdb's own memory.
    Itself,
}

/// Finds the process that `what` stands for: a process or thread id, `self`, or a name, which is the kernel's short
/// name of it (the one that `ps` shows) or the file name of its program.
///
/// # Errors
/// [`Gone`](Error::Gone) if there is none, [`Ambiguous`](Error::Ambiguous) with all of them if there are several.
pub fn resolve(what: &str) -> Result<ResolvedProcess> {
    if what == "self" {
        return Ok(ResolvedProcess { pid: std::process::id(), by: ResolvedBy::Itself });
    }
    if !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit()) {
        return by_number(what);
    }
    let candidates = living_processes(what)?;
    match &candidates[..] {
        [only] => Ok(ResolvedProcess { pid: only.pid, by: ResolvedBy::Name }),
        _ => Err(Error::Ambiguous { name: Name::from(what).to_string(), candidates }),
    }
}

/// The living processes of a name but pmdb itself, by number: at least one.
fn living_processes(name: &str) -> Result<Vec<ProcessEntry>> {
    let machine = live::machine();
    let mut listed = machine.list(List::All)?;
    listed.sort_unstable_by_key(|one| one.pid);
    // A process that has exited has no memory, even before its parent reaps it.
    let (living, ended): (Vec<ProcessEntry>, Vec<ProcessEntry>) = listed
        .iter()
        .filter(|one| one.pid != std::process::id() && is_called(one, name.as_bytes()))
        .filter_map(|one| entry(&*machine, one))
        .partition(|entry| !matches!(entry.state, 'Z' | 'X'));
    match (living.is_empty(), ended.first()) {
        (false, _) => Ok(living),
        (true, None) => Err(Error::no_such_process(format!("no such process: `{}`", Name::from(name)))),
        (true, Some(ended)) => Err(Error::no_such_process(format!(
            "process {} ({}) has exited, and its parent has not waited for it yet (a zombie)",
            ended.pid, ended.name
        ))),
    }
}

/// Names of running processes, and of their executables, that contain `name` and are not it: for hints. None if
/// processes cannot be listed.
#[cfg(feature = "cli")]
pub(crate) fn similar_names(name: &str) -> Vec<String> {
    /// Shorter ones are in too many.
    const SHORTEST: usize = 3;
    /// The most names that a hint has.
    const MOST: usize = 5;
    if name.len() < SHORTEST {
        return Vec::new();
    }
    let listed = live::machine().list(List::All).unwrap_or_default();
    let others = listed.iter().filter(|one| one.pid != std::process::id() && !is_called(one, name.as_bytes()));
    let names = others.flat_map(|one| {
        // Threads of the kernel (`kworker/…`) have no memory to examine.
        let own = Stat::parse(&one.stat).ok().filter(|stat| !stat.is_kernel_thread).map(|stat| stat.name.to_string());
        let program = one.program.as_ref().map(|path| maps::name(path).0.file_name().to_string());
        [own, program]
    });
    let similar: BTreeSet<String> = names.flatten().filter(|one| one.contains(name)).collect();
    similar.into_iter().take(MOST).collect()
}

fn by_number(digits: &str) -> Result<ResolvedProcess> {
    let absent = || Error::no_such_process(format!("no such process: {digits} (or it is hidden from this user)"));
    let number: u32 = digits.parse().map_err(|_| absent())?;
    let pid = live::process_of(number)?;
    Ok(ResolvedProcess { pid, by: if pid == number { ResolvedBy::Process } else { ResolvedBy::Thread(number) } })
}

/// The processes of this name with memory, as [`resolve`] finds them.
///
/// # Errors
/// [`Gone`](Error::Gone) if there is none, or processes cannot be listed.
pub fn processes_called(name: &str) -> Result<Vec<ProcessHandle>> {
    // Threads of the kernel have none.
    let called = living_processes(name)?.into_iter().filter(|one| one.resident.is_some());
    let called: Vec<ProcessHandle> = called.map(|one| ProcessHandle::of_numbers(one.pid, 0)).collect();
    if called.is_empty() {
        let name = Name::from(name);
        return Err(Error::not_available(format!("`{name}` is a kernel thread: it has no memory of its own")));
    }
    Ok(called)
}

/// The processes of this name in the capture of a machine.
///
/// # Errors
/// [`Gone`](Error::Gone) if there is none, or it has no list of processes.
pub(crate) fn captured_processes_called(name: &str, machine: &Machine) -> Result<Vec<ProcessHandle>> {
    let listed = machine.source().list(List::All)?;
    let called = listed.iter().filter(|one| is_called(one, name.as_bytes()));
    let called: Vec<ProcessHandle> = called.map(|one| ProcessHandle::of_numbers(one.pid, 0)).collect();
    if called.is_empty() {
        let what = format!("no process in this capture is called `{}`", Name::from(name));
        return Err(Error::no_such_process(what));
    }
    Ok(called)
}

/// The kernel cuts `comm` off after 15 bytes.
const COMM_BYTES: usize = 15;

fn is_called(listed: &Listed, name: &[u8]) -> bool {
    let Ok(stat) = Stat::parse(&listed.stat) else {
        return false;
    };
    if stat.name.as_bytes() == name {
        return true;
    }
    match &listed.program {
        Some(path) => maps::name(path).0.file_name().as_bytes() == name,
        // Without a known program, the cut name decides.
        None => name.get(..COMM_BYTES) == Some(stat.name.as_bytes()),
    }
}
