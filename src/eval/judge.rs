//! `assert`: whether an expression holds, and which values decided.

use super::error::Result;
use super::evaluator::Evaluator;
use super::operators;
use super::value::Value;
use crate::lang::{BinaryOperator as Op, Expression, Spanned, UnaryOperator};

/// The result of an assertion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The expression.
    pub expression: String,
    /// Whether it is true.
    pub holds: bool,
    /// The message if it is not.
    pub message: Option<String>,
    /// The values that decided, in the order of the line.
    pub findings: Vec<Finding>,
}

/// A part of an expression and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The part.
    pub expression: String,
    /// Its value.
    pub value: String,
    /// What it should have been, in words: `512`, `at least 80`.
    pub wanted: Option<String>,
}

impl Evaluator<'_> {
    pub(super) fn judge(&self, expression: &Spanned<Expression>) -> Result<Judgement> {
        let mut findings = Vec::new();
        let holds = self.holds(expression, &mut findings)?;
        Ok(Judgement {
            expression: expression.node.to_string(),
            holds,
            message: None,
            findings,
        })
    }

    /// Whether it is true. Of `A && B` only the side that decides is kept.
    fn holds(&self, expression: &Spanned<Expression>, findings: &mut Vec<Finding>) -> Result<bool> {
        match &expression.node {
            Expression::Unary { operator, operand } if operator.node == UnaryOperator::Not => {
                Ok(!self.holds(operand, findings)?)
            }
            Expression::Binary {
                operator,
                left,
                right,
            } if matches!(operator.node, Op::And | Op::Or) => {
                let before = findings.len();
                let decides = operator.node == Op::Or;
                if self.holds(left, findings)? == decides {
                    return Ok(decides);
                }
                if operator.node == Op::And {
                    findings.truncate(before);
                }
                self.holds(right, findings)
            }
            Expression::Binary {
                operator,
                left,
                right,
            } if wanted(operator.node, "").is_some() => {
                let (a, b) = (
                    self.compared(&right.node, left)?,
                    self.compared(&left.node, right)?,
                );
                let compared = self.combine((&left.node, &a), operator, (&right.node, &b))?;
                let is_literal = is_literal(&right.node);
                let wanted = wanted(operator.node, &shown(&b.node)).filter(|_| is_literal);
                let found = finding(&left.node, &a.node).map(|found| Finding { wanted, ..found });
                findings.extend(found);
                if !is_literal {
                    findings.extend(finding(&right.node, &b.node));
                }
                operators::truth(&Spanned::new(compared, expression.at))
            }
            _ => {
                let value = self.placed(expression)?;
                findings.extend(finding(&expression.node, &value.node));
                operators::truth(&value)
            }
        }
    }
}

/// A part with its value; `None` for a constant, which is its own value.
fn finding(expression: &Expression, value: &Value) -> Option<Finding> {
    (!is_literal(expression)).then(|| Finding {
        expression: expression.to_string(),
        value: shown(value),
        wanted: None,
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        other => other.to_string(),
    }
}

fn is_literal(expression: &Expression) -> bool {
    matches!(
        expression,
        Expression::Integer(_) | Expression::Pages(_) | Expression::Text(_)
    )
}

/// What a comparison wants of its left side, in words; `None` for other operators.
fn wanted(operator: Op, right: &str) -> Option<String> {
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
