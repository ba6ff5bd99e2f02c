//! Facts that may be unknown, and why.

use super::field::{Field, Form};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// A fact, or the reason why it is not known. Never a zero in place of a reason.
pub type Fact<T> = Result<T, Reason>;

/// Why a fact is not known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The kernel hides frame numbers from an opener without CAP_SYS_ADMIN.
    FrameHidden,
    /// A file could not be opened or read with these rights.
    NotPermitted {
        /// What was tried and the answer.
        what: String,
        /// What would help, where there is something to name.
        remedy: Option<String>,
    },
    /// This kernel does not tell.
    NotOnThisKernel(String),
    /// The files of the target do not tell, or what they tell cannot be used.
    NotInFile(String),
    /// The question has no answer for this page (it has no frame, say).
    NotApplicable(&'static str),
    /// The target changed while it was being read.
    Changed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotPermitted { .. } | Reason::FrameHidden => match self.remedy() {
                Some(remedy) => write!(f, "{} ({remedy})", self.cause()),
                None => f.write_str(self.cause()),
            },
            _ => f.write_str(self.cause()),
        }
    }
}

impl Reason {
    /// The kernel's refusal, without a way out to name.
    pub fn not_permitted(what: impl Into<String>) -> Self {
        Reason::NotPermitted {
            what: what.into(),
            remedy: None,
        }
    }

    /// Why, without the way out.
    pub fn cause(&self) -> &str {
        match self {
            Reason::FrameHidden => "frame numbers are hidden without CAP_SYS_ADMIN",
            Reason::NotPermitted { what, .. } => what,
            Reason::NotOnThisKernel(text) | Reason::NotInFile(text) => text,
            Reason::NotApplicable(text) => text,
            Reason::Changed => "the target changed while it was being read",
        }
    }

    /// The way out, where more rights are one.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Reason::FrameHidden => Some(
                "run pmdb outside of containers and with that capability: sudo or setcap give it",
            ),
            Reason::NotPermitted { remedy, .. } => remedy.as_deref(),
            _ => None,
        }
    }

    /// Whether more rights would help.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Reason::FrameHidden | Reason::NotPermitted { .. })
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The reasons of a record: field name → why it is `null`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Why(BTreeMap<&'static str, Reason>);

impl Why {
    /// Takes a fact apart: the value if it is known, otherwise its reason is noted under `field`.
    pub fn take<T>(&mut self, field: &'static str, fact: Fact<T>) -> Option<T> {
        match fact {
            Ok(value) => Some(value),
            Err(reason) => {
                self.note(field, &reason);
                None
            }
        }
    }
    /// Notes why `field` is unknown.
    pub fn note(&mut self, field: &'static str, reason: &Reason) {
        self.0.insert(field, reason.clone());
        // Two forms of one fact.
        if field == "flags" {
            self.0.insert("flags_raw", reason.clone());
        }
    }
    /// The reasons in a record.
    pub fn of_record(record: &impl Field) -> Self {
        let mut why = Why::default();
        record.reasons("", &mut |field, reason| why.note(field, reason));
        why
    }
    /// The same for a row, where it needs no reason that a question does not apply.
    pub fn of_row(row: &impl Field) -> Self {
        let mut why = Why::of_record(row);
        why.0
            .retain(|_, reason| !matches!(reason, Reason::NotApplicable(_)));
        why
    }
    /// Drops the reason for `field`: it is known after all.
    pub fn forget(&mut self, field: &str) {
        self.0.remove(field);
    }
    /// The reason for `field`.
    pub fn of(&self, field: &str) -> Option<&Reason> {
        self.0.get(field)
    }
    /// Fields and reasons, by field name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Reason)> {
        self.0.iter().map(|(field, reason)| (*field, reason))
    }
    /// Whether everything is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reasons of fields that have a value all the same. They stand in the record's own `why`, not here.
impl Field for Why {
    const FORM: Form = Form::Object(&[]);

    fn write<M: SerializeMap>(&self, _: &'static str, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }

    fn reasons<'a>(&'a self, _: &'static str, visit: &mut dyn FnMut(&'static str, &'a Reason)) {
        self.iter().for_each(|(field, reason)| visit(field, reason));
    }
}
