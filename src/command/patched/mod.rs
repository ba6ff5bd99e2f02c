//! `patched [RANGE]`: executable file pages that have become private copies, compared with the file.

mod records;

use super::rows::{self, finish};
use super::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example, translate};
use crate::eval;
use crate::inspect::{self, AddressSpace, Facts, Page, read_resident};
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
use nom::Parser;
use nom::combinator::{map, opt};
use records::{Patch, PatchedSummary};
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
Each stretch of bytes that differs is a row, with its function. Breakpoint instructions are named (int3, brk, \
ebreak, trap).

  RANGE  only the pages of this range; without it, all modules

A private copy that equals the file is listed too: it was written and restored later.

A debugger that inserts a breakpoint makes such a copy. Live patching, hooks and relocations in code do the same. \
gdb removes its breakpoints whenever the process stops. Their bytes can be seen while the process runs. After gdb's \
`set breakpoint always-inserted on` and one step (`stepi`), they can be seen at a stop too.

Reads only resident pages, and the pages of the file that they are compared with. The access time of the file does \
not change. Code in anonymous memory has no file to compare with.",
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
        let space = AddressSpace::of(&target)?;
        let code = space.maps().filter(|region| {
            let rights = region.permissions;
            rights.execute && !rights.shared && region.inode != 0 && !region.is_without_path()
        });
        let code: Vec<AddressRange> = match &spans {
            None => code.map(|region| region.range).collect(),
            Some(spans) => code.flat_map(|region| region.range.within(spans.ranges())).collect(),
        };
        let mut comparison = FileComparison {
            space: &space,
            symbols: context.state.symbols.over(&target, space.maps()),
            files: BTreeMap::new(),
            summary: PatchedSummary::default(),
            uncompared: PagesByReason::default(),
            equal: None,
        };
        let mut ended = rows::sweep(&space, &code, Facts::ENTRIES, context.sink, |sweep, sink| {
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

/// The bytes of a breakpoint instruction, which of their bits count, and its name.
type Breakpoint = (&'static [u8], &'static [u8], &'static str);

/// The instructions of a machine: their alignment, and the breakpoint instructions.
#[derive(Clone, Copy)]
struct InstructionSet {
    /// The alignment of instructions: so many bytes are compared at a time.
    unit: usize,
    /// The bytes of breakpoint instructions with the least significant byte first, which of their bits count, and their
    /// names.
    breakpoints: &'static [Breakpoint],
    is_little_endian: bool,
}

impl InstructionSet {
    /// Of the program whose ELF header this is.
    fn of(header: [u8; 20]) -> InstructionSet {
        let little_endian = header[5] != 2;
        let number = [header[18], header[19]];
        let number = if little_endian { u16::from_le_bytes(number) } else { u16::from_be_bytes(number) };
        const ALL: &[u8] = &[0xff; 4];
        let (unit, breakpoints): (usize, &'static [Breakpoint]) = match number {
            // i386 and x86-64
            3 | 62 => (1, &[(&[0xcc], ALL, "int3")]),
            // AArch64: the 16-bit operand does not count.
            183 => (4, &[(&[0, 0, 0x20, 0xd4], &[0x1f, 0, 0xe0, 0xff], "brk")]),
            // Arm and Thumb: the breakpoints of the kernel (arch/arm/kernel/ptrace.c).
            40 => (
                2,
                &[
                    (&[0xf0, 0x01, 0xf0, 0xe7], ALL, "udf"),
                    (&[0xf0, 0xf7, 0x00, 0xa0], ALL, "udf"),
                    (&[0x01, 0xde], ALL, "udf"),
                ],
            ),
            // RISC-V
            243 => (2, &[(&[0x02, 0x90], ALL, "ebreak"), (&[0x73, 0x00, 0x10, 0x00], ALL, "ebreak")]),
            // PowerPC
            20 | 21 => (4, &[(&[0x08, 0x00, 0xe0, 0x7f], ALL, "trap")]),
            // S/390: an invalid instruction.
            22 => (2, &[(&[0x01, 0x00], ALL, "trap")]),
            // MIPS, LoongArch: the operand of the break does not count.
            8 => (4, &[(&[0x0d, 0, 0, 0], &[0x3f, 0, 0, 0xfc], "break")]),
            258 => (4, &[(&[0, 0, 0x2a, 0], &[0, 0x80, 0xff, 0xff], "break")]),
            _ => (1, &[]),
        };
        InstructionSet { unit, breakpoints, is_little_endian: little_endian }
    }

    /// The name of the breakpoint instruction, if the bytes are nothing else.
    fn breakpoint(self, bytes: &[u8]) -> Option<&'static str> {
        let is = |(code, mask, _): &&(&[u8], &[u8], &str)| {
            let mut chunks = bytes.chunks_exact(code.len());
            let same = chunks.by_ref().all(|chunk| {
                let byte = |index: usize| {
                    if self.is_little_endian { chunk.get(index) } else { chunk.get(chunk.len() - 1 - index) }
                };
                let bits = code.iter().zip(mask.iter()).enumerate();
                bits.into_iter().all(|(index, (code, mask))| byte(index).is_some_and(|byte| byte & mask == *code))
            });
            same && chunks.remainder().is_empty()
        };
        let found = self.breakpoints.iter().find(is);
        found.filter(|_| !bytes.is_empty()).map(|(_, _, name)| *name)
    }
}

/// One comparison of memory and files.
struct FileComparison<'a> {
    space: &'a AddressSpace,
    symbols: symbol::TargetSymbols<'a>,
    /// The files that are open, by the start of their region.
    files: BTreeMap<VirtualAddress, OpenedProgram>,
    summary: PatchedSummary,
    uncompared: PagesByReason,
    /// Pages that equal the file and are not reported yet.
    equal: Option<AddressRange>,
}

impl FileComparison<'_> {
    /// Compares those of these pages that are private copies.
    fn pages(&mut self, page: &Page, code: &[AddressRange], sink: &mut dyn Sink) -> Result<(), Error> {
        let is_swapped = matches!(page.state(), State::Swapped | State::Migrating);
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
        let files = &mut self.files;
        let target = self.space.target();
        let opened = files.entry(region.range.start()).or_insert_with(|| {
            let file = target.modules.open(region);
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
        let offset = page.start().get() - region.range.start().get() + region.offset;
        // Bytes behind the end of the file stay zero, as in memory.
        if let Err(error) = file.read_up_to(offset, &mut of_file) {
            let what = format!("{}: {}", region.name.file_name(), words(error));
            return Ok(Err(Reason::NotInFile(what)));
        }
        let machine = opened.machine;
        let region_brief = RegionBrief::from(region);
        if memory == of_file {
            self.summary.equal += 1;
            return self.equal(page, sink).map(Ok);
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
                region: region_brief.clone(),
            })?;
        }
        self.summary.outside += u64::from(self.summary.stretches == before);
        Ok(Ok(()))
    }

    /// Adds a page that equals the file to those of its neighbours.
    fn equal(&mut self, page: AddressRange, sink: &mut dyn Sink) -> Result<(), Error> {
        let joined = self.equal.filter(|before| before.end() == page.start());
        let is_same_region = |before: AddressRange| {
            let region = self.space.region(before.start());
            region.is_some_and(|viewed| viewed.region.range.contains(page.start()))
        };
        match joined.filter(|before| is_same_region(*before)) {
            Some(before) => self.equal = AddressRange::new(before.start(), page.end()),
            None => {
                self.say_equal(sink)?;
                self.equal = Some(page);
            }
        }
        Ok(())
    }

    /// Reports the pages that equal the file.
    fn say_equal(&mut self, sink: &mut dyn Sink) -> Result<(), Stopped> {
        let Some(pages) = self.equal.take() else {
            return Ok(());
        };
        let Some(viewed) = self.space.region(pages.start()) else {
            return Ok(());
        };
        let region = &viewed.region;
        let inside = pages.start().get() - region.range.start().get();
        sink.emit(&Patch {
            address: pages.start(),
            length: pages.end().get() - pages.start().get(),
            symbol: translate::brief(&self.symbols, pages.start()),
            memory: None,
            file: None,
            file_offset: Hex(region.offset + inside),
            breakpoint: None,
            region: region.into(),
        })
    }
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

    fn machine(number: u16, big_endian: bool) -> InstructionSet {
        let mut header = [0; 20];
        header[5] = 1 + u8::from(big_endian);
        let bytes = if big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        header[18..].copy_from_slice(&bytes);
        InstructionSet::of(header)
    }

    #[test]
    fn breakpoints_have_the_names_of_their_machine() {
        let cases: &[(u16, bool, &[u8], Option<&str>)] = &[
            (62, false, &[0xcc], Some("int3")),
            (3, false, &[0xcc, 0xcc], Some("int3")),
            (62, false, &[0xcc, 0x90], None),
            (62, false, &[0xe9], None),
            (183, false, &[0x00, 0x00, 0x20, 0xd4], Some("brk")),
            (183, false, &[0x40, 0x02, 0x20, 0xd4], Some("brk")),
            (183, false, &[0x00, 0x00, 0x00, 0xd4], None),
            (243, false, &[0x02, 0x90], Some("ebreak")),
            (243, false, &[0x73, 0x00, 0x10, 0x00], Some("ebreak")),
            (21, true, &[0x7f, 0xe0, 0x00, 0x08], Some("trap")),
            (21, false, &[0x08, 0x00, 0xe0, 0x7f], Some("trap")),
            (22, true, &[0x00, 0x01], Some("trap")),
            (8, true, &[0x00, 0x05, 0x00, 0x0d], Some("break")),
            (258, false, &[0x05, 0x00, 0x2a, 0x00], Some("break")),
            (0, false, &[0xcc], None),
            (62, false, &[], None),
        ];
        for (number, big_endian, bytes, name) in cases {
            let found = machine(*number, *big_endian).breakpoint(bytes);
            assert_eq!(found, *name, "{number} {bytes:x?}");
        }
    }

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
