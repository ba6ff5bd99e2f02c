//! The name of a command, which may be shortened, and what commands have in common.

use std::rc::Rc;

use nom::Parser;
use nom::combinator::cut;

use super::input::Syntax;
use super::input::{Failed, Parsed, Tokens};
use crate::lang::class::Class;
use crate::lang::commands::Resolved;
use crate::lang::error::SyntaxError;
use crate::lang::expected::Expected;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::span::Spanned;
use crate::lang::syntax::{How, Statement};

/// The name of a command, in full.
pub(crate) fn command_name(input: Tokens<'_>) -> Parsed<'_, Spanned<&'static str>> {
    let language = input.notes.language;
    let (behind, typed) = typed_word(input, Expected::Command)?;
    let first = match language.resolve_first(typed.node) {
        Resolved::One(name) => name,
        Resolved::Ambiguous(candidates) => return input.fault(ambiguous(&typed, &candidates)),
        Resolved::Unknown => return input.fail(Expected::Command),
    };
    if language.second_words(first).next().is_none() {
        return Ok((behind, Spanned::new(first, typed.at)));
    }
    for second in language.second_words(first) {
        behind.expect(Expected::Word(second));
    }
    let fallback = language.second_words(first).next().map_or(Expected::Command, Expected::Word);
    let (rest, typed) = cut(|input| typed_word(input, fallback)).parse(behind)?;
    let full = |second| language.subcommand(first, second).map_or(first, |syntax| syntax.name.name);
    match language.resolve_second(first, typed.node) {
        Resolved::One(second) => Ok((rest, Spanned::new(full(second), typed.at))),
        Resolved::Ambiguous(candidates) => behind.fault(ambiguous(&typed, &candidates)),
        Resolved::Unknown => Err(nom::Err::Failure(Failed)),
    }
}

fn typed_word<'a>(input: Tokens<'a>, expected: Expected) -> Parsed<'a, Spanned<&'a str>> {
    let (behind, found) = input.accept(expected, |token| {
        matches!(token.kind, TokenKind::Name | TokenKind::CommandName).then_some(token.text)
    })?;
    input.notes.note_class(Class::Command, found.at);
    Ok((behind, found))
}

fn ambiguous(typed: &Spanned<&str>, candidates: &[&str]) -> SyntaxError {
    SyntaxError {
        at: typed.at,
        message: format!("`{}` is the beginning of several commands", typed.node),
        expected: candidates.iter().map(|name| format!("`{name}`")).collect(),
        hint: None,
    }
}

/// The arguments of the command with that name, with `--how` before them if it takes that.
pub(crate) fn arguments<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Statement> {
    let Some(Syntax { name, parse }) = input.notes.language.command(name) else {
        return input.fail(Expected::Command);
    };
    // The format of `x` stands before its `--how`.
    if name.how && name.name != "x" { with_how(input, parse) } else { parse(input) }
}

/// `--how`, if it stands here, and the arguments after it.
pub(crate) fn with_how<'a>(
    input: Tokens<'a>,
    arguments: impl FnOnce(Tokens<'a>) -> Parsed<'a, Statement>,
) -> Parsed<'a, Statement> {
    let (input, how) = option("--how")(input)?;
    let (behind, statement) = arguments(input)?;
    let statement = match statement {
        Statement::Command(command) if how => Statement::Command(Rc::new(How(command))),
        statement => statement,
    };
    Ok((behind, statement))
}

/// `--how` and the like: whether it stands here.
pub(crate) fn option<'a>(option: &'static str) -> impl Fn(Tokens<'a>) -> Parsed<'a, bool> {
    move |input| {
        let is_it = |token: &Token<'_>| (token.kind == TokenKind::Option && token.text == option).then_some(());
        let Ok((behind, found)) = input.accept(Expected::Option(option), is_it) else {
            return Ok((input, false));
        };
        input.notes.note_class(Class::Keyword, found.at);
        Ok((behind, true))
    }
}
