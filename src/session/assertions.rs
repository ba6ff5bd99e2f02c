//! The results of the assertions of a run, for its last line and for CI.

use crate::report::{AssertionReport, AssertionsSummary, ErrorPlace, ErrorReport};
use std::fmt::Write;

/// The assertions of a run: counts, and each single one if a report is wanted.
#[derive(Debug, Default)]
pub struct Assertions {
    counts: AssertionsSummary,
    cases: Option<Vec<Case>>,
    /// Lines that failed and are no assertions, of those that are kept.
    broken: usize,
}

#[derive(Debug)]
struct Case {
    place: Option<ErrorPlace>,
    /// The lines that led to it, the innermost first.
    callers: Vec<ErrorPlace>,
    expression: String,
    result: Verdict,
}

/// The result of an assertion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Held,
    /// It is false, and why.
    Failed(String),
    /// It has no value, and why.
    Unknown(String),
}

impl Assertions {
    /// With every assertion kept for a report.
    pub fn for_report() -> Self {
        Assertions { cases: Some(Vec::new()), ..Assertions::default() }
    }

    /// How many held and how many failed; `None` without assertions.
    pub fn counts(&self) -> Option<AssertionsSummary> {
        let counts = self.counts;
        (counts != AssertionsSummary::default()).then_some(counts)
    }

    /// How many failed or could not be evaluated.
    pub(super) fn failed(&self) -> u64 {
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

    /// Adds a line that failed before it could be run as an assertion, or that is none: a report without it would be
    /// green.
    pub(super) fn add_broken(&mut self, report: &ErrorReport) {
        let text = report.place.as_ref().map(|place| place.text.trim());
        let text = text.filter(|text| !text.is_empty()).unwrap_or("pmdb");
        let is_assertion = text.split_whitespace().next() == Some("assert");
        self.counts.unknown += u64::from(is_assertion);
        let Some(cases) = &mut self.cases else {
            return;
        };
        self.broken += usize::from(!is_assertion);
        cases.push(Case {
            place: report.place.clone(),
            callers: report.callers.clone(),
            expression: text.to_owned(),
            result: Verdict::Unknown(report.message.clone()),
        });
    }

    /// The report, as JUnit has it.
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
            // A String takes whatever is written to it.
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

/// The error message of a failed assertion: its own message, and the values that decided.
pub(super) fn failure(assertion: &AssertionReport) -> String {
    let message = assertion.message.as_deref();
    let message = message.unwrap_or("the assertion fails");
    let values = assertion.values.iter().map(|of| {
        let wanted = of.wanted.as_ref();
        let wanted = wanted.map_or_else(String::new, |wanted| format!(", expected {wanted}"));
        format!("{} = {}{wanted}", of.expression, of.value)
    });
    let values: Vec<String> = values.collect();
    if values.is_empty() {
        format!("{message}: {}", assertion.expression)
    } else {
        format!("{message}: {}", values.join("; "))
    }
}

/// Text in an attribute of XML, which has no way to write most control characters.
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
            // Not characters of XML.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::AssertionValue;

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
        let place = ErrorPlace { text: " assert nonsense(heap) > 0".into(), ..caller(7) };
        assertions.add_broken(&ErrorReport { place: Some(place), ..ErrorReport::of("no such function") });
        let counted = assertions.counts().map(|counts| (counts.held, counts.failed, counts.unknown));
        assert_eq!((counted, assertions.failed()), (Some((1, 1, 2)), 3));
        assert!(assertions.junit().contains("tests=\"5\" failures=\"1\" errors=\"3\""));
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
    }
}
