//! Which process it is, and whether it still runs the same program.

use crate::kernel::Name;

/// The identity of a process: more than its number, as numbers are reused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat` field 22); 0 in a core, which does not have it.
    pub start_time: u64,
    /// The short name the kernel keeps (`comm`).
    pub name: Name,
}

impl Identity {
    /// Whether both are of one process, even if its name has changed.
    pub fn is_same_process(&self, other: &Identity) -> bool {
        (self.pid, self.start_time) == (other.pid, other.start_time)
    }

    /// Whether the start time is known. The first process of a machine may have a start time of 0 too.
    #[cfg(feature = "cli")]
    pub(crate) fn has_start_time(&self) -> bool {
        self.start_time != 0
    }
}

/// The state of the target since it was attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Still the same program.
    Alive,
    /// The same process now runs another program: reopened, and everything known before is void.
    Executed,
    /// It has exited (or is a zombie): nothing is left to inspect. How it ended, as `wait` gives it; `None` where that
    /// is not known.
    Exited(Option<i32>),
}

/// How long the address space that a process had at some time exists.
pub trait MemoryLifetime: Send + Sync {
    /// Whether it is still there: the process has neither exited nor executed another program since.
    fn is_alive(&self) -> bool;
}
