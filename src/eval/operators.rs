//! What operators do with typed values: C's meaning, without its silent conversions and overflows.

use super::error::{Error, Result};
use super::{Integer, Value};
use crate::kernel::{FrameNumber, PhysicalAddress, VirtualAddress};
use crate::lang::{BinaryOperator, Place, Spanned, UnaryOperator};

/// What an address counts in. Addresses of two spaces have nothing to say to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Virtual,
    Physical,
    Frames,
}

impl Space {
    fn plural(self) -> &'static str {
        match self {
            Space::Virtual => "addresses",
            Space::Physical => "physical addresses",
            Space::Frames => "page frames",
        }
    }

    fn value(self, position: u64) -> Value {
        match self {
            Space::Virtual => Value::Address(VirtualAddress::new(position)),
            Space::Physical => Value::Physical(PhysicalAddress::new(position)),
            Space::Frames => Value::Frame(FrameNumber::new(position)),
        }
    }
}

/// A value as arithmetic sees it.
#[derive(Clone, Copy)]
enum Operand {
    Integer(Integer),
    Point(Space, u64),
}

impl Operand {
    /// A range takes part as its first address, so that `libc.so.6 + 0x1000` is what it looks like.
    fn of(value: &Spanned<Value>) -> Result<Self> {
        Ok(match &value.node {
            Value::Integer(integer) => Operand::Integer(*integer),
            Value::Address(address) => Operand::Point(Space::Virtual, address.get()),
            Value::Physical(address) => Operand::Point(Space::Physical, address.get()),
            Value::Frame(frame) => Operand::Point(Space::Frames, frame.get()),
            Value::Range(spans) => Operand::Point(Space::Virtual, spans.start().get()),
            Value::Frames(frames) => Operand::Point(Space::Frames, frames.start().get()),
            Value::Text(_) => {
                return Err(Error::new(value.at, "text is not a number")
                    .hint("text can only be compared with text, by == and !="));
            }
        })
    }

    fn number(self) -> Integer {
        match self {
            Operand::Integer(integer) => integer,
            Operand::Point(_, position) => position.into(),
        }
    }
}

/// Whether a value counts as true: a number that is not zero.
pub(super) fn truth(value: &Spanned<Value>) -> Result<bool> {
    Ok(Operand::of(value)?.number() != Integer::default())
}

/// `-A`, `~A` and the like; reading memory (`*A`) is not done here.
pub(super) fn unary(operator: &Spanned<UnaryOperator>, operand: Spanned<Value>) -> Result<Value> {
    let integer = |name: &str| match Operand::of(&operand)? {
        Operand::Integer(integer) => Ok(integer),
        Operand::Point(space, _) => Err(Error::new(
            operator.at,
            format!("{} cannot be {name}", space.plural()),
        )),
    };
    let result = match operator.node {
        UnaryOperator::Plus => {
            Operand::of(&operand)?;
            return Ok(operand.node);
        }
        UnaryOperator::Not => return Ok(Integer::from(!truth(&operand)?).into()),
        UnaryOperator::Negate => integer("negated")?.negate(),
        UnaryOperator::BitNot => integer("inverted")?.bit_not(),
        UnaryOperator::Dereference => {
            return Err(Error::new(
                operator.at,
                "memory cannot be read in this place",
            ));
        }
    };
    result
        .map(Value::Integer)
        .ok_or_else(|| out_of_span(operator.at))
}

/// `A + B` and the like. `&&` and `||` have both sides worked out here; who wants to spare the right one asks
/// [`truth`] of the left first.
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
    let (a, b) = (Operand::of(left)?, Operand::of(right)?);
    let space = space_of_result(a, operator, b)?;
    let (x, y) = (a.number(), b.number());
    if matches!(operator.node, Op::Divide | Op::Remainder) && y == Integer::default() {
        return Err(Error::new(right.at, "division by zero"));
    }
    if matches!(operator.node, Op::ShiftLeft | Op::ShiftRight) && y < Integer::default() {
        return Err(Error::new(right.at, "a shift by less than zero"));
    }
    let result = calculate(operator.node, x, y);
    let Some(space) = space else {
        return result
            .map(Value::Integer)
            .ok_or_else(|| out_of_span(operator.at));
    };
    result
        .and_then(Integer::to_u64)
        .map(|position| space.value(position))
        .ok_or_else(|| {
            let plural = space.plural();
            Error::new(
                operator.at,
                format!("the result does not fit: {plural} go from 0 to 2^64-1"),
            )
        })
}

/// The operators on plain numbers; `None` when the result is no integer of the language.
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

/// Whether `A op B` is an address, and of which space; an error where the two make no sense together.
fn space_of_result(
    a: Operand,
    operator: &Spanned<BinaryOperator>,
    b: Operand,
) -> Result<Option<Space>> {
    use BinaryOperator as Op;
    let refuse = |message: String| Err(Error::new(operator.at, message));
    match (operator.node, a, b) {
        (Op::And | Op::Or, _, _) | (_, Operand::Integer(_), Operand::Integer(_)) => Ok(None),
        (op, Operand::Point(one, _), Operand::Point(other, _))
            if one == other && (op == Op::Subtract || is_comparison(op)) =>
        {
            Ok(None)
        }
        (op, Operand::Integer(_), _) | (op, _, Operand::Integer(_)) if is_comparison(op) => {
            Ok(None)
        }
        // A written number may be an address: `0x401149 - main` is a distance.
        (Op::Subtract, Operand::Integer(_), Operand::Point(..)) => Ok(None),
        (Op::Divide | Op::Remainder | Op::ShiftRight, Operand::Point(..), Operand::Integer(_)) => {
            Ok(None)
        }
        (
            Op::Add | Op::Subtract | Op::BitAnd | Op::BitOr | Op::BitXor,
            Operand::Point(space, _),
            Operand::Integer(_),
        )
        | (
            Op::Add | Op::BitAnd | Op::BitOr | Op::BitXor,
            Operand::Integer(_),
            Operand::Point(space, _),
        ) => Ok(Some(space)),
        (_, Operand::Point(one, _), Operand::Point(other, _)) => {
            let (one, other) = (one.plural(), other.plural());
            let both = if one == other {
                format!("two {one}")
            } else {
                format!("{one} and {other}")
            };
            refuse(format!("{both} cannot be {}", participle(operator.node)))
        }
        (_, Operand::Point(space, _), _) | (_, _, Operand::Point(space, _)) => refuse(format!(
            "{} cannot be {}",
            space.plural(),
            participle(operator.node)
        )),
    }
}

fn is_comparison(operator: BinaryOperator) -> bool {
    use BinaryOperator as Op;
    matches!(
        operator,
        Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual | Op::Equal | Op::NotEqual
    )
}

fn participle(operator: BinaryOperator) -> &'static str {
    use BinaryOperator as Op;
    match operator {
        Op::Multiply => "multiplied",
        Op::Divide | Op::Remainder => "divided",
        Op::Add => "added",
        Op::Subtract => "subtracted",
        Op::ShiftLeft | Op::ShiftRight => "shifted",
        Op::BitAnd | Op::BitXor | Op::BitOr | Op::And | Op::Or => "combined",
        Op::Less
        | Op::LessOrEqual
        | Op::Greater
        | Op::GreaterOrEqual
        | Op::Equal
        | Op::NotEqual => "compared",
    }
}

fn out_of_span(at: Place) -> Error {
    Error::new(
        at,
        "the result does not fit: integers go from -2^63 to 2^64-1",
    )
}

/// A value as a plain number.
pub(super) fn number(value: &Spanned<Value>) -> Result<Integer> {
    Operand::of(value).map(Operand::number)
}
