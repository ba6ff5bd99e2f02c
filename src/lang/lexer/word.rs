//! Names, variables, brackets and marks.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, satisfy};
use nom::combinator::{not, opt, recognize, value};
use nom::multi::many0_count;
use nom::sequence::terminated;

use super::quoted;
use super::rule::{Lexed, digits1, is_blank, is_letter, is_word_character, no_match};
use super::token::{NumberFault, TokenKind};
use crate::lang::expression::HistoryReference;
use crate::lang::parser::Language;

/// The marks of the syntax, each before its own prefixes.
const MARKS: &[&str] = &[
    "..", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "=", "!", "~", "&", "^",
    "|", "(", ")", "{", "}", ",", ":",
];

/// `main`, `libc.so.6`, `a::b`, `malloc@plt`: dots and `::` only between word characters.
fn name_text(text: &str) -> Lexed<'_, &str> {
    recognize((
        satisfy(is_letter),
        take_while(is_word_character),
        many0_count((alt((tag("::"), tag("."))), take_while1(is_word_character))),
        opt(version),
    ))
    .parse(text)
}

/// `@plt`, `@got.plt`, `@GLIBC_2.2.5`, `@@GLIBC_2.34`: the version or table of a symbol.
fn version(text: &str) -> Lexed<'_, &str> {
    recognize((
        alt((tag("@@"), tag("@"))),
        satisfy(is_letter),
        take_while(is_word_character),
        many0_count((char('.'), take_while1(is_word_character))),
    ))
    .parse(text)
}

/// Whether a name needs no quotes.
pub(in crate::lang) fn is_plain_name(text: &str) -> bool {
    matches!(name_text(text), Ok(("", _)))
}

pub(super) fn name(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Name, name_text).parse(text)
}

pub(super) fn indexed(text: &str) -> Lexed<'_, TokenKind> {
    let (bracket, module) = alt((name_text.map(str::to_owned), quoted::name_content)).parse(text)?;
    let (remaining, (_, digits, _)) = (char('['), digits1, char(']')).parse(bracket)?;
    match digits.parse() {
        Ok(index) => Ok((remaining, TokenKind::Indexed { module, module_length: text.len() - bracket.len(), index })),
        Err(_) => no_match(text),
    }
}

/// `[4]` in the type of an array, or behind a value.
pub(super) fn dimension(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, (_, digits, _)) = (char('['), digits1, char(']')).parse(text)?;
    match digits.parse() {
        Ok(number) => Ok((remaining, TokenKind::Dimension(number))),
        Err(_) => no_match(text),
    }
}

pub(super) fn bracketed(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Bracketed, (char('['), take_while1(|c| c != '[' && c != ']'), char(']'))).parse(text)
}

pub(super) fn variable(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Variable, (char('$'), satisfy(is_letter), take_while(is_word_character))).parse(text)
}

pub(super) fn history(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, (_, second, digits)) =
        (char('$'), opt(char('$')), take_while(|c: char| c.is_ascii_digit())).parse(text)?;
    let reference = match (second, digits) {
        (None, "") => Some(HistoryReference::Last),
        (Some(_), "") => Some(HistoryReference::Back(1)),
        (None, digits) => digits.parse().ok().map(HistoryReference::Number),
        (Some(_), digits) => digits.parse().ok().map(HistoryReference::Back),
    };
    let kind = match reference {
        // gdb: $$0 is $
        Some(HistoryReference::Back(0)) => TokenKind::History(HistoryReference::Last),
        Some(reference) => TokenKind::History(reference),
        None => TokenKind::BadNumber(NumberFault::TooLarge),
    };
    Ok((remaining, kind))
}

/// `soft-dirty` where a command begins; elsewhere it is a subtraction.
pub(super) fn command_name(language: Language, text: &str) -> Option<&'static str> {
    let mut hyphenated = language.first_words().filter(|word| word.contains('-'));
    hyphenated.find(|name| terminated(tag(*name), word_ends).parse(text).is_ok())
}

/// Words that begin with two minus signs.
pub(in crate::lang) const OPTIONS: [&str; 3] = ["--how", "--fault", "--yes"];

pub(super) fn option(text: &str) -> Lexed<'_, TokenKind> {
    match OPTIONS.iter().find(|option| text.starts_with(**option)) {
        Some(option) => value(TokenKind::Option, terminated(tag(*option), word_ends)).parse(text),
        None => no_match(text),
    }
}

/// Matches where no word goes on.
pub(super) fn word_ends(text: &str) -> Lexed<'_, ()> {
    not(satisfy(|c| is_word_character(c) || matches!(c, '.' | ':'))).parse(text)
}

pub(super) fn mark(text: &str) -> Lexed<'_, TokenKind> {
    match MARKS.iter().find(|mark| text.starts_with(**mark)) {
        Some(mark) => value(TokenKind::Mark, tag(*mark)).parse(text),
        None => no_match(text),
    }
}

pub(super) fn other(text: &str) -> Lexed<'_, TokenKind> {
    value(TokenKind::Other, satisfy(|c| !is_blank(c))).parse(text)
}
