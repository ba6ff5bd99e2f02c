//! The user's own text, of `echo` and `printf`.

use crate::render::theme::columns;
use std::cell::Cell;
use std::rc::Rc;

/// The column at which the next text continues: the commands of a session may print one line in parts.
pub type TextColumn = Rc<Cell<usize>>;

/// Breaks lines of a text between words where they are wider than a terminal of `width` columns.
pub(super) fn broken(text: &str, width: usize, continued: &TextColumn) -> String {
    let mut column = continued.get();
    let mut broken = String::new();
    for line in text.split_inclusive('\n') {
        let (words, end) = line.strip_suffix('\n').map_or((line, ""), |words| (words, "\n"));
        let mut rest = words;
        while !rest.is_empty() {
            let word = rest.find(|c| c != ' ').unwrap_or(rest.len());
            let next = rest[word..].find(' ').map_or(rest.len(), |length| word + length);
            let added = columns(&rest[..next]);
            let breaks = word > 0 && word < next && column > 0 && column + added > width;
            if breaks {
                broken.push('\n');
                broken.push_str(&rest[word..next]);
                column = columns(&rest[word..next]);
            } else {
                broken.push_str(&rest[..next]);
                column += added;
            }
            rest = &rest[next..];
        }
        if !end.is_empty() {
            broken.push('\n');
            column = 0;
        }
    }
    continued.set(column);
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_wider_than_the_terminal_break_between_words() {
        let column = TextColumn::default();
        for (given, expected) in [
            ("one  two\nthree\n", "one  two\nthree\n"),
            ("one two three\n", "one two\nthree\n"),
            // One line in parts.
            ("one", "one"),
            (" two.", " two."),
            (" three;", "\nthree;"),
            (" four\n\n  x\n", "\nfour\n\n  x\n"),
            ("a-long-word-alone b\n", "a-long-word-alone\nb\n"),
            ("a name   here\n", "a name\nhere\n"),
        ] {
            assert_eq!(broken(given, 9, &column), expected, "{given:?}");
        }
    }
}
