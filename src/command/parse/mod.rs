//! The parsers of the arguments of commands.

mod arguments;
pub(super) mod control;
mod find;
mod printed;
mod rows;
mod tree;

use std::rc::Rc;

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, opt, peek};
use nom::sequence::{preceded, terminated};

use crate::kernel::words::Worded;
use crate::lang::parser::{
    Failed, Parsed, Raw, Token, TokenKind, Tokens, address, after, arguments_of, clause, command_arguments,
    command_name, count, cut_to, expression, filter, format, hint_at_missing_with, later, layout, listed, many, mark,
    number, one_of, option, part, pattern, place, quoted_text, range, raw, raw_text, setting, setting_value,
    silent_mark, snapshot_name, split_text, symbol, text as text_value, time, value, variable, watched, with_commas,
    with_how, word,
};
use crate::lang::{Cut, Displayed, Expected, ParsedCommand, Setting, SettingValue, Span, Spanned, Statement, Typed};
pub use arguments::*;
use control::new_name;
use find::find;
use rows::{regions, walk};
pub use tree::*;

/// `x`
pub(super) fn parse_x(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (input, layout) = opt(layout).parse(input)?;
    with_how(input, |input| {
        let (input, fault) = option("--fault")(input)?;
        let (behind, address) = opt(address).parse(input)?;
        let asked = Examine { layout: layout.unwrap_or_default(), fault, address };
        Ok((behind, Statement::Command(Rc::new(Command::Examine(asked)))))
    })
}

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

pub(super) fn parse_walk(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, walk)
}

pub(super) fn parse_map(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, drawn)
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

pub(super) fn parse_find(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, find)
}

pub(super) fn parse_print(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, (format, value)) = (opt(format), range).parse(input)?;
        Ok((input, Command::Print { format, value }))
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

pub(super) fn parse_watch(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, watch)
}

pub(super) fn parse_snapshot(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, snapshot)
}

pub(super) fn parse_info_snapshots(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoSnapshots)))
}

pub(super) fn parse_diff(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, diff)
}

pub(super) fn parse_compare(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, compare)
}

pub(super) fn parse_soft_dirty(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(soft_dirty, Command::SoftDirty).parse(input))
}

pub(super) fn parse_display(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, display)
}

pub(super) fn parse_undisplay(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(many(number), Command::Undisplay).parse(input))
}

pub(super) fn parse_info_display(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| Ok((input, Command::InfoDisplay)))
}

pub(super) fn parse_assert(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, condition) = expression(input)?;
        let (input, message) = opt(preceded(mark(","), cut(quoted_text))).parse(input)?;
        let message = message.map(|message| message.node);
        Ok((input, Command::Assert { condition, message }))
    })
}

pub(super) fn parse_alias(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, (name, _)) = (new_name, cut(mark("="))).parse(input)?;
        let (input, text) = cut(raw_text(Expected::Command)).parse(input)?;
        Ok((input, Command::Alias { name, text }))
    })
}

pub(super) fn parse_printf(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let values = many(preceded(mark(","), cut(listed)));
        let (input, (format, values)) = (quoted_text, values).parse(input)?;
        Ok((input, Command::Printf { format, values }))
    })
}

pub(super) fn parse_output(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, (format, value)) = (opt(format), range).parse(input)?;
        Ok((input, Command::Output { format, value }))
    })
}

pub(super) fn parse_set(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(assignment, Command::Set).parse(input))
}

pub(super) fn parse_show(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(shown, Command::Show).parse(input))
}

pub(super) fn parse_source(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, source)
}

pub(super) fn parse_history(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(opt(number), Command::History).parse(input))
}

pub(super) fn parse_complete(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| {
        let (input, text) = opt(raw_text(Expected::Text)).parse(input)?;
        let text = text.map(|text| text.node);
        Ok((input, Command::Complete(text.unwrap_or_default())))
    })
}

pub(super) fn parse_help(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(opt(raw_text(Expected::Topic)), Command::Help).parse(input))
}

pub(super) fn parse_apropos(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(raw_text(Expected::Regex), Command::Apropos).parse(after_verbose(input)))
}

pub(super) fn parse_quit(input: Tokens<'_>) -> Parsed<'_, Statement> {
    boxed(input, |input| map(opt(address), Command::Quit).parse(input))
}

/// What follows gdb's `-v` of `apropos`: the answer is as long as with it.
fn after_verbose(input: Tokens<'_>) -> Tokens<'_> {
    match input.rest {
        [minus, v, rest @ ..] if minus.text == "-" && v.text == "v" && v.glued && !rest.is_empty() => {
            Tokens { rest, ..input }
        }
        _ => input,
    }
}

fn shown(input: Tokens<'_>) -> Parsed<'_, Shown> {
    let shown = alt((
        map((word("logging"), end_of_text), |_| Shown::Logging),
        map(setting, Shown::Setting),
        map(word("convenience"), |_| Shown::Convenience),
        map(word("version"), |_| Shown::Version),
    ));
    map(opt(shown), |shown| shown.unwrap_or(Shown::All)).parse(input)
}

/// `PATH ARGUMENT …`
fn source(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (behind, path) = pattern(Expected::File)(input)?;
    let arguments = arguments_of(behind);
    Ok((split_text(behind).1, Command::Source { path, arguments }))
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

/// `[/FMT] EXPRESSION` or `COMMAND …`, then how often.
fn display(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (behind, layout) = opt(layout).parse(input)?;
    let command = if layout.is_none() && is_command_displayed(behind) {
        before_every(behind).or_else(|| terminated(displayed_command, peek(end_of_displayed)).parse(behind).ok())
    } else {
        None
    };
    let (mut behind, what) = match command {
        Some((behind, command)) => (behind, Some(command)),
        None => {
            let is_quoted = begins_with_command(behind);
            let value = |value| Displayed::Value { layout: layout.unwrap_or_default(), is_quoted, value };
            match layout {
                Some(_) => map(map(cut(range), value), Some).parse(behind)?,
                None => opt(map(range, value)).parse(behind)?,
            }
        }
    };
    let (mut every, mut count) = (None, None);
    if what.is_some() && clause(&mut behind, &mut every, after("every", time))? {
        clause(&mut behind, &mut count, after("count", crate::lang::parser::count))?;
    }
    Ok((behind, Command::Display(Display { what, every, count })))
}

/// A command that is complete before `every`. `every` is then a clause and no name: `x/u every 1s`.
fn before_every(input: Tokens<'_>) -> Option<(Tokens<'_>, Displayed)> {
    let at = input.rest.iter().skip(1).position(is_every)? + 1;
    let (before, behind) = input.rest.split_at_checked(at)?;
    let (left, name) = command_name(Tokens { rest: before, ..input }).ok()?;
    let (left, command) = displayable(left, name.node).ok()?;
    let behind = Tokens { rest: behind, ..input };
    let is_whole = left.rest.is_empty();
    is_whole.then(|| (behind, displayed(input, behind, command, name.at)))
}

fn is_every(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Name && token.text == "every"
}

/// A command that `display` runs.
fn displayed_command(input: Tokens<'_>) -> Parsed<'_, Displayed> {
    let (behind, name) = command_name(input)?;
    let (behind, command) = displayable(behind, name.node)?;
    Ok((behind, displayed(input, behind, command, name.at)))
}

/// The arguments of a command, which is no line of blocks.
fn displayable<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Rc<dyn ParsedCommand>> {
    match command_arguments(input, name)? {
        (behind, Statement::Command(command)) => Ok((behind, command)),
        (_, Statement::Control(_)) => input.fail(Expected::Command),
    }
}

/// The command, with the text of it that stands before `behind`.
fn displayed(input: Tokens<'_>, behind: Tokens<'_>, command: Rc<dyn ParsedCommand>, at: Span) -> Displayed {
    let command = Spanned::new(command, at);
    let start = input.place().start;
    let end = input.notes.line.len().min(behind.place().start);
    let text = input.notes.line.get(start..end).unwrap_or_default().trim();
    let text = Typed(text.to_owned());
    Displayed::Command { text, command }
}

/// Where nothing, or `every`, follows.
fn end_of_displayed(input: Tokens<'_>) -> Parsed<'_, ()> {
    match split_text(input).0 {
        [] => Ok((input, ())),
        [first, ..] if first.text == "every" => Ok((input, ())),
        _ => Err(nom::Err::Error(Failed)),
    }
}

/// Whether the next token begins with a name that `display` would take for a command if it stood without quotes.
fn begins_with_command(input: Tokens<'_>) -> bool {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '@'));
    let text = input.first().map_or("", |token| token.text.trim_start_matches('\''));
    text.split(is_end).next().is_some_and(|word| input.notes.language.is_displayed(word))
}

/// Whether the next word is a command that `display` may run. `x` alone, or before an operator, is a name, as in gdb.
fn is_command_displayed(input: Tokens<'_>) -> bool {
    let Some(first) = input.first().filter(|token| token.kind == TokenKind::Name) else {
        return false;
    };
    let next = split_text(input).0.get(1).map(|token| &token.kind);
    let is_name = first.text == "x" && matches!(next, None | Some(TokenKind::Mark));
    input.notes.language.is_displayed(first.text) && !is_name
}

/// `map`: a filter without a range applies to the whole process. Without a filter behind it, `where` is a name like any
/// other.
fn drawn(input: Tokens<'_>) -> Parsed<'_, Command> {
    if let Ok((behind, filter)) = preceded(word("where"), filter).parse(input) {
        let (range, filter) = (None, Some(filter));
        return Ok((behind, Command::Map { range, filter }));
    }
    let (behind, range) = opt(range).parse(input)?;
    let (behind, filter) = match range {
        Some(_) => opt(after("where", filter)).parse(behind)?,
        None => (behind, None),
    };
    Ok((behind, Command::Map { range, filter }))
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

fn watch(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (mut input, range) = watched(input)?;
    let (mut every, mut duration, mut count, mut until, mut with) = (None, None, None, None, None);
    let mut timeline = None;
    let mut by = None;
    while clause(&mut input, &mut every, after("every", time))?
        || clause(&mut input, &mut duration, after("for", time))?
        || clause(&mut input, &mut count, after("count", crate::lang::parser::count))?
        || clause(&mut input, &mut until, after("until", until_clause))?
        || clause(&mut input, &mut with, after("with", list_once::<OnRequest>))?
        || clause(&mut input, &mut timeline, after("as", word("timeline")))?
        || clause(&mut input, &mut by, after("by", one_of))?
    {}
    if with.is_none() {
        hint_at_missing_with::<OnRequest>(input);
    }
    let with = with.unwrap_or_default();
    Ok((
        input,
        Command::Watch(Watch { range, by, every, duration, count, until, with, is_timeline: timeline.is_some() }),
    ))
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

fn diff(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (input, from) = opt(snapshot_name).parse(input)?;
    let (mut input, to) = match from {
        Some(_) => map(opt(later), Option::flatten).parse(input)?,
        None => (input, None),
    };
    let (mut in_, mut where_, mut by, mut cut) = (None, None, None, None);
    while clause(&mut input, &mut in_, after("in", range))?
        || clause(&mut input, &mut where_, after("where", filter))?
        || clause(&mut input, &mut by, after("by", one_of))?
        || clause(&mut input, &mut cut, cut_to)?
    {}
    Ok((input, Command::Diff(Box::new(Diff { from, to, range: in_, filter: where_, by, cut }))))
}

fn compare(input: Tokens<'_>) -> Parsed<'_, Command> {
    input.expect(Expected::NamedProcess);
    let children = map(word("children"), |_| Compared::Children);
    let process = |input| alt((place, text_value)).parse(input);
    let processes = (process, many(process)).map(|(first, more)| [vec![first], more].concat());
    let processes = map(processes, Compared::Processes);
    let (mut input, with) = alt((children, processes)).parse(input)?;
    let (mut in_, mut by, mut cut) = (None, None, None);
    while clause(&mut input, &mut in_, after("in", range))?
        || clause(&mut input, &mut by, after("by", one_of))?
        || clause(&mut input, &mut cut, cut_to)?
    {}
    let range = in_;
    let command = Command::Compare(Compare { with, range, by, cut });
    Ok((input, command))
}

/// `clear` by itself is a word; in an expression, or in quotes, it is a name.
fn soft_dirty(input: Tokens<'_>) -> Parsed<'_, SoftDirty> {
    let clear = (word("clear"), option("--yes"), end_of_text);
    let clear = map(clear, |(_, yes, ())| SoftDirty::Clear { yes });
    alt((clear, map(opt(range), SoftDirty::Written))).parse(input)
}

fn until_clause(input: Tokens<'_>) -> Parsed<'_, Until> {
    let quantifier = alt((map(word("all"), |_| Quantifier::All), map(word("none"), |_| Quantifier::None)));
    let (behind, of) = opt(quantifier).parse(input)?;
    let (behind, filter) = cut(filter).parse(behind)?;
    let of = of.unwrap_or(Quantifier::Any);
    Ok((behind, Until { of, filter }))
}

/// Words with commas between them, each kept once.
fn list_once<T: Worded + PartialEq>(input: Tokens<'_>) -> Parsed<'_, Vec<T>> {
    let (behind, kinds) = with_commas(one_of).parse(input)?;
    let mut once = Vec::new();
    for kind in kinds {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    Ok((behind, once))
}

/// Where the arguments end.
fn end_of_text(input: Tokens<'_>) -> Parsed<'_, ()> {
    match split_text(input).0 {
        [] => Ok((input, ())),
        _ => Err(nom::Err::Error(Failed)),
    }
}

fn assignment(input: Tokens<'_>) -> Parsed<'_, Assignment> {
    let variable = map((variable, cut(mark("=")), cut(range)), |(name, _, value)| Assignment::Variable { name, value });
    let setting = map(setting_value, |(setting, value)| Assignment::Setting { setting, value });
    alt((variable, log, setting)).parse(input)
}

/// `logging on`, `logging file PATH`, as in gdb.
fn log(input: Tokens<'_>) -> Parsed<'_, Assignment> {
    let (behind, _) = word("logging")(input)?;
    let enabled = map(one_of, |on| Assignment::Setting { setting: Setting::Logging, value: SettingValue::Switch(on) });
    let file = map(preceded(word("file"), cut(pattern(Expected::File))), Assignment::LogFile);
    alt((enabled, file)).parse(behind)
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
