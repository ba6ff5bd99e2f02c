//! The pages of a sweep that a question keeps, and what cannot be known of the others.

use super::doubt::Doubt;
use super::filter::Question;
use super::page::Page;
use super::sweep::Chunk;
use crate::report::{PagesByReason, Stopped};

/// What is not certain about the pages that a question keeps and leaves out.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Untouched pages of which it cannot be known what is behind them.
    pub untold: PagesByReason,
    /// Why the states of some of the kept pages are not certain.
    pub doubt: Option<Doubt>,
    /// Pages that the question can neither keep nor leave out, and why not for the first.
    pub undecided: Option<(u64, Doubt)>,
}

impl Selection {
    /// Hands the kept pages of a chunk to `each`, until that says to stop.
    pub fn take(
        &mut self,
        chunk: &Chunk<'_>,
        question: Question<'_>,
        mut each: impl FnMut(&Page) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        for (pages, reason) in chunk.untold() {
            self.untold.add(pages, reason);
        }
        for page in chunk.pages() {
            if !question.keeps(&page, chunk.region) {
                if let Some(doubt) = page.doubt
                    && question.is_undecided(&page, chunk.region)
                {
                    self.undecided.get_or_insert((0, doubt)).0 += page.pages;
                }
                continue;
            }
            self.doubt = self.doubt.or(page.doubt);
            each(&page)?;
        }
        Ok(())
    }
}
