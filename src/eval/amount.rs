//! Counts and times, written as a number or as a variable.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Scope, Value};
use crate::lang::{self, Count, Span, Spanned, Time};
use std::time::Duration;

/// Returns the value of a count.
///
/// # Errors
/// Fails if the variable has no value, or one that is not a count.
pub fn count(count: &Spanned<Count>, scope: &dyn Scope) -> Result<u64> {
    match &count.node {
        Count::Number(number) => Ok(*number),
        Count::Variable(name) => number(name, count.at, scope),
    }
}

/// Returns the value of a time. A variable that is a number is in seconds: what is computed has no unit.
///
/// # Errors
/// Fails if the variable has no value, or one that is not a time.
pub fn time(time: &Spanned<Time>, scope: &dyn Scope) -> Result<Duration> {
    let name = match &time.node {
        Time::Duration(duration) => return Ok(*duration),
        Time::Variable(name) => name,
    };
    match Evaluator::new(scope).variable(name, time.at)? {
        Value::Text(text) => lang::parse_duration(&text).ok_or_else(|| {
            let message = format!("${name} is \"{text}\", not a time");
            Error::new(time.at, message).hint("write a time with its unit (ms, s, m, h), as in `100ms`")
        }),
        Value::Float(seconds) => Duration::try_from_secs_f64(seconds.get())
            .map_err(|_| Error::new(time.at, format!("${name} is {seconds}, not a time"))),
        _ => number(name, time.at, scope).map(Duration::from_secs),
    }
}

fn number(name: &str, at: Span, scope: &dyn Scope) -> Result<u64> {
    let value = Evaluator::new(scope).variable(name, at)?;
    let Some(number) = value.integer() else {
        return Err(Error::new(at, format!("${name} is {}, not an integer", value.phrase())));
    };
    number.to_u64().ok_or_else(|| Error::new(at, format!("${name} is {number}, not a count")))
}
