//! The serialization of facts and records, and the descriptions of records. The type of a field decides its form: that
//! of an unknown one is a [`Fact`]. The reference, the schema and the tests of real output use the descriptions.

mod vocabulary;

use crate::kernel::words::Worded;
use crate::kernel::{Device, FrameNumber, Kind, Name, PageFlags, Permissions, PhysicalAddress, State, VirtualAddress};
use crate::report::flag_names::FLAGS_RAW;
use crate::report::{Fact, Reason};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};
use std::ops::Deref;

/// The form of a value in JSON.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum JsonForm {
    /// `true` or `false`.
    Bool,
    /// An integer.
    Integer,
    /// A number, which may have a fraction.
    Number,
    /// One of a set of words.
    Word(Words),
    /// A string of hexadecimal digits after `0x`.
    Hex,
    /// A string.
    Text,
    /// An array.
    List(&'static JsonForm),
    /// An object with these fields.
    Object(&'static [FieldDescription]),
    /// An object of one of several shapes.
    OneOf {
        /// The name of the field whose value names the shape.
        tag: &'static str,
        /// The shapes.
        shapes: &'static [Shape],
    },
    /// An object whose keys are data and whose values have this form.
    Map(&'static JsonForm),
    /// One of two forms.
    Either(&'static JsonForm, &'static JsonForm),
    /// The form, or `null`.
    OrNull(&'static JsonForm),
    /// Flags, which make two fields: an array of names and a number.
    Flags,
}

/// A set of words.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The name of the set.
    pub name: &'static str,
    /// Returns the words.
    pub all: fn() -> Vec<String>,
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// One field of a record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FieldDescription {
    /// The name in JSON; not used if `is_flat`.
    pub name: &'static str,
    /// The meaning, with the line breaks of the source.
    pub about: &'static str,
    /// The form in JSON.
    pub form: JsonForm,
    /// Whether the field is omitted if it is empty.
    pub is_optional: bool,
    /// Whether the fields of the object replace the field.
    pub is_flat: bool,
}

/// One of several shapes of an object.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// The value of the field that names the shape.
    pub name: &'static str,
    /// The description, with the line breaks of the source.
    pub about: &'static str,
    /// The form of the other fields: an object, or one of several shapes again.
    pub form: JsonForm,
}

/// The name of the field with the reasons for `null`.
pub const WHY: &str = "why";

impl FieldDescription {
    /// Describes a field that is never omitted and not flat.
    pub const fn new(name: &'static str, about: &'static str, form: JsonForm) -> Self {
        FieldDescription { name, about, form, is_optional: false, is_flat: false }
    }

    /// The description of the field with the reasons for `null`.
    pub const WHY: FieldDescription = {
        let about = "Why fields are `null` or uncertain: a reason under the name of each.";
        FieldDescription { is_optional: true, ..FieldDescription::new(WHY, about, JsonForm::Map(&JsonForm::Text)) }
    };
}

impl JsonForm {
    /// Returns the form that `form` or `null` has.
    pub(crate) const fn or_null(form: &'static JsonForm) -> JsonForm {
        match form {
            JsonForm::OrNull(_) => *form,
            _ => JsonForm::OrNull(form),
        }
    }

    /// Returns the form of an enumeration of words; `name` is the name of the set.
    pub const fn word<T: Worded>(name: &'static str) -> JsonForm {
        JsonForm::Word(Words { name, all: || T::words().map(str::to_owned).collect() })
    }

    /// Returns the JSON fields of an object of this form in their order, with flat fields and flags expanded. Of
    /// several shapes, it returns the fields of all; a field that some shape lacks is optional. Returns none if the
    /// form is no object.
    pub fn fields(self) -> Vec<FieldDescription> {
        let mut all = Vec::new();
        match self {
            JsonForm::Object(fields) => fields.iter().for_each(|field| field.expand(&mut all)),
            JsonForm::OneOf { tag, shapes } => {
                all.push(FieldDescription::new(tag, "The form of this record.", JsonForm::Text));
                let shapes: Vec<_> = shapes.iter().map(|shape| shape.form.fields()).collect();
                let everywhere = |name| {
                    let has = |fields: &Vec<FieldDescription>| fields.iter().any(|field| field.name == name);
                    shapes.iter().all(has)
                };
                for field in shapes.iter().flatten() {
                    let is_optional = field.is_optional || !everywhere(field.name);
                    if all.iter().all(|known| known.name != field.name) {
                        all.push(FieldDescription { is_optional, ..*field });
                    }
                }
            }
            JsonForm::OrNull(form) => all = form.fields(),
            _ => {}
        }
        all
    }
}

impl FieldDescription {
    fn expand(&self, all: &mut Vec<FieldDescription>) {
        let is_optional = |field: FieldDescription| FieldDescription {
            is_optional: field.is_optional || matches!(self.form, JsonForm::OrNull(_)),
            ..field
        };
        let (names, number) = match self.form {
            // The `why` of the record contains its reasons.
            _ if self.is_flat => {
                let fields = self.form.fields().into_iter();
                return all.extend(fields.filter(|field| field.name != WHY).map(is_optional));
            }
            JsonForm::Flags => (JsonForm::List(&JsonForm::Text), JsonForm::Hex),
            JsonForm::OrNull(JsonForm::Flags) => {
                (JsonForm::OrNull(&JsonForm::List(&JsonForm::Text)), JsonForm::OrNull(&JsonForm::Hex))
            }
            _ => return all.push(*self),
        };
        all.push(FieldDescription { form: names, ..*self });
        let name = FLAGS_RAW;
        let about = "The same flags as a number.";
        all.push(FieldDescription { name, about, form: number, ..*self });
    }
}

/// A type that may be a field of a record.
pub trait Field: Serialize {
    /// The form of the type in JSON.
    const FORM: JsonForm;

    /// Writes the value under `name`.
    ///
    /// # Errors
    /// Fails if the serializer does.
    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)
    }

    /// Writes `null` under `name`.
    ///
    /// # Errors
    /// Fails if the serializer does.
    fn write_null<M: SerializeMap>(name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, &())
    }

    /// Writes the fields of the value without `why`, if it is an object.
    ///
    /// # Errors
    /// Fails if the serializer does.
    fn write_flat<M: SerializeMap>(&self, _map: &mut M) -> Result<(), M::Error> {
        Ok(())
    }

    /// Writes all fields of an object that stands alone, also `why`.
    ///
    /// # Errors
    /// Fails if the serializer does.
    fn write_object<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.write_flat(map)
    }

    /// Returns whether the value is empty, so that an optional field is omitted.
    fn is_absent(&self) -> bool {
        false
    }

    /// Calls `visit` with the reason for each `null` in the value.
    fn reasons<'a>(&'a self, _name: &'static str, _visit: &mut dyn FnMut(&'static str, &'a Reason)) {}
}

/// A record that is written as one line of JSON.
pub trait Declared: Field {
    /// The type of the record, its description, and its form.
    const SHAPE: Shape;
}

/// Implements [`Field`] for types with a serializer.
macro_rules! leaf {
    ($($type:ty => $form:expr),* $(,)?) => {
        $(impl crate::report::json::Field for $type {
            const FORM: crate::report::json::JsonForm = $form;
        })*
    };
}
pub(crate) use leaf;

/// Implements [`Field`] and the serializer for enumerations of words.
macro_rules! words {
    ($($type:ty => $name:literal),* $(,)?) => {
        $(impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(crate::kernel::words::Worded::word(*self))
            }
        }
        crate::report::json::leaf!($type => crate::report::json::JsonForm::word::<$type>($name));)*
    };
}
pub(crate) use words;

leaf! {
    char => JsonForm::Text,
    u8 => JsonForm::Integer,
    u32 => JsonForm::Integer,
    u64 => JsonForm::Integer,
    usize => JsonForm::Integer,
    f64 => JsonForm::Number,
    String => JsonForm::Text,
    &'static str => JsonForm::Text,
    Name => JsonForm::Text,
    State => JsonForm::word::<State>("state"),
    Kind => JsonForm::word::<Kind>("kind"),
    Permissions => JsonForm::Text,
    Device => JsonForm::Text,
    VirtualAddress => JsonForm::Hex,
    PhysicalAddress => JsonForm::Hex,
    FrameNumber => JsonForm::Integer,
    Hex => JsonForm::Hex,
}

/// A number that is serialized as a hexadecimal string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hex(pub u64);

impl fmt::LowerHex for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl Field for bool {
    const FORM: JsonForm = JsonForm::Bool;

    fn is_absent(&self) -> bool {
        !self
    }
}

/// Flags are written by name, and under `flags_raw` as a number.
impl Field for PageFlags {
    const FORM: JsonForm = JsonForm::Flags;

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)?;
        map.serialize_entry(FLAGS_RAW, &Hex(self.bits()))
    }

    fn write_null<M: SerializeMap>(name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, &())?;
        map.serialize_entry(FLAGS_RAW, &())
    }
}

/// A value that may not exist is `null`, without a reason.
impl<T: Field> Field for Option<T> {
    const FORM: JsonForm = JsonForm::or_null(&T::FORM);

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        match self {
            Some(value) => value.write(name, map),
            None => T::write_null(name, map),
        }
    }

    fn write_null<M: SerializeMap>(name: &'static str, map: &mut M) -> Result<(), M::Error> {
        T::write_null(name, map)
    }

    fn write_flat<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.as_ref().map_or(Ok(()), |value| value.write_flat(map))
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn reasons<'a>(&'a self, name: &'static str, visit: &mut dyn FnMut(&'static str, &'a Reason)) {
        if let Some(value) = self {
            value.reasons(name, visit);
        }
    }
}

/// A value that may be unknown is `null`, with the reason under `why`.
impl<T: Field> Field for Fact<T> {
    const FORM: JsonForm = JsonForm::or_null(&T::FORM);

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        match self {
            Ok(value) => value.write(name, map),
            Err(_) => T::write_null(name, map),
        }
    }

    fn reasons<'a>(&'a self, name: &'static str, visit: &mut dyn FnMut(&'static str, &'a Reason)) {
        match self {
            Ok(value) => value.reasons(name, visit),
            Err(reason) => visit(name, reason),
        }
    }
}

impl<T: Field> Field for Vec<T> {
    const FORM: JsonForm = JsonForm::List(&T::FORM);

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<K: Serialize + Ord, T: Field> Field for BTreeMap<K, T> {
    const FORM: JsonForm = JsonForm::Map(&T::FORM);

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Field> Field for Box<T> {
    const FORM: JsonForm = T::FORM;

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        T::write(self, name, map)
    }

    fn reasons<'a>(&'a self, name: &'static str, visit: &mut dyn FnMut(&'static str, &'a Reason)) {
        T::reasons(self, name, visit);
    }
}

/// The pages in each state. JSON has a field for every state, also with 0 pages.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct EveryState(pub BTreeMap<State, u64>);

impl EveryState {
    const FIELDS: [FieldDescription; State::ALL.len()] = {
        let none = FieldDescription::new("", "Pages in this state.", JsonForm::Integer);
        let mut fields = [none; State::ALL.len()];
        let mut index = 0;
        while index < fields.len() {
            fields[index].name = State::ALL[index].word();
            index += 1;
        }
        fields
    };
}

impl Deref for EveryState {
    type Target = BTreeMap<State, u64>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Field for EveryState {
    const FORM: JsonForm = JsonForm::Object(&Self::FIELDS);

    fn write<M: SerializeMap>(&self, _: &'static str, map: &mut M) -> Result<(), M::Error> {
        self.write_flat(map)
    }

    fn write_flat<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        State::ALL
            .iter()
            .try_for_each(|state| map.serialize_entry(state.word(), &self.get(state).copied().unwrap_or(0)))
    }
}

/// Numbers by name, which are serialized as an object in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Numbers<K>(pub Vec<(K, u64)>);

impl<K> Numbers<K> {
    /// Returns the sum of the numbers.
    pub fn sum(&self) -> u64 {
        self.iter().map(|(_, number)| *number).sum()
    }
}

impl<K> Deref for Numbers<K> {
    type Target = [(K, u64)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<K: Serialize> Serialize for Numbers<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, number)| (name, number)))
    }
}

impl<K: Serialize> Field for Numbers<K> {
    const FORM: JsonForm = JsonForm::Map(&JsonForm::Integer);
}

/// Bytes that are serialized as two hexadecimal digits each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HexString(pub Vec<u8>);

impl Serialize for HexString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = String::with_capacity(2 * self.0.len());
        for byte in &self.0 {
            // Writing to a string does not fail.
            let _ = write!(digits, "{byte:02x}");
        }
        serializer.serialize_str(&digits)
    }
}

leaf!(HexString => JsonForm::Text);

/// A part that JSON has as its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsText<T>(pub T);

impl<T: Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T: Display> Field for AsText<T> {
    const FORM: JsonForm = JsonForm::Text;
}
