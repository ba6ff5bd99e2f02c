//! The outcome of a line, and of several: whether the next line still runs. Failures as records: what was tried, why it
//! failed, where in the input, and the remedy.

use crate::command;
use crate::kernel::Name;
use crate::lang::{Span, SyntaxError};
use crate::report::{ErrorCode, ErrorPlace, ErrorReport};
use std::ops::ControlFlow;

/// The outcome of a line, or of a file of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No error.
    Done,
    /// An error with this code was reported; a batch ends with its status.
    Failed(ErrorCode),
    /// Ctrl-C, or the pager was left: the rest of the same file does not run.
    Interrupted,
    /// Leave, with this status.
    Quit(u8),
    /// Leave: nobody reads standard output any more.
    Closed,
}

/// The outcome so far of lines that belong together: those of a file, or those of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    keep_going: bool,
    outcome: Outcome,
}

impl Tally {
    /// No line yet. A failure ends the run unless `keep_going` is set.
    pub fn new(keep_going: bool) -> Self {
        Tally { keep_going, outcome: Outcome::Done }
    }

    /// Adds the outcome of a line; `Break` if the next line does not run.
    pub fn add(&mut self, outcome: Outcome) -> ControlFlow<()> {
        self.outcome = match (self.outcome, outcome) {
            (earlier, Outcome::Done) => earlier,
            // The first failure decides the status; a later `quit` with status 0 does not hide it.
            (Outcome::Failed(code), Outcome::Failed(_)) => Outcome::Failed(code),
            (Outcome::Failed(code), Outcome::Quit(0) | Outcome::Closed) => Outcome::Quit(code.status()),
            (_, later) => later,
        };
        match outcome {
            Outcome::Done => ControlFlow::Continue(()),
            Outcome::Failed(_) if self.keep_going => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// The outcome of all lines.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

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
    use crate::report::ErrorCode;

    #[test]
    fn a_failure_ends_the_run() {
        let mut tally = Tally::new(false);
        assert!(tally.add(Outcome::Done).is_continue());
        assert!(tally.add(Outcome::Failed(ErrorCode::Gone)).is_break());
        assert_eq!(tally.outcome(), Outcome::Failed(ErrorCode::Gone));
    }

    #[test]
    fn kept_going_the_first_failure_gives_the_status() {
        let mut tally = Tally::new(true);
        for outcome in [Outcome::Failed(ErrorCode::Hidden), Outcome::Done, Outcome::Failed(ErrorCode::Failed)] {
            assert!(tally.add(outcome).is_continue());
        }
        assert_eq!(tally.outcome(), Outcome::Failed(ErrorCode::Hidden));
        assert!(tally.add(Outcome::Quit(0)).is_break());
        assert_eq!(tally.outcome(), Outcome::Quit(4));
    }

    #[test]
    fn a_reader_that_leaves_hides_no_failure() {
        let mut tally = Tally::new(true);
        assert!(tally.add(Outcome::Failed(ErrorCode::Hidden)).is_continue());
        assert!(tally.add(Outcome::Closed).is_break());
        assert_eq!(tally.outcome(), Outcome::Quit(4));
    }

    #[test]
    fn who_asks_for_a_status_gets_it() {
        let mut tally = Tally::new(true);
        assert!(tally.add(Outcome::Failed(ErrorCode::Hidden)).is_continue());
        assert!(tally.add(Outcome::Quit(7)).is_break());
        assert_eq!(tally.outcome(), Outcome::Quit(7));
    }

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
