//! The demonstration process: a real target whose memory is in every state that can be made without rights.
//!
//! It is this very program, executed again. [`start`] waits until it has said what it set up, and ends it when the
//! [`Demonstration`] is dropped. It cannot outlive its parent, however that ends: the kernel kills it with the parent
//! (`PR_SET_PDEATHSIG`), and it leaves by itself when the pipe on its standard input closes.
//!
//! * `memory`: this process's own pages, mapped, written, read and advised
//! * `areas`: what is set up, one function an area
//! * `child`: the life of the demonstration process and of the child that it forks
//! * `protocol`: the lines in which it says what it set up

mod areas;
mod child;
mod memory;
mod protocol;

pub use child::become_child;
pub use protocol::Area;

use crate::process::{Error, Result};
use protocol::Announcement;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The short name (`comm`) of the demonstration process and of its child.
pub const NAME: &str = "pmdb-demo";

/// The hidden first argument that makes this program the demonstration process.
pub const CHILD_ARGUMENT: &str = "__demo";

/// How long the process may take to leave by itself before it is killed. A debugger may have stopped it.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A running demonstration process; dropping it ends the process.
#[derive(Debug)]
pub struct Demonstration {
    /// The process to attach to.
    pub pid: u32,
    /// The child that it has forked, which has written to some of the pages it shares with it.
    pub child_pid: u32,
    /// What it has set up, in the order of a tour.
    pub areas: Vec<Area>,
    process: DemoProcess,
}

/// Starts the demonstration process: this program itself, through `/proc/self/exe`, so that an executable that has
/// been replaced or deleted since does not matter. The program's `main` must call [`become_child`] first, if
/// [`CHILD_ARGUMENT`] is its first argument.
///
/// Call it from a thread that lives as long as the demonstration is wanted: the kernel's parent-death signal follows
/// the thread that started a process, not the whole parent.
///
/// Fails if the process cannot be started or cannot set up its memory, with its own words.
pub fn start() -> Result<Demonstration> {
    start_program(Path::new("/proc/self/exe"))
}

/// Like [`start`], with the program named: for callers that are not `pmdb` itself, as the tests are.
pub fn start_program(program: &Path) -> Result<Demonstration> {
    let mut command = Command::new(program);
    command
        .arg0(NAME)
        .arg(CHILD_ARGUMENT)
        .arg(std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Whoever waits for the end of pmdb's own standard error must not wait for this process.
        .stderr(Stdio::null())
        // A Ctrl-C at the terminal is meant for the prompt.
        .process_group(0);
    let mut process =
        DemoProcess(command.spawn().map_err(|error| failed("starting the demonstration process", &error))?);

    let announcements = process.0.stdout.take();
    let mut areas = Vec::new();
    let mut child_pid = None;
    for line in announcements.into_iter().flat_map(lines) {
        match Announcement::parse(&line?) {
            Some(Announcement::Area(area)) => areas.push(area),
            Some(Announcement::Child(pid)) => child_pid = Some(pid),
            Some(Announcement::Failed(what)) => {
                return Err(Error::not_available(format!(
                    "the demonstration process could not set up its memory: {what}"
                )));
            }
            Some(Announcement::Ready) => {
                if let Some(child_pid) = child_pid {
                    return Ok(Demonstration { pid: process.0.id(), child_pid, areas, process });
                }
            }
            None => break,
        }
    }
    Err(Error::gone("the demonstration process ended before it was ready"))
}

impl Demonstration {
    /// The area of that name, if it was set up.
    pub fn area(&self, name: &str) -> Option<&Area> {
        self.areas.iter().find(|area| area.name == name)
    }

    /// Whether the process is still running; it may have been killed by somebody else.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.0.try_wait(), Ok(None))
    }
}

fn lines(pipe: impl io::Read) -> impl Iterator<Item = Result<String>> {
    BufReader::new(pipe)
        .lines()
        .map(|line| line.map_err(|error| failed("reading the output of the demonstration process", &error)))
}

fn failed(what: &str, error: &io::Error) -> Error {
    match rustix::io::Errno::from_io_error(error) {
        Some(error) => Error::Io { what: what.to_owned(), error },
        None => Error::not_available(format!("{what}: {error}")),
    }
}

/// The process itself. Dropped, it is asked to leave, then killed, and always reaped.
#[derive(Debug)]
struct DemoProcess(Child);

impl Drop for DemoProcess {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if !left_by_itself(&self.0) {
            // It fails only if the process has already exited.
            let _ = self.0.kill();
        }
        // It fails only if the child was already reaped.
        let _ = self.0.wait();
    }
}

/// Waits for the process to leave, up to [`PATIENCE`].
fn left_by_itself(process: &Child) -> bool {
    let handle = pidfd_open(Pid::from_child(process), PidfdFlags::empty());
    handle.is_ok_and(|handle| {
        let mut ends = [PollFd::new(&handle, PollFlags::IN)];
        matches!(poll(&mut ends, Some(&PATIENCE)), Ok(1..))
    })
}
