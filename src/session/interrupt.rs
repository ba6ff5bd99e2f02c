//! Ctrl-C: it stops a command, never the program.

use crate::report::Stopped;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether SIGINT was received: as a flag, and as an event to wait for together with others.
///
/// The flag needs no system call. The pipe ends a wait, so that a signal between the test of the flag and the wait is
/// not lost.
#[derive(Debug)]
pub struct Interrupts {
    flag: Arc<AtomicBool>,
    wake: File,
    notify: Arc<File>,
}

/// Has the effect of Ctrl-C, from another thread.
#[derive(Clone, Debug)]
pub struct InterruptHandle {
    flag: Arc<AtomicBool>,
    notify: Arc<File>,
}

impl InterruptHandle {
    /// Has the effect of SIGINT.
    pub fn raise(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // A full pipe ends the wait too.
        _ = (&*self.notify).write(&[0]);
    }
}

/// The event that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The descriptor can be read, or has ended.
    Ready,
    /// The time has elapsed.
    TimedOut,
}

impl Interrupts {
    /// Installs the signal handler. From now on SIGINT no longer ends the program.
    ///
    /// # Errors
    /// Fails if there is no pipe or no signal handler.
    pub fn listen() -> io::Result<Self> {
        let interrupts = Self::without_signal()?;
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupts.flag))?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGINT, interrupts.notify.try_clone()?)?;
        Ok(interrupts)
    }

    /// Makes one that no signal raises, for what is read before there is a session: SIGINT still ends the program.
    ///
    /// # Errors
    /// Fails if there is no pipe.
    pub fn without_signal() -> io::Result<Self> {
        let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let (wake, notify) = rustix::pipe::pipe_with(flags)?;
        Ok(Interrupts { flag: Arc::default(), wake: File::from(wake), notify: Arc::new(File::from(notify)) })
    }

    /// Returns a handle that stops a command from another thread.
    pub fn raiser(&self) -> InterruptHandle {
        InterruptHandle { flag: Arc::clone(&self.flag), notify: Arc::clone(&self.notify) }
    }

    /// Returns the flag, for code that has no sink.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Fails if Ctrl-C was typed since the last [`Interrupts::forget`].
    pub fn check(&self) -> Result<(), Stopped> {
        if self.flag.load(Ordering::Relaxed) { Err(Stopped::Interrupted) } else { Ok(()) }
    }

    /// Forgets earlier signals, because a new command begins.
    pub fn forget(&self) {
        self.flag.store(false, Ordering::Relaxed);
        let mut notes = [0; 64];
        while matches!((&self.wake).read(&mut notes), Ok(count) if count > 0) {}
    }

    /// Waits until `source` can be read or has ended.
    ///
    /// # Errors
    /// Fails with [`Stopped::Interrupted`] if Ctrl-C comes first.
    pub fn wait_readable(&self, source: BorrowedFd<'_>) -> Result<(), Stopped> {
        self.wait(Some((source, PollFlags::IN)), None).map(|_| ())
    }

    /// Waits at most `limit` until `source` can be read or has ended.
    ///
    /// # Errors
    /// Fails with [`Stopped::Interrupted`] if Ctrl-C comes first.
    pub fn wait_readable_for(&self, source: BorrowedFd<'_>, limit: Duration) -> Result<Woken, Stopped> {
        self.wait(Some((source, PollFlags::IN)), Some(limit))
    }

    /// Waits for `duration`, or until `output` has no reader any more.
    ///
    /// # Errors
    /// Fails with [`Stopped::Interrupted`] if Ctrl-C comes first, and with [`Stopped::Closed`] if the other end of
    /// `output` is closed.
    pub fn wait_for(&self, duration: Duration, output: Option<BorrowedFd<'_>>) -> Result<(), Stopped> {
        // Even with no event requested, poll reports the error state of a pipe without a reader.
        match self.wait(output.map(|output| (output, PollFlags::empty())), Some(duration))? {
            Woken::Ready => Err(Stopped::Closed),
            Woken::TimedOut => Ok(()),
        }
    }

    fn wait(&self, what: Option<(BorrowedFd<'_>, PollFlags)>, limit: Option<Duration>) -> Result<Woken, Stopped> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            self.check()?;
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let wake = PollFd::new(&self.wake, PollFlags::IN);
            let mut sources = match &what {
                Some((source, events)) => vec![wake, PollFd::from_borrowed_fd(*source, *events)],
                None => vec![wake],
            };
            match poll(&mut sources, timeout.as_ref()) {
                Ok(0) => return Ok(Woken::TimedOut),
                Ok(_) if sources.get(1).is_some_and(|source| !source.revents().is_empty()) => {
                    self.check()?;
                    return Ok(Woken::Ready);
                }
                Ok(_) => return Err(Stopped::Interrupted),
                Err(Errno::INTR) => {}
                // A descriptor that cannot be polled can be read at once.
                Err(_) => return Ok(Woken::Ready),
            }
        }
    }
}
