//! Enumerations whose variants each have a word.

/// Declares an enumeration with its words: a list of all variants in their order, and a method, of the name that is given, for the word.
/// A variant is declared once, so that none is missing from the list.
macro_rules! worded {
    (
        $(#[$meta:meta])*
        pub enum $name:ident, $word:ident {
            $($(#[$of_variant:meta])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$of_variant])* $variant,)*
        }

        impl $name {
            /// Every one, in the order of the words.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word for it.
            pub const fn $word(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }
    };
}

pub(crate) use worded;
