//! Pages counted by the flags of their frames.

use super::frames::FrameRow;
use super::hidden_words::offline_frames;
use super::states::StateSet;
use crate::kernel::{PageFlags, State};
use crate::process::Machine;
use std::cmp::Reverse;
use std::collections::HashMap;

/// What pages have in common that are counted together.
type StatesAndFlags = (StateSet, Option<PageFlags>);

/// How many pages have the same states, and frames with the same flags.
///
/// ```
/// use pmdb::inspect::FlagCounts;
/// use pmdb::{AddressSpace, Evidence, Target};
///
/// let space = AddressSpace::of(&Target::attach(std::process::id())?)?;
/// let mut pages = space.kept_pages(&space.spans(), space.obtainable(Evidence::FLAGS) | Evidence::ENTRIES)?;
/// let mut counts = FlagCounts::default();
/// while pages.each(|page, _| counts.add(page.states, page.flags, page.pages))?.is_some() {}
/// let counts = counts.finish();
/// for ((states, flags), pages) in &counts {
///     println!("{pages} pages: {} {flags:?}", states.likeliest().word());
/// }
/// # assert!(!counts.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct FlagCounts {
    pages: HashMap<StatesAndFlags, u64>,
    /// The last pages that were added: mostly the next have the same.
    last: Option<(StatesAndFlags, u64)>,
    offline: u64,
}

impl FlagCounts {
    /// Adds pages.
    pub fn add(&mut self, states: StateSet, flags: Option<PageFlags>, pages: u64) {
        let key = (states, flags);
        match &mut self.last {
            Some((last, sum)) if *last == key => *sum += pages,
            last => {
                if let Some((key, pages)) = last.replace((key, pages)) {
                    *self.pages.entry(key).or_default() += pages;
                }
            }
        }
    }

    /// Adds neighbouring physical frames, which have no other state than that they are there.
    pub fn add_frames(&mut self, machine: &Machine, frames: &FrameRow) {
        self.add(State::Present.into(), frames.facts.flags, frames.frames);
        if frames.facts.flags.is_none() {
            self.offline += offline_frames(machine, frames.first, frames.frames);
        }
    }

    /// How many frames without flags are in offline blocks of memory.
    pub fn offline(&self) -> u64 {
        self.offline
    }

    /// The counts with flags first, and of each sort those with the most pages.
    pub fn finish(mut self) -> Vec<(StatesAndFlags, u64)> {
        if let Some((key, pages)) = self.last.take() {
            *self.pages.entry(key).or_default() += pages;
        }
        let mut counts: Vec<(StatesAndFlags, u64)> = self.pages.into_iter().collect();
        counts.sort_by_cached_key(|&((states, flags), pages)| {
            (flags.is_none(), Reverse(pages), flags.map(|flags| flags.bits()), states)
        });
        counts
    }
}
