//! The declaration of a record: its fields, their meanings, and their JSON, in one place; and its reasons: why fields of
//! it are `null`.

use super::flag_names::FLAGS_RAW;
#[cfg(feature = "serde")]
use super::json::{Field, JsonForm};
use super::{Fact, Reason};
use std::collections::BTreeMap;

/// Declares records: for each a struct of public fields, its JSON, and a description of its fields for the reference.
///
/// Each field is a [`Field`](super::field::Field), whose type decides how it is written. Before its name may stand
/// - `[optional]`: it is left out when it is empty,
/// - `[flat]`: it is a record itself, whose fields stand in its place,
/// - `[as "name"]`: its name in JSON, if Rust does not allow that name.
///
/// After the name of a record may stand `as "type"`: it is a line of its own, of this type ([`Declared`]), and its
/// comment is what the reference says about it. Others are parts of records.
///
/// Then may stand how the reasons for its unknown fields are written:
/// - `with why`: as an object `why`, left out when there is none,
/// - `with why if any`: the same for a row, without reasons of the kind "not applicable",
/// - `within "name"`: it is only part of another record, as the field of that name, and that record has its reasons.
macro_rules! record {
    (
        $(
            $(#[doc = $about:literal])+
            $(#[derive($($derived:ident),+)])?
            pub struct $record:ident $(as $name:literal)? $(with $why:ident $($when:ident)*)? $(within $within:literal)? {
                $($fields:tt)*
            }
        )+
    ) => {
        $(
            record!(
                @declare [$(#[doc = $about])+ $(#[derive($($derived),+)])?]
                $record [$($why $($when)*)?] [$($within)?] { $($fields)* }
            );
            record!(@named $record [$($name)?] $($about)+);
        )+
    };

    (@named $record:ident [] $($about:literal)+) => {};
    (@named $record:ident [$name:literal] $($about:literal)+) => {
        impl crate::report::json::Declared for $record {
            const SHAPE: crate::report::json::Shape = crate::report::json::Shape {
                name: $name,
                about: concat!($($about, "\n"),+).trim_ascii(),
                form: <$record as crate::report::json::Field>::FORM,
            };
        }
    };

    (
        @declare [$($meta:tt)*] $record:ident $why:tt $within:tt {
            $(
                $(#[doc = $about:literal])+
                $([$($mark:tt)+])? $field:ident: $type:ty,
            )*
        }
    ) => {
        $($meta)*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $record {
            $(
                $(#[doc = $about])+
                pub $field: $type,
            )*
        }

        #[cfg(feature = "serde")]
        impl $record {
            /// Its fields, in the order of JSON.
            #[doc(hidden)]
            pub const FIELDS: &'static [crate::report::json::FieldDescription] = record!(@fields $why
                $(crate::report::json::FieldDescription {
                    name: record!(@name $field $([$($mark)+])?),
                    about: concat!($($about, "\n"),+).trim_ascii(),
                    form: <$type as crate::report::json::Field>::FORM,
                    is_optional: record!(@is_optional $([$($mark)+])?),
                    is_flat: record!(@is_flat $([$($mark)+])?),
                },)*
            );
        }

        #[cfg(feature = "serde")]
        impl crate::report::json::Field for $record {
            const FORM: crate::report::json::JsonForm = crate::report::json::JsonForm::Object(Self::FIELDS);

            fn write_flat<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $(record!(@write self map $field $([$($mark)+])?);)*
                Ok(())
            }

            fn write_object<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                self.write_flat(map)?;
                record!(@why self map $why);
                Ok(())
            }

            fn reasons<'a>(
                &'a self,
                _name: &'static str,
                visit: &mut dyn FnMut(&'static str, &'a crate::report::Reason),
            ) {
                $(crate::report::json::Field::reasons(
                    &self.$field,
                    record!(@path $within $field $([$($mark)+])?),
                    visit,
                );)*
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $record {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use crate::report::json::Field;
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                self.write_object(&mut map)?;
                map.end()
            }
        }
    };

    (@fields [] $($field:expr,)*) => { &[$($field),*] };
    (@fields [why $($when:ident)*] $($field:expr,)*) => {
        &[$($field,)* crate::report::json::FieldDescription::WHY]
    };

    (@name $field:ident [as $name:literal]) => { $name };
    (@name $field:ident $([$mark:ident])?) => { stringify!($field) };

    (@path [$within:literal] $field:ident [as $name:literal]) => { concat!($within, ".", $name) };
    (@path [$within:literal] $field:ident $([$mark:ident])?) => { concat!($within, ".", stringify!($field)) };
    (@path [] $field:ident $([$($mark:tt)+])?) => { record!(@name $field $([$($mark)+])?) };

    (@is_optional [optional]) => { true };
    (@is_optional $([$($mark:tt)+])?) => { false };

    (@is_flat [flat]) => { true };
    (@is_flat $([$($mark:tt)+])?) => { false };

    (@write $self:ident $map:ident $field:ident [optional]) => {
        if !crate::report::json::Field::is_absent(&$self.$field) {
            record!(@write $self $map $field);
        }
    };
    (@write $self:ident $map:ident $field:ident [flat]) => {
        crate::report::json::Field::write_flat(&$self.$field, $map)?
    };
    (@write $self:ident $map:ident $field:ident $([as $name:literal])?) => {
        crate::report::json::Field::write(&$self.$field, record!(@name $field $([as $name])?), $map)?
    };

    (@why $self:ident $map:ident []) => {};
    (@why $self:ident $map:ident [why $(if $when:ident)?]) => {
        let why = record!(@why_of $self $($when)?);
        if !why.is_empty() {
            $map.serialize_entry("why", &why)?;
        }
    };

    (@why_of $self:ident) => { crate::report::Why::of_record($self) };
    (@why_of $self:ident any) => { crate::report::Why::of_row($self) };
}
pub(crate) use record;

/// Declares a record of several shapes: an enum, whose JSON says in the field `by` which shape it is. The word after
/// `as` is its type, as in [`record!`](crate::report::record).
#[cfg(feature = "cli")]
macro_rules! shapes {
    (
        $(#[doc = $about_all:literal])+
        pub enum $record:ident as $type:literal by $tag:literal {
            $(
                $(#[doc = $about:literal])+
                $name:literal $variant:ident($shape:ty),
            )*
        }
    ) => {
        $(#[doc = $about_all])+
        #[derive(Clone, PartialEq, Debug)]
        pub enum $record {
            $(
                $(#[doc = $about])+
                $variant($shape),
            )*
        }

        impl crate::report::json::Declared for $record {
            const SHAPE: crate::report::json::Shape = crate::report::json::Shape {
                name: $type,
                about: concat!($($about_all, "\n"),+).trim_ascii(),
                form: <$record as crate::report::json::Field>::FORM,
            };
        }

        impl crate::report::json::Field for $record {
            const FORM: crate::report::json::JsonForm = crate::report::json::JsonForm::OneOf {
                tag: $tag,
                shapes: &[$(crate::report::json::Shape {
                    name: $name,
                    about: concat!($($about, "\n"),+).trim_ascii(),
                    form: <$shape as crate::report::json::Field>::FORM,
                },)*],
            };

            fn write_flat<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $($record::$variant(shape) => {
                        map.serialize_entry($tag, $name)?;
                        crate::report::json::Field::write_object(shape, map)
                    })*
                }
            }
        }

        impl serde::Serialize for $record {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use crate::report::json::Field;
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                self.write_object(&mut map)?;
                map.end()
            }
        }
    };
}
#[cfg(feature = "cli")]
pub(crate) use shapes;

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
    const FORM: JsonForm = JsonForm::Object(&[]);

    fn write<M: serde::ser::SerializeMap>(&self, _: &'static str, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }

    fn reasons<'a>(&'a self, _: &'static str, visit: &mut dyn FnMut(&'static str, &'a Reason)) {
        self.iter().for_each(|(field, reason)| visit(field, reason));
    }
}
