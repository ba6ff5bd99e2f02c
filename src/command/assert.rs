//! `assert EXPRESSION[, "message"]`

use super::{About, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Expression, Spanned};
use crate::report::AssertionReport;

pub(super) const ABOUT: About = About {
    name: "assert",
    group: Group::Scripts,
    summary: "report an error unless a condition holds",
    text: "Prints nothing if the expression is true. Otherwise it is an error with status 1, which shows the message and \
           the values in the expression. An expression that cannot be evaluated is an error too: it neither holds nor fails.\n\n\
           With `--keep-going` a run evaluates all its assertions, and its last line says how many held and how many failed. \
           $_failed is the number of those that failed or could not be evaluated, for the file's own last words. \
           `--report FILE` writes the same as JUnit XML, for CI, with the place of each and the lines that led there.",
    examples: &[
        example("assert count(demo_buffer where not present) == 0", "all of it is in memory"),
        example("assert swapped(all) == 0, \"nothing may be swapped\"", "with a message"),
    ],
};

pub(super) fn run(context: &mut Context, condition: &Spanned<Expression>, message: Option<&str>) -> Outcome {
    Ok(Flow::Asserted(Box::new(AssertionReport {
        message: message.map(str::to_owned),
        ..eval::judge(condition, context.state)?
    })))
}
