//! The clauses of `regions` and `walk`, which `foreach` has too.

use nom::Parser;
use nom::combinator::{cut, map, opt};
use nom::sequence::preceded;

use super::arguments::{GroupKey, Regions, Walk};
use super::tree::Command;
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, filter, mark, one_of, part_of_name, range, word};

/// The words that begin a clause of `regions`. A part of a name may stand before them.
const REGION_CLAUSES: &[&str] = &["where", "by", "limit", "top", "full"];

pub(crate) fn regions(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (mut input, name) = opt(|input| part_of_name(input, REGION_CLAUSES)).parse(input)?;
    let (mut where_, mut by, mut cut, mut full) = (None, None, None, None);
    while clause(&mut input, &mut where_, after("where", filter))?
        || clause(&mut input, &mut by, after("by", one_of))?
        || clause(&mut input, &mut cut, cut_to)?
        || clause(&mut input, &mut full, word("full"))?
    {}
    Ok((input, Command::Regions(Regions { name, filter: where_, by, cut, full: full.is_some() })))
}

pub(crate) fn walk(input: Tokens<'_>) -> Parsed<'_, Command> {
    pages(input, true)
}

/// The clauses of `walk` without `by`: a group has no address that a variable could hold.
pub(crate) fn ungrouped(input: Tokens<'_>) -> Parsed<'_, Command> {
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
