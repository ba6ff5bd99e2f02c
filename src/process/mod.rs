//! The decoded target: a process, found by id or name, its machine, and the files that its regions map.
//!
//! Only this module fetches bytes from a [`Source`] and decodes them with `kernel`.

#[cfg(feature = "cli")]
mod capture;
mod captured;
mod cgroups;
mod core_notes;
mod counters;
mod descriptors;
#[cfg(test)]
pub(crate) mod fake;
mod filesystems;
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
mod processes;
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
pub use counters::{MemoryCounters, PoolCounters, SwapUse};
pub use descriptors::{KernelDescriptor, KernelMemory, MemoryDescriptor, MemoryDescriptors, PinningDescriptor};
pub(crate) use filesystems::{FilesystemSearch, FoundFilesystem, UnknownFilesystems};
pub use group_limits::{GroupLimit, GroupLimits};
pub use handles::{ProcessHandle, ProcessHandles};
pub use huge::{HugeSettings, HugeSize};
pub use machine::{KernelVersion, KsmCounts, Machine};
#[doc(hidden)]
pub use maps_text::MapsText;
pub use modules::{Modules, OpenedFile, WordLayout};
pub use online::MemoryAt;
pub use populated::{PopulatedRange, PopulatedRanges};
pub use processes::OpenedProcess;
#[doc(hidden)]
pub use region_query::FEW_REGIONS;
pub use status::{ProcessStatus, Thread};
pub use target_process::Process;

use crate::access::log::Log;
use crate::budget::Budget;
use crate::kernel::status::Stat;
use crate::kernel::text::unescape;
use crate::kernel::{Name, maps};
use crate::source::{List, Listed, Source, live, recorded};
use processes::entry;
#[cfg(feature = "cli")]
use std::collections::BTreeSet;
use std::sync::Arc;

/// A target: the process, machine and files that commands examine. A clone is the same target, and costs next to
/// nothing.
#[derive(Clone)]
pub struct Target {
    /// The process.
    pub process: Process,
    /// The machine that the process runs on.
    pub machine: Arc<Machine>,
    /// The files that the process maps.
    pub modules: Modules,
}

impl Target {
    /// Attaches to the process with this id, and opens the files of `/proc` that pmdb reads. A thread id selects its
    /// process. The process is not changed.
    ///
    /// # Errors
    /// Fails with [`Gone`](Error::Gone) if there is no such process or it is a zombie, with
    /// [`NotAvailable`](Error::NotAvailable) for a kernel thread, and with [`NotPermitted`](Error::NotPermitted) if its
    /// page map may not be read.
    pub fn attach(pid: u32) -> Result<Self> {
        live::process(pid).map(Self::new)
    }

    /// Makes the target that a source reads.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Target {
            process: Process::new(Arc::clone(&source)),
            machine: Arc::new(Machine::new(Arc::clone(&source))),
            modules: Modules::new(source),
        }
    }

    /// Opens the target in a capture or an ELF core file that was written at `time`, in seconds since 1970.
    ///
    /// # Errors
    /// Fails if the file is neither, is damaged, or cannot be read.
    #[cfg(feature = "cli")]
    #[doc(hidden)]
    pub fn of_capture(file: Box<dyn ReadAt>, time: u64) -> Result<Self> {
        let is_core = crate::source::core::is_core(&*file);
        let source = if is_core { crate::source::core::open(file, time) } else { crate::source::capture::open(file) };
        source.map(Self::new)
    }

    /// Returns another process of the same capture.
    ///
    /// # Errors
    /// Fails if the capture does not have the process.
    #[cfg(feature = "cli")]
    pub(crate) fn member(&self, pid: u32) -> Result<Self> {
        if pid == self.process.identity().pid {
            return Ok(self.clone());
        }
        let handles = self.machine.process_handles()?.processes;
        let source = self.process.source();
        // The error of the source has the reason why a process is missing.
        let is_missing = self.process.missing_processes().iter().any(|one| one.pid == pid);
        let is_member = is_missing || handles.iter().any(|one| one.pid == pid);
        let what = || Error::not_in("this capture", &format!("process {pid}"));
        if is_member { source.open(pid, &Held::default()).map(Self::new) } else { Err(what()) }
    }

    /// Returns the same target, with numbers in place of names.
    #[cfg(feature = "cli")]
    #[must_use]
    pub(crate) fn without_names(&self) -> Self {
        Target::new(crate::source::capture::Nameless::over(Arc::clone(self.process.source())))
    }

    /// Sets the budget of each reading of all its regions.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Target { process: self.process.with_budget(budget), ..self }
    }

    /// Returns the same target, with a `log` of all reads.
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

/// Returns the machine that pmdb runs on, without a target.
pub fn machine() -> Arc<Machine> {
    Arc::new(Machine::new(live::machine()))
}

/// The process that a word selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ResolvedProcess {
    /// The process id.
    pub pid: u32,
    /// How the process was found.
    pub by: ResolvedBy,
}

/// How a process was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ResolvedBy {
    /// By its id.
    Process,
    /// By the id of one of its threads. A note informs the user.
    Thread(u32),
    /// By name.
    Name,
    /// By the word `self`: it is pmdb. A note warns the user that each command changes the memory of pmdb.
    Itself,
}

/// Finds the process that `what` selects: a process or thread id, `self`, or a name. A name is the one that `ps` shows
/// (`comm`), or, where no process has it, the file name of the executable.
///
/// # Errors
/// Fails with [`Gone`](Error::Gone) if there is none, and with [`Ambiguous`](Error::Ambiguous), which lists them, if
/// there are several.
pub fn resolve(what: &str) -> Result<ResolvedProcess> {
    if what == "self" {
        return Ok(ResolvedProcess { pid: std::process::id(), by: ResolvedBy::Itself });
    }
    if !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit()) {
        return by_number(what);
    }
    let candidates = living_processes(what)?;
    // A child that has taken another name is still of the same executable.
    let (own, others): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|one| is_spelled(what, |name| has_name(&one.name, name)));
    let candidates = if own.is_empty() { others } else { own };
    match &candidates[..] {
        [only] => Ok(ResolvedProcess { pid: only.pid, by: ResolvedBy::Name }),
        _ => Err(Error::Ambiguous { name: Name::from(what).to_string(), candidates }),
    }
}

/// Returns the living processes with this name, without pmdb, by process id: at least one.
fn living_processes(name: &str) -> Result<Vec<ProcessEntry>> {
    let machine = live::machine();
    let mut listed = machine.list(List::All)?;
    listed.sort_unstable_by_key(|one| one.pid);
    // A process that has exited has no memory, even before its parent reaps it.
    let (living, ended): (Vec<ProcessEntry>, Vec<ProcessEntry>) = listed
        .iter()
        .filter(|one| one.pid != std::process::id() && is_spelled(name, |name| is_called(one, name)))
        .filter_map(|one| entry(&*machine, one))
        .partition(|entry| !matches!(entry.state, 'Z' | 'X'));
    match (living.is_empty(), ended.first()) {
        (false, _) => Ok(living),
        (true, None) => Err(Error::no_such_process(format!("no process is called `{}`", Name::from(name)))),
        (true, Some(ended)) => Err(Error::no_such_process(format!(
            "process {} ({}) has exited, and its parent has not waited for it yet (a zombie)",
            ended.pid, ended.name
        ))),
    }
}

/// Returns names of running processes, and of their executables, that contain `name` but differ from it, for hints.
/// Empty if processes cannot be listed.
#[cfg(feature = "cli")]
pub(crate) fn similar_names(name: &str) -> Vec<String> {
    /// Bytes of the shortest name that is searched: shorter ones are in too many names.
    const SHORTEST: usize = 3;
    /// The most names that a hint has.
    const MOST: usize = 5;
    if name.len() < SHORTEST {
        return Vec::new();
    }
    let listed = live::machine().list(List::All).unwrap_or_default();
    let others =
        listed.iter().filter(|one| one.pid != std::process::id() && !is_spelled(name, |name| is_called(one, name)));
    let names = others.flat_map(|one| {
        // Kernel threads (`kworker/…`) have no memory to examine.
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

/// Opens handles on the processes of this name with memory, as [`resolve`] finds them.
///
/// # Errors
/// Fails with [`Gone`](Error::Gone) if there is none, or if processes cannot be listed.
pub fn processes_called(name: &str) -> Result<Vec<ProcessHandle>> {
    // Kernel threads have no memory.
    let called = living_processes(name)?.into_iter().filter(|one| one.resident.is_some());
    let called: Vec<ProcessHandle> = called.map(|one| ProcessHandle::of_numbers(one.pid, 0)).collect();
    if called.is_empty() {
        let name = Name::from(name);
        return Err(Error::not_available(format!("`{name}` is a kernel thread: it has no memory of its own")));
    }
    Ok(called)
}

/// Returns the processes of this name in the capture of a machine.
///
/// # Errors
/// Fails with [`Gone`](Error::Gone) if there is none, or if the capture has no list of processes.
pub(crate) fn captured_processes_called(name: &str, machine: &Machine) -> Result<Vec<ProcessHandle>> {
    let listed = machine.source().list(List::All)?;
    let called = listed.iter().filter(|one| is_spelled(name, |name| is_called(one, name)));
    let called: Vec<ProcessHandle> = called.map(|one| ProcessHandle::of_numbers(one.pid, 0)).collect();
    if called.is_empty() {
        let what = format!("no process in this capture is called `{}`", Name::from(name));
        return Err(Error::no_such_process(what));
    }
    Ok(called)
}

/// The length of `comm`, after which the kernel cuts a name.
const COMM_BYTES: usize = 15;

/// Returns whether `is` accepts the name as it is written, or with the escapes in which names are printed: `\x1b`.
fn is_spelled(written: &str, is: impl Fn(&[u8]) -> bool) -> bool {
    is(written.as_bytes()) || written.contains('\\') && is(&unescape(written))
}

/// Returns whether `comm` is the name, as far as the kernel keeps it.
fn has_name(comm: &Name, name: &[u8]) -> bool {
    comm.as_bytes() == name.get(..COMM_BYTES).unwrap_or(name)
}

fn is_called(listed: &Listed, name: &[u8]) -> bool {
    let Ok(stat) = Stat::parse(&listed.stat) else {
        return false;
    };
    if stat.name.as_bytes() == name {
        return true;
    }
    match &listed.program {
        Some(path) => maps::name(path).0.file_name().as_bytes() == name,
        // If the executable is unknown, the cut name decides.
        None => name.get(..COMM_BYTES) == Some(stat.name.as_bytes()),
    }
}
