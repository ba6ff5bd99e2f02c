//! `A == B` and its like. `state()` and `kind()` return one of few words. Comparing them with any other text is an
//! error: it would never be equal.

use super::error::{Error, Result};
use super::evaluator::{Evaluator, is_equality};
use super::value::Value;
use crate::kernel::{Kind, State};
use crate::lang::{self, BinaryOperator, Expression, Function, Spanned};

impl Evaluator<'_> {
    /// Applies an operator to two values, given the expressions that they come from.
    pub(super) fn combine(
        &self,
        left: (&Expression, &Spanned<Value>),
        operator: &Spanned<BinaryOperator>,
        right: (&Expression, &Spanned<Value>),
    ) -> Result<Value> {
        if is_equality(operator.node) {
            known_word(left.0, right)?;
            known_word(right.0, left)?;
        }
        self.combined(left.1, operator, right.1)
    }

    /// The value that something is compared with. An error for a bare word says that texts need quotes.
    pub(super) fn compared(&self, with: &Expression, expression: &Spanned<Expression>) -> Result<Spanned<Value>> {
        let value = self.placed(expression);
        match (words_of(with), &expression.node) {
            (Some((_, words)), Expression::Name(name)) if words.contains(&name.0.as_str()) => {
                value.map_err(|error| error.hint(format!("texts are in quotes: \"{}\"", name.0)))
            }
            _ => value,
        }
    }
}

/// The words that `expression` can be, if it calls `state()` or `kind()`.
fn words_of(expression: &Expression) -> Option<(&'static str, Vec<&'static str>)> {
    match expression {
        Expression::Call { function: Function::State, .. } => {
            Some(("state", State::ALL.iter().map(|one| one.word()).collect()))
        }
        Expression::Call { function: Function::Kind, .. } => {
            Some(("kind", Kind::ALL.iter().map(|one| one.word()).collect()))
        }
        _ => None,
    }
}

/// Refuses a text that the function never returns.
fn known_word(said: &Expression, (text, value): (&Expression, &Spanned<Value>)) -> Result<()> {
    let (Expression::Text(text), Some((what, words))) = (text, words_of(said)) else {
        return Ok(());
    };
    if words.contains(&text.as_str()) {
        return Ok(());
    }
    let error = Error::new(value.at, format!("\"{text}\" is not a {what} of a page"));
    Err(match lang::near(text, words.iter().copied()).first() {
        Some(meant) => error.hint(format!("did you mean \"{meant}\"?")),
        None => error.hint(format!("it is one of: {}", words.join(", "))),
    })
}
