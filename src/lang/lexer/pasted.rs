//! Values and addresses as gdb prints them, which may stand in an expression. Whole rows: `pasted_row`.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{char, satisfy};
use nom::combinator::opt;
use nom::sequence::{preceded, terminated};

use super::number::decimal;
use super::quoted;
use super::rule::{Lexed, blanks0, is_letter, no_match};
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

/// `0x5555555592a0 <buf+16>`
pub(super) fn address(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, address) = terminated(hexadecimal, (blanks0, symbol_offset)).parse(text)?;
    Ok((remaining, TokenKind::PastedAddress(address)))
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

fn decimal_number(text: &str) -> Lexed<'_, u64> {
    let (remaining, digits) = digits1(text)?;
    match decimal(digits).flatten() {
        Some(number) => Ok((remaining, number)),
        None => no_match(text),
    }
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
