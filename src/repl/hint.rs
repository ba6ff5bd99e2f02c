//! The usage of a command while it is being typed.

use crate::command::LANGUAGE;
use crate::lang::{Expected, Resolved, grammar};

/// What may follow `line`, if no next word has begun.
pub(super) fn usage(line: &str) -> Option<String> {
    let words = line.trim();
    if words.is_empty() || !line.ends_with(' ') {
        return None;
    }
    if let Some(name) = command_name(words) {
        let usage = grammar::usage(&name)?;
        return usage.strip_prefix(name.as_str()).map(|rest| rest.trim_start().to_owned());
    }
    let clauses: Vec<&str> = LANGUAGE
        .expectation(line, line.len())
        .kinds
        .into_iter()
        .filter_map(|kind| match kind {
            Expected::Word(word) => Some(word),
            _ => None,
        })
        .collect();
    (!clauses.is_empty()).then(|| format!("[{}]", clauses.join(" | ")))
}

/// The full name of the command, if `words` are a command and nothing more.
fn command_name(words: &str) -> Option<String> {
    let mut words = words.split_whitespace();
    let Resolved::One(first) = LANGUAGE.resolve_first(words.next()?) else {
        return None;
    };
    let name = match words.next() {
        None if LANGUAGE.second_words(first).next().is_none() => first.to_owned(),
        None => return None,
        Some(second) => match LANGUAGE.resolve_second(first, second) {
            Resolved::One(second) => format!("{first} {second}"),
            _ => return None,
        },
    };
    words.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_shows_until_arguments_come() {
        assert!(usage("walk ").is_some_and(|usage| usage.contains("where")));
        assert_eq!(usage("w "), usage("walk "));
        assert!(usage("info symbol ").is_some());
        assert_eq!(usage("walk"), None);
        assert_eq!(usage("nonsense "), None);
    }

    #[test]
    fn behind_arguments_the_clauses_that_are_left_show() {
        let left = usage("walk all by state ").unwrap();
        assert!(left.contains("limit") && !left.contains("by"), "{left}");
    }
}
