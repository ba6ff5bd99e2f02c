//! `echo TEXT`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::lang::Expected;
use crate::lang::display::write_quoted;
use crate::lang::parser::{Parsed, Tokens, raw, unescape};
use crate::report::EchoedText;
use nom::Parser;
use nom::combinator::opt;
use std::fmt::{self, Formatter};

/// `echo TEXT`
#[derive(Debug)]
pub struct Echo {
    /// With its escapes replaced: `\n \t \\ \"`.
    text: String,
}

impl Command for Echo {
    const ABOUT: About = About {
        name: CommandName::new("echo").displayed().detached(),
        group: Group::Language,
        summary: "print text",
        text: "\
Prints its argument, and adds a line end if it has none. Escapes \\n \\t \\\\ \\\" as in C. Useful in command files, \
between the answers.",
        examples: &[example("echo the heap, by state:", "print the words")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (behind, raw) = opt(raw(Expected::Text)).parse(input)?;
        let raw = raw.map(|raw| raw.node);
        let text = raw.map(|raw| if raw.is_quoted { raw.text } else { unescape(&raw.text) });
        Ok((behind, Echo { text: text.unwrap_or_default() }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, (!self.text.is_empty()).then_some(&self.text))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let text = &self.text;
        // gdb's echo adds no line end, so its command files write one.
        let end = if text.ends_with('\n') { "" } else { "\n" };
        context.sink.emit(&EchoedText { text: format!("{text}{end}") })?;
        Ok(Flow::Done)
    }
}
