//! `detach`: stop examining the process.

use super::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use crate::lang::parser::{Parsed, Tokens};
use crate::report::TargetReport;

/// `detach`
#[derive(Debug)]
pub struct Detach;

impl Command for Detach {
    const ABOUT: About = About {
        name: CommandName::new("detach"),
        group: Group::Target,
        summary: "detach from the process",
        text: "Stops examining the process. The process itself is not affected.",
        examples: &[example("detach", "detach from the process")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, Detach))
    }

    fn nature(&self) -> Nature {
        Nature { chooses_target: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Some(target) = context.state.detach() else {
            return Err(Error::no_target());
        };
        let identity = target.process.identity();
        context.sink.emit(&TargetReport {
            event: "detached",
            pid: identity.pid,
            name: identity.name,
            executable: None,
            regions: None,
            remarks: Vec::new(),
        })?;
        Ok(Flow::Done)
    }
}
