//! The reasons of a record: why fields of it are `null`.

use super::flag_names::FLAGS_RAW;
#[cfg(feature = "serde")]
use super::json::{Field, Form};
use super::{Fact, Reason};
use std::collections::BTreeMap;

/// The reasons of a record: field name → why it is `null`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Why(BTreeMap<&'static str, Reason>);

impl Why {
    /// The value of a fact if it is known; otherwise notes its reason under `field`.
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
            self.0.insert(FLAGS_RAW, reason.clone());
        }
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

#[cfg(feature = "serde")]
impl Why {
    /// The reasons in a record.
    pub fn of_record(record: &impl Field) -> Self {
        let mut why = Why::default();
        record.reasons("", &mut |field, reason| why.note(field, reason));
        why
    }
    /// The same for a row: without reasons of the kind "not applicable".
    pub fn of_row(row: &impl Field) -> Self {
        let mut why = Why::of_record(row);
        why.0.retain(|_, reason| !matches!(reason, Reason::NotApplicable(_)));
        why
    }
}

/// Reasons for fields that have an uncertain value. They stand in the record's own `why`, not here.
#[cfg(feature = "serde")]
impl Field for Why {
    const FORM: Form = Form::Object(&[]);

    fn write<M: serde::ser::SerializeMap>(&self, _: &'static str, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }

    fn reasons<'a>(&'a self, _: &'static str, visit: &mut dyn FnMut(&'static str, &'a Reason)) {
        self.iter().for_each(|(field, reason)| visit(field, reason));
    }
}
