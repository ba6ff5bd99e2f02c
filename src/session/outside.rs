//! `--no-shell`: whether a session may start programs and write files.

/// The message of `--no-shell`.
const NO_SHELL: &str = "--no-shell refuses shell commands, pipes, logs and other files";

/// Proof that `--no-shell` was not given. Whatever starts a program or opens a file for writing asks for one, so that
/// no way around the option compiles.
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
