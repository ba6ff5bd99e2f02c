//! Shell commands (`!`, `shell`, and the reader of a pipe), and `--no-shell`: whether a session may start programs and
//! write files. And the log (`set logging`): what is printed on the screen, written to a file too, as the settings say.

use super::interrupt::{Interrupts, Woken};
use super::outcome::words;
use crate::command::expand_home;
use crate::render::{Record, Renderer};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The standard input and output of a shell command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShellIo {
    /// The descriptors of pmdb: the terminal.
    Terminal,
    /// Commands come from standard input: the child must not read them.
    Script,
    /// Standard input and output carry the protocol: the child gets neither.
    Protocol,
}

/// Starts `text` in the shell. With `is_json`, standard output has records alone, and the output of the child goes to
/// standard error.
///
/// # Errors
/// The shell cannot be started.
pub fn start(text: &str, descriptors: ShellIo, is_json: bool, permit: ShellPermit) -> io::Result<Child> {
    let mut command = command(text, descriptors, permit)?;
    if is_json {
        command.stdout(standard_error()?);
    }
    command.spawn()
}

/// How a child has ended.
#[derive(Clone, Copy, Debug)]
pub struct ShellEnd {
    /// Its status.
    pub status: ExitStatus,
    /// Whether Ctrl-C or a cancellation has come that the child did not take for itself.
    pub was_interrupted: bool,
}

/// A child that goes on for so long after Ctrl-C at the terminal has taken it for itself, as an editor does.
const TAKEN: Duration = Duration::from_millis(100);

/// How long a child without a terminal may take to end after SIGINT.
const GRACE: Duration = Duration::from_millis(500);

/// Waits until a child has ended. Ctrl-C at the terminal has reached it too. Otherwise it gets SIGINT, and ends with
/// SIGKILL if it does not heed that. `is_to_end` is whether Ctrl-C has come before.
///
/// # Errors
/// It cannot be waited for.
pub fn wait(mut child: Child, descriptors: ShellIo, interrupts: &Interrupts, is_to_end: bool) -> io::Result<ShellEnd> {
    let mut interrupted = is_to_end.then(Instant::now);
    if let Some(process) = Pid::from_raw(child.id().cast_signed())
        && let Ok(ended) = pidfd_open(process, PidfdFlags::empty())
    {
        let end = |signal| match descriptors {
            ShellIo::Terminal => {}
            ShellIo::Script => _ = kill_process(process, signal),
            ShellIo::Protocol => _ = kill_process_group(process, signal),
        };
        // It has come to the end of its input: it may still do something with that.
        let mut is_told = !is_to_end;
        loop {
            let waited = match interrupted {
                Some(_) if descriptors != ShellIo::Terminal => interrupts.wait_readable_for(ended.as_fd(), GRACE),
                _ => interrupts.wait_readable(ended.as_fd()).map(|()| Woken::Ready),
            };
            match waited {
                Ok(Woken::Ready) => break,
                Ok(Woken::TimedOut) => {
                    end(if is_told { Signal::KILL } else { Signal::INT });
                    is_told = true;
                }
                Err(_) => {
                    interrupts.forget();
                    end(if interrupted.is_some() { Signal::KILL } else { Signal::INT });
                    (interrupted, is_told) = (Some(Instant::now()), true);
                }
            }
        }
    }
    let status = child.wait()?;
    let is_meant = |at: Instant| descriptors != ShellIo::Terminal || at.elapsed() < TAKEN;
    // One that cleans up first tells by its status, as a shell does for its own children.
    let has_told = interrupted.is_some() && status.code() == Some(128 + signal_hook::consts::SIGINT);
    Ok(ShellEnd { status, was_interrupted: was_interrupted(status) || has_told || interrupted.is_some_and(is_meant) })
}

/// Starts `text` in the shell with a pipe as its standard input. It writes to `output`, if there is one.
///
/// # Errors
/// The shell cannot be started.
pub fn reader(text: &str, descriptors: ShellIo, output: Option<OwnedFd>, permit: ShellPermit) -> io::Result<Child> {
    let mut command = command(text, descriptors, permit)?;
    if let Some(output) = output {
        command.stdout(output);
    }
    command.stdin(Stdio::piped()).spawn()
}

fn command(text: &str, descriptors: ShellIo, _: ShellPermit) -> io::Result<Command> {
    let mut command = Command::new("/bin/sh");
    // An empty text starts an interactive shell, as in gdb.
    if text.trim().is_empty() {
        command = Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
    } else {
        command.arg("-c").arg(text);
    }
    match descriptors {
        ShellIo::Terminal => {}
        ShellIo::Script => _ = command.stdin(Stdio::null()),
        ShellIo::Protocol => {
            // What the command starts ends with it.
            command.process_group(0);
            command.stdin(Stdio::null()).stdout(standard_error()?);
        }
    }
    Ok(command)
}

fn standard_error() -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3)?)
}

/// How a command ended, if there is something to say about it.
pub fn remark(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(NOT_FOUND), _) => Some("the shell has not found the command".to_owned()),
        (Some(code), _) => Some(format!("the shell command ended with status {code}")),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal);
            Some(match name {
                Some(name) => format!("the shell command was ended by {name}"),
                None => format!("the shell command was ended by signal {signal}"),
            })
        }
        (None, None) => None,
    }
}

/// The status of a shell for a command that it does not find.
pub const NOT_FOUND: i32 = 127;

/// Whether a command ended because its reader was gone: by SIGPIPE, or with the status that a shell makes of it.
pub fn lost_its_reader(status: ExitStatus) -> bool {
    let signal = signal_hook::consts::SIGPIPE;
    status.signal() == Some(signal) || status.code() == Some(128 + signal)
}

/// Whether Ctrl-C has ended a command.
fn was_interrupted(status: ExitStatus) -> bool {
    status.signal() == Some(signal_hook::consts::SIGINT)
}

/// What lines may do outside of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permits {
    /// Everything.
    All,
    /// No program is started, and no file is written (`--no-shell`).
    NoShell,
    /// The same, and only commands run that change nothing but the session (`--mcp`).
    Session,
}

/// The message of `--no-shell`.
const NO_SHELL: &str = "--no-shell refuses shell commands, pipes, logs and other files";

/// The same of `--mcp`.
const MCP: &str = "--mcp refuses shell commands, pipes, logs and other files";

/// Proof that neither `--no-shell` nor `--mcp` was given. Whatever a session starts or opens for writing asks for one,
/// so that no line of input has a way around the option that compiles. What the command line writes has none: main
/// refuses `--report` itself, and the history and the files of `demo` are not chosen by any line.
#[derive(Clone, Copy, Debug)]
pub struct ShellPermit(());

impl ShellPermit {
    /// The proof, if it is permitted.
    ///
    /// # Errors
    /// The message of the option that refuses it.
    pub(super) fn of(permits: Permits) -> Result<ShellPermit, &'static str> {
        match permits {
            Permits::All => Ok(ShellPermit(())),
            Permits::NoShell => Err(NO_SHELL),
            Permits::Session => Err(MCP),
        }
    }

    /// For tests of what asks for it.
    #[cfg(test)]
    pub(super) const IN_A_TEST: ShellPermit = ShellPermit(());
}

/// An open log.
#[derive(Clone, Debug)]
pub(super) struct OpenLog {
    pub(super) path: String,
    file: Rc<File>,
}

/// The records of one command on their way to the log, without colours.
pub(super) struct LogWriter {
    renderer: Box<dyn Renderer>,
    file: Rc<File>,
    /// Whether they are left out on the screen.
    pub(super) is_redirected: bool,
    text: Vec<u8>,
    /// Why it can no longer be written.
    pub(super) failure: Option<io::Error>,
}

impl OpenLog {
    /// Opens the file: at its end, or begun anew.
    ///
    /// # Errors
    /// Why it cannot be written, in words.
    pub(super) fn open(path: &str, overwrite: bool, _: ShellPermit) -> Result<OpenLog, String> {
        let file = OpenOptions::new()
            .create(true)
            .append(!overwrite)
            .write(true)
            .truncate(overwrite)
            .open(expand_home(path))
            .map_err(words)?;
        Ok(OpenLog { path: path.to_owned(), file: Rc::new(file) })
    }

    /// The log's sink for the records of one command.
    pub(super) fn writer(&self, renderer: Box<dyn Renderer>, redirect: bool) -> LogWriter {
        LogWriter { renderer, file: Rc::clone(&self.file), is_redirected: redirect, text: Vec::new(), failure: None }
    }
}

impl LogWriter {
    /// Writes a record.
    pub(super) fn record(&mut self, record: &dyn Record) {
        let rendered = self.renderer.record(record, &mut self.text);
        self.write(rendered);
    }

    /// Writes the rest at the end of the command.
    pub(super) fn finish(&mut self) {
        let rendered = self.renderer.finish(&mut self.text);
        self.write(rendered);
    }

    fn write(&mut self, rendered: io::Result<()>) {
        if self.failure.is_none() {
            let written = rendered.and_then(|()| (&*self.file).write_all(&self.text));
            self.failure = written.err();
        }
        self.text.clear();
    }
}
