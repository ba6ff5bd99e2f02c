//! Failures as records: what was tried, why it failed, where in the input, and the remedy.

use crate::command;
use crate::kernel::Name;
use crate::lang::{Span, SyntaxError};
use crate::report::{ErrorPlace, ErrorReport};

/// The kernel's answer in its own words, without its number.
pub fn words(error: impl Into<std::io::Error>) -> String {
    let text = error.into().to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// Where a line comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin<'a> {
    /// The command file; `None` at the prompt and for `-ex`.
    pub file: Option<&'a Name>,
    /// Its number in the file, from 1.
    pub line: Option<usize>,
}

impl Origin<'_> {
    /// The place of the part `at` of the line `text`; of the whole line without `at`.
    pub fn place(&self, text: &str, at: Option<Span>) -> ErrorPlace {
        let characters = |start: usize, end: usize| {
            text.char_indices()
                .filter(|(offset, _)| (start..end).contains(offset))
                .count()
        };
        ErrorPlace {
            file: self.file.cloned(),
            line: self.line,
            column: at.map(|at| characters(0, at.start) + 1),
            width: at.map_or(0, |at| characters(at.start, at.end)),
            text: text.to_owned(),
        }
    }

    /// A report about the line as a whole.
    pub fn about_line(&self, text: &str, message: impl Into<String>) -> ErrorReport {
        let start = text.len() - text.trim_start().len();
        let whole = Span::new(start, start + text.trim().len());
        ErrorReport {
            // At the prompt the line is just above.
            place: self.file.map(|_| self.place(text, Some(whole))),
            ..ErrorReport::of(message)
        }
    }

    /// A line that is not in the language.
    pub fn syntax(&self, text: &str, error: SyntaxError) -> ErrorReport {
        ErrorReport {
            message: error.message,
            place: Some(self.place(text, Some(error.at))),
            expected: error.expected,
            hint: error.hint,
            ..ErrorReport::default()
        }
    }

    /// The report of a failed command; `None` if the command was only stopped.
    pub fn command(&self, text: &str, error: command::Error) -> Option<ErrorReport> {
        match error {
            command::Error::Stopped(_) => None,
            command::Error::Evaluation(error) => Some(ErrorReport {
                message: error.message,
                place: Some(self.place(text, Some(error.at))),
                hint: error.hint,
                ..ErrorReport::default()
            }),
            command::Error::Unmapped {
                at,
                address,
                nearest,
            } => Some(ErrorReport {
                place: Some(self.place(text, Some(at))),
                nearest,
                ..ErrorReport::of(format!("{address} is in no region"))
            }),
            command::Error::Target(error) => Some(ErrorReport {
                hint: error.remedy().map(str::to_owned),
                ..self.about_line(text, error.to_string())
            }),
            command::Error::Unmet { message } => Some(self.about_line(text, message)),
            command::Error::Refused { message, hint } => Some(ErrorReport {
                hint,
                ..self.about_line(text, message)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_as_a_whole_has_a_place_in_a_file_only() {
        let file = Name::from("f");
        let origin = Origin {
            file: Some(&file),
            line: Some(7),
        };
        let place = origin.about_line("  walk heap ", "no").place.unwrap();
        assert_eq!((place.column, place.width), (Some(3), 9));
        assert_eq!(Origin::default().about_line("walk", "no").place, None);
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let text = "echo \u{e4}\u{e4} x";
        let place = Origin::default().place(text, Some(Span::new(10, 11)));
        assert_eq!((place.column, place.width), (Some(9), 1));
        let end = Origin::default().place(text, Some(Span::new(11, 11)));
        assert_eq!((end.column, end.width), (Some(10), 0));
    }
}
