//! Numbers with a type of C: integers, and floating-point numbers of the target.

use super::Integer;
use crate::lang::BinaryOperator;
use std::fmt;

/// The size and sign of an integer in C, which decide the conversions in arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntegerType {
    bytes: u8,
    is_signed: bool,
}

impl IntegerType {
    /// `int`, the smallest type of arithmetic.
    const INT: IntegerType = IntegerType { bytes: 4, is_signed: true };

    /// Makes a type of 1, 2, 4 or 8 bytes.
    pub(super) fn new(bytes: u8, signed: bool) -> Self {
        IntegerType { bytes, is_signed: signed }
    }

    /// Returns the type of a number without one: `int`, or 64 bits if it needs them.
    fn of(number: Integer) -> Self {
        if i32::try_from(number.get()).is_ok() {
            return IntegerType::INT;
        }
        IntegerType { bytes: 8, is_signed: i64::try_from(number.get()).is_ok() }
    }

    /// Returns the type of the result of `+`, `-` and `~`: at least `int`.
    fn promote(self) -> Self {
        if self.bytes < IntegerType::INT.bytes { IntegerType::INT } else { self }
    }

    /// Returns the type to which two operands are converted: the larger one, and of equally large ones the unsigned
    /// one.
    fn common(self, other: Self) -> Self {
        let (one, other) = (self.promote(), other.promote());
        match one.bytes.cmp(&other.bytes) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => one,
            std::cmp::Ordering::Equal => IntegerType { is_signed: one.is_signed && other.is_signed, ..one },
        }
    }

    fn bits(self) -> u32 {
        8 * u32::from(self.bytes)
    }
}

/// An integer with a type of C, from a cast or from a read through a typed pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CInteger {
    number: i128,
    of: IntegerType,
}

impl CInteger {
    /// Truncates a number to a type.
    pub(super) fn cut(number: i128, of: IntegerType) -> Self {
        let unused = i128::BITS - of.bits();
        let number =
            if of.is_signed { number << unused >> unused } else { ((number as u128) << unused >> unused) as i128 };
        CInteger { number, of }
    }

    /// Converts a number without a type, for arithmetic with one that has a type.
    pub(super) fn of(number: Integer) -> Self {
        CInteger { number: number.get(), of: IntegerType::of(number) }
    }

    /// Returns the number.
    pub fn get(self) -> Integer {
        Integer::new(self.number).unwrap_or_default()
    }

    /// Returns the size of the type in bytes.
    pub fn bytes(self) -> u8 {
        self.of.bytes
    }

    /// Returns the bits as in memory.
    pub fn bits(self) -> u64 {
        CInteger::cut(self.number, IntegerType { is_signed: false, ..self.of }).number as u64
    }

    pub(super) fn negate(self) -> Self {
        CInteger::cut(-self.number, self.of.promote())
    }

    pub(super) fn plus(self) -> Self {
        CInteger::cut(self.number, self.of.promote())
    }

    pub(super) fn bit_not(self) -> Self {
        CInteger::cut(!self.number, self.of.promote())
    }

    /// Computes `A op B` with C's conversions, for every operator but `&&`, `||` and `~`. A result that does not fit
    /// the type is truncated, as processors do. The caller has refused a division by zero and a negative shift.
    pub(super) fn binary(self, operator: BinaryOperator, other: Self) -> Self {
        use BinaryOperator as Op;
        if let Op::ShiftLeft | Op::ShiftRight = operator {
            return self.shift(operator, other.number);
        }
        let to = self.of.common(other.of);
        let [a, b] = [self, other].map(|operand| CInteger::cut(operand.number, to).number);
        let truth = |truth: bool| CInteger { number: truth.into(), of: IntegerType::INT };
        let number = match operator {
            Op::Multiply => a.wrapping_mul(b),
            Op::Divide => a.checked_div(b).unwrap_or_default(),
            Op::Remainder => a.checked_rem(b).unwrap_or_default(),
            Op::Add => a + b,
            Op::Subtract => a - b,
            Op::BitAnd => a & b,
            Op::BitXor => a ^ b,
            Op::BitOr => a | b,
            Op::Less => return truth(a < b),
            Op::LessOrEqual => return truth(a <= b),
            Op::Greater => return truth(a > b),
            Op::GreaterOrEqual => return truth(a >= b),
            Op::Equal => return truth(a == b),
            Op::NotEqual => return truth(a != b),
            Op::And => return truth(a != 0 && b != 0),
            Op::Or => return truth(a != 0 || b != 0),
            Op::ShiftLeft | Op::ShiftRight | Op::Matches => a,
        };
        CInteger::cut(number, to)
    }

    /// Shifts the number; the result has the type of the left operand. A shift by the size of the type or more shifts
    /// all bits out, as in gdb.
    fn shift(self, operator: BinaryOperator, by: i128) -> Self {
        let to = self.of.promote();
        let by = u32::try_from(by).unwrap_or(u32::MAX).min(to.bits());
        let number = if operator == BinaryOperator::ShiftLeft { self.number << by } else { self.number >> by };
        CInteger::cut(number, to)
    }
}

/// A `float` or a `double`.
#[derive(Clone, Copy, Debug)]
pub enum Float {
    /// A number of 32 bits.
    Single(f32),
    /// A number of 64 bits.
    Double(f64),
}

impl Float {
    /// Returns the exact value.
    pub fn get(self) -> f64 {
        match self {
            Float::Single(value) => value.into(),
            Float::Double(value) => value,
        }
    }

    /// Returns the number with the opposite sign.
    pub(super) fn negate(self) -> Self {
        match self {
            Float::Single(value) => Float::Single(-value),
            Float::Double(value) => Float::Double(-value),
        }
    }

    /// Returns the size in bytes.
    pub fn bytes(self) -> u8 {
        match self {
            Float::Single(_) => 4,
            Float::Double(_) => 8,
        }
    }

    /// Returns the bits as in memory.
    pub fn bits(self) -> u64 {
        match self {
            Float::Single(value) => value.to_bits().into(),
            Float::Double(value) => value.to_bits(),
        }
    }
}

/// Equal if size and bits are equal.
impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.bits() == other.bits()
    }
}

impl Eq for Float {}

/// Printed with as few digits as distinguish it from its neighbours.
impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Float::Single(value) => write!(f, "{value:?}"),
            Float::Double(value) => write!(f, "{value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each operator against the processor's own arithmetic in the type that C converts to.
    macro_rules! as_the_processor {
        ($name:ident, $a:ty, $b:ty, $common:ty) => {
            proptest! {
                #[test]
                fn $name(a: $a, b: $b) {
                    use BinaryOperator as Op;
                    let of = |bytes: usize, signed| IntegerType::new(bytes as u8, signed);
                    let x = CInteger::cut(a as i128, of(size_of::<$a>(), <$a>::MIN != 0));
                    let y = CInteger::cut(b as i128, of(size_of::<$b>(), <$b>::MIN != 0));
                    let (p, q) = (a as $common, b as $common);
                    for (operator, expected) in [
                        (Op::Add, p.wrapping_add(q)),
                        (Op::Subtract, p.wrapping_sub(q)),
                        (Op::Multiply, p.wrapping_mul(q)),
                        (Op::BitXor, p ^ q),
                        (Op::Divide, if q == 0 { 0 } else { p.wrapping_div(q) }),
                        (Op::Remainder, if q == 0 { 0 } else { p.wrapping_rem(q) }),
                    ] {
                        let result = x.binary(operator, y);
                        prop_assert_eq!(result.get().get(), expected as i128);
                        prop_assert_eq!(usize::from(result.bytes()), size_of::<$common>());
                    }
                    prop_assert_eq!(x.binary(Op::Less, y).get().get(), i128::from(p < q));
                    prop_assert_eq!(x.binary(Op::Equal, y).get().get(), i128::from(p == q));
                }
            }
        };
    }

    as_the_processor!(small_ones_become_int, u8, i16, i32);
    as_the_processor!(of_two_equally_large_ones_that_without_a_sign, i32, u32, u32);
    as_the_processor!(the_larger_one_keeps_its_sign, u32, i64, i64);
    as_the_processor!(a_sign_is_extended, i8, u64, u64);
}
