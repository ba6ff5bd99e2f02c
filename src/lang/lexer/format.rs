//! `/8xg` behind the name of a command, and bytes in hexadecimal.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n};
use nom::character::complete::{char, one_of};
use nom::combinator::{map_opt, map_res, opt};
use nom::multi::many1;
use nom::sequence::{delimited, preceded, terminated};

use super::rule::{Lexed, blanks0, digits1};
use super::token::TokenKind;
use super::word::word_ends;
use crate::kernel::words::Worded;
use crate::lang::layout::{Format, Layout, Unit};

/// Count, format and unit: each at most once, and at least one of them. A `-` in front means backward.
pub(super) fn format(text: &str) -> Lexed<'_, TokenKind> {
    let size_first = (unit, count).map(|(unit, count)| layout(Some(count), None, Some(unit)));
    let backward = preceded(char('-'), parts).map(|parts| Layout { backward: true, ..parts });
    delimited(char('/'), alt((size_first, backward, parts)), word_ends).map(TokenKind::Format).parse(text)
}

/// The count first, if there is one.
fn parts(text: &str) -> Lexed<'_, Layout> {
    alt((
        (opt(count), letter, opt(unit)).map(|(count, format, unit)| layout(count, Some(format), unit)),
        (opt(count), unit, opt(letter)).map(|(count, unit, format)| layout(count, format, Some(unit))),
        count.map(|count| layout(Some(count), None, None)),
    ))
    .parse(text)
}

fn layout(count: Option<u64>, format: Option<Format>, unit: Option<Unit>) -> Layout {
    Layout { count, backward: false, format, unit }
}

/// What a letter stands for.
fn meant<T: Worded>(letter: char) -> Option<T> {
    T::from_word(letter.encode_utf8(&mut [0; 4]))
}

fn letter(text: &str) -> Lexed<'_, Format> {
    map_opt(one_of("xduotaczsf"), meant).parse(text)
}

fn unit(text: &str) -> Lexed<'_, Unit> {
    map_opt(one_of("bhwg"), meant).parse(text)
}

fn count(text: &str) -> Lexed<'_, u64> {
    map_res(digits1, str::parse).parse(text)
}

/// `hex"de ad be ef"`
pub(super) fn bytes(text: &str) -> Lexed<'_, TokenKind> {
    let pair = map_res(take_while_m_n(2, 2, |c: char| c.is_ascii_hexdigit()), |digits| u8::from_str_radix(digits, 16));
    let pairs = preceded(blanks0, many1(terminated(pair, blanks0)));
    delimited(tag("hex\""), pairs, char('"')).map(TokenKind::HexBytes).parse(text)
}
