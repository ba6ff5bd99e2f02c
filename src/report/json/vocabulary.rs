//! How the words for facts are serialized.

use super::leaf;
use super::{FieldDescription, Form, Words};
use crate::kernel::huge::HugeChoice;
use crate::report::{
    AccessOutcome, AccountClass, BesideRss, CgroupPath, EventKind, FamilyClass, FlagNames, HowMapped, HugeBy, HugePast,
    HugeRefusal, MapKey, Movable, Owner, Reason,
};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

leaf! {
    AccountClass => Form::Text,
    FamilyClass => Form::Text,
    BesideRss => Form::Text,
    CgroupPath => Form::Text,
    EventKind => Form::Word(Words { name: "event", all: words_of_events }),
    FlagNames => Form::List(&Form::Text),
    HowMapped => Form::OrNull(&Form::Text),
    HugeBy => Form::word::<HugeBy>("huge_by"),
    HugeChoice => Form::word::<HugeChoice>("huge_choice"),
    HugePast => Form::word::<HugePast>("huge_past"),
    HugeRefusal => Form::word::<HugeRefusal>("huge_refusal"),
    MapKey => Form::OrNull(&Form::word::<MapKey>("map_key")),
    AccessOutcome => Form::Object(OUTCOME),
    Movable => Form::Text,
    Owner => Form::Text,
}

/// The fields of an [`AccessOutcome`].
const OUTCOME: &[FieldDescription] = &[
    FieldDescription::new("effects", "The possible effects, one word each.", Form::List(&Form::Text)),
    FieldDescription::new(
        "copies",
        "Whether the process has a private copy afterwards, made by this access.",
        Form::OrNull(&Form::Bool),
    ),
    FieldDescription::new("fault", "The effect on the thread: a fault, or a signal.", Form::OrNull(&Form::Text)),
];

/// The words for events, as they are serialized.
fn words_of_events() -> Vec<String> {
    EventKind::ALL.iter().map(|kind| kind.words().replace([' ', '-'], "_")).collect()
}

impl Serialize for AccessOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut outcome = serializer.serialize_struct("AccessOutcome", 3)?;
        outcome.serialize_field("effects", &self.effects)?;
        outcome.serialize_field("copies", &self.copies)?;
        outcome.serialize_field("fault", &self.fault())?;
        outcome.end()
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for HowMapped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.word().serialize(serializer)
    }
}

impl Serialize for CgroupPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
