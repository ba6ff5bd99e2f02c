//! What operators do with typed values: C's meaning, without its silent conversions and overflows.

use super::error::{Error, Result};
use super::space::{self, Space};
use super::{Float, Integer, Value};
use crate::lang::{BinaryOperator, Span, Spanned, UnaryOperator};

/// A value as arithmetic sees it: a number, and what it counts in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) space: Option<Space>,
    pub(super) number: Integer,
}

impl Operand {
    pub(super) fn of(value: &Spanned<Value>) -> Result<Self> {
        let space = match &value.node {
            Value::Integer(_) | Value::Float(_) | Value::Text(_) => None,
            Value::Address(_) | Value::Pointer { .. } | Value::Range(_) | Value::Symbol(_) => Some(Space::Virtual),
            Value::Physical(_) => Some(Space::Physical),
            Value::Frame(_) | Value::Frames(_) => Some(Space::Frames),
        };
        match value.node.number() {
            Some(number) => Ok(Operand { space, number }),
            None if matches!(value.node, Value::Float(_)) => {
                Err(Error::new(value.at, format!("{} is not an integer", value.node))
                    .hint(format!("a cast leaves its fraction out: (long){}", value.node)))
            }
            None => {
                let message = format!("the text \"{}\" is not a number", value.node);
                Err(Error::new(value.at, message).hint("text can only be compared with text, by == and !="))
            }
        }
    }
}

/// Whether a value counts as true: a number that is not zero. A range is neither: `assert heap` would hold whatever the
/// heap is.
pub(super) fn truth(value: &Spanned<Value>) -> Result<bool> {
    if matches!(value.node, Value::Range(_) | Value::Frames(_)) {
        return Err(Error::new(value.at, "a range is neither true nor false")
            .hint("compare something of it, such as rss(RANGE) > 0"));
    }
    if let Value::Float(float) = value.node {
        return Ok(float.get() != 0.0);
    }
    Ok(Operand::of(value)?.number != Integer::default())
}

/// `-A`, `~A` and the like; reading memory (`*A`) is not done here.
pub(super) fn unary(operator: &Spanned<UnaryOperator>, operand: &Spanned<Value>) -> Result<Value> {
    if let Value::Float(float) = operand.node {
        return unary_float(operator, float.get());
    }
    let operand = Operand::of(operand)?;
    let space = space::of_unary(operator, operand.space)?;
    let number = invert(operator.node, operand.number);
    finish(operator, space, number)
}

/// `A + B` and the like. Both sides of `&&` and `||` are already evaluated here. To skip the right one, callers ask for
/// the [`truth`] of the left one first.
pub(super) fn binary(
    left: &Spanned<Value>,
    operator: &Spanned<BinaryOperator>,
    right: &Spanned<Value>,
) -> Result<Value> {
    use BinaryOperator as Op;
    if let (Value::Text(a), Value::Text(b)) = (&left.node, &right.node) {
        match operator.node {
            Op::Equal => return Ok(Integer::from(a == b).into()),
            Op::NotEqual => return Ok(Integer::from(a != b).into()),
            _ => {}
        }
    }
    if matches!(left.node, Value::Float(_)) || matches!(right.node, Value::Float(_)) {
        return binary_float(float(left)?, operator, float(right)?);
    }
    if let Op::Multiply | Op::Divide | Op::Remainder | Op::ShiftLeft | Op::ShiftRight = operator.node {
        refuse_range(left)?;
        refuse_range(right)?;
    }
    let (a, b) = (Operand::of(left)?, Operand::of(right)?);
    let space = space::of_binary(a.space, operator, b.space)?;
    let zero = Integer::default();
    match operator.node {
        Op::Divide | Op::Remainder if b.number == zero => Err(Error::new(right.at, "division by zero")),
        Op::ShiftLeft | Op::ShiftRight if b.number < zero => Err(Error::new(right.at, "a shift by less than zero")),
        op => finish(operator, space, calculate(op, a.number, b.number)),
    }
}

/// A number as a `double`. An address is none: gdb has no such sum either.
pub(super) fn float(value: &Spanned<Value>) -> Result<f64> {
    match &value.node {
        Value::Float(float) => Ok(float.get()),
        Value::Integer(number) => Ok(number.get() as f64),
        other => Err(Error::new(value.at, format!("{} is not a number with a fraction", other.phrase()))),
    }
}

fn unary_float(operator: &Spanned<UnaryOperator>, x: f64) -> Result<Value> {
    Ok(match operator.node {
        UnaryOperator::Negate => Value::Float(Float::Double(-x)),
        UnaryOperator::Not => Integer::from(x == 0.0).into(),
        UnaryOperator::BitNot => return Err(whole_numbers(operator.at, operator.node.text())),
        UnaryOperator::Plus | UnaryOperator::Dereference => Value::Float(Float::Double(x)),
    })
}

fn binary_float(x: f64, operator: &Spanned<BinaryOperator>, y: f64) -> Result<Value> {
    use BinaryOperator as Op;
    let truth = |truth: bool| Integer::from(truth).into();
    let number = |number| Value::Float(Float::Double(number));
    Ok(match operator.node {
        Op::Add => number(x + y),
        Op::Subtract => number(x - y),
        Op::Multiply => number(x * y),
        Op::Divide => number(x / y),
        Op::Less => truth(x < y),
        Op::LessOrEqual => truth(x <= y),
        Op::Greater => truth(x > y),
        Op::GreaterOrEqual => truth(x >= y),
        Op::Equal => truth(x == y),
        Op::NotEqual => truth(x != y),
        Op::And => truth(x != 0.0 && y != 0.0),
        Op::Or => truth(x != 0.0 || y != 0.0),
        Op::Remainder | Op::ShiftLeft | Op::ShiftRight | Op::BitAnd | Op::BitXor | Op::BitOr => {
            return Err(whole_numbers(operator.at, operator.node.text()));
        }
    })
}

fn whole_numbers(at: Span, operator: &str) -> Error {
    Error::new(at, format!("`{operator}` needs integers")).hint("a cast leaves the fraction out: (long)7.5")
}

/// Refuses a range as an operand: `longest(R)/1K` means the length, and its start divided would look like an answer.
fn refuse_range(operand: &Spanned<Value>) -> Result<()> {
    match &operand.node {
        Value::Range(_) | Value::Frames(_) => Err(Error::new(operand.at, "a range is not a number")
            .hint("size(RANGE) is its length in bytes, start(RANGE) its first address")),
        _ => Ok(()),
    }
}

/// A result as a value, or an error at the operator if it does not fit.
fn finish<T>(operator: &Spanned<T>, space: Option<Space>, number: Option<Integer>) -> Result<Value> {
    let value = match space {
        None => number.map(Value::Integer),
        Some(space) => number.and_then(Integer::to_u64).map(|position| space.value(position)),
    };
    value.ok_or_else(|| {
        let limits = match space {
            None => "integers go from -2^63 to 2^64-1".to_owned(),
            Some(space) => format!("{} go from 0 to 2^64-1", space.plural()),
        };
        Error::new(operator.at, format!("the result does not fit: {limits}"))
    })
}

/// The operators before a number; `None` when the result is no integer of the language, and for reading memory.
pub(super) fn invert(operator: UnaryOperator, x: Integer) -> Option<Integer> {
    match operator {
        UnaryOperator::Negate => x.negate(),
        UnaryOperator::Plus => Some(x),
        UnaryOperator::BitNot => x.bit_not(),
        UnaryOperator::Not => Some((x == Integer::default()).into()),
        UnaryOperator::Dereference => None,
    }
}

/// The operators between numbers; `None` when the result is no integer of the language.
pub(super) fn calculate(operator: BinaryOperator, x: Integer, y: Integer) -> Option<Integer> {
    use BinaryOperator as Op;
    let zero = Integer::default();
    match operator {
        Op::Multiply => x.times(y),
        Op::Divide => x.divide(y),
        Op::Remainder => x.remainder(y),
        Op::Add => x.plus(y),
        Op::Subtract => x.minus(y),
        Op::ShiftLeft => x.shift_left(y),
        Op::ShiftRight => x.shift_right(y),
        Op::BitAnd => x.bit_and(y),
        Op::BitXor => x.bit_xor(y),
        Op::BitOr => x.bit_or(y),
        Op::Less => Some((x < y).into()),
        Op::LessOrEqual => Some((x <= y).into()),
        Op::Greater => Some((x > y).into()),
        Op::GreaterOrEqual => Some((x >= y).into()),
        Op::Equal => Some((x == y).into()),
        Op::NotEqual => Some((x != y).into()),
        Op::And => Some((x != zero && y != zero).into()),
        Op::Or => Some((x != zero || y != zero).into()),
    }
}
