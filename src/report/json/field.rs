//! How the fields of records are written as JSON. The type of a field decides: one that may be unknown is a [`Fact`].

use super::description::{Form, Shape};
use crate::kernel::{Device, FrameNumber, Kind, Name, PageFlags, Permissions, PhysicalAddress, State, VirtualAddress};
use crate::report::flag_names::FLAGS_RAW;
use crate::report::{Fact, Reason};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// A type that may be a field of a record.
pub trait Field: Serialize {
    /// What it is in JSON.
    const FORM: Form;

    /// Writes it under `name`.
    ///
    /// # Errors
    /// Those of the serializer.
    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)
    }

    /// Writes `null` under `name`.
    ///
    /// # Errors
    /// Those of the serializer.
    fn write_null<M: SerializeMap>(name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, &())
    }

    /// Writes its own fields, where it is an object.
    ///
    /// # Errors
    /// Those of the serializer.
    fn write_flat<M: SerializeMap>(&self, _map: &mut M) -> Result<(), M::Error> {
        Ok(())
    }

    /// Writes all that it has as an object by itself: its own fields, and the reasons for those that are `null`.
    ///
    /// # Errors
    /// Those of the serializer.
    fn write_object<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.write_flat(map)
    }

    /// Whether it is empty, so that an optional field is left out.
    fn is_absent(&self) -> bool {
        false
    }

    /// Visits the reasons for what is `null` in it.
    fn reasons<'a>(&'a self, _name: &'static str, _visit: &mut dyn FnMut(&'static str, &'a Reason)) {}
}

/// A record that is a line of its own in JSON.
pub trait Declared: Field {
    /// Its type, the sentence about it, and its fields.
    const SHAPE: Shape;
}

/// Types that serialize as they are.
macro_rules! leaf {
    ($($type:ty => $form:expr),* $(,)?) => {
        $(impl crate::report::json::Field for $type {
            const FORM: crate::report::json::Form = $form;
        })*
    };
}
pub(crate) use leaf;

leaf! {
    char => Form::Text,
    u8 => Form::Integer,
    u32 => Form::Integer,
    u64 => Form::Integer,
    usize => Form::Integer,
    f64 => Form::Number,
    String => Form::Text,
    &'static str => Form::Text,
    Name => Form::Text,
    State => Form::word::<State>("state"),
    Kind => Form::word::<Kind>("kind"),
    Permissions => Form::Text,
    Device => Form::Text,
    VirtualAddress => Form::Hex,
    PhysicalAddress => Form::Hex,
    FrameNumber => Form::Integer,
    Hex => Form::Hex,
}

/// A word as a hexadecimal string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hex(pub u64);

impl fmt::LowerHex for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl Field for bool {
    const FORM: Form = Form::Bool;

    fn is_absent(&self) -> bool {
        !self
    }
}

/// Flags by name, and under `flags_raw` as a number.
impl Field for PageFlags {
    const FORM: Form = Form::Flags;

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)?;
        map.serialize_entry(FLAGS_RAW, &Hex(self.bits()))
    }

    fn write_null<M: SerializeMap>(name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, &())?;
        map.serialize_entry(FLAGS_RAW, &())
    }
}

/// A value that may not exist: `null` without a reason.
impl<T: Field> Field for Option<T> {
    const FORM: Form = Form::OrNull(&T::FORM);

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

/// A value that may be unknown: `null`, with the reason under `why`.
impl<T: Field> Field for Fact<T> {
    const FORM: Form = Form::OrNull(&T::FORM);

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
    const FORM: Form = Form::List(&T::FORM);

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<K: Serialize + Ord, T: Field> Field for BTreeMap<K, T> {
    const FORM: Form = Form::Map(&T::FORM);

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Field> Field for Box<T> {
    const FORM: Form = T::FORM;

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        T::write(self, name, map)
    }

    fn reasons<'a>(&'a self, name: &'static str, visit: &mut dyn FnMut(&'static str, &'a Reason)) {
        T::reasons(self, name, visit);
    }
}
