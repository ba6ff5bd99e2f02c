//! Runs one command: opens its destination, runs it, and acts on its result.

use super::base::Session;
use super::interrupt::Interrupts;
use super::outcome::{self, Input, LineOutcome, Verdict, words};
use super::pager::{self, FirstRows, Pager};
use super::parameters::{self, Caller};
use super::printer::{Destination, OutputEnd, SharedDestination};
use super::script;
use super::shell::{self, Permits, ShellIo};
use super::view::refuse_several;
use crate::budget::Budget;
use crate::command::{self, Assert, Flow, HelpOn, LANGUAGE, Resume, Set, SourceScript, expand_home};
use crate::eval::{self, Integer, Value};
use crate::kernel::Name;
use crate::lang::{Argument, Output, ParsedCommand, Reach, Span, Spanned};
use crate::render::Sink;
use crate::report::{AssertionReport, EchoedText, ErrorCode, ErrorPlace, ErrorReport, Stopped};
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::rc::Rc;

/// A command to run, with its context.
pub(super) struct Job<'a> {
    /// The line, for errors.
    pub(super) input: Input<'a>,
    pub(super) command: &'a Spanned<Rc<dyn ParsedCommand>>,
    pub(super) output: &'a Output,
    /// The place at which it continues, if it ran before.
    pub(super) resume: Option<Resume>,
    /// Whether greetings are left out.
    pub(super) is_quiet: bool,
}

impl<'a> Job<'a> {
    /// Makes a job that prints to the screen.
    pub(super) fn new(input: Input<'a>, command: &'a Spanned<Rc<dyn ParsedCommand>>) -> Self {
        Job { input, command, output: &Output::Screen, resume: None, is_quiet: false }
    }

    fn command<C: ParsedCommand>(&self) -> Option<&C> {
        self.command.node.downcast_ref()
    }
}

impl Session {
    /// Runs a command. Returns the place where it stopped, if an empty line can continue there.
    pub(super) fn run_job(&mut self, job: &Job) -> (LineOutcome, Option<Resume>) {
        self.report_target_change();
        if let Some(why) = self.refuse_reach(job) {
            return (self.evaluation_failed(job.input, why), None);
        }
        if command::nature(&*job.command.node).writes_file
            && let Err(refused) = self.options.shell_permit()
        {
            return (self.evaluation_failed(job.input, eval::Error::refused(job.command.at, refused)), None);
        }
        let interrupts = Rc::clone(&self.interrupts);
        // A command that draws no picture must fail before the file is overwritten.
        let picture = self.picture(job.input.text, job.command, job.output);
        let opened = picture.and_then(|picture| {
            let destination = self.open_destination(job.output, &interrupts)?;
            Ok((picture, destination))
        });
        let (picture, destination) = match opened {
            Ok(opened) => opened,
            Err(why) => return (self.evaluation_failed(job.input, why), None),
        };
        let is_screen = *job.output == Output::Screen && self.shared_destination.is_none();
        let renderer = picture.unwrap_or_else(|| self.renderer(is_screen));
        let mut printer = self
            .printer(renderer, destination, &interrupts)
            .without_greetings(job.is_quiet)
            .taking_bytes(!is_screen || self.options.shell != ShellIo::Protocol)
            .with_log(self.log_writer().filter(|_| is_screen));
        job.input.text.clone_into(&mut self.state.line);
        let result = command::run(&*job.command.node, &mut self.state, &mut printer, job.resume);
        if let Err(command::Error::Stopped(Stopped::Interrupted)) = result {
            // The engine may notice Ctrl-C before the printer does.
            _ = printer.check();
        }
        let was_interrupted = printer.was_interrupted();
        let log_failure = printer.log_failure();
        let (destination, ended) = printer.finish();
        if let Some(error) = log_failure {
            self.end_failed_log(error);
        }
        let nature = command::nature(&*job.command.node);
        self.has_shown_displays |= nature.concerns_displays;
        let closed = self.close(job, destination, ended, was_interrupted);
        let resume = match &result {
            Ok(Flow::More(resume)) => Some(*resume),
            _ => None,
        };
        let acted = self.act_on(job, result);
        // Ctrl-C is the normal end of a watch. It interrupts any other command, and the file of the command.
        let is_broken_off = was_interrupted && !nature.ends_by_interrupt;
        let outcome = match (closed, acted) {
            (LineOutcome::Done, LineOutcome::Done) if is_broken_off => LineOutcome::Interrupted,
            (LineOutcome::Done, acted) => acted,
            (closed, LineOutcome::Done | LineOutcome::Interrupted) => closed,
            (_, acted) => acted,
        };
        (outcome, resume)
    }

    /// Returns why a command may not run for a client with read-only access.
    fn refuse_reach(&self, job: &Job) -> Option<eval::Error> {
        let is_permitted = match self.options.permits {
            Permits::All | Permits::NoShell => true,
            Permits::Session => job.command.node.reach() < Reach::Outside,
        };
        let message = "--mcp runs only commands that change nothing outside of pmdb";
        (!is_permitted).then(|| eval::Error::refused(job.command.at, message))
    }

    /// Performs the request of a finished command, or reports why it failed.
    fn act_on(&mut self, job: &Job, result: Result<Flow, command::Error>) -> LineOutcome {
        match result {
            Ok(Flow::Done) if job.command::<Set>().is_some() => match self.apply_logging() {
                Ok(()) => LineOutcome::Done,
                Err(message) => self.fail(job.input.about_line(message)),
            },
            Ok(Flow::Done | Flow::More(_)) => LineOutcome::Done,
            Ok(Flow::Asserted(report)) => self.report_assertion(job, *report),
            Ok(Flow::Source(path, arguments)) => self.run_source(job, path, arguments),
            Ok(Flow::Ask(question)) => self.run_if_confirmed(job, &question),
            Ok(Flow::Quit(status)) => LineOutcome::Quit(status),
            Err(command::Error::Stopped(Stopped::Interrupted)) => LineOutcome::Interrupted,
            // `close` reports the closed output.
            Err(command::Error::Stopped(Stopped::Closed)) => LineOutcome::Done,
            Err(error) => self.report_failure(job, error),
        }
    }

    /// Runs a command file, or prints its help.
    fn run_source(&mut self, job: &Job, path: PathBuf, arguments: Vec<Value>) -> LineOutcome {
        let path = path.to_str().map_or(path.clone(), expand_home);
        let path = resolve_beside(job.input.file.map(|(name, _)| name), path);
        if job.command().is_some_and(SourceScript::wants_help) || job.command::<HelpOn>().is_some() {
            let width = if io::stdout().is_terminal() { self.width() } else { None };
            return match script::help_of_file(&path, width) {
                Ok(text) => self.print(&EchoedText { text }),
                Err(message) => self.fail(job.input.about_line(message).with_code(ErrorCode::Io)),
            };
        }
        let at = match job.command() {
            Some(SourceScript { path, .. }) => path.at,
            _ => job.command.at,
        };
        let written = job.command().map_or(&[][..], SourceScript::arguments);
        if let Err((fault_at, message)) = self.check_arguments_of_file(job, &path, written) {
            let place = Some(job.input.place(Some(fault_at.unwrap_or(at))));
            return self.fail(ErrorReport { place, code: ErrorCode::Evaluation, ..ErrorReport::of(message) });
        }
        self.state.arguments.push(arguments);
        let outcome = self.run_file(&path, Some(job.input.place(Some(at))));
        self.state.arguments.pop();
        outcome
    }

    /// Checks that a command file takes the arguments that it gets, and gets those that it needs. Fails with what is
    /// wrong, and its place.
    fn check_arguments_of_file(
        &self,
        job: &Job,
        path: &Path,
        written: &[Spanned<Argument>],
    ) -> Result<(), (Option<Span>, String)> {
        // `run_file` reports a file that is not there.
        let Ok(parameters) = script::parameters_of(path, &self.interrupts) else {
            return Ok(());
        };
        if let Some(missing) = parameters.fault_of_missing(written.len(), Caller::Line) {
            return Err((None, missing));
        }
        let surplus = parameters::surplus_in_line(&parameters, written, job.input.text);
        surplus.map_or(Ok(()), |(at, message)| Err((Some(at), message)))
    }

    fn report_failure(&mut self, job: &Job, error: command::Error) -> LineOutcome {
        let Some(report) = job.input.command(error) else {
            return LineOutcome::Done;
        };
        // Ctrl-C came while an argument was evaluated.
        if report.code == ErrorCode::Interrupted {
            return LineOutcome::Interrupted;
        }
        if let Some(Assert { condition, .. }) = job.command() {
            let place = job.input.place(Some(condition.at));
            let verdict = Verdict::Unknown(report.message.clone());
            self.add_assertion(place, job.input.typed(condition.at), verdict);
            return self.print_error(report);
        }
        self.fail(report)
    }

    /// Runs the command again if the user confirms it. Fails if there is no user to confirm.
    fn run_if_confirmed(&mut self, job: &Job, question: &str) -> LineOutcome {
        let is_seen = *job.output == Output::Screen && self.shared_destination.is_none() && !self.is_json();
        let is_answered = self.options.is_interactive && self.is_at_the_prompt();
        if !is_seen || !is_answered || !io::stdin().is_terminal() {
            let error = command::Error::refused(
                "this affects the process, and there is no terminal for a confirmation",
                "add `--yes` to skip the confirmation",
            );
            return self.act_on(job, Err(error));
        }
        match pager::ask_yes_or_no(question, &self.interrupts) {
            Ok(false) => LineOutcome::Done,
            Ok(true) => {
                let job = Job { resume: Some(Resume::Agreed), ..*job };
                self.run_job(&job).0
            }
            Err(_) => LineOutcome::Interrupted,
        }
    }

    /// Reports an assertion that is false as an error at its place.
    fn report_assertion(&mut self, job: &Job, mut report: AssertionReport) -> LineOutcome {
        let at = match job.command() {
            Some(Assert { condition, .. }) => condition.at,
            _ => job.command.at,
        };
        let place = job.input.place(Some(at));
        report.place = Some(place.clone());
        report.expression = job.input.typed(at).to_owned();
        let failure = (!report.holds).then(|| outcome::failure(&report));
        let verdict = failure.clone().map_or(Verdict::Held, Verdict::Failed);
        self.add_assertion(place.clone(), &report.expression, verdict);
        if self.is_json() && self.print(&report) == LineOutcome::Closed {
            return LineOutcome::Closed;
        }
        let Some(message) = failure else {
            return LineOutcome::Done;
        };
        let report = ErrorReport { place: Some(place), code: ErrorCode::Assertion, ..ErrorReport::of(message) };
        self.print_error(report)
    }

    /// Counts the result of an assertion, for the end of the run and for `$_failed`.
    fn add_assertion(&mut self, place: ErrorPlace, expression: &str, verdict: Verdict) {
        self.assertions.add(Some(place), &self.callers, expression, verdict);
        self.count_failed_assertions();
    }

    /// Runs shell text on the terminal.
    pub(super) fn run_shell(&mut self, input: Input, shell_text: &str) -> LineOutcome {
        let permit = match self.options.shell_permit() {
            Ok(permit) => permit,
            Err(refused) => return self.fail(input.about_line(refused.to_owned())),
        };
        let descriptors = self.options.shell;
        let started = shell::start(shell_text, descriptors, self.is_json(), permit);
        let ended = match started.and_then(|child| shell::wait(child, descriptors, &self.interrupts, false)) {
            Ok(ended) => ended,
            Err(error) => {
                let message = format!("the shell cannot be started: {}", words(error));
                return self.fail(input.about_line(message));
            }
        };
        let outcome = self.shell_ended(input, ended.status);
        // Ctrl-C also ends the command file.
        if ended.was_interrupted { LineOutcome::Interrupted } else { outcome }
    }

    /// Sets `$_shell_exitcode` or `$_shell_exitsignal`, as gdb does. A failed command is a remark at the prompt and an
    /// error elsewhere.
    fn shell_ended(&mut self, input: Input, status: ExitStatus) -> LineOutcome {
        let variables = &mut self.state.variables;
        for (name, number) in [("_shell_exitcode", status.code()), ("_shell_exitsignal", status.signal())] {
            match number.and_then(|number| u64::try_from(number).ok()) {
                Some(number) => {
                    let value = Value::Integer(Integer::from(number));
                    variables.insert(name.to_owned(), value);
                }
                None => _ = variables.remove(name),
            }
        }
        let Some(remark) = shell::remark(status) else {
            return LineOutcome::Done;
        };
        // The shell has already reported the missing command.
        let is_missing = status.code() == Some(shell::NOT_FOUND);
        let operator = Some(input.text).filter(|_| is_missing).and_then(as_operator);
        if self.is_at_the_prompt() || !self.state.settings.shell_errors || shell::lost_its_reader(status) {
            self.note(match operator {
                Some(hint) => format!("{remark}; {hint}"),
                None => remark,
            });
            return LineOutcome::Done;
        }
        let remedy = (!is_missing).then(|| "`set shell errors off` makes it a remark".to_owned());
        let hint = operator.or(remedy);
        let report = input.about_line(remark);
        self.fail(ErrorReport { hint, code: ErrorCode::Shell, ..report })
    }

    fn open_destination<'a>(&self, output: &Output, interrupts: &'a Interrupts) -> eval::Result<Destination<'a>> {
        match output {
            Output::Screen => {
                if let Some(shared) = &self.shared_destination {
                    return Ok(Destination::Shared(shared.clone()));
                }
                let size = self.pager_size();
                let user_commands = || self.state.commands.keys().cloned().collect();
                let pager = size.and_then(|(height, width)| Pager::new(interrupts, height, width, user_commands()));
                let held_rows = size.and_then(|(height, width)| {
                    let (program, permit) = self.pager_program()?;
                    Some(FirstRows::new(program, permit, height, width))
                });
                let is_live = io::stdout().is_terminal();
                Ok(self.screen(pager, held_rows, is_live))
            }
            Output::Pipe(command) => self.open_pipe(command),
            Output::File { path, append } => self.open_file(path, *append),
        }
    }

    fn open_file(&self, path: &Spanned<String>, append: bool) -> eval::Result<Destination<'static>> {
        let permit = self.options.shell_permit().map_err(|refused| eval::Error::refused(path.at, refused))?;
        let budget = Budget::until(self.interrupts.flag());
        Destination::file(&expand_home(&path.node), append, budget, permit).map_err(|why| {
            let message = format!("{} cannot be written: {why}", path.node);
            eval::Error { code: ErrorCode::Io, ..eval::Error::new(path.at, message) }
        })
    }

    /// Starts the shell command at the other end of a pipe.
    fn open_pipe(&self, command: &Spanned<String>) -> eval::Result<Destination<'static>> {
        let permit = self.options.shell_permit().map_err(|refused| eval::Error::refused(command.at, refused))?;
        // In a command with a separate destination, pipes write to that.
        let output = match &self.shared_destination {
            Some(shared) => shared.descriptor().map(Some),
            None => Ok(None),
        };
        let started = output.and_then(|output| shell::reader(&command.node, self.options.shell, output, permit));
        let budget = Budget::until(self.interrupts.flag());
        started.and_then(|child| Destination::pipe(child, false, budget)).map_err(|error| {
            let message = format!("the shell cannot be started: {}", words(error));
            eval::Error { code: ErrorCode::Io, ..eval::Error::new(command.at, message) }
        })
    }

    /// Runs several commands with one destination.
    pub(super) fn run_into(
        &mut self,
        input: Input,
        output: &Output,
        run: impl FnOnce(&mut Session) -> LineOutcome,
    ) -> LineOutcome {
        let opened = match output {
            Output::Screen => return run(self),
            Output::Pipe(command) => self.open_pipe(command),
            Output::File { path, append } => refuse_several(output).and_then(|()| self.open_file(path, *append)),
        };
        let shared = match opened {
            Ok(destination) => SharedDestination::new(destination),
            Err(why) => return self.evaluation_failed(input, why),
        };
        let outer = self.shared_destination.replace(shared);
        let outcome = run(self);
        let shared = std::mem::replace(&mut self.shared_destination, outer);
        let Some(mut destination) = shared.and_then(SharedDestination::finish) else {
            return outcome;
        };
        let flushed = destination.flush();
        let reader = self.wait_for_reader(input, destination, outcome == LineOutcome::Interrupted);
        match (outcome, flushed) {
            (LineOutcome::Done, Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                let message = format!("its output cannot be written: {}", words(error));
                self.fail(input.about_line(message).with_code(ErrorCode::Io))
            }
            (LineOutcome::Done, _) => reader,
            (outcome, _) => outcome,
        }
    }

    /// Closes the destination of a command, and reports its errors.
    fn close(
        &mut self,
        job: &Job,
        mut destination: Destination<'_>,
        ended: OutputEnd,
        was_interrupted: bool,
    ) -> LineOutcome {
        if let Destination::Screen { pager: Some(pager), .. } = &mut destination {
            self.typed_at_pager = pager.take_command().or(self.typed_at_pager.take());
        }
        let (what, closed) = match &destination {
            Destination::Screen { pager: Some(_), .. } => ("standard output", LineOutcome::Interrupted),
            Destination::Screen { pager: None, .. } => ("standard output", LineOutcome::Closed),
            Destination::Pipe { is_pager: true, .. } => ("the pager's input", LineOutcome::Interrupted),
            Destination::Pipe { .. } => ("the shell command's input", LineOutcome::Done),
            Destination::File(_) => match job.output {
                Output::File { path, .. } => (path.node.as_str(), LineOutcome::Done),
                Output::Screen | Output::Pipe(_) => ("the file", LineOutcome::Done),
            },
            Destination::Shared(_) => ("the output of the commands", LineOutcome::Done),
            // The reply is full.
            Destination::Reply(_) => ("the reply", LineOutcome::Interrupted),
        };
        if let Destination::Screen { ends_in_row: Some(ends_in_row), .. } = destination {
            self.ends_in_row = ends_in_row;
        }
        let reader = self.wait_for_reader(job.input, destination, was_interrupted);
        match ended {
            OutputEnd::Whole => reader,
            OutputEnd::Closed if closed == LineOutcome::Done => reader,
            OutputEnd::Closed => closed,
            OutputEnd::Failed(error) => {
                let message = format!("{what} cannot be written: {}", words(error));
                self.fail(job.input.about_line(message).with_code(ErrorCode::Io))
            }
        }
    }

    fn wait_for_reader(&mut self, input: Input, destination: Destination<'_>, is_interrupted: bool) -> LineOutcome {
        let Destination::Pipe { child, input: pipe, is_pager } = destination else {
            return LineOutcome::Done;
        };
        // The reader sees the end of its input only after pmdb's side is closed. After an interrupt the rest is
        // discarded; otherwise it is already written.
        drop(pipe.into_parts());
        // A pager uses the terminal.
        let descriptors = if is_pager { ShellIo::Terminal } else { self.options.shell };
        match shell::wait(child, descriptors, &self.interrupts, is_interrupted) {
            Ok(ended) if is_pager => {
                if !ended.status.success() && !ended.was_interrupted {
                    self.note("the pager failed, and its output is lost: `set pager ask`, then run the command again");
                }
                LineOutcome::Done
            }
            // The command itself was interrupted.
            Ok(_) if is_interrupted => LineOutcome::Done,
            Ok(ended) => {
                let outcome = self.shell_ended(input, ended.status);
                if ended.was_interrupted { LineOutcome::Interrupted } else { outcome }
            }
            Err(_) => LineOutcome::Done,
        }
    }
}

/// Resolves a path in a line of `file`: relative to the directory of the file, if it is in one.
pub(super) fn resolve_beside(file: Option<&Name>, path: PathBuf) -> PathBuf {
    let file = file.map(|name| Path::new(OsStr::from_bytes(name.as_bytes())));
    let is_pipe = |file: &Path| ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|pipe| file.starts_with(pipe));
    match file.filter(|file| !is_pipe(file)).and_then(Path::parent) {
        Some(directory) if !script::is_built_in(&path) => directory.join(path),
        _ => path,
    }
}
/// Returns the hint for `print 5 | 8`, where `|` was meant as an operator.
fn as_operator(line: &str) -> Option<String> {
    let (command, value) = line.trim().split_once(' ')?;
    let (_, right) = value.rsplit_once('|')?;
    let meant = format!("{command} ({value})");
    let is_operand = right.trim_start().starts_with(|first: char| first.is_ascii_digit());
    (is_operand && LANGUAGE.parse_line(&meant).is_ok())
        .then(|| format!("`|` begins a shell command; as an operator it needs parentheses: `{meant}`"))
}
