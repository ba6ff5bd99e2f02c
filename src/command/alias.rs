//! `alias NAME = COMMAND …`

use super::control::new_name;
use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::parser::{Parsed, Tokens, mark, raw_text};
use crate::lang::script::first_word;
use crate::lang::{Expected, Language, Span, Spanned, escape};
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
        name: CommandName::new("alias").of_session().whole().detached(),
        group: Group::Scripts,
        summary: "define another name for a command with its first arguments",
        text: "\
Defines NAME as another name for COMMAND. A line that begins with NAME runs the command with the rest of the line. The \
name cannot be abbreviated, and cannot be the name or the fixed short name of a pmdb command. COMMAND may be \
incomplete, and may begin with another alias. It cannot be a line of a block, such as `if`.",
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
        refuse_useless(self, context)?;
        let command = UserCommand { alias: Some(text.node.clone()), ..UserCommand::default() };
        context.state.commands.insert(name.node.clone(), command);
        Ok(Flow::Done)
    }
}

/// Refuses a text that no rest of a line makes a command. A text that only ends too soon is one.
///
/// # Errors
/// With the place in the text.
fn refuse_useless(Alias { name, text }: &Alias, context: &Context) -> Result<(), eval::Error> {
    let mut line = text.node.clone();
    // No alias leads to itself, so this ends.
    while let Some((word, at)) = first_word(&line) {
        let Some(command) = context.state.commands.get(word).filter(|_| word != name.node) else {
            break;
        };
        let Some(alias) = &command.alias else {
            return Ok(());
        };
        line = alias.to_owned() + line.get(at.end..).unwrap_or_default();
    }
    let language = context.commands.language;
    let (word, _) = first_word(&line).unwrap_or_default();
    if word == name.node {
        return Err(eval::Error::new(text.at, format!("the alias `{word}` is an alias for itself")));
    }
    if language.block_line(word).is_some() {
        let message = format!("`{word}` is a line of a block, which no alias can be");
        return Err(eval::Error::new(text.at, message).hint("`define NAME` defines a command of several lines"));
    }
    match language.parse_line(&line) {
        Err(error) if error.at.start < line.trim_end().len() => {
            // What the text stands for, or the text in quotes, has other places.
            let is_typed = line.len() == text.at.end - text.at.start;
            let in_line = |place| text.at.start + place;
            let at = if is_typed { Span::new(in_line(error.at.start), in_line(error.at.end)) } else { text.at };
            let expected = (!error.expected.is_empty()).then(|| format!("expected {}", error.expected_text()));
            let refused = eval::Error::new(at, error.message);
            Err(match error.hint.or(expected) {
                Some(hint) => refused.hint(hint),
                None => refused,
            })
        }
        _ => Ok(()),
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
