//! Names of snapshots.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::map;

use super::input::{Parsed, Tokens};
use super::stream::word;
use crate::lang::expected::Expected;
use crate::lang::expression::NOW;
use crate::lang::lexer::TokenKind;
use crate::lang::span::Spanned;

/// Words that cannot name a snapshot: they begin a clause of `snapshot` or `diff`, or mean the present.
const TAKEN: [&str; 8] = ["in", "with", "where", "by", "top", "limit", "delete", NOW];

pub(crate) fn snapshot_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::Snapshot, |token| {
        let is_name = token.kind == TokenKind::Name && !TAKEN.contains(&token.text);
        is_name.then(|| token.text.to_owned())
    })
}

/// The later of two: a snapshot, or the present.
pub(crate) fn later(input: Tokens<'_>) -> Parsed<'_, Option<Spanned<String>>> {
    alt((map(word(NOW), |_| None), map(snapshot_name, Some))).parse(input)
}
