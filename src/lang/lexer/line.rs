//! What ends a command or stands for a whole line: comments, shell lines, pipes, redirections.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while};
use nom::character::complete::{char, satisfy};
use nom::combinator::{eof, not, opt, peek, recognize, rest, value};
use nom::sequence::{pair, preceded, terminated};

use super::quoted;
use super::rule::{Lexed, blanks0, is_blank};
use super::token::TokenKind;

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
    let (remaining, unquoted) =
        alt((plain.map(str::to_owned), quoted::name_content, quoted::text_content)).parse(path)?;
    Ok((remaining, TokenKind::Redirect { append, path: unquoted, offset: text.len() - path.len() }))
}
