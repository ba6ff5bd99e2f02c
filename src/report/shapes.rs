//! The declaration of a record of several shapes.

/// Declares a record of several shapes: an enum, whose JSON says in the field `by` which shape it is. The word after
/// `as` is its type, as in [`record!`](crate::report::record).
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
            const FORM: crate::report::json::Form = crate::report::json::Form::OneOf {
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
pub(crate) use shapes;
