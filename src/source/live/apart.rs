//! Work on storage that may not answer (FUSE, network), done by a child process that can be left behind.
//!
//! A system call on such storage can wait for ever, and not even SIGKILL ends every wait (a FUSE request that the
//! server has taken). A thread in such a wait would keep this program from ending; a child process does not. Nor does
//! this program hold such a file open: the kernel asks the storage once more when it is closed (`fuse_flush`).

use super::directory::Directory;
use crate::kernel::Device;
use crate::source::sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::fs::FileType;
use rustix::io::{Errno, Result, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long storage may take for something before it counts as silent.
const PATIENCE: Duration = Duration::from_secs(2);

/// Becomes true with Ctrl-C.
static INTERRUPTS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Makes waits for storage end when `interrupts` becomes true: Ctrl-C. Only the first call counts.
pub fn heed(interrupts: Arc<AtomicBool>) {
    _ = INTERRUPTS.set(interrupts);
}

/// Children that were not reaped: those left behind, by the storage that they wait for, and those that are about to
/// end.
#[derive(Default)]
struct Children {
    left: HashMap<Device, Pid>,
    ending: Vec<Pid>,
}

fn children() -> MutexGuard<'static, Children> {
    static CHILDREN: OnceLock<Mutex<Children>> = OnceLock::new();
    let children = CHILDREN.get_or_init(Mutex::default);
    children.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer of `work`, which only reads files on `storage`. [`Errno::TIMEDOUT`] when that does not respond; at once
/// as long as an earlier call still waits for it.
pub(super) fn ask(storage: Device, work: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>> {
    {
        let mut children = children();
        children.ending.retain(|&child| !has_ended(child));
        match children.left.get(&storage) {
            Some(&child) if !has_ended(child) => return Err(Errno::TIMEDOUT),
            Some(_) => _ = children.left.remove(&storage),
            None => {}
        }
    }
    let (answer, pen) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = sys::in_child(|| {
        close_all_streams_but(pen.as_raw_fd());
        let answer = work();
        let length = (answer.len() as u64).to_ne_bytes();
        _ = write_all(&pen, &length).and_then(|()| write_all(&pen, &answer));
    })?;
    drop(pen);
    let told = read_answer(&answer);
    let mut children = children();
    match told {
        // It may wait for the storage again when it ends, as its files are closed.
        Ok(_) => children.ending.push(child),
        Err(_) => {
            _ = kill_process(child, Signal::KILL);
            children.left.insert(storage, child);
        }
    }
    told
}

fn has_ended(child: Pid) -> bool {
    !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

/// Closes what the child shares with others who wait for its end: a pipe that it keeps open would never end for its
/// reader.
fn close_all_streams_but(kept: RawFd) {
    let own = Directory::open("/proc/self").and_then(|own| own.numbers("fd"));
    for number in own.unwrap_or_default() {
        let Ok(number) = RawFd::try_from(number) else {
            continue;
        };
        if number != kept {
            sys::close_if(number, |kind| kind != FileType::RegularFile && kind != FileType::Directory);
        }
    }
}

fn write_all(pen: &OwnedFd, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let written = write(pen, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Reads the length, then the bytes. The patience begins anew with each part.
fn read_answer(from: &OwnedFd) -> Result<Vec<u8>> {
    let mut length = [0; size_of::<u64>()];
    read_fully(from, &mut length)?;
    let length = usize::try_from(u64::from_ne_bytes(length)).map_err(|_| Errno::NOMEM)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| Errno::NOMEM)?;
    bytes.resize(length, 0);
    read_fully(from, &mut bytes)?;
    Ok(bytes)
}

fn read_fully(from: &OwnedFd, into: &mut [u8]) -> Result<()> {
    const BETWEEN_LOOKS: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let mut done = 0;
    let mut end = Instant::now() + PATIENCE;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let is_interrupted = || {
            let interrupts = INTERRUPTS.get();
            interrupts.is_some_and(|interrupts| interrupts.load(Ordering::Relaxed))
        };
        let mut fds = [PollFd::new(from, PollFlags::IN)];
        match poll(&mut fds, Some(&BETWEEN_LOOKS)) {
            Ok(1..) => match read(from, rest)? {
                0 => return Err(Errno::IO),
                read => {
                    done += read;
                    end = Instant::now() + PATIENCE;
                }
            },
            Ok(0) | Err(Errno::INTR) if is_interrupted() || Instant::now() >= end => {
                return Err(Errno::TIMEDOUT);
            }
            Ok(0) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(minor: u32) -> Device {
        Device { major: 0, minor }
    }

    #[test]
    fn an_answer_comes_back_whole() {
        let answer: Vec<u8> = (0..300_000u32).flat_map(u32::to_ne_bytes).collect();
        assert_eq!(ask(storage(u32::MAX), || answer.clone()), Ok(answer.clone()));
        assert_eq!(ask(storage(u32::MAX), Vec::new), Ok(Vec::new()));
    }

    #[test]
    fn silent_storage_is_left_behind_and_not_asked_again_until_the_child_ends() {
        let (wait, _never_written) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let silent = storage(u32::MAX - 1);
        let asked = Instant::now();
        let answer = ask(silent, || {
            loop {
                _ = poll(&mut [PollFd::new(&wait, PollFlags::PRI)], None);
            }
        });
        assert_eq!(answer, Err(Errno::TIMEDOUT));
        assert!(asked.elapsed() >= PATIENCE);
        // Other storage still answers. This one answers again when the child has ended, by SIGKILL.
        assert_eq!(ask(storage(u32::MAX - 2), || vec![1]), Ok(vec![1]));
        let patience = Instant::now() + PATIENCE;
        while ask(silent, || vec![2]) != Ok(vec![2]) {
            assert!(Instant::now() < patience, "it does not end");
            std::thread::yield_now();
        }
    }
}
