//! Hints for names that need quotes: C++ and Rust names with brackets and blanks, paths, and names with a colon.

use crate::kernel::words::Worded;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::{ChangeFunction, Expected, Failure, Function, NumberType};

/// The words before the colon in names of regions.
const WITH_COLON: [&str; 4] = ["memfd", "anon_inode", "socket", "dmabuf"];

/// Returns the hint for `memfd:ring` without quotes.
pub(super) fn name_with_colon(failed: &Failure<'_>) -> Option<String> {
    let [first, colon, after] = failed.tokens.get(failed.position.checked_sub(2)?..=failed.position)? else {
        return None;
    };
    let is_name = WITH_COLON.contains(&first.text) && colon.text == ":" && colon.is_glued && after.is_glued;
    let name = failed.line.get(first.at.start..)?.split_whitespace().next()?;
    (is_name && !name.contains('\'')).then(|| format!("put a name with a colon in 'single quotes': `'{name}'`"))
}

/// Returns the hint for a path without quotes.
pub(super) fn path_without_quotes(failed: &Failure<'_>) -> Option<String> {
    let token = failed.token()?;
    let is_name = failed.expects(Expected::Range) || failed.expects(Expected::Expression);
    if token.text != "/" || token.is_glued || !is_name {
        return None;
    }
    let path = failed.line.get(token.at.start..)?.split_whitespace().next()?;
    let is_format = |c: char| c.is_ascii_digit() || "xduotaczsfbhwg-".contains(c);
    let is_path = path.len() > 1 && !path.contains('\'') && !path.chars().skip(1).all(is_format);
    is_path.then(|| format!("put a path in 'single quotes': `'{path}'`"))
}

/// Returns the hint to quote a name that contains the failing token or ends right before it.
pub(super) fn quotes_around(failed: &Failure<'_>) -> Option<String> {
    let (tokens, position) = (failed.tokens, failed.position);
    let filter = |token: &Token<'_>| matches!(token.text, "where" | "until");
    if tokens.iter().take(position).any(filter) {
        return None;
    }
    // The first token is the command.
    let mut starts = (1..=position).filter_map(|index| {
        let rest = tokens.get(index..)?;
        (position <= index + length(rest)?).then_some(rest)
    });
    quotes(failed.line, starts.next()?)
}

/// Returns the hint to quote the name at the start of `tokens`; `None` if there is no such name.
pub(super) fn quotes(line: &str, tokens: &[Token<'_>]) -> Option<String> {
    let last = length(tokens)?.checked_sub(1)?;
    let name = line.get(tokens.first()?.at.start..tokens.get(last)?.at.end)?;
    let quotable = !name.contains(['\'', '\\']);
    quotable.then(|| format!("put a name with such characters in 'single quotes': `'{name}'`"))
}

/// Returns the number of tokens of a name that needs quotes; `None` if it has no brackets or does not close them.
fn length(tokens: &[Token<'_>]) -> Option<usize> {
    if is_own_function(tokens) {
        return None;
    }
    let (mut open, mut bracketed, mut end) = (Vec::new(), false, 0);
    for (index, token) in tokens.iter().enumerate() {
        let glued = token.is_glued || index == 0;
        match (token.text, &token.kind) {
            _ if open.is_empty() && !glued => break,
            // `<T as Trait>::name` begins with a bracket.
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

/// Returns whether the tokens begin with a function of the language: `pfn(`, `u8(`.
fn is_own_function(tokens: &[Token<'_>]) -> bool {
    let [name, bracket, ..] = tokens else {
        return false;
    };
    let is_known = Function::from_word(name.text).is_some()
        || ChangeFunction::from_word(name.text).is_some()
        || NumberType::from_word(name.text).is_some();
    bracket.text == "(" && is_known
}

/// Returns the hint to quote a name whose end is unknown, if the tokens around the failure look like one.
pub(super) fn quotes_near(failed: &Failure<'_>) -> Option<String> {
    let tokens = failed.tokens;
    let until = failed.position.saturating_add(1).min(tokens.len());
    let before = tokens.get(..until).unwrap_or_default();
    let hint = "put a name with `<`, `(` or spaces in 'single quotes', as in 'shapes::area(int)'";
    needs_quotes(before, tokens.get(until)).then(|| hint.to_owned())
}

/// Returns whether the tokens contain what only names of functions and types have: `ns::Box<`, `>::`, `<a::B as`.
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
