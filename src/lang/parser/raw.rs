//! Raw text: arguments that are taken as they were typed.

use super::stream::{Parsed, Tokens};
use crate::lang::class::Class;
use crate::lang::expected::Expected;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::place::{Place, Spanned};
use crate::lang::syntax::TargetName;

/// Raw text, and whether it stood in quotes.
pub(super) struct Raw {
    pub text: String,
    pub quoted: bool,
}

/// The tokens that are text, and what ends the command behind them.
pub(super) fn split_text(input: Tokens<'_>) -> (&[Token<'_>], Tokens<'_>) {
    let ends = |token: &Token<'_>| {
        matches!(
            token.kind,
            TokenKind::Pipe { .. } | TokenKind::Redirect { .. } | TokenKind::Comment
        )
    };
    let length = input.rest.iter().position(ends);
    let (text, rest) = input.rest.split_at(length.unwrap_or(input.rest.len()));
    (text, Tokens { rest, ..input })
}

/// `raw`: as typed, or one quoted token without its quotes.
pub(super) fn raw<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<Raw>> {
    move |input| {
        let (tokens, behind) = split_text(input);
        taken(input, what, tokens, behind)
    }
}

/// `pattern`: raw text up to a blank, or one quoted token without its quotes.
pub(super) fn pattern<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<String>> {
    move |input| {
        let (text, _) = split_text(input);
        let blank = text.iter().skip(1).position(|token| !token.glued);
        let length = blank.map_or(text.len(), |blank| blank + 1);
        let (tokens, rest) = input.rest.split_at(length);
        let (behind, raw) = taken(input, what, tokens, Tokens { rest, ..input })?;
        Ok((behind, raw.map(|raw| raw.text)))
    }
}

fn taken<'a>(
    input: Tokens<'a>,
    what: Expected,
    tokens: &[Token<'_>],
    behind: Tokens<'a>,
) -> Parsed<'a, Spanned<Raw>> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        return input.fail(what);
    };
    if behind.rest.is_empty() {
        input.notes.note_raw_text(what, first.at.start);
    }
    let at = first.at.to(last.at);
    input.notes.note_class(Class::Text, at);
    let raw = match &first.kind {
        TokenKind::Quoted(text) | TokenKind::Text(text) if tokens.len() == 1 => Raw {
            text: text.clone(),
            quoted: true,
        },
        _ => Raw {
            text: slice(input.notes.line, at),
            quoted: false,
        },
    };
    Ok((behind, Spanned::new(raw, at)))
}

/// `raw`, its text alone.
pub(super) fn raw_text<'a>(what: Expected) -> impl Fn(Tokens<'a>) -> Parsed<'a, Spanned<String>> {
    move |input| {
        let (behind, raw) = raw(what)(input)?;
        Ok((behind, raw.map(|raw| raw.text)))
    }
}

fn slice(line: &str, at: Place) -> String {
    line.get(at.start..at.end).unwrap_or_default().to_owned()
}

/// A PID if it is a plain number and not quoted, else a name.
pub(super) fn target(raw: Spanned<Raw>) -> Spanned<TargetName> {
    raw.map(|raw| match raw.text.parse::<u32>() {
        Ok(id) if !raw.quoted && id.to_string() == raw.text => TargetName::Id(id),
        _ if raw.text == "self" && !raw.quoted => TargetName::Itself,
        _ => TargetName::Name(raw.text),
    })
}
