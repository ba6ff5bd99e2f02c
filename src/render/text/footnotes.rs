//! Why something is not known: each reason once, with all the fields that it is about.

use super::block::field;
use super::look::Look;
use super::words;
use crate::render::theme::Role;
use crate::report::{Reason, Why};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The reasons of a long table come from a handful of causes; should they not, no more memory is spent on them.
const MOST: usize = 16;

/// The reasons seen, and the fields that they are about.
#[derive(Default, Debug)]
pub struct Footnotes(BTreeMap<Reason, Vec<&'static str>>);

impl Footnotes {
    /// All reasons of a record that stands alone.
    pub fn of(why: &Why) -> Self {
        let mut notes = Footnotes::default();
        for (field, reason) in why.iter() {
            notes.add(field, reason);
        }
        notes
    }

    /// Notes the reasons of a row. What has no answer by its nature shows as `-`, and needs none.
    pub fn collect(&mut self, why: &Why) {
        for (field, reason) in why.iter() {
            if !matches!(reason, Reason::NotApplicable(_)) {
                self.add(field, reason);
            }
        }
    }

    /// Notes one reason.
    pub fn add(&mut self, field: &'static str, reason: &Reason) {
        if let Some(fields) = self.0.get_mut(reason) {
            if !fields.contains(&field) {
                fields.push(field);
            }
        } else if self.0.len() < MOST {
            self.0.insert(reason.clone(), vec![field]);
        }
    }

    /// Takes those of another collection too.
    pub fn append(&mut self, others: Footnotes) {
        for (reason, fields) in others.0 {
            for field in fields {
                self.add(field, &reason);
            }
        }
    }

    /// Writes them and forgets them.
    pub fn write(&mut self, look: &Look, out: &mut dyn Write) -> io::Result<()> {
        for (reason, mut fields) in std::mem::take(&mut self.0) {
            fields.sort_by_key(|name| words::rank(name));
            let mut names: Vec<&str> = fields.iter().map(|name| words::field(name)).collect();
            names.dedup();
            let (label, role) = match reason {
                Reason::FrameHidden => ("hidden", Role::Warn),
                Reason::NotApplicable(_) => ("none", Role::Dim),
                Reason::NotPermitted { .. }
                | Reason::NotOnThisKernel(_)
                | Reason::NotInFile(_)
                | Reason::Changed => ("unknown", Role::Warn),
            };
            line(look, label, role, &names, &reason.to_string(), out)?;
        }
        Ok(())
    }
}

/// `hidden    physical, frame: why`
pub fn line(
    look: &Look,
    label: &str,
    role: Role,
    names: &[&str],
    reason: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = field(look, label);
    line.prose(role, format!("{}: {reason}", names.join(", ")));
    line.end(out)
}
