//! `help [TOPIC]`

use super::about::matching;
use super::{About, Context, Example, Flow, Group, Outcome};
use crate::eval;
use crate::lang::{self, Spanned};
use crate::report::{Help, HelpEntry, Record, UserHelp};
use crate::state::{DebugState, UserCommand};

pub(super) const ABOUT: About = About {
    name: "help",
    group: Group::Language,
    summary: "explain a command or a subject",
    text: "Alone it lists all commands by group. `help COMMAND` shows how a command is written (the grammar's own rule), \
           what it does, and examples; `help GROUP` lists one group. `apropos WORD` searches all of it.",
    examples: &[
        Example {
            line: "help walk",
            does: "everything about walk",
        },
        Example {
            line: "help look",
            does: "the commands that look at pages",
        },
    ],
};

pub(super) fn run(
    context: &mut Context,
    table: &'static [About],
    topic: Option<&Spanned<String>>,
) -> Outcome {
    let Some(topic) = topic else {
        for group in Group::ALL {
            context.sink.emit(Record::Help(group_help(table, *group)))?;
        }
        if !context.state.commands.is_empty() {
            context
                .sink
                .emit(Record::Help(user_defined(context.state)))?;
        }
        return Ok(Flow::Done);
    };
    let words = topic.node.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(group) = Group::ALL.iter().find(|group| group.name() == words) {
        context.sink.emit(Record::Help(group_help(table, *group)))?;
        return Ok(Flow::Done);
    }
    if let Some(command) = context.state.commands.get(&words) {
        let help = Help::UserCommand(user_help(&words, command));
        context.sink.emit(Record::Help(help))?;
        return Ok(Flow::Done);
    }
    if words == USER_DEFINED {
        context
            .sink
            .emit(Record::Help(user_defined(context.state)))?;
        return Ok(Flow::Done);
    }
    let found = matching(table, &words);
    if found.is_empty() {
        let names = table
            .iter()
            .map(|about| about.name)
            .chain(Group::ALL.iter().map(|group| group.name()));
        let near = lang::SyntaxError::did_you_mean(&words, names);
        let error = eval::Error::new(topic.at, format!("no help on '{}'", topic.node));
        let hint = near.unwrap_or_else(|| {
            format!(
                "help alone lists every command; apropos {} searches the help",
                topic.node
            )
        });
        return Err(error.hint(hint).into());
    }
    for about in found {
        context.sink.emit(Record::Help(command_help(about)))?;
    }
    Ok(Flow::Done)
}

/// The topic that lists what the user made, as in gdb.
const USER_DEFINED: &str = "user-defined";

fn user_defined(state: &DebugState) -> Help {
    let commands = state.commands.iter();
    Help::UserDefined {
        commands: commands
            .map(|(name, command)| user_help(name, command))
            .collect(),
    }
}

fn user_help(name: &str, command: &UserCommand) -> UserHelp {
    let text = match (&command.document, &command.alias) {
        (Some(document), _) => document.clone(),
        (None, Some(alias)) => format!("alias of: {alias}"),
        (None, None) => "not documented".to_owned(),
    };
    UserHelp {
        name: name.to_owned(),
        text,
    }
}

/// The list of one group.
fn group_help(table: &'static [About], group: Group) -> Help {
    let commands = table.iter().filter(|about| about.group == group).map(entry);
    Help::Group {
        name: group.name(),
        about: group.about(),
        commands: commands.collect(),
    }
}

/// A command as lists show it.
pub(super) fn entry(about: &About) -> HelpEntry {
    HelpEntry {
        name: about.name,
        short: short_forms(about),
        summary: about.summary,
    }
}

/// A command in full.
fn command_help(about: &'static About) -> Help {
    Help::Command {
        name: about.name,
        short: short_forms(about),
        usage: lang::grammar::usage(about.name).into_iter().collect(),
        summary: about.summary,
        text: about.text,
        examples: about
            .examples
            .iter()
            .map(|example| (example.line, example.does))
            .collect(),
    }
}

fn short_forms(about: &About) -> Vec<&'static str> {
    let known = lang::COMMANDS
        .iter()
        .find(|command| command.name == about.name);
    known.map_or_else(Vec::new, |command| command.short.to_vec())
}
