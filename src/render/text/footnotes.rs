//! The reasons for unknown facts, under a table or a record.

use super::lines::Lines;
use crate::render::text::words;
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
    /// Whether the record has no cell that shows what is missing: then its reasons are answers, not remarks.
    stands_alone: bool,
}

impl Footnotes {
    /// The reasons of a record that stands alone, for the fields whose absence its text does not explain.
    pub fn of(why: &Why, is_unexplained: impl Fn(&str, &Reason) -> bool) -> Self {
        let mut notes = Footnotes { stands_alone: true, ..Footnotes::default() };
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
        let Footnotes { mut reasons, mut by_nature, has_values, stands_alone } = std::mem::take(self);
        if !has_values {
            reasons.append(&mut by_nature);
        }
        for (reason, mut fields) in reasons {
            let is_remark = !matches!(reason, Reason::NotApplicable(_) | Reason::NotInFile(_) | Reason::Changed);
            let is_known = is_remark && !lines.style.is_news("facts", reason.cause());
            if is_known && !stands_alone {
                continue;
            }
            fields.sort_by_cached_key(|name| words::rank(name));
            let mut names: Vec<&str> = fields.iter().map(|name| words::field(name)).collect();
            names.dedup();
            if names.iter().all(|name| name.ends_with(words::IN_ROWS)) {
                let all_but_last = names.len().saturating_sub(1);
                let named = names.iter_mut().take(all_but_last);
                named.for_each(|name| *name = name.trim_end_matches(words::IN_ROWS));
            }
            let (label, role) = match reason {
                Reason::FrameHidden => ("hidden", Role::Warn),
                Reason::NotApplicable(_) => ("none", Role::Dim),
                Reason::NotPermitted { .. } | Reason::NotOnThisKernel(_) | Reason::NotInFile(_) | Reason::Changed => {
                    ("unknown", Role::Warn)
                }
            };
            let text = match reason.remedy() {
                Some(remedy) if lines.style.is_new_remedy(remedy) => reason.to_string(),
                _ if is_known => reason.cause_in_short().to_owned(),
                _ => reason.cause().to_owned(),
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
    use crate::render::text::lines::{RemarksMade, Style};
    use crate::render::theme::Theme;
    use std::rc::Rc;

    #[test]
    fn a_remark_about_the_kernel_or_rights_comes_once_a_session() {
        let said = RemarksMade::default();
        let written = |field: &'static str, said: Option<&RemarksMade>| {
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
        // The same reason for another fact is no news either.
        assert!(!written("physical", Some(&said)).contains("hidden"));
        assert_eq!(written("pfn", None), first);
    }

    /// The lines of a record that stands alone.
    fn written_alone(why: &Why, said: &RemarksMade) -> String {
        let style = Style::new(Theme::PLAIN, None).with_remarks_once(Rc::clone(said));
        let mut lines = Lines::new(style);
        Footnotes::of(why, |_, _| true).write(&mut lines);
        String::from_utf8(lines.text().clone()).expect("text")
    }

    #[test]
    fn a_record_that_stands_alone_has_its_reasons_each_time() {
        let mut why = Why::default();
        why.note("pfn", &Reason::FrameHidden);
        let said = RemarksMade::default();
        let written = || written_alone(&why, &said);
        let (first, again) = (written(), written());
        let cause = Reason::FrameHidden.cause().to_owned();
        assert!(first.contains(&cause) && again.contains(&cause), "{first}{again}");
        // Only the remedy comes once.
        let remedy = Reason::FrameHidden.remedy().expect("one");
        assert!(first.contains(remedy) && !again.contains(remedy), "{first}{again}");
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

    #[test]
    fn a_cause_is_explained_once_a_session() {
        let mut why = Why::default();
        why.note("pins", &Reason::NotOnThisKernel("there is no file (no CONFIG_FILE, or so)".to_owned()));
        let said = RemarksMade::default();
        let written = || written_alone(&why, &said);
        assert!(written().ends_with("there is no file (no CONFIG_FILE, or so)\n"));
        assert!(written().ends_with("there is no file\n"));
    }
}
