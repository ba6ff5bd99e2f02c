//! Pastes that are no text, and pastes that end pmdb: the shell that it was started from runs none of them.

use super::{PATIENCE, PROMPT, program};
use crate::terminal::Session;
use std::process::Command;
use tempfile::TempDir;

const SHELL: &str = "shell> ";

/// What the shell must not run, longer than what a terminal holds at once.
fn rest() -> Vec<u8> {
    b"touch ran; !touch ran\r".repeat(3000)
}

/// pmdb, started by a shell at a terminal.
struct Started {
    session: Session,
    home: TempDir,
}

impl Started {
    fn new(terminal: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.arg("-i").current_dir(home.path()).env_clear().env("PS1", SHELL);
        command.env("PMDB", program(home.path(), &[]).get_program());
        command.env("HOME", home.path()).env("PATH", "/usr/bin:/bin").env("TERM", terminal).env("NO_COLOR", "1");
        let session = Session::start(command, PATIENCE);
        let mut started = Started { session, home };
        started.sees(SHELL);
        started.pastes(b"$PMDB -nx\r");
        started.sees(PROMPT);
        started
    }

    fn sees(&mut self, text: &str) -> String {
        self.session.expect(text).unwrap_or_else(|missing| panic!("{missing}"))
    }

    /// All at once, as a terminal does.
    fn pastes(&mut self, bytes: &[u8]) {
        self.session.paste(bytes);
    }

    /// The shell is back, and has run nothing of what was pasted.
    fn ends_at_the_shell(mut self) {
        self.sees(SHELL);
        self.pastes(b"echo $((6 * 7)); ls\r");
        self.sees("42\r\n");
        let files = self.sees(SHELL);
        assert!(!files.contains("ran"), "the shell ran the rest of the paste: {files}");
        assert!(!self.home.path().join("ran").exists());
        self.pastes(b"exit\r");
        self.session.expect_end().expect("it ends");
    }
}

#[test]
fn a_paste_that_is_no_text_is_an_error_of_the_prompt_and_nobody_runs_the_rest() {
    let bracketed = [b"\x1b[200~print 1\r\xff\r", &*rest(), b"\x1b[201~"].concat();
    let typed = [b"print 1\rprint \xc3(\r", &*rest()].concat();
    for (terminal, paste) in [("xterm", &bracketed), ("xterm", &typed), ("dumb", &typed)] {
        let mut started = Started::new(terminal);
        started.pastes(paste);
        started.sees("error: the input is not UTF-8 text");
        started.sees(PROMPT);
        started.pastes(b"print 40 + 2\r");
        started.sees(" = 42");
        started.sees(PROMPT);
        started.pastes(b"quit\r");
        started.ends_at_the_shell();
    }
}

#[test]
fn what_was_pasted_after_the_end_of_pmdb_does_not_reach_the_shell() {
    for end in ["quit\r", "\u{4}", "print 1\rquit 3\r"] {
        let mut started = Started::new("xterm");
        started.pastes(&[end.as_bytes(), &rest()].concat());
        started.ends_at_the_shell();
    }
}

#[test]
fn what_was_typed_before_a_signal_ended_pmdb_does_not_reach_the_shell() {
    let mut started = Started::new("xterm");
    started.pastes(&[b"!kill -TERM $PPID\r", &*rest()].concat());
    started.ends_at_the_shell();
}
