//! Operators on typed values, with C's meaning but without its implicit conversions and overflows; the units of
//! numbers, and which units an operator may combine.

use super::error::{Error, Result};
use super::{CInteger, Float, Integer, Origin, Spans, Value};
use crate::hint;
use crate::kernel::{FrameNumber, PhysicalAddress, VirtualAddress};
use crate::lang::{self, BinaryOperator, BinaryOperator as Op, Span, Spanned, UnaryOperator};
use regex_lite::{Regex, RegexBuilder};

/// A value in arithmetic: a number with its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) space: Option<Space>,
    pub(super) number: Integer,
}

impl Operand {
    pub(super) fn of(value: &Spanned<Value>) -> Result<Self> {
        let space = match &value.node {
            Value::Integer(_) | Value::Typed(_) | Value::Float(_) | Value::Array(_) | Value::Text(_) => None,
            Value::Address(_) | Value::Pointer { .. } | Value::Range(_) | Value::Symbol(_) => Some(Space::Virtual),
            Value::Physical(_) => Some(Space::Physical),
            Value::Frame(_) | Value::Frames(_) => Some(Space::Frames),
        };
        match value.node.number() {
            Some(number) => Ok(Operand { space, number }),
            None if matches!(value.node, Value::Float(_)) => {
                Err(Error::new(value.at, format!("{} is not an integer", value.node))
                    .hint(format!("to cut the fraction: `(long){}`", value.node)))
            }
            None if matches!(value.node, Value::Array(_)) => {
                Err(Error::new(value.at, "an array is not a number").hint("for one element: `({int[4]}ADDRESS)[0]`"))
            }
            None => {
                let text = value.node.to_string();
                let error = Error::new(value.at, format!("the text \"{text}\" is not a number"));
                Err(if text.starts_with(|first: char| first.is_ascii_digit()) {
                    error.hint(hint::suffixes(&text))
                } else {
                    error.hint("compare text with text, by `==` and `!=`")
                })
            }
        }
    }
}

/// Returns whether a value is true: a number that is not zero. Ranges are refused, because `assert heap` would always
/// be true, and so are the names of variables, which would be their addresses.
pub(super) fn truth(value: &Spanned<Value>) -> Result<bool> {
    match &value.node {
        Value::Range(_) | Value::Frames(_) => {
            return Err(Error::new(value.at, "a range is neither true nor false")
                .hint("compare an amount of it, as in `rss(RANGE) > 0`"));
        }
        Value::Symbol(spans) => return Err(of_symbol(value.at, spans, "is always true")),
        _ => {}
    }
    if let Value::Float(float) = value.node {
        return Ok(float.get() != 0.0);
    }
    Ok(Operand::of(value)?.number != Integer::default())
}

/// Computes `-A`, `~A` and other prefix operators; `*A` is not evaluated here.
pub(super) fn unary(operator: &Spanned<UnaryOperator>, operand: &Spanned<Value>) -> Result<Value> {
    if let Value::Float(float) = operand.node {
        return unary_float(operator, float);
    }
    if let (Value::Typed(number), false) = (&operand.node, operator.node == UnaryOperator::Not) {
        return Ok(Value::Typed(match operator.node {
            UnaryOperator::Negate => number.negate(),
            UnaryOperator::BitNot => number.bit_not(),
            _ => number.plus(),
        }));
    }
    if operator.node == UnaryOperator::Not {
        return Ok(Integer::from(!truth(operand)?).into());
    }
    let operand = Operand::of(operand)?;
    let space = space_of_unary(operator, operand.space)?;
    let number = invert(operator.node, operand.number);
    finish(operator, space, number)
}

/// Computes `A + B` and other binary operators. Both sides of `&&` and `||` are already evaluated. To skip the right
/// one, callers first test the [`truth`] of the left one.
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
            Op::Matches => {
                let pattern = regex(&Spanned::new(b.clone(), right.at), false)?;
                return Ok(Integer::from(pattern.is_match(a)).into());
            }
            _ => {}
        }
    }
    if operator.node == Op::Matches {
        return Err(Error::new(operator.at, "`~` needs two texts: the second is a regular expression"));
    }
    if matches!(left.node, Value::Float(_)) || matches!(right.node, Value::Float(_)) {
        return binary_float(left, operator, right);
    }
    if let Op::Multiply | Op::Divide | Op::Remainder | Op::ShiftLeft | Op::ShiftRight = operator.node {
        refuse_range(left)?;
        refuse_range(right)?;
    }
    if let Op::And | Op::Or = operator.node {
        truth(left)?;
        truth(right)?;
    }
    if let Some(are_equal) = equal_ranges(&left.node, &right.node) {
        match operator.node {
            Op::Equal => return Ok(Integer::from(are_equal).into()),
            Op::NotEqual => return Ok(Integer::from(!are_equal).into()),
            op if is_comparison(op) => {
                return Err(Error::new(operator.at, "two ranges can only be equal or not").hint(RANGE_HINT));
            }
            _ => {}
        }
    }
    let (a, b) = (Operand::of(left)?, Operand::of(right)?);
    let space = space_of_binary(a.space, operator, b.space)?;
    if is_comparison(operator.node) {
        refuse_as_count(left, b.space)?;
        refuse_as_count(right, a.space)?;
    }
    let zero = Integer::default();
    let typed = as_c_numbers(&left.node, operator.node, &right.node);
    match operator.node {
        Op::Divide | Op::Remainder if b.number == zero => Err(Error::new(right.at, "division by zero")),
        Op::ShiftLeft | Op::ShiftRight if b.number < zero => {
            Err(Error::new(right.at, "cannot shift by a negative number"))
        }
        op => match typed {
            Some((a, b)) => Ok(Value::Typed(a.binary(op, b))),
            None => finish(operator, space, calculate(op, a.number, b.number)),
        },
    }
}

/// Converts two integers, of which one has a type of C, for C's arithmetic; `None` if numbers are exact. The right
/// operand of a shift does not affect the type of the result.
fn as_c_numbers(left: &Value, operator: BinaryOperator, right: &Value) -> Option<(CInteger, CInteger)> {
    let is_shift = matches!(operator, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight);
    match (left, right) {
        (Value::Typed(left), Value::Typed(right)) => Some((*left, *right)),
        (Value::Typed(left), Value::Integer(right)) => Some((*left, CInteger::of(*right))),
        (Value::Integer(left), Value::Typed(right)) if !is_shift => Some((CInteger::of(*left), *right)),
        _ => None,
    }
}

/// Converts a number to a `double`. An address is refused, as in gdb.
pub(super) fn float(value: &Spanned<Value>) -> Result<f64> {
    match &value.node {
        Value::Float(float) => Ok(float.get()),
        Value::Integer(number) => Ok(number.get() as f64),
        Value::Typed(number) => Ok(number.get().get() as f64),
        other => Err(Error::new(value.at, format!("{} is not a number with a fraction", other.phrase()))),
    }
}

fn unary_float(operator: &Spanned<UnaryOperator>, x: Float) -> Result<Value> {
    Ok(match operator.node {
        UnaryOperator::Negate => Value::Float(x.negate()),
        UnaryOperator::Not => Integer::from(x.get() == 0.0).into(),
        UnaryOperator::BitNot => return Err(whole_numbers(operator.at, operator.node.text())),
        UnaryOperator::Plus | UnaryOperator::Dereference => Value::Float(x),
    })
}

/// Computes with floating-point numbers. As in C, a `float` with a `float` or an integer is a `float`. A sum, product
/// or quotient of two of them that is rounded to a `double` first is the same `float`.
fn binary_float(left: &Spanned<Value>, operator: &Spanned<BinaryOperator>, right: &Spanned<Value>) -> Result<Value> {
    use BinaryOperator as Op;
    let is_double = |side: &Spanned<Value>| matches!(side.node, Value::Float(Float::Double(_)));
    let rounded: fn(f64) -> Float =
        if is_double(left) || is_double(right) { Float::Double } else { |value| Float::Single(value as f32) };
    let (x, y) = (rounded(float(left)?).get(), rounded(float(right)?).get());
    let truth = |truth: bool| Integer::from(truth).into();
    let number = |number| Value::Float(rounded(number));
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
        Op::Remainder | Op::ShiftLeft | Op::ShiftRight | Op::BitAnd | Op::BitXor | Op::BitOr | Op::Matches => {
            return Err(whole_numbers(operator.at, operator.node.text()));
        }
    })
}

fn whole_numbers(at: Span, operator: &str) -> Error {
    Error::new(at, format!("`{operator}` needs integers")).hint("to cut the fraction: `(long)7.5`")
}

/// Compiles a regular expression that was typed.
///
/// # Errors
/// Fails if it is invalid, or would need too much memory.
pub fn regex(pattern: &Spanned<String>, any_case: bool) -> Result<Regex> {
    RegexBuilder::new(&pattern.node).case_insensitive(any_case).size_limit(1 << 20).build().map_err(|error| {
        let message = format!("not a regular expression: {error}");
        let error = Error::new(pattern.at, message);
        // A pattern of shells, not a regular expression.
        match pattern.node.strip_prefix('*') {
            Some(rest) => error.hint(format!("any text is `.*`: `\".*{}\"`", rest.replace('*', ".*"))),
            None => error,
        }
    })
}

/// Fails for a range as an operand: `longest(R)/1K` means the length, but its first address divided would look like a
/// result.
fn refuse_range(operand: &Spanned<Value>) -> Result<()> {
    match &operand.node {
        Value::Range(_) | Value::Frames(_) => Err(Error::new(operand.at, "a range is not a number").hint(RANGE_HINT)),
        _ => Ok(()),
    }
}

const RANGE_HINT: &str = "`size(RANGE)` is its length in bytes, and `start(RANGE)` its first address";

/// Returns whether two ranges have the same bytes or frames; `None` if they are not two ranges of one kind.
fn equal_ranges(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Range(a), Value::Range(b)) => Some(a.ranges() == b.ranges()),
        (Value::Frames(a), Value::Frames(b)) => Some(a == b),
        _ => None,
    }
}

/// Fails for a range that is compared with one number or address, and for a symbol that is compared with a plain
/// number. The comparison would be of its first address: `longest(R) >= 1G` and `counter > 5` would always be true, and
/// so would `longest(buf) == buf`, however short the run is. `other` is the unit of the other side.
pub(super) fn refuse_as_count(value: &Spanned<Value>, other: Option<Space>) -> Result<()> {
    match &value.node {
        Value::Range(_) | Value::Frames(_) => {
            let with = other.map_or("a number", |space| space.value(0).phrase());
            let hint = match other {
                Some(Space::Virtual) => format!("{RANGE_HINT}; `runs(RANGE) == 1` tests whether it is contiguous"),
                _ => RANGE_HINT.to_owned(),
            };
            Err(Error::new(value.at, format!("cannot compare a range with {with}")).hint(hint))
        }
        Value::Symbol(spans) if other.is_none() => Err(of_symbol(value.at, spans, "is compared with a number")),
        _ => Ok(()),
    }
}

/// Makes the error about the address of a symbol where its value may be meant.
fn of_symbol(at: Span, spans: &Spans, is_wrong: &str) -> Error {
    let name = match spans.origin() {
        Origin::Symbol(name) => lang::spelling(&name.to_string()),
        _ => spans.to_string(),
    };
    let value = match spans.size() {
        1 => format!("`(char){name}` is its value, and "),
        2 => format!("`(short){name}` is its value, and "),
        4 => format!("`(int){name}` is its value, and "),
        8 => format!("`(long){name}` is its value, and "),
        _ => String::new(),
    };
    Error::new(at, format!("the address of `{name}` {is_wrong}")).hint(format!("{value}`&{name}` is its address"))
}

/// Converts a result to a value, or fails at the operator if it does not fit.
fn finish<T>(operator: &Spanned<T>, space: Option<Space>, number: Option<Integer>) -> Result<Value> {
    let value = match space {
        None => number.map(Value::Integer),
        Some(space) => number.and_then(Integer::to_u64).map(|position| space.value(position)),
    };
    value.ok_or_else(|| {
        let limits = match space {
            None => "integers range from -2^63 to 2^64-1".to_owned(),
            Some(space) => format!("{} range from 0 to 2^64-1", space.plural()),
        };
        Error::new(operator.at, format!("the result does not fit: {limits}"))
    })
}

/// Computes prefix operators; `None` if the result is no integer of the language, and for reading memory.
pub(super) fn invert(operator: UnaryOperator, x: Integer) -> Option<Integer> {
    match operator {
        UnaryOperator::Negate => x.negate(),
        UnaryOperator::Plus => Some(x),
        UnaryOperator::BitNot => x.bit_not(),
        UnaryOperator::Not => Some((x == Integer::default()).into()),
        UnaryOperator::Dereference => None,
    }
}

/// Computes binary operators; `None` if the result is no integer of the language.
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
        // Only for texts.
        Op::Matches => None,
    }
}

/// The unit of an address. Addresses of two units cannot be combined. Plain integers have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Space {
    /// Addresses of the target.
    Virtual,
    /// Physical addresses.
    Physical,
    /// Page frames.
    Frames,
}

impl Space {
    pub(super) fn plural(self) -> &'static str {
        match self {
            Space::Virtual => "addresses",
            Space::Physical => "physical addresses",
            Space::Frames => "page frames",
        }
    }

    pub(super) fn value(self, position: u64) -> Value {
        match self {
            Space::Virtual => Value::Address(VirtualAddress::new(position)),
            Space::Physical => Value::Physical(PhysicalAddress::new(position)),
            Space::Frames => Value::Frame(FrameNumber::new(position)),
        }
    }
}

/// Returns the unit of `op A`, or why the operation has no meaning.
pub(super) fn space_of_unary(operator: &Spanned<UnaryOperator>, operand: Option<Space>) -> Result<Option<Space>> {
    match (operator.node, operand) {
        (UnaryOperator::Plus, space) => Ok(space),
        (UnaryOperator::Dereference, _) => Ok(Some(Space::Virtual)),
        (UnaryOperator::Negate | UnaryOperator::BitNot, Some(space)) => {
            Err(Error::new(operator.at, format!("{} cannot be negated or inverted", space.plural())))
        }
        _ => Ok(None),
    }
}

/// Returns the unit of `A op B`, or why the operation has no meaning.
pub(super) fn space_of_binary(
    left: Option<Space>,
    operator: &Spanned<Op>,
    right: Option<Space>,
) -> Result<Option<Space>> {
    let op = operator.node;
    let refuse = |who: String| {
        let message = format!("{who} cannot be {}", participle(op));
        let error = Error::new(operator.at, message);
        Err(if op == Op::Multiply && [left, right].contains(&Some(Space::Virtual)) {
            error.hint("a variable by its name is its address: `(int)NAME` is the value of an int")
        } else {
            error
        })
    };
    match (left, right) {
        (None, None) => Ok(None),
        _ if matches!(op, Op::And | Op::Or) => Ok(None),
        (Some(one), Some(other)) if one == other && (op == Op::Subtract || is_comparison(op)) => Ok(None),
        (Some(one), Some(other)) if one == other => refuse(format!("two {}", one.plural())),
        (Some(one), Some(other)) => refuse(format!("{} and {}", one.plural(), other.plural())),
        _ if is_comparison(op) => Ok(None),
        (Some(space), None) => match op {
            Op::Add | Op::Subtract | Op::BitAnd | Op::BitOr | Op::BitXor => Ok(Some(space)),
            Op::Divide | Op::Remainder | Op::ShiftRight => Ok(None),
            _ => refuse(space.plural().to_owned()),
        },
        (None, Some(space)) => match op {
            Op::Add | Op::BitAnd | Op::BitOr | Op::BitXor => Ok(Some(space)),
            // A number may be an address: `0x401149 - main` is a distance.
            Op::Subtract => Ok(None),
            _ => refuse(space.plural().to_owned()),
        },
    }
}

fn is_comparison(operator: Op) -> bool {
    matches!(operator, Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual | Op::Equal | Op::NotEqual)
}

fn participle(operator: Op) -> &'static str {
    match operator {
        Op::Multiply => "multiplied",
        Op::Divide | Op::Remainder => "divided",
        Op::Add => "added",
        Op::Subtract => "subtracted",
        Op::ShiftLeft | Op::ShiftRight => "shifted",
        Op::BitAnd | Op::BitXor | Op::BitOr | Op::And | Op::Or => "combined",
        Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual => "compared",
        Op::Equal | Op::NotEqual | Op::Matches => "compared",
    }
}
