//! `quit [STATUS]`

use super::{About, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Expression, Spanned};

pub(super) const ABOUT: About = About {
    name: CommandName::new("quit").short(&["q"]),
    group: Group::Language,
    summary: "leave pmdb",
    text: "\
Leaves with the given exit status, or 0. Ctrl-D at the prompt does the same. The target is not affected.",
    examples: &[example("quit", "leave pmdb")],
};

pub(super) fn run(context: &mut Context, status: Option<&Spanned<Expression>>) -> Outcome {
    let Some(written) = status else {
        return Ok(Flow::Quit(0));
    };
    let value = eval::integer(written, context.state)?;
    match value.to_u64().and_then(|number| u8::try_from(number).ok()) {
        Some(status) => Ok(Flow::Quit(status)),
        None => Err(eval::Error::new(written.at, "an exit status is a number from 0 to 255").into()),
    }
}
