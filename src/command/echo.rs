//! `echo TEXT`

use super::{About, Context, Flow, Group, Outcome, example};
use crate::report::Text;

pub(super) const ABOUT: About = About {
    name: "echo",
    group: Group::Language,
    summary: "print text",
    text: "\
Prints its argument, and adds a line end if it has none. Escapes \\n \\t \\\\ \\\" as in C. Useful in command files, \
between the answers.",
    examples: &[example("echo the heap, by state:", "print the words")],
};

pub(super) fn run(context: &mut Context, text: &str) -> Outcome {
    // gdb's echo adds no line end, so its command files write one.
    let end = if text.ends_with('\n') { "" } else { "\n" };
    context.sink.emit(&Text { text: format!("{text}{end}") })?;
    Ok(Flow::Done)
}
