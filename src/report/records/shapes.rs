//! The declaration of a record of several shapes.

/// Declares a record of several shapes: an enum, whose JSON says in the field `by` which shape it is.
macro_rules! shapes {
    (
        $(#[$meta:meta])*
        pub enum $record:ident by $tag:literal {
            $(
                $(#[doc = $about:literal])+
                $name:literal $variant:ident($shape:ty),
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize)]
        #[serde(tag = $tag)]
        pub enum $record {
            $(
                $(#[doc = $about])+
                #[serde(rename = $name)]
                $variant($shape),
            )*
        }

        impl $record {
            /// The shapes, in the order of their declaration.
            pub const SHAPES: &'static [crate::report::json::Shape] = &[
                $(crate::report::json::Shape {
                    name: $name,
                    about: concat!($($about, "\n"),+).trim_ascii(),
                    form: <$shape as crate::report::json::Field>::FORM,
                },)*
            ];
        }

        impl crate::report::json::Field for $record {
            const FORM: crate::report::json::Form = crate::report::json::Form::OneOf {
                tag: $tag,
                shapes: Self::SHAPES,
            };
        }
    };
}
pub(super) use shapes;
