//! Common mistakes: what beginners leave out or write as in another language. Each gets a hint.

use crate::kernel::words::Worded;
use crate::lang::commands::{Resolved, resolve_first, takes_how};
use crate::lang::expected::Expected;
use crate::lang::field::{FilterField, PageField};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::syntax::{Kept, OnRequest};

/// A hint how to write what stands at `position` or in front of it.
pub(super) fn hint(
    line: &str,
    tokens: &[Token<'_>],
    position: usize,
    expected: &[Expected],
) -> Option<String> {
    pasted_prompt(line, position)
        .or_else(|| maps_range(line, tokens, position))
        .or_else(|| filter_word_in_value(line, tokens, position, expected))
        .or_else(|| missing_with(tokens, position, expected))
        .or_else(|| mistake_in_command(tokens, position, expected))
}

/// Prompts that people paste together with the command behind them.
const PROMPTS: [&str; 5] = ["(gdb)", "(pmdb)", "pwndbg>", "gef>", "crash>"];

fn pasted_prompt(line: &str, position: usize) -> Option<String> {
    let rest = line.trim_start();
    let mut prompts = PROMPTS.iter().filter(|_| position == 0);
    let command = prompts.find_map(|prompt| rest.strip_prefix(prompt))?.trim();
    (!command.is_empty()).then(|| format!("leave the prompt out: {command}"))
}

/// The first field of a line of maps: two addresses with `-` between them.
fn maps_range(line: &str, tokens: &[Token<'_>], position: usize) -> Option<String> {
    let [start, minus, end, ..] = tokens.get(position..)? else {
        return None;
    };
    let is_number = |token: &Token<'_>| {
        let is_long = token.text.len() >= 8;
        is_long && token.text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_span = minus.text == "-" && minus.glued && end.glued;
    let command = match line.get(..start.at.start)?.trim() {
        "" => "walk",
        command => command,
    };
    (is_span && is_number(start) && is_number(end)).then(|| {
        format!(
            "a range is written A..B: {command} 0x{}..0x{}",
            start.text, end.text
        )
    })
}

/// Commands whose argument is a value.
const TAKE_VALUES: [&str; 5] = ["print", "output", "assert", "if", "while"];

/// A word of filters, or of another language, in a command that takes a value.
fn filter_word_in_value(
    line: &str,
    tokens: &[Token<'_>],
    position: usize,
    expected: &[Expected],
) -> Option<String> {
    let Resolved::One(command) = resolve_first(tokens.first()?.text) else {
        return None;
    };
    let is_value = TAKE_VALUES.contains(&command) && expected.contains(&Expected::Operator);
    let is_filter = expected.contains(&Expected::Word("and"));
    if !is_value || is_filter {
        return None;
    }
    let token = tokens.get(position)?;
    let before = tokens.get(position.checked_sub(1)?)?;
    match token.text {
        "and" => Some("between values `and` is written &&: A && B".to_owned()),
        "or" => Some("between values `or` is written ||: A || B".to_owned()),
        "where" if !expected.contains(&Expected::Mark(")")) => {
            let pages = line.get(tokens.get(1)?.at.start..token.at.start)?.trim();
            let than = match command {
                "print" | "output" => "",
                _ => " > 0",
            };
            Some(format!(
                "count(RANGE where FILTER) counts pages: {command} count({pages} where FILTER){than}"
            ))
        }
        "then" | "do" | "{" | ":" | ";" if matches!(command, "if" | "while") => Some(format!(
            "`{}` is left out: the lines follow, each on its own, and `end` closes them",
            token.text
        )),
        word if before.text == "not" && PageField::from_name(word).is_some() => Some(format!(
            "`{word}` is a condition on pages: {command} count(RANGE where {word}) == 0"
        )),
        _ if before.text == "not" => Some(format!(
            "before a value `not` is written !: {command} !{}",
            short(line.get(token.at.start..)?)
        )),
        _ => None,
    }
}

/// A word that needs `with` before it.
fn missing_with(tokens: &[Token<'_>], position: usize, expected: &[Expected]) -> Option<String> {
    let word = tokens.get(position)?.text;
    let is_word = Kept::from_word(word).is_some() || OnRequest::from_word(word).is_some();
    let is_wanted = expected.contains(&Expected::Word("with"));
    (is_word && is_wanted).then(|| format!("put `with` before it: with {word}"))
}

/// A range behind the name of a snapshot, without `in`.
fn missing_in(tokens: &[Token<'_>], position: usize, expected: &[Expected]) -> Option<String> {
    let token = tokens.get(position)?;
    let is_range = !matches!(token.kind, TokenKind::Mark | TokenKind::Other);
    let is_wanted = expected.contains(&Expected::Word("in"));
    (is_range && is_wanted).then(|| {
        format!(
            "a snapshot has one name; a range comes behind `in`: in {}",
            short(token.text)
        )
    })
}

/// Mistakes that belong to one command.
fn mistake_in_command(
    tokens: &[Token<'_>],
    position: usize,
    expected: &[Expected],
) -> Option<String> {
    let [command, first, ..] = tokens else {
        return None;
    };
    let Resolved::One(name) = resolve_first(command.text) else {
        return None;
    };
    match (name, position, first.text) {
        ("foreach", 1, word) if first.kind == TokenKind::Name => Some(format!(
            "a variable begins with $: foreach ${word} in \u{2026}"
        )),
        ("foreach", _, _) if expected.contains(&Expected::Mark(",")) => {
            let is_value = matches!(tokens.get(position)?.kind, TokenKind::Number(_));
            is_value.then(|| "commas separate the values: foreach $i in 1, 2, 3".to_owned())
        }
        ("compare", 1, word) if first.kind == TokenKind::Name => Some(format!(
            "the name of a process is a text: compare \"{word}\""
        )),
        ("info", 2, word) if word.starts_with("reg") => {
            Some("for one register: print $sp, print $pc; gdb shows the others".to_owned())
        }
        ("walk", 2, word @ ("where" | "by" | "limit" | "top"))
        | ("watch", 2, word @ ("every" | "for" | "count" | "until" | "with" | "as" | "by")) => {
            Some(format!("the range comes first: {name} all {word} \u{2026}"))
        }
        ("snapshot", 2.., _) => missing_in(tokens, position, expected),
        ("watch", 2.., _) if expected.contains(&Expected::Word("every")) => {
            let time = tokens.get(position)?;
            let text = time.text;
            matches!(time.kind, TokenKind::Duration(_))
                .then(|| format!("watch RANGE every {text} sets the time between samples, watch RANGE for {text} the whole time"))
        }
        (name, 2.., _) if takes_how(name) && first.text != "--how" => {
            let is_how = tokens.get(position)?.text == "--how";
            is_how.then(|| {
                format!("--how comes right after the name of the command: {name} --how \u{2026}")
            })
        }
        _ => None,
    }
}

/// The beginning of a long token, such as a pasted line.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 24;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST).chain(['…']).collect()
    }
}
