//! `complete TEXT`: what Tab would offer, for editors and other programs.

use super::{About, Context, Flow, Group, Outcome, completion, example};
use crate::report::{Record, Text};

pub(super) const ABOUT: About = About {
    name: "complete",
    group: Group::Language,
    summary: "what could be typed next, as Tab offers it",
    text: "For editors, as gdb's `complete`: each line is TEXT with one possible completion. Put TEXT in \"quotes\" to keep \
           a blank at its end, behind which the next word begins.",
    examples: &[
        example("complete wa", "commands that begin so"),
        example("complete \"walk heap by \"", "the words that can follow"),
    ],
};

pub(super) fn run(context: &mut Context, table: &'static [About], text: &str) -> Outcome {
    let (start, offers) = completion::complete(table, context.state, text, text.len());
    let before = text.get(..start).unwrap_or_default();
    for offer in offers {
        let text = format!("{before}{}\n", offer.typed.trim_end());
        context.sink.emit(Record::Text(Text { text }))?;
    }
    Ok(Flow::Done)
}
