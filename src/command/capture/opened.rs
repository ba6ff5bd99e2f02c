//! `target capture FILE`: examine a capture.

use super::super::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example, expand_home};
use super::output;
use crate::lang::display::quoted;
use crate::lang::parser::{Parsed, Tokens, pattern};
use crate::lang::{Expected, Spanned};
use crate::process::Target;
use crate::render::units::counted;
use crate::report::TargetReport;
use nom::Parser;
use nom::combinator::map;
use std::fmt::{self, Formatter};
use std::time::UNIX_EPOCH;

/// The target in a capture or core file, by the path as it was typed.
pub fn open(path: &str) -> Result<Target, Error> {
    let file = output::open(&expand_home(path))?;
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

/// `target capture FILE`
#[derive(Debug)]
pub struct TargetCapture(pub Spanned<String>);

impl Command for TargetCapture {
    const ABOUT: About = About {
        name: CommandName::new("target capture").detached(),
        group: Group::Target,
        summary: "examine a capture in place of a process",
        text: "\
Opens a file that `capture` wrote, on this machine or on another. Only the right to read the file is needed. The \
commands that look at pages answer as they would have on the process. What the file lacks is reported as `not in \
this capture`. Opens an ELF core file too, of `export core` or of the kernel. In JSON every record has the field `capture`, the time when it was begun.

pmdb opens no other file because of a capture, whatever names are in it. `pmdb -c FILE` does the same at the start.",
        examples: &[example("target capture before.capture", "examine a capture")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(pattern(Expected::File), TargetCapture).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        quoted(f, Some(&self.0.node))
    }

    fn nature(&self) -> Nature {
        Nature { chooses_target: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = open(&self.0.node)?;
        target.process.set_scan(context.state.settings.scan);
        let target = context.state.attach(target);
        let unknown = target.process.unknown_parts();
        if !unknown.is_empty() {
            let (members, names) = (counted(unknown.len() as u64, "member"), first_names(&unknown));
            context.sink.note(format!("skipped {members} of a later version of the format: {names}"))?;
        }
        if !context.sink.is_greeting() {
            return Ok(Flow::Done);
        }
        let identity = target.process.identity();
        context.sink.emit(&TargetReport {
            event: "opened",
            pid: identity.pid,
            name: identity.name,
            executable: target.process.executable(),
            regions: target.process.regions().ok().map(|regions| regions.len() as u64),
            remarks: vec!["it is a capture: nothing changes in it".to_owned()],
        })?;
        Ok(Flow::Done)
    }
}
