//! The lines that blocks are made of: `if E`, `foreach $x in …`, `end`.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, peek};
use nom::sequence::terminated;

use super::expression::expression;
use super::range::listed;
use super::rows::{regions, ungrouped};
use super::stream::{Failed, Parsed, Tokens, variable, with_commas, word};
use crate::lang::expected::Expected;
use crate::lang::lexer::TokenKind;
use crate::lang::span::Spanned;
use crate::lang::syntax::{Control, Opening, Rows};

/// The rest of a line of blocks, behind its first word; an error if that is no word of blocks.
pub(super) fn control<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Control> {
    let opening = match name {
        "if" => map(cut(expression), Opening::If).parse(input),
        "while" => map(cut(expression), Opening::While).parse(input),
        "foreach" => {
            map((cut(variable), cut(word("in")), cut(rows)), |(variable, _, rows)| Opening::Foreach { variable, rows })
                .parse(input)
        }
        "define" => map(cut(new_name), Opening::Define).parse(input),
        "document" => map(cut(new_name), Opening::Document).parse(input),
        "else" => return Ok((input, Control::Else)),
        "end" => return Ok((input, Control::End)),
        "loop_break" => return Ok((input, Control::Break)),
        "loop_continue" => return Ok((input, Control::Continue)),
        _ => return Err(nom::Err::Error(Failed)),
    };
    opening.map(|(behind, opening)| (behind, Control::Open(opening)))
}

/// A name for a new command.
pub(super) fn new_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
    input.accept(Expected::NewCommand, |token| (token.kind == TokenKind::Name).then(|| token.text.to_owned()))
}

/// `rows`. A symbol may be called `regions` or `walk`: what follows decides. A symbol called `threads` needs quotes.
fn rows(input: Tokens<'_>) -> Parsed<'_, Rows> {
    let commands = alt((
        terminated(region_rows, peek(end)),
        terminated(page_rows, peek(end)),
        terminated(map(word("threads"), |_| Rows::Threads), peek(end)),
    ))
    .parse(input);
    let failure = match commands {
        Ok(found) => return Ok(found),
        Err(failure) => failure,
    };
    let values = map(with_commas(listed), Rows::Values);
    match terminated(values, peek(end)).parse(input) {
        Err(nom::Err::Error(_)) => Err(failure),
        values => values,
    }
}

fn end(input: Tokens<'_>) -> Parsed<'_, ()> {
    match input.first().map(|token| &token.kind) {
        None | Some(TokenKind::Comment) => Ok((input, ())),
        _ => Err(nom::Err::Error(Failed)),
    }
}

fn region_rows(input: Tokens<'_>) -> Parsed<'_, Rows> {
    let (behind, at) = word("regions")(input)?;
    let (behind, command) = regions(behind)?;
    Ok((behind, Rows::Of(Spanned::new(command, at).into())))
}

fn page_rows(input: Tokens<'_>) -> Parsed<'_, Rows> {
    let (behind, at) = word("walk")(input)?;
    let (behind, command) = ungrouped(behind)?;
    Ok((behind, Rows::Of(Spanned::new(command, at).into())))
}
