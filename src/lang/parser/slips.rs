//! Common mistakes: what beginners leave out or write as in another language. Each gets a hint.

use super::failure::{Failure, short};
use crate::kernel::words::Worded;
use crate::lang::commands::takes_how;
use crate::lang::expected::Expected;
use crate::lang::field::{FilterField, PageField};
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::syntax::{Kept, OnRequest};

/// A hint how to write what stands at `position` or in front of it.
pub(super) fn hint(failed: &Failure<'_>) -> Option<String> {
    pasted_prompt(failed)
        .or_else(|| maps_range(failed))
        .or_else(|| filter_word_in_value(failed))
        .or_else(|| missing_with(failed))
        .or_else(|| mistake_in_command(failed))
}

/// Prompts that people paste together with the command behind them.
const PROMPTS: [&str; 5] = ["(gdb)", "(pmdb)", "pwndbg>", "gef>", "crash>"];

fn pasted_prompt(failed: &Failure<'_>) -> Option<String> {
    let rest = failed.line.trim_start();
    let mut prompts = PROMPTS.iter().filter(|_| failed.position == 0);
    let command = prompts.find_map(|prompt| rest.strip_prefix(prompt))?.trim();
    (!command.is_empty()).then(|| format!("leave the prompt out: {command}"))
}

/// The first field of a line of maps: two addresses with `-` between them.
fn maps_range(failed: &Failure<'_>) -> Option<String> {
    let [start, minus, end, ..] = failed.tokens.get(failed.position..)? else {
        return None;
    };
    let is_number = |token: &Token<'_>| {
        let is_long = token.text.len() >= 8;
        is_long && token.text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_span = minus.text == "-" && minus.glued && end.glued;
    let command = match failed.line.get(..start.at.start)?.trim() {
        "" => "walk",
        command => command,
    };
    (is_span && is_number(start) && is_number(end))
        .then(|| format!("a range is written A..B: {command} 0x{}..0x{}", start.text, end.text))
}

/// Commands whose argument is a value.
const TAKE_VALUES: [&str; 5] = ["print", "output", "assert", "if", "while"];

/// A word of filters, or of another language, in a command that takes a value.
fn filter_word_in_value(failed: &Failure<'_>) -> Option<String> {
    let command = failed.command()?;
    let is_value = TAKE_VALUES.contains(&command) && failed.expects(Expected::Operator);
    if !is_value || failed.expects(Expected::Word("and")) {
        return None;
    }
    let (line, token, before) = (failed.line, failed.token()?, failed.before()?);
    match token.text {
        "and" => Some("between values `and` is written &&: A && B".to_owned()),
        "or" => Some("between values `or` is written ||: A || B".to_owned()),
        "where" if !failed.expects(Expected::Mark(")")) => {
            let pages = line.get(failed.tokens.get(1)?.at.start..token.at.start)?.trim();
            let than = match command {
                "print" | "output" => "",
                _ => " > 0",
            };
            Some(format!("count(RANGE where FILTER) counts pages: {command} count({pages} where FILTER){than}"))
        }
        "then" | "do" | "{" | ":" | ";" if matches!(command, "if" | "while") => {
            Some(format!("`{}` is left out: the lines follow, each on its own, and `end` closes them", token.text))
        }
        word if before.text == "not" && PageField::from_name(word).is_some() => {
            Some(format!("`{word}` is a condition on pages: {command} count(RANGE where {word}) == 0"))
        }
        _ if before.text == "not" => {
            Some(format!("before a value `not` is written !: {command} !{}", short(line.get(token.at.start..)?)))
        }
        _ => None,
    }
}

/// A word that needs `with` before it.
fn missing_with(failed: &Failure<'_>) -> Option<String> {
    let word = failed.token()?.text;
    let is_word = Kept::from_word(word).is_some() || OnRequest::from_word(word).is_some();
    (is_word && failed.expects(Expected::Word("with"))).then(|| format!("put `with` before it: with {word}"))
}

/// A range behind the name of a snapshot, without `in`.
fn missing_in(failed: &Failure<'_>) -> Option<String> {
    let token = failed.token()?;
    let is_range = !matches!(token.kind, TokenKind::Mark | TokenKind::Other);
    (is_range && failed.expects(Expected::Word("in")))
        .then(|| format!("a snapshot has one name; a range comes behind `in`: in {}", short(token.text)))
}

/// Mistakes that belong to one command.
fn mistake_in_command(failed: &Failure<'_>) -> Option<String> {
    let first = failed.tokens.get(1)?;
    match (failed.command()?, failed.position, first.text) {
        ("foreach", 1, word) if first.kind == TokenKind::Name => {
            Some(format!("a variable begins with $: foreach ${word} in \u{2026}"))
        }
        ("foreach", _, _) if failed.expects(Expected::Mark(",")) => {
            let is_value = matches!(failed.token()?.kind, TokenKind::Number(_));
            is_value.then(|| "commas separate the values: foreach $i in 1, 2, 3".to_owned())
        }
        ("compare", 1, word) if first.kind == TokenKind::Name => {
            Some(format!("the name of a process is a text: compare \"{word}\""))
        }
        ("info", 2, word) if word.starts_with("reg") => {
            Some("for one register: print $sp, print $pc; gdb shows the others".to_owned())
        }
        (name @ ("walk" | "watch"), 2, word) if failed.expects_word(word) => {
            Some(format!("the range comes first: {name} all {word} \u{2026}"))
        }
        ("snapshot", 2.., _) => missing_in(failed),
        ("watch", 2.., _) if failed.expects(Expected::Word("every")) => {
            let time = failed.token()?;
            let text = time.text;
            matches!(time.kind, TokenKind::Duration(_)).then(|| {
                format!("watch RANGE every {text} sets the time between samples, watch RANGE for {text} the whole time")
            })
        }
        (name, 2.., _) if takes_how(name) && first.text != "--how" => {
            let is_how = failed.token()?.text == "--how";
            is_how.then(|| format!("--how comes right after the name of the command: {name} --how \u{2026}"))
        }
        _ => None,
    }
}
