//! C++ and Rust names without the quotes that their brackets and blanks need.

use super::failure::Failure;
use crate::kernel::words::Worded;
use crate::lang::expression::{ChangeFunction, Function, NumberType};
use crate::lang::lexer::{Token, TokenKind};

/// The hint for such a name.
pub(super) const QUOTES: &str =
    "a name with `<`, `(` or blanks in it goes in 'single quotes', as 'shapes::area(int)' does";

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
    quotable.then(|| format!("a name with such characters goes in 'single quotes': '{name}'"))
}

/// How many tokens a name that needs quotes has; `None` if it has no brackets, or does not close them.
fn length(tokens: &[Token<'_>]) -> Option<usize> {
    if is_own_function(tokens) {
        return None;
    }
    let (mut open, mut bracketed, mut end) = (Vec::new(), false, 0);
    for (index, token) in tokens.iter().enumerate() {
        let glued = token.glued || index == 0;
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
        next.glued
            && match (&token.kind, token.text) {
                (TokenKind::Name, path) => path.contains("::") && matches!(next.text, "<" | "("),
                (_, ":") => next.text == ":",
                (_, "<") => !token.glued && next.kind == TokenKind::Name,
                _ => false,
            }
    })
}
