//! The life of the demonstration process, and of the child that it forks.
#![allow(unsafe_code)]

use super::areas::{self, Areas, Busy};
use super::memory::during;
use super::protocol::Announcement;
use super::{CHILD_ARGUMENT, NAME};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::ffi::CString;
use std::io::{self, Write};
use std::process::exit;

/// How often `demo_busy` changes.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Becomes the demonstration process. To be called first in `main`, before a second thread exists, if the first
/// argument is [`CHILD_ARGUMENT`]: it forks.
pub fn become_child() -> ! {
    let parent = std::env::args_os().nth(2).and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let Some(parent) = parent else {
        eprintln!("pmdb: {CHILD_ARGUMENT} is internal; use `pmdb demo` to start the demonstration");
        exit(2)
    };
    if let Err(error) = live(parent) {
        let failure = Announcement::Failed(error.to_string());
        // This fails only if the parent has gone.
        let _ = writeln!(io::stdout(), "{failure}");
        exit(1)
    }
    exit(0)
}

/// Sets up the memory, then keeps changing it until the parent closes the pipe on standard input.
fn live(parent: Pid) -> io::Result<()> {
    die_with(parent)?;
    rustix::thread::set_name(&CString::new(NAME)?).map_err(during("setting the name"))?;
    // The demonstration process needs none of the capabilities of the executable.
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(during("dropping capabilities"))?;

    let Areas { areas, copied, shared, busy } = areas::set_up(rustix::param::page_size())?;
    let child = fork(|| {
        copied.iter().for_each(|pages| pages.write());
        shared.read();
    })?;

    let mut output = io::stdout().lock();
    for area in areas {
        writeln!(output, "{}", Announcement::Area(area))?;
    }
    let child_pid = child.as_raw_nonzero().get().unsigned_abs();
    writeln!(output, "{}", Announcement::Child(child_pid))?;
    writeln!(output, "{}", Announcement::Ready)?;
    output.flush()?;

    be_busy(busy)?;
    // It waits for the end of the same pipe.
    rustix::process::waitpid(Some(child), WaitOptions::empty())?;
    Ok(())
}

/// Changes the busy pages until the parent closes the pipe.
fn be_busy(mut busy: Busy) -> io::Result<()> {
    while !parent_has_left(Some(&TICK))? {
        busy.change()?;
    }
    Ok(())
}

/// Waits for the end of the pipe on standard input, at most as long as `patience` says.
fn parent_has_left(patience: Option<&Timespec>) -> io::Result<bool> {
    let input = rustix::stdio::stdin();
    let mut ends = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut ends, patience) {
        Ok(0) | Err(Errno::INTR) => Ok(false),
        // Nothing is ever written to it: whatever comes is the end.
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Has the kernel kill this process with its parent, which is `parent` unless it has already gone.
fn die_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(during("tying this process to its parent"))?;
    // The signal is sent when the parent dies, not if it is dead.
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the process that started this one has gone"))
    }
}

/// Forks a child that does `work` and then waits for the end of the pipe on standard input; returns once the work is
/// done.
fn fork(work: impl FnOnce()) -> io::Result<Pid> {
    let parent = rustix::process::getpid();
    let (done, say_done) = rustix::pipe::pipe().map_err(during("making a pipe"))?;
    // SAFETY: this process has one thread, so the child finds every lock free and may use all of the library.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let lived = die_with(parent).and_then(|()| {
                work();
                rustix::io::write(&say_done, b".")?;
                while !parent_has_left(None)? {}
                Ok(())
            });
            exit(i32::from(lived.is_err()))
        }
        child => {
            drop(say_done);
            match rustix::io::read(&done, &mut [0_u8]).map_err(during("waiting for the child"))? {
                0 => Err(io::Error::other("the child ended before it was ready")),
                _ => Pid::from_raw(child).ok_or_else(|| io::Error::other("no such child")),
            }
        }
    }
}
