//! Hints for numbers, sizes and formats in another notation, and for functions and types that do not exist.

use super::names::quotes;
use crate::kernel::PageFlags;
use crate::lang::lexer::{NumberFault, TokenKind};
use crate::lang::{Expected, Failure, Fault, FilterField, FilterSubject, PageField};

/// Returns whether the parser expected only a format at the failure.
fn expects_format(failed: &Failure<'_>) -> bool {
    matches!(failed.expected[..], [Expected::Format | Expected::Layout | Expected::Search])
}

/// Returns the hint for an invalid format.
pub(super) fn format(failed: &Failure<'_>) -> Option<String> {
    match failed.token().filter(|_| expects_format(failed))?.text {
        "-" => Some("for bytes before an address: `x/-3xb ADDRESS`".to_owned()),
        "i" => Some(INSTRUCTIONS.to_owned()),
        _ => None,
    }
}

/// Returns the hint for a word that begins with a digit and is no number.
pub(super) fn number(failed: &Failure<'_>) -> Option<String> {
    let token = failed.token().filter(|_| !expects_format(failed))?;
    let TokenKind::BadNumber(fault) = token.kind else {
        return None;
    };
    match fault {
        NumberFault::LeadingZero | NumberFault::LooksHexadecimal => {
            let digits = match token.text.trim_start_matches('0') {
                "" => "0",
                digits => digits,
            };
            // Pasted addresses are hexadecimal without a prefix.
            let is_short = digits.len() < 4 && digits.bytes().all(|digit| digit.is_ascii_digit());
            let decimal = if is_short { format!("`{digits}`, or ") } else { String::new() };
            Some(format!("write {decimal}hexadecimal as `0x{digits}`"))
        }
        NumberFault::Suffix | NumberFault::Malformed if failed.expects(Expected::Duration) => {
            Some("write a time as `100ms`, `1s` or `5m`".into())
        }
        NumberFault::Suffix => Some(suffixes(token.text)),
        NumberFault::TooLarge | NumberFault::Malformed => None,
    }
}

/// Returns the hint for a time without its unit.
pub(super) fn time_without_unit(failed: &Failure<'_>) -> Option<String> {
    let token = failed.token().filter(|_| failed.expects(Expected::Duration))?;
    let number = token.text;
    match token.kind {
        TokenKind::Number(_) => Some(format!("write `{number}ms` or `{number}s`")),
        TokenKind::Fraction(_) => Some(format!("write `{number}s` or `{number}m`")),
        _ => None,
    }
}

/// Returns whether a word is a unit of sizes, as in `8 MiB`.
pub(super) fn is_unit(word: &str) -> bool {
    let unit = word.trim_end_matches(['b', 'B']).trim_end_matches('i');
    matches!(unit, "k" | "K" | "M" | "G" | "T") || matches!(word, "B" | "bytes")
}

/// Returns the hint for a number with an unknown suffix: `4GiB` is 4G.
pub fn suffixes(word: &str) -> String {
    let size = word.trim_end_matches(['b', 'B']).trim_end_matches('i').to_uppercase();
    let is_size = size.ends_with(['K', 'M', 'G', 'T'])
        && size[..size.len() - 1].bytes().all(|digit| digit.is_ascii_digit())
        && size.len() > 1;
    let has_fraction = size.contains('.') && size.ends_with(['K', 'M', 'G', 'T']);
    match is_size {
        true => format!("write it as `{size}`: K M G T are powers of 1024"),
        false if has_fraction => "a size has no fraction: 1.5G is `1536M`".into(),
        false => "write sizes with K M G T, or p for pages; times with ms s m h".into(),
    }
}

/// Returns the hint for a unit that is apart from its number, or has a fraction: `8 MiB`, `1.5G`, `4096 kB`.
pub(super) fn size_with_unit(failed: &Failure<'_>) -> Option<String> {
    let (token, next) = (failed.token()?, failed.tokens.get(failed.position + 1));
    let (number, unit) = match (&token.kind, next) {
        (TokenKind::Fraction(_), Some(next)) => (token, next.text),
        _ => (failed.before()?, token.text),
    };
    let suffix = unit.trim_end_matches('B').trim_end_matches('i').to_ascii_uppercase();
    let step = ["K", "M", "G", "T"].iter().position(|one| *one == suffix)?;
    match number.kind {
        TokenKind::Number(_) => Some(format!("leave the space out: `{}{suffix}`", number.text)),
        TokenKind::Fraction(value) => {
            // The largest unit in which the size is whole, at most two steps below.
            let parts = value * 1024.0;
            let (whole, below) = if parts.fract() == 0.0 || step == 0 { (parts, 1) } else { (parts * 1024.0, 2) };
            let unit = (step + 1).checked_sub(below).and_then(|at| ["", "K", "M", "G"].get(at))?;
            Some(format!("sizes are whole numbers: `{}{unit}`", whole.round()))
        }
        _ => None,
    }
}

/// Returns the hint for the format `i`.
pub(super) fn instructions(failed: &Failure<'_>) -> Option<String> {
    matches!(failed.fault, Some((Fault::Instructions, _))).then(|| INSTRUCTIONS.to_owned())
}

const INSTRUCTIONS: &str = "use `x/i` in `gdb -p PID`. Here `x/xb` shows the bytes";

/// Returns the hint for too many operators or levels.
pub(super) fn too_much(failed: &Failure<'_>) -> Option<String> {
    let is_too_much = matches!(failed.fault, Some((Fault::TooMuch, _)));
    is_too_much.then(|| "give a part of it a name: `set $part = …`".to_owned())
}

/// The hint for an unknown type.
pub const UNKNOWN_TYPE: &str = "use `gdb -p PID` for the types of the program, or `x/8xg ADDRESS` for its memory";

/// Returns the hint for an unknown type.
pub(super) fn unknown_type(failed: &Failure<'_>) -> Option<String> {
    matches!(failed.fault, Some((Fault::Type, _))).then(|| UNKNOWN_TYPE.to_owned())
}

/// Returns the hint for an unknown function.
pub(super) fn unknown_function(failed: &Failure<'_>) -> Option<String> {
    let Some((Fault::Function, error)) = &failed.fault else {
        return None;
    };
    let name = failed.line.get(error.at.start..error.at.end)?;
    let first = failed.tokens.iter().position(|token| token.at.start == error.at.start)?;
    let quoted = || quotes(failed.line, failed.tokens.get(first..)?).filter(|_| name.contains("::"));
    let others = "`help values` lists the functions; a name with parentheses needs 'single quotes'";
    of_other_words(name)
        .or_else(|| as_value(name))
        .or_else(|| error.hint.clone())
        .or_else(quoted)
        .or_else(|| Some(others.to_owned()))
}

/// Returns the hint for a function that other programs have.
fn of_other_words(function: &str) -> Option<String> {
    let hint = match function {
        "contiguous" | "is_contiguous" | "contig" => {
            "`runs(RANGE) == 1` is for contiguous memory, and `longest(RANGE)` is the longest part"
        }
        "pages" | "npages" | "num_pages" => "`count(RANGE where FILTER)` counts pages",
        "sizeof" => "`size(NAME)` is the size of a variable; types are only in gdb",
        "lazy" | "lazy_free" | "lazyfree" | "lazily_freed" => {
            "memory that was freed with MADV_FREE: `bytes(RANGE where anonymous and not flags(swapbacked))`"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Returns the hint for a condition on pages, or a flag of frames, in the place of a value or a range.
pub fn as_value(word: &str) -> Option<String> {
    if FilterSubject::Page.has_condition(word) {
        return Some(format!(
            "`{word}` is a condition on pages: `walk all where {word}` lists them, `print count(all where {word})` counts them"
        ));
    }
    match (PageField::from_name(word), PageFlags::from_flag_name(word)) {
        (Some(_), _) => Some(format!("`{word}` is a field of pages: `help {word}` explains it")),
        (None, Some(_)) => {
            Some(format!("`{word}` is a flag of frames: `walk all where flags({word})` lists their pages"))
        }
        (None, None) => None,
    }
}
