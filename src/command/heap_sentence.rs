//! The sentence about the heaps of a process, which answers `heap` and `account with heap`.

use super::floor::Error;
use super::rows::pull;
use crate::budget::Budget;
use crate::inspect::heap::{HeapArena, HeapSearch, HeapSums, MappedChunks, require_memory};
use crate::inspect::{AddressSpace, Step};
use crate::render::Sink;
use crate::render::theme::Role;
use crate::render::units::{counted, size};

/// The most chunks and bins that are looked at. Ctrl-C ends a search long before.
const MOST_STEPS: u64 = 1 << 34;

/// Where more is in use than resident.
pub(super) const NOT_RESIDENT: &str = " (in part never touched, or in swap)";

/// What is said of chunks that are in no arena.
pub(super) const LARGE: &str = "is in large chunks that are mappings of their own";

/// The sums of arenas. What is unknown of one of them is unknown of all.
pub(super) struct HeapSentence {
    /// The number of the arena, if it is about one.
    pub arena: Option<u64>,
    /// Arenas that have memory.
    pub arenas: u64,
    /// Arenas that were not walked to their ends: their chunks are in no sum.
    pub incomplete: u64,
    /// Resident bytes.
    pub resident: Option<u64>,
    /// Bytes that they have from the kernel.
    pub system: u64,
    /// Bytes of chunks in use; unknown if no arena was walked.
    pub in_use: Option<u64>,
    /// Resident bytes that `malloc_trim(0)` would give back.
    pub trim: Option<u64>,
    /// Bytes of free chunks that no trim gives back.
    pub between: Option<u64>,
}

impl HeapSentence {
    pub fn of(arenas: &[HeapArena]) -> Self {
        let sums = || arenas.iter().filter_map(|arena| arena.sums.as_ref());
        let is_known = arenas.is_empty() || sums().next().is_some();
        let sum = |of: fn(&HeapSums) -> u64| is_known.then(|| sums().map(of).fold(0, u64::saturating_add));
        let trim = || sums().map(|sums| sums.trimmable.as_ref().map(|trim| trim.now)).sum();
        HeapSentence {
            arena: None,
            arenas: arenas.iter().filter(|arena| arena.system_bytes > 0).count() as u64,
            incomplete: arenas.iter().filter(|arena| arena.sums.is_none()).count() as u64,
            resident: arenas.iter().map(|arena| arena.resident).sum(),
            system: arenas.iter().map(|arena| arena.system_bytes).fold(0, u64::saturating_add),
            in_use: sum(|sums| sums.in_use.bytes),
            trim: is_known.then(trim).flatten(),
            between: sum(|sums| sums.between),
        }
    }

    /// `2 glibc arenas with 300 MiB resident: 60 MiB of chunks in use, 180 MiB that malloc_trim(0) would free`
    pub fn parts(&self) -> Vec<(Role, String)> {
        let arenas = match self.arena {
            Some(number) => format!("arena {number}"),
            None => counted(self.arenas, "glibc arena"),
        };
        let mut parts = vec![match (self.arenas, self.resident) {
            (0, _) => (Role::Plain, "no heap of glibc was found".to_owned()),
            (_, Some(resident)) => (Role::Plain, format!("{arenas} with {} resident: ", size(resident))),
            (_, None) => (Role::Plain, format!("{arenas} with {}: ", size(self.system))),
        }];
        if self.arenas > 0 && self.incomplete >= self.arenas {
            parts.push((Role::Warn, "the bytes in use are unknown".to_owned()));
        } else if let (1.., Some(in_use)) = (self.arenas, self.in_use) {
            let at_least = if self.incomplete > 0 { "at least " } else { "" };
            parts.push((Role::Good, format!("{at_least}{} of chunks in use", size(in_use))));
            if self.resident.is_some_and(|resident| in_use > resident) {
                parts.push((Role::Plain, NOT_RESIDENT.to_owned()));
            }
            parts.extend(self.free(at_least).map(|part| (Role::Plain, part)));
        }
        parts
    }

    /// What is free of it.
    fn free(&self, at_least: &str) -> impl Iterator<Item = String> {
        let trim = match self.trim {
            // An arena that was not walked may have some.
            Some(0) if self.incomplete > 0 => None,
            Some(0) => Some(", nothing that malloc_trim(0) would free now".to_owned()),
            Some(trim) => Some(format!(", {at_least}{} that malloc_trim(0) would free", size(trim))),
            None => None,
        };
        let between = self.between.filter(|between| *between > 0);
        let between = between.map(|between| format!(", {} free between chunks in use", size(between)));
        trim.into_iter().chain(between)
    }
}

/// The sentence about the heaps of a process, with their large chunks. A sweep that asks for the uses of their pages
/// walks no arena again.
pub(super) fn about(space: &AddressSpace, sink: &mut dyn Sink) -> Result<String, Error> {
    require_memory(space)?;
    let mapped = MappedChunks::of(space, steps(sink))?;
    let large = mapped.sum.bytes;
    let search = HeapSearch::new(space, steps(sink))?.keeping_uses(mapped);
    let mut sentence: String =
        HeapSentence::of(&arenas(search, sink)?).parts().into_iter().map(|(_, part)| part).collect();
    if large > 0 {
        sentence += &format!(". {} {LARGE}", size(large));
    }
    Ok(sentence)
}

/// The budget of a search for arenas.
pub(super) fn steps(sink: &dyn Sink) -> Budget {
    sink.budget().at_most(MOST_STEPS)
}

/// The arenas of a process.
pub(super) fn arenas(mut search: HeapSearch<'_>, sink: &mut dyn Sink) -> Result<Vec<HeapArena>, Error> {
    let all = search.left();
    let mut arenas = Vec::new();
    let next = || Ok(search.next()?.map(Step::Found));
    let stopped = pull(sink, "arenas", next, |arena, sink| {
        arenas.push(arena);
        Ok(sink.progress(arenas.len() as u64, all as u64, "arenas")?)
    })?;
    stopped.map_or(Ok(arenas), |stopped| Err(stopped.into()))
}
