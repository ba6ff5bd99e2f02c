//! Raw text: arguments taken as they were typed.

use super::input::{Parsed, Tokens};
use crate::lang::class::Class;
use crate::lang::expected::Expected;
use crate::lang::expression::is_fixed;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::span::{Span, Spanned};

/// Raw text, and whether it stood in quotes.
pub(crate) struct Raw {
    pub text: String,
    pub quoted: bool,
}

/// The tokens up to the end of the command, and the pipe, redirection or comment behind them.
pub(crate) fn split_text(input: Tokens<'_>) -> (&[Token<'_>], Tokens<'_>) {
    let ends = |token: &Token<'_>| {
        matches!(token.kind, TokenKind::Pipe { .. } | TokenKind::Redirect { .. } | TokenKind::Comment)
    };
    let length = input.rest.iter().position(ends);
    let (text, rest) = input.rest.split_at(length.unwrap_or(input.rest.len()));
    (text, Tokens { rest, ..input })
}

/// Where the arguments end.
pub(crate) fn end_of_text(input: Tokens<'_>) -> Parsed<'_, ()> {
    match split_text(input).0 {
        [] => Ok((input, ())),
        _ => Err(nom::Err::Error(super::input::Failed)),
    }
}

/// `raw`: as typed, or one quoted token without its quotes.
pub(crate) fn raw<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<Raw>> {
    move |input| {
        let (tokens, behind) = split_text(input);
        taken(input, what, tokens, behind)
    }
}

/// `pattern`: raw text up to a blank, or one quoted token without its quotes.
pub(crate) fn pattern<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<String>> {
    move |input| {
        let (tokens, behind) = up_to_blank(input);
        let (behind, raw) = taken(input, what, tokens, behind)?;
        Ok((behind, raw.map(|raw| raw.text)))
    }
}

/// The same where words of the language could stand too: completion offers both. One of the words of `clauses` ends the
/// part, also if it is glued, and begins none.
pub(crate) fn part_of_name<'a>(input: Tokens<'a>, clauses: &[&str]) -> Parsed<'a, Spanned<String>> {
    let (tokens, _) = up_to_blank(input);
    let is_clause = |token: &Token<'_>| clauses.contains(&token.text);
    let length = tokens.iter().skip(1).position(is_clause);
    let length = length.map_or(tokens.len(), |before| before + 1);
    let (tokens, rest) = input.rest.split_at(length);
    let behind = Tokens { rest, ..input };
    let may_begin = |token: &Token<'_>| match token.kind {
        TokenKind::Name => !is_clause(token),
        TokenKind::Quoted(_) | TokenKind::Text(_) | TokenKind::Bracketed => true,
        TokenKind::Variable => !is_fixed(token.text),
        _ => token.text == "/",
    };
    if !tokens.first().is_some_and(may_begin) {
        input.fail(Expected::RegionName)
    } else {
        Ok((behind, part(input, tokens).map(|raw| raw.text)))
    }
}

fn up_to_blank(input: Tokens<'_>) -> (&[Token<'_>], Tokens<'_>) {
    let (text, _) = split_text(input);
    let blank = text.iter().skip(1).position(|token| !token.glued);
    let length = blank.map_or(text.len(), |blank| blank + 1);
    let (tokens, rest) = input.rest.split_at(length);
    (tokens, Tokens { rest, ..input })
}

/// The text of some of the tokens, at least one.
pub(crate) fn part(input: Tokens<'_>, tokens: &[Token<'_>]) -> Spanned<Raw> {
    let first = tokens.first().map_or(input.place(), |token| token.at);
    let at = first.to(tokens.last().map_or(first, |token| token.at));
    input.notes.note_class(Class::Text, at);
    let raw = match tokens {
        [Token { kind: TokenKind::Quoted(text) | TokenKind::Text(text), .. }] => {
            Raw { text: text.clone(), quoted: true }
        }
        _ => Raw { text: slice(input.notes.line, at), quoted: false },
    };
    Spanned::new(raw, at)
}

fn taken<'a>(input: Tokens<'a>, what: Expected, tokens: &[Token<'_>], behind: Tokens<'a>) -> Parsed<'a, Spanned<Raw>> {
    let Some(first) = tokens.first() else {
        return input.fail(what);
    };
    if behind.rest.is_empty() {
        input.notes.note_raw_text(what, first.at.start);
    }
    Ok((behind, part(input, tokens)))
}

/// `raw`, its text alone.
pub(crate) fn raw_text<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<String>> {
    move |input| {
        let (behind, raw) = raw(what)(input)?;
        Ok((behind, raw.map(|raw| raw.text)))
    }
}

fn slice(line: &str, at: Span) -> String {
    line.get(at.start..at.end).unwrap_or_default().to_owned()
}
