//! Commands: a name, which may be shortened, and its arguments.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, opt, peek};
use nom::multi::{many0, many1, separated_list1};
use nom::sequence::{preceded, terminated};

use super::arguments as values;
use super::atoms::text as text_value;
use super::control::new_name;
use super::expression::{expression, place};
use super::filter::{filter, quoted_text};
use super::find::find;
use super::layout::{format, layout};
use super::names::symbol;
use super::range::{address, listed, range, value, watched};
use super::raw::{Raw, part, pattern, raw, raw_text, split_text, target};
use super::rows::{after, clause, regions, walk};
use super::setting::{log, setting, setting_value};
use super::snapshots::{later, snapshot_name};
use super::stream::{
    Failed, Parsed, Tokens, count, cut_to, mark, number, one_of, silent_mark, time, variable, word,
};
use crate::kernel::words::Worded;
use crate::lang::class::Class;
use crate::lang::commands::{
    COMMANDS, CommandName, Resolved, is_displayed, resolve_first, resolve_second, second_words,
};
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::lexer::{Token, TokenKind, unescape};
use crate::lang::span::{Span, Spanned};
use crate::lang::syntax::{
    Assignment, Command, Compare, Compared, Cut, Diff, Display, Displayed, Examine, Kept, Layout,
    OnRequest, ProcessOrder, Ps, Quantifier, Shown, Snapshot, SoftDirty, Summarized, Typed, Until,
    Watch,
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
    let fallback = second_words(first)
        .next()
        .map_or(Expected::Command, Expected::Word);
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
    if !COMMANDS.iter().any(|row| row.name == name && row.how) {
        return own_arguments(input, name);
    }
    let (input, layout) = match name {
        "x" => opt(layout).parse(input)?,
        _ => (input, None),
    };
    let (input, asked) = opt(option(Expected::How, TokenKind::How)).parse(input)?;
    let (behind, command) = match name {
        "x" => examine(input, layout.unwrap_or_default())?,
        _ => own_arguments(input, name)?,
    };
    let command = match asked {
        Some(_) => Command::How(Box::new(command)),
        None => command,
    };
    Ok((behind, command))
}

/// `--how`, `--fault`, `--yes`
fn option(expected: Expected, kind: TokenKind) -> impl for<'a> Fn(Tokens<'a>) -> Parsed<'a, Span> {
    move |input| {
        let (behind, found) = input.accept(expected, |token| (token.kind == kind).then_some(()))?;
        input.notes.note_class(Class::Keyword, found.at);
        Ok((behind, found.at))
    }
}

/// `x`, behind its format and `--how`.
fn examine(input: Tokens<'_>, layout: Layout) -> Parsed<'_, Command> {
    let (input, fault) = opt(option(Expected::Fault, TokenKind::Fault)).parse(input)?;
    let (behind, address) = opt(address).parse(input)?;
    Ok((
        behind,
        Command::Examine(Examine {
            layout,
            fault: fault.is_some(),
            address,
        }),
    ))
}

/// The arguments of one group of commands; `None` for a name of another group.
type OfGroup = for<'a> fn(Tokens<'a>, &str) -> Option<Parsed<'a, Command>>;

/// The commands are in groups because one function for all would leave too little stack for deeply nested expressions.
fn own_arguments<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Command> {
    let groups: [OfGroup; 4] = [of_targets, of_pages, of_scripts, of_sessions];
    let parsed = groups.iter().find_map(|group| group(input, name));
    parsed.unwrap_or_else(|| input.fail(Expected::Command))
}

/// Commands about processes and symbols.
fn of_targets<'a>(input: Tokens<'a>, name: &str) -> Option<Parsed<'a, Command>> {
    Some(match name {
        "attach" => map(raw(Expected::Process), |raw| Command::Attach(target(raw))).parse(input),
        "detach" => Ok((input, Command::Detach)),
        "ps" => processes(input),
        "info process" => Ok((input, Command::InfoProcess)),
        "info capabilities" => Ok((input, Command::InfoCapabilities)),
        "info symbol" => map(address, Command::InfoSymbol).parse(input),
        "info address" => map(symbol, Command::InfoAddress).parse(input),
        "info symbols" => map((pattern(Expected::Regex), opt(cut_to)), |(pattern, cut)| {
            Command::InfoSymbols { pattern, cut }
        })
        .parse(input),
        "info modules" => Ok((input, Command::InfoModules)),
        "info threads" => Ok((input, Command::InfoThreads)),
        "info registers" => Ok((input, Command::InfoRegisters)),
        "info line" => {
            input.expect(Expected::SourceFile);
            map(preceded(opt(silent_mark("*")), address), Command::InfoLine).parse(input)
        }
        _ => return None,
    })
}

/// Commands about pages and memory.
fn of_pages<'a>(input: Tokens<'a>, name: &str) -> Option<Parsed<'a, Command>> {
    Some(match name {
        "translate" => map((range, opt(cut_to)), |(range, cut)| Command::Translate {
            range,
            cut,
        })
        .parse(input),
        "region" => map((address, full), |(address, full)| Command::Region {
            address,
            full,
        })
        .parse(input),
        "regions" => regions(input),
        "walk" => walk(input),
        "map" => drawn(input),
        "flags" => map(address, |place| Command::Flags { place }).parse(input),
        "who" => map((address, opt(after("limit", count))), |(place, limit)| {
            Command::Who { place, limit }
        })
        .parse(input),
        "summary" => map(summarized, Command::Summary).parse(input),
        "explain" => map(address, |address| Command::Explain { address }).parse(input),
        "decode" => {
            let reading = opt(preceded(word("as"), cut(one_of)));
            map((value, reading), |(value, reading)| Command::Decode {
                value,
                reading,
            })
            .parse(input)
        }
        "watch" => watch(input),
        "snapshot" => snapshot(input),
        "info snapshots" => Ok((input, Command::InfoSnapshots)),
        "diff" => diff(input),
        "compare" => compare(input),
        "soft-dirty" => map(soft_dirty, Command::SoftDirty).parse(input),
        "patched" => map(opt(range), |range| Command::Patched { range }).parse(input),
        "find" => find(input),
        "telescope" => map((address, opt(number)), |(address, count)| {
            Command::Telescope { address, count }
        })
        .parse(input),
        "print" => map((opt(format), range), |(format, value)| Command::Print {
            format,
            value,
        })
        .parse(input),
        _ => return None,
    })
}

/// Commands of command files.
fn of_scripts<'a>(input: Tokens<'a>, name: &str) -> Option<Parsed<'a, Command>> {
    Some(match name {
        "printf" => printf(input),
        "output" => map((opt(format), range), |(format, value)| Command::Output {
            format,
            value,
        })
        .parse(input),
        "display" => display(input),
        "undisplay" => map(many0(number), Command::Undisplay).parse(input),
        "info display" => Ok((input, Command::InfoDisplay)),
        "echo" => {
            let text = |raw: Option<Spanned<Raw>>| {
                raw.map_or_else(String::new, |raw| match raw.node.quoted {
                    true => raw.node.text,
                    false => unescape(&raw.node.text),
                })
            };
            map(opt(raw(Expected::Text)), |raw| Command::Echo(text(raw))).parse(input)
        }
        "source" => source(input),
        "assert" => map(
            (expression, opt(preceded(mark(","), cut(quoted_text)))),
            |(condition, message)| Command::Assert {
                condition,
                message: message.map(|message| message.node),
            },
        )
        .parse(input),
        "alias" => map(
            (new_name, cut(mark("=")), cut(raw_text(Expected::Command))),
            |(name, _, text)| Command::Alias { name, text },
        )
        .parse(input),
        _ => return None,
    })
}

/// Commands about settings and the prompt.
fn of_sessions<'a>(input: Tokens<'a>, name: &str) -> Option<Parsed<'a, Command>> {
    Some(match name {
        "set" => map(assignment, Command::Set).parse(input),
        "show" => {
            let shown = alt((
                map((word("logging"), end_of_text), |_| Shown::Logging),
                map(setting, Shown::Setting),
                map(word("convenience"), |_| Shown::Convenience),
                map(word("version"), |_| Shown::Version),
            ));
            map(opt(shown), |shown| {
                Command::Show(shown.unwrap_or(Shown::All))
            })
            .parse(input)
        }
        "history" => map(opt(number), |limit| Command::History { limit }).parse(input),
        "complete" => map(opt(raw(Expected::Text)), |text| {
            Command::Complete(text.map_or_else(String::new, |text| text.node.text))
        })
        .parse(input),
        "help" => map(opt(raw_text(Expected::Topic)), |topic| Command::Help {
            topic,
        })
        .parse(input),
        "apropos" => map(raw_text(Expected::Regex), Command::Apropos).parse(input),
        "quit" => map(opt(address), |status| Command::Quit { status }).parse(input),
        _ => return None,
    })
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
        let filter = match before.is_empty() {
            true => None,
            false => Some(part(input, before)),
        };
        let filter = filter.map(|raw| raw.map(|raw| raw.text));
        return Ok((after, Command::Ps(Ps { filter, by, cut })));
    }
    input.fail(Expected::Text)
}

/// The order and the number of rows of `ps`.
type ProcessClauses = (Option<ProcessOrder>, Option<Cut>);

fn process_clauses(mut input: Tokens<'_>) -> Parsed<'_, ProcessClauses> {
    let (mut by, mut cut) = (None, None);
    while clause(&mut input, &mut by, after("by", one_of))? || clause(&mut input, &mut cut, cut_to)?
    {
    }
    Ok((input, (by, cut)))
}

/// `"FORMAT", VALUE, …`
fn printf(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (behind, text) = quoted_text(input)?;
    let (behind, values) = many0(preceded(mark(","), cut(listed))).parse(behind)?;
    Ok((
        behind,
        Command::Printf {
            format: text,
            values,
        },
    ))
}

/// `[/FMT] EXPRESSION` or `COMMAND …`, then how often.
fn display(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (behind, layout) = opt(layout).parse(input)?;
    let command = match layout.is_none() && is_command_displayed(behind) {
        true => before_every(behind).or_else(|| {
            terminated(displayed_command, peek(end_of_displayed))
                .parse(behind)
                .ok()
        }),
        false => None,
    };
    let (mut behind, what) = match command {
        Some((behind, command)) => (behind, Some(command)),
        None => {
            let value = |value| Displayed::Value {
                layout: layout.unwrap_or_default(),
                value,
            };
            match layout {
                Some(_) => map(map(cut(range), value), Some).parse(behind)?,
                None => opt(map(range, value)).parse(behind)?,
            }
        }
    };
    let (mut every, mut count) = (None, None);
    if what.is_some() && clause(&mut behind, &mut every, after("every", time))? {
        clause(
            &mut behind,
            &mut count,
            after("count", super::stream::count),
        )?;
    }
    Ok((behind, Command::Display(Display { what, every, count })))
}

/// A command that is complete before `every`. `every` is then a clause and no name: `x/u every 1s`.
fn before_every(input: Tokens<'_>) -> Option<(Tokens<'_>, Displayed)> {
    let at = input.rest.iter().skip(1).position(is_every)? + 1;
    let (before, behind) = input.rest.split_at_checked(at)?;
    let (left, name) = command_name(Tokens {
        rest: before,
        ..input
    })
    .ok()?;
    let (left, command) = arguments(left, name.node).ok()?;
    let behind = Tokens {
        rest: behind,
        ..input
    };
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

/// `map`: a filter without a range applies to the whole process. Without a filter behind it, `where` is a name like any other.
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
    map(opt(range), |range| {
        range.map_or(Summarized::Process, Summarized::Range)
    })
    .parse(input)
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
        Command::Watch(Watch {
            range,
            by,
            every,
            duration,
            count,
            until,
            with,
            is_timeline: timeline.is_some(),
        }),
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
    Ok((
        input,
        Command::Diff(Box::new(Diff {
            from,
            to,
            range: in_,
            filter: where_,
            by,
            cut,
        })),
    ))
}

fn compare(input: Tokens<'_>) -> Parsed<'_, Command> {
    input.expect(Expected::NamedProcess);
    let children = map(word("children"), |_| Compared::Children);
    let processes = map(many1(alt((place, text_value))), Compared::Processes);
    let (mut input, with) = alt((children, processes)).parse(input)?;
    let (mut in_, mut by, mut cut) = (None, None, None);
    while clause(&mut input, &mut in_, after("in", range))?
        || clause(&mut input, &mut by, after("by", one_of))?
        || clause(&mut input, &mut cut, cut_to)?
    {}
    let range = in_;
    let command = Command::Compare(Compare {
        with,
        range,
        by,
        cut,
    });
    Ok((input, command))
}

/// `clear` by itself is a word; in an expression, or in quotes, it is a name.
fn soft_dirty(input: Tokens<'_>) -> Parsed<'_, SoftDirty> {
    let yes = opt(option(Expected::Yes, TokenKind::Yes));
    let clear = map((word("clear"), yes, end_of_text), |(_, yes, ())| {
        let yes = yes.is_some();
        SoftDirty::Clear { yes }
    });
    alt((clear, map(opt(range), SoftDirty::Written))).parse(input)
}

fn until_clause(input: Tokens<'_>) -> Parsed<'_, Until> {
    let quantifier = alt((
        map(word("all"), |_| Quantifier::All),
        map(word("none"), |_| Quantifier::None),
    ));
    let (behind, of) = opt(quantifier).parse(input)?;
    let (behind, filter) = cut(filter).parse(behind)?;
    let of = of.unwrap_or(Quantifier::Any);
    Ok((behind, Until { of, filter }))
}

/// Words with commas between them, each kept once.
fn list_once<T: Worded + PartialEq>(input: Tokens<'_>) -> Parsed<'_, Vec<T>> {
    let (behind, kinds) = separated_list1(mark(","), cut(one_of)).parse(input)?;
    let mut once = Vec::new();
    for kind in kinds {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    Ok((behind, once))
}

fn full(input: Tokens<'_>) -> Parsed<'_, bool> {
    map(opt(word("full")), |full| full.is_some()).parse(input)
}

/// Where the arguments end.
fn end_of_text(input: Tokens<'_>) -> Parsed<'_, ()> {
    match split_text(input).0 {
        [] => Ok((input, ())),
        _ => Err(nom::Err::Error(Failed)),
    }
}

fn assignment(input: Tokens<'_>) -> Parsed<'_, Assignment> {
    let variable = map(
        (variable, cut(mark("=")), cut(range)),
        |(name, _, value)| Assignment::Variable { name, value },
    );
    alt((variable, log, setting_value)).parse(input)
}
