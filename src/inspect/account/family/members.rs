//! The processes of a family.

use super::super::super::Result;
use crate::process::{self, CgroupMemory, Machine, ProcessHandle};
use std::collections::BTreeSet;

/// Returns a process and all its descendants.
///
/// # Errors
/// Fails if processes cannot be listed.
pub fn descendants(machine: &Machine, process: u32) -> Result<Vec<ProcessHandle>> {
    Ok(machine.process_handles()?.family_of(process))
}

/// Returns the processes that have this name, or whose executable has it, without pmdb itself.
///
/// # Errors
/// Fails if there is none, or processes cannot be listed.
pub fn called(machine: &Machine, name: &str) -> process::Result<Vec<ProcessHandle>> {
    if machine.is_captured() {
        process::captured_processes_called(name, machine)
    } else {
        process::processes_called(name)
    }
}

/// Returns the processes of a memory cgroup and its descendants, and the counters of its memory.
///
/// # Errors
/// Fails if the cgroup cannot be read, or processes cannot be listed.
pub fn of_cgroup(machine: &Machine, path: &[u8]) -> Result<(Vec<ProcessHandle>, CgroupMemory)> {
    let memory = machine.cgroup_memory(path)?;
    let wanted: BTreeSet<u32> = memory.processes.iter().copied().collect();
    let all = machine.process_handles()?.processes.into_iter();
    Ok((all.filter(|one| wanted.contains(&one.pid)).collect(), memory))
}
