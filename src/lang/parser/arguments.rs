//! The arguments of user-defined commands and of command files: values, separated by blanks.

use super::input::Language;
use super::input::{Notes, Tokens};
use super::range::range;
use super::raw::split_text;
use crate::lang::lexer::{self, Token};
use crate::lang::span::Spanned;
use crate::lang::syntax::Argument;

/// The arguments in a text.
pub(crate) fn of_text(language: Language, text: &str) -> Vec<Spanned<Argument>> {
    let tokens = lexer::tokens(language, text);
    let notes = Notes::new(language, text, tokens.len());
    of_tokens(notes.input(&tokens))
}

/// The arguments up to the end of the command. Blanks outside parentheses separate them.
pub(crate) fn of_tokens(input: Tokens<'_>) -> Vec<Spanned<Argument>> {
    let (mut rest, _) = split_text(input);
    let mut arguments = Vec::new();
    while !rest.is_empty() {
        let (group, behind) = rest.split_at(length(rest));
        arguments.extend(argument(group, input.notes));
        rest = behind;
    }
    arguments
}

/// How many tokens the first argument has.
fn length(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 && depth == 0 && !token.glued {
            return index;
        }
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    tokens.len()
}

/// A range or an expression if all of it is one, else text.
fn argument(group: &[Token<'_>], all: &Notes<'_>) -> Option<Spanned<Argument>> {
    let at = group.first()?.at.to(group.last()?.at);
    let notes = Notes::new(all.language, all.line, group.len());
    let value = match range(notes.input(group)) {
        Ok((behind, range)) if behind.rest.is_empty() => Some(range),
        _ => None,
    };
    let text = all.line.get(at.start..at.end)?.to_owned();
    Some(Spanned::new(Argument { text, value }, at))
}
