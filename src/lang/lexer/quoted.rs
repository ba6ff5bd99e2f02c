//! 'Names' and "texts" in quotes.

use nom::Parser;

use super::rule::{Lexed, no_match};
use super::token::TokenKind;

/// The most characters between quotes. Without a limit, every opening quote of such a line would be read to the end of
/// the line.
const LONGEST: usize = 4096;

pub(super) fn name(text: &str) -> Lexed<'_, TokenKind> {
    name_content.map(TokenKind::Quoted).parse(text)
}

pub(super) fn text(text: &str) -> Lexed<'_, TokenKind> {
    text_content.map(TokenKind::Text).parse(text)
}

/// `'…'`, at least one character.
pub(super) fn name_content(text: &str) -> Lexed<'_, String> {
    let (remaining, content) = between('\'', text)?;
    if content.is_empty() { no_match(text) } else { Ok((remaining, unescape(content))) }
}

/// `"…"`
pub(super) fn text_content(text: &str) -> Lexed<'_, String> {
    let (remaining, content) = between('"', text)?;
    Ok((remaining, unescape(content)))
}

/// The raw text from one quote to the next one without a backslash before it.
fn between(quote: char, text: &str) -> Lexed<'_, &str> {
    let Some(inside) = text.strip_prefix(quote) else {
        return no_match(text);
    };
    let mut escaped = false;
    for (offset, character) in inside.char_indices().take(LONGEST) {
        if escaped {
            escaped = false;
        } else if character == quote {
            let (content, end) = inside.split_at(offset);
            return Ok((end.strip_prefix(quote).unwrap_or(end), content));
        } else {
            escaped = character == '\\';
        }
    }
    no_match(text)
}

/// Replaces `\n \t \\ \" \'`. Any other backslash stays, so that regular expressions need no second one.
pub(in crate::lang) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some(same @ ('\\' | '"' | '\'')) => plain.push(same),
            Some(unknown) => plain.extend(['\\', unknown]),
            None => plain.push('\\'),
        }
    }
    plain
}

/// `text` between two `quote`s, as it is written in a line.
pub fn escape(quote: char, text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(quote);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\\' => quoted.push_str(match characters.peek() {
                Some('n' | 't' | '\n' | '\t' | '\\' | '"' | '\'') | None => "\\\\",
                // It stays as it is, as in a name that is displayed with `\x1b`.
                Some(_) => "\\",
            }),
            same if same == quote => quoted.extend(['\\', same]),
            plain => quoted.push(plain),
        }
    }
    quoted.push(quote);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_backslash_that_would_mean_something_is_doubled() {
        for (text, quoted) in [
            ("esc\\x1b[31m\\xff.so", "'esc\\x1b[31m\\xff.so'"),
            ("\\d+", "'\\d+'"),
            ("a\\nb", "'a\\\\nb'"),
            ("a\nb", "'a\\nb'"),
            ("a\\\t", "'a\\\\\\t'"),
            ("a\\", "'a\\\\'"),
            ("\\\\x", "'\\\\\\x'"),
            ("\\'", "'\\\\\\''"),
        ] {
            assert_eq!(escape('\'', text), quoted);
            assert_eq!(name_content(quoted).unwrap(), ("", text.to_owned()));
        }
    }
}
