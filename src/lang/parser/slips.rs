//! Hints for a line that failed: common mistakes, what beginners leave out or write as in another language, and C++ and
//! Rust names without the quotes that their brackets and blanks need.

use super::failure::{Failure, short};
use super::of_c::of_c;
use crate::kernel::PageFlags;
use crate::kernel::words::Worded;
use crate::lang::expected::Expected;
use crate::lang::expression::{ChangeFunction, Function, NumberType};
use crate::lang::field::{FilterField, RegionField};
use crate::lang::lexer::{Token, TokenKind};

/// A hint how to write what stands at `position` or in front of it.
pub(super) fn hint(failed: &Failure<'_>) -> Option<String> {
    called(failed)
        .or_else(|| pasted_prompt(failed))
        .or_else(|| size_with_unit(failed))
        .or_else(|| name_with_colon(failed))
        .or_else(|| maps_range(failed))
        .or_else(|| of_c(failed))
        .or_else(|| of_perl(failed))
        .or_else(|| trailing_comma(failed))
        .or_else(|| range_for_address(failed))
        .or_else(|| condition_on_regions(failed))
        .or_else(|| filter_word_in_value(failed))
        .or_else(|| field_without_comparison(failed))
        .or_else(|| failed.hint.clone())
        .or_else(|| mistake_in_command(failed))
}

/// Prompts that people paste together with the command behind them.
const PROMPTS: [&str; 6] = ["(gdb)", "(lldb)", "(pmdb)", "pwndbg>", "gef>", "crash>"];

fn pasted_prompt(failed: &Failure<'_>) -> Option<String> {
    let rest = failed.line.trim_start();
    let mut prompts = PROMPTS.iter().filter(|_| failed.position == 0);
    let command = prompts.find_map(|prompt| rest.strip_prefix(prompt))?.trim();
    (!command.is_empty()).then(|| format!("leave the prompt out: `{command}`"))
}

/// `exit()`, `quit(0)`: a command that is called like a function of C.
pub(super) fn called(failed: &Failure<'_>) -> Option<String> {
    let [name, open, .., close] = failed.tokens else {
        return None;
    };
    let is_call = name.kind == TokenKind::Name && open.is_glued && (open.text, close.text) == ("(", ")");
    let inside = failed.line.get(open.at.end..close.at.start).filter(|_| is_call)?;
    let meant = format!("{} {}", name.text, inside.trim());
    let meant = meant.trim_end();
    failed.language.parse_line(meant).is_ok().then(|| format!("write it without parentheses: `{meant}`"))
}

/// A unit that is no part of its number: `8 MiB`, `1.5G`, `4096 kB`.
fn size_with_unit(failed: &Failure<'_>) -> Option<String> {
    let (token, next) = (failed.token()?, failed.tokens.get(failed.position + 1));
    let (number, unit) = match (&token.kind, next) {
        (TokenKind::Fraction { .. }, Some(next)) => (token, next.text),
        _ => (failed.before()?, token.text),
    };
    let suffix = unit.trim_end_matches('B').trim_end_matches('i').to_ascii_uppercase();
    let step = ["K", "M", "G", "T"].iter().position(|one| *one == suffix)?;
    match number.kind {
        TokenKind::Number(_) => Some(format!("leave the blank out: `{}{suffix}`", number.text)),
        TokenKind::Fraction { value, .. } => {
            // The largest unit in which it is whole, at most two steps below.
            let parts = value * 1024.0;
            let (whole, below) = if parts.fract() == 0.0 || step == 0 { (parts, 1) } else { (parts * 1024.0, 2) };
            let unit = (step + 1).checked_sub(below).and_then(|at| ["", "K", "M", "G"].get(at))?;
            Some(format!("sizes are whole numbers: `{}{unit}`", whole.round()))
        }
        _ => None,
    }
}

/// The beginnings of names of regions that have a colon.
const WITH_COLON: [&str; 4] = ["memfd", "anon_inode", "socket", "dmabuf"];

/// `memfd:ring` without quotes.
fn name_with_colon(failed: &Failure<'_>) -> Option<String> {
    let [first, colon, after] = failed.tokens.get(failed.position.checked_sub(2)?..=failed.position)? else {
        return None;
    };
    let is_name = WITH_COLON.contains(&first.text) && colon.text == ":" && colon.is_glued && after.is_glued;
    let name = failed.line.get(first.at.start..)?.split_whitespace().next()?;
    (is_name && !name.contains('\'')).then(|| format!("put a name with a colon in 'single quotes': `'{name}'`"))
}

/// The hint for `NAME = VALUE` where no filter or condition is: a row of gdb, of which only addresses are taken.
pub(super) fn row_with_value(failed: &Failure<'_>) -> Option<String> {
    let is_row = failed.position == 2 && !failed.expects(Expected::Comparison);
    failed.command().filter(|_| is_row && !failed.takes_value())?;
    let [typed, name, ..] = failed.tokens else {
        return None;
    };
    let value = failed.tokens.get(failed.position + 1)?;
    let is_address = matches!(value.kind, TokenKind::Number(number) if number >= LEAST_ADDRESS)
        && failed.tokens.len() == failed.position + 2;
    Some(if is_address {
        format!("leave the name out: `{} {}`", typed.text, value.text)
    } else {
        format!("this row shows no address; gdb's `print &{}` does", name.text)
    })
}

/// `=~`, which matches a regular expression in other languages.
fn of_perl(failed: &Failure<'_>) -> Option<String> {
    let (equals, tilde) = (failed.token()?, failed.tokens.get(failed.position + 1)?);
    let is = equals.text == "=" && tilde.text == "~" && tilde.is_glued;
    is.then(|| "write ~ before a regular expression, in a filter: `regions where name ~ \"^lib\"`".to_owned())
}

/// Smaller numbers are seldom meant as addresses: nothing is mapped there (`vm.mmap_min_addr`).
pub(super) const LEAST_ADDRESS: u64 = 0x1_0000;

/// A comma behind an address, as in a list.
pub(super) fn trailing_comma(failed: &Failure<'_>) -> Option<String> {
    let (comma, before) = match failed.token() {
        Some(token) if token.text == "," => (token, failed.before()?),
        None => (failed.before()?, failed.tokens.get(failed.position.checked_sub(2)?)?),
        _ => return None,
    };
    let is_last = comma.text == "," && failed.tokens.last() == Some(comma) && failed.command() != Some("find");
    let command = failed.tokens.first().filter(|_| failed.tokens.len() > 2)?;
    let is_address = matches!(before.kind, TokenKind::Number(number) if number >= LEAST_ADDRESS);
    (is_last && is_address).then(|| format!("leave the last comma out: `{} {}`", command.text, before.text))
}

/// The clause of `walk` that answers for a range as this command does for one address, and what it does.
pub fn for_a_range(command: &str) -> Option<(&'static str, &'static str)> {
    Some(match command {
        "who" => ("by mapcount", "counts the mappings of its pages"),
        "flags" => ("by flags", "counts its pages by their flags"),
        "region" => ("by region", "lists its regions"),
        "explain" => ("by state", "counts its pages by their states"),
        _ => return None,
    })
}

/// A range in a command that takes one address: `who A, +64K`. The hint is a command that answers for a range.
fn range_for_address(failed: &Failure<'_>) -> Option<String> {
    let command = failed.command()?;
    let (clause, answer) = for_a_range(command)?;
    if !matches!(failed.token()?.text, "," | "..") {
        return None;
    }
    let is_behind = |token: &&Token<'_>| {
        ["where", "by", "limit", "top", "full"].contains(&token.text)
            || matches!(token.kind, TokenKind::Pipe { .. } | TokenKind::Redirect { .. } | TokenKind::Comment)
    };
    let behind = failed.tokens.get(failed.position..)?.iter().find(is_behind);
    let end = behind.map_or(failed.line.len(), |token| token.at.start);
    let range = failed.line.get(failed.tokens.get(1)?.at.start..end)?.trim_end();
    let parses = |line: &str| failed.language.parse_line(line).is_ok();
    let whole = format!("walk {range} {clause}");
    let huge = format!("explain huge {range}");
    let more = match command {
        "explain" if parses(&huge) => format!(", and `{huge}` is about huge pages"),
        _ => String::new(),
    };
    parses(&whole).then(|| format!("`{command}` is for one address; for a range `{whole}` {answer}{more}"))
}

/// `regions (anonymous)`, as the name of such a region is shown, and `regions where anon`, a flag of frames.
fn condition_on_regions(failed: &Failure<'_>) -> Option<String> {
    failed.command().filter(|command| *command == "regions")?;
    let is_condition = |word: &str| failed.language.parse_line(&format!("regions where {word}")).is_ok();
    match failed.tokens {
        [_, open, name, ..] if failed.position == 1 && open.text == "(" && is_condition(name.text) => {
            Some(format!("as a condition: `regions where {}`", name.text))
        }
        _ => {
            let word = failed.token()?.text;
            PageFlags::from_flag_name(word).filter(|_| failed.expects(Expected::RegionField))?;
            let mut longer = RegionField::all().map(RegionField::name).filter(|name| name.starts_with(word));
            let name = longer.find(|name| *name != word && is_condition(name))?;
            Some(format!("for regions `regions where {name}`, for frames `walk all where flags({word})`"))
        }
    }
}

/// The first field of a line of maps: two addresses with `-` between them.
fn maps_range(failed: &Failure<'_>) -> Option<String> {
    let [start, minus, end, ..] = failed.tokens.get(failed.position..)? else {
        return None;
    };
    let is_number = |token: &Token<'_>| {
        let digits = token.text.trim_start_matches("0x");
        digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let digits = |token: &Token<'_>| token.text.trim_start_matches("0x").to_owned();
    let is_span = minus.text == "-" && minus.is_glued && end.is_glued;
    let command = match failed.line.get(..start.at.start)?.trim() {
        "" => "walk",
        command => command,
    };
    (is_span && is_number(start) && is_number(end))
        .then(|| format!("write a range as A..B: `{command} 0x{}..0x{}`", digits(start), digits(end)))
}

/// A word of filters, or of another language, in a command that takes a value.
fn filter_word_in_value(failed: &Failure<'_>) -> Option<String> {
    let command = failed.command()?;
    let is_value = failed.takes_value() && failed.expects(Expected::Operator);
    if !is_value {
        return None;
    }
    let (line, token) = (failed.line, failed.token()?);
    match token.text {
        "where" if !failed.expects(Expected::Mark(")")) => {
            let pages = line.get(failed.tokens.get(1)?.at.start..token.at.start)?.trim();
            let than = match command {
                "print" | "output" => "",
                _ => " > 0",
            };
            Some(format!("to count pages: `{command} count({pages} where FILTER){than}`"))
        }
        "then" | "do" | "{" | ":" | ";" if matches!(command, "if" | "while") => {
            Some(format!("leave `{}` out: write each command on its own line, and `end` after them", token.text))
        }
        _ => None,
    }
}

/// A number of regions as if it was a condition: `regions where huge`.
pub(super) fn field_without_comparison(failed: &Failure<'_>) -> Option<String> {
    let before = failed.before()?;
    let takes_regions = failed.command() == Some("regions") && failed.expects(Expected::Comparison);
    let field = RegionField::all().find(|field| field.name() == before.text).filter(|_| takes_regions)?;
    Some(format!("`{}` is a number: `{0} > 0`, `{0} == 0`", field.name()))
}

/// A range behind the name of a snapshot, without `in`.
fn missing_in(failed: &Failure<'_>) -> Option<String> {
    let token = failed.token().filter(|_| failed.expects(Expected::Word("in")))?;
    let range = match token.text {
        "from" | "to" => return None,
        "of" | "over" => failed.line.get(token.at.end..)?.trim(),
        text if !matches!(token.kind, TokenKind::Mark | TokenKind::Other) => text,
        _ => return None,
    };
    Some(format!("to limit a snapshot to a range: `snapshot NAME in {}`", short(range)))
}

/// Mistakes that belong to one command.
fn mistake_in_command(failed: &Failure<'_>) -> Option<String> {
    let first = failed.tokens.get(1)?;
    match (failed.command()?, failed.position, first.text) {
        ("foreach", 1, word) if first.kind == TokenKind::Name => {
            Some(format!("a variable begins with $: `foreach ${word} in \u{2026}`"))
        }
        ("foreach", _, _) if failed.expects(Expected::Mark(",")) => {
            let is_value = matches!(failed.token()?.kind, TokenKind::Number(_));
            is_value.then(|| "put commas between the values: `foreach $i in 1, 2, 3`".to_owned())
        }
        ("compare", 1, "parent") => Some("`info process` shows the PID of the parent, for `compare PID`".to_owned()),
        ("compare", 1, "from") => Some("`diff from FILE` shows the changes since a capture".to_owned()),
        ("compare", 1, word) if first.kind == TokenKind::Name => {
            let name = failed.line.get(first.at.start..)?.split_whitespace().next().unwrap_or(word);
            let name = if name.contains(['"', '\\']) { word } else { name };
            let of_file = if name.contains('.') { "; `diff from FILE` compares with a capture" } else { "" };
            Some(format!("write the name of a process as a text: `compare \"{name}\"`{of_file}"))
        }
        ("display", 2.., "p" | "print" | "inspect" | "output") => {
            let value = failed.line.get(first.at.end..)?.trim_start();
            let format = if value.starts_with('/') { "" } else { " " };
            Some(format!("leave `{}` out: `display{format}{}`", first.text, short(value)))
        }
        ("info", 2, word) if word.starts_with("reg") => {
            if let Some(register @ ("pc" | "sp" | "rip" | "rsp" | "eip" | "esp")) =
                failed.token().map(|token| token.text)
            {
                return Some(format!("for one register: `print ${register}`"));
            }
            Some("for one register: `print $sp` or `print $pc`; use gdb for the others".to_owned())
        }
        ("find", _, _) if failed.expects(Expected::Mark(",")) => unit_as_option(failed),
        (name @ ("walk" | "watch"), 2, word) if failed.expects_word(word) => {
            Some(format!("put the range first: `{name} all {word} \u{2026}`"))
        }
        ("snapshot", 2.., _) => missing_in(failed),
        ("watch", 2.., _) if failed.expects(Expected::Word("every")) => {
            let time = failed.token()?;
            let text = time.text;
            matches!(time.kind, TokenKind::Duration(_) | TokenKind::Fraction { .. }).then(|| {
                format!("`watch RANGE every {text}` sets the time between samples, and `watch RANGE for {text}` the whole time")
            })
        }
        (name, 2.., _) if failed.language.takes_how(name) && first.text != "--how" => {
            let is_how = failed.token()?.text == "--how";
            is_how.then(|| format!("put --how directly after the name of the command: `{name} --how \u{2026}`"))
        }
        _ => None,
    }
}

/// `assert walk RANGE …`: a command, or a function without its parentheses, where an expression is tested.
pub(super) fn command_in_assert(failed: &Failure<'_>) -> Option<String> {
    let [assert, word, next, ..] = failed.tokens else {
        return None;
    };
    let is_called = next.text == "(" && next.is_glued;
    let is_word = |known: &str| known == word.text;
    let is_command = failed.language.first_words().any(is_word) || Function::words().any(is_word);
    (assert.text == "assert" && is_command && !is_called)
        .then(|| "it tests an expression, as in `assert count(RANGE where swapped) == 0`".to_owned())
}

/// `search -8 VALUE`, as in pwndbg: the size of a number.
fn unit_as_option(failed: &Failure<'_>) -> Option<String> {
    let [comma, minus, size, value] = failed.tokens.get(failed.position.checked_sub(3)?..=failed.position)? else {
        return None;
    };
    let unit = match size.kind {
        TokenKind::Number(1) => 'b',
        TokenKind::Number(2) => 'h',
        TokenKind::Number(4) => 'w',
        TokenKind::Number(8) => 'g',
        _ => return None,
    };
    let is_option = comma.text == "," && minus.text == "-" && size.is_glued;
    is_option.then(|| format!("the size is a letter after a slash: `find/{unit} all, {}`", value.text))
}

/// The hint for a function that other programs might have.
pub(super) fn of_other_words(function: &str) -> Option<String> {
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

/// The hint for such a name.
pub(super) const QUOTES: &str = "put a name with `<`, `(` or blanks in 'single quotes', as in 'shapes::area(int)'";

/// A hint to quote the name that contains the token at `position` or ends right before it; `None` if there is no such
/// name.
pub(super) fn quotes_around(failed: &Failure<'_>) -> Option<String> {
    let (tokens, position) = (failed.tokens, failed.position);
    let filter = |token: &Token<'_>| matches!(token.text, "where" | "until");
    if tokens.iter().take(position).any(filter) {
        return None;
    }
    // The first word is the command.
    let mut starts = (1..=position).filter_map(|index| {
        let rest = tokens.get(index..)?;
        (position <= index + length(rest)?).then_some(rest)
    });
    quotes(failed.line, starts.next()?)
}

/// The same for a name at the start of these tokens.
pub(super) fn quotes(line: &str, tokens: &[Token<'_>]) -> Option<String> {
    let last = length(tokens)?.checked_sub(1)?;
    let name = line.get(tokens.first()?.at.start..tokens.get(last)?.at.end)?;
    let quotable = !name.contains(['\'', '\\']);
    quotable.then(|| format!("put a name with such characters in 'single quotes': `'{name}'`"))
}

/// How many tokens a name that needs quotes has; `None` if it has no brackets, or does not close them.
fn length(tokens: &[Token<'_>]) -> Option<usize> {
    if is_own_function(tokens) {
        return None;
    }
    let (mut open, mut bracketed, mut end) = (Vec::new(), false, 0);
    for (index, token) in tokens.iter().enumerate() {
        let glued = token.is_glued || index == 0;
        match (token.text, &token.kind) {
            _ if open.is_empty() && !glued => break,
            // `<T as Trait>::name` begins with one.
            ("<", _) => open.push("<"),
            ("(" | "{", _) if index > 0 => open.push(token.text),
            (">" | ")" | "}", _) => bracketed |= open.pop().is_some(),
            (">>", _) => bracketed |= open.pop().and(open.pop()).is_some(),
            (_, TokenKind::Name) => {}
            (":" | "~", _) if index > 0 => {}
            ("," | "&" | "*" | "-" | "#", _) if !open.is_empty() => {}
            (_, TokenKind::Number(_)) if matches!(open.last(), Some(&("<" | "{"))) => {}
            _ => break,
        }
        end = index + 1;
    }
    (open.is_empty() && bracketed).then_some(end)
}

/// Whether a function of the language begins here: `pfn(`, `u8(`.
fn is_own_function(tokens: &[Token<'_>]) -> bool {
    let [name, bracket, ..] = tokens else {
        return false;
    };
    let is_known = Function::from_word(name.text).is_some()
        || ChangeFunction::from_word(name.text).is_some()
        || NumberType::from_word(name.text).is_some();
    bracket.text == "(" && is_known
}

/// A hint to quote a name whose end is not known, if the tokens around the failure look like one.
pub(super) fn quotes_near(failed: &Failure<'_>) -> Option<String> {
    let tokens = failed.tokens;
    let until = failed.position.saturating_add(1).min(tokens.len());
    let before = tokens.get(..until).unwrap_or_default();
    needs_quotes(before, tokens.get(until)).then(|| QUOTES.to_owned())
}

/// Whether the tokens up to a failure contain what only names of functions and types have: `ns::Box<`, `>::`, `<a::B
/// as`.
fn needs_quotes(tokens: &[Token<'_>], behind: Option<&Token<'_>>) -> bool {
    let next = tokens.iter().skip(1).chain(behind);
    tokens.iter().zip(next).any(|(token, next)| {
        next.is_glued
            && match (&token.kind, token.text) {
                (TokenKind::Name, path) => path.contains("::") && matches!(next.text, "<" | "("),
                (_, ":") => next.text == ":",
                (_, "<") => !token.is_glued && next.kind == TokenKind::Name,
                _ => false,
            }
    })
}
