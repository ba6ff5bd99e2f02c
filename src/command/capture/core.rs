//! `export core FILE`: write an ELF core file, which debuggers open.

use super::super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use super::super::snapshot::spans;
use super::super::source::expand_home;
use super::MEMORY_WARNING;
use super::output::CaptureFile;
use crate::inspect::{CoreContents, write_core};
use crate::lang::display::{word_if, write_quoted};
use crate::lang::parser::{Parsed, Tokens, option, pattern, range};
use crate::lang::{self, Expected, Spanned};
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, Shape};
use nom::Parser;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};
use std::io::BufWriter;

/// `export core FILE [--overwrite] [RANGE]`
#[derive(Debug)]
pub struct ExportCore {
    /// The file; a leading `~/` is still as typed.
    path: Spanned<String>,
    /// Whether a file that exists is replaced.
    may_overwrite: bool,
    /// Of which part of memory; all if absent.
    range: Option<Spanned<lang::Range>>,
}

impl Command for ExportCore {
    const RECORDS: &'static [Shape] = &[CoreReport::SHAPE];

    const ABOUT: About = About {
        name: CommandName::new("export core").whole(),
        group: Group::Target,
        summary: "write an ELF core file of the process for a debugger",
        text: "\
Writes an ELF core file, which gdb and lldb open: `gdb EXECUTABLE FILE`. It contains the resident pages of the process or \
of a range, the vdso, its threads, the auxiliary vector, and the list of mapped files. The process is neither stopped nor traced.

  --overwrite  replace a file that exists

The file replaces a regular file only, and cannot be a pipe or a device. It has only the exported symbols of the program; `gdb EXECUTABLE FILE` reads all of them. Pages that are not \
resident are not in the file. Regions that the program excludes from core files (MADV_DONTDUMP) \
are left out. For a waiting or stopped thread, the file has the program counter and the stack pointer. /proc does not \
show the other registers: they are 0, and a note in the file lists them as unknown. Stop the process first for a \
consistent state of all threads.

`pmdb -c FILE` opens the file, for the commands about regions, pages, memory, threads and modules. Pages that are \
missing are `not in this core`. Core files of the kernel and of gdb have no page map: \
`translate` and `explain` show the place of an address in them, and not its page. A core file contains passwords and keys of the process: only \
its owner can read the file, and with sudo the user who ran sudo.",
        examples: &[example("export core demo.core", "write a core file of all resident memory")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let parts = (pattern(Expected::File), option("--overwrite"), opt(range));
        map(parts, |(path, overwrite, range)| ExportCore { path, may_overwrite: overwrite, range }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, Some(&self.path.node))?;
        word_if(f, self.may_overwrite, "--overwrite")?;
        match &self.range {
            Some(range) => write!(f, " {}", range.node),
            None => Ok(()),
        }
    }

    fn nature(&self) -> Nature {
        Nature { writes_file: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        if target.process.is_core() {
            return Err(Error::refused("the target is a core file already", "copy its file"));
        }
        let ranges = match &self.range {
            Some(range) => spans(range, context.state)?.ranges().to_vec(),
            None => target.process.regions()?.iter().map(|region| region.range).collect(),
        };
        context.sink.note(MEMORY_WARNING.to_owned())?;
        let file = CaptureFile::create(&expand_home(&self.path.node), self.may_overwrite, false)?;
        let mut out = BufWriter::with_capacity(256 << 10, file.file()?);
        let mut budget = context.sink.budget();
        let contents = write_core(&target, &ranges, &mut out, &mut budget)?;
        drop(out);
        let bytes = file.publish()?;
        let CoreContents { regions, bytes: memory, threads, waiting, left_out, unread } = contents;
        context.sink.emit(&CoreReport {
            file: self.path.node.clone(),
            bytes,
            pid: target.process.identity().pid,
            regions,
            memory,
            unread: unread.changed + unread.unreadable,
            left_out,
            threads,
            waiting,
        })?;
        Ok(Flow::Done)
    }
}

record! {
    /// `export core`
    pub struct CoreReport as "core" {
        /// The file, as it was typed.
        file: String,
        /// Its size.
        bytes: u64,
        /// Process id.
        pid: u32,
        /// Regions.
        regions: u64,
        /// Bytes of memory.
        memory: u64,
        /// Present pages whose memory was not read, because they changed or the kernel refused.
        unread: u64,
        /// Regions whose memory was left out, because the program excludes it from core files.
        left_out: u64,
        /// Threads.
        threads: u64,
        /// Threads whose program counter and stack pointer are known.
        waiting: u64,
    }
}

impl Record for CoreReport {
    fn write(&self, text: &mut Text) {
        text.line(lines, self);
    }
}

/// Writes the report.
fn lines(lines: &mut Lines, report: &CoreReport) {
    let line = lines.line();
    line.plain("core of process ").plain(report.pid).plain(" in ").push(Role::Name, &report.file);
    let (memory, regions) = (size(report.memory), counted(report.regions, "region"));
    line.plain(format!(": {memory} of memory, {regions}, {}", counted(report.threads, "thread")));
    let running = report.threads.saturating_sub(report.waiting);
    let counts = [
        (report.unread, "page", "not read"),
        (report.left_out, "region", "left out"),
        (running, "thread", "without registers: stop the process first"),
    ];
    for (count, what, why) in counts.into_iter().filter(|(count, ..)| *count > 0) {
        lines.line().plain(format!("{} {why}", counted(count, what)));
    }
}

#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(CoreReport {
            file: "demo.core".to_owned(),
            bytes: 26_300_416,
            pid: 4242,
            regions: 112,
            memory: 26_214_400,
            unread: 3,
            left_out: 1,
            threads: 4,
            waiting: 3,
        })]
    }
}
