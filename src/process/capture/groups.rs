//! The memory of a cgroup in a capture of its processes.

use super::{Capture, Result};
use crate::budget::Budget;

impl Capture {
    /// Keeps what the account of a cgroup needs beside its processes: the counters of the kernel, and how full the
    /// filesystems in memory are that pmdb and the processes see. What cannot be read is unknown in the account, too.
    ///
    /// # Errors
    /// The budget is over.
    pub fn keep_group(&self, path: &[u8], budget: &mut Budget) -> Result<()> {
        let machine = &self.machine;
        _ = machine.cgroup_memory(path);
        for mount in machine.memory_mounts(budget).unwrap_or_default() {
            _ = machine.filesystem_room(&mount);
        }
        for process in self.members.iter().map(|member| &member.target.process) {
            for mount in process.memory_mounts(budget).unwrap_or_default() {
                _ = process.filesystem_room(&mount);
            }
        }
        Ok(budget.check()?)
    }
}
