//! Lines of text, one below the other: their style, and the reasons for unknown facts under them.

use crate::render::line::Line;
use crate::render::text::words;
use crate::render::theme::{Role, Theme};
use crate::report::{Reason, Why};
use jiff::tz::TimeZone;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::rc::Rc;

/// The column of the values of labelled lines.
pub const VALUE: usize = 10;

/// Lines of text under construction. A line ends where the next one begins.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) style: Style,
    text: Vec<u8>,
    last: Option<Line>,
}

impl Lines {
    pub(crate) fn new(style: Style) -> Self {
        Lines { style, text: Vec::new(), last: None }
    }

    /// Begins a line that wraps at the width of the terminal.
    pub fn line(&mut self) -> &mut Line {
        self.text();
        let line = Line::new(self.style.theme, self.style.width);
        self.last.insert(line)
    }

    /// Begins a labelled line; it wraps under its value.
    pub fn field(&mut self, label: &str) -> &mut Line {
        let line = self.line();
        line.push(Role::Label, label).indent_at(VALUE)
    }

    /// Adds a line that is complete.
    pub fn add(&mut self, mut line: Line) {
        line.end(self.text());
    }

    /// The text so far. The last line ends here.
    pub fn text(&mut self) -> &mut Vec<u8> {
        if let Some(mut line) = self.last.take() {
            line.end(&mut self.text);
        }
        &mut self.text
    }

    /// Writes the text, and forgets it.
    pub fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let written = out.write_all(self.text());
        self.text.clear();
        written
    }
}

/// The style of text.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) theme: Theme,
    /// Of the terminal, in columns; `None` for a pipe or a file.
    pub(crate) width: Option<usize>,
    /// Looked up with the first time that is shown.
    zone: OnceCell<TimeZone>,
    /// What was said before, where a remark about the kernel or rights is said once; `None` says each.
    said: Option<Said>,
}

/// The remarks that a session has made.
pub type Said = Rc<RefCell<HashSet<String>>>;

impl Style {
    /// With times in the local time zone.
    pub(crate) fn new(theme: Theme, width: Option<usize>) -> Self {
        Style { theme, width, zone: OnceCell::new(), said: None }
    }

    pub(crate) fn with_time_zone(self, zone: TimeZone) -> Self {
        Style { zone: OnceCell::from(zone), ..self }
    }

    pub(crate) fn with_remarks_once(self, said: Said) -> Self {
        Style { said: Some(said), ..self }
    }

    /// Whether a remark about the kernel or rights is to be made: what `reason` keeps from being known about `what`.
    pub(crate) fn is_news(&self, what: &str, reason: &str) -> bool {
        let remark = format!("{what}: {reason}");
        self.said.as_ref().is_none_or(|said| said.borrow_mut().insert(remark))
    }

    /// Whether tables need short forms of long cells, such as letters in the place of flags.
    pub(crate) fn is_narrow(&self) -> bool {
        const WIDE: usize = 110;
        self.width.is_some_and(|width| width < WIDE)
    }

    /// The width of a picture.
    pub(crate) fn columns(&self) -> usize {
        self.width.unwrap_or(80)
    }

    /// The zone in which times are shown.
    pub(crate) fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(TimeZone::system)
    }
}

/// The most reasons under a table. There are few different ones; this bounds the memory.
const MOST: usize = 16;

/// The reasons seen, and the fields that they are about.
#[derive(Default, Debug)]
pub struct Footnotes {
    reasons: BTreeMap<Reason, Vec<&'static str>>,
    /// Reasons of the kind "not applicable": shown only under a table without any value.
    by_nature: BTreeMap<Reason, Vec<&'static str>>,
    /// Whether a row of the table has a value.
    has_values: bool,
}

impl Footnotes {
    /// The reasons of a record that stands alone, for the fields whose absence its text does not explain.
    pub fn of(why: &Why, is_unexplained: impl Fn(&str, &Reason) -> bool) -> Self {
        let mut notes = Footnotes::default();
        for (field, reason) in why.iter() {
            if is_unexplained(field, reason) {
                notes.add(field, reason);
            }
        }
        notes
    }

    /// Notes the reasons of a row, but not those of the kind "not applicable": such fields show as `-`.
    pub fn collect(&mut self, why: &Why) {
        for (field, reason) in why.iter() {
            if !matches!(reason, Reason::NotApplicable(_)) {
                self.add(field, reason);
            }
        }
    }

    /// The same for rows that may have `-` in every column: a table of only such rows needs the reason.
    pub fn collect_with_nature(&mut self, why: &Why, has_values: bool) {
        self.collect(why);
        self.has_values |= has_values;
        for (field, reason) in why.iter() {
            if matches!(reason, Reason::NotApplicable(_)) {
                add(&mut self.by_nature, field, reason);
            }
        }
    }

    /// Notes one reason.
    pub fn add(&mut self, field: &'static str, reason: &Reason) {
        add(&mut self.reasons, field, reason);
    }

    /// Writes them and forgets them.
    pub fn write(&mut self, lines: &mut Lines) {
        let Footnotes { mut reasons, mut by_nature, has_values } = std::mem::take(self);
        if !has_values {
            reasons.append(&mut by_nature);
        }
        for (reason, mut fields) in reasons {
            let text = reason.to_string();
            if !matches!(reason, Reason::NotApplicable(_) | Reason::NotInFile(_) | Reason::Changed) {
                fields.retain(|field| lines.style.is_news(field, &text));
            }
            if fields.is_empty() {
                continue;
            }
            fields.sort_by_key(|name| words::rank(name));
            let mut names: Vec<&str> = fields.iter().map(|name| words::field(name)).collect();
            names.dedup();
            let (label, role) = match reason {
                Reason::FrameHidden => ("hidden", Role::Warn),
                Reason::NotApplicable(_) => ("none", Role::Dim),
                Reason::NotPermitted { .. } | Reason::NotOnThisKernel(_) | Reason::NotInFile(_) | Reason::Changed => {
                    ("unknown", Role::Warn)
                }
            };
            line(lines, label, role, &names, &text);
        }
    }
}

fn add(reasons: &mut BTreeMap<Reason, Vec<&'static str>>, field: &'static str, reason: &Reason) {
    if let Some(fields) = reasons.get_mut(reason) {
        if !fields.contains(&field) {
            fields.push(field);
        }
    } else if reasons.len() < MOST {
        reasons.insert(reason.clone(), vec![field]);
    }
}

/// `hidden physical, frame: why`
pub fn line(lines: &mut Lines, label: &str, role: Role, names: &[&str], reason: &str) {
    let line = lines.field(label);
    line.prose(role, format!("{}: {reason}", names.join(", ")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::lines::Style;
    use crate::render::theme::Theme;

    #[test]
    fn a_remark_about_the_kernel_or_rights_comes_once_a_session() {
        let said = Said::default();
        let written = |field: &'static str, said: Option<&Said>| {
            let mut notes = Footnotes::default();
            notes.add(field, &Reason::FrameHidden);
            notes.add("pss", &Reason::Changed);
            let style = Style::new(Theme::PLAIN, None);
            let mut lines = Lines::new(match said {
                Some(said) => style.with_remarks_once(Rc::clone(said)),
                None => style,
            });
            notes.write(&mut lines);
            String::from_utf8(lines.text().clone()).expect("text")
        };
        let first = written("pfn", None);
        assert!(first.contains("hidden") && first.contains("changed"), "{first}");
        assert_eq!(written("pfn", Some(&said)), first);
        let again = written("pfn", Some(&said));
        assert!(!again.contains("hidden") && again.contains("changed"), "{again}");
        assert!(written("physical", Some(&said)).contains("hidden"));
        assert_eq!(written("pfn", None), first);
    }

    #[test]
    fn what_has_no_answer_by_nature_is_reported_under_a_table_of_nothing_else() {
        let mut why = Why::default();
        why.note("present", &Reason::NotApplicable("it is the kernel's own"));
        let written = |rows: &[bool]| {
            let mut notes = Footnotes::default();
            for &has_values in rows {
                notes.collect_with_nature(&why, has_values);
            }
            let mut lines = Lines::new(Style::new(Theme::PLAIN, None));
            notes.write(&mut lines);
            String::from_utf8(lines.text().clone()).expect("text")
        };
        assert_eq!(written(&[false, false]), "none      present: it is the kernel's own\n");
        assert_eq!(written(&[false, true]), "");
        assert_eq!(written(&[]), "");
    }
}
