//! Hints for common mistakes, and what people write as in another language.

use super::commands::takes_value;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::{Expected, Failure};

/// Prompts that people paste together with the command behind them.
const PROMPTS: [&str; 6] = ["(gdb)", "(lldb)", "(pmdb)", "pwndbg>", "gef>", "crash>"];

/// A prompt with the command behind it.
pub(super) fn pasted_prompt(failed: &Failure<'_>) -> Option<String> {
    let rest = failed.line.trim_start();
    let mut prompts = PROMPTS.iter().filter(|_| failed.position == 0);
    let command = prompts.find_map(|prompt| rest.strip_prefix(prompt))?.trim();
    (!command.is_empty()).then(|| format!("leave the prompt out: `{command}`"))
}

/// The hint for `NAME = VALUE` where no filter or condition is: a row of gdb, of which only addresses are taken.
pub(super) fn row_with_value(failed: &Failure<'_>) -> Option<String> {
    let is_row = failed.position == 2 && !failed.expects(Expected::Comparison);
    failed.command().filter(|_| is_row && !takes_value(failed))?;
    let [typed, name, ..] = failed.tokens else {
        return None;
    };
    let value = failed.tokens.get(failed.position + 1)?;
    let is_address = matches!(value.kind, TokenKind::Number(number) if number >= LEAST_ADDRESS)
        && failed.tokens.len() == failed.position + 2;
    Some(if is_address {
        format!("leave the name out: `{} {}`", typed.text, value.text)
    } else {
        format!("this row shows no address; gdb's `print &{}` does", name.text)
    })
}

/// `=~`, which matches a regular expression in other languages.
pub(super) fn of_perl(failed: &Failure<'_>) -> Option<String> {
    let (equals, tilde) = (failed.token()?, failed.tokens.get(failed.position + 1)?);
    let is = equals.text == "=" && tilde.text == "~" && tilde.is_glued;
    is.then(|| "write ~ before a regular expression, in a filter: `regions where name ~ \"^lib\"`".to_owned())
}

/// Smaller numbers are seldom meant as addresses: nothing is mapped there (`vm.mmap_min_addr`).
pub(super) const LEAST_ADDRESS: u64 = 0x1_0000;

/// A comma behind an address, as in a list.
pub(super) fn trailing_comma(failed: &Failure<'_>) -> Option<String> {
    let (comma, before) = match failed.token() {
        Some(token) if token.text == "," => (token, failed.before()?),
        None => (failed.before()?, failed.tokens.get(failed.position.checked_sub(2)?)?),
        _ => return None,
    };
    let is_last = comma.text == "," && failed.tokens.last() == Some(comma) && failed.command() != Some("find");
    let command = failed.tokens.first().filter(|_| failed.tokens.len() > 2)?;
    let is_address = matches!(before.kind, TokenKind::Number(number) if number >= LEAST_ADDRESS);
    (is_last && is_address).then(|| format!("leave the last comma out: `{} {}`", command.text, before.text))
}

/// The first field of a line of maps: two addresses with `-` between them.
pub(super) fn maps_range(failed: &Failure<'_>) -> Option<String> {
    let [start, minus, end, ..] = failed.tokens.get(failed.position..)? else {
        return None;
    };
    let is_number = |token: &Token<'_>| {
        let digits = token.text.trim_start_matches("0x");
        digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let digits = |token: &Token<'_>| token.text.trim_start_matches("0x").to_owned();
    let is_span = minus.text == "-" && minus.is_glued && end.is_glued;
    let command = match failed.line.get(..start.at.start)?.trim() {
        "" => "walk",
        command => command,
    };
    (is_span && is_number(start) && is_number(end))
        .then(|| format!("write a range as A..B: `{command} 0x{}..0x{}`", digits(start), digits(end)))
}
