//! The processes of a machine: how they are listed, opened and compared.

use super::handles::{ProcessHandle, ProcessHandles};
use super::machine::Machine;
use super::modules::Modules;
use super::status::{age, read_command_line};
use super::target_process::Process;
use crate::access::{Error, ProcessEntry, Result};
use crate::kernel::Name;
use crate::kernel::smaps::Smaps;
use crate::kernel::status::{Stat, Status};
use crate::source::{Held, List, Listed, Probe, Source};
use std::cmp;
use std::sync::Arc;
use std::time::Duration;

/// A process that was opened in addition to the target.
#[non_exhaustive]
pub struct OpenedProcess {
    /// The process.
    pub process: Process,
    /// The files that its regions map.
    pub modules: Modules,
}

impl Machine {
    /// Lists all processes.
    pub fn processes(&self) -> Result<Vec<ProcessEntry>> {
        let mut listed = self.source().list(List::All)?;
        listed.sort_unstable_by_key(|one| one.pid);
        let entries = listed.iter().filter_map(|one| entry(self.source(), one));
        Ok(entries.collect())
    }

    /// Returns one process as in [`processes`](Self::processes); `None` if it has exited.
    pub fn process_entry(&self, pid: u32) -> Option<ProcessEntry> {
        let listed = self.source().list(List::One(pid)).ok()?;
        entry(self.source(), listed.first()?)
    }

    /// Reads the [rollup](Process::rollup) of a process.
    pub fn rollup_of(&self, pid: u32) -> Result<Smaps> {
        Process::new(self.source().open(pid, &Held::default())?).rollup()
    }

    /// Opens a handle on each process that may have user memory, with its parent, by process id. It is cheaper than a
    /// listing, which reads command lines from the memory of processes.
    pub fn process_handles(&self) -> Result<ProcessHandles> {
        let mut relations = ProcessHandles { processes: Vec::new(), are_all: false };
        for Listed { pid, stat, held, .. } in self.source().list(List::Held)? {
            let stat = Stat::parse(&stat)?;
            let Stat { parent, start_time, .. } = stat;
            if stat.is_kernel_thread {
                relations.are_all = true;
            } else {
                relations.processes.push(ProcessHandle { pid, parent, start_time, held });
            }
        }
        relations.processes.sort_unstable_by_key(|one| one.pid);
        Ok(relations)
    }

    /// Returns whether a process has a child that was born within this time.
    ///
    /// # Errors
    /// Fails if processes cannot be listed.
    pub fn has_forked(&self, parent: u32, within: Duration) -> Result<bool> {
        /// Two clock ticks, in seconds, because each time is truncated to one.
        const INEXACT: f64 = 0.02;
        let handles = self.process_handles()?;
        let children = handles.processes.iter().filter(|one| one.parent == parent);
        let youngest = children.map(|one| one.start_time).max();
        let is_young = |birth| age(self.source(), birth).is_none_or(|age| age <= within.as_secs_f64() + INEXACT);
        Ok(youngest.is_some_and(is_young))
    }

    /// Opens one of the listed processes, as attaching does.
    ///
    /// # Errors
    /// Fails as attaching does: access is refused, or the process has ended.
    pub fn open(&self, one: &ProcessHandle) -> Result<OpenedProcess> {
        let source = self.source().open(one.pid, &one.held)?;
        let process = match self.cache.abilities.get() {
            Some(&known) => Process::with(Arc::clone(&source), known),
            None => Process::new(Arc::clone(&source)),
        };
        self.cache.abilities.get_or_init(|| process.abilities());
        Ok(OpenedProcess { process, modules: Modules::new(source) })
    }

    /// Returns the process id of pmdb in this machine's list of processes; `None` if pmdb does not run on this machine.
    ///
    /// # Errors
    /// Fails if `/proc` does not show it.
    pub fn own_number(&self) -> Result<Option<u32>> {
        match self.source().fetch(Probe::OwnNumber) {
            Err(Error::NotAvailable { .. }) => Ok(None),
            number => Ok(number?.first().and_then(|&number| u32::try_from(number).ok())),
        }
    }

    /// Returns the process of pmdb, opened once; `None` if pmdb does not run on this machine.
    ///
    /// # Errors
    /// Fails if `/proc` does not show it, or it may not be opened.
    pub fn own_process(&self) -> Result<Option<Process>> {
        if let Some(process) = self.cache.own.get() {
            return Ok(Some(process.clone()));
        }
        let Some(number) = self.own_number()? else {
            return Ok(None);
        };
        let opened = self.open(&ProcessHandle::of_numbers(number, 0))?;
        Ok(Some(self.cache.own.get_or_init(|| opened.process).clone()))
    }

    /// Searches a process with the same address space by kcmp(2). `others` are sorted by address space, in an arbitrary
    /// but consistent order of the kernel. `Ok(i)`: `process` shares memory with `others[i]`; `Err(i)`: the place to
    /// insert it; `None`: the kernel cannot compare. Processes share memory after vfork, or after `clone` with CLONE_VM
    /// and without CLONE_THREAD.
    #[doc(hidden)]
    pub fn find_memory(&self, others: &[u32], process: u32) -> Option<std::result::Result<usize, usize>> {
        let mut is_told = true;
        let place = others.binary_search_by(|&other| {
            let order = match self.source().word(Probe::Compare(other, process)) {
                Some(0) => Some(cmp::Ordering::Equal),
                Some(1) => Some(cmp::Ordering::Less),
                Some(2) => Some(cmp::Ordering::Greater),
                _ => None,
            };
            is_told &= order.is_some();
            order.unwrap_or(cmp::Ordering::Less)
        });
        is_told.then_some(place)
    }
}

/// Makes the entry of a process in a listing.
pub(super) fn entry(source: &dyn Source, listed: &Listed) -> Option<ProcessEntry> {
    let stat = Stat::parse(&listed.stat).ok()?;
    let status = Status::parse(&listed.status).ok()?;
    let resident = status.memory.iter().find(|(field, _)| field == "VmRSS");
    let command_line = || {
        let one = source.open(listed.pid, &listed.held).ok()?;
        read_command_line(&*one, stat.arguments)
    };
    Some(ProcessEntry {
        pid: listed.pid,
        user: status.user,
        parent: stat.parent,
        state: stat.state,
        resident: resident.map(|(_, bytes)| *bytes),
        command_line: if stat.is_kernel_thread { Some(Name::default()) } else { command_line() },
        name: stat.name,
    })
}
