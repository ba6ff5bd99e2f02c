//! `find`: the range and the patterns.

use nom::Parser;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;

use super::expression::{expression, page_filter, span_with};
use super::layout::search;
use super::stream::{Parsed, Tokens, is_mark, mark, silent_mark, with_commas};
use crate::lang::expected::Expected;
use crate::lang::expression::Expression;
use crate::lang::lexer::TokenKind;
use crate::lang::span::Spanned;
use crate::lang::syntax::{Command, Find, Pattern};

/// `[/UN] RANGE, PATTERN, …`
pub(super) fn find(input: Tokens<'_>) -> Parsed<'_, Command> {
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
