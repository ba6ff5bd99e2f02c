//! Comparisons and `assert`: whether an expression is true, and which values decided it. `state()` and `kind()` return
//! one of few words. Comparing them with any other text is an error, because they would never be equal.

use super::error::{Error, Result};
use super::evaluator::{Evaluator, is_equality};
use super::operators;
use super::value::Value;
use crate::kernel::{Kind, State};
use crate::lang::{self, BinaryOperator, BinaryOperator as Op, Expression, Function, Spanned, UnaryOperator};
use crate::render::units::size;
use crate::report::{AssertionReport, AssertionValue};

impl Evaluator<'_> {
    /// Applies an operator to two values, given the expressions of both.
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
        self.combine_pointers(left.1, operator, right.1)
    }

    /// Returns the right value of a comparison. The error for a bare word reminds that texts need quotes.
    pub(super) fn compared_value(&self, with: &Expression, expression: &Spanned<Expression>) -> Result<Spanned<Value>> {
        let value = self.value_with_place(expression);
        match (words_of(with), &expression.node) {
            (Some((_, words)), Expression::Name(name)) if words.contains(&name.0.as_str()) => {
                value.map_err(|error| error.hint(format!("put the text in quotes: `\"{}\"`", name.0)))
            }
            _ => value,
        }
    }
}

/// Returns the possible words of `expression`, if it calls `state()` or `kind()`.
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

/// Fails for a text that the function never returns.
fn known_word(said: &Expression, (text, value): (&Expression, &Spanned<Value>)) -> Result<()> {
    let (Expression::Text(text) | Expression::EscapedText { text, .. }, Some((what, words))) = (text, words_of(said))
    else {
        return Ok(());
    };
    if words.contains(&text.as_str()) {
        return Ok(());
    }
    let error = Error::new(value.at, format!("\"{text}\" is not a {what} of a page"));
    Err(match lang::near(text, words.iter().copied()).first() {
        Some(meant) => error.hint(format!("did you mean `\"{meant}\"`?")),
        None => error.hint(format!("it is one of: {}", words.join(", "))),
    })
}

impl Evaluator<'_> {
    pub(super) fn judge(&self, expression: &Spanned<Expression>) -> Result<AssertionReport> {
        let mut values = Vec::new();
        let holds = self.holds(expression, &mut values)?;
        Ok(AssertionReport { expression: expression.node.to_string(), holds, message: None, values, place: None })
    }

    /// Returns whether the expression is true. Of `A && B` and `A || B`, only the side that decides is kept.
    fn holds(&self, expression: &Spanned<Expression>, decided: &mut Vec<AssertionValue>) -> Result<bool> {
        match &expression.node {
            Expression::Unary { operator, operand } if operator.node == UnaryOperator::Not => {
                Ok(!self.holds(operand, decided)?)
            }
            Expression::Binary { operator, left, right } if matches!(operator.node, Op::And | Op::Or) => {
                let before = decided.len();
                let decides = operator.node == Op::Or;
                if self.holds(left, decided)? == decides {
                    return Ok(decides);
                }
                if operator.node == Op::And {
                    decided.truncate(before);
                }
                self.holds(right, decided)
            }
            Expression::Binary { operator, left, right } if expectation(operator.node, "").is_some() => {
                let (a, b) = (self.compared_value(&right.node, left)?, self.compared_value(&left.node, right)?);
                let compared = self.combine((&left.node, &a), operator, (&right.node, &b))?;
                let is_literal = is_literal(&right.node);
                let wanted = expectation(operator.node, &text_of_value(&b.node)).filter(|_| is_literal);
                self.add_part(&left.node, &a.node, wanted, decided);
                if !is_literal {
                    self.add_part(&right.node, &b.node, None, decided);
                }
                operators::truth(&Spanned::new(compared, expression.at))
            }
            _ => {
                let value = self.value_with_place(expression)?;
                self.add_part(&expression.node, &value.node, None, decided);
                operators::truth(&value)
            }
        }
    }

    /// Adds a part with its value, unless it is a constant, and the variables in it, by which failures in a loop
    /// differ.
    fn add_part(&self, part: &Expression, value: &Value, wanted: Option<String>, to: &mut Vec<AssertionValue>) {
        if is_literal(part) {
            return;
        }
        let text = text_of_value(value);
        let text = match in_units(part, value).filter(|size| *size != text) {
            Some(size) => format!("{text} ({size})"),
            None => text,
        };
        to.push(AssertionValue { expression: part.to_string(), value: text, wanted });
        let mut names = Vec::new();
        part.add_variables(&mut names);
        for name in names {
            let expression = format!("${name}");
            let value = self.scope.variable(name).filter(|_| to.iter().all(|one| one.expression != expression));
            to.extend(value.map(|value| AssertionValue { expression, value: text_of_value(&value), wanted: None }));
        }
    }
}

/// Formats the value of `expression` as a size, if it is a number of bytes.
pub fn in_units(expression: &Expression, value: &Value) -> Option<String> {
    match value {
        Value::Integer(bytes) if expression.counts_bytes() => u64::try_from(bytes.get()).map(size).ok(),
        _ => None,
    }
}

fn text_of_value(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        other => other.to_string(),
    }
}

fn is_literal(expression: &Expression) -> bool {
    matches!(
        expression,
        Expression::Integer(_) | Expression::Pages(_) | Expression::Text(_) | Expression::EscapedText { .. }
    )
}

/// Returns the expected left value of a comparison in words; `None` for other operators.
fn expectation(operator: Op, right: &str) -> Option<String> {
    Some(match operator {
        Op::Equal => right.to_owned(),
        Op::NotEqual => format!("anything but {right}"),
        Op::Less => format!("less than {right}"),
        Op::LessOrEqual => format!("at most {right}"),
        Op::Greater => format!("more than {right}"),
        Op::GreaterOrEqual => format!("at least {right}"),
        _ => return None,
    })
}
