//! `printf "FORMAT", VALUE, …`: text made of values.

mod format;

use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::parser::{Parsed, Tokens, listed, many, mark, quoted_text};
use crate::lang::{Range, Spanned, escape};
use crate::report::Text;
use nom::Parser;
use nom::combinator::{cut, map};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// `printf "FORMAT", VALUE, …`
#[derive(Debug)]
pub struct Printf {
    /// Text with conversions such as `%d`, its escapes already replaced.
    format: Spanned<String>,
    /// A value for each conversion.
    values: Vec<Spanned<Range>>,
}

impl Command for Printf {
    const ABOUT: About = About {
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

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let values = many(preceded(mark(","), cut(listed)));
        map((quoted_text, values), |(format, values)| Printf { format, values }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", escape('"', &self.format.node))?;
        self.values.iter().try_for_each(|value| write!(f, ", {}", value.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Printf { format, values: written } = self;
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
}
