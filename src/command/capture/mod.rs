//! `capture FILE`: write what the kernel says of the process into a file; `target capture FILE`: examine such a file.

mod core;
mod heap;
mod lost;
mod memory;
mod opened;
mod output;

use super::account::family::{FamilyOf, family};
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use super::source::expand_home;
use crate::budget::{Budget, OutOfBudget};
use crate::eval::{self, Spans};
use crate::inspect::AddressSpace;
use crate::kernel::words::worded;
use crate::lang::display::{self, write_quoted};
use crate::lang::parser::{
    Parsed, Tokens, after, clause, hint_at_missing_with, list_once, option, pattern, split_text, word,
};
use crate::lang::{self, Expected, Spanned};
use crate::process::{self, Capture, CaptureContent, CgroupMemory, MissingProcess, ProcessHandle, Target, unopened};
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, Shape};
use crate::symbol::{Symbols, read_tables};
pub use core::ExportCore;
use heap::HeapCounts;
use lost::LostProcess;
use memory::{MEMORY_WARNING, MemoryCounts};
use nom::Parser;
use nom::combinator::opt;
use nom::sequence::preceded;
pub use opened::{TargetCapture, open};
pub(super) use output::no_regular;
use std::fmt::{self, Formatter};

worded! {
    /// What a capture has beside the answers about the process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Extra, word {
        /// The resident memory of the process.
        Memory = "memory",
        /// With it, memory that programs exclude from core files (MADV_DONTDUMP).
        Dontdump = "dontdump",
        /// The sizes of the chunks of glibc's heaps, without other memory.
        Heap = "heap",
        /// The flags and map counts of all frames of the machine.
        Frames = "frames",
    }
}

/// What is captured.
#[derive(Debug)]
enum CaptureSubject {
    /// A part of memory.
    Range(Spanned<lang::Range>),
    /// Several processes.
    Family(FamilyOf),
}

/// `capture FILE [--overwrite] [RANGE|FAMILY] [with WORD, …] [without names]`
#[derive(Debug)]
pub struct WriteCapture {
    /// The file; a leading `~/` is still as typed.
    path: Spanned<String>,
    /// Whether a file that exists is replaced.
    may_overwrite: bool,
    /// Of what; of all of the attached process if absent.
    of: Option<CaptureSubject>,
    /// What else is written.
    with: Vec<Extra>,
    /// Whether numbers replace names.
    without_names: bool,
    /// Whether it is opened as soon as it is written, so that only a file will do.
    is_read_back: bool,
    /// Whether `without names` is among the words behind a pasted row, which are passed over.
    is_passed_over: bool,
}

impl Command for WriteCapture {
    const RECORDS: &'static [Shape] = &[CaptureReport::SHAPE];

    const ABOUT: About = About {
        name: CommandName::new("capture").whole().alone_behind(&["cgroup", "of", "\""]),
        group: Group::Target,
        summary: "write all that the kernel shows of the process into a file",
        text: "\
Writes a capture: one file with the regions, the page map, the words of the page frames, the answers about the \
machine, and the symbol tables of the process. It contains memory of the process only on request. `target capture FILE` \
and `pmdb -c FILE` open it later, on any machine and as any user who can read it. The commands that look at pages \
answer as they would have then. `diff from FILE` shows what has changed since, and `snapshot NAME from FILE` keeps the \
state in the file as a snapshot.

  -              in place of a file: standard output, or the pipe or file that the command is directed to
  --overwrite    replace a file that exists
  RANGE          only the pages of this range, rounded to huge pages, and no memory outside it
  FAMILY         several processes in one file, by one of these forms:
  children       the process and its descendants
  of NAME        all processes of this name
  of A, B, …     these processes: each a PID, a variable or a name
  cgroup [PATH]  the processes of its memory cgroup, or of another, and of those below it
  with memory    also the resident memory of the process: passwords and keys are in it
  with dontdump  also memory that the program excludes from core files (MADV_DONTDUMP)
  with heap      also the sizes of the chunks of glibc's heaps, so that `heap` works: no other memory
  with frames    also the words of all frames of the machine, for `account frames` and `account cgroup`
  without names  numbers for the names of files, processes, threads and cgroups; no symbols and no command line

The file appears when it is complete, and only its owner can read it. It replaces a regular file only. A named pipe or a \
device is written into, without --overwrite, and a symbolic link is refused. With sudo it belongs to the user who ran sudo. \
The process is not stopped. Pages that change during the capture are counted, and facts about their frames are then \
unknown. Where a process of a family ends meanwhile, the capture continues without it, and names it.

A capture identifies the machine and the program, and shows where the memory of the process lies. `help captures` \
describes its contents and its format.",
        examples: &[
            example("capture before.capture", "write a capture into a file"),
            example("capture - | gzip > demo.capture.gz", "write the capture to a pipe, here to compress it further"),
            example("capture heap.capture heap", "write the pages of the heap alone"),
            example("capture family.capture children", "write a process and its descendants into one file"),
            example("capture to-send.capture without names", "write a capture that others may see"),
            example("capture before.capture --overwrite with memory", "write one with the resident memory"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (mut input, (path, overwrite)) = (pattern(Expected::File), option("--overwrite")).parse(input)?;
        // Without a word behind them, `with` and `without` are names like any other.
        let is_clause = |input| {
            preceded(word("with"), list_once::<Extra>).parse(input).is_ok()
                || preceded(word("without"), word("names")).parse(input).is_ok()
        };
        let before = input;
        let mut of = None;
        if let Ok((behind, family)) = family(input)
            && (split_text(behind).0.is_empty() || is_clause(behind))
        {
            (input, of) = (behind, Some(CaptureSubject::Family(family)));
        } else if !is_clause(input) {
            (input, of) = opt(lang::parser::range.map(CaptureSubject::Range)).parse(input)?;
        }
        let (mut with, mut without) = (None, None);
        while clause(&mut input, &mut with, after("with", list_once::<Extra>))?
            || clause(&mut input, &mut without, after("without", word("names")))?
        {}
        if with.is_none() {
            hint_at_missing_with::<Extra>(input);
        }
        let passed_over = before.rest.get(..before.rest.len() - input.rest.len()).unwrap_or_default();
        let is_passed_over = without.is_none()
            && passed_over
                .windows(2)
                .any(|pair| matches!(pair, [one, other] if (one.text, other.text) == ("without", "names")));
        let (with, without_names) = (with.unwrap_or_default(), without.is_some());
        Ok((
            input,
            WriteCapture {
                path,
                may_overwrite: overwrite,
                of,
                with,
                without_names,
                is_read_back: false,
                is_passed_over,
            },
        ))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, Some(&self.path.node))?;
        display::word_if(f, self.may_overwrite, "--overwrite")?;
        match &self.of {
            Some(CaptureSubject::Range(range)) => write!(f, " {}", range.node)?,
            Some(CaptureSubject::Family(family)) => family.write(f)?,
            None => {}
        }
        let with: Vec<&str> = self.with.iter().map(|extra| extra.word()).collect();
        display::clause(f, "with", (!with.is_empty()).then(|| with.join(", ")))?;
        display::word_if(f, self.without_names, "without names")
    }

    fn nature(&self) -> Nature {
        Nature { writes_file: !self.is_stream(), ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        // Processes of a family are found among the live ones.
        if context.state.machine().is_captured() {
            return Err(Error::refused("the target is a capture already", "copy its file"));
        }
        if let [b'-', _, ..] = self.path.node.as_bytes() {
            let message = format!("`{}` is no option of `capture`", self.path.node);
            let error = eval::Error::new(self.path.at, message);
            return Err(error.hint(format!("`capture FILE`, or for this name `capture ./{}`", self.path.node)).into());
        }
        // From here on notes go elsewhere.
        let stream = self.is_stream().then(|| output::stream(context.sink)).transpose()?;
        let CapturedProcesses { target, others, missing, group } = self.processes(context)?;
        let has = |extra| self.with.contains(&extra);
        let has_memory = self.has_memory();
        self.check()?;
        let spans = self.spans(context, &target)?;
        let ranges = spans.as_ref().map(Spans::ranges);
        let (file, out) = match stream {
            Some(stream) => (None, stream),
            None => {
                // A snapshot is read back from its file.
                let path = expand_home(&self.path.node);
                let file = output::CaptureFile::create(&path, self.may_overwrite, !self.is_read_back)?;
                let out = file.writer(context.sink.budget())?;
                (Some(file), out)
            }
        };
        if has_memory {
            context.sink.note(MEMORY_WARNING.to_owned())?;
        }
        let subject = if self.without_names { target.without_names() } else { target };
        let capture = Capture::begin(&subject, out).with_all_frames(has(Extra::Frames)).in_ranges(ranges);
        let capture =
            if let Some(CaptureSubject::Family(_)) = self.of { capture.with_family(&others, missing) } else { capture };
        let mut budget = context.sink.budget();
        group.map_or(Ok(()), |group| capture.keep_group(group.path.as_bytes(), &mut budget))?;
        let (mut memory, mut heap) = (MemoryCounts::default(), HeapCounts::default());
        let sink = &mut *context.sink;
        let mut look = |done, total| {
            sink.progress(done, total, "words of frames").map_err(|_| process::Error::from(OutOfBudget::Interrupted))
        };
        let captured = capture.write(&mut budget.clone(), &mut look, |member| -> Result<(), Error> {
            if has_memory {
                memory.keep(member, ranges, has(Extra::Dontdump), &mut budget)?;
            }
            if has(Extra::Heap) {
                heap.keep(member, &budget)?;
            }
            keep_symbols(&member.target, self.without_names, &mut budget)
        })?;
        file.map(output::CaptureFile::publish).transpose()?;
        context.sink.emit(&self.report(
            subject.process.identity().pid,
            captured,
            Some(memory).filter(|_| has_memory),
            Some(heap).filter(|_| has(Extra::Heap)),
        ))?;
        Ok(Flow::Done)
    }
}

impl WriteCapture {
    /// Writes the capture that a snapshot is then read from. Its contents come from the memory of the process.
    pub(super) fn of_snapshot(
        path: &Spanned<String>,
        may_overwrite: bool,
        range: Option<&Spanned<lang::Range>>,
        with_memory: bool,
    ) -> Self {
        let of = range.cloned().map(CaptureSubject::Range);
        let with = if with_memory { vec![Extra::Memory] } else { Vec::new() };
        WriteCapture {
            path: path.clone(),
            may_overwrite,
            of,
            with,
            without_names: false,
            is_read_back: true,
            is_passed_over: false,
        }
    }

    fn has_memory(&self) -> bool {
        self.with.iter().any(|extra| matches!(extra, Extra::Memory | Extra::Dontdump))
    }

    /// Refuses what contradicts itself.
    fn check(&self) -> Result<(), Error> {
        if self.is_passed_over {
            let message = "`without names` after a pasted row is part of the row";
            return Err(Error::refused(message, "write the range as `START..END`"));
        }
        if self.has_memory() && self.without_names {
            return Err(Error::refused("memory contains names", "leave out `with memory` or `without names`"));
        }
        if self.with.contains(&Extra::Heap) && matches!(self.of, Some(CaptureSubject::Range(_))) {
            return Err(Error::refused("a heap is not in one range", "leave out the range or `with heap`"));
        }
        Ok(())
    }

    /// The range to capture, if not all is.
    fn spans(&self, context: &mut Context, target: &Target) -> Result<Option<Spans>, Error> {
        let Some(CaptureSubject::Range(range)) = &self.of else {
            return Ok(None);
        };
        let of_frames = || eval::Error::new(range.at, "this is a range of frames; `with frames` captures all of them");
        let spans = eval::range(range, context.state)?.addresses(of_frames)?;
        if AddressSpace::in_ranges(target, spans.ranges())?.viewed_regions().is_empty() {
            context.sink.note("nothing is mapped in this range")?;
        }
        Ok(Some(spans))
    }

    fn report(
        &self,
        pid: u32,
        captured: CaptureContent,
        memory: Option<MemoryCounts>,
        heap: Option<HeapCounts>,
    ) -> CaptureReport {
        let counts = memory.unwrap_or_default();
        let heaps = heap.unwrap_or_default();
        CaptureReport {
            file: self.path.node.clone(),
            bytes: captured.bytes,
            pid,
            processes: captured.processes,
            missing: captured.missing.iter().filter(|one| !one.is_in_part).count() as u64,
            lost: captured.missing.into_iter().map(LostProcess::of).collect(),
            regions: captured.regions,
            pages: captured.pages,
            frames: captured.frames,
            changed: captured.changed,
            memory: memory.map(|memory| memory.bytes),
            unread: counts.unread,
            left_out: counts.left_out,
            heap: heap.map(|heap| heap.bytes),
            heap_chunks: heaps.chunks,
            heap_arenas: heaps.arenas,
            heap_incomplete: heaps.incomplete,
            names: !self.without_names,
        }
    }

    /// The process that the file opens on, and the others. Of a name it is the attached one, or the first that can be
    /// opened.
    fn processes(&self, context: &mut Context) -> Result<CapturedProcesses, Error> {
        let Some(CaptureSubject::Family(family)) = &self.of else {
            let target = (*context.target()?).clone();
            return Ok(CapturedProcesses { target, others: Vec::new(), missing: Vec::new(), group: None });
        };
        let (mut others, group) = family.processes(context)?;
        // Its path is a name.
        let group = group.filter(|_| !self.without_names);
        let attached = context.state.target().map(|target| target.process.identity().pid);
        if let Some(first) = others.iter().position(|one| Some(one.pid) == attached) {
            others.remove(first);
            let target = (*context.target()?).clone();
            return Ok(CapturedProcesses { target, others, missing: Vec::new(), group });
        }
        let mut missing = Vec::new();
        let mut refusal = None;
        for (index, one) in others.iter().enumerate() {
            match Target::attach(one.pid) {
                Ok(target) => {
                    target.process.set_scan(context.state.settings.scan);
                    return Ok(CapturedProcesses { target, others: others.split_off(index + 1), missing, group });
                }
                Err(error) => {
                    missing.push(unopened(one.pid, &error));
                    refusal = Some(error);
                }
            }
        }
        Err(refusal.map_or_else(|| Error::refused("no process to capture", String::new()), Error::from))
    }

    /// Whether it is written where other commands print.
    fn is_stream(&self) -> bool {
        let is_output = matches!(self.path.node.as_str(), "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1");
        self.path.node == "-" || is_output && !self.may_overwrite && !self.is_read_back
    }
}

/// The processes of a capture.
struct CapturedProcesses {
    /// The one that the file opens on.
    target: Target,
    others: Vec<ProcessHandle>,
    /// Those of the family that could not be opened.
    missing: Vec<MissingProcess>,
    /// The cgroup that they are in.
    group: Option<CgroupMemory>,
}

/// Asks for what names need: the symbol tables of the programs and libraries, and the parts that one look-up reads.
fn keep_symbols(target: &Target, without_names: bool, budget: &mut Budget) -> Result<(), Error> {
    let symbols = Symbols::with_budget(budget.clone());
    let mut regions = target.process.regions()?;
    // Files are left out where they are opened, but the symbols of the vdso are read from memory.
    regions.retain(|region| !without_names || region.name.as_bytes() != b"[vdso]");
    let names = symbols.over(target, &regions);
    for survey in names.surveys() {
        let survey = survey?;
        if let Ok(file) = survey.module.open(&target.modules) {
            read_tables(file, budget);
        }
        if let Ok(path) = &survey.separate {
            let theirs = target.modules.at_path(path.as_bytes()).ok().flatten();
            let separate = theirs.or_else(|| target.modules.at_own_path(path.as_bytes()).ok().flatten());
            separate.into_iter().for_each(|file| read_tables(file, budget));
        }
        let executable = survey.module.regions.iter().find(|region| region.permissions.execute);
        _ = executable.map(|region| names.at(region.range.start()));
    }
    _ = names.jit_survey()?;
    Ok(())
}

record! {
    /// `capture`
    pub struct CaptureReport as "capture" {
        /// The file, as it was typed; `-` for standard output.
        file: String,
        /// Its size.
        bytes: u64,
        /// Process id; of a family that of the process that the file opens on.
        pid: u32,
        /// Processes.
        processes: u64,
        /// Processes of the family that are not in it: they ended during the capture or could not be opened.
        missing: u64,
        /// These processes, and those whose pages are in it while later answers are not.
        lost: Vec<LostProcess>,
        /// Regions of all processes.
        regions: u64,
        /// Pages with something in their page-map entries.
        pages: u64,
        /// Frames whose words were written, the rest of their folios included.
        frames: u64,
        /// Pages that got another frame, or none, during the capture: facts about their frames are unknown.
        changed: u64,
        /// Bytes of memory; absent without `with memory`.
        memory: Option<u64>,
        /// Present pages whose memory was not read, because they changed or the kernel refused.
        unread: u64,
        /// Regions whose memory was left out, because the program excludes it from core files.
        left_out: u64,
        /// Bytes in the file of the sizes of chunks; absent without `with heap`.
        heap: Option<u64>,
        /// Chunks whose sizes are in it.
        heap_chunks: u64,
        /// Arenas of glibc's malloc.
        heap_arenas: u64,
        /// Those of them that could not be walked: no size of their chunks is in it.
        heap_incomplete: u64,
        /// Whether names are in it; `false` if numbers replace them.
        names: bool,
    }
}

impl Record for CaptureReport {
    fn write(&self, text: &mut Text) {
        text.line(lines, self);
    }
}

/// Writes the report.
fn lines(lines: &mut Lines, report: &CaptureReport) {
    let line = lines.line();
    line.plain("captured process ").plain(report.pid);
    if report.processes > 1 {
        line.plain(format!(" and {} more", report.processes - 1));
    }
    if report.file != "-" {
        line.plain(" in ").push(Role::Name, &report.file);
    }
    line.plain(format!(
        ": {}, {}, {}, {}",
        size(report.bytes),
        counted(report.regions, "region"),
        counted(report.pages, "page"),
        counted(report.frames, "frame")
    ));
    if let Some(bytes) = report.heap {
        let (chunks, arenas, incomplete) = (report.heap_chunks, report.heap_arenas, report.heap_incomplete);
        HeapCounts { bytes, chunks, arenas, incomplete }.write(lines);
    }
    if let Some(bytes) = report.memory {
        let line = lines.line();
        line.plain(size(bytes)).plain(" of memory");
        if report.unread > 0 {
            line.plain(format!(", {} not read", counted(report.unread, "page")));
        }
        if report.left_out > 0 {
            line.plain(format!(", {} left out (with dontdump)", counted(report.left_out, "region")));
        }
    } else {
        lines.line().word(
            "",
            Role::Dim,
            match report.heap {
                Some(_) => "no other memory: it cannot follow `*pointer` (see `with memory`)",
                None => "no memory: it cannot follow `*pointer`, nor examine the heap (`with memory`, `with heap`)",
            },
        );
    }
    for sentence in LostProcess::sentences(&report.lost, "the capture") {
        lines.line().plain(sentence);
    }
    if !report.names {
        lines.line().plain("numbers replace names; see `help captures` for what still identifies the machine");
    }
    if report.changed > 0 {
        lines
            .line()
            .plain(counted(report.changed, "page"))
            .plain(" changed during the capture: stop the process first");
    }
}

#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let file = "before.capture".to_owned();
        let (memory, unread, left_out) = (Some(26_214_400), 3, 1);
        let nameless = CaptureReport {
            file: "-".to_owned(),
            bytes: 512_000,
            pid: 4242,
            processes: 4,
            missing: 1,
            lost: vec![
                LostProcess { pid: 4244, name: Some("worker".into()), why: "ended".to_owned(), in_part: true },
                LostProcess { pid: 4245, name: None, why: "ended".to_owned(), in_part: false },
            ],
            regions: 112,
            pages: 6_469,
            frames: 11_196,
            changed: 0,
            memory: None,
            unread: 0,
            left_out: 0,
            heap: Some(48_128),
            heap_chunks: 131_072,
            heap_arenas: 2,
            heap_incomplete: 1,
            names: false,
        };
        vec![
            Box::new(nameless),
            Box::new(CaptureReport {
                file,
                bytes: 2_556_416,
                pid: 4242,
                processes: 1,
                missing: 0,
                lost: Vec::new(),
                regions: 112,
                pages: 6_469,
                frames: 11_196,
                changed: 2,
                memory,
                unread,
                left_out,
                heap: None,
                heap_chunks: 0,
                heap_arenas: 0,
                heap_incomplete: 0,
                names: true,
            }),
        ]
    }
}
