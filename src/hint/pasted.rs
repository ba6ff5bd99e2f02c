//! Pasted text: the numbers in it that may mean something to pmdb. A session, which knows the process, chooses among
//! them.

use super::slips::pasted_prompt;
use crate::lang::lexer::{PastedText, Token, TokenKind, is_blank, is_plain_name, pasted_row};
use crate::lang::{Candidate, Expected, Failure, Language, Pasted, Resolved, SyntaxError, near};
use regex_lite::{Captures, Regex};
use std::sync::LazyLock;

/// Commands that take an address, which users often paste with text around it.
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

/// Commands for an address that take page frames too.
const TAKE_FRAMES: &[&str] = &["flags", "who", "walk"];

/// The length in bytes of the part of a line that is searched.
const LONGEST: usize = 4096;

/// The least number that can be an address: below it nothing is mapped (`vm.mmap_min_addr`).
pub(super) const LEAST_ADDRESS: u64 = 0x1_0000;

/// Returns the candidate that the groups of a form show.
type Shown = fn(&Captures<'_>) -> Option<Candidate>;

fn hexadecimal(captures: &Captures<'_>, group: usize) -> Option<u64> {
    u64::from_str_radix(captures.get(group)?.as_str(), 16).ok()
}

fn name(captures: &Captures<'_>, group: usize) -> Option<String> {
    Some(captures.get(group)?.as_str().to_owned())
}

const NOTHING: Shown = |_| None;
const ADDRESS: Shown =
    |captures| hexadecimal(captures, 1).filter(|number| *number >= LEAST_ADDRESS).map(Candidate::Address);
const DECIMAL: Shown = |captures| Some(Candidate::Address(name(captures, 1)?.parse().ok()?));
const FRAME: Shown = |captures| Some(Candidate::Frame { number: hexadecimal(captures, 1)?, is_decimal: false });
const DECIMAL_FRAME: Shown =
    |captures| Some(Candidate::Frame { number: name(captures, 1)?.parse().ok()?, is_decimal: true });
/// The larger of a frame and a count is the frame.
const FRAME_AND_COUNT: Shown = |captures| {
    let number = hexadecimal(captures, 1)?.max(hexadecimal(captures, 2).unwrap_or(0));
    Some(Candidate::Frame { number, is_decimal: false })
};
const PHYSICAL: Shown = |captures| hexadecimal(captures, 1).map(Candidate::Physical);
const ENTRY: Shown = |captures| hexadecimal(captures, 1).map(Candidate::Entry);
const RANGE: Shown = |captures| {
    let (start, end) = (hexadecimal(captures, 1)?, hexadecimal(captures, 2)?);
    (LEAST_ADDRESS <= start && start < end).then_some(Candidate::Range(start, end))
};
const IN_FILE: Shown =
    |captures| Some(Candidate::InFile { module: name(captures, 1), address: hexadecimal(captures, 2)? });
const IN_PROGRAM: Shown = |captures| Some(Candidate::InFile { module: None, address: hexadecimal(captures, 1)? });
const IN_FILE_BEFORE: Shown =
    |captures| Some(Candidate::InFile { module: name(captures, 2), address: hexadecimal(captures, 1)? });
const OFFSET: Shown =
    |captures| Some(Candidate::Offset { module: name(captures, 1)?, offset: hexadecimal(captures, 2)? });

/// The forms of numbers in text, each with the candidate that it shows. Text that a form has matched is hidden from the
/// later ones, unless it has `true`.
#[rustfmt::skip]
const FORMS: &[(&str, Shown, bool)] = &[
    // Addresses of devices, which mean nothing to pmdb.
    (r"\b(?:DMAR|AMD-Vi|arm-smmu|iommu):? .*", NOTHING, false),
    (r"(?i)\b(?:dma|iova)\w*[=: ]+(?:0x)?[0-9a-f]+", NOTHING, false),
    // Entries of page tables.
    (r"(?i)\bpte[=: ]+(?:0x)?([0-9a-f]{8,16})\b", ENTRY, false),
    // Page frames: kernel log, tracepoints, page_owner, page-types.
    (r"Bad page .*\bpfn:([0-9a-f]+)", FRAME, false),
    (r"(?i)pfn[=: ]+0x([0-9a-f]+)", FRAME, false),
    (r"(?i)pfn[=: ]+([0-9]+)\b", DECIMAL_FRAME, false),
    (r"(?i)\bpfn[=: ]+([0-9]+[a-f][0-9a-f]*|[a-f]+[0-9][0-9a-f]*)\b", FRAME, false),
    (r"Memory failure: 0x([0-9a-f]+)", FRAME, false),
    (r"\bpage:0x([0-9a-f]+) offset:", FRAME, false),
    (r"^(?:[0-9a-f]{9,13}[ \t]+)([0-9a-f]{1,8})[ \t]+(?:([0-9a-f]+)[ \t]+)?[A-Za-z0-9_]{30,}", FRAME_AND_COUNT, false),
    (r"^([0-9a-f]{1,8})[ \t]+[A-Za-z_][A-Za-z0-9_]{29,}", FRAME, false),
    // Physical addresses: messages of drivers, oopses, machine checks, /proc/iomem.
    (r"(?i)\b(?:phys(?:ical)?(?:[ _]?addr(?:ess)?)?|paddr|CR3)[=: ]+(?:0x)?([0-9a-f]{4,16})\b", PHYSICAL, false),
    (r"\bmce: .*\b(?:ADDR|at) (?:0x)?([0-9a-f]{6,16})\b", PHYSICAL, false),
    (r"^([0-9a-f]{8,16})-[0-9a-f]{8,16} : ", PHYSICAL, false),
    // Offsets in a file: strace -k, kernel log. There may also be an address in brackets, as of backtrace_symbols().
    (r"([^()/ \t]+)\([^() \t]*\+0x[0-9a-f]+\) \[0x([0-9a-f]+)\]", OFFSET, true),
    (r"\bin ([^/\[ \t]+)\[([0-9a-f]+),[0-9a-f]+\+[0-9a-f]+\]", OFFSET, false),
    // Addresses in a file: backtrace(), sanitizers, coredumpctl, JVM, and perf, which names the file last.
    (r"(?:^|[/ \t(\[])([\w.+-]+\.so[\w.]*) ?\+ ?0x([0-9a-f]+)", IN_FILE, false),
    (r"(?:^|[ \t])\((?:[^() \t]*/)?([^()/ \t]+?) ?\+ ?0x([0-9a-f]+)\)", IN_FILE, false),
    (r"([^()/ \t]+)\(\+0x([0-9a-f]+)\)", IN_FILE, false),
    (r"/([^()/ \t]+)\+0x([0-9a-f]+)", IN_FILE, false),
    (r"\[([A-Za-z_][\w.+-]*)\+0x([0-9a-f]+)\]", IN_FILE, false),
    (r"(?:^|[/ \t(])([A-Za-z_][\w.+-]*)\[0x([0-9a-f]+)\]", IN_FILE, false),
    (r"^([0-9a-f]{3,16}) (?:\S+\+0x[0-9a-f]+|\[unknown\]) \((?:/[^()]*/)?([^()/]+)\)", IN_FILE_BEFORE, true),
    // Addresses in the file that objdump or readelf shows.
    (r"^([0-9a-f]{8,16}) <[^>+]+>:", IN_PROGRAM, false),
    (r"^([0-9a-f]{3,16}):[ \t]+(?:[0-9a-f]{2} )+", IN_PROGRAM, false),
    (r"^\[ *\d+\] \S+ +[A-Z_]+ +([0-9a-f]{8,16})\b", IN_PROGRAM, false),
    // Addresses. Those without 0x have as many digits as programs print.
    (r"\b(?:0x)?([0-9a-f]{8,16})(?:->?|:)(?:0x)?([0-9a-f]{8,16})\b", RANGE, false),
    (r"[\[(](?:0x)?([0-9a-f]{8,16}), ?(?:0x)?([0-9a-f]{8,16})[\])]", RANGE, false),
    (r"\b0x([0-9a-fA-F]{5,16})\b", ADDRESS, false),
    (r"= ([0-9]{14,15})\b", DECIMAL, false),
    (r"\b([0-9a-f]{8,13}|[0-9a-f]{16})\b", ADDRESS, false),
];

static REGEXES: LazyLock<Vec<(Regex, Shown, bool)>> = LazyLock::new(|| {
    let compiled = FORMS.iter().filter_map(|(form, shown, is_open)| Some((Regex::new(form).ok()?, *shown, *is_open)));
    compiled.collect()
});

/// The form of an address with an addend at the end of a text.
static SUM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b0x([0-9a-fA-F]{5,16}) *([+-]) *(?:0x([0-9a-fA-F]{1,8})|([0-9]{1,8}))$").ok());

/// Returns the sum in `p = 0x555555558040 + 16`.
fn sum(text: &str) -> Option<Candidate> {
    let captures = SUM.as_ref()?.captures(text)?;
    let address = hexadecimal(&captures, 1)?;
    let by = hexadecimal(&captures, 3).or_else(|| name(&captures, 4)?.parse().ok())?;
    let sum = if captures.get(2)?.as_str() == "+" { address.checked_add(by) } else { address.checked_sub(by) };
    sum.map(Candidate::Address)
}

/// Returns the candidates in a text, in their order.
fn candidates(text: &str) -> Vec<Candidate> {
    let text = text.trim();
    if let Some(sum) = sum(text) {
        return vec![sum];
    }
    let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut rest = text.get(..end).unwrap_or_default().to_owned();
    let mut with_ends: Vec<(usize, Candidate)> = Vec::new();
    for (regex, shown, is_open) in REGEXES.iter() {
        let seen = rest.clone();
        for captures in regex.captures_iter(&seen) {
            let (candidate, Some(whole)) = (shown(&captures), captures.get(0)) else {
                continue;
            };
            if candidate.is_none() && std::ptr::fn_addr_eq(*shown, RANGE) {
                continue;
            }
            with_ends.extend(candidate.map(|candidate| (whole.end(), candidate)));
            if !is_open {
                rest.replace_range(whole.range(), &" ".repeat(whole.len()));
            }
        }
    }
    // Sorted by their ends: a text that may be two things ends with the address.
    with_ends.sort_by_cached_key(|(end, _)| *end);
    let of_row = pasted_row(text).map(of_row);
    let mut candidates: Vec<Candidate> = Vec::new();
    for candidate in of_row.into_iter().chain(with_ends.into_iter().map(|(_, candidate)| candidate)) {
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Returns the candidate in a row that the language knows.
fn of_row(row: PastedText) -> Candidate {
    match row {
        PastedText::Address(address) => Candidate::Address(address),
        PastedText::Span(start, end) => Candidate::Range(start, end),
        PastedText::Length { start, length } => Candidate::Range(start, start.saturating_add(length)),
        PastedText::Symbol { module, name, offset } => Candidate::Symbol { module, name, offset },
    }
}

/// Returns the candidates in a line that does not parse, if it is pasted. A session makes the hint from them.
pub(super) fn shown(failed: &Failure<'_>, error: &SyntaxError) -> Option<Pasted> {
    let (line, tokens) = (failed.line, failed.tokens);
    let first = tokens.first()?;
    // If pmdb has replaced words of another program, they belong to the text.
    let is_replaced = line.get(first.at.start..first.at.end) != Some(first.text);
    let (command, text) = match failed.language.resolve_first(first.text) {
        Resolved::One(name) if TAKE_ADDRESSES.contains(&name) && !is_typed(failed, error)? => {
            let text = if is_replaced { line } else { line.get(tokens.get(1)?.at.start..)? };
            (Some((first.text.to_owned(), name)).filter(|_| !is_replaced), text)
        }
        Resolved::One(_) => return None,
        _ if error.hint.is_some() && is_mistyped(failed) => return None,
        _ => (None, line),
    };
    let candidates = if is_frame_without_address(text) { Vec::new() } else { candidates(text) };
    let has_parts = tokens.len() > 2 && (text.contains("0x") || text.contains(" = "));
    let is_row = || has_parts || is_number_in_text(failed, error);
    (!candidates.is_empty() || is_row()).then(|| Pasted {
        takes_frames: command.as_ref().is_some_and(|(_, name)| TAKE_FRAMES.contains(name)),
        variable: command.as_ref().and_then(|_| variable(line)),
        command: command.map(|(typed, _)| typed),
        candidates,
    })
}

/// Returns the variable in `explain i = 32767`. gdb indents members, whose names alone mean nothing.
fn variable(line: &str) -> Option<String> {
    let [_, name, "=", _] = line.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    is_plain_name(name).then(|| name.to_owned())
}

/// Returns whether the arguments of a command were typed, and not pasted.
fn is_typed(failed: &Failure<'_>, error: &SyntaxError) -> Option<bool> {
    let (line, arguments) = (failed.line, failed.tokens.get(1..)?);
    // The error is in a format: this is no pasted text.
    let is_format = error.at.start < arguments.first()?.at.start;
    let numbers = arguments.iter().filter(|token| token.kind != TokenKind::Mark).count();
    let are_numbers = numbers <= 4 && arguments.iter().all(is_number_or_sign);
    let is_behind = !candidates(line.get(error.at.start..).unwrap_or_default()).is_empty();
    let is_explained = error.hint.is_some() && (are_numbers || !is_behind && !is_number_in_text(failed, error));
    let is_filter = failed.expects(Expected::Comparison) || failed.expects(Expected::Mark("=="));
    // `phys:` is a word of this language.
    let is_place =
        matches!(arguments, [place, colon, ..] if ["phys", "pfn"].contains(&place.text) && colon.text == ":");
    Some(is_place || is_format || is_filter || is_explained || failed.is_incomplete() && are_numbers)
}

/// Returns whether the line fails at digits within a text: `RIP: 0010:do_fault`, a path.
fn is_number_in_text(failed: &Failure<'_>, error: &SyntaxError) -> bool {
    let arguments = failed.tokens.get(1).map_or(0, |first| first.at.start);
    let before = failed.line.get(arguments..error.at.start).unwrap_or_default();
    let is_number = failed.token().is_some_and(|token| matches!(token.kind, TokenKind::BadNumber(_)));
    is_number && (before.contains(": ") || before.contains(" /"))
}

/// Returns whether the error is in the first word of a typed line: it is alone, misspelt or a prompt, or no candidate
/// is in the line.
fn is_mistyped(failed: &Failure<'_>) -> bool {
    let near = failed.tokens.first().and_then(|first| near(first.text, failed.language.first_words()).first().copied());
    let behind = failed.tokens.first().and_then(|first| failed.line.get(first.at.end..)).unwrap_or_default();
    let is_corrected = |word: &str| failed.language.accepts(&format!("{word}{behind}"));
    failed.tokens.len() == 1
        || near.is_some_and(is_corrected)
        || pasted_prompt(failed).is_some()
        || candidates(failed.line).is_empty()
}

fn is_number_or_sign(token: &Token<'_>) -> bool {
    let is_physical = matches!(token.text, "pfn" | "phys");
    let is_number = matches!(
        token.kind,
        TokenKind::Number(_) | TokenKind::Pages(_) | TokenKind::BadNumber(_) | TokenKind::Variable | TokenKind::Mark
    );
    (is_number || is_physical) && !matches!(token.text, "=" | "{")
}

/// Returns whether the text is a frame of gdb without an address, whose numbers are arguments of the function. Frames
/// of the sanitizers have a path before the parenthesis: `#1 main /tmp/t.c:5 (t+0x11560)`.
fn is_frame_without_address(text: &str) -> bool {
    let behind = text.strip_prefix('#').filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    behind.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start()).is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && rest.split_once(" (").is_some_and(|(function, _)| !function.contains('/'))
    })
}

/// Returns whether a line is a pasted row, or shows page frames or addresses in files.
pub(super) fn is_pasted(line: &str) -> bool {
    pasted_row(line.trim_start()).is_some()
        || candidates(line).iter().any(|one| matches!(one, Candidate::Frame { .. } | Candidate::InFile { .. }))
}

/// Returns the candidate in a comment at the prompt, if it is a frame of gdb.
pub fn comment(line: &str) -> Option<Pasted> {
    let row = pasted_row(line.trim()).filter(|_| line.trim().starts_with('#'))?;
    Some(Pasted { command: None, variable: None, takes_frames: false, candidates: vec![of_row(row)] })
}

/// Returns the candidates in a pasted row after a command that parses: rows of perf have addresses of the process or in
/// a file.
pub fn also_in_row(language: Language, line: &str) -> Option<Pasted> {
    let (command, text) = line.trim().split_once(is_blank)?;
    let Resolved::One(name) = language.resolve_first(command.split('/').next()?) else {
        return None;
    };
    if !TAKE_ADDRESSES.contains(&name) || pasted_row(text.trim_start()).is_none() {
        return None;
    }
    let command = Some(command.to_owned());
    Some(Pasted { command, variable: None, takes_frames: false, candidates: candidates(text) })
}

/// Returns what to type for a candidate that means something in the process; `None` if it means nothing.
pub type Means<'a> = &'a dyn Fn(&Candidate) -> Option<String>;

/// Returns the hint for pasted text. Without a process, only candidates that need none count.
pub fn choose(pasted: &Pasted, means: Option<Means<'_>>) -> String {
    let is_physical = |one: &&Candidate| matches!(one, Candidate::Frame { .. } | Candidate::Physical(_));
    let typed = pasted.command.as_deref().unwrap_or("translate");
    let of_process = pasted.candidates.iter().filter(|candidate| !is_physical(candidate)).find_map(|candidate| {
        let written = match means {
            Some(means) => means(candidate),
            None => matches!(candidate, Candidate::InFile { module: Some(_), .. }).then(|| candidate.to_string()),
        };
        Some(match (candidate, pasted.command.is_some()) {
            (Candidate::Entry(_), _) => return None,
            (Candidate::InFile { .. }, _) => format!("this is an address in a file: `{typed} {}`", written?),
            (Candidate::Offset { .. }, _) => format!("this offset of a file is mapped: `{typed} {}`", written?),
            (_, true) => format!("use the address alone: `{typed} {}`", written?),
            (_, false) => format!("put a command before pasted text: `{typed} {}`", written?),
        })
    });
    let frames = if pasted.takes_frames { typed } else { "flags" };
    let physical = pasted.candidates.iter().find(is_physical).map(|candidate| match candidate {
        Candidate::Frame { .. } => format!("this is the number of a page frame: `{frames} {candidate}`"),
        _ => format!("this is a physical address: `{frames} {candidate}`"),
    });
    let entry = pasted.candidates.iter().find(|candidate| matches!(candidate, Candidate::Entry(_)));
    match (of_process, physical, entry) {
        (Some(hint), Some(other), _) => format!("{hint}; {other}"),
        (Some(hint), None, _) | (None, Some(hint), _) => hint,
        (None, None, Some(entry)) => format!("an entry of the processor's page table: `decode {entry} as pte`"),
        (None, None, None) if means.is_none() && !pasted.candidates.is_empty() => {
            "attach to a process: then its addresses in pasted text are known".to_owned()
        }
        (None, None, None) => match &pasted.variable {
            Some(variable) => format!("this text has no address: gdb's `print &{variable}` shows one"),
            None => "this text has no address of the process".to_owned(),
        },
    }
}
