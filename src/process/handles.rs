//! Handles on processes: for those that want each process, but few facts of it.

use crate::source::Held;
use std::collections::BTreeSet;

/// Processes that may have memory of their own.
#[derive(Debug)]
pub struct ProcessHandles {
    /// Each with its parent, by number.
    pub processes: Vec<ProcessHandle>,
    /// Whether `/proc` lists the processes of all namespaces and users. It does if it lists kernel threads, which
    /// belong to the initial pid namespace and to root. Otherwise it is of another namespace, or hides other users
    /// (`hidepid`).
    pub are_all: bool,
}

/// A process and whose child it is.
#[derive(Clone, Debug)]
pub struct ProcessHandle {
    /// Process id.
    pub pid: u32,
    /// Its parent's; 0 for none.
    pub parent: u32,
    /// When it started, in clock ticks since boot; 0 if it was not listed.
    pub(super) start_time: u64,
    /// A handle on it.
    pub(super) held: Held,
}

impl ProcessHandles {
    /// A process, and all that descend from it.
    pub fn family_of(self, process: u32) -> Vec<ProcessHandle> {
        let mut family = BTreeSet::from([process]);
        // A child may have a lower number than its parent.
        loop {
            let children = self.processes.iter().filter(|one| family.contains(&one.parent)).map(|one| one.pid);
            let children: Vec<u32> = children.collect();
            let before = family.len();
            family.extend(children);
            if family.len() == before {
                break;
            }
        }
        self.processes.into_iter().filter(|one| family.contains(&one.pid)).collect()
    }
}

impl ProcessHandle {
    /// A process without a handle.
    pub fn of_numbers(pid: u32, parent: u32) -> Self {
        let held = Held::default();
        ProcessHandle { pid, parent, start_time: 0, held }
    }
}
