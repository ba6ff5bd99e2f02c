//! `heap [by arena|size] [top N | limit N]`: what of glibc's heaps is in use, and what is free and kept.

mod others;
mod records;

use super::rows::{RowLimit, keep_shown, note_hidden_rows};
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::inspect::heap::{ArenaOutcome, HeapArena, HeapSearch, MappedChunks, SizeClass, anonymous, resident};
use crate::inspect::{AddressSpace, has_memory};
use crate::kernel::words::worded;
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, one_of};
use crate::lang::{self, display};
#[cfg(test)]
use crate::render::Record;
use crate::report::Shape;
use others::OtherAllocator;
use records::{ArenaRow, HeapSummary, SizeRow};
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

worded! {
    /// What `heap by KEY` has rows of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum HeapKey, word {
        /// The arena.
        Arena = "arena",
        /// The size of chunks, in powers of two.
        Size = "size",
    }
}

/// The most chunks that are looked at: many times those of the largest heap. A made heap may lead back to the same
/// chunks.
const MOST_STEPS: u64 = 1 << 30;

/// `heap [by arena|size] [top N | limit N]`
#[derive(Debug)]
pub struct Heap {
    by: Option<HeapKey>,
    /// Which rows.
    cut: Option<lang::LimitClause>,
}

impl Command for Heap {
    const RECORDS: &'static [Shape] = records::RECORDS;
    const ABOUT: About = About {
        name: CommandName::new("heap").whole(),
        group: Group::Look,
        summary: "show what of the heap is in use, and what is free and kept",
        text: "\
Adds up the heaps of glibc's malloc: chunks in use, free chunks, and what `malloc_trim(0)` would give back now. \
Stops nothing, and runs nothing in the process.

  by arena          a row for each arena (the default)
  by size           a row for each class of chunk sizes
  top N, limit N    only N rows

  resident          resident memory of the arena
  in use            chunks that the program has, with their heads
  between           free chunks on pages that chunks in use need too
  trim              resident whole pages of free chunks: a trim gives them back
  top               the free chunk at the end, from which new ones are cut

Chunks that threads keep for themselves (tcache) and small chunks that were freed last (fastbins) are in use for the \
allocator, and so they are here.

Each chunk is compared with its neighbours. The sums of an arena hold only if they add up to its memory. Otherwise \
the last column has the reason. Only resident memory is read. The kernel marks the pages that are read as referenced \
(`help traces`).

Heaps of other allocators are not read. Those that are found by the name of a library or symbol are named.",
        examples: &[
            example("heap", "show how much of the heap is in use"),
            example("heap by size", "show the sizes of chunks in use and of free ones"),
            example("heap top 3", "show the three largest arenas"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(mut input: Tokens<'_>) -> Parsed<'_, Self> {
        let (mut by, mut cut) = (None, None);
        while clause(&mut input, &mut by, after("by", one_of))? || clause(&mut input, &mut cut, cut_to)? {}
        Ok((input, Heap { by, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        display::clause(f, "by", self.by.map(HeapKey::word))?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        let target = context.target()?;
        let space = AddressSpace::of(&target)?;
        if !has_memory(&space)? {
            return Err(Error::refused(
                "this file has no memory, and heaps are found by their contents",
                "capture the process `with memory`",
            ));
        }
        let budget = context.sink.budget().at_most(MOST_STEPS);
        let mut search = HeapSearch::new(&space, budget.clone())?;
        let all = search.left();
        let mut arenas = Vec::new();
        while let Some(arena) = search.next()? {
            arenas.push(arena);
            context.sink.progress(arenas.len() as u64, all as u64, "arenas")?;
        }
        let mapped = MappedChunks::of(&space, budget.clone())?;
        let known = arenas.iter().map(|arena| arena.resident).sum::<u64>() + resident(&space, &mapped.ranges, &budget)?;
        let anonymous = resident(&space, &anonymous(&space), &budget)?;
        let summary = HeapSummary {
            pid: target.process.identity().pid,
            process: target.process.identity().name,
            other: anonymous.saturating_sub(known),
            allocators: others::found(context, &target, &space)?.into_iter().map(OtherAllocator::word).collect(),
            ..HeapSummary::of(&arenas, &mapped)
        };
        context.sink.emit(&summary)?;
        match self.by.unwrap_or(HeapKey::Arena) {
            HeapKey::Arena => by_arena(arenas, cut, context),
            HeapKey::Size => by_size(&arenas, cut, context),
        }
    }
}

fn by_arena(mut arenas: Vec<HeapArena>, cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    // An arena that no thread has used yet has nothing to show.
    arenas.retain(|arena| arena.system_bytes > 0 || arena.outcome != ArenaOutcome::Complete);
    let more = keep_shown(&mut arenas, cut, |arena| arena.resident);
    for arena in &arenas {
        context.sink.emit(&ArenaRow::of(arena))?;
    }
    note_hidden_rows(more, "arena", context.sink)?;
    Ok(Flow::Done)
}

fn by_size(arenas: &[HeapArena], cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    let mut classes: BTreeMap<u64, SizeRow> = BTreeMap::new();
    for SizeClass { smallest, in_use, free, .. } in arenas.iter().flat_map(|arena| arena.sizes.iter().copied()) {
        let row = classes.entry(smallest).or_insert_with(|| SizeRow::new(smallest));
        row.add(in_use, free);
    }
    let mut rows: Vec<SizeRow> = classes.into_values().collect();
    let more = keep_shown(&mut rows, cut, |row| row.in_use + row.free);
    for row in &rows {
        context.sink.emit(row)?;
    }
    note_hidden_rows(more, "size", context.sink)?;
    Ok(Flow::Done)
}
