//! The clauses of `regions` and `walk`, which `foreach` has too.

use nom::Parser;
use nom::combinator::opt;

use super::arguments::Regions;
use super::tree::Command;
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, filter, one_of, part_of_name, word};

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
