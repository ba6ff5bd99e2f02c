//! Suggestions: what may have been meant.

use crate::lang::Name;

/// How many of a list are shown before it is cut.
const SHOWN: usize = 8;

/// A name as it has to be typed: brackets and plain names as they are, everything else in single quotes.
pub(super) fn spelling(name: &str) -> String {
    let bracketed = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inner| !inner.is_empty() && !inner.contains(['[', ']']));
    if bracketed { name.to_owned() } else { Name(name.to_owned()).to_string() }
}

/// Whether a word looks like a hexadecimal number without its `0x`.
pub(super) fn looks_hexadecimal(word: &str) -> bool {
    word.len() >= 3 && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// Whether a word looks like the name of a file that a command's output goes to.
pub(super) fn looks_like_file(word: &str) -> bool {
    const ENDINGS: [&str; 6] = ["svg", "txt", "json", "csv", "log", "out"];
    let ending = word.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// `did you mean a, b or c?`, each as it has to be typed.
pub(super) fn did_you_mean(names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| spelling(&name)).collect();
    let alternatives = match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    };
    format!("did you mean {alternatives}?")
}

/// The items with commas, cut after some.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    let mut items: Vec<String> = items.into_iter().collect();
    let left = items.len().saturating_sub(SHOWN);
    items.truncate(SHOWN);
    match left {
        0 => items.join(", "),
        _ => format!("{} and {left} more", items.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_can_be_typed() {
        assert_eq!(spelling("libc.so.6"), "libc.so.6");
        assert_eq!(spelling("a::b"), "a::b");
        assert_eq!(spelling("[anon: a b]"), "[anon: a b]");
        assert_eq!(spelling("ld-linux-x86-64.so.2"), "'ld-linux-x86-64.so.2'");
        assert_eq!(spelling("it's"), "'it\\'s'");
        assert_eq!(spelling("a..b"), "'a..b'");
    }

    #[test]
    fn a_hexadecimal_word() {
        assert!(looks_hexadecimal("deadbeef"));
        assert!(!looks_hexadecimal("decade_"));
    }
}
