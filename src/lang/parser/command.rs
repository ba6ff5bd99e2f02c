//! Commands: a name, which may be shortened, and its arguments.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, opt};
use nom::multi::separated_list1;
use nom::sequence::preceded;

use super::arguments as values;
use super::control::new_name;
use super::expression::expression;
use super::filter::{filter, quoted_text};
use super::find::find;
use super::layout::{format, layout};
use super::names::symbol;
use super::range::{address, range, value};
use super::raw::{Raw, pattern, raw, raw_text, split_text, target};
use super::setting::{setting, setting_value};
use super::stream::{Failed, Parsed, Tokens, mark, number, one_of, silent_mark, variable, word};
use crate::lang::class::Class;
use crate::lang::commands::{Resolved, resolve_first, resolve_second, second_words};
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::lexer::{TokenKind, unescape};
use crate::lang::place::{Place, Spanned};
use crate::lang::syntax::{
    Assignment, Command, Layout, OnRequest, Quantifier, Shown, Summarized, Until,
};
use crate::lang::words::{GROUP_KEYS, ON_REQUEST, READINGS, REGION_ORDERS};

/// The commands that look at pages, each of which can show its reads.
const LOOKING: &[&str] = &[
    "translate",
    "region",
    "regions",
    "walk",
    "flags",
    "who",
    "summary",
    "explain",
    "x",
    "telescope",
];

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
        let is_it =
            |row: &&crate::lang::CommandName| row.name.split_once(' ') == Some((first, second));
        crate::lang::COMMANDS
            .iter()
            .find(is_it)
            .map_or(first, |row| row.name)
    };
    match resolve_second(first, typed.node) {
        Resolved::One(second) => Ok((rest, Spanned::new(full(second), typed.at))),
        Resolved::Ambiguous(candidates) => behind.fault(ambiguous(&typed, &candidates)),
        Resolved::Unknown => Err(nom::Err::Failure(Failed)),
    }
}

fn typed_word<'a>(input: Tokens<'a>, expected: Expected) -> Parsed<'a, Spanned<&'a str>> {
    let (behind, found) = input.accept(expected, |token| {
        (token.kind == TokenKind::Name).then_some(token.text)
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

/// The arguments of the command with that name, `--how` before them where it may stand.
pub(super) fn arguments<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Command> {
    if !LOOKING.contains(&name) {
        return own_arguments(input, name);
    }
    let (input, layout) = match name {
        "x" => opt(layout).parse(input)?,
        _ => (input, None),
    };
    let (input, asked) = opt(how).parse(input)?;
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

/// `--how`
fn how(input: Tokens<'_>) -> Parsed<'_, Place> {
    let (behind, found) = input.accept(Expected::How, |token| {
        (token.kind == TokenKind::How).then_some(())
    })?;
    input.notes.note_class(Class::Keyword, found.at);
    Ok((behind, found.at))
}

/// `x`, behind its format and `--how`.
fn examine(input: Tokens<'_>, layout: Layout) -> Parsed<'_, Command> {
    let (input, fault) = opt(fault).parse(input)?;
    let (behind, address) = opt(address).parse(input)?;
    Ok((
        behind,
        Command::Examine {
            layout,
            fault: fault.is_some(),
            address,
        },
    ))
}

/// `--fault`
fn fault(input: Tokens<'_>) -> Parsed<'_, Place> {
    let (behind, found) = input.accept(Expected::Fault, |token| {
        (token.kind == TokenKind::Fault).then_some(())
    })?;
    input.notes.note_class(Class::Keyword, found.at);
    Ok((behind, found.at))
}

fn own_arguments<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Command> {
    match name {
        "attach" => map(raw(Expected::Process), |raw| Command::Attach(target(raw))).parse(input),
        "detach" => Ok((input, Command::Detach)),
        "ps" => map(opt(raw(Expected::Text)), |filter| Command::Ps {
            filter: filter.map(|raw| raw.node.text),
        })
        .parse(input),
        "info process" => Ok((input, Command::InfoProcess)),
        "info capabilities" => Ok((input, Command::InfoCapabilities)),
        "info symbol" => map(address, Command::InfoSymbol).parse(input),
        "info address" => map(symbol, Command::InfoAddress).parse(input),
        "info symbols" => {
            let limit = opt(after("limit", number));
            map((pattern(Expected::Regex), limit), |(pattern, limit)| {
                Command::InfoSymbols { pattern, limit }
            })
            .parse(input)
        }
        "info modules" => Ok((input, Command::InfoModules)),
        "info line" => {
            input.expect(Expected::SourceFile);
            map(preceded(opt(silent_mark("*")), address), Command::InfoLine).parse(input)
        }
        "translate" => map((range, opt(after("limit", number))), |(range, limit)| {
            Command::Translate { range, limit }
        })
        .parse(input),
        "region" => map((address, full), |(address, full)| Command::Region {
            address,
            full,
        })
        .parse(input),
        "regions" => regions(input),
        "walk" => walk(input),
        "flags" => map(address, |place| Command::Flags { place }).parse(input),
        "who" => map((address, opt(after("limit", number))), |(place, limit)| {
            Command::Who { place, limit }
        })
        .parse(input),
        "summary" => map(summarized, Command::Summary).parse(input),
        "explain" => map(address, |address| Command::Explain { address }).parse(input),
        "decode" => {
            let reading = opt(preceded(word("as"), cut(one_of(READINGS))));
            map((value, reading), |(value, reading)| Command::Decode {
                value,
                reading,
            })
            .parse(input)
        }
        "watch" => watch(input),
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
        "set" => map(assignment, Command::Set).parse(input),
        "show" => {
            let shown = alt((
                map(setting, Shown::Setting),
                map(word("convenience"), |_| Shown::Convenience),
            ));
            map(opt(shown), |shown| {
                Command::Show(shown.unwrap_or(Shown::All))
            })
            .parse(input)
        }
        "echo" => {
            let text = |raw: Option<Spanned<Raw>>| {
                raw.map_or_else(String::new, |raw| match raw.node.quoted {
                    true => raw.node.text,
                    false => unescape(&raw.node.text),
                })
            };
            map(opt(raw(Expected::Text)), |raw| Command::Echo(text(raw))).parse(input)
        }
        "source" => {
            let (behind, path) = pattern(Expected::File)(input)?;
            let arguments = values::of_tokens(behind);
            Ok((split_text(behind).1, Command::Source { path, arguments }))
        }
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
        "history" => map(opt(number), |limit| Command::History { limit }).parse(input),
        "help" => map(opt(raw_text(Expected::Topic)), |topic| Command::Help {
            topic,
        })
        .parse(input),
        "apropos" => map(raw_text(Expected::Regex), Command::Apropos).parse(input),
        "quit" => map(opt(value), |status| Command::Quit { status }).parse(input),
        _ => input.fail(Expected::Command),
    }
}

/// Takes a clause if it stands here and was not given yet; whether it was.
fn clause<'a, T>(
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

/// A word, and then for certain what belongs to it.
fn after<'a, T>(
    keyword: &'static str,
    parser: impl Fn(Tokens<'a>) -> Parsed<'a, T>,
) -> impl Fn(Tokens<'a>) -> Parsed<'a, T> {
    move |input| preceded(word(keyword), cut(&parser)).parse(input)
}

fn regions(mut input: Tokens<'_>) -> Parsed<'_, Command> {
    let (mut where_, mut by, mut full) = (None, None, None);
    while clause(&mut input, &mut where_, after("where", filter))?
        || clause(&mut input, &mut by, after("by", one_of(REGION_ORDERS)))?
        || clause(&mut input, &mut full, word("full"))?
    {}
    Ok((
        input,
        Command::Regions {
            filter: where_,
            by,
            full: full.is_some(),
        },
    ))
}

fn walk(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (mut input, range) = range(input)?;
    let (mut where_, mut by, mut limit) = (None, None, None);
    while clause(&mut input, &mut where_, after("where", filter))?
        || clause(&mut input, &mut by, after("by", one_of(GROUP_KEYS)))?
        || clause(&mut input, &mut limit, after("limit", number))?
    {}
    Ok((
        input,
        Command::Walk {
            range,
            filter: where_,
            by,
            limit,
        },
    ))
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
    let (mut input, range) = range(input)?;
    let (mut every, mut duration, mut count, mut until, mut with) = (None, None, None, None, None);
    while clause(&mut input, &mut every, after("every", time))?
        || clause(&mut input, &mut duration, after("for", time))?
        || clause(&mut input, &mut count, after("count", number))?
        || clause(&mut input, &mut until, after("until", until_clause))?
        || clause(&mut input, &mut with, after("with", on_request))?
    {}
    let with = with.unwrap_or_default();
    Ok((
        input,
        Command::Watch {
            range,
            every,
            duration,
            count,
            until,
            with,
        },
    ))
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

fn on_request(input: Tokens<'_>) -> Parsed<'_, Vec<OnRequest>> {
    let (behind, kinds) = separated_list1(mark(","), cut(one_of(ON_REQUEST))).parse(input)?;
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

/// `duration`: bare numbers are seconds.
fn time(input: Tokens<'_>) -> Parsed<'_, std::time::Duration> {
    let (behind, found) = input.accept(Expected::Duration, |token| match token.kind {
        TokenKind::Duration(duration) => Some(duration),
        TokenKind::Number(seconds) => Some(std::time::Duration::from_secs(seconds)),
        _ => None,
    })?;
    Ok((behind, found.node))
}

fn assignment(input: Tokens<'_>) -> Parsed<'_, Assignment> {
    let variable = map(
        (variable, cut(mark("=")), cut(range)),
        |(name, _, value)| Assignment::Variable { name, value },
    );
    alt((variable, setting_value)).parse(input)
}
