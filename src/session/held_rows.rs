//! Holds output back while it fits the screen. If it does not fit, the user's pager shows all of it.

use super::outside::Outside;
use super::pager::rows;
use super::shell::{self, ShellIo};
use std::io;
use std::process::Child;

/// The options of less, unless LESS is set: show colours, and leave the text on the screen at the end.
const LESS: &str = "RX";

/// The first rows of an output, and the pager that shows the output if it does not fit the screen.
#[derive(Debug)]
pub struct HeldRows {
    program: String,
    outside: Outside,
    height: usize,
    width: usize,
    rows: usize,
    text: Vec<u8>,
}

impl HeldRows {
    /// Nothing is held yet. `program` is a line for the shell; `height` and `width` are those of the screen.
    pub fn new(program: String, outside: Outside, height: usize, width: usize) -> Self {
        HeldRows { program, outside, height, width: width.max(1), rows: 0, text: Vec::new() }
    }

    /// Holds more. Returns whether it still fits the screen, with a row for the prompt.
    pub fn hold(&mut self, text: &[u8]) -> bool {
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        self.rows += lines.map(|line| rows(line, self.width)).sum::<usize>();
        self.text.extend_from_slice(text);
        self.rows < self.height
    }

    /// The held text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Starts the program; it has read nothing yet.
    ///
    /// # Errors
    /// The shell cannot be started.
    pub fn start(&self) -> io::Result<Child> {
        let text = format!(": ${{LESS={LESS}}}; export LESS; {}", self.program);
        shell::reader(&text, ShellIo::Terminal, None, self.outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_held_while_they_leave_one_for_the_prompt() {
        let mut held = HeldRows::new("less".to_owned(), Outside::IN_A_TEST, 4, 10);
        assert!(held.hold(b"one\ntwo\n"));
        assert!(held.hold(b"three\n"));
        assert!(!held.hold(b"four\n"));
        assert_eq!(held.text(), b"one\ntwo\nthree\nfour\n");
        // A line that wraps takes two rows.
        let mut held = HeldRows::new("less".to_owned(), Outside::IN_A_TEST, 2, 10);
        assert!(!held.hold(b"0123456789a\n"));
    }
}
