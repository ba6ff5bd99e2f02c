//! Writes to pipes and devices. A full one is waited for until Ctrl-C, or until no reader is left.

use crate::budget::{Budget, OutOfBudget};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// The bytes of one write: a pipe that poll(2) reports as writable takes PIPE_BUF bytes at once.
const AT_ONCE: usize = 4096;

/// The time of one wait, after which Ctrl-C is checked: another thread may have got the signal.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The steps after which a budget checks for Ctrl-C.
const LOOK: u64 = 1024;

/// A file to write to, which may be a pipe or a device.
#[derive(Debug)]
pub struct Outlet<F> {
    file: F,
    budget: Budget,
    /// Whether a write may wait; that of a regular file does not.
    may_wait: bool,
    /// Whether a wait was given up. Later writes fail, as the reader would miss a part.
    is_over: bool,
}

/// Returns whether `error` is Ctrl-C or the time limit after it.
pub fn is_interruption(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    error.kind() == io::ErrorKind::Interrupted || matches!(cause, Some(OutOfBudget::Interrupted | OutOfBudget::Time))
}

impl<F: AsFd> Outlet<F> {
    /// Returns an outlet that writes to `file` and waits for its reader as long as `budget` lasts.
    pub fn new(file: F, budget: Budget) -> Outlet<F> {
        let is_file = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let may_wait = !fstat(&file).is_ok_and(is_file);
        Outlet { file, budget, may_wait, is_over: false }
    }

    /// Returns the file that is written to.
    pub fn get_ref(&self) -> &F {
        &self.file
    }

    /// Limits all waits to `time` from now on.
    pub fn end_within(&mut self, time: Duration) {
        self.budget = std::mem::take(&mut self.budget).within(time);
    }

    /// Waits until the file can be written.
    fn wait(&mut self) -> io::Result<()> {
        loop {
            let mut files = [PollFd::new(&self.file, PollFlags::OUT)];
            match poll(&mut files, Some(&PATIENCE)) {
                Ok(0) | Err(Errno::INTR) => {}
                // An error, such as that no reader is left, is returned by the write.
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            // Spends from a copy: the next command clears Ctrl-C and may write again.
            let left = self.budget.clone().spend(LOOK);
            self.is_over = left.is_err();
            left.map_err(io::Error::other)?;
        }
    }
}

impl<F: AsFd> Write for Outlet<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.may_wait {
            return Ok(rustix::io::write(&self.file, bytes)?);
        }
        if self.is_over {
            return Err(io::Error::other(OutOfBudget::Interrupted));
        }
        let part = bytes.get(..AT_ONCE).unwrap_or(bytes);
        loop {
            self.wait()?;
            match rustix::io::write(&self.file, part) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_full_pipe_is_left_with_ctrl_c_and_a_pipe_without_a_reader_at_once() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let interrupt = Arc::new(AtomicBool::new(false));
        let mut outlet = Outlet::new(writer, Budget::until(Arc::clone(&interrupt)));
        let other = thread::spawn(move || {
            let error = outlet.write_all(&[7; 1 << 20]).expect_err("nobody reads so much");
            (outlet, error)
        });
        let mut first = [0; 1];
        (&reader).read_exact(&mut first).expect("a byte");
        interrupt.store(true, Ordering::Relaxed);
        let (mut outlet, error) = other.join().expect("it ends");
        assert!(is_interruption(&error), "{error}");
        interrupt.store(false, Ordering::Relaxed);
        assert!(outlet.write(b"x").is_err_and(|error| is_interruption(&error)), "a part is missing");
        let mut outlet = Outlet::new(outlet.file, Budget::unlimited());
        drop(reader);
        assert_eq!(outlet.write(b"x").map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}
