//! Shell commands (`!`, `shell`, and the reader of a pipe), and `--no-shell`: whether a session may start programs and
//! write files. And the log (`set logging`): what is printed on the screen, written to a file too, as the settings say.

use super::outcome::words;
use crate::command::expand_home;
use crate::render::{Record, Renderer};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;

/// The standard input and output of a shell command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShellIo {
    /// Those of pmdb: the terminal.
    Terminal,
    /// Commands come from standard input: the child must not read them.
    Script,
    /// Standard input and output carry the protocol: the child gets neither.
    Protocol,
}

/// Runs `text` in the shell and waits for it. With `is_json`, standard output has records alone, and the output of the
/// child goes to standard error.
///
/// # Errors
/// The shell cannot be started.
pub fn run(text: &str, descriptors: ShellIo, is_json: bool, permit: ShellPermit) -> io::Result<ExitStatus> {
    let mut command = command(text, descriptors, permit)?;
    if is_json {
        command.stdout(standard_error()?);
    }
    command.status()
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
pub fn was_interrupted(status: ExitStatus) -> bool {
    status.signal() == Some(signal_hook::consts::SIGINT)
}

/// The message of `--no-shell`.
const NO_SHELL: &str = "--no-shell refuses shell commands, pipes, logs and other files";

/// Proof that `--no-shell` was not given. Whatever a session starts or opens for writing asks for one, so that no line
/// of input has a way around the option that compiles. What the command line writes has none: main refuses `--report`
/// itself, and the history and the files of `demo` are not chosen by any line.
#[derive(Clone, Copy, Debug)]
pub struct ShellPermit(());

impl ShellPermit {
    /// The proof, unless `--no-shell` was given.
    ///
    /// # Errors
    /// The message of `--no-shell`.
    pub(super) fn unless(no_shell: bool) -> Result<ShellPermit, &'static str> {
        if no_shell { Err(NO_SHELL) } else { Ok(ShellPermit(())) }
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
