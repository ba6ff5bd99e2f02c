//! Numbers, sizes in pages, durations, and what is wrong with words that only look like numbers; `/8xg` behind the name
//! of a command, and bytes in hexadecimal.

use super::token::{NumberFault, TokenKind};
use super::word::word_ends;
use crate::kernel::words::Worded;
use crate::lang::layout::{Format, Layout, Unit};
use crate::lang::lexer::token::{Lexed, blanks0, digits1, is_word_character};
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n};
use nom::character::complete::{char, one_of, satisfy};
use nom::combinator::{map_opt, map_res, opt, recognize};
use nom::multi::many1;
use nom::sequence::{delimited, pair, preceded, terminated};
use std::time::Duration;

/// NUMBER, PAGES, FRACTION, DURATION or BAD_NUMBER.
pub(super) fn number(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, word) =
        recognize(pair(satisfy(|c| c.is_ascii_digit()), nom::bytes::complete::take_while(is_word_character)))
            .parse(text)?;
    if decimal(word).is_some()
        && let Ok((remaining, (_, fraction, unit))) = (char('.'), digits1, opt(time_unit)).parse(remaining)
        && let Some(duration) = duration(word, fraction, unit.unwrap_or("s"))
    {
        let value = format!("{}.{fraction}", word.replace('_', "")).parse();
        return Ok(match (unit, value) {
            (None, Ok(value)) => (remaining, TokenKind::Fraction { value, seconds: duration }),
            _ => (remaining, TokenKind::Duration(duration)),
        });
    }
    Ok((remaining, classify(word)))
}

fn time_unit(text: &str) -> Lexed<'_, &str> {
    alt((tag("ms"), tag("s"), tag("m"), tag("h"))).parse(text)
}

/// The kind of a whole word that begins with a digit.
fn classify(word: &str) -> TokenKind {
    if let Some(value) = plain(word) {
        return or_too_large(value, TokenKind::Number);
    }
    for (suffix, shift) in [('K', 10), ('M', 20), ('G', 30), ('T', 40)] {
        if let Some(value) = word.strip_suffix(suffix).and_then(plain) {
            let value = value.and_then(|value| value.checked_mul(1 << shift));
            return or_too_large(value, TokenKind::Number);
        }
    }
    if let Some(value) = word.strip_suffix('p').and_then(plain) {
        return or_too_large(value, TokenKind::Pages);
    }
    for unit in ["ms", "s", "m", "h"] {
        if let Some(whole) = word.strip_suffix(unit)
            && decimal(whole).is_some()
        {
            return or_too_large(duration(whole, "0", unit), TokenKind::Duration);
        }
    }
    TokenKind::BadNumber(fault(word))
}

fn or_too_large<T>(value: Option<T>, kind: fn(T) -> TokenKind) -> TokenKind {
    value.map_or(TokenKind::BadNumber(NumberFault::TooLarge), kind)
}

/// A number without a suffix; `Some(None)` if it is one but too large.
fn plain(word: &str) -> Option<Option<u64>> {
    if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return grouped(digits, 16);
    }
    if let Some(digits) = word.strip_prefix("0b") {
        return grouped(digits, 2);
    }
    decimal(word)
}

/// A decimal number: no zero in front of another digit.
pub(super) fn decimal(word: &str) -> Option<Option<u64>> {
    if word.len() > 1 && word.starts_with('0') { None } else { grouped(word, 10) }
}

/// Digits with single `_` between them.
fn grouped(digits: &str, radix: u32) -> Option<Option<u64>> {
    let well_formed = digits.split('_').all(|group| !group.is_empty() && group.chars().all(|c| c.is_digit(radix)));
    well_formed.then(|| u64::from_str_radix(&digits.replace('_', ""), radix).ok())
}

/// Saturates at `Duration::MAX`, which is more than five hundred thousand million years.
fn duration(whole: &str, fraction: &str, unit: &str) -> Option<Duration> {
    let whole = decimal(whole)??;
    let nanoseconds: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: u128 = nanoseconds.parse().ok()?;
    let unit_in_milliseconds: u128 = match unit {
        "ms" => 1,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 1_000,
    };
    let total = (u128::from(whole) * 1_000_000_000 + nanoseconds) * unit_in_milliseconds / 1_000;
    let seconds = u64::try_from(total / 1_000_000_000);
    let below_a_second = u32::try_from(total % 1_000_000_000).ok()?;
    Some(seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, below_a_second)))
}

fn fault(word: &str) -> NumberFault {
    let digits_end = word.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(word.len());
    let (digits, letters) = word.split_at(digits_end);
    let all_hexadecimal = word.chars().all(|c| c.is_ascii_hexdigit());
    let followed_by_zero_padding = digits.len() > 1 && digits.starts_with('0');
    if followed_by_zero_padding && all_hexadecimal {
        NumberFault::LeadingZero
    } else if all_hexadecimal {
        NumberFault::LooksHexadecimal
    } else if !letters.is_empty() && decimal(digits).is_some() && letters != "x" && !word.starts_with("0x") {
        NumberFault::Suffix
    } else {
        NumberFault::Malformed
    }
}

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
