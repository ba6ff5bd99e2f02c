//! A debugging session: it runs lines, one after the other, wherever they come from.
//!
//! It alone decides where the records of a command go (screen and pager, pipe, file, JSON), and it alone listens to Ctrl-C.
//!
//! * `lines`: the reader of command files
//! * `script`, `serve`: lines of files, and of programs
//! * `job`: one command, from where its records go to what follows from how it went
//! * `printer`, `destination`, `pager`, `shell`: records on their way out
//! * `interrupt`: Ctrl-C
//! * `failure`: errors as records

mod destination;
mod failure;
mod folders;
mod interrupt;
mod job;
mod lines;
mod pager;
mod printer;
mod progress;
mod script;
mod serve;
mod shell;
mod tally;
mod view;

pub use destination::expand_home;
pub use failure::Origin;
pub use folders::{history_file, init_file};
pub use shell::Surroundings;
pub use tally::Tally;

use crate::command::Resume;
use crate::lang::{self, Command, Line, Output, Place, Spanned, TargetName};
use crate::report::{ErrorReport, Note, Record, Sink, TargetReport, Text};
use crate::state::{Change, DebugState};
use destination::Destination;
use interrupt::Interrupts;
use job::Job;
use printer::{Ended, Printer};
use std::io::{self, IsTerminal, Write};
use std::rc::Rc;

/// How the session is to behave; decided by the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// Whether someone sits at a terminal: there is a prompt, and a pager.
    pub interactive: bool,
    /// Whether what only greets is left out.
    pub quiet: bool,
    /// Whether command files carry on after an error.
    pub keep_going: bool,
    /// What shell commands get as their input and output.
    pub shell: Surroundings,
}

/// A session: what is looked at, and how it is shown.
pub struct Session {
    state: DebugState,
    manner: Manner,
    interrupts: Rc<Interrupts>,
    /// The command files being run, the outermost first.
    files: Vec<script::Running>,
    /// The last command typed, if an empty line repeats it.
    last: Option<Repeatable>,
}

/// A command that an empty line repeats.
struct Repeatable {
    text: String,
    command: Spanned<Command>,
    resume: Option<Resume>,
}

/// How a line, or a file of lines, went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Well.
    Done,
    /// An error was reported; a batch ends with this status.
    Failed(u8),
    /// Ctrl-C, or the pager was left: what comes after in the same file is not wanted.
    Interrupted,
    /// Leave, with this status.
    Quit(u8),
    /// Leave: nobody reads standard output any more.
    Closed,
}

impl Session {
    /// A session that looks at nothing yet.
    ///
    /// # Errors
    /// Ctrl-C cannot be listened to.
    pub fn new(state: DebugState, manner: Manner) -> io::Result<Self> {
        Ok(Session {
            state,
            manner,
            interrupts: Rc::new(Interrupts::listen()?),
            files: Vec::new(),
            last: None,
        })
    }

    /// Whether someone sits at a terminal.
    pub fn is_interactive(&self) -> bool {
        self.manner.interactive
    }

    /// What lasts from line to line.
    pub fn state(&self) -> &DebugState {
        &self.state
    }

    /// What lasts from line to line, to be changed.
    pub fn state_mut(&mut self) -> &mut DebugState {
        &mut self.state
    }

    /// Attaches, as `attach` does.
    pub fn attach(&mut self, target: TargetName) -> Outcome {
        let nowhere = Place::default();
        let command = Spanned::new(Command::Attach(Spanned::new(target, nowhere)), nowhere);
        let mut job = Job::new("", Origin::default(), &command);
        job.quiet = self.manner.quiet;
        self.run_job(&job).0
    }

    /// Runs one line.
    pub fn run_line(&mut self, text: &str, origin: Origin) -> Outcome {
        match lang::parse_line(text) {
            Ok(line) => self.run_parsed(text, origin, &line).0,
            Err(error) => self.fail(origin.syntax(text, error), 1),
        }
    }

    /// Runs a line typed at the prompt; an empty one is the last command again, or more of it.
    pub fn run_typed(&mut self, text: &str) -> Outcome {
        // Only here: between the lines of a file a Ctrl-C is meant for the file.
        self.interrupts.forget();
        let last = self.last.take();
        let origin = Origin::default();
        if text.trim().is_empty() {
            return match last {
                Some(last) => self.run_again(last),
                None => Outcome::Done,
            };
        }
        let line = match lang::parse_line(text) {
            Ok(line) => line,
            Err(error) => return self.fail(origin.syntax(text, error), 1),
        };
        let (outcome, resume) = self.run_parsed(text, origin, &line);
        self.last = match line {
            // What goes to the shell or into a file is never done twice by one key.
            Line::Command {
                command,
                output: Output::Screen,
            } => Some(Repeatable {
                text: text.to_owned(),
                command,
                resume,
            }),
            _ => None,
        };
        outcome
    }

    fn run_again(&mut self, last: Repeatable) -> Outcome {
        let mut job = Job::new(&last.text, Origin::default(), &last.command);
        job.resume = last.resume;
        let (outcome, resume) = self.run_job(&job);
        self.last = Some(Repeatable { resume, ..last });
        outcome
    }

    fn run_parsed(&mut self, text: &str, origin: Origin, line: &Line) -> (Outcome, Option<Resume>) {
        match line {
            Line::Empty | Line::Comment => (Outcome::Done, None),
            Line::Shell(shell_text) => (self.run_shell(text, origin, shell_text), None),
            Line::Command { command, output } => {
                let mut job = Job::new(text, origin, command);
                job.output = output;
                self.run_job(&job)
            }
        }
    }

    /// Says who is there, when somebody sits at a terminal.
    pub fn greet(&mut self) {
        if self.manner.interactive && !self.manner.quiet && !self.is_json() {
            let text = concat!(
                "pmdb ",
                env!("CARGO_PKG_VERSION"),
                ". For help, type: help\n"
            );
            self.say(Record::Text(Text { text: text.into() }));
        }
    }

    /// Ends the row of the prompt when it is left without a command, with the word that does the same, as gdb does.
    pub fn farewell(&mut self) {
        if io::stdout().is_terminal() && !self.is_json() {
            self.say(Record::Text(Text {
                text: "quit\n".into(),
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
        let screen = Destination::screen(None, false);
        let mut printer = Printer::new(self.renderer(true), screen, &self.interrupts).regardless();
        // Whether it could be written is told at the end.
        let _ = printer.emit(record);
        match printer.finish() {
            (_, Ended::Closed) => Outcome::Closed,
            _ => Outcome::Done,
        }
    }

    /// Says a remark.
    pub fn note(&mut self, message: impl Into<String>) {
        self.say(Record::Note(Note {
            message: message.into(),
        }));
    }

    /// Reports a failure: in JSON among the records, otherwise on standard error.
    pub fn fail(&mut self, report: ErrorReport, status: u8) -> Outcome {
        let record = Record::Error(report);
        if self.is_json() {
            return match self.say(record) {
                Outcome::Closed => Outcome::Closed,
                _ => Outcome::Failed(status),
            };
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
