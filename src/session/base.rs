//! What a session holds, and how it speaks for itself.

use super::assertions::Assertions;
use super::destination::{Common, Destination};
use super::interrupt::Interrupts;
use super::log::Log;
use super::outcome::Outcome;
use super::printer::{Ended, Printer};
use super::progress::Progress;
use super::requests::AsText;
use super::running::Running;
use super::shell::ShellIo;
use crate::command::Resume;
use crate::lang::{Command, Spanned};
use crate::render::Renderer;
use crate::report::{ErrorReport, Note, Record, Sink, TargetReport, Text};
use crate::source;
use crate::state::{Change, DebugState, Waiting};
use crate::symbol::Symbols;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::rc::Rc;

/// How the session is to behave; decided by the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOptions {
    /// Whether someone sits at a terminal: there is a prompt, and a pager.
    pub interactive: bool,
    /// Whether what only greets is left out.
    pub quiet: bool,
    /// Whether command files carry on after an error.
    pub keep_going: bool,
    /// Whether shell commands, pipes and files are refused.
    pub no_shell: bool,
    /// What shell commands get as their input and output.
    pub shell: ShellIo,
}

/// A session: what is looked at, and how it is shown.
pub struct Session {
    pub(super) state: DebugState,
    pub(super) options: SessionOptions,
    pub(super) interrupts: Rc<Interrupts>,
    /// The command files being run, the outermost first.
    pub(super) files: Vec<Running>,
    /// Where a command that the user made writes, if not to the screen.
    pub(super) common: Option<Common>,
    /// Where what is printed is written too.
    pub(super) log: Option<Log>,
    /// How far long work has got.
    pub(super) progress: Rc<RefCell<Progress>>,
    /// Whether what is displayed at each prompt has just been shown.
    pub(super) displayed: bool,
    /// What came of `assert`.
    pub assertions: Assertions,
    /// How many `foreach` are running.
    pub(super) foreach: usize,
    /// How many aliases stand for one another just now.
    pub(super) aliases: usize,
    /// What failed in the turn of a loop that was left before its end.
    pub(super) failed_turn: Option<Outcome>,
    /// Whether what runs was typed at the prompt.
    pub(super) typed: bool,
    /// How a program wants the answer to what runs, if it wants text.
    pub(super) reply: Option<AsText>,
    /// The last command typed, if an empty line repeats it.
    pub(super) last: Option<Repeatable>,
}

/// A command that an empty line repeats.
pub(super) struct Repeatable {
    pub(super) text: String,
    pub(super) command: Spanned<Command>,
    pub(super) resume: Option<Resume>,
}

impl Session {
    /// A session that looks at nothing yet.
    ///
    /// # Errors
    /// Ctrl-C cannot be listened to.
    pub fn new(mut state: DebugState, options: SessionOptions) -> io::Result<Self> {
        let interrupts = Interrupts::listen()?;
        state.symbols = Symbols::heeding(interrupts.flag());
        source::live::heed(interrupts.flag());
        state.interrupted = interrupts.flag();
        let progress = Rc::new(RefCell::new(Progress::new(true)));
        let shown = Rc::clone(&progress);
        state.waiting =
            Waiting::new(move |done, total, what| shown.borrow_mut().show(done, total, what));
        Ok(Session {
            state,
            options,
            interrupts: Rc::new(interrupts),
            files: Vec::new(),
            common: None,
            log: None,
            progress,
            displayed: false,
            assertions: Assertions::default(),
            foreach: 0,
            aliases: 0,
            failed_turn: None,
            typed: false,
            reply: None,
            last: None,
        })
    }

    /// Whether someone sits at a terminal.
    pub fn is_interactive(&self) -> bool {
        self.options.interactive
    }

    /// What lasts from line to line.
    pub fn state(&self) -> &DebugState {
        &self.state
    }

    /// What lasts from line to line, to be changed.
    pub fn state_mut(&mut self) -> &mut DebugState {
        &mut self.state
    }

    /// Says who is there, when somebody sits at a terminal.
    pub fn greet(&mut self) {
        if self.options.interactive && !self.options.quiet && !self.is_json() {
            let text = concat!(
                "pmdb ",
                env!("CARGO_PKG_VERSION"),
                ". For help, type: help\n"
            );
            self.say(Record::Text(Text { text: text.into() }));
        }
    }

    /// Ends the row of the prompt when Ctrl-D ends it without a command, with the word that does the same, as gdb does.
    pub fn say_word(&mut self, word: &str) {
        if io::stdout().is_terminal() && !self.is_json() {
            self.say(Record::Text(Text {
                text: format!("{word}\n"),
            }));
        }
    }

    /// Says, once, that the target has exited or runs another program now. For before each prompt; commands do it themselves.
    pub fn notice_target(&mut self) {
        // What cannot be asked now is said by the next command that needs it.
        let Ok(Some(change)) = self.state.notice() else {
            return;
        };
        let Some(identity) = self.state.target().map(|target| target.process.identity()) else {
            return;
        };
        self.say(Record::Target(TargetReport {
            event: match change {
                Change::Executed => "executed",
                Change::Exited => "exited",
            },
            pid: identity.pid,
            name: identity.name,
            executable: None,
            regions: None,
            remarks: Vec::new(),
        }));
    }

    /// Says something that is no answer to a command. The outcome is [`Outcome::Closed`] if nobody reads it.
    pub fn say(&mut self, record: Record) -> Outcome {
        let screen = Destination::screen(None, None, false);
        let mut printer = self
            .printer(self.renderer(true), screen, &self.interrupts)
            .regardless()
            .logged(self.logged());
        // `finish` reports whether it could be written.
        let _ = printer.emit(record);
        match printer.finish() {
            (_, Ended::Closed) => Outcome::Closed,
            _ => Outcome::Done,
        }
    }

    /// What prints records, for one command.
    pub(super) fn printer<'a>(
        &self,
        renderer: Box<dyn Renderer>,
        destination: Destination<'a>,
        interrupts: &'a Interrupts,
    ) -> Printer<'a> {
        *self.progress.borrow_mut() = Progress::new(destination.leaves_the_terminal_alone());
        Printer::new(renderer, destination, interrupts, Rc::clone(&self.progress))
    }

    /// Prints the notes on a value that no command has asked for.
    pub(super) fn say_notes(&mut self) {
        self.progress.borrow_mut().clear();
        for note in self.state.notes.take() {
            self.note(note);
        }
    }

    /// Says a remark.
    pub fn note(&mut self, message: impl Into<String>) {
        self.say(Record::Note(Note {
            message: message.into(),
        }));
    }

    /// Reports a failure: in JSON among the records, otherwise on standard error; and to the report of the assertions.
    pub fn fail(&mut self, report: ErrorReport, status: u8) -> Outcome {
        if !self.is_at_the_prompt() {
            self.assertions.add_broken(&report);
        }
        self.fail_only(report, status)
    }

    /// Whether what runs was typed, and stands in no file.
    pub(super) fn is_at_the_prompt(&self) -> bool {
        self.typed && self.files.is_empty()
    }

    /// Reports a failure that the report of the assertions has already.
    pub(super) fn fail_only(&mut self, report: ErrorReport, status: u8) -> Outcome {
        let record = Record::Error(report);
        if self.is_json() {
            return match self.say(record) {
                Outcome::Closed => Outcome::Closed,
                _ => Outcome::Failed(status),
            };
        }
        if let Some(mut logged) = self.logged() {
            logged.record(&record);
            logged.finish();
        }
        let mut renderer = self.error_renderer();
        let mut text = Vec::new();
        let rendered = renderer
            .record(&record, &mut text)
            .and_then(|()| renderer.finish(&mut text));
        // With standard error closed there is nowhere left to complain.
        let _ = rendered.and_then(|()| io::stderr().write_all(&text));
        Outcome::Failed(status)
    }
}
