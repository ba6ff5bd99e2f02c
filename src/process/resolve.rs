//! Resolves a process by number, by thread or by name.

use super::machine::entry;
use crate::kernel::status::Stat;
use crate::kernel::{Name, maps};
use crate::source::{Error, List, Listed, ProcessEntry, Result, live};

/// The process that was meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// Its number.
    pub pid: u32,
    /// How it was asked for.
    pub asked: Asked,
}

/// How a process was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// By its own number.
    Process,
    /// By the number of one of its threads. A note says so to the user.
    Thread(u32),
    /// By name.
    Name,
    /// As `self`: pmdb. A note warns the user that each command changes pmdb's own memory.
    Itself,
}

/// Finds the process that `what` stands for: a process or thread id, `self`, or a name, which is the kernel's short
/// name of it or the file name of its program.
///
/// # Errors
/// [`Gone`](Error::Gone) if there is none, [`Ambiguous`](Error::Ambiguous) with all of them if there are several.
pub fn resolve(what: &str) -> Result<Resolved> {
    if what == "self" {
        return Ok(Resolved { pid: std::process::id(), asked: Asked::Itself });
    }
    if !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit()) {
        return by_number(what);
    }
    // A process that has exited has no memory, even before its parent reaps it.
    let machine = live::machine();
    let mut listed = machine.list(List::All)?;
    listed.sort_unstable_by_key(|one| one.pid);
    let (mut candidates, ended): (Vec<ProcessEntry>, Vec<ProcessEntry>) = listed
        .iter()
        .filter(|one| one.pid != std::process::id() && is_called(one, what.as_bytes()))
        .filter_map(|one| entry(&*machine, one))
        .partition(|entry| !matches!(entry.state, 'Z' | 'X'));
    match (candidates.pop(), candidates.is_empty()) {
        (None, _) => Err(Error::no_such_process(match ended.first() {
            None => format!("no process is called '{}'", Name::from(what)),
            Some(ended) => format!(
                "process {} ({}) has exited, and its parent has not waited for it yet (a zombie)",
                ended.pid, ended.name
            ),
        })),
        (Some(only), true) => Ok(Resolved { pid: only.pid, asked: Asked::Name }),
        (Some(last), false) => {
            candidates.push(last);
            Err(Error::Ambiguous { name: Name::from(what).to_string(), candidates })
        }
    }
}

fn by_number(digits: &str) -> Result<Resolved> {
    let absent = || Error::no_such_process(format!("there is no process {digits} (or it is hidden from this user)"));
    let number: u32 = digits.parse().map_err(|_| absent())?;
    let pid = live::process_of(number)?;
    Ok(Resolved { pid, asked: if pid == number { Asked::Process } else { Asked::Thread(number) } })
}

/// The kernel cuts `comm` off after 15 bytes.
const COMM_BYTES: usize = 15;

fn is_called(listed: &Listed, name: &[u8]) -> bool {
    let Ok(stat) = Stat::parse(&listed.stat) else {
        return false;
    };
    if stat.name.as_bytes() == name {
        return true;
    }
    match &listed.program {
        Some(path) => maps::name(path).0.file_name().as_bytes() == name,
        // Without a known program, the cut name decides.
        None => name.get(..COMM_BYTES) == Some(stat.name.as_bytes()),
    }
}
