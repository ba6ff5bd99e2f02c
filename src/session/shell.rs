//! Shell commands (`!`, `shell`, and the reader of a pipe), and `--no-shell`: whether a session may start programs and
//! write files. And the log (`set logging`): a file with the output on the screen, according to the settings.

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
    /// Commands are read from standard input, which the child must not read.
    Script,
    /// Standard input and output are used by the protocol, so the child gets neither.
    Protocol,
}

/// Starts `text` in the shell. With `is_json`, standard output has only records, and the output of the child is
/// redirected to standard error.
///
/// # Errors
/// Fails if the shell cannot be started.
pub fn start(text: &str, descriptors: ShellIo, is_json: bool, permit: ShellPermit) -> io::Result<Child> {
    let mut command = command(text, descriptors, permit)?;
    if is_json {
        command.stdout(standard_error()?);
    }
    command.spawn()
}

/// The end of a child process.
#[derive(Clone, Copy, Debug)]
pub struct ShellEnd {
    /// The exit status.
    pub status: ExitStatus,
    /// Whether Ctrl-C or a cancellation came that the child did not handle itself.
    pub was_interrupted: bool,
}

/// How long a child must continue after Ctrl-C at the terminal to count as handling it, as an editor does.
const TAKEN: Duration = Duration::from_millis(100);

/// How long a child without a terminal may need to end after SIGINT.
const GRACE: Duration = Duration::from_millis(500);

/// Waits until a child has ended. It has received Ctrl-C at the terminal too. Otherwise it gets SIGINT, and later
/// SIGKILL if it does not end. `is_to_end` is whether Ctrl-C came before.
///
/// # Errors
/// Fails if the child cannot be waited for.
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
        // The child is at the end of its input, and may still process it.
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
    // A child that cleans up first ends with this status, as a shell does for its children.
    let has_told = interrupted.is_some() && status.code() == Some(128 + signal_hook::consts::SIGINT);
    Ok(ShellEnd { status, was_interrupted: was_interrupted(status) || has_told || interrupted.is_some_and(is_meant) })
}

/// Starts `text` in the shell with a pipe as its standard input. The output is redirected to `output`, if it is given.
///
/// # Errors
/// Fails if the shell cannot be started.
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
            // Processes that the command starts are ended with it.
            command.process_group(0);
            command.stdin(Stdio::null()).stdout(standard_error()?);
        }
    }
    Ok(command)
}

fn standard_error() -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3)?)
}

/// Returns a remark on the end of a command, if there is one.
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

/// The status of a shell for a command that is not found.
pub const NOT_FOUND: i32 = 127;

/// Returns whether a command ended because it had no reader: by SIGPIPE, or with the shell's status for that.
pub fn lost_its_reader(status: ExitStatus) -> bool {
    let signal = signal_hook::consts::SIGPIPE;
    status.signal() == Some(signal) || status.code() == Some(128 + signal)
}

/// Returns whether Ctrl-C has ended a command.
fn was_interrupted(status: ExitStatus) -> bool {
    status.signal() == Some(signal_hook::consts::SIGINT)
}

/// The effects that lines may have outside of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permits {
    /// Everything.
    All,
    /// No program is started, and no file is written (`--no-shell`).
    NoShell,
    /// As with `--no-shell`, and only commands run that change nothing but the session (`--mcp`).
    Session,
}

/// The message of `--no-shell`.
const NO_SHELL: &str = "--no-shell refuses shell commands, pipes, logs and other files";

/// The message of `--mcp`.
const MCP: &str = "--mcp refuses shell commands, pipes, logs and other files";

/// A permit, which exists only without `--no-shell` and `--mcp`. Each function that starts a program or opens a file
/// for writing needs one, so that no line can bypass the option. The command line needs none: main refuses `--report`
/// itself, and no line chooses the history or the files of `demo`.
#[derive(Clone, Copy, Debug)]
pub struct ShellPermit(());

impl ShellPermit {
    /// Returns the permit, if the options allow it.
    ///
    /// # Errors
    /// Fails with the message of the option that refuses it.
    pub(super) fn of(permits: Permits) -> Result<ShellPermit, &'static str> {
        match permits {
            Permits::All => Ok(ShellPermit(())),
            Permits::NoShell => Err(NO_SHELL),
            Permits::Session => Err(MCP),
        }
    }

    /// The permit for tests.
    #[cfg(test)]
    pub(super) const IN_A_TEST: ShellPermit = ShellPermit(());
}

/// An open log.
#[derive(Clone, Debug)]
pub(super) struct OpenLog {
    pub(super) path: String,
    file: Rc<File>,
}

/// Writes the records of one command to the log, without colours.
pub(super) struct LogWriter {
    renderer: Box<dyn Renderer>,
    file: Rc<File>,
    /// Whether the records are not printed on the screen.
    pub(super) is_redirected: bool,
    text: Vec<u8>,
    /// Why the log can no longer be written.
    pub(super) failure: Option<io::Error>,
}

impl OpenLog {
    /// Opens the file, to append or to overwrite.
    ///
    /// # Errors
    /// Fails with the reason in words, if it cannot be written.
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

    /// Makes the log's writer for the records of one command.
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
