//! The processes that run.

use super::directory::Directory;
use super::handle::{Handle, no_proc, not_found};
use super::rights;
use crate::source::{Error, Held, Listed, Result};
use rustix::io::fcntl_dupfd_cloexec;
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, available_parallelism};

/// Every process that can be listed. Those that end meanwhile are left out.
pub(super) fn all() -> Result<Vec<Listed>> {
    Ok(process_ids()?.into_iter().filter_map(|pid| listed(pid).ok()).collect())
}

/// The process of this number, or that the thread of this number belongs to.
///
/// Fails if there is none.
pub(super) fn one(number: u32) -> Result<Listed> {
    listed(number).map_err(|error| not_found(number, error))
}

fn listed(pid: u32) -> rustix::io::Result<Listed> {
    let directory = Directory::open(&format!("/proc/{pid}"))?;
    Ok(Listed {
        pid,
        stat: directory.read("stat")?,
        status: directory.read("status")?,
        program: directory.link("exe").ok(),
        ..Listed::default()
    })
}

/// The threads of the process of this directory. Those that end meanwhile are left out.
pub(super) fn threads(process: &Directory) -> Result<Vec<Listed>> {
    let numbers = process.numbers("task");
    let numbers = numbers.map_err(|error| Error::io("listing /proc/PID/task", error))?;
    let listed =
        |id: u32| Some(Listed { pid: id, stat: process.read(&format!("task/{id}/stat")).ok()?, ..Listed::default() });
    Ok(numbers.into_iter().filter_map(listed).collect())
}

/// Every process, with a handle on it. Very many are read on several cores.
pub(super) fn held() -> Result<Vec<Listed>> {
    /// Reading this many processes takes less time than starting a thread.
    const FEW: usize = 128;
    /// The most cores that are of use: more contend for locks in the kernel.
    const MOST: usize = 4;
    let numbers = process_ids()?;
    // A handle is an open file: half of those allowed are left for everything else.
    let may_hold = numbers.len() <= rights::open_files() / 2;
    if may_hold {
        make_room(numbers.len())?;
    }
    let held = |&pid: &u32| {
        let (handle, stat) = match Handle::of_listed(pid) {
            Ok(listed) => listed,
            Err(error @ Error::Io { .. }) => return Some(Err(error)),
            // A process that has ended meanwhile has no memory.
            Err(_) => return None,
        };
        let handle = may_hold.then(|| Arc::new(handle) as Arc<dyn Any + Send + Sync>);
        Some(Ok(Listed { pid, stat, held: Held(handle), ..Listed::default() }))
    };
    let all_of = |share: &[u32]| -> Result<Vec<Listed>> { rights::raised(|| share.iter().filter_map(held).collect()) };
    let cores = available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    let share = numbers.len().div_ceil(cores).max(FEW);
    let (own, others) = numbers.split_at(share.min(numbers.len()));
    std::thread::scope(|scope| {
        let others: Vec<_> = others
            .chunks(share)
            .map(|share| {
                let helper = Builder::new().spawn_scoped(scope, || all_of(share));
                (share, helper)
            })
            .collect();
        let mut all = all_of(own)?;
        for (share, helper) in others {
            all.extend(match helper {
                Ok(helper) => helper.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // This user may have no more threads: this one does the work.
                Err(_) => all_of(share),
            }?);
        }
        Ok(all)
    })
}

/// Grows the kernel's table of open files once, before there are threads: with threads each growth waits for all
/// processors, some milliseconds (expand_fdtable in fs/file.c).
fn make_room(files: usize) -> Result<()> {
    let proc = Directory::proc().map_err(|error| Error::io("opening /proc", error))?;
    let last = i32::try_from(files).unwrap_or(i32::MAX);
    // If it is refused, opening takes longer.
    _ = fcntl_dupfd_cloexec(proc.fd(), last);
    Ok(())
}

/// The numbers in `/proc`.
fn process_ids() -> Result<Vec<u32>> {
    if let Some(error) = no_proc() {
        return Err(error);
    }
    let numbers = Directory::proc().and_then(|proc| proc.numbers("."));
    numbers.map_err(|error| Error::io("listing /proc", error))
}
