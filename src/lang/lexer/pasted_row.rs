//! Rows that gdb, lldb, coredumpctl, `/proc`, pmap, perf, valgrind, the sanitizers, the kernel's log and nm print:
//! each stands for the address, range or symbol that it shows.
//!
//! A row is recognised only where the arguments of a command begin. The table has the beginning of each form, as much
//! as identifies it; the rest is skipped, up to a clause. `grammar/language.ebnf` has the same forms.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

use super::rule::{Lexed, is_blank, no_match};
use super::token::{Pasted, TokenKind};

/// What the groups of a form capture.
#[derive(Clone, Copy)]
enum Groups {
    /// An address in hexadecimal.
    Address,
    /// Two of them.
    Span,
    /// An address, and a number of KiB.
    Kibibytes,
    /// A name, perhaps with an offset; and, in a second group, the path of its file.
    Symbol,
}

/// Each form. `@` is an address with its `0x`, `#` one of at least five digits, `%` one without `0x`; `_` are blanks,
/// `~` is any text, `&` a cast to a pointer or reference, or a type in braces.
const FORMS: &[(&str, Groups)] = &[
    // gdb: x, disassemble; also the shadow bytes of AddressSanitizer.
    (r"(?:=>_?)?@(?:_<~>)?:", Groups::Address),
    // gdb: info line
    (r#"Line \d+ of "[^|"]*" starts at address @(?: <~>)? and ends at @"#, Groups::Span),
    (r#"(?:Line \d+ of "[^|"]*" is at|No line number information available for) address @"#, Groups::Address),
    // gdb: info symbol, info address
    (r#"([^|"']+) in section [^|" \t\r\n]+(?: of (/[^|" \t\r\n]*))?"#, Groups::Symbol),
    (r#"Symbol "[^|"]*" is (?:(?:a function|a label|static storage) at address|at) @"#, Groups::Address),
    // gdb: frames
    (r"(?:Run till exit from )?\x23\d+_@", Groups::Address),
    // lldb: frames
    (r"(?:\*_)?frame \x23\d+: @", Groups::Address),
    (r"# in [^|\x22]+ \(", Groups::Address),
    (r#"(?:\*_)?\d+_Thread 0x[0-9a-fA-F]+ \(LWP \d+\)(?: "[^|"]*")?_@ in "#, Groups::Address),
    // gdb: info frame
    (r"(?:Stack level \d+, frame|Stack frame|called by frame|caller of frame|Arglist|Locals) at @,?", Groups::Address),
    (r"[a-z]\w* at #,?", Groups::Address),
    // gdb: breakpoints
    (r"(?:Temporary breakpoint|Hardware assisted breakpoint|Breakpoint) [\d.]+(?: at |, )@", Groups::Address),
    (r"\d+(?:\.\d+)?_(?:[a-zA-Z][a-zA-Z -]*_(?:keep|del|dis|dstp)_)?[yn]_@", Groups::Address),
    // gdb: info sharedlibrary, info files, disassemble, info proc mappings
    (r"@_@_(?:Yes|No)", Groups::Span),
    (r"@ - @ is ", Groups::Span),
    (r"Entry point: @", Groups::Address),
    (r"Dump of assembler code from @ to @:", Groups::Span),
    // A half-open interval, as the sanitizers write regions.
    (r"\[@, ?@\)", Groups::Span),
    (r"@_@_@_@", Groups::Span),
    // gdb: info registers
    (r"[a-z]\w*_@_(?:0x[0-9a-f]*|-?\d+|\[)", Groups::Address),
    // gdb: info locals, info args, bt full, display, print of a reference, output
    (r"[A-Za-z]\w* = (?:&_?)?\x40?#", Groups::Address),
    (r"[A-Za-z]\w* = (?:&_?)?\x40?@_[\x22<]", Groups::Address),
    (r"\d+: (?:/[0-9a-z]+ )?[^|\x22=]+ = (?:&_?)?\x40?@", Groups::Address),
    (r"\$\d+ = (?:&_?)?\x40@", Groups::Address),
    // /proc/PID/maps and smaps, pmap, pmap -x and -d, pmap -X
    (r"%-%_[r-][w-][x-][ps]", Groups::Span),
    (r"%_(\d+)K_[r-][w-][x-][s-][R-]", Groups::Kibibytes),
    (r"%_(\d+)(?:_\d+_\d+)?_[r-][w-][x-][s-][R-]", Groups::Kibibytes),
    (r"%_[r-][w-][x-][ps]_[0-9a-f]+_[0-9a-f]+:[0-9a-f]+_\d+_(\d+)", Groups::Kibibytes),
    // perf script
    (r"(?:~:_)?%_(?:~\+0x[0-9a-f]+|\[unknown\])_\(", Groups::Address),
    // valgrind, the sanitizers
    (r"==\d+==_(?:at|by|Address|Access not within mapped region at address) @", Groups::Address),
    (r"==\d+==ERROR: \w+: [\w-]+ on (?:unknown )?address @", Groups::Address),
    (r"[A-Za-z ]+ of size \d+ at @", Groups::Address),
    (r"(?:Address )?@ is located ", Groups::Address),
    // The kernel's log: the address of a page fault, or the instruction of another fault.
    (r"~\[\d+\]: segfault at ([0-9a-f]+) ip ", Groups::Address),
    (r"~traps: ~ ip:([0-9a-f]+) ", Groups::Address),
    // nm: its address is one in a file that the row does not name, so the symbol is taken.
    (
        r"(?:[0-9a-f]{16}|[0-9a-f]{8})(?:_(?:[0-9a-f]{16}|[0-9a-f]{8}))?_[A-Za-z]_([^|\x22 \t\r\n][^|\x22\t\r\n]*)",
        Groups::Symbol,
    ),
];

/// What the letters of [`FORMS`] stand for.
const LETTERS: &[(char, &str)] = &[
    ('@', r"0x([0-9a-fA-F]+)"),
    ('#', r"0x([0-9a-fA-F]{5,})"),
    ('%', r"([0-9a-f]{4,})"),
    ('_', r"(?:[ \t\r\n]+)"),
    ('~', r"(?:[^|\x22]*)"),
    ('&', r"(?:\{[^{}|\x22]+\}|\((?:[*&][^|\x22+/=-]+|[A-Za-z][^|\x22+/=-]*(?:[*&)\]]|[*&] *const))\))"),
];

static FORM_REGEXES: LazyLock<Vec<(Regex, Groups)>> = LazyLock::new(|| {
    let compiled = FORMS.iter().filter_map(|(form, groups)| {
        let regex = Regex::new(&format!("^(?:{})", spelled_out(form))).ok()?;
        Some((regex, *groups))
    });
    compiled.collect()
});

/// The regular expression of a form, its letters replaced by what they stand for.
fn spelled_out(form: &str) -> String {
    let spelled = form.chars().map(|letter| {
        let meaning = LETTERS.iter().find(|(known, _)| *known == letter);
        meaning.map_or_else(|| letter.to_string(), |(_, regex)| (*regex).to_owned())
    });
    spelled.collect()
}

/// Forms are identified within so many bytes, which bounds the time that a line takes.
const LONGEST: usize = 4096;

/// The longest form that the text begins with.
pub(super) fn row(text: &str) -> Lexed<'_, TokenKind> {
    let beginning = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or("");
    if !may_be_row(beginning) {
        return no_match(text);
    }
    let matches = FORM_REGEXES.iter().filter_map(|(regex, groups)| {
        let captures = regex.captures(beginning)?;
        let length = captures.get(0)?.end();
        Some((length, shown(*groups, &captures)?))
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

/// What the form shows that a text begins with.
pub(in crate::lang) fn pasted_row(text: &str) -> Option<Pasted> {
    match row(text) {
        Ok((_, TokenKind::PastedRow(pasted))) => Some(pasted),
        _ => None,
    }
}

/// A quick test that excludes nearly everything that people type.
fn may_be_row(text: &str) -> bool {
    const SIGNS: &[&str] = &["0x", " in section ", "segfault at ", "traps: "];
    let is_address = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    // An address alone, which is what most people type, is no row: every form has a blank, a colon or a comma.
    let has_parts = text.trim_end().contains([' ', '\t', '\r', '\n', ':', ',']);
    has_parts && (SIGNS.iter().any(|sign| text.contains(sign)) || text.as_bytes().windows(4).any(is_address))
}

/// What the groups of a match hold, unless a number is too large.
fn shown(groups: Groups, captures: &Captures<'_>) -> Option<Pasted> {
    let mut found = captures.iter().skip(1).flatten().map(|group| group.as_str());
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let first = found.next()?;
    Some(match groups {
        Groups::Address => Pasted::Address(hexadecimal(first)?),
        Groups::Span => Pasted::Span(hexadecimal(first)?, hexadecimal(found.next()?)?),
        Groups::Kibibytes => {
            Pasted::Length { start: hexadecimal(first)?, length: found.next()?.parse::<u64>().ok()?.checked_mul(1024)? }
        }
        Groups::Symbol => {
            let parts = first.rsplit_once(" + ");
            let with_offset = parts.and_then(|(name, digits)| {
                let is_number = digits.starts_with(|first: char| first.is_ascii_digit());
                Some((name, digits.parse().ok().filter(|_| is_number)?))
            });
            let (name, offset) = with_offset.unwrap_or((first, 0));
            let file = found.next().and_then(|path| path.rsplit('/').next());
            Pasted::Symbol {
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
                Groups::Address => 1..=1,
                Groups::Span | Groups::Kibibytes => 2..=4,
                Groups::Symbol => 1..=2,
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
