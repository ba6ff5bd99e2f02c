//! Commands: a name, which may be shortened, and its arguments.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, opt, peek};
use nom::sequence::{preceded, terminated};

use super::arguments as values;
use super::atoms::text as text_value;
use super::control::new_name;
use super::expression::{expression, filter, place};
use super::filter::quoted_text;
use super::find::find;
use super::layout::{format, layout};
use super::names::symbol;
use super::range::{address, listed, range, value, watched};
use super::raw::{part, pattern, raw, raw_text, split_text, target};
use super::rows::{after, clause, regions, walk};
use super::setting::{log, setting, setting_value};
use super::snapshots::{later, snapshot_name};
use super::stream::{
    Failed, Parsed, Tokens, count, cut_to, many, mark, number, one_of, silent_mark, time, variable, with_commas, word,
};
use crate::kernel::words::Worded;
use crate::lang::class::Class;
use crate::lang::commands::{
    COMMANDS, CommandName, Resolved, is_displayed, resolve_first, resolve_second, second_words, takes_how,
};
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::lexer::{Token, TokenKind, unescape};
use crate::lang::span::{Span, Spanned};
use crate::lang::syntax::{
    Account, Assignment, Command, Compare, Compared, Cut, Diff, Display, Displayed, Examine, Kept, OnRequest,
    ProcessOrder, Ps, Quantifier, Range, Shown, Snapshot, SoftDirty, Summarized, Typed, Until, Watch,
};

/// The name of a command, in full.
pub(super) fn command_name(input: Tokens<'_>) -> Parsed<'_, Spanned<&'static str>> {
    let (behind, typed) = typed_word(input, Expected::Command)?;
    let first = match resolve_first(typed.node) {
        Resolved::One(name) => name,
        Resolved::Ambiguous(candidates) => return input.fault(ambiguous(&typed, &candidates)),
        Resolved::Unknown => return input.fail(Expected::Command),
    };
    if second_words(first).next().is_none() {
        return Ok((behind, Spanned::new(first, typed.at)));
    }
    for second in second_words(first) {
        behind.expect(Expected::Word(second));
    }
    let fallback = second_words(first).next().map_or(Expected::Command, Expected::Word);
    let (rest, typed) = cut(|input| typed_word(input, fallback)).parse(behind)?;
    let full = |second| {
        let is_it = |row: &&CommandName| row.name.split_once(' ') == Some((first, second));
        COMMANDS.iter().find(is_it).map_or(first, |row| row.name)
    };
    match resolve_second(first, typed.node) {
        Resolved::One(second) => Ok((rest, Spanned::new(full(second), typed.at))),
        Resolved::Ambiguous(candidates) => behind.fault(ambiguous(&typed, &candidates)),
        Resolved::Unknown => Err(nom::Err::Failure(Failed)),
    }
}

fn typed_word<'a>(input: Tokens<'a>, expected: Expected) -> Parsed<'a, Spanned<&'a str>> {
    let (behind, found) = input.accept(expected, |token| {
        matches!(token.kind, TokenKind::Name | TokenKind::CommandName).then_some(token.text)
    })?;
    input.notes.note_class(Class::Command, found.at);
    Ok((behind, found))
}

fn ambiguous(typed: &Spanned<&str>, candidates: &[&str]) -> SyntaxError {
    SyntaxError {
        at: typed.at,
        message: format!("`{}` is the beginning of several commands", typed.node),
        expected: candidates.iter().map(|name| format!("`{name}`")).collect(),
        hint: None,
    }
}

/// The arguments of the command with that name, with `--how` before them if it takes that.
pub(super) fn arguments<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Command> {
    let Some(parser) = parser_of(name) else {
        return input.fail(Expected::Command);
    };
    // The format of `x` stands before its `--how`.
    if takes_how(name) && name != "x" { with_how(input, parser) } else { parser(input) }
}

/// `--how`, if it stands here, and the arguments behind it.
fn with_how<'a>(input: Tokens<'a>, arguments: impl FnOnce(Tokens<'a>) -> Parsed<'a, Command>) -> Parsed<'a, Command> {
    let (input, how) = option("--how")(input)?;
    let (behind, command) = arguments(input)?;
    let command = if how { Command::How(Box::new(command)) } else { command };
    Ok((behind, command))
}

/// `--how` and the like: whether it stands here.
fn option<'a>(option: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, bool> {
    move |input| {
        let is_it = |token: &Token<'_>| (token.kind == TokenKind::Option && token.text == option).then_some(());
        let Ok((behind, found)) = input.accept(Expected::Option(option), is_it) else {
            return Ok((input, false));
        };
        input.notes.note_class(Class::Keyword, found.at);
        Ok((behind, true))
    }
}

/// `x`
fn examine(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (input, layout) = opt(layout).parse(input)?;
    with_how(input, |input| {
        let (input, fault) = option("--fault")(input)?;
        let (behind, address) = opt(address).parse(input)?;
        let asked = Examine { layout: layout.unwrap_or_default(), fault, address };
        Ok((behind, Command::Examine(asked)))
    })
}

/// Parses the arguments of one command.
type Arguments = for<'a> fn(Tokens<'a>) -> Parsed<'a, Command>;

/// What parses the arguments of a command; one function that parses all would leave too little stack for deeply nested
/// expressions.
fn parser_of(name: &str) -> Option<Arguments> {
    let parser: Arguments = match name {
        "attach" => |input| {
            let (input, name) = raw(Expected::Process).parse(input)?;
            Ok((input, Command::Attach(target(name))))
        },
        "detach" => |input| Ok((input, Command::Detach)),
        "ps" => processes,
        "info process" => |input| Ok((input, Command::InfoProcess)),
        "info threads" => |input| Ok((input, Command::InfoThreads)),
        "info registers" => |input| Ok((input, Command::InfoRegisters)),
        "info capabilities" => |input| Ok((input, Command::InfoCapabilities)),
        "translate" => |input| {
            let (input, (range, cut)) = (range, opt(cut_to)).parse(input)?;
            Ok((input, Command::Translate { range, cut }))
        },
        "region" => |input| {
            let (input, (address, full)) = (address, opt(word("full"))).parse(input)?;
            let full = full.is_some();
            Ok((input, Command::Region { address, full }))
        },
        "regions" => regions,
        "walk" => walk,
        "flags" => |input| map(address, Command::Flags).parse(input),
        "map" => drawn,
        "who" => |input| {
            let (input, (place, limit)) = (address, opt(after("limit", count))).parse(input)?;
            Ok((input, Command::Who { place, limit }))
        },
        "summary" => |input| map(summarized, Command::Summary).parse(input),
        "account" => account,
        "explain" => |input| map(address, Command::Explain).parse(input),
        "patched" => |input| map(opt(range), Command::Patched).parse(input),
        "decode" => |input| {
            let reading = opt(preceded(word("as"), cut(one_of)));
            let (input, (value, reading)) = (value, reading).parse(input)?;
            Ok((input, Command::Decode { value, reading }))
        },
        "x" => examine,
        "telescope" => |input| {
            let (input, (address, count)) = (address, opt(number)).parse(input)?;
            Ok((input, Command::Telescope { address, count }))
        },
        "find" => find,
        "print" => |input| {
            let (input, (format, value)) = (opt(format), range).parse(input)?;
            Ok((input, Command::Print { format, value }))
        },
        "info symbol" => |input| map(address, Command::InfoSymbol).parse(input),
        "info address" => |input| map(symbol, Command::InfoAddress).parse(input),
        "info symbols" => |input| {
            let (input, (pattern, cut)) = (pattern(Expected::Regex), opt(cut_to)).parse(input)?;
            Ok((input, Command::InfoSymbols { pattern, cut }))
        },
        "info modules" => |input| Ok((input, Command::InfoModules)),
        "info line" => |input| {
            input.expect(Expected::SourceFile);
            map(preceded(opt(silent_mark("*")), address), Command::InfoLine).parse(input)
        },
        "watch" => watch,
        "snapshot" => snapshot,
        "info snapshots" => |input| Ok((input, Command::InfoSnapshots)),
        "diff" => diff,
        "compare" => compare,
        "soft-dirty" => |input| map(soft_dirty, Command::SoftDirty).parse(input),
        "assert" => |input| {
            let (input, condition) = expression(input)?;
            let (input, message) = opt(preceded(mark(","), cut(quoted_text))).parse(input)?;
            let message = message.map(|message| message.node);
            Ok((input, Command::Assert { condition, message }))
        },
        "alias" => |input| {
            let (input, (name, _)) = (new_name, cut(mark("="))).parse(input)?;
            let (input, text) = cut(raw_text(Expected::Command)).parse(input)?;
            Ok((input, Command::Alias { name, text }))
        },
        "display" => display,
        "undisplay" => |input| map(many(number), Command::Undisplay).parse(input),
        "info display" => |input| Ok((input, Command::InfoDisplay)),
        "printf" => |input| {
            let values = many(preceded(mark(","), cut(listed)));
            let (input, (format, values)) = (quoted_text, values).parse(input)?;
            Ok((input, Command::Printf { format, values }))
        },
        "output" => |input| {
            let (input, (format, value)) = (opt(format), range).parse(input)?;
            Ok((input, Command::Output { format, value }))
        },
        "set" => |input| map(assignment, Command::Set).parse(input),
        "show" => |input| map(shown, Command::Show).parse(input),
        "echo" => echo,
        "source" => source,
        "history" => |input| map(opt(number), Command::History).parse(input),
        "complete" => |input| {
            let (input, text) = opt(raw_text(Expected::Text)).parse(input)?;
            let text = text.map(|text| text.node);
            Ok((input, Command::Complete(text.unwrap_or_default())))
        },
        "help" => |input| map(opt(raw_text(Expected::Topic)), Command::Help).parse(input),
        "apropos" => |input| map(raw_text(Expected::Regex), Command::Apropos).parse(after_verbose(input)),
        "quit" => |input| map(opt(address), Command::Quit).parse(input),
        _ => return None,
    };
    Some(parser)
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

fn echo(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (behind, raw) = opt(raw(Expected::Text)).parse(input)?;
    let text =
        raw.map_or_else(String::new, |raw| if raw.node.quoted { raw.node.text } else { unescape(&raw.node.text) });
    Ok((behind, Command::Echo(text)))
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
    let arguments = values::of_tokens(behind);
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
            let value = |value| Displayed::Value { layout: layout.unwrap_or_default(), value };
            match layout {
                Some(_) => map(map(cut(range), value), Some).parse(behind)?,
                None => opt(map(range, value)).parse(behind)?,
            }
        }
    };
    let (mut every, mut count) = (None, None);
    if what.is_some() && clause(&mut behind, &mut every, after("every", time))? {
        clause(&mut behind, &mut count, after("count", super::stream::count))?;
    }
    Ok((behind, Command::Display(Display { what, every, count })))
}

/// A command that is complete before `every`. `every` is then a clause and no name: `x/u every 1s`.
fn before_every(input: Tokens<'_>) -> Option<(Tokens<'_>, Displayed)> {
    let at = input.rest.iter().skip(1).position(is_every)? + 1;
    let (before, behind) = input.rest.split_at_checked(at)?;
    let (left, name) = command_name(Tokens { rest: before, ..input }).ok()?;
    let (left, command) = arguments(left, name.node).ok()?;
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
    let (behind, command) = arguments(behind, name.node)?;
    Ok((behind, displayed(input, behind, command, name.at)))
}

/// The command, with the text of it that stands before `behind`.
fn displayed(input: Tokens<'_>, behind: Tokens<'_>, command: Command, at: Span) -> Displayed {
    let command = Box::new(Spanned::new(command, at));
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

/// Whether the next word is a command that `display` may run. `x` alone, or before an operator, is a name, as in gdb.
fn is_command_displayed(input: Tokens<'_>) -> bool {
    let Some(first) = input.first().filter(|token| token.kind == TokenKind::Name) else {
        return false;
    };
    let next = split_text(input).0.get(1).map(|token| &token.kind);
    let is_name = first.text == "x" && matches!(next, None | Some(TokenKind::Mark));
    is_displayed(first.text) && !is_name
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
        || clause(&mut input, &mut count, after("count", super::stream::count))?
        || clause(&mut input, &mut until, after("until", until_clause))?
        || clause(&mut input, &mut with, after("with", list_once::<OnRequest>))?
        || clause(&mut input, &mut timeline, after("as", word("timeline")))?
        || clause(&mut input, &mut by, after("by", one_of))?
    {}
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

/// `[RANGE] [by KEY] [with content] [top N | limit N]`. Where no clause follows them, `by`, `with`, `top` and `limit`
/// are names like any other.
fn account(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (behind, none) = account_clauses(input, None)?;
    if behind.rest.len() < input.rest.len() {
        return Ok((behind, Command::Account(none)));
    }
    let (behind, range) = opt(range).parse(input)?;
    map(|input| account_clauses(input, range.clone()), Command::Account).parse(behind)
}

fn account_clauses(mut input: Tokens<'_>, range: Option<Spanned<Range>>) -> Parsed<'_, Account> {
    let (mut by, mut content, mut cut) = (None, None, None);
    while clause(&mut input, &mut by, |input| preceded(word("by"), one_of).parse(input))?
        || clause(&mut input, &mut content, |input| preceded(word("with"), word("content")).parse(input))?
        || clause(&mut input, &mut cut, rows_cut)?
    {}
    Ok((input, Account { range, by, content: content.is_some(), cut }))
}

/// The same as [`cut_to`], where the words may be names.
fn rows_cut(input: Tokens<'_>) -> Parsed<'_, Cut> {
    let (behind, (which, rows)) = (one_of, count).parse(input)?;
    Ok((behind, Cut { which, rows }))
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
    alt((variable, log, setting_value)).parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_table_has_a_parser() {
        let others = ["shell", "pipe"];
        for CommandName { name, block, .. } in COMMANDS {
            let is_parsed_apart = block.is_some() || others.contains(name);
            assert_ne!(parser_of(name).is_some(), is_parsed_apart, "{name}");
        }
    }
}
