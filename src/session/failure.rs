//! Failures as records: what was tried, why it failed, where in the input, and the remedy.

use crate::command;
use crate::kernel::Name;
use crate::lang::{Span, SyntaxError};
use crate::report::{ErrorCode, ErrorPlace, ErrorReport};
pub(super) use crate::source::words;

/// A line of input, and where it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Input<'a> {
    /// The line.
    pub text: &'a str,
    /// The command file, and the number of the line in it, from 1; `None` at the prompt and for `-ex`.
    pub file: Option<(&'a Name, usize)>,
}

impl<'a> Input<'a> {
    /// A line of the prompt, or of `-ex`.
    pub fn typed(text: &'a str) -> Self {
        Input { text, file: None }
    }

    /// The place of the part `at` of the line; of the whole line without `at`.
    pub fn place(&self, at: Option<Span>) -> ErrorPlace {
        let characters = |start: usize, end: usize| {
            self.text.char_indices().filter(|(offset, _)| (start..end).contains(offset)).count()
        };
        ErrorPlace {
            file: self.file.map(|(name, _)| name.clone()),
            line: self.file.map(|(_, line)| line),
            column: at.map(|at| characters(0, at.start) + 1),
            width: at.map_or(0, |at| characters(at.start, at.end)),
            text: self.text.to_owned(),
        }
    }

    /// A report about the line as a whole.
    pub fn about_line(&self, message: impl Into<String>) -> ErrorReport {
        let text = self.text;
        let start = text.len() - text.trim_start().len();
        let whole = Span::new(start, start + text.trim().len());
        ErrorReport {
            // At the prompt the line is just above.
            place: self.file.map(|_| self.place(Some(whole))),
            ..ErrorReport::of(message)
        }
    }

    /// A line that is not in the language.
    pub fn syntax(&self, error: SyntaxError) -> ErrorReport {
        ErrorReport {
            message: error.message,
            place: Some(self.place(Some(error.at))),
            expected: error.expected,
            hint: error.hint,
            code: ErrorCode::Syntax,
            ..ErrorReport::default()
        }
    }

    /// The report of a failed command; `None` if the command was only stopped.
    pub fn command(&self, error: command::Error) -> Option<ErrorReport> {
        let (code, hint) = (error.code(), error.remedy().map(str::to_owned));
        let report = match error {
            command::Error::Stopped(_) => None,
            command::Error::Evaluation(error) => {
                Some(ErrorReport { place: Some(self.place(Some(error.at))), ..ErrorReport::of(error.message) })
            }
            command::Error::Unmapped { at, address, nearest } => Some(ErrorReport {
                place: Some(self.place(Some(at))),
                nearest,
                ..ErrorReport::of(format!("{address} is in no region"))
            }),
            other => Some(self.about_line(other.message())),
        };
        report.map(|report| ErrorReport { code, hint, ..report })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_as_a_whole_has_a_place_in_a_file_only() {
        let file = Name::from("f");
        let input = Input { text: "  walk heap ", file: Some((&file, 7)) };
        let place = input.about_line("no").place.unwrap();
        assert_eq!((place.column, place.width), (Some(3), 9));
        assert_eq!(Input::typed("walk").about_line("no").place, None);
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let text = "echo \u{e4}\u{e4} x";
        let place = Input::typed(text).place(Some(Span::new(10, 11)));
        assert_eq!((place.column, place.width), (Some(9), 1));
        let end = Input::typed(text).place(Some(Span::new(11, 11)));
        assert_eq!((end.column, end.width), (Some(10), 0));
    }
}
