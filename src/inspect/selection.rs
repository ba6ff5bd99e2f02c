//! The pages of a sweep that a question keeps, and what is uncertain about them and the others.

use super::filter::Question;
use super::page::{Page, StateSet};
use super::sweep::Chunk;
use crate::report::PagesByReason;

/// What is not certain about the pages that a question keeps and leaves out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Selection {
    /// Untouched pages whose backing content is unknown.
    pub unknown_content: PagesByReason,
    /// The possible states of the first kept page whose state is uncertain.
    pub uncertain: Option<StateSet>,
    /// Pages that the question can neither keep nor leave out, and the possible states of the first.
    pub undecided: Option<(u64, StateSet)>,
}

impl Selection {
    /// The pages of a chunk that are kept.
    pub fn kept<'c>(&'c mut self, chunk: Chunk<'c>, question: &'c Question) -> impl Iterator<Item = Page> + 'c {
        for (pages, reason) in chunk.unknown_content() {
            self.unknown_content.add(pages, reason);
        }
        chunk.pages().filter(move |page| {
            let is_kept = question.keeps(page, chunk.region);
            if is_kept {
                self.uncertain = self.uncertain.or(page.states.if_uncertain());
            } else if question.is_undecided(page, chunk.region) {
                self.undecided.get_or_insert((0, page.states)).0 += page.pages;
            }
            is_kept
        })
    }
}
