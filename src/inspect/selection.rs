//! The pages of a sweep that a question keeps, and what is uncertain about them and the others.

use super::filter::Question;
use super::page::Page;
use super::state_set::StateSet;
use super::sweep::Chunk;
use crate::report::{PagesByReason, Stopped};

/// What is not certain about the pages that a question keeps and leaves out.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Untouched pages whose backing content is unknown.
    pub unknown_content: PagesByReason,
    /// The possible states of the first kept page whose state is uncertain.
    pub uncertain: Option<StateSet>,
    /// Pages that the question can neither keep nor leave out, and the possible states of the first.
    pub undecided: Option<(u64, StateSet)>,
}

impl Selection {
    /// Passes the kept pages of a chunk to `each`, until that says to stop.
    pub fn take(
        &mut self,
        chunk: &Chunk<'_>,
        question: &Question,
        mut each: impl FnMut(&Page) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        for (pages, reason) in chunk.unknown_content() {
            self.unknown_content.add(pages, reason);
        }
        for page in chunk.pages() {
            if !question.keeps(&page, chunk.region) {
                if question.is_undecided(&page, chunk.region) {
                    self.undecided.get_or_insert((0, page.states)).0 += page.pages;
                }
                continue;
            }
            self.uncertain = self.uncertain.or(page.states.if_uncertain());
            each(&page)?;
        }
        Ok(())
    }
}
