//! The last gate before a terminal: only printable text passes.

use crate::kernel::text::is_plain;
use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// `text` with control characters and invisible or direction-changing characters escaped, as
/// [`Name`](crate::kernel::Name) does it; borrowed if there was nothing to escape. A backslash stays as it is, because
/// names are already escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    printable_and_width(text).0
}

/// The same, and the terminal columns that it takes.
pub fn printable_and_width(text: &str) -> (Cow<'_, str>, usize) {
    if is_ascii(text) {
        return (Cow::Borrowed(text), text.len());
    }
    if text.chars().all(is_plain) {
        return (Cow::Borrowed(text), columns(text));
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        push_printable(&mut out, c);
    }
    let columns = columns(&out);
    (Cow::Owned(out), columns)
}

/// Whether the text is printable ASCII, as almost all is: then each character takes one column, and none is escaped.
pub fn is_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Appends `c`, escaped if need be.
pub fn push_printable(out: &mut String, c: char) {
    match c {
        c if is_plain(c) => out.push(c),
        c if (c as u32) < 0x80 => _ = write!(out, "\\x{:02x}", c as u32),
        c => _ = write!(out, "\\u{{{:x}}}", c as u32),
    }
}

/// Terminal columns that printable text takes.
pub fn columns(text: &str) -> usize {
    if is_ascii(text) { text.len() } else { text.chars().map(char_columns).sum() }
}

/// Terminal columns that a printable character takes.
pub fn char_columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Printable text cut to at most `limit` columns, with `…` at the cut; borrowed if it fits.
pub fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if columns(text) <= limit {
        return Cow::Borrowed(text);
    }
    let mut left = limit.saturating_sub(1);
    let kept: String = text
        .chars()
        .take_while(|&c| {
            let fits = char_columns(c) <= left;
            left = left.saturating_sub(char_columns(c));
            fits
        })
        .collect();
    if limit == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(kept + "…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_terminal_is_escaped_and_the_rest_is_left() {
        assert_eq!(printable("plain \\ é 漢"), "plain \\ é 漢");
        assert_eq!(printable("a\x1b[2J\n\u{9b}\u{202e}"), "a\\x1b[2J\\x0a\\u{9b}\\u{202e}");
    }

    #[test]
    fn cutting_counts_columns_not_bytes() {
        assert_eq!(cut("libc.so.6", 9), "libc.so.6");
        assert_eq!(cut("libc.so.6", 6), "libc.…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
    }
}
