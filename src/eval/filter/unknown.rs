//! Pages of which a field is unknown, and with it the result of the filter.

use super::{Answers, PageAnswers, Predicate, Quantity};
use crate::inspect::{Answer, Gap};
use crate::kernel::{PageFact, PageField};
use crate::report::Reason;

impl PageAnswers<'_> {
    /// Returns whether the value of a field is known. `None` if the page has no such fact, or the next read may show
    /// it.
    pub(super) fn is_known(&self, field: PageField) -> Option<bool> {
        match self.answer(field) {
            Answer::None | Answer::NotAsked | Answer::Unknown(Gap::Changed) => None,
            Answer::Unknown(gap) if gap.is_reported_apart() => None,
            Answer::Unknown(_) => Some(false),
            Answer::Is(_) => Some(self.why_unknown(field).is_none()),
        }
    }
}

impl Predicate<PageField> {
    /// Returns the field, if the whole filter is `not FIELD` with a field about huge pages: users expect pages without
    /// a frame to match it.
    pub(super) fn of_no_huge_page(&self) -> Option<PageField> {
        let Predicate::Not(inner) = self else {
            return None;
        };
        match **inner {
            Predicate::Is(field @ PageField::Fact(PageFact::Huge | PageFact::PmdMapped)) => Some(field),
            _ => None,
        }
    }
}

impl<F: Copy> Predicate<F> {
    /// Returns whether the result may be `wanted`, with any values of unknown fields.
    pub(super) fn may_be(&self, wanted: bool, of: &dyn Answers<F>) -> bool {
        match self {
            Predicate::Any(links) if wanted => links.iter().any(|link| link.may_be(true, of)),
            Predicate::Any(links) => links.iter().all(|link| link.may_be(false, of)),
            Predicate::All(links) if wanted => links.iter().all(|link| link.may_be(true, of)),
            Predicate::All(links) => links.iter().any(|link| link.may_be(false, of)),
            Predicate::Not(inner) => inner.may_be(!wanted, of),
            leaf => leaf.holds(of).map_or_else(|| leaf.why_unknown(of).is_some(), |holds| holds == wanted),
        }
    }

    /// Returns why the first unknown field is unknown. `None` if no field is unknown, and for a comparison with a field
    /// that does not exist.
    pub(super) fn why_unknown(&self, of: &dyn Answers<F>) -> Option<Reason> {
        match self {
            Predicate::Any(links) | Predicate::All(links) => links.iter().find_map(|link| link.why_unknown(of)),
            Predicate::Not(inner) => inner.why_unknown(of),
            Predicate::Known(_) => None,
            leaf if leaf.holds(of).is_some() => None,
            Predicate::Is(field) | Predicate::Text { field, .. } | Predicate::Matches { field, .. } => {
                of.why_unknown(*field)
            }
            Predicate::Flag(flag) => of.why_flag_unknown(*flag),
            Predicate::Compare { left, right, .. } => {
                let mut unknown = left.unknown_fields(of);
                unknown.extend(right.unknown_fields(of));
                // A field that does not exist has no reason.
                unknown.into_iter().collect::<Option<Vec<Reason>>>()?.into_iter().next()
            }
        }
    }
}

impl<F: Copy> Quantity<F> {
    /// Returns why each field without a value is unknown; `None` for one that does not exist.
    fn unknown_fields(&self, of: &dyn Answers<F>) -> Vec<Option<Reason>> {
        match self {
            Quantity::Number(_) => Vec::new(),
            Quantity::Field(field) if of.integer(*field).is_some() => Vec::new(),
            Quantity::Field(field) => vec![of.why_unknown(*field)],
            Quantity::Unary { operand, .. } => operand.unknown_fields(of),
            Quantity::Binary { left, right, .. } => [left.unknown_fields(of), right.unknown_fields(of)].concat(),
        }
    }
}
