//! The target decoded: a process, its machine, and the files behind its regions.
//!
//! Here and nowhere else bytes are fetched from a [`Source`] and decoded with `kernel`.

mod cgroups;
mod command_line;
#[cfg(test)]
pub(crate) mod fake;
mod findings;
mod layout;
mod machine;
mod maps_text;
mod modules;
mod naming;
mod populated;
mod resolve;
mod target_process;
#[cfg(test)]
mod tests;
mod threads;

pub use crate::source::{
    BackingContent, BackingRun, Categories, Credentials, Error, Feature, Finding, Held, Identity, InMemory, Liveness,
    ProcessEntry, ReadAt, Result, WordFile, covered_pages,
};
pub use layout::Layout;
pub use machine::{KernelVersion, Machine, Merging, Opened, Relation, Relations};
pub use maps_text::MapsText;
pub use modules::{Modules, OpenedFile};
pub use populated::Populated;
pub use resolve::{Asked, Resolved, resolve};
pub use target_process::{FEW_REGIONS, Process, ProcessStatus};
pub use threads::Thread;

use crate::source::{Source, live, recorded};
use std::sync::Arc;

/// One target, whole: what commands look at. A clone is the same target, and costs next to nothing.
#[derive(Clone)]
pub struct Target {
    /// Its process.
    pub process: Process,
    /// The machine it runs on.
    pub machine: Arc<Machine>,
    /// The files behind its regions.
    pub modules: Modules,
}

impl Target {
    /// Attaches to the process with that id: opens what pmdb reads of it. A thread id stands for its process. Nothing
    /// of the process changes.
    ///
    /// # Errors
    /// [`Gone`](Error::Gone) if there is no such process or it is a zombie, [`NotAvailable`](Error::NotAvailable) for a
    /// kernel thread, [`NotPermitted`](Error::NotPermitted) if its page map may not be read.
    pub fn attach(pid: u32) -> Result<Self> {
        live::process(pid).map(Self::new)
    }

    /// The target that a source gives.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Target {
            process: Process::new(Arc::clone(&source)),
            machine: Arc::new(Machine::new(Arc::clone(&source))),
            modules: Modules::new(source),
        }
    }

    /// The same target; `log` records what is read of it.
    pub fn recorded(&self, log: &Arc<recorded::Log>) -> Self {
        let source = recorded::source(self.process.source(), log);
        Target {
            process: self.process.over(Arc::clone(&source)),
            machine: Arc::new(Machine::new(Arc::clone(&source))),
            modules: Modules::new(source),
        }
    }
}

/// The machine that pmdb runs on, with no target.
pub fn machine() -> Arc<Machine> {
    Arc::new(Machine::new(live::machine()))
}
