//! Where the output of a command goes: the screen, a shell command, a file.

use super::outcome::words;
use super::pager::HeldRows;
use super::pager::Pager;
use super::shell::ShellPermit;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::rc::Rc;

/// The size of the buffer: the capacity of a pipe.
const BUFFER: usize = 64 << 10;

/// An open destination.
#[derive(Debug)]
pub enum Destination<'a> {
    /// Standard output, a screen at a time if there is a pager.
    Screen {
        /// Standard output.
        output: BufWriter<Stdout>,
        /// Counts rows and asks.
        pager: Option<Pager<'a>>,
        /// Rows held back for the user's pager, if there is one.
        held_rows: Option<HeldRows>,
        /// Whether each record is shown at once: on a terminal.
        is_live: bool,
        /// Whether the text so far ends within a row; `None` if there is none.
        ends_in_row: Option<bool>,
    },
    /// The standard input of a shell command.
    Pipe {
        /// The shell.
        child: Child,
        /// Its input.
        input: BufWriter<ChildStdin>,
        /// Whether it is the user's pager.
        is_pager: bool,
    },
    /// A file.
    File(BufWriter<File>),
    /// One of these that several commands share.
    Shared(SharedDestination),
}

/// The destination that the lines of a user-defined command share.
#[derive(Clone, Debug)]
pub struct SharedDestination(Rc<RefCell<Destination<'static>>>);

impl SharedDestination {
    /// Shares this destination.
    pub fn new(destination: Destination<'static>) -> Self {
        SharedDestination(Rc::new(RefCell::new(destination)))
    }

    /// The file or pipe, for a program. Flushes first, so that the program's output comes after.
    ///
    /// # Errors
    /// What was written so far cannot be written out, or the process has too many files open.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        let mut destination = self.0.borrow_mut();
        destination.flush()?;
        match &*destination {
            Destination::Pipe { input, .. } => input.get_ref().as_fd().try_clone_to_owned(),
            Destination::File(file) => file.get_ref().as_fd().try_clone_to_owned(),
            Destination::Shared(shared) => shared.descriptor(),
            Destination::Screen { .. } => io::stdout().as_fd().try_clone_to_owned(),
        }
    }

    /// Returns the destination, to be closed; `None` while another command still uses it.
    pub fn finish(self) -> Option<Destination<'static>> {
        let destination = Rc::try_unwrap(self.0).ok()?;
        Some(destination.into_inner())
    }
}

impl<'a> Destination<'a> {
    /// Standard output.
    pub fn screen(pager: Option<Pager<'a>>, held_rows: Option<HeldRows>, is_live: bool) -> Self {
        let output = BufWriter::with_capacity(BUFFER, io::stdout());
        Destination::Screen { output, pager, held_rows, is_live, ends_in_row: None }
    }

    /// A shell command, or the user's pager, whose input was left open for us.
    ///
    /// # Errors
    /// It was not.
    pub fn pipe(mut child: Child, is_pager: bool) -> io::Result<Self> {
        let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Destination::Pipe { child, input: BufWriter::with_capacity(BUFFER, input), is_pager })
    }

    /// A file, begun anew or added to.
    ///
    /// # Errors
    /// Why it cannot be opened, in words.
    pub fn file(path: &Path, append: bool, _: ShellPermit) -> Result<Self, String> {
        let how = if append { OFlags::APPEND } else { OFlags::TRUNC };
        // Non-blocking: opening a named pipe without a reader would wait, and Ctrl-C would not end that.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o666);
        let file = rustix::fs::open(path, flags | how, mode).map_err(|error| match error {
            Errno::NXIO => "nobody reads this pipe".to_owned(),
            error => words(error),
        })?;
        rustix::fs::fcntl_setfl(&file, how & OFlags::APPEND).map_err(words)?;
        Ok(Destination::File(BufWriter::with_capacity(BUFFER, file.into())))
    }

    /// Writes text, page by page where there is a pager.
    ///
    /// # Errors
    /// `BrokenPipe` also when the reader has left the pager.
    pub fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if let (Destination::Screen { ends_in_row, .. }, Some(last)) = (&mut *self, text.last()) {
            *ends_in_row = Some(*last != b'\n');
        }
        match self {
            Destination::Screen { held_rows: Some(held_rows), .. } => {
                if held_rows.hold(text) {
                    Ok(())
                } else {
                    self.start_pager()
                }
            }
            Destination::Screen { output, pager: Some(pager), .. } => pager.write(text, output),
            Destination::Screen { output, is_live, .. } => {
                output.write_all(text)?;
                if *is_live { output.flush() } else { Ok(()) }
            }
            Destination::Pipe { input, .. } => input.write_all(text),
            Destination::File(file) => file.write_all(text),
            Destination::Shared(SharedDestination(shared)) => shared.borrow_mut().write(text),
        }
    }

    /// Starts the user's pager, which gets the held rows and all that follow.
    fn start_pager(&mut self) -> io::Result<()> {
        let Destination::Screen { held_rows, .. } = self else {
            return Ok(());
        };
        let Some(held_rows) = held_rows.take() else {
            return Ok(());
        };
        *self = Destination::pipe(held_rows.start()?, true)?;
        self.write(held_rows.text())
    }

    /// Flushes the buffer. Held rows go to the screen, and the user's pager does not start any more.
    ///
    /// # Errors
    /// Those of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Destination::Screen { held_rows, .. } = self
            && let Some(rows) = held_rows.take_if(|rows| !rows.text().is_empty())
        {
            self.write(rows.text())?;
        }
        match self {
            Destination::Screen { output, .. } => output.flush(),
            Destination::Pipe { input, .. } => input.flush(),
            Destination::File(file) => file.flush(),
            Destination::Shared(SharedDestination(shared)) => shared.borrow_mut().flush(),
        }
    }

    /// Begins a new row on a terminal.
    pub fn start_row(&mut self) {
        if let Destination::Screen { output, is_live: true, .. } = self {
            // If this fails, the next write fails too and is reported.
            let _ = output.write_all(b"\n").and_then(|()| output.flush());
        }
    }

    /// Whether output appears on a terminal at once.
    pub fn is_live(&self) -> bool {
        matches!(self, Destination::Screen { is_live: true, .. })
    }

    /// Whether only pmdb writes to the terminal meanwhile: the reader of a pipe may be a pager.
    pub fn leaves_the_terminal_alone(&self) -> bool {
        match self {
            Destination::Screen { is_live: true, .. } | Destination::File(_) => true,
            Destination::Screen { output, .. } => {
                rustix::fs::fstat(output.get_ref()).is_ok_and(|stat| !FileType::from_raw_mode(stat.st_mode).is_fifo())
            }
            Destination::Pipe { .. } => false,
            Destination::Shared(SharedDestination(shared)) => shared.borrow().leaves_the_terminal_alone(),
        }
    }

    /// Writes the rest without a pager.
    ///
    /// # Errors
    /// Those of writing what was held.
    pub fn stop_paging(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Destination::Screen { pager, held_rows, .. } = self {
            *pager = None;
            *held_rows = None;
        }
        Ok(())
    }

    /// The descriptor to poll for the end of the reader.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Destination::Screen { output, .. } => Some(output.get_ref().as_fd()),
            Destination::Pipe { input, .. } => Some(input.get_ref().as_fd()),
            Destination::File(_) | Destination::Shared(_) => None,
        }
    }
}
