//! The parsers of the arguments of commands.

mod arguments;
mod printed;
mod rows;
mod tree;

use std::rc::Rc;

use nom::Parser;
use nom::combinator::{cut, map, opt};
use nom::sequence::preceded;

use crate::lang::parser::{
    Parsed, Raw, Tokens, address, after, clause, count, cut_to, hint_at_missing_with, list_once, number, one_of, part,
    pattern, range, raw, silent_mark, snapshot_name, split_text, symbol, value, word,
};
use crate::lang::{Cut, Expected, Spanned, Statement};
pub use arguments::*;
pub(super) use rows::regions;
pub use tree::*;

/// Parses the arguments of one command.
type Arguments = for<'a> fn(Tokens<'a>) -> Parsed<'a, Command>;

fn boxed<'a>(input: Tokens<'a>, parser: Arguments) -> Parsed<'a, Statement> {
    let (behind, command) = parser(input)?;
    Ok((behind, Statement::Command(Rc::new(command))))
}

pub(super) fn parse_attach(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, name) = raw(Expected::Process).parse(input)?;
        Ok((input, Command::Attach(target(name))))
    })
}

pub(super) fn parse_info_process(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoProcess)))
}

pub(super) fn parse_info_threads(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoThreads)))
}

pub(super) fn parse_info_registers(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoRegisters)))
}

pub(super) fn parse_info_capabilities(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoCapabilities)))
}

pub(super) fn parse_ps(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, processes)
}

pub(super) fn parse_region(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, (address, full)) = (address, opt(word("full"))).parse(input)?;
        let full = full.is_some();
        Ok((input, Command::Region { address, full }))
    })
}

pub(super) fn parse_regions(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, regions)
}

pub(super) fn parse_flags(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(address, Command::Flags).parse(input))
}

pub(super) fn parse_who(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, (place, limit)) = (address, opt(after("limit", count))).parse(input)?;
        Ok((input, Command::Who { place, limit }))
    })
}

pub(super) fn parse_summary(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(summarized, Command::Summary).parse(input))
}

pub(super) fn parse_explain(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(address, Command::Explain).parse(input))
}

pub(super) fn parse_patched(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(opt(range), Command::Patched).parse(input))
}

pub(super) fn parse_decode(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let reading = opt(preceded(word("as"), cut(one_of)));
        let (input, (value, reading)) = (value, reading).parse(input)?;
        Ok((input, Command::Decode { value, reading }))
    })
}

pub(super) fn parse_telescope(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, (address, count)) = (address, opt(number)).parse(input)?;
        Ok((input, Command::Telescope { address, count }))
    })
}

pub(super) fn parse_info_symbol(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(address, Command::InfoSymbol).parse(input))
}

pub(super) fn parse_info_address(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(symbol, Command::InfoAddress).parse(input))
}

pub(super) fn parse_info_symbols(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, (pattern, cut)) = (pattern(Expected::Regex), opt(cut_to)).parse(input)?;
        Ok((input, Command::InfoSymbols { pattern, cut }))
    })
}

pub(super) fn parse_info_modules(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoModules)))
}

pub(super) fn parse_info_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        input.expect(Expected::SourceFile);
        map(preceded(opt(silent_mark("*")), address), Command::InfoLine).parse(input)
    })
}

pub(super) fn parse_snapshot(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, snapshot)
}

pub(super) fn parse_info_snapshots(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoSnapshots)))
}

/// `[TEXT] [by KEY] [limit N|top N]`: the text goes up to where nothing but clauses follows.
fn processes(input: Tokens<'_>) -> Parsed<'_, Command> {
    input.expect(Expected::Text);
    let (text, behind) = split_text(input);
    for length in 0..=text.len() {
        let (before, rest) = input.rest.split_at(length);
        let Ok((after, (by, cut))) = process_clauses(Tokens { rest, ..input }) else {
            continue;
        };
        if after.rest.len() != behind.rest.len() {
            continue;
        }
        let filter = (!before.is_empty()).then(|| part(input, before).map(|raw| raw.text));
        return Ok((after, Command::Ps(Ps { filter, by, cut })));
    }
    input.fail(Expected::Text)
}

/// The order and the number of rows of `ps`.
type ProcessClauses = (Option<ProcessOrder>, Option<Cut>);

fn process_clauses(mut input: Tokens<'_>) -> Parsed<'_, ProcessClauses> {
    let (mut by, mut cut) = (None, None);
    while clause(&mut input, &mut by, after("by", one_of))? || clause(&mut input, &mut cut, cut_to)? {}
    Ok((input, (by, cut)))
}

/// `frames` by itself is a word; in an expression, or in quotes, it is a name.
fn summarized(input: Tokens<'_>) -> Parsed<'_, Summarized> {
    input.expect(Expected::Word("frames"));
    let is_last = split_text(input).0.len() == 1;
    if let (true, Ok((behind, _))) = (is_last, word("frames")(input)) {
        return Ok((behind, Summarized::Frames));
    }
    map(opt(range), |range| range.map_or(Summarized::Process, Summarized::Range)).parse(input)
}

fn snapshot(input: Tokens<'_>) -> Parsed<'_, Command> {
    if let Ok((behind, _)) = word("delete")(input) {
        return map(cut(snapshot_name), Command::SnapshotDelete).parse(behind);
    }
    let (mut input, name) = opt(snapshot_name).parse(input)?;
    let (mut in_, mut with) = (None, None);
    while clause(&mut input, &mut in_, after("in", range))?
        || clause(&mut input, &mut with, after("with", list_once::<Kept>))?
    {}
    if with.is_none() {
        hint_at_missing_with::<Kept>(input);
    }
    let (range, with) = (in_, with.unwrap_or_default());
    Ok((input, Command::Snapshot(Snapshot { name, range, with })))
}

/// The process that an argument of `attach` names.
fn target(raw: Spanned<Raw>) -> Spanned<TargetName> {
    raw.map(|raw| match raw.quoted {
        true => TargetName::Name(raw.text),
        false if is_variable(&raw.text) => TargetName::Variable(raw.text.trim_start_matches('$').to_owned()),
        false => TargetName::of(&raw.text),
    })
}

/// Whether a text is `$name` and nothing more.
fn is_variable(text: &str) -> bool {
    let name = text.strip_prefix('$').unwrap_or_default();
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
