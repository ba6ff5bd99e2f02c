//! The serialization of the words for facts.

use super::{Field, FieldDescription, JsonForm, Words, leaf, words};
use crate::kernel::huge::HugeChoice;
use crate::report::{
    AccessOutcome, AccountClass, BesideRss, CgroupPath, ChargeClass, Effect, EventKind, FamilyClass, Fault, FlagNames,
    FrameClass, HowMapped, HugeBy, HugePast, HugeRefusal, KnownPins, MapKey, Movable, ObjectKind, Owner, Reason,
    RecordedOwner,
};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

leaf! {
    AccountClass => JsonForm::word::<AccountClass>("account_class"),
    FamilyClass => JsonForm::word::<FamilyClass>("family_class"),
    BesideRss => JsonForm::word::<BesideRss>("beside_rss"),
    CgroupPath => JsonForm::Text,
    ChargeClass => JsonForm::word::<ChargeClass>("charge_class"),
    EventKind => JsonForm::Word(Words { name: "event", all: words_of_events }),
    FrameClass => JsonForm::word::<FrameClass>("frame_class"),
    FlagNames => JsonForm::List(&JsonForm::Text),
    HowMapped => JsonForm::OrNull(&JsonForm::Word(Words { name: "how_mapped", all: words_of_mapping })),
    HugeBy => JsonForm::word::<HugeBy>("huge_by"),
    HugeChoice => JsonForm::word::<HugeChoice>("huge_choice"),
    HugePast => JsonForm::word::<HugePast>("huge_past"),
    KnownPins => JsonForm::word::<KnownPins>("known_pins"),
    HugeRefusal => JsonForm::word::<HugeRefusal>("huge_refusal"),
    MapKey => JsonForm::OrNull(&JsonForm::word::<MapKey>("map_key")),
    AccessOutcome => JsonForm::Object(OUTCOME),
    ObjectKind => JsonForm::word::<ObjectKind>("object_kind"),
    RecordedOwner => JsonForm::word::<RecordedOwner>("recorded_owner"),
}

words! {
    Effect => "effect",
    Fault => "fault",
    Movable => "movable",
    Owner => "owner",
}

/// The descriptions of the fields of an [`AccessOutcome`].
const OUTCOME: &[FieldDescription] = &[
    FieldDescription::new("effects", "The possible effects, one word each.", <Vec<Effect>>::FORM),
    FieldDescription::new(
        "copies",
        "Whether the process has a private copy afterwards, made by this access.",
        JsonForm::OrNull(&JsonForm::Bool),
    ),
    FieldDescription::new("fault", "The effect on the thread: a fault, or a signal.", <Option<Fault>>::FORM),
];

fn words_of_mapping() -> Vec<String> {
    let known = [HowMapped::Pmd, HowMapped::Pte, HowMapped::Hugetlb];
    known.into_iter().filter_map(HowMapped::word).map(str::to_owned).collect()
}

/// Returns the words for events as JSON has them.
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
