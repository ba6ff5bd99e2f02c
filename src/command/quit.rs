//! `quit [STATUS]`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::parser::{Parsed, Tokens, address};
use crate::lang::{Expression, Spanned};
use nom::Parser;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};

/// `quit [STATUS]`
#[derive(Debug)]
pub struct Quit {
    /// The exit status; 0 if absent.
    status: Option<Spanned<Expression>>,
}

impl Command for Quit {
    const ABOUT: About = About {
        name: CommandName::new("quit").short(&["q"]).detached(),
        group: Group::Language,
        summary: "leave pmdb",
        text: "\
Leaves with the given exit status, or 0. Ctrl-D at the prompt does the same. The target is not affected.",
        examples: &[example("quit", "leave pmdb")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(opt(address), |status| Quit { status }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.status.as_ref().map_or(Ok(()), |status| write!(f, " {}", status.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Some(written) = &self.status else {
            return Ok(Flow::Quit(0));
        };
        let value = match &written.node {
            Expression::Name(_) => None,
            _ => eval::integer(written, context.state)?.to_u64(),
        };
        match value.and_then(|number| u8::try_from(number).ok()) {
            Some(status) => Ok(Flow::Quit(status)),
            None => Err(eval::Error::new(written.at, "an exit status is a number from 0 to 255").into()),
        }
    }
}
