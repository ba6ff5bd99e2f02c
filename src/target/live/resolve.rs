//! Which process somebody means: by number, by thread, by name.

use super::directory::Directory;
use super::handle::not_found;
use super::list;
use crate::kernel::status::Status;
use crate::kernel::{Name, maps};
use crate::target::{Error, ProcessEntry, Result};

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
    /// By the number of a thread of it: worth telling.
    Thread(u32),
    /// By name.
    Name,
    /// As `self`: pmdb. Worth telling, as looking changes it.
    Itself,
}

/// Finds the process that `what` stands for: a process or thread id, `self`, or a name, which is the kernel's short name of
/// it or the file name of its program.
///
/// # Errors
/// [`Gone`](Error::Gone) if there is none, [`Ambiguous`](Error::Ambiguous) with all of them if there are several.
pub fn resolve(what: &str) -> Result<Resolved> {
    if what == "self" {
        return Ok(Resolved {
            pid: std::process::id(),
            asked: Asked::Itself,
        });
    }
    if !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit()) {
        return by_number(what);
    }
    // Who has exited has no memory left, whether or not the parent has noticed.
    let (mut candidates, ended): (Vec<ProcessEntry>, Vec<ProcessEntry>) = list::processes()?
        .into_iter()
        .filter(|entry| entry.pid != std::process::id() && is_called(entry, what.as_bytes()))
        .partition(|entry| !matches!(entry.state, 'Z' | 'X'));
    match (candidates.pop(), candidates.is_empty()) {
        (None, _) => Err(Error::Gone {
            what: match ended.first() {
                None => format!("no process is called '{}'", Name::from(what)),
                Some(ended) => format!(
                    "process {} ({}) has exited, and its parent has not noticed",
                    ended.pid, ended.name
                ),
            },
        }),
        (Some(only), true) => Ok(Resolved {
            pid: only.pid,
            asked: Asked::Name,
        }),
        (Some(last), false) => {
            candidates.push(last);
            Err(Error::Ambiguous {
                name: Name::from(what).to_string(),
                candidates,
            })
        }
    }
}

fn by_number(digits: &str) -> Result<Resolved> {
    let absent = || Error::Gone {
        what: format!("there is no process {digits} (or it is hidden from this user)"),
    };
    let number: u32 = digits.parse().map_err(|_| absent())?;
    // A thread has a directory too, though no listing shows it.
    let directory = Directory::open(&format!("/proc/{number}"));
    let status = directory.and_then(|directory| directory.read("status"));
    let pid = Status::parse(&status.map_err(|error| not_found(number, error))?)?.process;
    Ok(Resolved {
        pid,
        asked: if pid == number {
            Asked::Process
        } else {
            Asked::Thread(number)
        },
    })
}

/// The kernel cuts `comm` off after 15 bytes.
const COMM_BYTES: usize = 15;

fn is_called(entry: &ProcessEntry, name: &[u8]) -> bool {
    if entry.name.as_bytes() == name {
        return true;
    }
    let program = Directory::open(&format!("/proc/{}", entry.pid))
        .and_then(|directory| directory.link("exe"));
    match program {
        Ok(path) => maps::name(&path).0.file_name().as_bytes() == name,
        // Whose program may not be known is judged by its cut name.
        Err(_) => name.get(..COMM_BYTES) == Some(entry.name.as_bytes()),
    }
}
