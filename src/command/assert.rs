//! `assert EXPRESSION[, "message"]`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::parser::{Parsed, Tokens, expression, mark, quoted_text};
use crate::lang::{Expression, Spanned, escape};
use crate::report::AssertionReport;
use nom::Parser;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// `assert EXPRESSION[, "message"]`
#[derive(Debug)]
pub struct Assert {
    /// What must be true.
    pub condition: Spanned<Expression>,
    /// The message if it is not.
    message: Option<String>,
}

impl Command for Assert {
    const ABOUT: About = About {
        name: CommandName::new("assert").of_session().whole().detached(),
        group: Group::Scripts,
        summary: "report an error unless a condition holds",
        text: "\
Prints nothing if the expression is true. Otherwise fails with status 1, and shows the message and the values in the \
expression. An expression that cannot be evaluated is an error too: it neither holds nor fails.

Two options of pmdb are for assertions:

  --keep-going   evaluate all assertions of a run; its last line counts those that held and those that failed
  --report FILE  write the results as JUnit XML for CI, with the place of each and the lines that led there

$_failed is the number of assertions that failed or could not be evaluated, for the last lines of a file.",
        examples: &[
            example("assert count(demo_buffer where not present) == 0", "check that all of it is in memory"),
            example("assert swapped(all) == 0, \"nothing may be swapped\"", "add a message"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, condition) = expression(input)?;
        let (input, message) = opt(preceded(mark(","), cut(quoted_text))).parse(input)?;
        Ok((input, Assert { condition, message: message.map(|message| message.node) }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.condition.node)?;
        self.message.as_ref().map_or(Ok(()), |message| write!(f, ", {}", escape('"', message)))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        Ok(Flow::Asserted(Box::new(AssertionReport {
            message: self.message.clone(),
            ..eval::judge(&self.condition, context.state)?
        })))
    }
}
