//! `find`: the range and the patterns.

use nom::Parser;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;

use super::arguments::{Find, Pattern};
use super::tree::Command;
use crate::lang::parser::{
    Parsed, TokenKind, Tokens, expression, is_mark, mark, page_filter, search, silent_mark, span_with, with_commas,
};
use crate::lang::{Expected, Expression, Spanned};

/// `[/UN] RANGE, PATTERN, …`
pub(crate) fn find(input: Tokens<'_>) -> Parsed<'_, Command> {
    let (input, layout) = opt(search).parse(input)?;
    let (input, range) = span_with(input, length)?;
    let (input, patterns) = cut(preceded(mark(","), with_commas(pattern))).parse(input)?;
    let (input, filter) = page_filter(input)?;
    Ok((input, Command::Find(Find { layout: layout.unwrap_or_default(), range, patterns, filter })))
}

/// A `, +` may also begin the first pattern: it is a length only if another comma follows.
fn length(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<Expression>>> {
    let length = preceded((silent_mark(","), silent_mark("+")), expression).parse(input);
    match length {
        Ok((behind, length)) if behind.first().is_some_and(|next| is_mark(next, ",")) => Ok((behind, Some(length))),
        _ => Ok((input, None)),
    }
}

/// `sought`
fn pattern(input: Tokens<'_>) -> Parsed<'_, Spanned<Pattern>> {
    let bytes = input.accept(Expected::Pattern, |token| match &token.kind {
        TokenKind::HexBytes(bytes) => Some(Pattern::Bytes(bytes.clone())),
        _ => None,
    });
    match bytes {
        Ok(found) => Ok(found),
        Err(_) => {
            let (behind, value) = expression(input)?;
            Ok((behind, value.map(Pattern::Value)))
        }
    }
}
