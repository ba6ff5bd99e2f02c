//! Pasted output of other programs.
//!
//! Values and addresses as gdb prints them are allowed in expressions. Rows of gdb, lldb, coredumpctl, `/proc`, pmap,
//! perf, valgrind, the sanitizers, the kernel log and nm are read as the address, range or symbol that they show.
//!
//! A row is recognized only where the arguments of a command begin. The table has the beginning of each form, as much
//! as identifies it; the rest of the row is skipped, up to a clause. `grammar/language.ebnf` has the same forms.

use crate::lang::ctype::CType;
use crate::lang::lexer::token::{
    self, Lexed, PastedText, TokenKind, beginning, blanks0, decimal, digits1, is_blank, is_letter, no_match,
};
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{char, satisfy};
use nom::combinator::opt;
use nom::sequence::{preceded, terminated};
use regex_lite::{Captures, Regex};
use std::sync::LazyLock;

/// The most characters of a type or symbol. Without a limit, the line would be read to its end for every opening
/// bracket.
const LONGEST: usize = 4096;

/// The most open brackets of a cast. A line of opening brackets is no cast, and is not read to [`LONGEST`] for each of
/// them.
const DEEPEST: usize = 64;

/// Lexes `$1 = (int *) 0x5555555592a0 <buf+16>`.
pub(super) fn value(text: &str) -> Lexed<'_, TokenKind> {
    let history = (char('$'), digits1, blanks0, char('='), blanks0, opt((cast, blanks0)));
    let (mut remaining, address) = preceded(history, alt((hexadecimal, decimal_number))).parse(text)?;
    remaining = pointed_at(remaining);
    Ok((remaining, TokenKind::PastedValue(address)))
}

/// Lexes `0x5555555592a0 <buf+16>`.
pub(super) fn address(text: &str) -> Lexed<'_, TokenKind> {
    let (remaining, address) = terminated(hexadecimal, (blanks0, symbol_offset)).parse(text)?;
    Ok((remaining, TokenKind::PastedAddress(address)))
}

/// Lexes `(int *) 0x5555555592a0 <buf+16>` and `{int} 0x5555555592a0`.
pub(super) fn cast_address(text: &str) -> Lexed<'_, TokenKind> {
    let (behind, ()) = cast(text)?;
    let Some(bracketed) = text.get(..text.len() - behind.len()).filter(|cast| is_pointer_cast(cast)) else {
        return no_match(text);
    };
    let (number, _) = blanks0(behind)?;
    let (remaining, address) = hexadecimal(number)?;
    // A shorter number is not an address.
    let is_long = number.len() - remaining.len() >= "0x10000".len();
    if !is_long || number.starts_with("0X") {
        return no_match(text);
    }
    Ok((pointed_at(remaining), cast_to(bracketed, address)))
}

/// Makes the token of an address after a type in brackets. gdb prints functions with their type in braces.
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

/// Skips what gdb prints after a pointer: the symbol at the address, and the text.
fn pointed_at(mut remaining: &str) -> &str {
    if let Ok((behind, _)) = preceded(blanks0, symbol_offset).parse(remaining) {
        remaining = behind;
    }
    if let Ok((behind, _)) = (blanks0, texts, opt(tag("..."))).parse(remaining) {
        remaining = behind;
    }
    remaining
}

/// Lexes `"abc", 'd' <repeats 20 times>, "e"`: gdb shortens repetitions, and splits texts only at these.
fn texts(text: &str) -> Lexed<'_, ()> {
    let (mut remaining, mut has_repeated) =
        alt((repeated.map(|()| true), token::text_content.map(|_| false))).parse(text)?;
    let comma = |text| (char(','), blanks0).parse(text);
    while let Ok((next, _)) = comma(remaining) {
        (remaining, has_repeated) = match repeated(next) {
            Ok((behind, ())) => (behind, true),
            Err(_) => match token::text_content(next) {
                Ok((behind, _)) if has_repeated => (behind, false),
                _ => break,
            },
        };
    }
    Ok((remaining, ()))
}

/// Lexes `'\001' <repeats 200 times>`.
fn repeated(text: &str) -> Lexed<'_, ()> {
    let times = (blanks0, tag("<repeats "), digits1, tag(" times>"));
    preceded(token::name_content, times).map(drop).parse(text)
}

/// Returns whether the brackets contain a cast to a pointer or reference, or a type in braces. Otherwise they contain
/// an expression.
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

/// Lexes `(int *)` and `{void (int)}`: pairs of brackets of both kinds.
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
        if open.len() > DEEPEST {
            return no_match(text);
        }
        if open.is_empty() {
            let length = offset + character.len_utf8();
            return if offset == 0 { no_match(text) } else { Ok((text.get(length..).unwrap_or(""), ())) };
        }
    }
    no_match(text)
}

/// Lexes `<buf+16>`; `<` and `>` of a C++ name come in pairs.
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

/// The groups that a form captures.
#[derive(Clone, Copy)]
enum PastedGroups {
    /// An address in hexadecimal.
    Address,
    /// Two addresses.
    Span,
    /// An address, and a number of KiB.
    Kibibytes,
    /// A name, perhaps with an offset; and, in a second group, the path of its file.
    Symbol,
}

/// The forms of rows. `@` is an address with its `0x`, `#` one of at least five digits, `%` one without `0x`; `_` are
/// blanks, `~` is any text, `&` a cast to a pointer or reference, or a type in braces.
const FORMS: &[(&str, PastedGroups)] = &[
    // gdb: x, disassemble; also the shadow bytes of AddressSanitizer.
    (r"(?:=>_?)?@(?:_<~>)?:", PastedGroups::Address),
    // gdb: info line, of which a narrow terminal shows two rows
    (r#"Line \d+ of "[^|"]*" starts at address @(?:_<~>)?_and ends at @"#, PastedGroups::Span),
    (r#"Line \d+ of "[^|"]*" starts at address @_<"#, PastedGroups::Address),
    (r#"(?:Line \d+ of "[^|"]*" is at|No line number information available for) address @"#, PastedGroups::Address),
    // gdb: info symbol, info address
    (r#"([^|"']+) in section [^|" \t\r\n]+(?: of (/[^|" \t\r\n]*))?"#, PastedGroups::Symbol),
    (r#"Symbol "[^|"]*" is (?:(?:a function|a label|static storage) at address|at) @"#, PastedGroups::Address),
    // gdb: frames
    (r"(?:Run till exit from )?\x23\d+_@", PastedGroups::Address),
    // lldb: frames
    (r"(?:\*_)?frame \x23\d+: @", PastedGroups::Address),
    (r"# in [^|\x22]+ \(", PastedGroups::Address),
    (r#"(?:\*_)?\d+_Thread 0x[0-9a-fA-F]+ \(LWP \d+\)(?: "[^|"]*")?_@ in "#, PastedGroups::Address),
    // gdb: info frame
    (
        r"(?:Stack level \d+, frame|Stack frame|called by frame|caller of frame|Arglist|Locals) at @,?",
        PastedGroups::Address,
    ),
    (r"[a-z]\w* at #,?", PastedGroups::Address),
    // gdb: breakpoints
    (r"(?:Temporary breakpoint|Hardware assisted breakpoint|Breakpoint) [\d.]+(?: at |, )@", PastedGroups::Address),
    (r"\d+(?:\.\d+)?_(?:[a-zA-Z][a-zA-Z -]*_(?:keep|del|dis|dstp)_)?[yn]_@", PastedGroups::Address),
    // gdb: info sharedlibrary, info files, disassemble, info proc mappings
    (r"@_@_(?:Yes|No)", PastedGroups::Span),
    (r"@ - @ is ", PastedGroups::Span),
    (r"Entry point: @", PastedGroups::Address),
    (r"Dump of assembler code from @ to @:", PastedGroups::Span),
    // A half-open interval, as the sanitizers write regions.
    (r"\[@, ?@\)", PastedGroups::Span),
    (r"@_@_@_@", PastedGroups::Span),
    // gdb: info registers
    (r"[a-z]\w*_@_(?:0x[0-9a-f]*|-?\d+|\[)", PastedGroups::Address),
    // gdb: info locals, info args, bt full, display, print of a reference, output
    (r"[A-Za-z]\w* = (?:&_?)?\x40?#", PastedGroups::Address),
    (r"[A-Za-z]\w* = (?:&_?)?\x40?@_[\x22<]", PastedGroups::Address),
    (r"\d+: (?:/[0-9a-z]+ )?[^|\x22=]+ = (?:&_?)?\x40?@", PastedGroups::Address),
    (r"\$\d+ = (?:&_?)?\x40@", PastedGroups::Address),
    // /proc/PID/maps and smaps, pmap, pmap -x and -d, pmap -X
    (r"%-%_[r-][w-][x-][ps]", PastedGroups::Span),
    (r"%_(\d+)K_[r-][w-][x-][s-][R-]", PastedGroups::Kibibytes),
    (r"%_(\d+)(?:_\d+_\d+)?_[r-][w-][x-][s-][R-]", PastedGroups::Kibibytes),
    (r"%_[r-][w-][x-][ps]_[0-9a-f]+_[0-9a-f]+:[0-9a-f]+_\d+_(\d+)", PastedGroups::Kibibytes),
    // perf script
    (r"(?:~:_)?%_(?:~\+0x[0-9a-f]+|\[unknown\])_\(", PastedGroups::Address),
    // valgrind, the sanitizers
    (r"==\d+==_(?:at|by|Address|Access not within mapped region at address) @", PastedGroups::Address),
    (r"==\d+==ERROR: \w+: [\w-]+ on (?:unknown )?address @", PastedGroups::Address),
    (r"[A-Za-z ]+ of size \d+ at @", PastedGroups::Address),
    (r"(?:Address )?@ is located ", PastedGroups::Address),
    // The kernel's log: the address of a page fault, or the instruction of another fault.
    (r"~\[\d+\]: segfault at ([0-9a-f]+) ip ", PastedGroups::Address),
    (r"~traps: ~ ip:([0-9a-f]+) ", PastedGroups::Address),
    // nm: the address is in a file that the row does not name, so the symbol is read.
    (
        r"(?:[0-9a-f]{16}|[0-9a-f]{8})(?:_(?:[0-9a-f]{16}|[0-9a-f]{8}))?_[A-Za-z]_([^|\x22 \t\r\n][^|\x22\t\r\n]*)",
        PastedGroups::Symbol,
    ),
];

/// The meanings of the letters in [`FORMS`].
const LETTERS: &[(char, &str)] = &[
    ('@', r"0x([0-9a-fA-F]+)"),
    ('#', r"0x([0-9a-fA-F]{5,})"),
    ('%', r"([0-9a-f]{4,})"),
    ('_', r"(?:[ \t\r\n]+)"),
    ('~', r"(?:[^|\x22]*)"),
    ('&', r"(?:\{[^{}|\x22]+\}|\((?:[*&][^|\x22+/=-]+|[A-Za-z][^|\x22+/=-]*(?:[*&)\]]|[*&] *const))\))"),
];

static FORM_REGEXES: LazyLock<Vec<(Regex, PastedGroups)>> = LazyLock::new(|| {
    let compiled = FORMS.iter().filter_map(|(form, groups)| {
        let regex = Regex::new(&format!("^(?:{})", spelled_out(form))).ok()?;
        Some((regex, *groups))
    });
    compiled.collect()
});

/// Returns the regular expression of a form, with its letters replaced.
fn spelled_out(form: &str) -> String {
    let spelled = form.chars().map(|letter| {
        let meaning = LETTERS.iter().find(|(known, _)| *known == letter);
        meaning.map_or_else(|| letter.to_string(), |(_, regex)| (*regex).to_owned())
    });
    spelled.collect()
}

/// Lexes the longest form at the beginning of the text.
pub(super) fn row(text: &str) -> Lexed<'_, TokenKind> {
    let beginning = beginning(text, LONGEST);
    if !may_be_row(beginning) {
        return no_match(text);
    }
    let matches = FORM_REGEXES.iter().filter_map(|(regex, groups)| {
        let captures = regex.captures(beginning)?;
        let length = captures.get(0)?.end();
        // Digits after the colon are the end of a range: `0x1000:0x2000`.
        let (form, behind) = beginning.split_at_checked(length)?;
        if form.ends_with(':') && behind.starts_with(|next: char| next.is_ascii_hexdigit()) {
            return None;
        }
        Some((length, read_groups(*groups, &captures)?))
    });
    let mut best = None;
    for (length, pasted) in matches {
        if best.as_ref().is_none_or(|(longest, _)| length > *longest) {
            best = Some((length, pasted));
        }
    }
    match best {
        Some((length, pasted)) => Ok((text.get(length..).unwrap_or(""), TokenKind::PastedRow(pasted))),
        None => no_match(text),
    }
}

/// Parses the form at the beginning of a text.
pub(crate) fn pasted_row(text: &str) -> Option<PastedText> {
    match row(text) {
        Ok((_, TokenKind::PastedRow(pasted))) => Some(pasted),
        _ => None,
    }
}

/// Splits pasted text into lines, and joins the two rows that `info line` of gdb has in a narrow terminal.
pub fn joined_rows(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match lines.last_mut() {
            Some(first) if line.trim_start().starts_with("and ends at 0x") && first.contains(" starts at address ") => {
                first.push(' ');
                first.push_str(line.trim_start());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Returns whether a text may be a row: a quick test that excludes nearly everything that is typed.
fn may_be_row(text: &str) -> bool {
    const SIGNS: &[&str] = &["0x", " in section ", "segfault at ", "traps: "];
    let is_address = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    // An address alone, the most frequent input, is no row: every form has a blank, a colon or a comma.
    let has_parts = text.trim_end().contains([' ', '\t', '\r', '\n', ':', ',']);
    has_parts && (SIGNS.iter().any(|sign| text.contains(sign)) || text.as_bytes().windows(4).any(is_address))
}

/// Parses the groups of a match; `None` if a number is too large.
fn read_groups(groups: PastedGroups, captures: &Captures<'_>) -> Option<PastedText> {
    let mut groups_text = captures.iter().skip(1).flatten().map(|group| group.as_str());
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let first = groups_text.next()?;
    Some(match groups {
        PastedGroups::Address => PastedText::Address(hexadecimal(first)?),
        PastedGroups::Span => PastedText::Span(hexadecimal(first)?, hexadecimal(groups_text.next()?)?),
        PastedGroups::Kibibytes => PastedText::Length {
            start: hexadecimal(first)?,
            length: groups_text.next()?.parse::<u64>().ok()?.checked_mul(1024)?,
        },
        PastedGroups::Symbol => {
            let parts = first.rsplit_once(" + ");
            let with_offset = parts.and_then(|(name, digits)| {
                let is_number = digits.starts_with(|first: char| first.is_ascii_digit());
                Some((name, digits.parse().ok().filter(|_| is_number)?))
            });
            let (name, offset) = with_offset.unwrap_or((first, 0));
            let file = groups_text.next().and_then(|path| path.rsplit('/').next());
            PastedText::Symbol {
                module: file.filter(|name| !name.is_empty()).map(str::to_owned),
                name: name.trim_end_matches(is_blank).to_owned(),
                offset,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_a_regular_expression_with_its_groups() {
        assert_eq!(FORM_REGEXES.len(), FORMS.len());
        for (regex, groups) in FORM_REGEXES.iter() {
            let groups_of = regex.captures_len() - 1;
            let wanted = match groups {
                PastedGroups::Address => 1..=1,
                PastedGroups::Span | PastedGroups::Kibibytes => 2..=4,
                PastedGroups::Symbol => 1..=2,
            };
            assert!(wanted.contains(&groups_of), "{regex}");
        }
    }

    #[test]
    fn a_long_line_costs_no_more_than_its_beginning() {
        let long = format!("{}+0x10 (libc)", "dead beef: ".repeat(100_000));
        assert!(row(&long).is_err());
        let text = "\u{e9}".repeat(LONGEST);
        assert!(row(&format!("x{text} 0x1")).is_err());
    }
}
