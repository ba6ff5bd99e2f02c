//! The declaration of records, with their fields, meanings and JSON in one place; and the reasons of a record, why
//! fields of it are `null`.

use super::flag_names::FLAGS_RAW;
#[cfg(feature = "serde")]
use super::json::{Field, JsonForm};
use super::{Fact, Reason};
use std::collections::BTreeMap;

/// Declares records. Makes for each a struct with public fields, its JSON, and the descriptions of its fields for the
/// reference.
///
/// Each field is a [`Field`](super::json::Field), whose type decides its form. Its name may follow
/// - `[optional]`: it is omitted if it is empty,
/// - `[flat]`: it is a record, whose fields replace it,
/// - `[as "name"]`: the name in JSON, if Rust does not allow it.
///
/// `as "type"` after the name of a record makes it a line of JSON of this type ([`Declared`]), which the reference
/// describes by its comment. Without it the record is a part of others.
///
/// After that, a clause decides how the reasons for unknown fields are written:
/// - `with why`: as an object `why`, omitted if it is empty,
/// - `with why if any`: the same for a row, without reasons of the kind "not applicable",
/// - `within "name"`: by the record that has this one as its field of that name.
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
            /// The descriptions of the fields in the order of JSON.
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

/// Declares a record of several shapes. Makes an enum, whose JSON names the shape in the field after `by`. The word
/// after `as` is the type, as in [`record!`](crate::report::record).
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

/// The reasons of a record, by the name of the field that is `null` or uncertain.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Why(BTreeMap<&'static str, Reason>);

impl Why {
    /// Returns the value of a fact if it is known, and otherwise notes the reason under `field`.
    pub fn take<T>(&mut self, field: &'static str, fact: Fact<T>) -> Option<T> {
        match fact {
            Ok(value) => Some(value),
            Err(reason) => {
                self.note(field, &reason);
                None
            }
        }
    }
    /// Notes the reason why `field` is unknown.
    pub fn note(&mut self, field: &'static str, reason: &Reason) {
        self.0.insert(field, reason.clone());
        // The same fact as a number.
        if field == "flags" {
            self.0.insert(FLAGS_RAW, reason.clone());
        }
    }
    /// Removes the reason for `field`, which turned out to be known.
    pub fn forget(&mut self, field: &str) {
        self.0.remove(field);
    }
    /// Returns the reason for `field`.
    pub fn of(&self, field: &str) -> Option<&Reason> {
        self.0.get(field)
    }
    /// Returns the fields and their reasons, by the name of the field.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Reason)> {
        self.0.iter().map(|(field, reason)| (*field, reason))
    }
    /// Returns whether no field has a reason.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(feature = "serde")]
impl Why {
    /// Returns the reasons in a record.
    pub fn of_record(record: &impl Field) -> Self {
        let mut why = Why::default();
        record.reasons("", &mut |field, reason| why.note(field, reason));
        why
    }
    /// Returns the reasons in a row, without those of the kind "not applicable".
    pub fn of_row(row: &impl Field) -> Self {
        let mut why = Why::of_record(row);
        why.0.retain(|_, reason| !matches!(reason, Reason::NotApplicable(_)));
        why
    }
}

/// Reasons for fields with an uncertain value. `why` of the record contains them; no field is written for them.
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
