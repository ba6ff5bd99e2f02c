//! Handles on processes, for callers that need each process but few facts about it.

use crate::source::Held;
use std::collections::BTreeSet;

/// The processes that may have user memory.
#[derive(Debug)]
pub struct ProcessHandles {
    /// The processes with their parents, by process id.
    pub processes: Vec<ProcessHandle>,
    /// Whether `/proc` lists the processes of all namespaces and users. It does if it lists kernel threads, which
    /// belong to the initial PID namespace and to root. Otherwise it is of another namespace, or hides other users
    /// (`hidepid`).
    pub are_all: bool,
}

/// A process, with its parent.
#[derive(Clone, Debug)]
pub struct ProcessHandle {
    /// Process id.
    pub pid: u32,
    /// The process id of the parent; 0 if there is none.
    pub parent: u32,
    /// Clock ticks from boot to the start of the process; 0 if it was not listed.
    pub(super) start_time: u64,
    /// A handle on the process.
    pub(super) held: Held,
}

impl ProcessHandles {
    /// Returns whether `process` descends from `ancestor`.
    pub fn descends(&self, process: u32, ancestor: u32) -> bool {
        let parent = |pid: u32| self.processes.iter().find(|one| one.pid == pid).map(|one| one.parent);
        // Processes that end while they are listed may form a circle.
        std::iter::successors(parent(process), |pid| parent(*pid)).take(self.processes.len()).any(|pid| pid == ancestor)
    }

    /// Returns the process and all its descendants.
    pub fn family_of(self, process: u32) -> Vec<ProcessHandle> {
        let mut family = BTreeSet::from([process]);
        // A child may have a lower id than its parent.
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
    /// Makes an entry without a handle.
    pub fn of_numbers(pid: u32, parent: u32) -> Self {
        let held = Held::default();
        ProcessHandle { pid, parent, start_time: 0, held }
    }
}
