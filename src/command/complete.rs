//! `complete TEXT`: what Tab would offer, for editors and other programs.

use super::{About, CommandName, Context, Flow, Group, Outcome, completion, example};
use crate::report::Text;

pub(super) const ABOUT: About = About {
    name: CommandName::new("complete").whole(),
    group: Group::Language,
    summary: "list the completions of a line, as Tab offers them",
    text: "\
Prints TEXT with each possible completion, one a line, as gdb's `complete` does for editors. Put TEXT in \"quotes\" \
to keep a blank at its end, which begins the next word.",
    examples: &[
        example("complete wa", "list the commands that begin with wa"),
        example("complete \"walk heap by \"", "list the words that can follow"),
    ],
};

pub(super) fn run(context: &mut Context, text: &str) -> Outcome {
    let (start, offers) = completion::complete(context.commands, context.state, text, text.len());
    let before = text.get(..start).unwrap_or_default();
    for offer in offers {
        let text = format!("{before}{}\n", offer.typed.trim_end());
        context.sink.emit(&Text { text })?;
    }
    Ok(Flow::Done)
}
