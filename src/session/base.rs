//! The data of a session, and its own messages.

use super::interrupt::Interrupts;
use super::outcome::{Assertions, LineOutcome};
use super::pager::{FirstRows, Pager};
use super::printer::{Destination, OutputEnd, Printer, SharedDestination};
use super::progress::Progress;
use super::reply::Reply;
use super::shell::{OpenLog, Permits, ShellIo, ShellPermit};
use crate::budget;
use crate::budget::Budget;
use crate::command::Resume;
use crate::eval::{Integer, Value};
use crate::kernel::Name;
use crate::lang::{ParsedCommand, Spanned};
use crate::own::own_file::{self, Links};
use crate::render::{Background, Record, RemarksMade, Renderer, Sink, TextColumn};
use crate::report::{EchoedText, ErrorPlace, ErrorReport, Note, TargetEvent, TargetReport};
use crate::state::{DebugState, ProgressListener, TargetChange};
use crate::symbol::Symbols;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;

/// The options of the session, from the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOptions {
    /// Whether there is a prompt, and therefore a pager.
    pub is_interactive: bool,
    /// Whether greetings are left out.
    pub is_quiet: bool,
    /// Whether command files continue after an error.
    pub keep_going: bool,
    /// The effects that lines may have outside of the session.
    pub permits: Permits,
    /// The standard input and output of shell commands.
    pub shell: ShellIo,
}

impl SessionOptions {
    /// Returns the permit to start programs and write files.
    ///
    /// # Errors
    /// Fails with the message of the option that refuses it.
    pub(super) fn shell_permit(&self) -> Result<ShellPermit, &'static str> {
        ShellPermit::of(self.permits)
    }
}

/// A session: the target, and the form of answers.
pub struct Session {
    pub(super) state: DebugState,
    pub(super) options: SessionOptions,
    /// The background of the terminal, if it reports it.
    pub(super) background: Option<Background>,
    pub(super) interrupts: Rc<Interrupts>,
    /// The running command files, the outermost first.
    pub(super) files: Vec<RunningFile>,
    /// The lines that led to the running one: calls of user-defined commands and `source`, the outermost first.
    pub(super) callers: Vec<ErrorPlace>,
    /// The destination of a user-defined command, if it is not the screen.
    pub(super) shared_destination: Option<SharedDestination>,
    /// The log, if it is on.
    pub(super) log: Option<OpenLog>,
    /// The progress line.
    pub(super) progress: Rc<RefCell<Progress>>,
    /// Whether the displays were shown after the last line.
    pub(super) has_shown_displays: bool,
    /// The results of `assert`.
    pub assertions: Assertions,
    /// The number of running `foreach` loops.
    pub(super) foreach_depth: usize,
    /// Whether the running line was typed at the prompt.
    pub(super) is_line_typed: bool,
    /// The form of a text answer to the running request, if it requested text.
    pub(super) text_reply: Option<TextReply>,
    /// The memory for answers, in place of standard output and standard error.
    pub(super) reply: Option<Reply>,
    /// The last command typed, if an empty line repeats it.
    pub(super) repeatable: Option<Repeatable>,
    /// The line that was typed in the place of an answer to the pager.
    pub(super) typed_at_pager: Option<String>,
    /// The remarks about the kernel and rights that are on the screen.
    pub(super) remarks: RemarksMade,
    /// The column where the last text of `echo` or `printf` ended.
    pub(super) text_column: TextColumn,
    /// Whether the last answer on the screen ends inside a row.
    pub(super) ends_in_row: bool,
}

/// A running command file.
#[derive(Debug)]
pub(super) struct RunningFile {
    pub(super) name: Name,
    /// Device and inode, which identify the file under any name.
    pub(super) identity: Option<(u64, u64)>,
}

/// The form of a text answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TextReply {
    /// The number of columns; `None` for no limit.
    pub(super) width: Option<usize>,
    /// Whether the text is coloured.
    pub(super) is_coloured: bool,
    /// Whether errors and events of the target remain records, for a client that displays them itself.
    pub(super) has_error_records: bool,
}

/// A command that an empty line repeats.
pub(super) struct Repeatable {
    pub(super) text: String,
    pub(super) command: Spanned<Rc<dyn ParsedCommand>>,
    pub(super) resume: Option<Resume>,
}

impl Session {
    /// Makes a session without a target.
    ///
    /// # Errors
    /// Fails if Ctrl-C cannot be handled.
    pub fn new(mut state: DebugState, options: SessionOptions) -> io::Result<Self> {
        let interrupts = Interrupts::listen()?;
        state.symbols = Symbols::with_budget(Budget::until(interrupts.flag()));
        budget::heed(interrupts.flag());
        state.interrupted = interrupts.flag();
        state.variables.insert("_failed".to_owned(), Value::Integer(Integer::from(0_u64)));
        state.set_demonstration(false);
        let progress = Rc::new(RefCell::new(Progress::new(true)));
        let shown = Rc::clone(&progress);
        state.progress = ProgressListener::new(move |done, total, what| shown.borrow_mut().show(done, total, what));
        Ok(Session {
            state,
            options,
            background: None,
            interrupts: Rc::new(interrupts),
            files: Vec::new(),
            callers: Vec::new(),
            shared_destination: None,
            log: None,
            progress,
            has_shown_displays: false,
            assertions: Assertions::default(),
            foreach_depth: 0,
            is_line_typed: false,
            text_reply: None,
            reply: None,
            repeatable: None,
            typed_at_pager: None,
            remarks: RemarksMade::default(),
            text_column: TextColumn::default(),
            ends_in_row: false,
        })
    }

    /// Returns whether there is a prompt.
    pub fn is_interactive(&self) -> bool {
        self.options.is_interactive
    }

    /// Returns the state that lasts from line to line.
    pub fn state(&self) -> &DebugState {
        &self.state
    }

    /// Returns the state that lasts from line to line, for changes.
    pub fn state_mut(&mut self) -> &mut DebugState {
        &mut self.state
    }

    /// Prints the greeting, if there is a prompt.
    pub fn greet(&mut self) {
        if self.options.is_interactive && !self.options.is_quiet && !self.is_json() {
            let text = concat!("pmdb ", env!("CARGO_PKG_VERSION"), ". For help, type: help\n");
            self.print(&EchoedText { text: text.into() });
        }
    }

    /// Takes the line that was typed in the place of an answer to the pager.
    pub fn take_line_of_pager(&mut self) -> Option<String> {
        self.typed_at_pager.take()
    }

    /// Ends the row of an answer without a line end, because the editor would draw the prompt over it.
    pub fn finish_answer_row(&mut self) {
        if std::mem::take(&mut self.ends_in_row) && io::stdout().is_terminal() {
            self.print(&EchoedText { text: "\n".to_owned() });
        }
    }

    /// Ends the row of the prompt after Ctrl-D with the word for the same effect, as in gdb.
    pub fn finish_prompt_row(&mut self, word: &str) {
        if io::stdout().is_terminal() && !self.is_json() {
            self.print(&EchoedText { text: format!("{word}\n") });
        }
    }

    /// Reports, once, that the target has exited or runs another program. Called before each prompt; commands report it
    /// themselves.
    pub fn report_target_change(&mut self) {
        // If the check fails, the next command that needs the target reports the reason.
        let Ok(Some(change)) = self.state.notice() else {
            return;
        };
        let Some(identity) = self.state.target().map(|target| target.process.identity()) else {
            return;
        };
        self.print(&TargetReport {
            event: match change {
                TargetChange::Executed => TargetEvent::Executed,
                TargetChange::Exited => TargetEvent::Exited,
            },
            pid: identity.pid,
            name: identity.name,
            executable: None,
            regions: None,
            remarks: Vec::new(),
        });
    }

    /// Prints a record that answers no command. The outcome is [`LineOutcome::Closed`] if standard output has no
    /// reader.
    pub fn print(&mut self, record: &dyn Record) -> LineOutcome {
        let screen = self.screen(None, None, false);
        let mut printer = self
            .printer(self.renderer(true), screen, &self.interrupts)
            .ignoring_interrupts()
            .with_log(self.log_writer());
        // `finish` reports whether it could be written.
        let _ = printer.emit(record);
        match printer.finish() {
            (_, OutputEnd::Closed) => LineOutcome::Closed,
            _ => LineOutcome::Done,
        }
    }

    /// Returns the destination for the screen.
    pub(super) fn screen<'a>(
        &self,
        pager: Option<Pager<'a>>,
        held_rows: Option<FirstRows>,
        is_live: bool,
    ) -> Destination<'a> {
        match &self.reply {
            Some(reply) => Destination::Reply(reply.clone()),
            None => Destination::screen(pager, held_rows, is_live),
        }
    }

    /// Makes a printer for the records of one command.
    pub(super) fn printer<'a>(
        &self,
        renderer: Box<dyn Renderer>,
        destination: Destination<'a>,
        interrupts: &'a Interrupts,
    ) -> Printer<'a> {
        *self.progress.borrow_mut() = Progress::new(destination.leaves_the_terminal_alone());
        Printer::new(renderer, destination, interrupts, Rc::clone(&self.progress))
    }

    /// Prints the notes of an evaluation outside of commands.
    pub(super) fn print_notes(&mut self) {
        self.progress.borrow_mut().clear();
        for note in self.state.remarks.take_notes() {
            self.note(note);
        }
    }

    /// Prints a remark.
    pub fn note(&mut self, message: impl Into<String>) {
        self.print(&Note { message: message.into() });
    }

    /// Reports a failure: in JSON as a record, otherwise on standard error. Also adds it to the report of assertions.
    pub fn fail(&mut self, report: ErrorReport) -> LineOutcome {
        let report = self.with_callers(report);
        if !self.is_at_the_prompt() {
            self.assertions.add_broken(&report);
            self.count_failed_assertions();
        }
        self.print_error(report)
    }

    /// Sets `$_failed` to the number of failed assertions, for the following lines.
    pub(super) fn count_failed_assertions(&mut self) {
        let failed = self.assertions.failures();
        self.state.variables.insert("_failed".to_owned(), Value::Integer(Integer::from(failed)));
    }

    fn with_callers(&self, report: ErrorReport) -> ErrorReport {
        ErrorReport { callers: self.callers.iter().rev().cloned().collect(), ..report }
    }

    /// Adds to the report the command line of gdb that opens a core file, if the target is one: a core has no process
    /// to which gdb could attach.
    fn of_core(&self, report: ErrorReport) -> ErrorReport {
        if !self.state.target().is_some_and(|target| target.process.is_core()) {
            return report;
        }
        let of_core = |text: String| text.replace("gdb -p PID", "gdb PROGRAM CORE");
        ErrorReport { message: of_core(report.message), hint: report.hint.map(of_core), ..report }
    }

    /// Calls `run` for the line at `place`, which errors then name.
    pub(super) fn called_from<T>(&mut self, place: Option<ErrorPlace>, run: impl FnOnce(&mut Session) -> T) -> T {
        let depth = self.callers.len();
        self.callers.extend(place);
        let result = run(self);
        self.callers.truncate(depth);
        result
    }

    /// Returns whether the running line was typed, and is not from a file.
    pub(super) fn is_at_the_prompt(&self) -> bool {
        self.is_line_typed && self.files.is_empty()
    }

    /// Prints a failure that the report of assertions already has.
    pub(super) fn print_error(&mut self, report: ErrorReport) -> LineOutcome {
        let code = report.code;
        let record = self.of_core(self.with_callers(report));
        if let Some(reply) = &self.reply {
            let mut renderer = self.renderer(true);
            let mut text = Vec::new();
            // Writing to a Vec never fails.
            _ = renderer.record(&record, &mut text).and_then(|()| renderer.finish(&mut text));
            reply.add_error(&text);
            return LineOutcome::Failed(code);
        }
        if self.is_json() {
            return match self.print(&record) {
                // The run ends, and has failed too.
                LineOutcome::Closed => LineOutcome::Quit(code.status()),
                _ => LineOutcome::Failed(code),
            };
        }
        if let Some(mut log) = self.log_writer() {
            log.record(&record);
            log.finish();
        }
        let mut renderer = self.error_renderer();
        let mut text = Vec::new();
        let rendered = renderer.record(&record, &mut text).and_then(|()| renderer.finish(&mut text));
        // With standard error closed there is no place to report it.
        let _ = rendered.and_then(|()| io::stderr().write_all(&text));
        LineOutcome::Failed(code)
    }
}

/// Returns the init file, if there is one, or why it is not run. It is never a file in the current directory.
pub fn init_file() -> Option<Result<PathBuf, String>> {
    let path = settings_directory()?.join("init");
    match own_file::open(&path, Links::Followed) {
        Ok(found) => found.map(|_| Ok(path)),
        Err(why) => Some(Err(format!("{} is not run: {why}", path.display()))),
    }
}

/// Returns the directory of the init file, which may have other command files.
pub(super) fn settings_directory() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

impl Session {
    /// Returns the file of lines typed at the prompt. There is none with `--no-shell`.
    pub fn history_file(&self) -> Option<PathBuf> {
        self.options.shell_permit().ok()?;
        Some(folder("XDG_STATE_HOME", ".local/state")?.join("history"))
    }
}

fn folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |value: std::ffi::OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let base = std::env::var_os(variable).and_then(absolute).or_else(|| {
        let home = std::env::var_os("HOME").and_then(absolute)?;
        Some(home.join(below_home))
    })?;
    Some(base.join("pmdb"))
}
