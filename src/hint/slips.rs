//! Hints for common mistakes, and for syntax of other languages.

use crate::lang::Failure;
use regex_lite::Regex;
use std::sync::LazyLock;

/// Prompts that users paste together with the command.
const PROMPTS: [&str; 6] = ["(gdb)", "(lldb)", "(pmdb)", "pwndbg>", "gef>", "crash>"];

/// Returns the hint for a command with a prompt before it.
pub(super) fn pasted_prompt(failed: &Failure<'_>) -> Option<String> {
    let rest = failed.line.trim_start();
    let mut prompts = PROMPTS.iter().filter(|_| failed.position == 0);
    let command = prompts.find_map(|prompt| rest.strip_prefix(prompt))?.trim();
    (!command.is_empty()).then(|| format!("leave the prompt out: `{command}`"))
}

/// Returns the hint for `=~`, which matches a regular expression in other languages.
pub(super) fn of_perl(failed: &Failure<'_>) -> Option<String> {
    let (equals, tilde) = (failed.token()?, failed.tokens.get(failed.position + 1)?);
    let is_match = equals.text == "=" && tilde.text == "~" && tilde.is_glued;
    is_match.then(|| "write ~ before a regular expression, in a filter: `regions where name ~ \"^lib\"`".to_owned())
}

/// The form of two addresses with `-` or `:` between them, as in the first field of maps.
static RANGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:0x)?([0-9a-f]{8,16})(?:-|:)(?:0x)?([0-9a-f]{8,16})\b").ok());

/// Returns the hint for a range in the notation of maps, or with a colon.
pub(super) fn maps_range(failed: &Failure<'_>) -> Option<String> {
    let (first, place) = (failed.tokens.first()?.at.start, failed.token()?.at);
    let found = RANGE.as_ref()?.captures_iter(failed.line).find_map(|captures| {
        let whole = captures.get(0).filter(|whole| whole.start() <= place.start && place.start < whole.end())?;
        Some((whole.range(), format!("0x{}..0x{}", captures.get(1)?.as_str(), captures.get(2)?.as_str())))
    });
    let (at, range) = found?;
    let command = if at.start == first { "walk " } else { "" };
    let line = format!("{command}{}{range}{}", failed.line.get(first..at.start)?, failed.line.get(at.end..)?);
    failed.language.accepts(&line).then(|| format!("write a range as A..B: `{line}`"))
}
