//! Hints for options at a place where they cannot stand.

use crate::lang::Failure;
use crate::lang::lexer::{Token, TokenKind, is_blank};

/// Options stand among the first words of a command.
const FARTHEST: usize = 8;

/// The commands of each option.
const OF_COMMANDS: &[(&str, &str)] = &[
    ("--how", "`translate --how ADDRESS`, and other commands that look at the process"),
    ("--fault", "`x --fault ADDRESS`"),
    ("--yes", "`soft-dirty clear --yes`"),
    ("--overwrite", "`capture FILE --overwrite`, `export core FILE --overwrite`, `snapshot NAME to FILE --overwrite`"),
];

fn option<'a>(failed: &Failure<'a>) -> Option<&'a Token<'a>> {
    failed.token().filter(|token| token.kind == TokenKind::Option)
}

/// `capture --overwrite FILE`: an option that the command takes at another place.
pub(super) fn elsewhere(failed: &Failure<'_>) -> Option<String> {
    let option = option(failed)?;
    let text = |from: usize, to: usize| Some(failed.line.get(from..to)?.trim());
    let (start, end) = (option.at.start, failed.line.len());
    let mut lines = failed.tokens.iter().take(FARTHEST).filter_map(|token| {
        let place = token.at.end;
        // Not into a path.
        failed.line.get(place..)?.chars().next().is_none_or(is_blank).then_some(())?;
        let line = if place <= start {
            [text(0, place)?, option.text, text(place, start)?, text(option.at.end, end)?]
        } else {
            [text(0, start)?, text(option.at.end, place)?, option.text, text(place, end)?]
        };
        let line = line.join(" ");
        failed.language.accepts(&line).then_some(line)
    });
    lines.next().map(|line| format!("move the option: `{}`", line.trim_end()))
}

/// `walk --overwrite heap`: an option that only other commands take.
pub(super) fn of_others(failed: &Failure<'_>) -> Option<String> {
    let option = option(failed)?;
    if failed.before().is_some_and(|before| before.text == option.text) {
        return Some(format!("one `{}` is enough", option.text));
    }
    let (_, commands) = OF_COMMANDS.iter().find(|(known, _)| *known == option.text)?;
    Some(format!("commands with this option: {commands}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::lexer::OPTIONS;

    #[test]
    fn each_option_has_its_commands() {
        assert_eq!(OF_COMMANDS.iter().map(|(option, _)| *option).collect::<Vec<_>>(), OPTIONS);
    }
}
