//! Types of fields whose JSON differs from their form in Rust.

use super::description::{FieldDescription, Form};
use super::field::{Field, leaf};
use crate::kernel::State;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::ops::Deref;

/// Pages in each state. JSON has a field for every state, 0 if there are none, so that programs can rely on them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct EveryState(pub BTreeMap<State, u64>);

impl EveryState {
    const FIELDS: [FieldDescription; State::ALL.len()] = {
        let none = FieldDescription::new("", "Pages in this state.", Form::Number);
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
    const FORM: Form = Form::Object(&Self::FIELDS);

    fn write<M: SerializeMap>(&self, _: &'static str, map: &mut M) -> Result<(), M::Error> {
        self.write_flat(map)
    }

    fn write_flat<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        State::ALL
            .iter()
            .try_for_each(|state| map.serialize_entry(state.word(), &self.get(state).copied().unwrap_or(0)))
    }
}

/// Names with a number each, in this order: an object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Numbers<K>(pub Vec<(K, u64)>);

impl<K> Numbers<K> {
    /// Their sum.
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
    const FORM: Form = Form::Map(&Form::Number);
}

/// Bytes as digits, two a byte.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = String::with_capacity(2 * self.0.len());
        for byte in &self.0 {
            // Writing to a string does not fail.
            let _ = write!(digits, "{byte:02x}");
        }
        serializer.serialize_str(&digits)
    }
}

leaf!(Bytes => Form::Text);

/// A part that JSON has as its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsText<T>(pub T);

impl<T: Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T: Display> Field for AsText<T> {
    const FORM: Form = Form::Text;
}
