//! `patched [RANGE]`: code that is not as in its file: executable file pages that have become private copies, and code
//! that is not mapped from its file at all.

mod instructions;
mod records;
mod replaced;

use super::rows::{self, finish};
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example, translate};
use crate::eval;
use crate::inspect::{self, AddressSpace, Evidence, Page, read_resident};
use crate::kernel::{AddressRange, Kind, State, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, range};
use crate::lang::{self, Spanned};
use crate::process::{self, OpenedFile};
#[cfg(test)]
use crate::render::Record;
use crate::render::Sink;
use crate::report::{Hex, HexString, PagesByReason, Reason, RegionBrief, Shape, Stopped};
use crate::source::words;
use crate::symbol;
use instructions::InstructionSet;
use nom::Parser;
use nom::combinator::{map, opt};
use records::{Patch, PatchedSummary};
use replaced::{Code, FilePart};
use std::collections::BTreeMap;
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
        let symbols = context.state.symbols.over(&target, space.maps());
        let Code { mapped, mut replaced } = Code::of(&space, &symbols.code()?);
        let asked = |range: AddressRange| match &spans {
            None => vec![range],
            Some(spans) => range.within(spans.ranges()).collect(),
        };
        replaced.retain(|part| !asked(part.range).is_empty());
        let all = mapped.into_iter().chain(replaced.iter().map(|part| part.range));
        let mut code: Vec<AddressRange> = all.flat_map(asked).collect();
        code.sort_by_key(|range| range.start());
        let mut comparison = FileComparison {
            space: &space,
            symbols,
            replaced,
            files: BTreeMap::new(),
            summary: PatchedSummary::default(),
            uncompared: PagesByReason::default(),
            equal: None,
        };
        let mut ended = rows::sweep(&space, &code, Evidence::ENTRIES, context.sink, |sweep, sink| {
            while let Some(kept) = sweep.next(sink)? {
                for page in kept.pages {
                    kept.totals.add(&page);
                    comparison.pages(&page, &code, sink)?;
                }
            }
            Ok(())
        })?;
        let answer = comparison.say_equal(context.sink);
        ended.add_stop(answer);
        let mut summary = comparison.summary;
        summary.uncompared = comparison.uncompared.pages();
        if let Some(reason) = comparison.uncompared.reason() {
            summary.why.note("uncompared", &reason);
        }
        summary.cut_short = ended.stopped.is_some();
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

const MAY_BE_OF_FILE: &str =
    "they may be the file's own: before Linux 6.11 the page map does not show it where a huge page may be mapped";

/// A file behind a region, and what its program is made for.
struct OpenedProgram {
    file: OpenedFile,
    machine: InstructionSet,
}

/// One comparison of memory and files.
struct FileComparison<'a> {
    space: &'a AddressSpace,
    symbols: symbol::TargetSymbols<'a>,
    /// Code that other memory has taken the place of, in order.
    replaced: Vec<FilePart>,
    /// The files that are open, by the start of their region.
    files: BTreeMap<VirtualAddress, OpenedProgram>,
    summary: PatchedSummary,
    uncompared: PagesByReason,
    /// Pages that equal the file and are not reported yet.
    equal: Option<EqualPages>,
}

impl FileComparison<'_> {
    /// The first part of replaced code in a page or after it.
    fn replaced_from(&self, page: AddressRange) -> Option<&FilePart> {
        self.replaced.get(self.replaced.partition_point(|part| part.range.end() <= page.start()))
    }

    /// Compares those of these pages that are private copies, or that other memory has taken the place of.
    fn pages(&mut self, page: &Page, code: &[AddressRange], sink: &mut dyn Sink) -> Result<(), Error> {
        let is_swapped = matches!(page.state(), State::Swapped | State::Migrating);
        let range = AddressRange::of_length(page.address, page.bytes(self.space.page()));
        let is_replaced = range.is_some_and(|range| {
            let part = self.replaced_from(range);
            part.is_some_and(|part| part.range.intersection(range).is_some())
        });
        if is_replaced {
            self.summary.replaced += page.pages;
            return match page.state() {
                State::Present => self.each_page(page, code, sink),
                state => {
                    let reason = Reason::NotInFile(format!("{} pages are not read", state.word()));
                    self.uncompared.add(page.pages, reason);
                    Ok(())
                }
            };
        }
        // A merged page of a private mapping was a copy before.
        let is_copy = matches!(page.kind, Some(Kind::PrivateCopy | Kind::Ksm));
        // Where only the kind of copy is unknown, it still is one.
        let is_unclear = page.kind.is_none() && !page.entry.is_file_or_shared();
        if !is_swapped && (page.state() != State::Present || !is_copy && !is_unclear) {
            return Ok(());
        }
        let is_unmarked = |viewed| self.space.may_be_unmarked_file(viewed);
        if !is_swapped && is_unclear && self.space.region(page.address).is_none_or(is_unmarked) {
            self.uncompared.add(page.pages, Reason::NotOnThisKernel(MAY_BE_OF_FILE.to_owned()));
            return Ok(());
        }
        self.summary.private_copies += page.pages;
        if is_swapped {
            let reason = Reason::NotInFile(format!("{} pages are not read", page.state().word()));
            self.uncompared.add(page.pages, reason);
            return Ok(());
        }
        self.each_page(page, code, sink)
    }

    /// Compares each of these pages.
    fn each_page(&mut self, page: &Page, code: &[AddressRange], sink: &mut dyn Sink) -> Result<(), Error> {
        let size = self.space.page().bytes();
        for index in 0..page.pages {
            sink.check()?;
            let start = VirtualAddress::new(page.address.get() + index * size);
            let end = VirtualAddress::new(start.get() + size);
            let Some(whole) = AddressRange::new(start, end) else {
                continue;
            };
            if let Err(reason) = self.page(whole, code, sink)? {
                self.uncompared.add(1, reason);
            }
        }
        Ok(())
    }

    /// Compares one page, or returns why it cannot be compared.
    fn page(
        &mut self,
        page: AddressRange,
        code: &[AddressRange],
        sink: &mut dyn Sink,
    ) -> Result<Result<(), Reason>, Error> {
        let size = page.end().get() - page.start().get();
        let size = usize::try_from(size).unwrap_or_default();
        let (mut memory, mut of_file) = (vec![0; size], vec![0; size]);
        let read = match read_resident(self.space.target(), page.start(), &mut memory) {
            Err(inspect::Error::Target(missing @ process::Error::NotAvailable { .. })) => {
                return Ok(Err(Reason::NotInFile(missing.to_string())));
            }
            read => read?,
        };
        if read.bytes < size {
            return Ok(Err(Reason::Changed));
        }
        let Some(region) = self.space.region(page.start()).map(|viewed| &viewed.region) else {
            return Ok(Err(Reason::Changed));
        };
        let part = self.replaced_from(page).filter(|part| part.range.intersection(page).is_some());
        let is_replaced = part.is_some();
        let part = part.cloned().unwrap_or_else(|| FilePart::mapped(region));
        let Some((offset, compared)) = part.in_page(page) else {
            return Ok(Err(Reason::Changed));
        };
        let files = &mut self.files;
        let target = self.space.target();
        let opened = files.entry(part.of_file.range.start()).or_insert_with(|| {
            let file = target.modules.open(&part.of_file);
            let mut header = [0; 20];
            if let Ok(file) = &file {
                // Without an ELF header the machine is unknown, and breakpoints get no names.
                let is_read = file.read_up_to(0, &mut header).is_ok();
                if !is_read || !header.starts_with(b"\x7fELF") {
                    header = [0; 20];
                }
            }
            OpenedProgram { file, machine: InstructionSet::of(header) }
        });
        let file = match &opened.file {
            // What a core has of a file is the memory itself.
            Ok(file) if !file.has_sections() => {
                return Ok(Err(Reason::NotInFile("a core does not have the files, and pmdb opens none for it".into())));
            }
            Ok(file) => file,
            Err(error) => return Ok(Err(error.clone().into())),
        };
        // Bytes behind the end of the file stay zero, as in memory.
        if let Err(error) = file.read_up_to(offset, &mut of_file) {
            let what = format!("{}: {}", part.of_file.name.file_name(), words(error));
            return Ok(Err(Reason::NotInFile(what)));
        }
        // What is beside the code of a segment may be anything.
        for outside in [0..compared.start, compared.end..size] {
            if let (Some(into), Some(from)) = (of_file.get_mut(outside.clone()), memory.get(outside)) {
                into.copy_from_slice(from);
            }
        }
        let machine = opened.machine;
        let region_brief = RegionBrief::from(region);
        if memory == of_file {
            self.summary.equal += 1;
            return self.equal(EqualPages { range: page, offset, is_replaced }, sink).map(Ok);
        }
        let before = self.summary.stretches;
        for (from, to) in stretches(&memory, &of_file, machine.unit) {
            let start = VirtualAddress::new(page.start().get() + from as u64);
            let end = VirtualAddress::new(page.start().get() + to as u64);
            let is_asked = AddressRange::new(start, end).is_some_and(|stretch| stretch.within(code).next().is_some());
            if !is_asked {
                continue;
            }
            self.say_equal(sink)?;
            let bytes = memory.get(from..to).unwrap_or_default();
            let breakpoint = machine.breakpoint(bytes);
            self.summary.stretches += 1;
            self.summary.bytes += (to - from) as u64;
            self.summary.breakpoints += u64::from(breakpoint.is_some());
            sink.emit(&Patch {
                address: start,
                length: (to - from) as u64,
                symbol: translate::brief(&self.symbols, start),
                memory: Some(HexString(bytes.to_vec())),
                file: Some(HexString(of_file.get(from..to).unwrap_or_default().to_vec())),
                file_offset: Hex(offset + from as u64),
                breakpoint,
                replaced: is_replaced,
                region: region_brief.clone(),
            })?;
        }
        self.summary.outside += u64::from(self.summary.stretches == before);
        Ok(Ok(()))
    }

    /// Adds a page that equals the file to those of its neighbours.
    fn equal(&mut self, page: EqualPages, sink: &mut dyn Sink) -> Result<(), Error> {
        let region = self.space.region(page.range.start());
        let is_same_region =
            |before: AddressRange| region.is_some_and(|viewed| viewed.region.range.contains(before.start()));
        let follows = |before: &EqualPages| {
            before.range.end() == page.range.start()
                && before.is_replaced == page.is_replaced
                && is_same_region(before.range)
        };
        match self.equal.take_if(|before| follows(before)) {
            Some(EqualPages { range, offset, is_replaced }) => {
                let range = AddressRange::new(range.start(), page.range.end()).unwrap_or(range);
                self.equal = Some(EqualPages { range, offset, is_replaced });
            }
            None => {
                self.say_equal(sink)?;
                self.equal = Some(page);
            }
        }
        Ok(())
    }

    /// Reports the pages that equal the file.
    fn say_equal(&mut self, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let Some(EqualPages { range, offset, is_replaced }) = self.equal.take() else {
            return Ok(());
        };
        let Some(viewed) = self.space.region(range.start()) else {
            return Ok(());
        };
        sink.emit(&Patch {
            address: range.start(),
            length: range.len(),
            symbol: translate::brief(&self.symbols, range.start()),
            memory: None,
            file: None,
            file_offset: Hex(offset),
            breakpoint: None,
            replaced: is_replaced,
            region: (&viewed.region).into(),
        })
    }
}

/// Neighbouring pages of one region that equal the file.
struct EqualPages {
    range: AddressRange,
    /// Where the file has the first of them.
    offset: u64,
    /// Whether they are not mapped from the file.
    is_replaced: bool,
}

/// The stretches of whole units that differ: from, to.
fn stretches(left: &[u8], right: &[u8], unit: usize) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let units = left.chunks(unit).zip(right.chunks(unit)).enumerate();
    for (index, (left, _)) in units.filter(|(_, (left, right))| left != right) {
        let (from, to) = (index * unit, index * unit + left.len());
        match found.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => found.push((from, to)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_of_whole_instructions() {
        let file = [0, 1, 2, 3, 4, 5, 6, 7];
        let memory = [0, 9, 2, 9, 9, 5, 6, 7];
        assert_eq!(stretches(&memory, &file, 1), [(1, 2), (3, 5)]);
        assert_eq!(stretches(&memory, &file, 4), [(0, 8)]);
        assert_eq!(stretches(&memory, &file, 2), [(0, 6)]);
        assert_eq!(stretches(&file, &file, 1), []);
    }
}
