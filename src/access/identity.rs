//! The identity of a process, and whether it still runs the same program.

use crate::kernel::Name;

/// The identity of a process. Its id alone is none, as ids are reused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// The start time in clock ticks since boot (`/proc/PID/stat` field 22); 0 in a core, which lacks it.
    pub start_time: u64,
    /// The short name that the kernel keeps (`comm`).
    pub name: Name,
}

impl Identity {
    /// Returns whether both are of one process, even if its name has changed.
    pub fn is_same_process(&self, other: &Identity) -> bool {
        (self.pid, self.start_time) == (other.pid, other.start_time)
    }

    /// Returns whether the start time is known. That of the first process of a machine may be 0 too.
    #[cfg(feature = "cli")]
    pub(crate) fn has_start_time(&self) -> bool {
        self.start_time != 0
    }
}

/// The state of the target since pmdb attached to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// The process still runs the same program.
    Alive,
    /// The process has executed another program. The target was reopened, and all earlier data is void.
    Executed,
    /// The process has exited or is a zombie. The value is its status as wait(2) gives it; `None` if that is unknown.
    Exited(Option<i32>),
}

/// The lifetime of the address space that a process had at some time.
pub trait MemoryLifetime: Send + Sync {
    /// Returns whether the address space still exists: the process has neither exited nor executed another program.
    fn is_alive(&self) -> bool;
}
