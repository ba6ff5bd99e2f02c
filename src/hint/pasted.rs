//! Hints for pasted text that does not parse: what other programs print, with numbers in it.

use super::slips::LEAST_ADDRESS;
use crate::lang::lexer::{self, PastedNumber, PastedText, Token, TokenKind, is_blank};
use crate::lang::parser::short;
use crate::lang::{Expected, Failure, Resolved, SyntaxError, WrittenName};

/// Commands that take an address, which is often pasted with other text around it.
const TAKE_ADDRESSES: &[&str] = &[
    "translate",
    "region",
    "walk",
    "flags",
    "explain",
    "who",
    "x",
    "telescope",
    "print",
    "watch",
    "map",
    "summary",
    "decode",
];

/// Those of them that take page frames too.
const TAKE_FRAMES: &[&str] = &["flags", "who", "walk"];

/// The hint for pasted text that does not parse: put a command before the row, or use the one number in the text.
pub(super) fn paste_hint(failed: &Failure<'_>, error: &SyntaxError) -> Option<String> {
    let (line, tokens) = (failed.line, failed.tokens);
    let command = tokens.first()?;
    match failed.language.resolve_first(command.text) {
        Resolved::One(name) if TAKE_ADDRESSES.contains(&name) => {
            let arguments = line.get(tokens.get(1)?.at.start..)?;
            let whole = frame_without_address(command.text, arguments).or_else(|| members(line));
            if whole.is_some() {
                return whole;
            }
            // A format with an error is no paste, whatever follows it.
            if line.get(..error.at.start).is_some_and(|before| !before.trim_start().contains(is_blank)) {
                return None;
            }
            let shown = lexer::only_number(arguments)?;
            let is_behind = lexer::only_number(line.get(error.at.start..)?).is_some();
            let is_filter = error.expected.contains(&Expected::Comparison.describe());
            let in_place = lexer::only_number(line.get(error.at.start..error.at.end)?);
            let is_range = line.get(error.at.start..error.at.end) == Some("..");
            let is_explained = is_range || in_place.as_ref() == Some(&shown) && error.hint.is_some();
            let is_said = is_behind || error.hint.is_none();
            let needed = is_behind || is_said && !matches!(shown, PastedNumber::Address(_));
            (needed && !is_filter && !is_explained).then(|| use_alone(command.text, name, &shown))
        }
        Resolved::One(_) => None,
        _ => match argument(line, tokens) {
            Some(argument) => Some(format!("put a command before pasted text: `translate {argument}`")),
            // A command with a typing error is no paste.
            None if error.hint.is_some() => None,
            None => lexer::only_number(line).map(|shown| use_alone("translate", "translate", &shown)),
        },
    }
}

/// The hint for a frame that gdb prints without its address: the numbers in the line are arguments of the function.
fn frame_without_address(typed: &str, pasted: &str) -> Option<String> {
    let (number, rest) = pasted.strip_prefix('#')?.split_once(' ')?;
    let (number, rest) = (number.parse::<u32>().ok()?, rest.trim_start());
    // Not the frames of sanitizers: `#1 main /tmp/t.c:5 (t+0x11560)`.
    let is_function = rest.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && rest.split_once(" (").is_some_and(|(function, _)| !function.contains('/'));
    is_function.then(|| match number {
        0 => format!("frame 0 has no address in this line: use `{typed} $pc`, of the main thread"),
        number => format!("frame {number} has no address in this line, because its function is inlined"),
    })
}

/// The hint for several members of a structure, as gdb prints them: the first address among them.
fn members(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let typed = words.first()?;
    let members = words.windows(3).filter_map(|words| match words {
        [name, "=", value] if lexer::is_plain_name(name.trim_start_matches('{')) => Some(*value),
        _ => None,
    });
    let values: Vec<&str> = members.collect();
    let is_list = values.iter().any(|value| value.ends_with([',', '}']));
    let address = values.iter().find_map(|value| {
        let digits = value.trim_end_matches([',', '}']).strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok().filter(|number| *number >= LEAST_ADDRESS)
    })?;
    let is_members = is_list && values.len() > 1 && !words.iter().any(|word| matches!(*word, "where" | "until"));
    is_members.then(|| format!("this row has several members: give one address, `{typed} {address:#x}`"))
}

/// What a line shows that begins as another program prints.
fn argument(line: &str, tokens: &[Token<'_>]) -> Option<String> {
    match tokens.first()?.kind {
        TokenKind::PastedValue(address) | TokenKind::PastedAddress(address) | TokenKind::PastedCast { address, .. } => {
            Some(format!("{address:#x}"))
        }
        _ => lexer::pasted_row(line.trim_start()).map(|pasted| alone_in(&pasted)),
    }
}

/// What to say of a row of gdb that is a comment here.
pub(super) fn comment(line: &str) -> Option<String> {
    let shown = alone_in(&lexer::pasted_row(line).filter(|_| line.starts_with('#'))?);
    Some(format!("a line that begins with # is a comment; put a command before pasted text: `translate {shown}`"))
}

/// What a pasted row shows, as it is typed.
fn alone_in(row: &PastedText) -> String {
    match row {
        PastedText::Address(address) => format!("{address:#x}"),
        PastedText::Span(start, end) => format!("{start:#x}..{end:#x}"),
        PastedText::Length { start, length } => format!("{start:#x}, +{length}"),
        PastedText::Symbol { module, name, offset } => {
            let module = module.as_ref().map_or_else(String::new, |module| format!("{}!", WrittenName(module.clone())));
            let offset = if *offset == 0 { String::new() } else { format!(" + {offset}") };
            format!("{module}{}{offset}", WrittenName(name.clone()))
        }
    }
}

/// The hint to use the number in a text alone, in a command that takes what it is.
fn use_alone(typed: &str, command: &str, shown: &PastedNumber) -> String {
    let frames = if TAKE_FRAMES.contains(&command) { typed } else { "flags" };
    match shown {
        PastedNumber::Address(address) => format!("use the one address in this line: `{typed} {address:#x}`"),
        PastedNumber::InFile { module, address } => {
            format!("this is an address in a file: `{typed} {}!{address:#x}`", WrittenName(module.clone()))
        }
        PastedNumber::Frame(frame) => format!("this is the number of a page frame: `{frames} pfn:{frame:#x}`"),
        PastedNumber::Entry(frame) => {
            format!("`pte:` is an entry of the processor's page table; for its frame on x86: `{frames} pfn:{frame:#x}`")
        }
        PastedNumber::Pointer => {
            "`page:` is a pointer of the kernel, often hashed; frame numbers follow `pfn:`".to_owned()
        }
    }
}

/// The hint for an operator behind a pasted row: use the address that the row shows.
pub(super) fn behind_row(failed: &Failure<'_>) -> Option<String> {
    let (line, row, operator) = (failed.line, failed.before()?, failed.token()?);
    let TokenKind::PastedRow(pasted) = &row.kind else {
        return None;
    };
    if operator.kind != TokenKind::Mark {
        return None;
    }
    let shown = match pasted {
        PastedText::Span(start, _) | PastedText::Length { start, .. } => format!("{start:#x}"),
        other => alone_in(other),
    };
    let command = line.get(..row.at.start)?;
    let goes_on = line.get(row.at.end..)?;
    // The rest of a row is no operand.
    let goes_on =
        if failed.language.accepts(&format!("{command}{shown}{goes_on}")) { short(goes_on) } else { String::new() };
    Some(format!("operators need the address alone, not the pasted row: `{command}{shown}{goes_on}`"))
}
