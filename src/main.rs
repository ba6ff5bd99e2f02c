//! The program: builds a session from the command line, runs it, and exits with its status.
#![deny(unsafe_code)]

mod args;

use args::{Arguments, InitialTarget, Step};
use clap::error::ErrorKind;
use pmdb::command::TargetName;
use pmdb::demo::{self, Demonstration};
use pmdb::eval::{self, Spans, Value};
use pmdb::kernel::text::escape;
use pmdb::own::new_file;
use pmdb::report::{ErrorCode, ErrorReport, RequestId};
use pmdb::session::{self, Assertions, Input, LineOutcome, LineTally, Permits, Session, SessionOptions, ShellIo};
use pmdb::state::{self, DebugState, ReadableFiles};
use pmdb::{access, own, process, render, repl};
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Names of the target may be in the text of a panic.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        _ = writeln!(io::stderr(), "pmdb: {}", escape(text.as_bytes()));
    }));
    if std::env::args_os().nth(1).is_some_and(|first| first == demo::CHILD_ARGUMENT) {
        demo::become_child();
    }
    own::rights::hold_back();
    own::rights::allow_open_files();
    if let Some(offers) = args::complete::completions(std::env::args_os()) {
        return print(&offers);
    }
    let arguments = match Arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return match Arguments::file_to_explain(std::env::args_os()) {
                Some(file) => explain_file(&file),
                None => {
                    let _ = error.print();
                    ExitCode::SUCCESS
                }
            };
        }
        Err(error) => {
            // The reader may be gone; the exit status is enough.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if arguments.generates() {
        return match arguments.generated() {
            Ok(text) => print(&text),
            Err(error) => {
                eprintln!("pmdb: {error}");
                ExitCode::FAILURE
            }
        };
    }
    if arguments.list_scripts {
        return print(&session::list_of_scripts());
    }
    match run(&arguments) {
        Ok(status) => ExitCode::from(status),
        Err(EarlyEnd::Interrupted) => {
            // End by the signal itself, so that a shell ends its own loop too.
            let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGINT);
            ExitCode::FAILURE
        }
        Err(EarlyEnd::Unstartable(error)) => {
            eprintln!("pmdb: {}", access::words(error));
            ExitCode::FAILURE
        }
    }
}

/// Prints the comments that a command file begins with.
fn explain_file(file: &Path) -> ExitCode {
    match session::help_of_file(file, session::terminal_width()) {
        Ok(help) => print(&help),
        Err(message) => {
            eprintln!("pmdb: {message}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> ExitCode {
    // The reader may be gone.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// The end of a run without a status.
enum EarlyEnd {
    Interrupted,
    Unstartable(io::Error),
}

/// The exit status of a command line of which nothing has run: see `EXIT_STATUSES`.
const WRONG_COMMAND_LINE: u8 = 2;

/// Runs everything that the command line asks for.
fn run(arguments: &Arguments) -> Result<u8, EarlyEnd> {
    let terminal = io::stdin().is_terminal();
    // If the output goes to another program and there is something to run, no prompt follows.
    let wanted = io::stdout().is_terminal() || arguments.steps().is_empty();
    let is_served = arguments.serve || arguments.mcp.is_some();
    let prompt = terminal && wanted && !arguments.batch && !is_served;
    let options = SessionOptions {
        is_interactive: prompt,
        is_quiet: arguments.quiet || arguments.batch || arguments.mcp.is_some(),
        keep_going: arguments.keep_going,
        permits: match (&arguments.mcp, arguments.no_shell) {
            (Some(_), _) => Permits::Session,
            (None, true) => Permits::NoShell,
            (None, false) => Permits::All,
        },
        shell: match (is_served, terminal) {
            (true, _) => ShellIo::Protocol,
            (false, true) => ShellIo::Terminal,
            (false, false) => ShellIo::Script,
        },
    };
    let mut state = DebugState::new(process::machine());
    apply(arguments, &mut state);
    let mut session = Session::new(state, options).map_err(EarlyEnd::Unstartable)?;
    // The demonstration has a greeting of its own.
    if arguments.subject() != InitialTarget::Demonstration {
        session.greet();
    }
    if let Some(directory) = &arguments.mcp {
        let outcome = serve_mcp(arguments, &mut session, directory.as_deref());
        return status(outcome);
    }
    if let Some(fault) = render::zone_fault() {
        session.note(fault);
    }
    if arguments.serve && session.hello() == LineOutcome::Closed {
        return Ok(0);
    }
    if arguments.report.is_some() {
        session.assertions = Assertions::for_report();
    }
    let outcome = run_session(arguments, &mut session, terminal, prompt);
    let outcome = conclude(arguments, &mut session, outcome);
    status(outcome)
}

/// Serves a language model. If the process or capture cannot be opened, nobody is served.
fn serve_mcp(arguments: &Arguments, session: &mut Session, directory: Option<&Path>) -> LineOutcome {
    session.keep_replies();
    let mut demonstration = None;
    let mut tally = LineTally::new(false);
    let _ = prepare(arguments, session, &mut tally, &mut demonstration);
    let readable = match directory {
        Some(directory) => ReadableFiles::below(directory).map_err(|error| {
            let message = format!("cannot open {}: {}", directory.display(), access::words(error));
            ErrorReport::of(message).with_code(ErrorCode::Io)
        }),
        None => Ok(ReadableFiles::None),
    };
    match readable {
        Ok(readable) => session.state_mut().readable_files = readable,
        Err(report) => _ = tally.add(session.fail(report)),
    }
    let said = session.take_reply();
    if tally.outcome() != LineOutcome::Done {
        eprint!("{said}");
        return tally.outcome();
    }
    session.serve_mcp()
}

/// Runs everything up to the last line.
fn run_session(arguments: &Arguments, session: &mut Session, terminal: bool, prompt: bool) -> LineOutcome {
    // Kept until the end: dropping it ends the demonstration process.
    let mut demonstration = None;
    let mut tally = LineTally::new(arguments.keep_going);
    let _ = prepare(arguments, session, &mut tally, &mut demonstration);
    let outcome = tally.outcome();
    if arguments.serve {
        session.end_request(RequestId::Number(0), outcome);
    }
    let names_process = matches!(arguments.subject(), InitialTarget::Process(_));
    let lacks_process = names_process && session.state().target().is_none();
    let stays = match outcome {
        _ if arguments.serve => !matches!(outcome, LineOutcome::Quit(_) | LineOutcome::Closed),
        LineOutcome::Done => true,
        // The failure was reported; at a prompt the user can go on, unless there is no process to look at.
        LineOutcome::Failed(_) => prompt && !lacks_process || arguments.keep_going,
        LineOutcome::Interrupted => prompt,
        LineOutcome::Quit(_) | LineOutcome::Closed => false,
    };
    if stays && arguments.serve {
        return session.serve();
    }
    if stays && prompt {
        return repl::run(session);
    }
    if stays && !terminal && !arguments.batch {
        let _ = tally.add(session.run_input());
    }
    tally.outcome()
}

/// Reports the assertions: a summary with `--keep-going`, a file with `--report`.
fn conclude(arguments: &Arguments, session: &mut Session, outcome: LineOutcome) -> LineOutcome {
    let summary = session.assertions.counts();
    if let Some(summary) = summary.filter(|_| arguments.keep_going) {
        session.print(&summary);
    }
    let Some(path) = &arguments.report else {
        return outcome;
    };
    match new_file::write(path, session.assertions.junit().as_bytes()) {
        Ok(()) => outcome,
        Err(error) => {
            let message = error.to_string();
            let failed = session.fail(ErrorReport::of(message).with_code(ErrorCode::Io));
            match outcome {
                LineOutcome::Done => failed,
                earlier => earlier,
            }
        }
    }
}

/// Applies the settings of the command line.
fn apply(arguments: &Arguments, state: &mut DebugState) {
    if let Some(color) = arguments.color {
        state.settings.color = color;
    }
    state.settings.json |= arguments.json || arguments.serve;
    state.is_serving = arguments.serve;
}

fn status(outcome: LineOutcome) -> Result<u8, EarlyEnd> {
    match outcome {
        LineOutcome::Done | LineOutcome::Closed => Ok(0),
        LineOutcome::Failed(code) => Ok(code.status()),
        LineOutcome::Quit(status) => Ok(status),
        LineOutcome::Interrupted => Err(EarlyEnd::Interrupted),
    }
}

/// Runs what comes before the prompt, in order: the init file, the target, `-x` and `-ex`.
fn prepare(
    arguments: &Arguments,
    session: &mut Session,
    tally: &mut LineTally,
    demonstration: &mut Option<Demonstration>,
) -> ControlFlow<()> {
    if let Some(init) = session::init_file().filter(|_| !arguments.no_init && arguments.mcp.is_none()) {
        let ran = match init {
            Ok(init) => session.run_file(&init, None),
            Err(refused) => {
                session.note(refused);
                LineOutcome::Done
            }
        };
        match ran {
            // At a prompt a failed init file does not stop the command line.
            LineOutcome::Failed(_) | LineOutcome::Interrupted if session.is_interactive() => {}
            outcome => tally.add(outcome)?,
        }
        // The command line overrides the file.
        apply(arguments, session.state_mut());
    }
    match arguments.subject() {
        InitialTarget::Nothing => {}
        InitialTarget::Process(name) => {
            let outcome = session.attach(name);
            if let (LineOutcome::Failed(ErrorCode::Ambiguous), Some(line)) = (&outcome, arguments.line_of_family()) {
                session.note(format!("for all of them: `{line}`"));
            }
            tally.add(match outcome {
                LineOutcome::Failed(ErrorCode::Ambiguous) if !arguments.serve && !arguments.keep_going => {
                    LineOutcome::Quit(WRONG_COMMAND_LINE)
                }
                outcome => outcome,
            })?;
        }
        InitialTarget::Capture(path) => tally.add(match path.into_os_string().into_string() {
            Ok(path) => session.open_capture(path),
            Err(path) => session.fail(ErrorReport::of(format!("{} is not UTF-8", path.display()))),
        })?,
        InitialTarget::Demonstration => tally.add(match demo::start() {
            Ok(started) => demonstrate(demonstration.insert(started), session, arguments),
            Err(error) => session.fail(ErrorReport::of(error.to_string())),
        })?,
    }
    tally.add(session.give_arguments(arguments.arguments()))?;
    for step in arguments.steps() {
        tally.add(match step {
            Step::File(path) => session.run_file(path, None),
            Step::Command(text) => session.run_line(Input::typed_line(text)),
        })?;
    }
    ControlFlow::Continue(())
}

/// Attaches to the demonstration process. Sets a variable for each of its areas, which `show areas` lists.
fn demonstrate(demonstration: &Demonstration, session: &mut Session, arguments: &Arguments) -> LineOutcome {
    let outcome = session.attach(TargetName::Id(demonstration.pid));
    let state = session.state_mut();
    state.set_demonstration(true);
    for area in &demonstration.areas {
        let spans = Spans::one(area.range, eval::Origin::Written);
        state.variables.insert(area.name.clone(), Value::Range(spans));
        let (name, range, sentence) = (area.name.clone(), area.range, area.sentence.clone());
        state.areas.push(state::DemoVariable { name, range, sentence });
    }
    if !arguments.quiet && !arguments.batch {
        session.note("try `tour`, `show areas` (its memory) or `help`");
    }
    outcome
}
