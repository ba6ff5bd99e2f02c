//! `until [all|none] FILTER`: a clause of `watch`.

use crate::inspect::Quantifier;
use crate::lang::parser::{Parsed, Tokens, filter, word};
use crate::lang::{FilterExpression, PageField, Spanned};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, opt};
use std::fmt::{self, Display, Formatter};

/// `until [all|none] FILTER`
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// For how many pages it must hold.
    pub(super) of: Quantifier,
    /// What must hold; a comparison without fields is about no page.
    pub(super) filter: Spanned<FilterExpression<PageField>>,
}

impl Display for Until {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.of {
            Quantifier::Any => "",
            Quantifier::All => "all ",
            Quantifier::None => "none ",
        })?;
        write!(f, "{}", self.filter.node)
    }
}

/// What follows `until`.
pub(super) fn until(input: Tokens<'_>) -> Parsed<'_, Until> {
    let quantifier = alt((map(word("all"), |_| Quantifier::All), map(word("none"), |_| Quantifier::None)));
    let (behind, of) = opt(quantifier).parse(input)?;
    let (behind, filter) = cut(filter).parse(behind)?;
    let of = of.unwrap_or(Quantifier::Any);
    Ok((behind, Until { of, filter }))
}
