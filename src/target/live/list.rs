//! The processes that run.

use super::command_line;
use super::directory::Directory;
use crate::kernel::Name;
use crate::kernel::status::{Stat, Status};
use crate::target::{Error, ProcessEntry, Relation, Result};

/// Every process that can be listed, by number. Those that end meanwhile are left out.
pub(super) fn processes() -> Result<Vec<ProcessEntry>> {
    let mut numbers = process_ids()?;
    numbers.sort_unstable();
    Ok(numbers.into_iter().filter_map(entry).collect())
}

/// Every process but kernel threads, with its parent, by number.
pub(super) fn relations() -> Result<Vec<Relation>> {
    let mut numbers = process_ids()?;
    numbers.sort_unstable();
    let proc = Directory::open("/proc").map_err(|error| Error::io("opening /proc", error))?;
    let relation = |pid: u32| {
        // Whoever has ended meanwhile has no memory.
        let stat = Stat::parse(&proc.read(&format!("{pid}/stat")).ok()?).ok()?;
        (!stat.is_kernel_thread).then_some(Relation {
            pid,
            parent: stat.parent,
        })
    };
    Ok(numbers.into_iter().filter_map(relation).collect())
}

/// The numbers in `/proc`.
pub(super) fn process_ids() -> Result<Vec<u32>> {
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
