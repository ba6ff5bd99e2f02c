//! The reasons for unknown facts: each reason once, with all its fields.

use super::lines::Lines;
use super::words;
use crate::render::theme::Role;
use crate::report::{Reason, Why};
use std::collections::BTreeMap;

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
            line(lines, label, role, &names, &reason.to_string());
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
    use crate::render::text::style::Style;
    use crate::render::theme::Theme;

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
