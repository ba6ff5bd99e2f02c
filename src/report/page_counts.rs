//! Counts of pages with an unknown fact, for each reason.

use super::Reason;
use std::collections::BTreeMap;

/// For each reason, the number of pages that it holds for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PagesByReason(BTreeMap<Reason, u64>);

impl PagesByReason {
    /// Counts more pages for a reason.
    pub fn add(&mut self, pages: u64, reason: Reason) {
        *self.0.entry(reason).or_default() += pages;
    }
    /// Adds the counts of another.
    pub fn extend(&mut self, others: PagesByReason) {
        for (reason, pages) in others.0 {
            self.add(pages, reason);
        }
    }
    /// The pages of all reasons.
    pub fn pages(&self) -> u64 {
        self.0.values().sum()
    }
    /// The reason, if there is only one; otherwise a text with the pages of each. `None` if no page was counted.
    pub fn reason(&self) -> Option<Reason> {
        let mut reasons = self.0.iter();
        let (only, _) = reasons.next()?;
        if reasons.next().is_none() {
            return Some(only.clone());
        }
        let text = |reason: &dyn std::fmt::Display, pages: u64| match pages {
            1 => format!("1 page: {reason}"),
            _ => format!("{pages} pages: {reason}"),
        };
        let parts: Vec<_> = self.0.iter().map(|(reason, n)| text(reason, *n)).collect();
        Some(if self.0.keys().any(Reason::is_refusal) {
            Reason::not_permitted(parts.join("; "))
        } else {
            Reason::NotInFile(parts.join("; "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let mut counts = PagesByReason::default();
        assert_eq!((counts.pages(), counts.reason()), (0, None));
        counts.add(2, Reason::Changed);
        counts.add(1, Reason::Changed);
        assert_eq!((counts.pages(), counts.reason()), (3, Some(Reason::Changed)));
        let mut others = PagesByReason::default();
        others.add(1, Reason::not_permitted("the page cache of libc.so.6 is not shown"));
        counts.extend(others);
        let reason = counts.reason().expect("a reason");
        assert!(reason.is_refusal());
        assert_eq!(
            reason.to_string(),
            "1 page: the page cache of libc.so.6 is not shown; 3 pages: the target changed during the read"
        );
        assert_eq!(counts.pages(), 4);
    }
}
