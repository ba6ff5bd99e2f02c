//! Integers of the command language: exact from -2^63 to 2^64-1.

use std::fmt;

/// An integer from -2^63 to 2^64-1: every value of a 64-bit word of the target, signed or not.
///
/// Operations whose result is outside of these limits return `None`. There is no wrapping, and no truncation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Integer(i128);

impl Integer {
    /// The least integer, -2^63.
    pub const MIN: Integer = Integer(i64::MIN as i128);
    /// The greatest integer, 2^64-1.
    pub const MAX: Integer = Integer(u64::MAX as i128);

    /// Makes an integer, if the value is inside the limits.
    pub fn new(value: i128) -> Option<Self> {
        (Self::MIN.0..=Self::MAX.0).contains(&value).then_some(Integer(value))
    }
    /// Returns the plain number.
    pub const fn get(self) -> i128 {
        self.0
    }
    /// Returns the number as an unsigned word; `None` if it is negative.
    pub fn to_u64(self) -> Option<u64> {
        u64::try_from(self.0).ok()
    }
    /// Returns the sum.
    pub fn plus(self, other: Self) -> Option<Self> {
        Self::new(self.0 + other.0)
    }
    /// Returns the difference.
    pub fn minus(self, other: Self) -> Option<Self> {
        Self::new(self.0 - other.0)
    }
    /// Returns the product.
    pub fn times(self, other: Self) -> Option<Self> {
        self.0.checked_mul(other.0).and_then(Self::new)
    }
    /// Returns the quotient, rounded towards zero as in C; `None` also for a divisor of zero.
    pub fn divide(self, other: Self) -> Option<Self> {
        self.0.checked_div(other.0).and_then(Self::new)
    }
    /// Returns the remainder, with the sign of the dividend as in C; `None` for a divisor of zero.
    pub fn remainder(self, other: Self) -> Option<Self> {
        self.0.checked_rem(other.0).and_then(Self::new)
    }
    /// Returns the number times 2^`count`; `None` also for a negative count.
    pub fn shift_left(self, count: Self) -> Option<Self> {
        if self.0 == 0 && count.0 >= 0 {
            return Some(self);
        }
        // Any integer but 0 exceeds the limits after a shift by 64, so the shift itself never loses a bit.
        match u32::try_from(count.0) {
            Ok(count @ 0..=64) => Self::new(self.0 << count),
            _ => None,
        }
    }
    /// Returns the number divided by 2^`count`, rounded down (the sign is kept); `None` for a negative count.
    pub fn shift_right(self, count: Self) -> Option<Self> {
        let count = u32::try_from(count.0.clamp(-1, 127)).ok()?;
        Self::new(self.0 >> count)
    }
    /// Returns the bits that both have, as two's complement of unlimited width.
    pub fn bit_and(self, other: Self) -> Option<Self> {
        Self::new(self.0 & other.0)
    }
    /// Returns the bits that at least one of the two has.
    pub fn bit_or(self, other: Self) -> Option<Self> {
        Self::new(self.0 | other.0)
    }
    /// Returns the bits that exactly one of the two has.
    pub fn bit_xor(self, other: Self) -> Option<Self> {
        Self::new(self.0 ^ other.0)
    }
    /// Returns the number with the opposite sign.
    pub fn negate(self) -> Option<Self> {
        Self::new(-self.0)
    }
    /// Returns the number with every bit inverted: `-1 - self`.
    pub fn bit_not(self) -> Option<Self> {
        Self::new(!self.0)
    }
}

impl From<u64> for Integer {
    fn from(value: u64) -> Self {
        Integer(value.into())
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Integer(value.into())
    }
}

impl From<bool> for Integer {
    fn from(value: bool) -> Self {
        Integer(value.into())
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn integer() -> impl Strategy<Value = Integer> {
        let edges = prop::sample::select(vec![
            Integer::MIN.get(),
            Integer::MIN.get() + 1,
            -1,
            0,
            1,
            i64::MAX.into(),
            i64::MAX as i128 + 1,
            Integer::MAX.get() - 1,
            Integer::MAX.get(),
        ]);
        prop_oneof![edges, Integer::MIN.get()..=Integer::MAX.get(), -70i128..70]
            .prop_map(|value| Integer::new(value).unwrap_or_default())
    }

    /// Schoolbook product of two magnitudes in 32-bit digits, least significant first: shares nothing with i128.
    fn long_product(a: u128, b: u128) -> [u64; 8] {
        let digits = |n: u128| [0, 32, 64, 96].map(|shift| (n >> shift) as u64 & 0xffff_ffff);
        let mut product = [0u64; 8];
        for (i, x) in digits(a).into_iter().enumerate() {
            let mut carry = 0;
            for (j, y) in digits(b).into_iter().enumerate() {
                let sum = product[i + j] + x * y + carry;
                product[i + j] = sum & 0xffff_ffff;
                carry = sum >> 32;
            }
            product[i + 4] = carry;
        }
        product
    }

    proptest! {
        #[test]
        fn a_sum_undone_is_where_it_began(a in integer(), b in integer()) {
            if let Some(sum) = a.plus(b) {
                prop_assert_eq!(sum.minus(b), Some(a));
                prop_assert_eq!(sum.minus(a), Some(b));
            } else {
                // Out of the span on the side that both point to, seen in floating point with room to spare.
                let sum = a.get() as f64 + b.get() as f64;
                prop_assert!(sum >= 1.8e19 || sum <= -9.2e18);
            }
        }

        #[test]
        fn a_product_is_the_long_product(a in integer(), b in integer()) {
            let long = long_product(a.get().unsigned_abs(), b.get().unsigned_abs());
            let negative = (a.get() < 0) != (b.get() < 0);
            let high = long[2..].iter().any(|&digit| digit != 0);
            let magnitude = long[1] << 32 | long[0];
            let fits = !high && (!negative || magnitude <= 1 << 63);
            match a.times(b) {
                Some(product) => {
                    prop_assert!(fits);
                    prop_assert_eq!(product.get().unsigned_abs(), u128::from(magnitude));
                    prop_assert!(magnitude == 0 || (product.get() < 0) == negative);
                }
                None => prop_assert!(!fits),
            }
        }

        #[test]
        fn quotient_and_remainder_fit_together(a in integer(), b in integer()) {
            match (a.divide(b), a.remainder(b)) {
                (Some(quotient), Some(rest)) => {
                    prop_assert_eq!(quotient.get() * b.get() + rest.get(), a.get());
                    prop_assert!(rest.get().abs() < b.get().abs());
                    prop_assert!(rest.get() == 0 || (rest.get() < 0) == (a.get() < 0));
                }
                (None, rest) => prop_assert!(b.get() == 0 && rest.is_none() || a.get() / b.get() > Integer::MAX.get() || a.get() / b.get() < Integer::MIN.get()),
                (Some(_), None) => prop_assert!(false, "a quotient without a remainder"),
            }
        }

        #[test]
        fn a_left_shift_is_repeated_doubling(a in integer(), count in 0i64..200) {
            let mut doubled = Some(a);
            for _ in 0..count {
                doubled = doubled.and_then(|value| value.plus(value));
            }
            prop_assert_eq!(a.shift_left(count.into()), doubled);
        }

        #[test]
        fn a_right_shift_is_repeated_halving(a in integer(), count in 0i64..200) {
            let mut halved = a.get();
            for _ in 0..count {
                halved = halved.div_euclid(2);
            }
            prop_assert_eq!(a.shift_right(count.into()), Integer::new(halved));
        }

        #[test]
        fn bits_follow_the_rules_of_logic(a in integer(), b in integer()) {
            if let (Some(and), Some(or), Some(xor)) = (a.bit_and(b), a.bit_or(b), a.bit_xor(b)) {
                prop_assert_eq!(and.get() + or.get(), a.get() + b.get());
                prop_assert_eq!(or.get() - and.get(), xor.get());
            }
            if let Some(not) = a.bit_not() {
                prop_assert_eq!(not.get() + a.get(), -1);
            }
        }
    }

    #[test]
    fn the_ends_of_the_span() {
        let one = Integer::from(1u64);
        assert_eq!(Integer::MAX.plus(one), None);
        assert_eq!(Integer::MIN.minus(one), None);
        assert_eq!(Integer::MIN.negate(), Integer::new(1 << 63));
        assert_eq!(Integer::MAX.negate(), None);
        assert_eq!(Integer::MAX.bit_not(), None);
        assert_eq!(one.shift_left(Integer::from(63u64)), Integer::new(1 << 63));
        assert_eq!(one.shift_left(Integer::from(64u64)), None);
        assert_eq!(one.shift_left(Integer::MAX), None);
        assert_eq!(one.shift_right(Integer::from(-1i64)), None);
        assert_eq!(Integer::MIN.shift_right(Integer::MAX), Some(Integer::from(-1i64)));
    }
}
