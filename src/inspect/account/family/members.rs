//! Which processes are a family.

use super::super::super::Result;
use crate::process::{self, CgroupMemory, Machine, ProcessHandle};
use std::collections::BTreeSet;

/// A process, and all that descend from it.
///
/// # Errors
/// Processes cannot be listed.
pub fn descendants(machine: &Machine, process: u32) -> Result<Vec<ProcessHandle>> {
    Ok(machine.process_handles()?.family_of(process))
}

/// The processes that have this name, or whose executable has it, without the one that asks.
///
/// # Errors
/// There is none, or processes cannot be listed.
pub fn called(machine: &Machine, name: &str) -> process::Result<Vec<ProcessHandle>> {
    if machine.is_captured() {
        process::captured_processes_called(name, machine)
    } else {
        process::processes_called(name)
    }
}

/// The processes of a memory cgroup and of those below it, and what the kernel counts of its memory.
///
/// # Errors
/// It cannot be read, or processes cannot be listed.
pub fn of_cgroup(machine: &Machine, path: &[u8]) -> Result<(Vec<ProcessHandle>, CgroupMemory)> {
    let memory = machine.cgroup_memory(path)?;
    let wanted: BTreeSet<u32> = memory.processes.iter().copied().collect();
    let all = machine.process_handles()?.processes.into_iter();
    Ok((all.filter(|one| wanted.contains(&one.pid)).collect(), memory))
}
