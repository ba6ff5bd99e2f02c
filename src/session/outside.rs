//! `--no-shell`: whether a session may start programs and write files.

/// The message of `--no-shell`.
const NO_SHELL: &str = "--no-shell refuses shell commands, pipes, logs and other files";

/// Proof that `--no-shell` was not given. Whatever a session starts or opens for writing asks for one, so that no line
/// of input has a way around the option that compiles. What the command line writes has none: main refuses `--report`
/// itself, and the history and the files of `demo` are not chosen by any line.
#[derive(Clone, Copy, Debug)]
pub struct Outside(());

impl Outside {
    /// The proof, unless `--no-shell` was given.
    ///
    /// # Errors
    /// The message of `--no-shell`.
    pub(super) fn unless(no_shell: bool) -> Result<Outside, &'static str> {
        if no_shell { Err(NO_SHELL) } else { Ok(Outside(())) }
    }

    /// For tests of what asks for it.
    #[cfg(test)]
    pub(super) const IN_A_TEST: Outside = Outside(());
}
