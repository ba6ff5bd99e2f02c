//! Hints for options in the wrong place.

use crate::lang::lexer::{OPTIONS, Token, TokenKind, is_blank};
use crate::lang::{Failure, Span, near};

/// The number of words of a command among which an option is moved.
const FARTHEST: usize = 8;

/// The commands of each option. A test compares them with the usages, which come from the grammar.
pub(crate) const OF_COMMANDS: &[(&str, &str)] = &[
    ("--how", "`translate --how ADDRESS`, and other commands that look at the process"),
    ("--fault", "`x --fault ADDRESS`"),
    ("--yes", "`soft-dirty clear --yes`"),
    ("--overwrite", "`capture FILE --overwrite`, `export core FILE --overwrite`, `snapshot NAME to FILE --overwrite`"),
];

fn option<'a>(failed: &Failure<'a>) -> Option<&'a Token<'a>> {
    failed.token().filter(|token| token.kind == TokenKind::Option)
}

/// Returns the hint for an option that the command takes at another place: `capture --overwrite FILE`.
pub(super) fn elsewhere(failed: &Failure<'_>) -> Option<String> {
    let option = option(failed)?;
    let line = moved(failed, option.at, option.text)?;
    Some(format!("move the option: `{line}`"))
}

/// Returns the line with `option` moved from `at` to where the command takes it.
fn moved(failed: &Failure<'_>, at: Span, option: &str) -> Option<String> {
    let text = |from: usize, to: usize| Some(failed.line.get(from..to)?.trim());
    let (start, end) = (at.start, failed.line.len());
    let mut lines = failed.tokens.iter().take(FARTHEST).filter_map(|token| {
        let place = token.at.end;
        // The place must not be within a path.
        failed.line.get(place..)?.chars().next().is_none_or(is_blank).then_some(())?;
        let line = if place <= start {
            [text(0, place)?, option, text(place, start)?, text(at.end, end)?]
        } else {
            [text(0, start)?, text(at.end, place)?, option, text(place, end)?]
        };
        let line = line.join(" ").trim_end().to_owned();
        failed.language.accepts(&line).then_some(line)
    });
    lines.next()
}

/// Returns the hint for an option that only other commands take: `walk --overwrite heap`.
pub(super) fn of_others(failed: &Failure<'_>) -> Option<String> {
    let option = option(failed)?;
    if failed.before().is_some_and(|before| before.text == option.text) {
        return Some(format!("one `{}` is enough", option.text));
    }
    let (_, commands) = OF_COMMANDS.iter().find(|(known, _)| *known == option.text)?;
    Some(format!("commands with this option: {commands}"))
}

/// Returns the hint for a misspelt option, or a clause with minus signs: `x --falt $sp`, `walk heap --lmit 5`. The
/// parser takes `-WORD` for a negated value, so that the line fails after it.
pub(super) fn misspelt(failed: &Failure<'_>) -> Option<String> {
    let typed = failed.tokens.windows(2).take(failed.position + 1).find_map(|two| match two {
        [_, option] if option.kind == TokenKind::OtherOption => Some((option.at, option.text.trim_start_matches('-'))),
        [minus, name] if minus.text == "-" && !minus.is_glued && name.kind == TokenKind::Name && name.is_glued => {
            Some((minus.at.to(name.at), name.text))
        }
        _ => None,
    });
    let (at, name) = typed?;
    let (before, behind) = (failed.line.get(..at.start)?, failed.line.get(at.end..)?);
    let options = near(&format!("--{name}"), OPTIONS);
    let elsewhere = options.iter().find_map(|option| moved(failed, at, option));
    let words = failed.words().into_iter().filter(|word| *word == name).chain(near(name, failed.words()));
    let mut lines = options.into_iter().chain(words).map(|word| format!("{before}{word}{behind}"));
    let line = lines.find(|line| failed.language.accepts(line)).or(elsewhere)?;
    Some(format!("did you mean `{}`?", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_commands() {
        assert_eq!(OF_COMMANDS.iter().map(|(option, _)| *option).collect::<Vec<_>>(), OPTIONS);
    }
}
