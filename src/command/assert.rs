//! `assert EXPRESSION[, "message"]`

use super::{About, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Expression, Spanned};
use crate::report::AssertionReport;

pub(super) const ABOUT: About = About {
    name: CommandName::new("assert").whole(),
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

pub(super) fn run(context: &mut Context, condition: &Spanned<Expression>, message: Option<&str>) -> Outcome {
    Ok(Flow::Asserted(Box::new(AssertionReport {
        message: message.map(str::to_owned),
        ..eval::judge(condition, context.state)?
    })))
}
