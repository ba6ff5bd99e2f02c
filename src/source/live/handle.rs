//! The identity of a process (a pidfd, a handle on its directory, and its start time), because its id may be reused;
//! and lists of processes.

use super::directory::Directory;
use crate::access::{Error, Result};
use crate::budget::OutOfBudget;
use crate::kernel::Name;
use crate::kernel::status::{Stat, Status};
use crate::own::{memory::Growth, rights};
use crate::source::{Held, Listed, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, available_parallelism};

/// A process. The handle never refers to another one, even after the process has ended.
#[derive(Debug)]
pub(super) struct Handle {
    pid: u32,
    directory: Directory,
    /// The pidfd, opened when it is first needed, or at once for a process that the user selects.
    pidfd: OnceLock<rustix::io::Result<OwnedFd>>,
    /// The text of `stat` when it was first read.
    first: OnceLock<Vec<u8>>,
}

impl Handle {
    /// Opens the process `pid`, or the process of the thread `pid`. The pidfd is opened after the directory. If the
    /// directory still answers then, both belong to the same process.
    pub(super) fn open(pid: u32) -> Result<Self> {
        let directory = directory_of(pid)?;
        let pidfd = match pidfd_of(pid) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return Err(absent(pid)),
            // The id is that of a thread: EINVAL, or ENOENT since Linux 6.15.
            Err(error) => {
                let status = directory.read("status");
                let status = status.map_err(|error| not_found(pid, error))?;
                match Status::parse(&status)?.process {
                    process if process != pid => return Handle::open(process),
                    _ => return Err(Error::io(format!("pidfd_open of process {pid}"), error)),
                }
            }
        };
        Ok(Handle { pid, directory, pidfd: Ok(pidfd).into(), first: OnceLock::new() })
    }

    /// Opens a process, and returns its current `stat` too.
    pub(super) fn open_with_stat(pid: u32) -> Result<(Self, Stat)> {
        let handle = Self::open(pid)?;
        let stat = handle.read_stat();
        let stat = stat.map_err(|error| not_found(handle.pid, error))?;
        Ok((handle, Stat::parse(&stat)?))
    }

    /// Opens a process of a list. Often only its `stat` is read.
    fn of_listed(pid: u32) -> Result<(Self, Vec<u8>)> {
        let handle = Handle { pid, directory: directory_of(pid)?, pidfd: OnceLock::new(), first: OnceLock::new() };
        let stat = handle.read_stat();
        let stat = stat.map_err(|error| not_found(pid, error))?;
        Ok((handle, stat))
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }
    /// Returns the start time in clock ticks since boot; 0 if the process ended before it was read.
    pub(super) fn start_time(&self) -> u64 {
        self.first().map_or(0, |stat| stat.start_time)
    }
    /// Returns the name of the process when its `stat` was first read; empty if the process ended before.
    pub(super) fn first_name(&self) -> Name {
        self.first().map_or_else(Name::default, |stat| stat.name)
    }
    fn first(&self) -> Option<Stat> {
        if self.first.get().is_none() {
            _ = self.read_stat();
        }
        Stat::parse(self.first.get()?).ok()
    }
    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns whether all threads have ended.
    pub(super) fn has_exited(&self) -> bool {
        self.ends_within(0)
    }

    /// Returns whether the process exits within 0.1 s. A process loses its memory just before it ends.
    pub(super) fn is_exiting(&self) -> bool {
        self.ends_within(100_000_000)
    }

    /// Returns the exit status as `wait` gives it, if the kernel shows it. Before Linux 6.15 it shows the status only
    /// until the parent has reaped the process, and 0 to readers without the right.
    pub(super) fn exit_code(&self) -> Option<i32> {
        if let Some(code) = self.pidfd().ok().and_then(sys::exit_of) {
            return Some(code);
        }
        let stat = self.stat().ok().filter(|stat| stat.state == 'Z')?;
        let may_know = |status: Status| {
            let user = rustix::process::geteuid().as_raw();
            user == 0 || user == status.user
        };
        (stat.exit_code != 0 || self.status().is_some_and(may_know)).then_some(stat.exit_code)
    }

    /// Waits for the end of the process. A pidfd becomes readable at the end, whether or not the parent has reaped the
    /// process.
    fn ends_within(&self, nanoseconds: u32) -> bool {
        let pidfd = match self.pidfd() {
            Ok(pidfd) => pidfd,
            Err(error) => return *error == Errno::SRCH,
        };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        let patience = Timespec { tv_sec: 0, tv_nsec: nanoseconds.into() };
        poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0)
    }

    fn pidfd(&self) -> std::result::Result<&OwnedFd, &Errno> {
        let open = || {
            let pidfd = pidfd_of(self.pid)?;
            // The id may have been reused, but not while the directory answers.
            let answers = self.directory.file("stat");
            answers.map(|_| pidfd).map_err(|error| match error {
                Errno::MFILE | Errno::NFILE => error,
                _ => Errno::SRCH,
            })
        };
        self.pidfd.get_or_init(open).as_ref()
    }

    /// Reads `/proc/PID/stat`. Fails if the process has ended.
    pub(super) fn stat(&self) -> Result<Stat> {
        let stat = self.read_stat().map_err(|error| match error {
            Errno::SRCH | Errno::NOENT => self.exit_error(&Name::default()),
            error => Error::io(format!("reading /proc/{}/stat", self.pid), error),
        })?;
        Ok(Stat::parse(&stat)?)
    }

    /// Returns whether the process has one thread, and that waits for something other than a lock of the kernel.
    pub(super) fn sleeps(&self) -> bool {
        self.stat().is_ok_and(|stat| stat.threads == 1 && matches!(stat.state, 'S' | 'T' | 't'))
    }

    /// Reads `/proc/PID/status`, if that is possible.
    pub(super) fn status(&self) -> Option<Status> {
        Status::parse(&self.directory.read("status").ok()?).ok()
    }

    fn read_stat(&self) -> rustix::io::Result<Vec<u8>> {
        let stat = self.directory.read("stat")?;
        self.first.get_or_init(|| stat.clone());
        Ok(stat)
    }

    /// Returns the error that the process has exited, with the process that has its id now.
    pub(super) fn exit_error(&self, name: &Name) -> Error {
        let named = process_title(self.pid, name);
        let successor = Directory::open(&format!("/proc/{}", self.pid))
            .and_then(|directory| directory.read("stat"))
            .ok()
            .and_then(|bytes| Stat::parse(&bytes).ok())
            .filter(|stat| stat.start_time != self.start_time());
        let what = match successor {
            Some(stat) => format!("{named} has exited; its number now belongs to another process ({})", stat.name),
            None => format!("{named} has exited"),
        };
        Error::gone(what)
    }
}

/// Returns the process with this id, or the one of the thread with this id.
pub(super) fn process_of(number: u32) -> Result<u32> {
    match pidfd_of(number) {
        Ok(_) => Ok(number),
        Err(Errno::SRCH) => Err(not_found(number, Errno::SRCH)),
        Err(_) => {
            let status = directory_of(number)?.read("status");
            Ok(Status::parse(&status.map_err(|error| not_found(number, error))?)?.process)
        }
    }
}

fn pidfd_of(pid: u32) -> rustix::io::Result<OwnedFd> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pidfd_open(raw.ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

fn directory_of(pid: u32) -> Result<Directory> {
    Directory::open(&format!("/proc/{pid}")).map_err(|error| not_found(pid, error))
}

/// Returns why process `pid` cannot be read: it does not exist, `/proc` is not mounted, or files or memory were short.
fn not_found(pid: u32, error: Errno) -> Error {
    match error {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Error::io(format!("opening /proc/{pid}"), error),
        _ => no_proc().unwrap_or_else(|| absent(pid)),
    }
}

/// Returns an error if `/proc` is not mounted here.
fn no_proc() -> Option<Error> {
    /// `PROC_SUPER_MAGIC` (include/uapi/linux/magic.h)
    const PROC: u64 = 0x9fa0;
    let is_proc = |system: rustix::fs::StatFs| system.f_type as u64 & 0xffff_ffff == PROC;
    let is_there = rustix::fs::statfs("/proc").is_ok_and(is_proc);
    (!is_there)
        .then(|| Error::not_available("/proc is not mounted here: pmdb reads there what it reports of a process"))
}

fn absent(pid: u32) -> Error {
    Error::no_such_process(format!("no such process: {pid} (or it is hidden from this user)"))
}

/// Formats a process for errors: `process 812 (bash)`.
pub(super) fn process_title(pid: u32, name: &Name) -> String {
    if name.is_empty() { format!("process {pid}") } else { format!("process {pid} ({name})") }
}

/// Lists all processes. Those that end during the listing are left out.
pub(super) fn all_processes() -> Result<Vec<Listed>> {
    Ok(process_ids()?.into_iter().filter_map(|pid| list_one(pid).ok()).collect())
}

/// Returns the process with this id, or the one of the thread with this id.
///
/// Fails if there is none.
pub(super) fn one_process(number: u32) -> Result<Listed> {
    list_one(number).map_err(|error| not_found(number, error))
}

fn list_one(pid: u32) -> rustix::io::Result<Listed> {
    let directory = Directory::open(&format!("/proc/{pid}"))?;
    Ok(Listed {
        pid,
        stat: directory.read("stat")?,
        status: directory.read("status")?,
        program: directory.link("exe").ok(),
        ..Listed::default()
    })
}

/// Lists the threads of the process with this directory. Those that end during the listing are left out.
pub(super) fn threads(process: &Directory) -> Result<Vec<Listed>> {
    let numbers = process.numbers("task");
    let numbers = numbers.map_err(|error| Error::io("listing /proc/PID/task", error))?;
    let listed =
        |id: u32| Some(Listed { pid: id, stat: process.read(&format!("task/{id}/stat")).ok()?, ..Listed::default() });
    Ok(numbers.into_iter().filter_map(listed).collect())
}

/// Lists the file descriptors in `table`, a directory below that of the process. Those that are closed during the
/// listing are left out. The process chooses how many there are, and the lengths of their names.
pub(super) fn descriptors(process: &Directory, table: &str) -> Result<Vec<Listed>> {
    let numbers = process.numbers(table).map_err(|error| Error::io(format!("listing /proc/PID/{table}"), error))?;
    let mut growth = Growth::default();
    let listed = |number: u32| {
        let program = process.link(&format!("{table}/{number}")).ok()?;
        let room = growth.take((size_of::<Listed>() + program.len()) as u64);
        Some(room.map(|()| Listed { pid: number, program: Some(program), ..Listed::default() }))
    };
    Ok(numbers.into_iter().filter_map(listed).collect::<std::result::Result<_, OutOfBudget>>()?)
}

/// Opens a handle on every process. Very many are opened by several threads.
pub(super) fn held_processes() -> Result<Vec<Listed>> {
    /// The number of processes whose reading lasts less than starting a thread.
    const FEW: usize = 128;
    /// The most threads: more would contend for locks in the kernel.
    const MOST: usize = 4;
    let numbers = process_ids()?;
    // A handle is an open file. Half of the files that pmdb may open are left for other uses.
    let may_hold = numbers.len() <= rights::open_files() / 2;
    if may_hold {
        make_room(numbers.len())?;
    }
    let held = |&pid: &u32| {
        let (handle, stat) = match Handle::of_listed(pid) {
            Ok(listed) => listed,
            Err(error @ Error::Io { .. }) => return Some(Err(error)),
            // A process that has ended since the listing has no memory.
            Err(_) => return None,
        };
        let handle = may_hold.then(|| Arc::new(handle) as Arc<dyn Any + Send + Sync>);
        Some(Ok(Listed { pid, stat, held: Held(handle), ..Listed::default() }))
    };
    let all_of = |share: &[u32]| -> Result<Vec<Listed>> {
        rights::with_raised_rights(|| share.iter().filter_map(held).collect())
    };
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
                // This user may have no more threads, so this one does the work.
                Err(_) => all_of(share),
            }?);
        }
        Ok(all)
    })
}

/// Extends the kernel's table of open files once, before there are threads. With threads each extension waits for all
/// processors, some milliseconds (expand_fdtable in fs/file.c).
fn make_room(files: usize) -> Result<()> {
    let proc = Directory::proc().map_err(|error| Error::io("opening /proc", error))?;
    let last = i32::try_from(files).unwrap_or(i32::MAX);
    // A refusal only makes opening slower.
    _ = fcntl_dupfd_cloexec(proc.fd(), last);
    Ok(())
}

/// Lists the numbers in `/proc`.
fn process_ids() -> Result<Vec<u32>> {
    if let Some(error) = no_proc() {
        return Err(error);
    }
    let numbers = Directory::proc().and_then(|proc| proc.numbers("."));
    numbers.map_err(|error| Error::io("listing /proc", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_of_one_thread_that_waits_sleeps() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let handle = Handle::open(child.id()).expect("a child");
        // It reads its input soon, and is in its program or its libraries before.
        let comes_to_sleep = (0..1_000_000).any(|_| handle.sleeps());
        drop(child.stdin.take());
        child.wait().expect("an end");
        assert!(comes_to_sleep && !handle.sleeps());
        let own = Handle::open(std::process::id()).expect("this process");
        let other = std::thread::scope(|scope| scope.spawn(|| own.sleeps()).join());
        assert!(other.is_ok_and(|sleeps| !sleeps));
    }
}
