//! `patched [RANGE]`: code that is not as in its file: executable file pages that have become private copies, and code
//! that is not mapped from its file at all.

mod records;

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use super::rows::{self, SweepEnd, finish};
use super::translate;
use crate::eval::{self, Spans};
use crate::inspect::AddressSpace;
use crate::inspect::patches::{self, PatchSums};
use crate::lang::parser::{Parsed, Tokens, range};
use crate::lang::{self, Spanned};
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{Hex, HexString, RegionBrief, Shape, Why};
use crate::symbol;
use nom::Parser;
use nom::combinator::{map, opt};
use records::{Patch, PatchedSummary};
use std::fmt::{self, Formatter};

/// `patched [RANGE]`: code that differs from its file.
#[derive(Debug)]
pub struct Patched(Option<Spanned<lang::Range>>);

impl Command for Patched {
    const RECORDS: &'static [Shape] = records::RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("patched").whole().how(),
        group: Group::Look,
        summary: "list modified code pages and their differences from the file",
        text: "\
Lists pages of private executable file mappings that have become private copies, and compares each with the file. \
Also compares the code of programs and libraries where other memory is mapped in its place, such as huge pages. \
Each stretch of bytes that differs is a row, with its function. Breakpoint instructions are named (int3, brk, \
ebreak, trap).

  RANGE  only the pages of this range; without it, all modules

A private copy that equals the file is listed too: it was written and restored later.

A debugger that inserts a breakpoint makes such a copy. Live patching, hooks and relocations in code do the same. \
gdb removes its breakpoints whenever the process stops. Their bytes can be seen while the process runs. After gdb's \
`set breakpoint always-inserted on` and one step (`stepi`), they can be seen at a stop too.

Reads only resident pages, and the pages of the file that they are compared with. The access time of the file does \
not change. Code in anonymous memory outside programs and libraries has no file to compare with.",
        examples: &[
            example("patched", "list all modified code of the process"),
            example("patched main", "list the changes to one function"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        records::samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(opt(range), Patched).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |range| write!(f, " {}", range.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Patched(range) = self;
        let target = context.target()?;
        let spans = match range {
            None => None,
            Some(range) => {
                let hint = "write `patched MODULE`, `patched FUNCTION` or `patched A..B`";
                Some(eval::subject(range, context.state)?.spans(range.at, hint)?)
            }
        };
        // Code is in the memory of modules, which are few.
        let regions = context.state.symbols.naming_regions(&target)?;
        let space = AddressSpace::of_regions(&target, &regions)?;
        let symbols = context.state.symbols.over(&target, space.regions());
        let comparison = space.patches(&symbols.code()?, spans.as_ref().map(Spans::ranges))?;
        let mut comparison = comparison.with_budget(context.sink.budget());
        let show = |patch: patches::Patch, sink: &mut dyn Sink| match space.viewed_region(patch.range.start()) {
            Some(viewed) => sink.emit(&row(patch, (&viewed.region).into(), &symbols)),
            None => Ok(()),
        };
        let next = || comparison.next();
        let stopped = rows::pull(context.sink, "pages", next, |patch, sink| Ok(show(patch, sink)?))?;
        let answer = comparison.take_last().map_or(Ok(()), |patch| show(patch, context.sink));
        let (sums, pages) = comparison.finish();
        let mut ended = SweepEnd::of(pages, stopped);
        ended.add_stop(answer);
        let summary = summary(sums, ended.stopped.is_some());
        ended.say_uncertain(context.sink)?;
        let is_traced = || target.process.status().is_ok_and(|status| status.tracer != 0);
        if summary.breakpoints == 0 && is_traced() {
            let message = "a debugger removes its breakpoints from a process that it has stopped (`help patched`)";
            context.sink.note(message.to_owned())?;
        }
        finish(&summary, ended.stopped, context.sink)?;
        Ok(Flow::Done)
    }
}

fn row(patch: patches::Patch, region: RegionBrief, symbols: &symbol::TargetSymbols<'_>) -> Patch {
    let (memory, file) = patch.bytes.map(|bytes| (HexString(bytes.memory), HexString(bytes.file))).unzip();
    Patch {
        address: patch.range.start(),
        length: patch.range.len(),
        symbol: translate::brief(symbols, patch.range.start()),
        memory,
        file,
        file_offset: Hex(patch.file_offset),
        breakpoint: patch.breakpoint,
        replaced: patch.is_replaced,
        region,
    }
}

fn summary(sums: PatchSums, cut_short: bool) -> PatchedSummary {
    let mut why = Why::default();
    if let Some(reason) = sums.uncompared.reason() {
        why.note("uncompared", &reason);
    }
    PatchedSummary {
        private_copies: sums.private_copies,
        equal: sums.equal,
        outside: sums.outside,
        stretches: sums.stretches,
        bytes: sums.bytes,
        breakpoints: sums.breakpoints,
        replaced: sums.replaced,
        uncompared: sums.uncompared.pages(),
        cut_short,
        why,
    }
}
