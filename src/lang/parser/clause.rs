//! Clauses: a word, and what must follow it.

use nom::Parser;
use nom::combinator::cut;
use nom::sequence::preceded;

use super::input::{Failed, Parsed, Tokens};
use super::stream::{one_of, with_commas, word};
use crate::kernel::words::Worded;

/// Takes a clause if it stands here and was not given yet. Returns whether it was taken.
pub(crate) fn clause<'a, T>(
    input: &mut Tokens<'a>,
    slot: &mut Option<T>,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> Result<bool, nom::Err<Failed>> {
    if slot.is_some() {
        return Ok(false);
    }
    match parser(*input) {
        Ok((behind, found)) => {
            *input = behind;
            *slot = Some(found);
            Ok(true)
        }
        Err(nom::Err::Error(_)) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// A word and what must follow it.
pub(crate) fn after<'a, T>(
    keyword: &'static str,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl Fn(Tokens<'a>) -> Parsed<'a, T> {
    move |input| preceded(word(keyword), cut(&parser)).parse(input)
}

/// Says how to write one of the words `T` that stands here without `with`.
pub(crate) fn hint_at_missing_with<T: Worded>(input: Tokens<'_>) {
    let word = input.first().map(|token| token.text).filter(|word| T::from_word(word).is_some());
    if let Some(word) = word {
        input.hint(format!("put `with` before it: with {word}"));
    }
}

/// Words with commas between them, each kept once.
pub(crate) fn list_once<T: Worded + PartialEq>(input: Tokens<'_>) -> Parsed<'_, Vec<T>> {
    let (behind, kinds) = with_commas(one_of).parse(input)?;
    let mut once = Vec::new();
    for kind in kinds {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    Ok((behind, once))
}
