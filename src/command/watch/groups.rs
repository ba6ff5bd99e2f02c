//! `watch … by KEY`: changes added up for each region, or by what the pages are after them.

use super::super::change_groups::{GroupNames, key_of_changes};
use super::super::floor::Error;
use super::records::EventGroup;
use crate::inspect::{AddressSpace, ChangedGroup, ChangesOfGroup, Evidence};
use crate::kernel::Key;
use crate::lang::{KeyFacts, TakenKeys, WrittenKey};
use crate::report::Numbers;
use std::cmp::Reverse;

/// The keys of `watch … by`: those that its samples do not hold are refused when the line runs.
pub(super) const KEYS: TakenKeys = TakenKeys { facts: KeyFacts::OfChanges, others: &[Key::Region] };

/// The key of `by`. Samples with `wanted` hold it, and it can be known here.
pub(super) fn key(by: &WrittenKey, wanted: Evidence, space: &AddressSpace) -> Result<Key, Error> {
    let key = key_of_changes(by, wanted, |fact| format!("add `with {}`", fact.row().word))?;
    space.require(key.need_of_samples())?;
    Ok(key)
}

/// The rows of the groups, the one with the most pages first.
pub(super) fn rows(mut groups: Vec<ChangesOfGroup>, names: &GroupNames) -> impl Iterator<Item = EventGroup> {
    groups.sort_by_cached_key(|group| Reverse(group.counts.pages));
    groups.into_iter().map(|of| EventGroup {
        by: names.by.to_string(),
        key: names.name(&of),
        region: matches!(of.group, ChangedGroup::Region(_))
            .then(|| of.region.map(|region| region.name).unwrap_or_default()),
        pages: of.counts.pages,
        samples: of.samples,
        events: Numbers(of.counts.kinds.into_iter().collect()),
        effect: of.counts.effect,
    })
}
