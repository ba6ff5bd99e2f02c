//! Enumerations whose variants each have a word.

/// An enumeration whose variants have words, for parsers of them.
pub trait Worded: Copy + PartialEq + 'static {
    /// All variants, in the order of the words.
    const ALL: &'static [Self];

    /// Returns the word of the variant.
    fn word(self) -> &'static str;

    /// Returns the meaning of the variant in one sentence: its doc comment.
    fn about(self) -> &'static str;

    /// Returns the variant with this word.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.word() == word)
    }

    /// Returns all words.
    fn words() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|one| one.word())
    }
}

/// Converts a doc comment to the meaning in a row of a table: a fragment, without a capital and a full stop.
/// Abbreviations keep their capitals.
pub fn fragment(about: &str) -> String {
    let about = about.trim_end_matches('.');
    let mut letters = about.chars();
    let is_abbreviation = about.starts_with(|first: char| first.is_uppercase())
        && about.chars().nth(1).is_some_and(|second| second.is_uppercase());
    let first = letters.next().map(|first| if is_abbreviation { first } else { first.to_ascii_lowercase() });
    first.into_iter().chain(letters).collect()
}

/// Declares an enumeration with a word for each variant, a list of all variants, and a method, with the given name,
/// that returns the word. A variant is declared once, so that the list cannot miss one.
macro_rules! worded {
    (
        $(#[$meta:meta])*
        pub enum $name:ident, $word:ident {
            $($(#[doc = $about:literal])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[doc = $about])* $variant,)*
        }

        impl $name {
            /// All variants, in the order of the words.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Returns the word of the variant.
            pub const fn $word(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.$word())
            }
        }

        impl $crate::kernel::words::Worded for $name {
            const ALL: &'static [Self] = $name::ALL;

            fn word(self) -> &'static str {
                self.$word()
            }

            fn about(self) -> &'static str {
                match self {
                    $($name::$variant => concat!($($about),*).trim_ascii_start(),)*
                }
            }
        }
    };
}

pub(crate) use worded;
