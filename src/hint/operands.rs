//! Hints for a missing operator, keyword or comma between two operands.

use super::pasted::LEAST_ADDRESS;
use crate::kernel::words::Worded;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::parser::{is_clause, short};
use crate::lang::{Expected, Failure, FilterField, Function, PageField, near};

/// Commands that take one range.
const TAKE_RANGES: [&str; 3] = ["translate", "walk", "watch"];

/// The most tokens of an argument that lacks its parentheses.
const MOST_TOKENS: usize = 8;

/// Returns the hint for two names in the place of a range.
pub(super) fn two_ranges(failed: &Failure<'_>) -> Option<String> {
    let (command, token, before) = (failed.command()?, failed.token()?, failed.before()?);
    let are_names = [token, before].iter().all(|token| matches!(token.kind, TokenKind::Name | TokenKind::Bracketed));
    let is_condition = PageField::all().any(|field| field.name() == token.text);
    let are_two = failed.tokens.len() == 3 && failed.position == 2 && !is_condition && !is_clause(token.text);
    (TAKE_RANGES.contains(&command) && are_names && are_two && without_keyword(failed).is_none())
        .then(|| format!("one range at a time: `{command} {}`", before.text))
}

/// Returns the hint for a function without parentheses: `huge region matrix`.
pub(super) fn function_without_parentheses(failed: &Failure<'_>) -> Option<String> {
    let (token, function) = (failed.token()?, failed.before()?);
    // The first word is the command of this name.
    if failed.position < 2 || token.is_glued || !Function::words().any(|word| word == function.text) {
        return None;
    }
    let before = failed.line.get(..function.at.end)?;
    let ends = failed.tokens.get(failed.position..)?.iter().take(MOST_TOKENS).map(|last| last.at.end);
    let lines = ends.filter_map(|end| {
        let (argument, rest) = (failed.line.get(token.at.start..end)?, failed.line.get(end..)?);
        Some(format!("{before}({argument}){rest}"))
    });
    let line = lines.into_iter().find(|line| failed.language.accepts(line))?;
    Some(format!("did you mean `{line}`?"))
}

/// Returns the hint for two values with nothing between them.
pub(super) fn second_operand(failed: &Failure<'_>) -> Option<String> {
    let (command, token, before) = (failed.command()?, failed.token()?, failed.before()?);
    let is_value =
        |token: &Token<'_>| matches!(token.kind, TokenKind::Number(_) | TokenKind::Pages(_) | TokenKind::Variable);
    if before.text == "," && failed.expects(Expected::Mark("+")) {
        let first = failed.line.get(..token.at.start)?;
        let length = failed.tokens.get(failed.position + 1).filter(|_| token.text == "-");
        if matches!(token.kind, TokenKind::Name | TokenKind::Quoted(_)) {
            let one = failed.line.get(..before.at.start)?;
            return Some(format!("one range at a time: `{one}`, or with a length `{one}, +LENGTH`"));
        }
        return Some(match (length, failed.tokens.get(1)) {
            (Some(length), Some(start)) => {
                let start = failed.line.get(start.at.start..before.at.start)?;
                format!("for what is before it, write a range: `{command} {start}-{}..{start}`", length.text)
            }
            _ => format!("write a length with a plus: `{first}+{}`", token.text),
        });
    }
    let is_condition = |word: &str| PageField::all().any(|field| field.name() == word);
    if failed.expects_word("where") && is_condition(token.text) {
        let (pages, filter) = failed.line.split_at_checked(token.at.start)?;
        let meant = format!("{pages}where {filter}");
        if failed.language.accepts(&meant) {
            return Some(format!("a filter follows `where`: `{meant}`"));
        }
    }
    if let Some(hint) = without_keyword(failed) {
        return Some(hint);
    }
    let is_pattern = command == "find" && matches!(token.kind, TokenKind::Text(_) | TokenKind::HexBytes(_));
    if !(is_value(token) || is_pattern) || token.is_glued {
        return None;
    }
    if command == "find" && failed.expects(Expected::Mark(",")) {
        let (before, value) = failed.line.split_at_checked(token.at.start)?;
        let is_value = failed.tokens.iter().take(failed.position).any(|token| token.text == ",");
        let between = if is_value { "the values" } else { "the range and the value" };
        if !is_value && failed.position == 2 && matches!(failed.before()?.kind, TokenKind::Number(_)) {
            // One address is no range: `find 8 0x7f0000001000 in all`.
            return Some(format!("the range comes first: `find all, {}`", short(token.text)));
        }
        return Some(format!("put a comma between {between}: `{}, {}`", before.trim_end(), short(value)));
    }
    // A length: it has a unit of sizes, or is below the least address or half of the first.
    let is_length = match token.kind {
        TokenKind::Pages(_) => true,
        TokenKind::Number(number) => {
            let is_below = matches!(before.kind, TokenKind::Number(start) if number < start / 2);
            number < LEAST_ADDRESS || is_below || token.text.trim_end_matches("iB").ends_with(['K', 'M', 'G', 'T'])
        }
        _ => false,
    };
    let (start, end) = match (&before.kind, &token.kind) {
        (TokenKind::Number(first), TokenKind::Number(second)) if second < first => (token, before),
        _ => (before, token),
    };
    (failed.expects(Expected::Mark("..")) && (is_value(before) || before.kind == TokenKind::Name)).then(|| {
        if is_length {
            format!("put a comma before a length: `{}, +{}`", before.text, token.text)
        } else {
            format!("write a range as A..B: `{}..{}`", start.text, end.text)
        }
    })
}

/// Whether a word means an order elsewhere: `regions sort rss`.
pub fn names_sorting(text: &str) -> bool {
    ["sort", "sorted", "order", "ordered"].contains(&text) || text.starts_with("--sort")
}

/// Returns the hint for a word without its keyword: `watch heap timeline` for `as timeline`. The keyword is the only
/// one with which the line parses, but none that any name may follow, as `in`.
fn without_keyword(failed: &Failure<'_>) -> Option<String> {
    let token = failed.token().filter(|token| token.kind == TokenKind::Name)?;
    let (before, rest) = failed.line.split_at_checked(token.at.start)?;
    let accepts = |line: &str| failed.language.accepts(line);
    // After a comma, the keyword was parsed as a name: `capture FILE of bash, with memory`.
    let typed = failed.position.checked_sub(2).and_then(|from| failed.tokens.get(from..failed.position));
    if let Some([comma, keyword]) = typed
        && comma.text == ","
        && failed.expects_word(keyword.text)
    {
        let (before, behind) = (failed.line.get(..comma.at.start)?, failed.line.get(comma.at.end..)?);
        let line = format!("{before}{behind}");
        return accepts(&line).then(|| format!("leave the comma out: `{line}`"));
    }
    // `huge wit content`: the misspelt keyword was parsed as a name.
    let last = failed.before().filter(|last| last.kind == TokenKind::Name && failed.position > 1);
    let misspelt = last.and_then(|last| {
        let before = failed.line.get(..last.at.start)?;
        let is_longer = |keyword: &str| last.text.strip_prefix(keyword).is_some_and(|rest| rest.len() == 1);
        let is_near = |keyword: &str| {
            keyword.starts_with(last.text)
                || is_longer(keyword)
                || keyword == "by" && names_sorting(last.text)
                || !near(last.text, [keyword]).is_empty()
        };
        let near = failed.words().into_iter().filter(|keyword| is_near(keyword));
        near.map(|keyword| format!("{before}{keyword} {rest}")).find(|line| accepts(line))
    });
    if let Some(line) = misspelt {
        return Some(format!("did you mean `{line}`?"));
    }
    let mut lines = failed.expected.iter().filter_map(|one| match one {
        Expected::Word(keyword) => {
            let line = Some(format!("{before}{keyword} {rest}")).filter(|line| accepts(line))?;
            (!accepts(&format!("{before}{keyword} {}x", token.text))).then_some(line)
        }
        _ => None,
    });
    let line = lines.next()?;
    lines.next().is_none().then(|| format!("did you mean `{line}`?"))
}
