//! A debugging session: it runs lines, one after the other, wherever they come from.
//!
//! It alone decides where the records of a command go (screen and pager, pipe, file, JSON), and it alone listens to Ctrl-C.

mod destination;
mod failure;
mod folders;
mod interrupt;
mod lines;
mod pager;
mod printer;
mod script;
mod serve;
mod shell;
mod tally;
mod view;

pub use destination::expand_home;
pub use failure::Origin;
pub use folders::{history_file, init_file};
pub use interrupt::Interrupts;
pub use shell::Surroundings;
pub use tally::Tally;

use crate::command::{self, Context, Flow, Resume};
use crate::lang::{self, Command, Line, Output, Place, Spanned, TargetName};
use crate::report::{ErrorReport, Note, Record, Sink, Stopped, TargetReport};
use crate::state::{Change, DebugState};
use destination::Destination;
use printer::{Ended, Printer};
use std::io::{self, IsTerminal, Write};
use std::rc::Rc;

/// How the session is to behave; decided by the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// Whether someone sits at a terminal: there is a prompt, and a pager.
    pub interactive: bool,
    /// Whether records that only greet are left out.
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
    /// The last command, if an empty line repeats it.
    last: Option<Repeatable>,
}

/// A command that an empty line repeats.
#[derive(Clone, Debug)]
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
        self.run_command("", &Origin::default(), &command, &Output::Screen, None)
    }

    /// Runs one line.
    pub fn run_line(&mut self, text: &str, origin: &Origin) -> Outcome {
        let line = match lang::parse_line(text) {
            Ok(line) => line,
            Err(error) => return self.fail(origin.syntax(text, error), 1),
        };
        match line {
            Line::Empty | Line::Comment => Outcome::Done,
            Line::Shell(shell_text) => {
                self.last = None;
                self.run_shell(text, origin, &shell_text)
            }
            Line::Command { command, output } => {
                self.last = (output == Output::Screen).then(|| Repeatable {
                    text: text.to_owned(),
                    command: command.clone(),
                    resume: None,
                });
                self.run_command(text, origin, &command, &output, None)
            }
        }
    }

    /// Runs a line typed at the prompt; an empty one is the last command again, or more of it.
    pub fn run_typed(&mut self, text: &str) -> Outcome {
        // Only here: between the lines of a file a Ctrl-C is meant for the file.
        self.interrupts.forget();
        let origin = Origin::default();
        if !text.trim().is_empty() {
            return self.run_line(text, &origin);
        }
        match self.last.clone() {
            None => Outcome::Done,
            Some(last) => self.run_command(
                &last.text,
                &origin,
                &last.command,
                &Output::Screen,
                last.resume,
            ),
        }
    }

    /// Says, once, that the target has exited or runs another program now. To be called before each prompt.
    pub fn notice_target(&mut self) {
        // What cannot be asked now is said by the next command that needs it.
        let Ok(Some(change)) = self.state.notice() else {
            return;
        };
        let Some(target) = self.state.target().cloned() else {
            return;
        };
        let identity = target.process.identity();
        self.say(Record::Target(TargetReport {
            event: match change {
                Change::Executed => "executed",
                Change::Exited => "exited",
            },
            pid: identity.pid,
            name: identity.name.clone(),
            executable: None,
            regions: None,
            remarks: Vec::new(),
        }));
    }

    /// Says something that is no answer to a command.
    pub fn say(&mut self, record: Record) {
        let printer = Printer::new(
            self.renderer(true),
            Destination::screen(None, false),
            &self.interrupts,
        );
        let mut printer = printer;
        // Whoever does not read this does not read what follows either, and is noticed there.
        let _ = printer.emit(record);
        printer.finish();
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
            self.say(record);
            return Outcome::Failed(status);
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

    fn run_command(
        &mut self,
        text: &str,
        origin: &Origin,
        command: &Spanned<Command>,
        output: &Output,
        resume: Option<Resume>,
    ) -> Outcome {
        let interrupts = Rc::clone(&self.interrupts);
        let destination = match self.open(output) {
            Ok(destination) => destination,
            Err((at, message)) => {
                let place = Some(origin.place(text, Some(at)));
                return self.fail(
                    ErrorReport {
                        place,
                        ..ErrorReport::of(message)
                    },
                    1,
                );
            }
        };
        let renderer = self.renderer(matches!(output, Output::Screen));
        let pager = match output {
            Output::Screen => self.pager_size(),
            _ => None,
        };
        let destination = match (destination, pager) {
            (Destination::Screen { live, .. }, Some((height, width))) => {
                Destination::screen(destination::pager(&interrupts, height, width), live)
            }
            (destination, _) => destination,
        };
        let mut printer =
            Printer::new(renderer, destination, &interrupts).quietly(self.manner.quiet);
        let context = &mut Context {
            state: &mut self.state,
            sink: &mut printer,
            resume,
        };
        let result = command::run(command, context);
        let interrupted = printer.was_interrupted();
        let (destination, ended) = printer.finish();
        let closed = self.close(text, origin, destination, ended);
        let went = self.after(text, origin, result);
        // A watch is ended by Ctrl-C; anything else is broken off by it, and with it the file it stands in.
        let broken_off = interrupted && !matches!(command.node, Command::Watch { .. });
        match (closed, went) {
            (Outcome::Done, Outcome::Done) if broken_off => Outcome::Interrupted,
            (Outcome::Done, went) => went,
            (closed, Outcome::Done | Outcome::Interrupted) => closed,
            (_, went) => went,
        }
    }

    /// What follows from how a command went.
    fn after(
        &mut self,
        text: &str,
        origin: &Origin,
        result: Result<Flow, command::Error>,
    ) -> Outcome {
        if let Some(last) = &mut self.last {
            last.resume = None;
        }
        match result {
            Ok(Flow::Done) => Outcome::Done,
            Ok(Flow::More(resume)) => {
                if let Some(last) = &mut self.last {
                    last.resume = Some(resume);
                }
                Outcome::Done
            }
            Ok(Flow::Source(path)) => {
                let path = path.to_str().map_or(path.clone(), expand_home);
                self.run_file(&path, Some((text, origin)))
            }
            Ok(Flow::Quit(status)) => Outcome::Quit(status),
            Err(command::Error::Stopped(Stopped::Interrupted)) => Outcome::Interrupted,
            // Who stopped reading knows; what that means is told by the destination.
            Err(command::Error::Stopped(Stopped::Closed)) => Outcome::Done,
            Err(error) => {
                let status = error.status();
                match origin.command(text, error) {
                    Some(report) => self.fail(report, status),
                    None => Outcome::Done,
                }
            }
        }
    }

    fn run_shell(&mut self, text: &str, origin: &Origin, shell_text: &str) -> Outcome {
        let status = match shell::run(shell_text, self.manner.shell) {
            Ok(status) => status,
            Err(error) => {
                let message = format!("the shell cannot be started: {error}");
                return self.fail(origin.about_line(text, message), 1);
            }
        };
        // Ctrl-C was meant for the child; if that has ended it, then also for the file in which it stands.
        self.interrupts.forget();
        self.remark(status);
        match shell::was_interrupted(status) {
            true => Outcome::Interrupted,
            false => Outcome::Done,
        }
    }

    fn remark(&mut self, status: std::process::ExitStatus) {
        if let Some(remark) = shell::remark(status) {
            self.note(remark);
        }
    }

    fn open(&self, output: &Output) -> Result<Destination<'static>, (Place, String)> {
        match output {
            Output::Screen => Ok(Destination::screen(None, io::stdout().is_terminal())),
            Output::Pipe(command) => match shell::reader(&command.node, self.manner.shell) {
                Ok(child) => Ok(Destination::pipe(child)),
                Err(error) => Err((command.at, format!("the shell cannot be started: {error}"))),
            },
            Output::File { path, append } => Destination::file(&expand_home(&path.node), *append)
                .map_err(|why| (path.at, format!("{} cannot be written: {why}", path.node))),
        }
    }

    /// Closes what a command wrote to, and says what there is to say about it.
    fn close(
        &mut self,
        text: &str,
        origin: &Origin,
        destination: Destination<'_>,
        ended: Ended,
    ) -> Outcome {
        let (what, paged) = match &destination {
            Destination::Screen { pager, .. } => ("standard output", pager.is_some()),
            Destination::Pipe { .. } => ("the shell command's input", false),
            Destination::File(_) => ("the file", false),
        };
        let on_screen = matches!(destination, Destination::Screen { .. });
        self.wait_for_reader(destination);
        match ended {
            Ended::Whole => Outcome::Done,
            Ended::Closed if paged => Outcome::Interrupted,
            Ended::Closed if on_screen => Outcome::Closed,
            Ended::Closed => Outcome::Done,
            Ended::Failed(error) => {
                let report = origin.about_line(text, format!("{what} cannot be written: {error}"));
                self.fail(report, 1)
            }
        }
    }

    fn wait_for_reader(&mut self, destination: Destination<'_>) {
        let Destination::Pipe { mut child, input } = destination else {
            return;
        };
        // The reader sees the end only when our side is closed.
        drop(input);
        let status = child.wait();
        self.interrupts.forget();
        if let Ok(status) = status {
            self.remark(status);
        }
    }
}
