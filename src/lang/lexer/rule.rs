//! What the rules for tokens are made of.

use nom::bytes::complete::{take_while, take_while1};

/// What nom's parsers return here: the rest, and what was found.
pub(super) type Lexed<'a, T> = nom::IResult<&'a str, T>;

pub(in crate::lang) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

pub(super) fn is_letter(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

pub(super) fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

pub(super) fn blanks0(text: &str) -> Lexed<'_, &str> {
    take_while(is_blank)(text)
}

pub(super) fn digits1(text: &str) -> Lexed<'_, &str> {
    take_while1(|c: char| c.is_ascii_digit())(text)
}

/// The rule does not match here.
pub(super) fn no_match<T>(text: &str) -> Lexed<'_, T> {
    Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Verify)))
}
