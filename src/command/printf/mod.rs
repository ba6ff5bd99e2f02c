//! `printf "FORMAT", VALUE, …`: text made of values.

mod format;

use super::{About, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Range, Spanned};
use crate::report::{Record, Text};

pub(super) const ABOUT: About = About {
    name: "printf",
    group: Group::Scripts,
    summary: "print values in a form of your own",
    text: "Prints the format with a value in the place of each conversion. It adds no line end; write \\n. Conversions are C's: \
           %d %i %u %x %X %o of numbers and addresses, %c of a character, %f of a number, %s of any value as `print` shows it, %p of an \
           address, %% for a per cent sign; and pmdb's own %B, a size in bytes with its unit. Flags (- + 0 # and a blank), a width and a \
           precision may stand behind the %, as in C; l, ll, h and z are ignored.\n\n\
           %s escapes control characters, because names may come from other users.",
    examples: &[
        example(
            "printf \"%d of %d pages\\n\", count(demo_buffer where present), count(demo_buffer)",
            "two numbers in a sentence",
        ),
        example(
            "printf \"%-10s %10B at %p\\n\", name([stack]), rss([stack]), start([stack])",
            "a name, a size and an address, in columns",
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
    context.sink.emit(Record::Text(Text { text }))?;
    Ok(Flow::Done)
}
