//! `alias NAME = COMMAND …`

use super::control::new_name;
use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::parser::{Parsed, Tokens, mark, raw_text};
use crate::lang::{Expected, Language, Spanned, escape};
use crate::state::UserCommand;
use nom::Parser;
use nom::combinator::cut;
use std::fmt::{self, Formatter};

/// `alias NAME = COMMAND …`
#[derive(Debug)]
pub struct Alias {
    /// The new name.
    pub name: Spanned<String>,
    /// What the name stands for.
    pub text: Spanned<String>,
}

impl Command for Alias {
    const ABOUT: About = About {
        name: CommandName::new("alias").whole().detached(),
        group: Group::Scripts,
        summary: "define another name for a command with its first arguments",
        text: "\
Defines NAME as another name for COMMAND. A line that begins with NAME runs the command with the rest of the line. The \
name cannot be abbreviated, and cannot be the name or the fixed short name of a pmdb command.",
        examples: &[example(
            "alias wp = walk demo_buffer where present",
            "define wp; `wp by kind` then walks and adds up",
        )],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (input, (name, _)) = (new_name, cut(mark("="))).parse(input)?;
        let (input, text) = cut(raw_text(Expected::Command)).parse(input)?;
        Ok((input, Alias { name, text }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {} = {}", self.name.node, escape('"', &self.text.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Alias { name, text } = self;
        refuse_taken(context.commands.language, name)?;
        let command = UserCommand { alias: Some(text.node.clone()), ..UserCommand::default() };
        context.state.commands.insert(name.node.clone(), command);
        Ok(Flow::Done)
    }
}

/// Refuses the names and fixed short names of pmdb's own commands. Other abbreviations are free.
///
/// # Errors
/// With the place of the name.
pub(super) fn refuse_taken(language: Language, name: &Spanned<String>) -> Result<(), eval::Error> {
    let is_taken = language.first_words().any(|word| word == name.node)
        || language.names().any(|command| command.short.contains(&name.node.as_str()));
    if is_taken {
        let message = format!("`{}` is already a pmdb command", name.node);
        Err(eval::Error::new(name.at, message).hint("choose another name"))
    } else {
        Ok(())
    }
}
