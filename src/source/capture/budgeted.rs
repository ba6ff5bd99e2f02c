//! Reads untrusted JSON: memory for each value is charged to a budget before it is allocated.
//!
//! An element `{}` of a list has three bytes, and may become a structure of a kilobyte. So each element of a list and
//! each entry of a map is charged with the size of its type before it is kept. The types themselves need no code for
//! this.

use crate::budget::{Budget, OutOfBudget};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt::{self, Formatter};

/// Factor for growth: a list doubles its capacity while it is filled, and a node of a map has empty slots.
const GROWTH: u64 = 2;

/// Reads a value from JSON, and the names of fields that are skipped.
///
/// # Errors
/// Fails with [`OutOfBudget`] if the value needs more memory or time. Returns no value if the JSON is damaged.
pub(super) fn read<'de, T: Deserialize<'de>>(
    json: &'de [u8],
    budget: &mut Budget,
) -> Result<Option<(T, Vec<String>)>, OutOfBudget> {
    let (mut over, mut passed_over) = (None, BTreeSet::new());
    let mut text = serde_json::Deserializer::from_slice(json);
    let mut spent = Spent { budget, over: &mut over, field: String::new(), passed_over: &mut passed_over };
    let value = T::deserialize(Budgeted { inner: &mut text, spent: &mut spent });
    match (over, value) {
        (Some(over), _) => Err(over),
        (None, Ok(value)) if text.end().is_ok() => Ok(Some((value, passed_over.into_iter().collect()))),
        (None, _) => Ok(None),
    }
}

struct Spent<'b> {
    budget: &'b mut Budget,
    over: &'b mut Option<OutOfBudget>,
    /// The first bytes of the name of the last field.
    field: String,
    /// The names of unknown fields, up to a limit.
    passed_over: &'b mut BTreeSet<String>,
}

/// The longest name of a field that is kept, in bytes, and the most names.
const LONGEST_FIELD: usize = 40;
const MOST_FIELDS: usize = 20;

impl Spent<'_> {
    /// Charges memory for one value of this type, and `more` bytes.
    fn hold<T, E: serde::de::Error>(&mut self, more: usize) -> Result<(), E> {
        let bytes = (size_of::<T>() as u64).saturating_mul(GROWTH).saturating_add(more as u64);
        self.budget.go_on().and_then(|()| self.budget.hold(bytes)).map_err(|over| {
            *self.over = Some(over);
            E::custom(over)
        })
    }
}

/// A deserializer, visitor, seed or access of serde, with the budget of its values.
struct Budgeted<'s, 'b, I> {
    inner: I,
    spent: &'s mut Spent<'b>,
}

/// A [`Budgeted`] for the fields of a structure, which are stored in it and charged with it.
struct InPlace<'s, 'b, I>(Budgeted<'s, 'b, I>);

macro_rules! forward {
    ($($method:ident($($argument:ident: $kind:ty),*) with $wrapper:tt;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, Self::Error> {
            let visitor = Budgeted { inner: visitor, spent: self.spent };
            self.inner.$method($($argument,)* forward!(@ $wrapper visitor))
        }
    )*};
    (@ counted $visitor:ident) => { $visitor };
    (@ in_place $visitor:ident) => { InPlace($visitor) };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Budgeted<'_, '_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any() with counted;
        deserialize_bool() with counted;
        deserialize_i8() with counted;
        deserialize_i16() with counted;
        deserialize_i32() with counted;
        deserialize_i64() with counted;
        deserialize_i128() with counted;
        deserialize_u8() with counted;
        deserialize_u16() with counted;
        deserialize_u32() with counted;
        deserialize_u64() with counted;
        deserialize_u128() with counted;
        deserialize_f32() with counted;
        deserialize_f64() with counted;
        deserialize_char() with counted;
        deserialize_str() with counted;
        deserialize_string() with counted;
        deserialize_bytes() with counted;
        deserialize_byte_buf() with counted;
        deserialize_option() with counted;
        deserialize_unit() with counted;
        deserialize_unit_struct(name: &'static str) with counted;
        deserialize_newtype_struct(name: &'static str) with counted;
        deserialize_seq() with counted;
        deserialize_map() with counted;
        deserialize_tuple(length: usize) with in_place;
        deserialize_tuple_struct(name: &'static str, length: usize) with in_place;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) with in_place;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) with counted;
    }

    /// Reads the name of a field or of a variant.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.inner.deserialize_identifier(Named { inner: visitor, field: &mut self.spent.field })
    }

    /// Skips the value of an unknown field, and keeps its name.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.spent.passed_over.len() < MOST_FIELDS {
            self.spent.passed_over.insert(std::mem::take(&mut self.spent.field));
        }
        self.inner.deserialize_ignored_any(visitor)
    }
}

/// The visitor of a name, and the place in which the name is kept.
struct Named<'s, V> {
    inner: V,
    field: &'s mut String,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Named<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<V::Value, E> {
        self.field.clear();
        self.field.extend(name.chars().filter(char::is_ascii_graphic).take(LONGEST_FIELD));
        self.inner.visit_str(name)
    }
}

macro_rules! visit {
    ($($method:ident($kind:ty);)*) => {$(
        fn $method<E: serde::de::Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Budgeted<'_, '_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool);
        visit_i64(i64);
        visit_i128(i128);
        visit_u64(u64);
        visit_u128(u128);
        visit_f64(f64);
        visit_char(char);
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<V::Value, E> {
        self.spent.hold::<(), E>(text.len())?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.spent.hold::<(), E>(text.len())?;
        self.inner.visit_borrowed_str(text)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Budgeted { inner, spent: self.spent })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Budgeted { inner, spent: self.spent })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Budgeted { inner, spent: self.spent })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Budgeted { inner, spent: self.spent })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Budgeted { inner, spent: self.spent })
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for InPlace<'_, '_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.inner.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.0.inner.visit_seq(InPlace(Budgeted { inner, spent: self.0.spent }))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.0.inner.visit_map(InPlace(Budgeted { inner, spent: self.0.spent }))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Budgeted<'_, '_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Budgeted { inner, spent: self.spent })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Budgeted<'_, '_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<Option<S::Value>, A::Error> {
        let element = self.inner.next_element_seed(Budgeted { inner, spent: self.spent })?;
        // This charges the place of the element in the list. The contents of the element are charged separately.
        element.map(|element| self.spent.hold::<S::Value, A::Error>(0).map(|()| element)).transpose()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Budgeted<'_, '_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(Budgeted { inner, spent: self.spent })?;
        key.map(|key| self.spent.hold::<S::Value, A::Error>(0).map(|()| key)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<S::Value, A::Error> {
        self.spent.hold::<S::Value, A::Error>(0)?;
        self.inner.next_value_seed(Budgeted { inner, spent: self.spent })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for InPlace<'_, '_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<Option<S::Value>, A::Error> {
        self.0.inner.next_element_seed(Budgeted { inner, spent: self.0.spent })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for InPlace<'_, '_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<Option<S::Value>, A::Error> {
        self.0.inner.next_key_seed(Budgeted { inner, spent: self.0.spent })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<S::Value, A::Error> {
        self.0.inner.next_value_seed(Budgeted { inner, spent: self.0.spent })
    }
}

impl<'de, 's, 'b, A: EnumAccess<'de>> EnumAccess<'de> for Budgeted<'s, 'b, A> {
    type Error = A::Error;
    type Variant = Budgeted<'s, 'b, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, inner) = self.inner.variant_seed(seed)?;
        Ok((value, Budgeted { inner, spent: self.spent }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Budgeted<'_, '_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, inner: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Budgeted { inner, spent: self.spent })
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, inner: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(length, InPlace(Budgeted { inner, spent: self.spent }))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], inner: V) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, InPlace(Budgeted { inner, spent: self.spent }))
    }
}
