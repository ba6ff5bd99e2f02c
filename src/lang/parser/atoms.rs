//! Values of a single token.

use super::stream::{Parsed, Tokens};
use crate::kernel::words::Worded;
use crate::lang::expected::Expected;
use crate::lang::expression::{Expression, LAST_ADDRESS, Name, Register};
use crate::lang::lexer::TokenKind;
use crate::lang::span::{Span, Spanned};

/// Numbers, and what begins with `$`.
pub(super) fn constant(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| match &token.kind {
        TokenKind::Number(value) | TokenKind::PastedValue(value) | TokenKind::PastedAddress(value) => {
            Some(Expression::Integer(i128::from(*value)))
        }
        TokenKind::Pages(count) => Some(Expression::Pages(*count)),
        TokenKind::History(reference) => Some(Expression::History(*reference)),
        TokenKind::Variable => Some(match token.text {
            LAST_ADDRESS => Expression::LastAddress,
            text => match Register::from_word(text) {
                Some(register) => Expression::Register(register),
                None => Expression::Variable(text.trim_start_matches('$').to_owned()),
            },
        }),
        _ => None,
    })
}

pub(super) fn text(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| match &token.kind {
        TokenKind::Text(text) => Some(Expression::Text(text.clone())),
        _ => None,
    })
}

pub(super) fn bracketed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| {
        let inner = token.text.strip_prefix('[')?.strip_suffix(']')?;
        (token.kind == TokenKind::Bracketed).then(|| Expression::BracketedRegion(inner.to_owned()))
    })
}

pub(super) fn indexed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept(Expected::Expression, |token| match &token.kind {
        TokenKind::Indexed { module, module_length, index } => {
            let middle = token.at.start + module_length;
            Some(Expression::ModuleRegion {
                module: Spanned::new(Name(module.clone()), Span::new(token.at.start, middle)),
                index: Spanned::new(*index, Span::new(middle + 1, token.at.end - 1)),
            })
        }
        _ => None,
    })
}
