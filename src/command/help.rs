//! `help [TOPIC]`

use super::apropos;
use super::floor::Commands;
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::subjects::questions::{FIRST, QUESTIONS, Question};
use super::subjects::{SUBJECTS, Subject, entry};
use crate::eval;
use crate::hint::habits::{self, Does};
use crate::lang::display::write_quoted;
use crate::lang::parser::{Parsed, Tokens, raw_text};
use crate::lang::{self, Expected, Span, Spanned};
use crate::report::{Help, HelpCommand, HelpGroup, HelpOverview, HelpQuestions, UserCommands, UserHelp};
use crate::state::{DebugState, UserCommand};
use nom::Parser;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};

/// `help [TOPIC]`
#[derive(Debug)]
pub struct HelpOn {
    /// All commands if absent.
    topic: Option<Spanned<String>>,
}

impl HelpOn {
    /// The help on a topic; without one, the overview.
    pub fn topic(topic: Option<String>) -> Self {
        HelpOn { topic: topic.map(|topic| Spanned::new(topic, Span::default())) }
    }
}

impl Command for HelpOn {
    const ABOUT: About = About {
        name: CommandName::new("help").of_session().short(&["h"]).alone(),
        group: Group::Language,
        summary: "explain a command or a topic",
        text: "\
Without an argument, lists frequent questions with the lines that answer them, and all commands by group.

  help COMMAND  the usage of a command (its rule in the grammar), its effect, and examples
  help GROUP    the commands of a group, each with a summary
  help TOPIC    a topic that several commands share
  help WORD     questions about a word such as rss, dma or fork; a word of filters, or another clause
  help :NAME    a built-in command file, such as :oom
  help topics   all topics
  help all      everything

Also explains commands of gdb and other tools by their pmdb equivalents. `apropos WORD` searches all of it.",
        examples: &[
            example("help walk", "explain walk"),
            example("help look", "list the commands that look at pages"),
            example("help filters", "list every word of filters"),
        ],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(opt(raw_text(Expected::Topic)), |topic| HelpOn { topic }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.topic.as_ref().map(|topic| topic.node.as_str()))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let all = context.commands;
        let records = all.records;
        let Some(topic) = self.topic.as_ref().filter(|topic| topic.node.trim() != "commands") else {
            return overview(context);
        };
        let words = topic.node.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.starts_with(':') {
            return Ok(Flow::Source(words.into(), Vec::new()));
        }
        let setting = ["set ", "show "].iter().find_map(|command| words.strip_prefix(command));
        if let Some(help) = setting.and_then(Subject::setting) {
            return show(context, [help]);
        }
        if words == "all" {
            let subjects = SUBJECTS.iter().map(|subject| subject.help(records));
            return show(context, all.abouts().map(command_help).chain(subjects));
        }
        let subject = Subject::find(&words);
        let subject_help = subject.map(|subject| subject.help(records));
        if let Some(group) = Group::ALL.iter().find(|group| group.name() == words) {
            let commands = Help::Group(group_list(all, *group));
            return show(context, [commands].into_iter().chain(subject_help));
        }
        if [TOPICS, "subjects"].contains(&words.as_str()) {
            return show(context, [Help::Group(subjects())]);
        }
        if let Some(command) = context.state.commands.get(&words) {
            let help = Help::UserCommand(user_help(&words, command));
            return show(context, [help]);
        }
        if words == USER_DEFINED {
            let help = user_defined(context.state);
            return show(context, [help]);
        }
        // A name in full: of a command, of a subject, or of both.
        let is_name = all.abouts().any(|about| about.name.name == words || about.name.short.contains(&words.as_str()));
        let mut commands = match (subject, is_name) {
            (Some(_), false) => Vec::new(),
            _ => all.matching(&words),
        };
        // `in` is a clause, and only then the beginning of `info`.
        if !is_name && Subject::rows_about(&words).next().is_some() {
            commands.clear();
        }
        if commands.is_empty() && subject.is_none() {
            return other_word(context, topic, &words);
        }
        show(context, commands.into_iter().map(command_help).chain(subject_help))
    }
}

/// The commands to begin with.
const CORE: [&str; 12] = [
    "info process",
    "translate",
    "regions",
    "walk",
    "who",
    "account",
    "heap",
    "explain",
    "x",
    "watch",
    "compare",
    "capture",
];

/// The name of the list of all topics.
pub(super) const TOPICS: &str = "topics";

fn subjects() -> HelpGroup {
    HelpGroup {
        name: TOPICS,
        about: "look up topics that several commands share",
        commands: SUBJECTS.iter().map(Subject::entry).collect(),
    }
}

/// The most frequent questions, and all commands by group.
fn overview(context: &mut Context) -> Outcome {
    let all = context.commands;
    let overview = Help::Overview(HelpOverview {
        questions: QUESTIONS.iter().take(FIRST).map(|question| question.shown).collect(),
        core: CORE.to_vec(),
        groups: Group::ALL.iter().map(|group| group_list(all, *group)).collect(),
    });
    let own = (!context.state.commands.is_empty()).then(|| user_defined(context.state));
    show(context, [overview].into_iter().chain(own))
}

fn show(context: &mut Context, all: impl IntoIterator<Item = Help>) -> Outcome {
    for help in all {
        context.sink.emit(&help)?;
    }
    Ok(Flow::Done)
}

/// The help of a word that is neither a command nor a subject.
fn other_word(context: &mut Context, topic: &Spanned<String>, words: &str) -> Outcome {
    let questions: Vec<_> = Question::about(words).map(|question| question.shown).collect();
    let has_questions = !questions.is_empty();
    if has_questions {
        show(context, [Help::Questions(HelpQuestions { about: words.to_owned(), questions })])?;
    }
    let mut rows = Subject::rows_about(words).peekable();
    let is_a_word = rows.peek().is_some();
    // A word of another program, or for a task.
    let habit = habits::of(words).filter(|habit| habit.words == words);
    if let Some((habit, Does::Point { hint, .. })) = habit.map(|habit| (habit, habit.does)).filter(|_| !has_questions) {
        context.sink.note(habit.hint(hint))?;
    }
    show(context, rows)?;
    match habit.map(|habit| (habit, habit.does)) {
        Some((_, Does::Run(ours, _))) => return help_of_habit(context, words, ours),
        Some((habit, Does::Refuse(hint))) if is_a_word => {
            context.sink.note(format!("`{words}` is also a command of other programs; {}", habit.hint(hint)))?;
        }
        Some((_, Does::Refuse(_))) if has_questions => {}
        Some((habit, Does::Refuse(hint))) => {
            let error = eval::Error::new(topic.at, format!("pmdb has no `{words}`"));
            return Err(error.hint(habit.hint(hint)).into());
        }
        Some((_, Does::Point { to, .. })) if !is_a_word => {
            let about = context.commands.abouts().find(|about| about.name.name == to);
            return show(context, about.map(command_help));
        }
        Some((_, Does::Point { .. } | Does::Nothing)) | None => {}
    }
    if is_a_word || has_questions {
        return Ok(Flow::Done);
    }
    // The second word of a command, such as `info capabilities`.
    if let Some(about) = context
        .commands
        .abouts()
        .find(|about| about.name.name.split_once(' ').is_some_and(|(_, second)| second == words))
    {
        return show(context, [command_help(about)]);
    }
    // `account children`: the help of the command has them.
    if let Some((first, rest)) = words.split_once(' ')
        && let Some(about) = context.commands.abouts().find(|about| about.name.name == first)
    {
        let usage = lang::grammar::usage(first).unwrap_or_default();
        if !has_word(about.text, rest) && !has_word(&usage, rest) {
            let error = eval::Error::new(topic.at, format!("the help of `{first}` has no `{rest}`"));
            return Err(error.hint(format!("`help {first}` explains the command")).into());
        }
        return show(context, [command_help(about)]);
    }
    // Whatever else has the word in its help.
    match apropos::entries_with(words, context) {
        found if found.is_empty() => Err(no_help(context, topic, words)),
        found => show(context, found),
    }
}

/// Whether `help` explains a word that is no command.
pub fn explains(word: &str) -> bool {
    Question::about(word).next().is_some() || Subject::rows_about(word).next().is_some()
}

/// The error of a name that is not found, with a hint if `help` has questions about it.
pub fn word_meant(name: &str, error: eval::Error) -> eval::Error {
    let word = name.to_lowercase();
    let mut questions = Question::about(&word).map(|question| format!("`{}`", question.shown.line)).peekable();
    if questions.peek().is_none() {
        return error;
    }
    let lines: Vec<String> = questions.collect();
    error.hint(format!("`help {word}` leads to {}", lines.join(" and ")))
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && !"-_".contains(c)).any(|one| one == word)
}

/// The error for a word that nothing explains.
fn no_help(context: &Context, topic: &Spanned<String>, words: &str) -> Error {
    let explained = Subject::words();
    let names = context
        .commands
        .abouts()
        .map(|about| about.name.name)
        .chain(Group::ALL.iter().map(|group| group.name()))
        .chain(SUBJECTS.iter().map(|subject| subject.name))
        .chain(explained.iter().map(String::as_str))
        .collect::<Vec<_>>();
    // Too short a word is near to many others. Here these are few.
    let lacks_a_letter = |name: &&str| name.len() == words.len() + 1 && is_within(words, name);
    let mut longer: Vec<String> =
        names.iter().copied().filter(lacks_a_letter).map(|name| format!("`{name}`")).collect();
    longer.sort();
    longer.dedup();
    let longer = (words.len() >= 3 && !longer.is_empty()).then(|| format!("did you mean {}?", longer.join(" or ")));
    let near = lang::SyntaxError::did_you_mean(words, names).or(longer);
    let error = eval::Error::new(topic.at, format!("no help on `{}`", topic.node));
    error.hint(near.unwrap_or_else(|| "`help` lists all commands and topics".to_owned())).into()
}

/// Whether the letters of `part` are in `whole`, in this order.
fn is_within(part: &str, whole: &str) -> bool {
    let mut letters = whole.chars();
    part.chars().all(|letter| letters.any(|other| other == letter))
}

/// The help of the command that a word of another program stands for.
fn help_of_habit(context: &mut Context, words: &str, ours: &str) -> Outcome {
    context.sink.note(format!("`{words}` is `{ours}` in pmdb"))?;
    let first = ours.split(['/', ',']).next().unwrap_or(ours);
    let names = [first, first.split(' ').next().unwrap_or(first)];
    let about = names.iter().find_map(|name| context.commands.abouts().find(|about| about.name.name == *name));
    show(context, about.map(command_help))
}

/// The topic `user-defined`, as in gdb.
const USER_DEFINED: &str = "user-defined";

fn user_defined(state: &DebugState) -> Help {
    let commands = state.commands.iter();
    Help::UserDefined(UserCommands { commands: commands.map(|(name, command)| user_help(name, command)).collect() })
}

fn user_help(name: &str, command: &UserCommand) -> UserHelp {
    let text = match (&command.document, &command.alias) {
        (Some(document), _) => document.clone(),
        (None, Some(alias)) => format!("alias of: {alias}"),
        (None, None) => "not documented".to_owned(),
    };
    UserHelp { name: name.to_owned(), text }
}

/// The list of one group.
fn group_list(all: Commands, group: Group) -> HelpGroup {
    let commands = all.abouts().filter(|about| about.group == group).map(entry);
    HelpGroup { name: group.name(), about: group.about(), commands: commands.collect() }
}

/// A command in full.
pub(in crate::command) fn command_help(about: &'static About) -> Help {
    Help::Command(HelpCommand {
        name: about.name.name,
        short: about.name.short.to_vec(),
        usage: lang::grammar::usage(about.name.name).map_or_else(Vec::new, |usage| lang::grammar::forms(&usage)),
        summary: about.summary,
        text: about.text,
        examples: about.examples.to_vec(),
    })
}
