//! `capture FILE`: write what the kernel says of the process into a file; `target capture FILE`: examine such a file.

mod opened;
mod output;

use super::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example, expand_home};
use crate::lang::display::quoted;
use crate::lang::parser::{Parsed, Tokens, option, pattern};
use crate::lang::{Expected, Spanned};
use crate::process::Capture;
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, Shape};
use crate::symbol::{Symbols, read_tables};
use nom::Parser;
use nom::combinator::map;
pub use opened::TargetCapture;
use std::fmt::{self, Formatter};

/// `capture FILE [--overwrite]`
#[derive(Debug)]
pub struct WriteCapture {
    /// The file; a leading `~/` is still as typed.
    path: Spanned<String>,
    /// Whether a file that exists is replaced.
    overwrite: bool,
}

impl Command for WriteCapture {
    const RECORDS: &'static [Shape] = &[CaptureReport::SHAPE];

    const ABOUT: About = About {
        name: CommandName::new("capture").whole(),
        group: Group::Target,
        summary: "write all that the kernel shows of the process into a file",
        text: "\
Writes a capture: one file with the regions, the page map, the words of the page frames, the answers about the \
machine, and the symbol tables of the process. It does not contain the memory of the process. `target capture FILE` \
and `pmdb -c FILE` open it later, on any machine and as any user who can read it. The commands that look at pages \
answer as they would have then.

  --overwrite  replace a file that exists

The file appears when it is complete, and only its owner can read it. With sudo it belongs to the user who ran sudo. \
The process is not stopped. Pages that change during the capture are counted, and facts about their frames are then \
unknown.

A capture identifies the machine and the program, and shows where the memory of the process lies. `help captures` \
describes its contents and its format.",
        examples: &[example("capture before.capture", "write a capture into a file")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let parts = (pattern(Expected::File), option("--overwrite"));
        map(parts, |(path, overwrite)| WriteCapture { path, overwrite }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        quoted(f, Some(&self.path.node))?;
        f.write_str(if self.overwrite { " --overwrite" } else { "" })
    }

    fn nature(&self) -> Nature {
        Nature { writes_file: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        if target.process.captured().is_some() {
            return Err(Error::refused("the target is a capture already", "copy its file"));
        }
        let path = expand_home(&self.path.node);
        let file = output::CaptureFile::create(&path, self.overwrite)?;
        let capture = Capture::begin(&target, file.writer()?);
        let mut budget = context.sink.budget();
        let captured = capture.write(&mut budget.clone(), |target| -> Result<(), Error> {
            let symbols = Symbols::within(budget.clone());
            let regions = target.process.regions()?;
            let names = symbols.over(target, &regions);
            for survey in names.surveys() {
                let survey = survey?;
                if let Some(region) = survey.module.regions.first()
                    && let Ok(file) = target.modules.open(region)
                {
                    read_tables(file, &mut budget);
                }
                if let Ok(path) = &survey.separate {
                    let theirs = target.modules.at_path(path.as_bytes()).ok().flatten();
                    let separate = theirs.or_else(|| target.modules.at_own_path(path.as_bytes()).ok().flatten());
                    separate.into_iter().for_each(|file| read_tables(file, &mut budget));
                }
                // What one look-up reads beside the tables.
                let executable = survey.module.regions.iter().find(|region| region.permissions.execute);
                _ = executable.map(|region| names.at(region.range.start()));
            }
            _ = names.jit_survey()?;
            Ok(())
        })?;
        let bytes = file.publish()?;
        context.sink.emit(&CaptureReport {
            file: self.path.node.clone(),
            bytes,
            pid: target.process.identity().pid,
            regions: captured.regions,
            pages: captured.pages,
            frames: captured.frames,
            changed: captured.changed,
        })?;
        Ok(Flow::Done)
    }
}

record! {
    /// `capture`
    pub struct CaptureReport as "capture" {
        /// The file, as it was typed.
        file: String,
        /// Its size.
        bytes: u64,
        /// Process id.
        pid: u32,
        /// Regions.
        regions: u64,
        /// Pages with something in their page-map entries.
        pages: u64,
        /// Frames whose words were written, the rest of their folios included.
        frames: u64,
        /// Pages that got another frame, or none, during the capture: facts about their frames are unknown.
        changed: u64,
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
    line.plain("captured process ").plain(report.pid).plain(" in ").push(Role::Name, &report.file);
    line.plain(format!(
        ": {}, {}, {}, {}",
        size(report.bytes),
        counted(report.regions, "region"),
        counted(report.pages, "page"),
        counted(report.frames, "frame")
    ));
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
        vec![Box::new(CaptureReport {
            file,
            bytes: 2_556_416,
            pid: 4242,
            regions: 112,
            pages: 6_469,
            frames: 11_196,
            changed: 2,
        })]
    }
}
