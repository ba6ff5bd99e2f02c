//! `heap [children | of A, B | "NAME" | cgroup PATH] [by arena|size] [every DURATION [for DURATION]] [top N | limit N]`:
//! what of glibc's heaps is in use, and what is free and kept.

mod family;
mod one;
mod others;
mod over_time;
mod records;

use super::account::family::{FamilyOf, family};
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use super::rows::{RowLimit, keep_shown, note_hidden_rows};
use crate::eval;
use crate::inspect::heap::{ArenaOutcome, HeapArena};
use crate::kernel::words::worded;
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, one_of, time};
use crate::lang::{self, Spanned, Time, display};
#[cfg(test)]
use crate::render::Record;
use crate::report::{Declared, Shape};
use nom::Parser;
use nom::combinator::opt;
use over_time::{HeapGrowth, HeapSample};
pub(super) use records::why_incomplete;
use records::{ArenaRow, HeapFamily, HeapSummary, ProcessRow, SizeRow};
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

/// `heap [children | of A, B | "NAME" | cgroup PATH] [by arena|size] [every DURATION [for DURATION]] [top N | limit N]`
#[derive(Debug)]
pub struct Heap {
    /// Several processes; the attached one if absent.
    of: Option<FamilyOf>,
    by: Option<HeapKey>,
    /// The time between samples, and until the last.
    every: Option<Spanned<Time>>,
    duration: Option<Spanned<Time>>,
    /// Which rows.
    cut: Option<lang::LimitClause>,
}

impl Command for Heap {
    const RECORDS: &'static [Shape] = &[
        ArenaRow::SHAPE,
        SizeRow::SHAPE,
        HeapSummary::SHAPE,
        ProcessRow::SHAPE,
        HeapFamily::SHAPE,
        HeapSample::SHAPE,
        HeapGrowth::SHAPE,
    ];
    const ABOUT: About = About {
        name: CommandName::new("heap").of_session().whole().alone_before(&["cgroup", "of", "\""]),
        group: Group::Look,
        summary: "show what of the heap is in use, and what is free and kept",
        text: "\
Adds up the heaps of glibc's malloc: chunks in use, free chunks, and what `malloc_trim(0)` would give back now. \
Stops nothing, and runs nothing in the process.

  children          the process and its descendants: a row for each
  of A, B, …        these processes: each a PID, a variable or a name
  \"NAME\"            all processes of a name
  cgroup PATH       the processes of a memory cgroup
  by arena          a row for each arena (the default)
  by size           a row for each class of chunk sizes
  every DURATION    a sample each time, and then the sizes that changed
  for DURATION      until when; to Ctrl-C without it
  top N, limit N    only N rows

  resident          resident memory of the arena
  in use            chunks that the program has, with their heads
  free              all free chunks but the top
  between           free chunks that no trim gives back: chunks in use lie on their pages
  trim              resident whole pages of free chunks: a trim gives them back
  top               the free chunk at the end, from which new ones are cut
  mapped            large chunks that are mappings of their own
  other             anonymous memory outside of all these
  walked            complete: all of the arena was read

Of several processes, those that end, or that you may not examine, are left out; the last line has their number. It is an error if none is \
left.

Chunks that threads keep for themselves (tcache) and small chunks that were freed last (fastbins) count as in use.

`walk [heap] by heap` and `account by heap` show which pages are in use, and `explain ADDR with heap` shows the chunk of an address.

Each chunk is compared with its neighbours, and the chunks of an arena with the memory that it has. Pieces of an arena that lie apart are put together. Where sizes or sums do not \
agree there are no sums, and the last column has the reason. Only resident memory is read. The kernel marks the pages that are read as referenced \
(`help traces`).

Heaps of other allocators are not read. Those that are found by the name of a library or symbol are named.",
        examples: &[
            example("heap", "show how much of the heap is in use"),
            example("heap by size", "show the sizes of chunks in use and of free ones"),
            example("heap top 3", "show the three largest arenas"),
            example("heap every 100ms for 300ms", "show whether chunks in use grow, or free ones"),
            example("heap children", "show the heaps of a process and its descendants"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all().into_iter().chain(over_time::samples::all()).collect()
    }

    fn parse(mut input: Tokens<'_>) -> Parsed<'_, Self> {
        let (mut by, mut every, mut duration, mut cut) = (None, None, None, None);
        let (behind, of) = opt(family).parse(input)?;
        input = behind;
        while (of.is_none()
            && (clause(&mut input, &mut by, after("by", one_of))?
                || clause(&mut input, &mut every, after("every", time))?
                || clause(&mut input, &mut duration, after("for", time))?))
            || clause(&mut input, &mut cut, cut_to)?
        {}
        Ok((input, Heap { of, by, every, duration, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.of.as_ref().map_or(Ok(()), |of| of.write(f))?;
        display::clause(f, "by", self.by.map(HeapKey::word))?;
        display::clause(f, "every", self.every.as_ref().map(|time| &time.node))?;
        display::clause(f, "for", self.duration.as_ref().map(|time| &time.node))?;
        display::cut(f, self.cut.as_ref())
    }

    fn nature(&self) -> Nature {
        Nature { ends_by_interrupt: self.is_over_time(), ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        if let Some(of) = &self.of {
            return family::run(of, cut, context);
        }
        if self.is_over_time() {
            if self.by == Some(HeapKey::Arena) {
                return Err(Error::refused("samples are sums of all arenas", "leave `by arena` out"));
            }
            let time = |time| eval::time(time, context.state);
            let every = self.every.as_ref().map(time).transpose()?;
            let duration = self.duration.as_ref().map(time).transpose()?;
            return over_time::run(every, duration, cut, context);
        }
        let target = context.target()?;
        let (summary, arenas) = one::heaps(&target, context)?;
        context.sink.emit(&summary)?;
        match self.by.unwrap_or(HeapKey::Arena) {
            HeapKey::Arena => by_arena(arenas, cut, context),
            HeapKey::Size => by_size(&arenas, cut, context),
        }
    }
}

impl Heap {
    fn is_over_time(&self) -> bool {
        self.every.is_some() || self.duration.is_some()
    }
}

fn by_arena(mut arenas: Vec<HeapArena>, cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    // An arena that no thread has used yet has nothing to show.
    arenas.retain(|arena| arena.system_bytes > 0 || arena.outcome != ArenaOutcome::Complete);
    let more = keep_shown(&mut arenas, cut, |arena| arena.resident.unwrap_or(arena.system_bytes));
    for arena in &arenas {
        context.sink.emit(&ArenaRow::of(arena))?;
    }
    note_hidden_rows(more, "arena", context.sink)?;
    Ok(Flow::Done)
}

fn by_size(arenas: &[HeapArena], cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    let mut rows: Vec<SizeRow> = SizeRow::all(arenas).into_values().collect();
    let more = keep_shown(&mut rows, cut, |row| row.in_use + row.free);
    for row in &rows {
        context.sink.emit(row)?;
    }
    note_hidden_rows(more, "size", context.sink)?;
    Ok(Flow::Done)
}
