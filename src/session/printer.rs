//! Renders and writes records, and tells the command when to stop. The progress line of a long command.

use super::destination::Destination;
use super::interrupt::Interrupts;
use super::shell::LogWriter;
use crate::budget::Budget;
use crate::render::{Record, Renderer, Sink};
use crate::report::Stopped;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Takes the records of one command.
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
}

/// How the output of a command ended.
#[derive(Debug)]
pub enum OutputEnd {
    /// All of it is out.
    Whole,
    /// Nobody wanted the rest.
    Closed,
    /// It could not be written.
    Failed(io::Error),
}

impl<'a> Printer<'a> {
    /// Prints through `renderer` to `destination`.
    pub fn new(
        renderer: Box<dyn Renderer>,
        destination: Destination<'a>,
        interrupts: &'a Interrupts,
        progress: Rc<RefCell<Progress>>,
    ) -> Self {
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
        }
    }

    /// Writes to the log too, if there is one.
    pub fn with_log(self, log: Option<LogWriter>) -> Self {
        Printer { log, ..self }
    }

    /// Why the log can no longer be written.
    pub fn log_failure(&mut self) -> Option<io::Error> {
        self.log.as_mut()?.failure.take()
    }

    /// Leaves greetings out.
    pub fn without_greetings(self, is_quiet: bool) -> Self {
        Printer { is_quiet, ..self }
    }

    /// Ignores Ctrl-C, for short output that is no command.
    pub fn ignoring_interrupts(self) -> Self {
        Printer { ignores_interrupts: true, ..self }
    }

    /// Whether Ctrl-C has stopped the command.
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
            let written =
                finished.and_then(|()| self.destination.write(&self.text)).and_then(|()| self.destination.flush());
            self.failure = written.err();
        }
        let ended = match self.failure {
            None => OutputEnd::Whole,
            Some(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted) => {
                OutputEnd::Closed
            }
            Some(error) => OutputEnd::Failed(error),
        };
        (self.destination, ended)
    }

    fn after<T>(&mut self, result: io::Result<T>) -> Result<T, Stopped> {
        result.map_err(|error| {
            let asked_to_stop = error.kind() == io::ErrorKind::Interrupted;
            self.failure.get_or_insert(error);
            if asked_to_stop { self.interrupt() } else { Stopped::Closed }
        })
    }

    /// Tells the command to stop, once for each Ctrl-C, so that it can still print its totals.
    fn interrupt(&mut self) -> Stopped {
        self.is_interrupted = true;
        self.progress.borrow_mut().clear();
        self.interrupts.forget();
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
        if self.destination.is_live() {
            self.progress.borrow_mut().clear();
        }
        if self.is_quiet && record.is_greeting() {
            return Ok(());
        }
        // A watch must not stop at a full screen.
        if record.begins_stream() {
            let written = self.destination.stop_paging();
            self.after(written)?;
        }
        if let Some(log) = &mut self.log {
            log.record(record);
            if log.redirect {
                return self.check();
            }
        }
        self.text.clear();
        let rendered = self.renderer.record(record, &mut self.text);
        let written = rendered.and_then(|()| self.destination.write(&self.text));
        self.text.clear();
        // Results from before Ctrl-C are still printed.
        self.after(written)?;
        self.check()
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        self.renderer.name_columns(titles);
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
        if !self.progress.borrow().is_due() {
            return Ok(());
        }
        let flushed = self.destination.flush();
        self.after(flushed)?;
        if self.destination.leaves_the_terminal_alone() {
            self.progress.borrow_mut().show(done, total, what);
        }
        Ok(())
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.check()?;
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

/// A command that ends sooner shows no progress line.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often the line may change in a second.
const REDRAWS: u8 = 8;
/// What stands in it.
const LINE: &str = "[{bar:30}] {percent:>3} %  {human_pos} of {human_len} {msg}";

/// The line, once there is one.
#[derive(Debug)]
pub struct Progress {
    /// The time of the last output.
    silent_since: Instant,
    bar: Option<ProgressBar>,
    is_wanted: bool,
}

impl Progress {
    /// Without a line so far. It stays so if `is_wanted` is false or standard error is no terminal.
    pub fn new(is_wanted: bool) -> Self {
        Progress { silent_since: Instant::now(), bar: None, is_wanted: is_wanted && io::stderr().is_terminal() }
    }

    /// Whether there was no output for long enough.
    pub fn is_due(&self) -> bool {
        self.is_wanted && (self.bar.is_some() || self.silent_since.elapsed() >= PATIENCE)
    }

    /// Shows that `done` of `total` are done.
    pub fn show(&mut self, done: u64, total: u64, what: &'static str) {
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS);
            let bar = ProgressBar::with_draw_target(Some(total), target).with_message(what);
            let style = ProgressStyle::with_template(LINE).map(|style| style.progress_chars("#>-"));
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        // Each of these draws the line anew, up to the limit.
        if bar.length() != Some(total) {
            bar.set_length(total);
        }
        bar.set_position(done.min(total));
    }

    /// Removes the line before other output.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.is_wanted {
            self.silent_since = Instant::now();
        }
    }
}
