//! Writes into pipes and devices, which may be full for ever: Ctrl-C and the end of the reader end the wait.

use crate::budget::Budget;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// A pipe that can be written takes this many bytes at once (PIPE_BUF).
const AT_ONCE: usize = 4096;

/// The time between two looks at Ctrl-C, which may have come to another thread.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Steps after which a budget looks at Ctrl-C.
const LOOK: u64 = 1024;

/// A pipe or a device that is written into.
#[derive(Debug)]
pub struct Outlet<F> {
    file: F,
    budget: Budget,
}

impl<F: AsFd> Outlet<F> {
    /// Writes into `file` as long as `budget` lasts.
    pub fn new(file: F, budget: Budget) -> Outlet<F> {
        Outlet { file, budget }
    }

    /// The file itself.
    pub fn get_ref(&self) -> &F {
        &self.file
    }

    /// Waits until it can be written.
    fn wait(&self) -> io::Result<()> {
        loop {
            let mut budget = self.budget.clone();
            budget.spend(LOOK).map_err(io::Error::other)?;
            let mut files = [PollFd::new(&self.file, PollFlags::OUT)];
            match poll(&mut files, Some(&PATIENCE)) {
                Ok(0) | Err(Errno::INTR) => {}
                // What is wrong, such as that nobody reads, the write reports.
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<F: AsFd> Write for Outlet<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
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
    use crate::budget::OutOfBudget;
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
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        assert_eq!(cause, Some(&OutOfBudget::Interrupted));
        drop(reader);
        interrupt.store(false, Ordering::Relaxed);
        assert_eq!(outlet.write(b"x").map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}
