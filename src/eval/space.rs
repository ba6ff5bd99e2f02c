//! What numbers count in, and which of them an operator may combine.

use super::Value;
use super::error::{Error, Result};
use crate::kernel::{FrameNumber, PhysicalAddress, VirtualAddress};
use crate::lang::{BinaryOperator as Op, Spanned, UnaryOperator};

/// What an address counts in. Addresses of two spaces cannot be combined. Plain integers have no space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Space {
    /// The target's own addresses.
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

/// The space of `op A`, or why it makes no sense.
pub(super) fn of_unary(operator: &Spanned<UnaryOperator>, operand: Option<Space>) -> Result<Option<Space>> {
    match (operator.node, operand) {
        (UnaryOperator::Plus, space) => Ok(space),
        (UnaryOperator::Dereference, _) => Ok(Some(Space::Virtual)),
        (UnaryOperator::Negate | UnaryOperator::BitNot, Some(space)) => {
            Err(Error::new(operator.at, format!("{} have no such opposite", space.plural())))
        }
        _ => Ok(None),
    }
}

/// The space of `A op B`, or why the two make no sense together.
pub(super) fn of_binary(left: Option<Space>, operator: &Spanned<Op>, right: Option<Space>) -> Result<Option<Space>> {
    let op = operator.node;
    let refuse = |who: String| {
        let message = format!("{who} cannot be {}", participle(op));
        Err(Error::new(operator.at, message))
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
            // A written number may be an address: `0x401149 - main` is a distance.
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
