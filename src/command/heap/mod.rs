//! `heap [ARENA | children | of A, B | cgroup [PATH]] [by arena|size|region] [top|limit N]
//! [every DURATION [for DURATION]]`: what of glibc's heaps is in use, and what is free and kept.

mod family;
mod one;
mod others;
mod over_time;
mod records;
mod rows;

pub(super) use self::rows::why_incomplete;
use self::rows::{ArenaRow, Found, HeapKey, KeptRow, PartRow, SizeRow, emit};
use super::account::family::{FamilyOf, family};
use super::floor::{About, Command, CommandName, Context, Error, Group, Nature, Outcome, example};
use super::rows::RowLimit;
use crate::eval;
use crate::inspect::heap::{HeapArena, MappedChunks};
use crate::kernel::VirtualAddress;
use crate::lang::parser::{Parsed, Tokens, after, clause, count, cut_to, one_of, time};
use crate::lang::{self, Spanned, Time, display};
#[cfg(test)]
use crate::render::Record;
use crate::report::{Declared, Reason, Shape};
use nom::Parser;
use nom::combinator::opt;
use over_time::{HeapGrowth, HeapSample};
use records::{HeapFamily, HeapSummary, ProcessRow};
use std::fmt::{self, Formatter};

/// `heap [ARENA | children | of A, B | cgroup [PATH]] [by arena|size|region] [every DURATION [for DURATION]]`
#[derive(Debug)]
pub struct Heap {
    /// The number of an arena, or an address in it; all arenas if absent.
    arena: Option<Spanned<lang::Count>>,
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
        PartRow::SHAPE,
        KeptRow::SHAPE,
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

  N                 one arena: its number in the table, or an address in it
  FAMILY            a row for each of several processes, by one of these forms:
  children          the process and its descendants
  of NAME, of A, B  all processes of a name, or these
  cgroup [PATH]     the processes of its memory cgroup, or of another
  by arena          a row for each arena (the default)
  by size           a row for each class of chunk sizes, and the pages that few chunks in use keep
  by region         a row for each part of an arena: the break, or a heap of threads
  every DURATION    a sample each time, and then the sizes that changed
  for DURATION      end after this time
  top N, limit N    only N rows

Columns and words of the answer:

  resident          resident memory of the arena
  in use            chunks that the program has, with their heads
  free              all free chunks but the top
  between           free chunks that no trim gives back: chunks in use lie on their pages
  trim              resident whole pages of free chunks: a trim gives them back
  top               the free chunk at the end, from which new ones are cut
  mapped            large chunks that are mappings of their own
  other             anonymous memory outside of all these
  walked            complete: all of the arena was read
  kept by chunks    pages with free memory, by the number of chunks in use that lie on them
  most often of     the size that these chunks have on most of the pages

Processes that end, or that you may not examine, are left out; the last line has their number. Chunks that threads keep for themselves (tcache) and small chunks that were freed last (fastbins) count as in use.

An arena whose chunks do not agree has no sums, and the last column has the reason. `help chunks` has the checks, and \
what captures and cores have.",
        examples: &[
            example("heap", "show how much of the heap is in use"),
            example("heap 0", "show the main arena: its sizes, and which chunks keep free memory"),
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
        let (behind, arena) = if of.is_none() { opt(count).parse(behind)? } else { (behind, None) };
        input = behind;
        while clause(&mut input, &mut by, after("by", one_of))?
            || (of.is_none()
                && (clause(&mut input, &mut every, after("every", time))?
                    || clause(&mut input, &mut duration, after("for", time))?))
            || clause(&mut input, &mut cut, cut_to)?
        {}
        Ok((input, Heap { arena, of, by, every, duration, cut }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.of.as_ref().map_or(Ok(()), |of| of.write(f))?;
        self.arena.iter().try_for_each(|arena| write!(f, " {}", arena.node))?;
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
            return family::run(of, self.by, cut, context);
        }
        if self.is_over_time() {
            if self.arena.is_some() {
                return Err(Error::refused("samples are sums of all arenas", "leave the arena out"));
            }
            if let Some(by @ (HeapKey::Arena | HeapKey::Region)) = self.by {
                let hint = format!("leave `by {}` out", by.word());
                return Err(Error::refused("samples are sums of all arenas", hint));
            }
            let time = |time| eval::time(time, context.state);
            let every = self.every.as_ref().map(time).transpose()?;
            let duration = self.duration.as_ref().map(time).transpose()?;
            return over_time::run(every, duration, cut, context);
        }
        let target = context.target()?;
        let (summary, arenas) = one::heaps(&target, context)?;
        let Some(at) = &self.arena else {
            context.sink.emit(&summary)?;
            let arenas: Vec<Found> = arenas.into_iter().map(|arena| (None, arena)).collect();
            return emit(self.by.unwrap_or(HeapKey::Arena), arenas, cut, context);
        };
        let wanted = eval::count(at, context.state)?;
        let found = arenas.into_iter().find(|arena| is_arena(arena, wanted));
        let arena = found.ok_or_else(|| no_arena(wanted, &summary))?;
        let number = Some(arena.number as u64);
        let sums = HeapSummary::of(std::slice::from_ref(&arena), &MappedChunks::default());
        context.sink.emit(&HeapSummary {
            arena: number,
            pid: summary.pid,
            process: summary.process,
            other: Err(Reason::NotApplicable("it is outside of arenas")),
            mapped_chunks: None,
            mapped: None,
            ..sums
        })?;
        let arenas = vec![(None, arena)];
        if self.by.is_none() {
            emit(HeapKey::Arena, arenas.clone(), None, context)?;
        }
        emit(self.by.unwrap_or(HeapKey::Size), arenas, cut, context)
    }
}

/// Whether it is the arena with this number, or with this address in its memory or its head.
fn is_arena(arena: &HeapArena, wanted: u64) -> bool {
    let address = VirtualAddress::new(wanted);
    arena.number as u64 == wanted || arena.address == address || arena.parts.iter().any(|part| part.contains(address))
}

fn no_arena(wanted: u64, summary: &HeapSummary) -> Error {
    let arenas = summary.arenas;
    // Nothing is mapped at such an address in practice.
    if wanted < arenas.max(4096) {
        return Error::refused(format!("there is no arena {wanted}"), "`heap` lists the arenas");
    }
    let unread = if summary.incomplete > 0 { ", as far as arenas were read" } else { "" };
    let hint = format!("`explain {wanted:#x} with heap` shows what is there");
    Error::refused(format!("{wanted:#x} is in no arena of glibc{unread}"), hint)
}

impl Heap {
    fn is_over_time(&self) -> bool {
        self.every.is_some() || self.duration.is_some()
    }
}
