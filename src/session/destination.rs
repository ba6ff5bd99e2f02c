//! Where the output of a command goes: the screen, a shell command, a file.

use super::failure::words;
use super::pager::Pager;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};

/// Bytes that are written together: as many as a pipe takes.
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
        /// Whether it is a terminal, which shows each record at once.
        live: bool,
    },
    /// The standard input of a shell command.
    Pipe {
        /// The shell.
        child: Child,
        /// Its input.
        input: Option<BufWriter<ChildStdin>>,
    },
    /// A file.
    File(BufWriter<File>),
}

impl<'a> Destination<'a> {
    /// Standard output.
    pub fn screen(pager: Option<Pager<'a>>, live: bool) -> Self {
        Destination::Screen {
            output: BufWriter::with_capacity(BUFFER, io::stdout()),
            pager,
            live,
        }
    }

    /// A shell command whose input was left open for us.
    pub fn pipe(mut child: Child) -> Self {
        let input = child
            .stdin
            .take()
            .map(|input| BufWriter::with_capacity(BUFFER, input));
        Destination::Pipe { child, input }
    }

    /// A file, begun anew or added to.
    ///
    /// # Errors
    /// Why it cannot be opened, in words.
    pub fn file(path: &Path, append: bool) -> Result<Self, String> {
        let how = if append {
            OFlags::APPEND
        } else {
            OFlags::TRUNC
        };
        // Without waiting: a named pipe that nobody reads would keep us, and no Ctrl-C could end that.
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o666);
        let file = rustix::fs::open(path, flags | how, mode).map_err(|error| match error {
            Errno::NXIO => "nobody reads this pipe".to_owned(),
            error => words(error),
        })?;
        rustix::fs::fcntl_setfl(&file, how & OFlags::APPEND).map_err(words)?;
        Ok(Destination::File(BufWriter::with_capacity(
            BUFFER,
            file.into(),
        )))
    }

    /// Writes text, page by page where there is a pager.
    ///
    /// # Errors
    /// `BrokenPipe` also when the reader has left the pager.
    pub fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Destination::Screen {
                output,
                pager: Some(pager),
                ..
            } => pager.write(text, output),
            Destination::Screen { output, live, .. } => {
                output.write_all(text)?;
                if *live { output.flush() } else { Ok(()) }
            }
            Destination::Pipe {
                input: Some(input), ..
            } => input.write_all(text),
            Destination::Pipe { input: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
            Destination::File(file) => file.write_all(text),
        }
    }

    /// Hands on what is buffered.
    ///
    /// # Errors
    /// Those of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Destination::Screen { output, .. } => output.flush(),
            Destination::Pipe {
                input: Some(input), ..
            } => input.flush(),
            Destination::Pipe { input: None, .. } => Ok(()),
            Destination::File(file) => file.flush(),
        }
    }

    /// Goes to the next row of a terminal, whatever stands in this one.
    pub fn start_row(&mut self) {
        if let Destination::Screen {
            output, live: true, ..
        } = self
        {
            // What cannot be written now cannot be written later either, and is said then.
            let _ = output.write_all(b"\n").and_then(|()| output.flush());
        }
    }

    /// Whether what is written stands on a terminal at once.
    pub fn is_live(&self) -> bool {
        matches!(self, Destination::Screen { live: true, .. })
    }

    /// Whether nobody but pmdb writes on the terminal meanwhile: a program that reads from a pipe may be a pager.
    pub fn leaves_the_terminal_alone(&self) -> bool {
        match self {
            Destination::Screen { live: true, .. } | Destination::File(_) => true,
            Destination::Screen { output, .. } => rustix::fs::fstat(output.get_ref())
                .is_ok_and(|stat| !FileType::from_raw_mode(stat.st_mode).is_fifo()),
            Destination::Pipe { .. } => false,
        }
    }

    /// Lets the rest run through.
    pub fn stop_paging(&mut self) {
        if let Destination::Screen { pager, .. } = self {
            *pager = None;
        }
    }

    /// What to watch to learn that nobody reads any more.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Destination::Screen { output, .. } => Some(output.get_ref().as_fd()),
            Destination::Pipe { input, .. } => input.as_ref().map(|input| input.get_ref().as_fd()),
            Destination::File(_) => None,
        }
    }
}

/// The path that the user meant: a leading `~/` is the home folder.
pub fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) if !home.as_os_str().is_empty() => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}
