//! Renders records, writes them to the screen, a shell command or a file, and reports to the command when to stop.

use super::interrupt::Interrupts;
use super::outcome::words;
use super::pager::{FirstRows, Pager};
use super::progress::{PATIENCE, Progress};
use super::reply::Reply;
use super::shell::{LogWriter, ShellPermit};
use crate::budget::Budget;
use crate::own::outlet::{Outlet, is_interruption};
use crate::render::{More, Record, Renderer, Sink};
use crate::report::Stopped;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{LocalModes, tcgetattr};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Prints the records of one command.
pub struct Printer<'a> {
    renderer: Box<dyn Renderer>,
    destination: Destination<'a>,
    interrupts: &'a Interrupts,
    progress: Rc<RefCell<Progress>>,
    text: Vec<u8>,
    failure: Option<io::Error>,
    is_interrupted: bool,
    /// Whether greetings are left out.
    is_quiet: bool,
    /// Whether Ctrl-C is ignored.
    ignores_interrupts: bool,
    /// The log of the command.
    log: Option<LogWriter>,
    /// Whether the destination may receive bytes that are not records.
    takes_bytes: bool,
    /// Whether the command writes to the destination itself, so that records are printed to standard error.
    is_taken: bool,
    /// Whether another program reads the output.
    has_reader: bool,
    /// Whether a record was printed.
    has_emitted: bool,
    /// The time of the first record of which the renderer may hold a part of the text.
    held_since: Option<Instant>,
}

/// The end of a command's output.
#[derive(Debug)]
pub enum OutputEnd {
    /// All output was written.
    Whole,
    /// The reader did not want the rest.
    Closed,
    /// The output could not be written.
    Failed(io::Error),
}

impl<'a> Printer<'a> {
    /// Makes a printer that prints through `renderer` to `destination`.
    pub fn new(
        renderer: Box<dyn Renderer>,
        destination: Destination<'a>,
        interrupts: &'a Interrupts,
        progress: Rc<RefCell<Progress>>,
    ) -> Self {
        let has_reader = destination.has_reader();
        Printer {
            renderer,
            progress,
            destination,
            interrupts,
            text: Vec::new(),
            failure: None,
            is_interrupted: false,
            is_quiet: false,
            ignores_interrupts: false,
            log: None,
            takes_bytes: false,
            is_taken: false,
            has_reader,
            has_emitted: false,
            held_since: None,
        }
    }

    /// Adds the log, if there is one.
    pub fn with_log(self, log: Option<LogWriter>) -> Self {
        Printer { log, ..self }
    }

    /// Sets whether the command may write bytes that are not records.
    pub fn taking_bytes(self, takes_bytes: bool) -> Self {
        Printer { takes_bytes, ..self }
    }

    /// Returns why the log can no longer be written.
    pub fn log_failure(&mut self) -> Option<io::Error> {
        self.log.as_mut()?.failure.take()
    }

    /// Sets whether greetings are left out.
    pub fn without_greetings(self, is_quiet: bool) -> Self {
        Printer { is_quiet, ..self }
    }

    /// Ignores Ctrl-C, for short output that is no command.
    pub fn ignoring_interrupts(self) -> Self {
        Printer { ignores_interrupts: true, ..self }
    }

    /// Returns whether Ctrl-C has stopped the command.
    pub fn was_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Writes the rest, and returns the destination to be closed.
    pub fn finish(mut self) -> (Destination<'a>, OutputEnd) {
        self.progress.borrow_mut().clear();
        if let Some(log) = &mut self.log {
            log.finish();
        }
        if self.failure.is_none() {
            let finished = self.renderer.finish(&mut self.text);
            let written = finished.and_then(|()| self.write_text()).and_then(|()| self.destination.end_page());
            self.failure = written.err();
        }
        let ended = match self.failure {
            None => OutputEnd::Whole,
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe || is_interruption(&error) => OutputEnd::Closed,
            Some(error) => OutputEnd::Failed(error),
        };
        (self.destination, ended)
    }

    fn write_text(&mut self) -> io::Result<()> {
        if self.is_taken { io::stderr().write_all(&self.text) } else { self.destination.write(&self.text) }
    }

    /// Writes the text that the renderer holds, before a pause.
    fn write_held(&mut self) -> Result<(), Stopped> {
        if self.held_since.take().is_none() {
            return Ok(());
        }
        let rendered = self.renderer.pause(&mut self.text);
        let written = rendered.and_then(|()| self.write_text());
        self.text.clear();
        self.after(written)
    }

    fn after<T>(&mut self, result: io::Result<T>) -> Result<T, Stopped> {
        result.map_err(|error| {
            let asked_to_stop = is_interruption(&error);
            self.failure.get_or_insert(error);
            if asked_to_stop { self.interrupt() } else { Stopped::Closed }
        })
    }

    /// Reports to the command that it must stop, once for each Ctrl-C, so that it can still print its totals.
    fn interrupt(&mut self) -> Stopped {
        self.is_interrupted = true;
        self.progress.borrow_mut().clear();
        self.interrupts.forget();
        self.destination.end_soon();
        // The terminal has just shown ^C at the cursor.
        self.destination.start_row();
        Stopped::Interrupted
    }
}

impl Sink for Printer<'_> {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        if self.failure.is_some() {
            return Err(Stopped::Closed);
        }
        if self.destination.is_live() || self.has_reader {
            self.progress.borrow_mut().clear();
        }
        if self.is_quiet && record.is_greeting() {
            return Ok(());
        }
        // The output of a watch must not stop at a full screen.
        if record.begins_stream() {
            let written = self.destination.stop_paging();
            self.after(written)?;
        }
        if let Some(log) = &mut self.log {
            log.record(record);
            if log.is_redirected {
                return self.check();
            }
        }
        self.has_emitted = true;
        self.text.clear();
        let rendered = self.renderer.record(record, &mut self.text);
        let written = rendered.and_then(|()| self.write_text());
        self.text.clear();
        self.held_since.get_or_insert_with(Instant::now);
        // Results from before Ctrl-C are still printed.
        self.after(written)?;
        self.check()
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        self.renderer.name_columns(titles);
    }

    fn show(&mut self, more: More) {
        self.renderer.show(more);
    }

    fn is_greeting(&self) -> bool {
        !self.is_quiet
    }

    fn check(&mut self) -> Result<(), Stopped> {
        if self.failure.is_some() {
            return Err(Stopped::Closed);
        }
        match self.interrupts.check() {
            Err(_) if !self.ignores_interrupts => Err(self.interrupt()),
            _ => Ok(()),
        }
    }

    fn budget(&self) -> Budget {
        if self.ignores_interrupts { Budget::unlimited() } else { Budget::until(self.interrupts.flag()) }
    }

    fn progress(&mut self, done: u64, total: u64, what: &'static str) -> Result<(), Stopped> {
        self.check()?;
        // Elsewhere the order of the lines must not depend on the time.
        if self.destination.is_live() && self.held_since.is_some_and(|since| since.elapsed() >= PATIENCE) {
            self.write_held()?;
        }
        if !self.progress.borrow().is_due() {
            return Ok(());
        }
        let flushed = self.destination.flush();
        self.after(flushed)?;
        // A reader may print its rows on the terminal at any time.
        let is_silent = !self.has_reader || !self.has_emitted;
        if is_silent && self.destination.leaves_the_terminal_alone() {
            self.progress.borrow_mut().show(done, total, what);
        }
        Ok(())
    }

    fn take_output(&mut self) -> Result<OwnedFd, String> {
        if !self.takes_bytes {
            return Err("standard output carries the replies".to_owned());
        }
        let output = self.destination.descriptor().map_err(words)?;
        if output.is_terminal() {
            return Err("standard output is a terminal".to_owned());
        }
        self.is_taken = true;
        Ok(output)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.check()?;
        self.write_held()?;
        let flushed = self.destination.flush();
        self.after(flushed)?;
        match self.interrupts.wait_for(duration, self.destination.as_fd()) {
            Ok(()) => Ok(()),
            Err(Stopped::Interrupted) => Err(self.interrupt()),
            Err(Stopped::Closed) => {
                self.failure.get_or_insert(io::ErrorKind::BrokenPipe.into());
                Err(Stopped::Closed)
            }
        }
    }
}

/// Returns whether the terminal is in line mode, which programs that draw on it switch off.
fn is_in_line_mode() -> bool {
    tcgetattr(io::stderr()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

/// The size of the buffer: the capacity of a pipe.
const BUFFER: usize = 64 << 10;

/// How long a reader may need for the rest of an interrupted output.
const GRACE: Duration = Duration::from_millis(500);

/// An open destination.
#[derive(Debug)]
pub enum Destination<'a> {
    /// Standard output, one screen at a time if there is a pager.
    Screen {
        /// Standard output.
        output: BufWriter<Stdout>,
        /// The pager that counts rows and stops.
        pager: Option<Pager<'a>>,
        /// Rows held back for the user's pager, if there is one.
        held_rows: Option<FirstRows>,
        /// Whether each record is shown at once, as on a terminal.
        is_live: bool,
        /// Whether the text so far ends inside a row; `None` if there is none.
        ends_in_row: Option<bool>,
    },
    /// The standard input of a shell command.
    Pipe {
        /// The process of the shell.
        child: Child,
        /// The standard input of the shell.
        input: BufWriter<Outlet<ChildStdin>>,
        /// Whether the command is the user's pager.
        is_pager: bool,
    },
    /// A file.
    File(BufWriter<Outlet<File>>),
    /// A destination that several commands share.
    Shared(SharedDestination),
    /// Memory, up to a limit.
    Reply(Reply),
}

/// The destination that the lines of a user-defined command share.
#[derive(Clone, Debug)]
pub struct SharedDestination(Rc<RefCell<Destination<'static>>>);

impl SharedDestination {
    /// Makes a shared destination.
    pub fn new(destination: Destination<'static>) -> Self {
        SharedDestination(Rc::new(RefCell::new(destination)))
    }

    /// Returns the file or pipe, for a program. Flushes first, so that the program's output follows.
    ///
    /// # Errors
    /// Fails if the text so far cannot be written, or the process has too many open files.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.borrow_mut().descriptor()
    }

    /// Returns the destination, to be closed; `None` if another command still uses it.
    pub fn finish(self) -> Option<Destination<'static>> {
        let destination = Rc::try_unwrap(self.0).ok()?;
        Some(destination.into_inner())
    }
}

impl<'a> Destination<'a> {
    /// Opens standard output.
    pub fn screen(pager: Option<Pager<'a>>, held_rows: Option<FirstRows>, is_live: bool) -> Self {
        let output = BufWriter::with_capacity(BUFFER, io::stdout());
        Destination::Screen { output, pager, held_rows, is_live, ends_in_row: None }
    }

    /// Opens the standard input of a shell command, or of the user's pager.
    ///
    /// # Errors
    /// Fails if the child was started without a pipe.
    pub fn pipe(mut child: Child, is_pager: bool, budget: Budget) -> io::Result<Self> {
        let input = Outlet::new(child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?, budget);
        Ok(Destination::Pipe { child, input: BufWriter::with_capacity(BUFFER, input), is_pager })
    }

    /// Opens a file, to overwrite it or to append.
    ///
    /// # Errors
    /// Fails with the reason in words.
    pub fn file(path: &Path, append: bool, budget: Budget, _: ShellPermit) -> Result<Self, String> {
        let how = if append { OFlags::APPEND } else { OFlags::TRUNC };
        // Non-blocking, because opening a named pipe without a reader would wait, and Ctrl-C would not end that.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o666);
        let file = rustix::fs::open(path, flags | how, mode).map_err(|error| match error {
            Errno::NXIO => "no program reads this pipe".to_owned(),
            error => words(error),
        })?;
        rustix::fs::fcntl_setfl(&file, how & OFlags::APPEND).map_err(words)?;
        let file = Outlet::new(File::from(file), budget);
        Ok(Destination::File(BufWriter::with_capacity(BUFFER, file)))
    }

    /// Writes text, page by page if there is a pager.
    ///
    /// # Errors
    /// Fails with `BrokenPipe` also if the user has left the pager.
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
            Destination::Reply(reply) => reply.add(text),
            Destination::Shared(SharedDestination(shared)) => shared.borrow_mut().write(text),
        }
    }

    /// Starts the user's pager, which gets the held rows and all later ones.
    fn start_pager(&mut self) -> io::Result<()> {
        let Destination::Screen { held_rows, .. } = self else {
            return Ok(());
        };
        let Some(held_rows) = held_rows.take() else {
            return Ok(());
        };
        *self = Destination::pipe(held_rows.start()?, true, Budget::unlimited())?;
        self.write(held_rows.text())
    }

    /// Ends the output of a command.
    fn end_page(&mut self) -> io::Result<()> {
        if let Destination::Screen { output, pager: Some(pager), .. } = self {
            pager.finish(output)?;
        }
        self.flush()
    }

    /// Flushes the buffer. Held rows are written to the screen, and the user's pager will not start.
    ///
    /// # Errors
    /// Fails with the errors of writing.
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
            Destination::Reply(_) => Ok(()),
            Destination::Shared(SharedDestination(shared)) => shared.borrow_mut().flush(),
        }
    }

    /// Returns the file, pipe or standard output. Flushes first.
    fn descriptor(&mut self) -> io::Result<OwnedFd> {
        self.flush()?;
        match self {
            Destination::Pipe { input, .. } => input.get_ref().get_ref().as_fd().try_clone_to_owned(),
            Destination::File(file) => file.get_ref().get_ref().as_fd().try_clone_to_owned(),
            Destination::Shared(shared) => shared.descriptor(),
            Destination::Screen { .. } => io::stdout().as_fd().try_clone_to_owned(),
            Destination::Reply(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Discards the rest after Ctrl-C, if the reader does not read it.
    fn end_soon(&mut self) {
        match self {
            Destination::Pipe { input, is_pager: false, .. } => input.get_mut().end_within(GRACE),
            Destination::File(file) => file.get_mut().end_within(GRACE),
            Destination::Pipe { .. } | Destination::Screen { .. } | Destination::Shared(_) | Destination::Reply(_) => {}
        }
    }

    /// Begins a new row on a terminal.
    pub fn start_row(&mut self) {
        if let Destination::Screen { output, is_live: true, .. } = self {
            // If this fails, the next write fails too and is reported.
            let _ = output.write_all(b"\n").and_then(|()| output.flush());
        }
    }

    /// Returns whether output appears on a terminal at once.
    pub fn is_live(&self) -> bool {
        matches!(self, Destination::Screen { is_live: true, .. })
    }

    /// Returns whether only pmdb writes to the terminal until the first row. The reader of a pipe may be a pager, which
    /// has switched off line mode.
    pub fn leaves_the_terminal_alone(&self) -> bool {
        match self {
            Destination::Pipe { is_pager: true, .. } => false,
            Destination::Shared(SharedDestination(shared)) => shared.borrow().leaves_the_terminal_alone(),
            _ => !self.has_reader() || is_in_line_mode(),
        }
    }

    /// Returns whether a program reads the output.
    fn has_reader(&self) -> bool {
        match self {
            Destination::Screen { is_live: true, .. } | Destination::File(_) | Destination::Reply(_) => false,
            Destination::Screen { output, .. } => {
                rustix::fs::fstat(output.get_ref()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_fifo())
            }
            Destination::Pipe { .. } => true,
            Destination::Shared(SharedDestination(shared)) => shared.borrow().has_reader(),
        }
    }

    /// Writes further output without a pager.
    ///
    /// # Errors
    /// Fails with the errors of writing the held rows.
    pub fn stop_paging(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Destination::Screen { pager, held_rows, .. } = self {
            *pager = None;
            *held_rows = None;
        }
        Ok(())
    }

    /// Returns the descriptor to poll for the end of the reader.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Destination::Screen { output, .. } => Some(output.get_ref().as_fd()),
            Destination::Pipe { input, .. } => Some(input.get_ref().get_ref().as_fd()),
            Destination::File(_) | Destination::Shared(_) | Destination::Reply(_) => None,
        }
    }
}
