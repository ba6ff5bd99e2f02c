//! `complete TEXT`: what Tab would offer, for editors and other programs.

use super::completion;
use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::lang::Expected;
use crate::lang::display::write_quoted;
use crate::lang::parser::{Parsed, Tokens, text_to_end};
use crate::report::EchoedText;
use nom::Parser;
use nom::combinator::opt;
use std::fmt::{self, Formatter};

/// `complete TEXT`
#[derive(Debug)]
pub struct Complete {
    text: String,
}

impl Command for Complete {
    const ABOUT: About = About {
        name: CommandName::new("complete").whole().detached(),
        group: Group::Language,
        summary: "list the completions of a line, as Tab offers them",
        text: "\
Prints TEXT with each possible completion, one a line, as gdb's `complete` does for editors. A space at its end begins \
the next word.",
        examples: &[
            example("complete wa", "list the commands that begin with wa"),
            example("complete \"walk heap by \"", "list the words that can follow"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, text) = opt(text_to_end(Expected::Text)).parse(input)?;
        let text = text.map(|text| text.node);
        Ok((input, Complete { text: text.unwrap_or_default() }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, (!self.text.is_empty()).then_some(&self.text))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let text = &self.text;
        let (start, offers) =
            completion::complete(context.commands, context.state, text, text.len(), completion::BETWEEN_KEYS);
        let before = text.get(..start).unwrap_or_default();
        for offer in offers {
            let text = format!("{before}{}\n", offer.typed.trim_end());
            context.sink.emit(&EchoedText { text })?;
        }
        Ok(Flow::Done)
    }
}
