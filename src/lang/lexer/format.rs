//! `/8xg` behind the name of a command, and bytes in hexadecimal.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n, take_while1};
use nom::character::complete::{char, one_of};
use nom::combinator::{map_opt, map_res, opt};
use nom::multi::many1;
use nom::sequence::{delimited, preceded, terminated};

use super::rule::{Lexed, blanks0};
use super::token::TokenKind;
use super::word::word_ends;
use crate::lang::layout::{Format, Layout, Unit};
use crate::lang::words::{FORMATS, UNITS};

/// How often, in which form, in units of what: each part at most once, and at least one of them.
pub(super) fn format(text: &str) -> Lexed<'_, TokenKind> {
    let layout = |count, format, unit| Layout {
        count,
        format,
        unit,
    };
    let one = alt((
        (letter, opt(unit)).map(move |(format, unit)| layout(None, Some(format), unit)),
        (unit, letter).map(move |(unit, format)| layout(None, Some(format), Some(unit))),
        (unit, opt(count)).map(move |(unit, count)| layout(count, None, Some(unit))),
        (count, letter, opt(unit))
            .map(move |(count, format, unit)| layout(Some(count), Some(format), unit)),
        (count, unit, opt(letter))
            .map(move |(count, unit, format)| layout(Some(count), format, Some(unit))),
        count.map(move |count| layout(Some(count), None, None)),
    ));
    delimited(char('/'), one, word_ends)
        .map(TokenKind::Format)
        .parse(text)
}

/// What a letter stands for.
fn meant<T: Copy>(letters: &[(&str, T)], letter: char) -> Option<T> {
    let mut letters = letters.iter();
    letters
        .find(|(text, _)| text.chars().eq([letter]))
        .map(|(_, meaning)| *meaning)
}

fn letter(text: &str) -> Lexed<'_, Format> {
    map_opt(one_of("xduotaczsf"), |letter| meant(FORMATS, letter)).parse(text)
}

fn unit(text: &str) -> Lexed<'_, Unit> {
    map_opt(one_of("bhwg"), |letter| meant(UNITS, letter)).parse(text)
}

fn count(text: &str) -> Lexed<'_, u64> {
    map_res(take_while1(|c: char| c.is_ascii_digit()), str::parse).parse(text)
}

/// `hex"de ad be ef"`
pub(super) fn bytes(text: &str) -> Lexed<'_, TokenKind> {
    let pair = map_res(
        take_while_m_n(2, 2, |c: char| c.is_ascii_hexdigit()),
        |digits| u8::from_str_radix(digits, 16),
    );
    let pairs = preceded(blanks0, many1(terminated(pair, blanks0)));
    delimited(tag("hex\""), pairs, char('"'))
        .map(TokenKind::HexBytes)
        .parse(text)
}
