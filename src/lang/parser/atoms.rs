//! Values of a single token.

use super::input::{Parsed, Tokens};
use crate::kernel::words::Worded;
use crate::lang::ctype::CType;
use crate::lang::expression::{Expression, LAST_ADDRESS, Name, Register, UnaryOperator};
use crate::lang::lexer::TokenKind;
use crate::lang::span::{Span, Spanned};

/// A number with digits after a point.
pub(crate) fn fraction(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Fraction { value, .. } => Some(Expression::Fraction(*value)),
        _ => None,
    })
}

/// Numbers, and what begins with `$`.
pub(crate) fn constant(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Number(value) | TokenKind::PastedValue(value) | TokenKind::PastedAddress(value) => {
            Some(Expression::Integer(i128::from(*value)))
        }
        TokenKind::PastedCast { to, reads, address } => {
            let address = Spanned::new(Expression::Integer(i128::from(*address)), token.at);
            Some(cast(Spanned::new(to.clone(), token.at), *reads, address))
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

/// `(T)E`, or `{T}E`, which is `*(T *)E`.
pub(crate) fn cast(to: Spanned<CType>, reads: bool, operand: Spanned<Expression>) -> Expression {
    let at = to.at;
    let to = if reads { to.map(|to| CType::Pointer(Box::new(to))) } else { to };
    let cast = Expression::Cast { to, operand: Box::new(operand) };
    if !reads {
        return cast;
    }
    Expression::Unary {
        operator: Spanned::new(UnaryOperator::Dereference, at),
        operand: Box::new(Spanned::new(cast, at)),
    }
}

pub(crate) fn text(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
        TokenKind::Text(text) => Some(Expression::Text(text.clone())),
        _ => None,
    })
}

pub(crate) fn bracketed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| {
        let inner = token.text.strip_prefix('[')?.strip_suffix(']')?;
        (token.kind == TokenKind::Bracketed).then(|| Expression::BracketedRegion(inner.to_owned()))
    })
}

pub(crate) fn indexed(input: Tokens<'_>) -> Parsed<'_, Spanned<Expression>> {
    input.accept_operand(|token| match &token.kind {
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
