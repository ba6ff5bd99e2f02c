//! What gdb, `/proc/PID/maps` and pmap print, taken for the address or range that it shows.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n, take_while1};
use nom::character::complete::{char, satisfy};
use nom::combinator::opt;
use nom::sequence::{delimited, preceded, terminated};

use super::number::decimal;
use super::quoted;
use super::rule::{Lexed, blanks0, blanks1, either, is_blank, is_letter, no_match};
use super::token::TokenKind;

/// The most characters of a type or symbol: with no limit, a line of opening brackets would be read to its end for each.
const LONGEST: usize = 4096;

/// `$1 = (int *) 0x5555555592a0 <buf+16>`
pub(super) fn value(text: &str) -> Lexed<'_, TokenKind> {
    let history = (
        char('$'),
        digits1,
        blanks0,
        char('='),
        blanks0,
        opt((cast, blanks0)),
    );
    let (mut remaining, address) =
        preceded(history, alt((hexadecimal, decimal_number))).parse(text)?;
    if let Ok((behind, _)) = preceded(blanks0, symbol_offset).parse(remaining) {
        remaining = behind;
    }
    if let Ok((behind, _)) = (blanks0, quoted::text_content, opt(tag("..."))).parse(remaining) {
        remaining = behind;
    }
    Ok((remaining, TokenKind::PastedValue(address)))
}

/// `0x5555555592a0 <buf+16>`, with the colon of gdb's `x`.
pub(super) fn address(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, address) =
        terminated(hexadecimal, (blanks0, symbol_offset, opt(char(':')))).parse(text)?;
    Ok((remaining, TokenKind::PastedAddress(address)))
}

/// `#1 0x00007ffff7e0a1b0 in `: a frame of gdb's backtrace.
pub(super) fn frame(text: &str) -> Lexed<'_, TokenKind> {
    let number = (char('#'), digits1, blanks1);
    let word = (blanks1, tag("in"), satisfy(is_blank));
    let (remaining, address) = delimited(number, hexadecimal, word).parse(text)?;
    Ok((remaining, TokenKind::PastedFrame(address)))
}

/// `7ffff7dc0000-7ffff7de8000 r--p`
pub(super) fn maps_line(text: &str) -> Lexed<'_, TokenKind> {
    let permissions = (
        blanks1,
        either("r-"),
        either("w-"),
        either("x-"),
        either("ps"),
    );
    let (remaining, (start, _, end, _)) =
        (maps_hexadecimal, char('-'), maps_hexadecimal, permissions).parse(text)?;
    Ok((remaining, TokenKind::MapsLine { start, end }))
}

/// `00007ffff7dc0000    160K r-x--`; with `-x` or `-d` the size, and with `-x` what is resident and dirty, are bare numbers. With `-X`
/// the line is one of maps with the size behind the inode.
pub(super) fn pmap_line(text: &str) -> Lexed<'_, TokenKind> {
    let permissions = (
        blanks1,
        either("r-"),
        either("w-"),
        either("x-"),
        either("s-"),
        either("R-"),
    );
    let resident_and_dirty = (blanks1, decimal_number, blanks1, decimal_number);
    let size = alt((
        terminated(decimal_number, char('K')),
        terminated(decimal_number, resident_and_dirty),
        decimal_number,
    ));
    let short = (
        terminated(maps_hexadecimal, blanks1),
        terminated(size, permissions),
    );
    let permissions = (
        blanks1,
        either("r-"),
        either("w-"),
        either("x-"),
        either("ps"),
    );
    let device = (plain_hexadecimal, char(':'), plain_hexadecimal);
    let long = (
        terminated(maps_hexadecimal, permissions),
        preceded(
            (
                blanks1,
                plain_hexadecimal,
                blanks1,
                device,
                blanks1,
                digits1,
                blanks1,
            ),
            decimal_number,
        ),
    );
    let (remaining, (start, kibibytes)) = alt((short, long)).parse(text)?;
    match kibibytes.checked_mul(1024) {
        Some(length) => Ok((remaining, TokenKind::PmapLine { start, length })),
        None => no_match(text),
    }
}

/// `0x555555554000 0x555555555000 0x1000 0x0 r--p …`: gdb's `info proc mappings`.
pub(super) fn mapping_line(text: &str) -> Lexed<'_, TokenKind> {
    let size_and_offset = (blanks1, hexadecimal, blanks1, hexadecimal);
    let (remaining, (start, _, end, _)) =
        (hexadecimal, blanks1, hexadecimal, size_and_offset).parse(text)?;
    Ok((remaining, TokenKind::MapsLine { start, end }))
}

fn digits1(text: &str) -> Lexed<'_, &str> {
    take_while1(|c: char| c.is_ascii_digit())(text)
}

fn hexadecimal(text: &str) -> Lexed<'_, u64> {
    let digits = preceded(
        alt((tag("0x"), tag("0X"))),
        take_while1(|c: char| c.is_ascii_hexdigit()),
    );
    digits
        .map_res(|digits: &str| u64::from_str_radix(digits, 16))
        .parse(text)
}

fn plain_hexadecimal(text: &str) -> Lexed<'_, &str> {
    take_while1(|c: char| matches!(c, '0'..='9' | 'a'..='f'))(text)
}

fn decimal_number(text: &str) -> Lexed<'_, u64> {
    let (remaining, digits) = digits1(text)?;
    match decimal(digits).flatten() {
        Some(number) => Ok((remaining, number)),
        None => no_match(text),
    }
}

fn maps_hexadecimal(text: &str) -> Lexed<'_, u64> {
    let lower = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    take_while_m_n(4, usize::MAX, lower)
        .map_res(|digits: &str| u64::from_str_radix(digits, 16))
        .parse(text)
}

/// `(int *)`, `{void (int)}`: brackets of both kinds in pairs, each closed by its own.
fn cast(text: &str) -> Lexed<'_, ()> {
    let mut open: Vec<char> = Vec::new();
    for (offset, character) in text.char_indices().take(LONGEST) {
        match character {
            '(' => open.push(')'),
            '{' => open.push('}'),
            ')' | '}' if open.pop() != Some(character) => return no_match(text),
            '|' | '"' => return no_match(text),
            _ => {}
        }
        if open.is_empty() {
            let length = offset + character.len_utf8();
            return if offset == 0 {
                no_match(text)
            } else {
                Ok((text.get(length..).unwrap_or(""), ()))
            };
        }
    }
    no_match(text)
}

/// `<buf+16>`; `<` and `>` of a C++ name come in pairs.
fn symbol_offset(text: &str) -> Lexed<'_, ()> {
    let (_, _) = preceded(char('<'), satisfy(is_letter)).parse(text)?;
    let mut open = 0_usize;
    for (offset, character) in text.char_indices().take(LONGEST) {
        match character {
            '<' => open += 1,
            '>' => open -= 1,
            '|' | '"' => return no_match(text),
            _ => {}
        }
        if open == 0 {
            let length = offset + character.len_utf8();
            return Ok((text.get(length..).unwrap_or(""), ()));
        }
    }
    no_match(text)
}
