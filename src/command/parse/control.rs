//! The lines that blocks are made of: `if E`, `foreach $x in …`, `end`.

use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, peek};
use nom::sequence::terminated;

use std::rc::Rc;

use super::rows::{regions, ungrouped};
use crate::lang::parser::{Failed, Parsed, TokenKind, Tokens, expression, listed, variable, with_commas, word};
use crate::lang::{Control, Expected, Opening, Rows, Spanned, Statement};

fn opening(opened: Parsed<'_, Opening>) -> Parsed<'_, Statement> {
    opened.map(|(behind, opening)| (behind, Statement::Control(Control::Open(opening))))
}

pub(in crate::command) fn if_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening(map(cut(expression), Opening::If).parse(input))
}

pub(in crate::command) fn while_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening(map(cut(expression), Opening::While).parse(input))
}

pub(in crate::command) fn foreach_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    let (input, (variable, _, rows)) = (cut(variable), cut(word("in")), cut(rows)).parse(input)?;
    opening(Ok((input, Opening::Foreach { variable, rows })))
}

pub(in crate::command) fn define_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening(map(cut(new_name), Opening::Define).parse(input))
}

pub(in crate::command) fn document_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    opening(map(cut(new_name), Opening::Document).parse(input))
}

pub(in crate::command) fn else_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::Else)))
}

pub(in crate::command) fn end_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::End)))
}

pub(in crate::command) fn loop_break_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::Break)))
}

pub(in crate::command) fn loop_continue_line(input: Tokens<'_>) -> Parsed<'_, Statement> {
    Ok((input, Statement::Control(Control::Continue)))
}

/// A name for a new command.
pub(crate) fn new_name(input: Tokens<'_>) -> Parsed<'_, Spanned<String>> {
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
    Ok((behind, Rows::Of(Spanned::new(Rc::new(command), at))))
}

fn page_rows(input: Tokens<'_>) -> Parsed<'_, Rows> {
    let (behind, at) = word("walk")(input)?;
    let (behind, command) = ungrouped(behind)?;
    Ok((behind, Rows::Of(Spanned::new(Rc::new(command), at))))
}
