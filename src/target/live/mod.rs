//! Processes and machines that run now, read from `/proc`.

mod apart;
mod attached;
mod behind;
mod cgroups;
mod command_line;
mod directory;
mod distant_file;
mod features;
mod frames;
mod handle;
mod kept_file;
mod lease;
mod list;
mod machine;
mod maps_text;
mod memory;
mod module_file;
mod modules;
mod naming;
mod own_page;
mod populated;
mod process;
mod resolve;
mod rights;
mod storage;

pub use apart::heed;
pub(super) use handle::Handle;
pub use resolve::{Asked, Resolved, resolve};
pub use rights::{allow_open_files, hold_back as hold_back_rights};

use super::{Machine, Result, Target};
use std::sync::Arc;

/// Attaches to the process with that id: opens what pmdb reads of it. A thread id stands for its process. Nothing of the process changes.
///
/// # Errors
/// [`Gone`](super::Error::Gone) if there is no such process or it is a zombie, [`NotAvailable`](super::Error::NotAvailable)
/// for a kernel thread, [`NotPermitted`](super::Error::NotPermitted) if its page map may not be read.
pub fn attach(pid: u32) -> Result<Target> {
    let attached = Arc::new(attached::Attached::open(pid)?);
    let machine = machine::LiveMachine::new(Some(attached.clone()));
    Ok(Target {
        process: Box::new(process::LiveProcess::new(attached.clone())?),
        machine: Arc::new(machine),
        modules: Box::new(modules::LiveModules::new(attached)),
    })
}

/// The machine that pmdb runs on, with no target.
pub fn machine() -> Arc<dyn Machine> {
    Arc::new(machine::LiveMachine::new(None))
}
