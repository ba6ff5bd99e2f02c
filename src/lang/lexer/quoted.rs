//! 'Names' and "texts" in quotes; and what ends a command or stands for a whole line: comments, shell lines, pipes,
//! redirections.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while};
use nom::character::complete::{char, satisfy};
use nom::combinator::{eof, not, opt, peek, recognize, rest, value};
use nom::sequence::{pair, preceded, terminated};

use super::rule::{Lexed, blanks0, is_blank, no_match};
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
pub(crate) fn unescape(text: &str) -> String {
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

pub(super) fn comment_line(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::CommentLine, pair(char('#'), rest)).parse(text)
}

pub(super) fn comment(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Comment, (char('#'), alt((eof, recognize(pair(satisfy(is_blank), rest)))))).parse(text)
}

/// Text for a shell: to the end of the line, and not only blanks.
fn shell_text(text: &str) -> Lexed<'_, &str> {
    preceded(blanks0, recognize(pair(satisfy(|c| !is_blank(c)), rest))).parse(text)
}

pub(super) fn shell(text: &str) -> Lexed<'_, TokenKind> {
    let word = terminated(alt((tag("shell"), tag("shel"), tag("she"))), satisfy(is_blank));
    let (remaining, command) = preceded(alt((tag("!"), word)), shell_text).parse(text)?;
    Ok((remaining, TokenKind::Shell(command.trim_end_matches(is_blank).to_owned())))
}

pub(super) fn pipe(text: &str) -> Lexed<'_, TokenKind> {
    let (behind, _) = terminated(char('|'), peek(not((blanks0, char('|'))))).parse(text)?;
    let (remaining, command) = shell_text(behind)?;
    let offset = text.len() - command.len();
    Ok((remaining, TokenKind::Pipe { text: command.trim_end_matches(is_blank).to_owned(), offset }))
}

pub(super) fn lone_pipe(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::LonePipe, (char('|'), peek(not(char('|'))))).parse(text)
}

pub(super) fn redirect(text: &str) -> Lexed<'_, TokenKind> {
    let (path, append) =
        (preceded(char('>'), opt(char('>'))), blanks0).parse(text).map(|(path, (again, _))| (path, again.is_some()))?;
    let plain =
        recognize((alt((tag("/"), tag("./"), tag("../"), tag("~/"))), take_while(|c| !is_blank(c) && c != '|')));
    let (remaining, unquoted) = alt((plain.map(str::to_owned), name_content, text_content)).parse(path)?;
    Ok((remaining, TokenKind::Redirect { append, path: unquoted, offset: text.len() - path.len() }))
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
