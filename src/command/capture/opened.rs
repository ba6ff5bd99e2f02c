//! `target capture FILE`: examine a capture.

use super::super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use super::super::source::expand_home;
use super::lost::LostProcess;
use super::output;
use crate::access::parts_in_words;
use crate::lang::display::write_quoted;
use crate::lang::parser::{Parsed, Tokens, number, pattern};
use crate::lang::{Expected, Spanned};
use crate::process::{PassedOver, Target};
use crate::render::units::counted;
use crate::report::{TargetEvent, TargetReport};
use crate::state::DebugState;
use nom::Parser;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};
use std::time::UNIX_EPOCH;

/// The target in a capture or core file, by the path as it was typed.
pub fn open(path: &str, state: &DebugState) -> Result<Target, Error> {
    let file = output::open(&expand_home(path), &state.readable_files)?;
    let time = file.metadata().ok().and_then(|found| found.modified().ok());
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs());
    Ok(Target::of_capture(Box::new(file), time)?)
}

/// The first of these names, and how many more there are.
fn first_names(names: &[String]) -> String {
    const MOST: usize = 5;
    let first = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// `target capture FILE [PID]`
#[derive(Debug)]
pub struct TargetCapture {
    /// The file; a leading `~/` is still as typed.
    pub path: Spanned<String>,
    /// Which process of it; if absent, the one that it opens on.
    pub pid: Option<u64>,
}

impl Command for TargetCapture {
    const ABOUT: About = About {
        name: CommandName::new("target capture").of_session().detached(),
        group: Group::Target,
        summary: "examine a capture in place of a process",
        text: "\
Opens a file that `capture` wrote, on this machine or on another. Only the right to read the file is needed. The \
commands that look at pages answer as they would have on the process. What the file lacks is reported as `not in \
this capture`. Opens an ELF core file too, of `export core` or of the kernel. In JSON every record has the field `capture`, the time when it was begun.

A file may have several processes (`capture FILE children`). `ps` lists them, and N, a PID, chooses one. `who` and \
`compare` then work among them.

pmdb opens no file whose name is in a capture. A module with a build-id gets symbols from an installed debug file too \
(/usr/lib/debug/.build-id). `pmdb -c FILE` does the same at the start.",
        examples: &[example("target capture before.capture", "examine a capture")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map((pattern(Expected::File), opt(number)), |(path, pid)| TargetCapture { path, pid }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, Some(&self.path.node))?;
        self.pid.map_or(Ok(()), |pid| write!(f, " {pid}"))
    }

    fn nature(&self) -> Nature {
        Nature { chooses_target: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let mut target = open(&self.path.node, context.state)?;
        if let Some(pid) = self.pid {
            target = target.member(u32::try_from(pid).unwrap_or(u32::MAX))?;
        }
        target.process.set_scan(context.state.settings.scan);
        let target = context.state.attach(target);
        let PassedOver { unknown, fields, damaged } = target.process.passed_over();
        let members = |names: &[String]| counted(names.len() as u64, "member");
        if !damaged.is_empty() {
            let (members, names) = (members(&damaged), first_names(&damaged));
            context.sink.note(format!("this capture is damaged, in the headers of {members}: {names}"))?;
        }
        for (names, what) in [(&unknown, "member"), (&fields, "field")] {
            if !names.is_empty() {
                let (counted, names) = (counted(names.len() as u64, what), first_names(names));
                context.sink.note(format!("skipped {counted} of a later version of the format: {names}"))?;
            }
        }
        let lost: Vec<LostProcess> = target.process.missing_processes().into_iter().map(LostProcess::of).collect();
        for sentence in LostProcess::sentences(&lost, "this capture") {
            context.sink.note(sentence)?;
        }
        if !context.sink.is_greeting() {
            return Ok(Flow::Done);
        }
        let identity = target.process.identity();
        let family = target.machine.process_handles().map_or(0, |found| found.processes.len());
        let others = (family > 1).then(|| {
            format!("it has {family} processes: `ps` lists them, `target capture FILE PID` examines another one")
        });
        let parts = parts_in_words(&target.process.captured_parts()).map(|parts| format!("it has {parts} only"));
        context.sink.emit(&TargetReport {
            event: TargetEvent::Opened,
            pid: identity.pid,
            name: identity.name,
            executable: target.process.executable(),
            regions: target.process.regions().ok().map(|regions| regions.len() as u64),
            remarks: ["it is a capture: nothing changes in it".to_owned()]
                .into_iter()
                .chain(parts)
                .chain(others)
                .collect(),
        })?;
        Ok(Flow::Done)
    }
}
