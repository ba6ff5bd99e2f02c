//! `printf "FORMAT", VALUE, …`: text made of values.

mod format;

use super::{About, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Range, Spanned};
use crate::report::Text;

pub(super) const ABOUT: About = About {
    name: CommandName::new("printf").whole().displayed(),
    group: Group::Scripts,
    summary: "print values in a format",
    text: "\
Prints the format with a value in the place of each conversion. Adds no line end: write \\n.

  %d %i %u %x %X %o  numbers and addresses
  %c                 a character
  %f                 a number with a fraction
  %s                 any value, as `print` shows it
  %p                 an address
  %B                 a size in bytes with its unit (pmdb's own)
  %%                 a per cent sign

Flags (- + 0 # and a blank), a width and a precision may follow the %, as in C. The letters l, ll, h and z are \
ignored. %s escapes control characters, because names may come from other users.",
    examples: &[
        example(
            "printf \"%d of %d pages\\n\", count(demo_buffer where present), count(demo_buffer)",
            "print two numbers in a sentence",
        ),
        example(
            "printf \"%-10s %10B at %p\\n\", name([stack]), rss([stack]), start([stack])",
            "print a name, a size and an address in columns",
        ),
    ],
};

pub(super) fn run(context: &mut Context, format: &Spanned<String>, written: &[Spanned<Range>]) -> Outcome {
    let pieces = format::pieces(format)?;
    format::check_number(&pieces, format.at, written)?;
    let mut values = Vec::with_capacity(written.len());
    for value in written {
        values.push(Spanned::new(eval::value(value, context.state)?, value.at));
    }
    let text = format::filled(&pieces, &values)?;
    context.sink.emit(&Text { text })?;
    Ok(Flow::Done)
}
