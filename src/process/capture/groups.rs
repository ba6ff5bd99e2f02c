//! The memory of a cgroup in a capture of its processes.

use super::{Capture, Result};
use crate::budget::Budget;
use crate::process::FilesystemSearch;

impl Capture {
    /// Keeps what the account of a cgroup needs beside its processes: the counters of the kernel, and how full the
    /// filesystems in memory are that pmdb and the processes see. What cannot be read is unknown in the account, too.
    ///
    /// # Errors
    /// The budget is over.
    pub fn keep_group(&self, path: &[u8], budget: &mut Budget) -> Result<()> {
        let machine = &self.machine;
        _ = machine.cgroup_memory(path);
        let mut search = FilesystemSearch::default();
        search.add_own(machine, budget)?;
        for member in &self.members {
            search.add_process(&member.target.process, budget)?;
        }
        Ok(budget.check()?)
    }
}
