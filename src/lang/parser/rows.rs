//! The clauses of `regions` and `walk`, which `foreach` has too.

use nom::Parser;
use nom::combinator::{cut, map, opt};
use nom::sequence::preceded;

use super::expression::filter;
use super::range::range;
use super::raw::part_of_name;
use super::stream::{Failed, Parsed, Tokens, cut_to, mark, one_of, word};
use crate::lang::syntax::{Command, GroupKey, Regions, Walk};

/// Takes a clause if it stands here and was not given yet. Returns whether it was taken.
pub(super) fn clause<'a, T>(
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
pub(super) fn after<'a, T>(
    keyword: &'static str,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl Fn(Tokens<'a>) -> Parsed<'a, T> {
    move |input| preceded(word(keyword), cut(&parser)).parse(input)
}

/// The words that begin a clause of `regions`. A part of a name may stand before them.
const REGION_CLAUSES: &[&str] = &["where", "by", "limit", "top", "full"];

pub(super) fn regions(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (mut input, name) = opt(|input| part_of_name(input, REGION_CLAUSES)).parse(input)?;
    let (mut where_, mut by, mut cut, mut full) = (None, None, None, None);
    while clause(&mut input, &mut where_, after("where", filter))?
        || clause(&mut input, &mut by, after("by", one_of))?
        || clause(&mut input, &mut cut, cut_to)?
        || clause(&mut input, &mut full, word("full"))?
    {}
    Ok((input, Command::Regions(Regions { name, filter: where_, by, cut, full: full.is_some() })))
}

pub(super) fn walk(input: Tokens<'_>) -> Parsed<'_, Command> {
    pages(input, true)
}

/// The clauses of `walk` without `by`: a group has no address that a variable could hold.
pub(super) fn ungrouped(input: Tokens<'_>) -> Parsed<'_, Command> {
    pages(input, false)
}

fn pages(input: Tokens<'_>, may_group: bool) -> Parsed<'_, Command> {
    let (mut input, range) = range(input)?;
    let (mut where_, mut by, mut cut) = (None, None, None);
    while clause(&mut input, &mut where_, after("where", filter))?
        || (may_group && clause(&mut input, &mut by, after("by", group_keys))?)
        || clause(&mut input, &mut cut, cut_to)?
    {}
    Ok((input, Command::Walk(Walk { range, filter: where_, by: by.unwrap_or_default(), cut })))
}

/// `KEY`, or `KEY, KEY`.
fn group_keys(input: Tokens<'_>) -> Parsed<'_, Vec<GroupKey>> {
    let (behind, first) = one_of(input)?;
    let second = preceded(mark(","), cut(one_of));
    map(opt(second), |second| std::iter::once(first).chain(second).collect()).parse(behind)
}
