//! Commands of the shell: `!`, `shell`, and the reader at the other end of `|`.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The descriptors that a shell command gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Surroundings {
    /// Those of pmdb: the terminal.
    Terminal,
    /// Commands come from standard input: the child must not read them.
    Script,
    /// Standard output carries the protocol: what the child prints goes to standard error.
    Protocol,
}

/// Runs `text` in the shell and waits for it.
///
/// # Errors
/// The shell cannot be started.
pub fn run(text: &str, surroundings: Surroundings) -> io::Result<ExitStatus> {
    command(text, surroundings)?.status()
}

/// Starts `text` in the shell, its standard input ours to write.
///
/// # Errors
/// The shell cannot be started.
pub fn reader(text: &str, surroundings: Surroundings) -> io::Result<Child> {
    command(text, surroundings)?.stdin(Stdio::piped()).spawn()
}

fn command(text: &str, surroundings: Surroundings) -> io::Result<Command> {
    let mut command = Command::new("/bin/sh");
    // An empty text is a shell to work in, as in gdb.
    if text.trim().is_empty() {
        command = Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
    } else {
        command.arg("-c").arg(text);
    }
    match surroundings {
        Surroundings::Terminal => {}
        Surroundings::Script => _ = command.stdin(Stdio::null()),
        Surroundings::Protocol => {
            let errors = rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3)?;
            command.stdin(Stdio::null()).stdout(errors);
        }
    }
    Ok(command)
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

/// Whether nobody read what a command wrote (SIGPIPE, or the status that a shell makes of it): no fault of its own.
pub fn lost_its_reader(status: ExitStatus) -> bool {
    let signal = signal_hook::consts::SIGPIPE;
    status.signal() == Some(signal) || status.code() == Some(128 + signal)
}

/// Whether Ctrl-C has ended a command.
pub fn was_interrupted(status: ExitStatus) -> bool {
    status.signal() == Some(signal_hook::consts::SIGINT)
}
