//! The processes that run.

use super::command_line;
use super::directory::Directory;
use super::handle::{Handle, no_proc};
use super::rights;
use crate::kernel::Name;
use crate::kernel::status::{Stat, Status};
use crate::target::{Error, ProcessEntry, Relation, Result};
use rustix::io::fcntl_dupfd_cloexec;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, available_parallelism};

/// Every process that can be listed, by number. Those that end meanwhile are left out.
pub(super) fn processes() -> Result<Vec<ProcessEntry>> {
    let mut numbers = process_ids()?;
    numbers.sort_unstable();
    Ok(numbers.into_iter().filter_map(entry).collect())
}

/// Every process but kernel threads, with its parent, by number. Very many are read on several cores.
pub(super) fn relations() -> Result<Vec<Relation>> {
    /// Processes that are sooner read than a thread has started.
    const FEW: usize = 128;
    /// Cores that are of use: more get into each other's way in the kernel.
    const MOST: usize = 4;
    let mut numbers = process_ids()?;
    numbers.sort_unstable();
    // A file each, so that as many are left.
    let may_hold = numbers.len() <= rights::open_files() / 2;
    if may_hold {
        make_room(numbers.len())?;
    }
    let relation = |&pid: &u32| {
        let (handle, stat) = match Handle::of_listed(pid) {
            Ok(listed) => listed,
            Err(error @ Error::Io { .. }) => return Some(Err(error)),
            // Whoever has ended meanwhile has no memory.
            Err(_) => return None,
        };
        (!stat.is_kernel_thread).then(|| {
            Ok(Relation {
                pid,
                parent: stat.parent,
                held: may_hold.then(|| Arc::new(handle)),
            })
        })
    };
    let relations_of = |share: &[u32]| -> Result<Vec<Relation>> {
        rights::raised(|| share.iter().filter_map(relation).collect())
    };
    let cores = available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    let share = numbers.len().div_ceil(cores).max(FEW);
    let (own, others) = numbers.split_at(share.min(numbers.len()));
    std::thread::scope(|scope| {
        let others: Vec<_> = others
            .chunks(share)
            .map(|share| {
                let helper = Builder::new().spawn_scoped(scope, || relations_of(share));
                (share, helper)
            })
            .collect();
        let mut all = relations_of(own)?;
        for (share, helper) in others {
            all.extend(match helper {
                Ok(helper) => helper.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // As many threads as this user may have.
                Err(_) => relations_of(share),
            }?);
        }
        Ok(all)
    })
}

/// Has the kernel make room for so many open files at once, and before there are threads: with them it waits for all processors each time
/// that the table grows, some milliseconds (expand_fdtable in fs/file.c).
fn make_room(files: usize) -> Result<()> {
    let proc = Directory::open("/proc").map_err(|error| Error::io("opening /proc", error))?;
    let last = i32::try_from(files).unwrap_or(i32::MAX);
    // Refused, it takes longer.
    _ = fcntl_dupfd_cloexec(proc.fd(), last);
    Ok(())
}

/// The numbers in `/proc`.
pub(super) fn process_ids() -> Result<Vec<u32>> {
    if let Some(error) = no_proc() {
        return Err(error);
    }
    let numbers = Directory::open("/proc").and_then(|proc| proc.numbers("."));
    numbers.map_err(|error| Error::io("listing /proc", error))
}

/// What a listing says of a process; `None` if there is none of that number.
pub(super) fn entry(pid: u32) -> Option<ProcessEntry> {
    let directory = Directory::open(&format!("/proc/{pid}")).ok()?;
    let stat = Stat::parse(&directory.read("stat").ok()?).ok()?;
    let status = Status::parse(&directory.read("status").ok()?).ok()?;
    let resident = status.memory.iter().find(|(field, _)| field == "VmRSS");
    Some(ProcessEntry {
        pid,
        user: status.user,
        name: stat.name,
        state: stat.state,
        resident: resident.map(|(_, bytes)| *bytes),
        command_line: match stat.is_kernel_thread {
            true => Some(Name::default()),
            false => directory.file("pagemap").ok().and_then(|page_map| {
                command_line::read(&directory, "cmdline", page_map, stat.arguments)
            }),
        },
    })
}
