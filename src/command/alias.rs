//! `alias NAME = COMMAND …`

use super::{About, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval;
use crate::lang::{Language, Spanned};
use crate::state::UserCommand;

pub(super) const ABOUT: About = About {
    name: CommandName::new("alias").whole(),
    group: Group::Scripts,
    summary: "define another name for a command with its first arguments",
    text: "\
Defines NAME as another name for COMMAND. A line that begins with NAME runs the command with the rest of the line. The \
name cannot be abbreviated, and cannot be the name or the fixed short name of a pmdb command.",
    examples: &[example("alias wp = walk demo_buffer where present", "define wp; `wp by kind` then walks and adds up")],
};

pub(super) fn run(context: &mut Context, name: &Spanned<String>, text: &str) -> Outcome {
    refuse_taken(context.commands.language, name)?;
    let command = UserCommand { alias: Some(text.to_owned()), ..UserCommand::default() };
    context.state.commands.insert(name.node.clone(), command);
    Ok(Flow::Done)
}

/// Refuses the names and fixed short names of pmdb's own commands. Other abbreviations are free.
///
/// # Errors
/// With the place of the name.
pub(super) fn refuse_taken(language: Language, name: &Spanned<String>) -> Result<(), eval::Error> {
    let is_taken = language.first_words().any(|word| word == name.node)
        || language.names().any(|command| command.short.contains(&name.node.as_str()));
    if is_taken {
        let message = format!("`{}` is a command of pmdb's own", name.node);
        Err(eval::Error::new(name.at, message).hint("choose another name"))
    } else {
        Ok(())
    }
}
