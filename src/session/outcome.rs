//! The outcome of one or several lines, which decides whether the next line runs. Failures as records: the attempt, the
//! cause, the place in the input, and the remedy. And the results of the assertions of a run, for its last line and for
//! CI.

use crate::command::{self, LANGUAGE};
use crate::eval;
use crate::kernel::Name;
use crate::lang::{Expected, Span, SyntaxError, near};
use crate::report::{AssertionReport, AssertionValue, AssertionsSummary, ErrorCode, ErrorPlace, ErrorReport};
use std::fmt::Write;
use std::ops::ControlFlow;

/// The outcome of a line, or of a file of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineOutcome {
    /// No error.
    Done,
    /// An error with this code was reported. A batch ends with its status.
    Failed(ErrorCode),
    /// Ctrl-C was typed, or the user left the pager: the rest of the file does not run.
    Interrupted,
    /// The session ends with this status.
    Quit(u8),
    /// The session ends because standard output has no reader any more.
    Closed,
}

/// The outcome of related lines so far: those of a file, or those of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineTally {
    keep_going: bool,
    outcome: LineOutcome,
}

impl LineTally {
    /// Begins a tally. A failure ends the run unless `keep_going` is set.
    pub fn new(keep_going: bool) -> Self {
        LineTally { keep_going, outcome: LineOutcome::Done }
    }

    /// Adds the outcome of a line. `Break` means that the next line does not run.
    pub fn add(&mut self, outcome: LineOutcome) -> ControlFlow<()> {
        self.outcome = match (self.outcome, outcome) {
            (earlier, LineOutcome::Done) => earlier,
            // The first failure decides the status, and a later `quit` with status 0 does not hide it.
            (LineOutcome::Failed(code), LineOutcome::Failed(_)) => LineOutcome::Failed(code),
            (LineOutcome::Failed(code), LineOutcome::Quit(0) | LineOutcome::Closed) => LineOutcome::Quit(code.status()),
            (_, later) => later,
        };
        match outcome {
            LineOutcome::Done => ControlFlow::Continue(()),
            LineOutcome::Failed(_) if self.keep_going => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// Returns the outcome of all lines.
    pub fn outcome(&self) -> LineOutcome {
        self.outcome
    }
}

pub(super) use crate::access::words;

/// A line of input, with its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Input<'a> {
    /// The text of the line.
    pub text: &'a str,
    /// The command file, and the number of the line in it, from 1 on; `None` at the prompt and for `-ex`.
    pub file: Option<(&'a Name, usize)>,
}

impl<'a> Input<'a> {
    /// Makes an input from a line of the prompt, or of `-ex`.
    pub fn typed_line(text: &'a str) -> Self {
        Input { text, file: None }
    }

    /// Returns the place of the part `at` of the line; of the whole line without `at`.
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

    /// Returns the part `at` of the line.
    pub fn typed(&self, at: Span) -> &'a str {
        self.text.get(at.start..at.end).unwrap_or(self.text).trim()
    }

    /// Makes a report about the whole line.
    pub fn about_line(&self, message: impl Into<String>) -> ErrorReport {
        let text = self.text;
        let start = text.len() - text.trim_start().len();
        let whole = Span::new(start, start + text.trim().len());
        ErrorReport {
            // At the prompt the line is directly above.
            place: self.file.map(|_| self.place(Some(whole))),
            ..ErrorReport::of(message)
        }
    }

    /// Makes the report of a line that is not in the language.
    pub fn syntax(&self, error: SyntaxError) -> ErrorReport {
        ErrorReport {
            message: error.message,
            place: Some(self.place(Some(error.at))),
            expected: error.expected,
            hint: error.hint.map(|hint| LANGUAGE.respelled(&hint, self.text)),
            code: ErrorCode::Syntax,
            ..ErrorReport::default()
        }
    }

    /// Makes the report of a failed command; `None` if the command was only stopped.
    pub fn command(&self, error: command::Error) -> Option<ErrorReport> {
        let (code, hint) = (error.code(), error.remedy().map(|hint| LANGUAGE.respelled(hint, self.text)));
        let hint = self.meant_word(&error).or(hint);
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

impl Input<'_> {
    /// Returns the hint for a name that nothing has, where a word of the language may be meant: `account childs`.
    fn meant_word(&self, error: &command::Error) -> Option<String> {
        let command::Error::Evaluation(eval::Error { at, is_unknown_name: true, .. }) = error else {
            return None;
        };
        let typed = self.text.get(at.start..at.end)?;
        let kinds = LANGUAGE.expectation(self.text, at.start).kinds.into_iter();
        let words = kinds.filter_map(|kind| if let Expected::Word(word) = kind { Some(word) } else { None });
        let word = near(typed, words).into_iter().next()?;
        let (before, behind) = (self.text.get(..at.start)?, self.text.get(at.end..)?);
        Some(format!("did you mean `{}`?", format!("{before}{word}{behind}").trim()))
    }
}

/// The assertions of a run: their numbers, and each assertion if a report is wanted.
#[derive(Debug, Default)]
pub struct Assertions {
    counts: AssertionsSummary,
    cases: Option<Vec<Case>>,
    /// The number of kept lines that failed and are not assertions.
    broken: usize,
}

#[derive(Debug)]
struct Case {
    place: Option<ErrorPlace>,
    /// The lines that led to the assertion, the innermost first.
    callers: Vec<ErrorPlace>,
    expression: String,
    result: Verdict,
}

/// The result of an assertion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Held,
    /// The condition is false, for this reason.
    Failed(String),
    /// The condition has no value, for this reason.
    Unknown(String),
}

impl Assertions {
    /// Makes a collection that keeps every assertion for a report.
    pub fn for_report() -> Self {
        Assertions { cases: Some(Vec::new()), ..Assertions::default() }
    }

    /// Returns how many were true and how many failed; `None` without assertions.
    pub fn counts(&self) -> Option<AssertionsSummary> {
        let counts = self.counts;
        (counts != AssertionsSummary::default()).then_some(counts)
    }

    /// Returns how many failed or could not be evaluated.
    pub(super) fn failures(&self) -> u64 {
        self.counts.failed + self.counts.unknown
    }

    pub(super) fn add(&mut self, place: Option<ErrorPlace>, callers: &[ErrorPlace], expression: &str, result: Verdict) {
        match result {
            Verdict::Held => self.counts.held += 1,
            Verdict::Failed(_) => self.counts.failed += 1,
            Verdict::Unknown(_) => self.counts.unknown += 1,
        }
        if let Some(cases) = &mut self.cases {
            let callers = callers.iter().rev().cloned().collect();
            cases.push(Case { place, callers, expression: expression.to_owned(), result });
        }
    }

    /// Adds a line that failed before it could run as an assertion, or that is not one: a report without it would show
    /// success.
    pub(super) fn add_broken(&mut self, report: &ErrorReport) {
        let text = report.place.as_ref().map(|place| place.text.trim());
        let text = text.filter(|text| !text.is_empty()).unwrap_or("pmdb");
        let condition =
            text.strip_prefix("assert").filter(|rest| rest.trim_start().len() < rest.len() || rest.is_empty());
        let is_assertion = condition.is_some();
        // Drops the message, as for assertions that can be evaluated.
        let condition = condition.map(|rest| match rest.rsplit_once(", \"") {
            Some((before, message)) if message.ends_with('"') => before.trim(),
            _ => rest.trim(),
        });
        self.counts.unknown += u64::from(is_assertion);
        let Some(cases) = &mut self.cases else {
            return;
        };
        self.broken += usize::from(!is_assertion);
        cases.push(Case {
            place: report.place.clone(),
            callers: report.callers.clone(),
            expression: condition.filter(|condition| !condition.is_empty()).unwrap_or(text).to_owned(),
            result: Verdict::Unknown(report.message.clone()),
        });
    }

    /// Returns the report in the format of JUnit.
    pub fn junit(&self) -> String {
        let AssertionsSummary { held, failed, unknown } = self.counts;
        let errors = unknown + self.broken as u64;
        let tests = held + failed + errors;
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pmdb\" tests=\"{tests}\" failures=\"{failed}\" errors=\"{errors}\">\n"
        );
        for case in self.cases.iter().flatten() {
            let file = case.place.as_ref().and_then(|place| place.file.as_ref());
            let file = file.map_or_else(|| "-ex".to_owned(), ToString::to_string);
            let line = case.place.as_ref().and_then(|place| place.line);
            let place = match line {
                Some(line) => format!(" file=\"{}\" line=\"{line}\"", escaped(&file)),
                None => String::new(),
            };
            // Writing to a String never fails.
            let _ = write!(
                xml,
                "  <testcase classname=\"{}\" name=\"{}\"{place}",
                escaped(&file),
                escaped(&case.expression)
            );
            let (element, why) = match &case.result {
                Verdict::Held => {
                    xml.push_str("/>\n");
                    continue;
                }
                Verdict::Failed(why) => ("failure", escaped(why)),
                Verdict::Unknown(why) => ("error", escaped(why)),
            };
            let _ = write!(xml, ">\n    <{element} message=\"{why}\">");
            let mut lead = "";
            for place in case.place.iter().chain(&case.callers) {
                let _ = write!(xml, "{lead}{}", escaped(&place.to_string()));
                lead = "\ncalled from ";
            }
            let _ = writeln!(xml, "</{element}>\n  </testcase>");
        }
        xml.push_str("</testsuite>\n");
        xml
    }
}

/// Returns the error message of a failed assertion: its message, and the values that decided it. In a built-in command
/// file the message says what its variables mean: their names say nothing to who runs it.
pub(super) fn failure(assertion: &AssertionReport) -> String {
    let file = assertion.place.as_ref().and_then(|place| place.file.as_ref());
    let is_built_in = file.is_some_and(|file| file.as_bytes().starts_with(b":"));
    let is_variable = |text: &str| text.starts_with('$') || text.contains("($") && !text.contains(" where ");
    let is_said = |of: &&AssertionValue| is_built_in && assertion.message.is_some() && is_variable(&of.expression);
    let message = assertion.message.as_deref();
    let values = assertion.values.iter().filter(|of| !is_said(of)).map(|of| {
        let wanted = of.wanted.as_ref();
        let wanted = wanted.map_or_else(String::new, |wanted| format!(", expected {wanted}"));
        format!("{} = {}{wanted}", of.expression, of.value)
    });
    let values: Vec<String> = values.collect();
    let head = message.unwrap_or("the assertion fails");
    match (values.is_empty(), message) {
        (true, Some(message)) => message.to_owned(),
        (true, None) => format!("{head}: {}", assertion.expression),
        (false, _) => format!("{head}: {}", values.join("; ")),
    }
}

/// Escapes text for an attribute of XML, which cannot represent most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(' '),
            control if control.is_control() => escaped.extend(control.escape_default()),
            // These are not characters of XML.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{AssertionValue, ErrorCode};

    #[test]
    fn a_failure_ends_the_run() {
        let mut tally = LineTally::new(false);
        assert!(tally.add(LineOutcome::Done).is_continue());
        assert!(tally.add(LineOutcome::Failed(ErrorCode::Gone)).is_break());
        assert_eq!(tally.outcome(), LineOutcome::Failed(ErrorCode::Gone));
    }

    #[test]
    fn kept_going_the_first_failure_gives_the_status() {
        let mut tally = LineTally::new(true);
        for outcome in
            [LineOutcome::Failed(ErrorCode::Hidden), LineOutcome::Done, LineOutcome::Failed(ErrorCode::Failed)]
        {
            assert!(tally.add(outcome).is_continue());
        }
        assert_eq!(tally.outcome(), LineOutcome::Failed(ErrorCode::Hidden));
        assert!(tally.add(LineOutcome::Quit(0)).is_break());
        assert_eq!(tally.outcome(), LineOutcome::Quit(4));
    }

    #[test]
    fn a_reader_that_leaves_hides_no_failure() {
        let mut tally = LineTally::new(true);
        assert!(tally.add(LineOutcome::Failed(ErrorCode::Hidden)).is_continue());
        assert!(tally.add(LineOutcome::Closed).is_break());
        assert_eq!(tally.outcome(), LineOutcome::Quit(4));
    }

    #[test]
    fn who_asks_for_a_status_gets_it() {
        let mut tally = LineTally::new(true);
        assert!(tally.add(LineOutcome::Failed(ErrorCode::Hidden)).is_continue());
        assert!(tally.add(LineOutcome::Quit(7)).is_break());
        assert_eq!(tally.outcome(), LineOutcome::Quit(7));
    }

    #[test]
    fn a_line_as_a_whole_has_a_place_in_a_file_only() {
        let file = Name::from("f");
        let input = Input { text: "  walk heap ", file: Some((&file, 7)) };
        let place = input.about_line("no").place.unwrap();
        assert_eq!((place.column, place.width), (Some(3), 9));
        assert_eq!(Input::typed_line("walk").about_line("no").place, None);
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let text = "echo \u{e4}\u{e4} x";
        let place = Input::typed_line(text).place(Some(Span::new(10, 11)));
        assert_eq!((place.column, place.width), (Some(9), 1));
        let end = Input::typed_line(text).place(Some(Span::new(11, 11)));
        assert_eq!((end.column, end.width), (Some(10), 0));
    }

    #[test]
    fn the_report_says_what_held_what_failed_and_what_is_not_known() {
        let mut assertions = Assertions::for_report();
        assert_eq!(assertions.counts(), None);
        let place =
            ErrorPlace { file: Some("a&b.pmdb".into()), line: Some(3), column: Some(1), width: 1, text: String::new() };
        assertions.add(Some(place), &[], "1 < 2", Verdict::Held);
        assertions.add(None, &[], "x == \"y\"", Verdict::Failed("x = \"\u{1b}\"".into()));
        let caller = |line| ErrorPlace {
            file: Some("all".into()),
            line: Some(line),
            column: None,
            width: 0,
            text: "call".into(),
        };
        assertions.add(Some(caller(9)), &[caller(1), caller(2)], "z", Verdict::Unknown("hidden".into()));
        let xml = assertions.junit();
        for part in [
            "tests=\"3\" failures=\"1\" errors=\"1\"",
            "<testcase classname=\"a&amp;b.pmdb\" name=\"1 &lt; 2\" file=\"a&amp;b.pmdb\" line=\"3\"/>",
            "<failure message=\"x = &quot;\\u{1b}&quot;\"></failure>",
            "<error message=\"hidden\">all:9: call\ncalled from all:2: call\ncalled from all:1: call</error>",
        ] {
            assert!(xml.contains(part), "{part} in {xml}");
        }
        assert!(Assertions::default().junit().contains("tests=\"0\""));
        assertions.add_broken(&ErrorReport::of("no such file"));
        let xml = assertions.junit();
        for part in ["tests=\"4\" failures=\"1\" errors=\"2\"", "no such file"] {
            assert!(xml.contains(part), "{part} in {xml}");
        }
        // An assertion with a slip counts as one.
        let place = ErrorPlace { text: " assert nonsense(heap) > 0, \"no\"".into(), ..caller(7) };
        assertions.add_broken(&ErrorReport { place: Some(place), ..ErrorReport::of("no such function") });
        let counted = assertions.counts().map(|counts| (counts.held, counts.failed, counts.unknown));
        assert_eq!((counted, assertions.failures()), (Some((1, 1, 2)), 3));
        let xml = assertions.junit();
        assert!(xml.contains("tests=\"5\" failures=\"1\" errors=\"3\""));
        assert!(xml.contains("name=\"nonsense(heap) &gt; 0\""), "{xml}");
    }

    #[test]
    fn a_failure_shows_the_values_that_decided() {
        let assertion = AssertionReport {
            expression: "count(all) == 512".into(),
            holds: false,
            message: None,
            values: vec![AssertionValue {
                expression: "count(all)".into(),
                value: "412".into(),
                wanted: Some("512".into()),
            }],
            place: None,
        };
        assert_eq!(failure(&assertion), "the assertion fails: count(all) = 412, expected 512");
        let message = Some("too few".to_owned());
        let said = AssertionReport { message, ..assertion };
        assert_eq!(failure(&said), "too few: count(all) = 412, expected 512");
        let of_script = AssertionValue { expression: "$found".into(), value: "412".into(), wanted: Some("512".into()) };
        let said = AssertionReport { values: vec![of_script], ..said };
        assert_eq!(failure(&said), "too few: $found = 412, expected 512");
        let file = Some(":leak".into());
        let place = ErrorPlace { file, line: Some(3), column: Some(8), width: 4, text: String::new() };
        let said = AssertionReport { place: Some(place), ..said };
        assert_eq!(failure(&said), "too few");
    }
}
