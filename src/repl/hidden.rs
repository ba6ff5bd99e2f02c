//! Characters that must not reach the terminal, although a line may contain them after a paste or from the history: C1
//! control characters (U+009B begins a sequence as ESC [ does) and those that change the direction of text.

use crate::kernel::name::is_plain;
use std::borrow::Cow;

fn is_hidden(c: char) -> bool {
    // The editor itself shows tabs and line ends.
    !is_plain(c) && !matches!(c, '\t' | '\n')
}

/// The line without these characters. They take no columns in the editor's own count either.
pub(super) fn without(line: &str) -> Cow<'_, str> {
    if line.contains(is_hidden) { Cow::Owned(line.replace(is_hidden, "")) } else { Cow::Borrowed(line) }
}

/// The numbers of these characters in the line: `U+009B U+202E`.
pub(super) fn named(line: &str) -> Option<String> {
    let hidden = line.chars().filter(|&c| is_hidden(c));
    let names: Vec<String> = hidden.map(|c| format!("U+{:04X}", u32::from(c))).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_left_out_and_named() {
        let line = "echo \u{9b}31m \u{202e}abc é 漢";
        assert_eq!(without(line), "echo 31m abc é 漢");
        assert_eq!(named(line).as_deref(), Some("U+009B U+202E"));
        assert_eq!(named("walk heap"), None);
    }
}
