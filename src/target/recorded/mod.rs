//! `--how`: the three traits around three others, writing down what is read through them.
//!
//! What is asked for is written down, with the file behind it: how the kernel was found to be built and set up, which is asked once
//! (`info capabilities` tells it), and the contents of files that a process maps are not.

mod log;
mod machine;
mod modules;
mod process;
mod stretches;
#[cfg(test)]
mod tests;

pub use log::{Log, Read, Reads, dump_of_any};

use super::{Machine, Modules, Process, Target};
use machine::RecordedMachine;
use modules::RecordedModules;
use process::RecordedProcess;
use std::ops::Deref;
use std::sync::Arc;

/// `target`, with what is read of it written into `log`.
pub fn target(target: &Arc<Target>, log: &Arc<Log>) -> Target {
    Target {
        process: Box::new(RecordedProcess::new(
            ProcessOf(Arc::clone(target)),
            Arc::clone(log),
        )),
        machine: machine(&target.machine, log),
        modules: Box::new(RecordedModules::new(
            target.process.identity().pid,
            ModulesOf(Arc::clone(target)),
            Arc::clone(log),
        )),
    }
}

/// `machine`, with what is read of it, and of the processes that it opens, written into `log`.
pub fn machine(machine: &Arc<dyn Machine>, log: &Arc<Log>) -> Arc<dyn Machine> {
    Arc::new(RecordedMachine::new(Arc::clone(machine), Arc::clone(log)))
}

/// The process of a target that somebody else holds too.
struct ProcessOf(Arc<Target>);

impl Deref for ProcessOf {
    type Target = dyn Process;

    fn deref(&self) -> &Self::Target {
        &*self.0.process
    }
}

/// The files of a target that somebody else holds too.
struct ModulesOf(Arc<Target>);

impl Deref for ModulesOf {
    type Target = dyn Modules;

    fn deref(&self) -> &Self::Target {
        &*self.0.modules
    }
}
