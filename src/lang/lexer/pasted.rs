//! Values and addresses as gdb prints them, which may stand in an expression. Whole rows: `pasted_row`.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{char, satisfy};
use nom::combinator::opt;
use nom::sequence::{preceded, terminated};

use super::number::decimal;
use super::quoted;
use super::rule::{Lexed, blanks0, digits1, is_letter, no_match};
use super::token::TokenKind;
use crate::lang::ctype::CType;

/// The most characters of a type or symbol. Without a limit, every opening bracket of such a line would be read to the
/// end of the line.
const LONGEST: usize = 4096;

/// `$1 = (int *) 0x5555555592a0 <buf+16>`
pub(super) fn value(text: &str) -> Lexed<'_, TokenKind> {
    let history = (char('$'), digits1, blanks0, char('='), blanks0, opt((cast, blanks0)));
    let (mut remaining, address) = preceded(history, alt((hexadecimal, decimal_number))).parse(text)?;
    remaining = pointed_at(remaining);
    Ok((remaining, TokenKind::PastedValue(address)))
}

/// `0x5555555592a0 <buf+16>`
pub(super) fn address(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, address) = terminated(hexadecimal, (blanks0, symbol_offset)).parse(text)?;
    Ok((remaining, TokenKind::PastedAddress(address)))
}

/// `(int *) 0x5555555592a0 <buf+16>`, `{int} 0x5555555592a0`
pub(super) fn cast_address(text: &str) -> Lexed<'_, TokenKind> {
    let (behind, ()) = cast(text)?;
    let Some(bracketed) = text.get(..text.len() - behind.len()).filter(|cast| is_pointer_cast(cast)) else {
        return no_match(text);
    };
    let (number, _) = blanks0(behind)?;
    let (remaining, address) = hexadecimal(number)?;
    // A number this small is no address.
    let is_long = number.len() - remaining.len() >= "0x10000".len();
    if !is_long || number.starts_with("0X") {
        return no_match(text);
    }
    Ok((pointed_at(remaining), cast_to(bracketed, address)))
}

/// An address behind a type in brackets. gdb prints functions with their type in braces.
fn cast_to(bracketed: &str, address: u64) -> TokenKind {
    let reads = bracketed.starts_with('{');
    let written = bracketed.get(1..bracketed.len() - 1).unwrap_or_default();
    let known = if reads { CType::parse_in_braces(written) } else { CType::parse(written) };
    match known {
        Some(to) => TokenKind::PastedCast { to, reads, address },
        None if reads && written.contains(['(', '<']) => TokenKind::PastedAddress(address),
        None => TokenKind::PastedCast { to: CType::Other(bracketed.to_owned()), reads: false, address },
    }
}

/// What gdb prints behind a pointer: the symbol there, and the text.
fn pointed_at(mut remaining: &str) -> &str {
    if let Ok((behind, _)) = preceded(blanks0, symbol_offset).parse(remaining) {
        remaining = behind;
    }
    if let Ok((behind, _)) = (blanks0, quoted::text_content, opt(tag("..."))).parse(remaining) {
        remaining = behind;
    }
    remaining
}

/// Whether the brackets hold a cast to a pointer or reference, or a type in braces. Others hold an expression.
fn is_pointer_cast(cast: &str) -> bool {
    let Some(named) = cast.strip_prefix('(').and_then(|cast| cast.strip_suffix(')')) else {
        return cast.len() > "{}".len();
    };
    let is_type = !named.contains(['+', '-', '/', '=']);
    let plain = named.strip_suffix("const").unwrap_or(named);
    let plain = plain.trim_end_matches(' ');
    is_type
        && match named.chars().next() {
            Some('*' | '&') => named.len() > 1,
            Some(first) => first.is_ascii_alphabetic() && (named.ends_with([')', ']']) || plain.ends_with(['*', '&'])),
            None => false,
        }
}

fn hexadecimal(text: &str) -> Lexed<'_, u64> {
    let digits = preceded(alt((tag("0x"), tag("0X"))), take_while1(|c: char| c.is_ascii_hexdigit()));
    digits.map_res(|digits: &str| u64::from_str_radix(digits, 16)).parse(text)
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
            return if offset == 0 { no_match(text) } else { Ok((text.get(length..).unwrap_or(""), ())) };
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
