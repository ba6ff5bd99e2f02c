//! `apropos REGEX`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use super::help;
use super::subjects::{self, SUBJECTS, Subject};
use crate::eval;
use crate::lang::display::write_quoted;
use crate::lang::parser::{Parsed, Tokens, raw_text};
use crate::lang::{Expected, Spanned};
use crate::report::{Help, HelpGroup};
use nom::Parser;
use nom::combinator::map;
use std::fmt::{self, Formatter};

/// `apropos REGEX`
#[derive(Debug)]
pub struct Apropos {
    pattern: Spanned<String>,
}

impl Command for Apropos {
    const ABOUT: About = About {
        name: CommandName::new("apropos").of_session().alone(),
        group: Group::Language,
        summary: "search the help",
        text: "\
Lists the commands and subjects whose help has a word that begins with the text. The text is a regular expression, \
and case is ignored: `apropos .*dirty` also finds soft-dirty. Also lists the commands for a task, such as `apropos leak`.",
        examples: &[example("apropos swap", "list the commands and topics about swap")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(raw_text(Expected::Regex), |pattern| Apropos { pattern }).parse(after_verbose(input))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, Some(&self.pattern.node))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        // An error shows the expression as it was typed.
        eval::regex(&self.pattern, true)?;
        let of_words = Spanned::new(format!(r"\b(?:{})", self.pattern.node), self.pattern.at);
        let regex = eval::regex(&of_words, true)?;
        let records = context.commands.records;
        let matching = |about: &&About| {
            let mut examples = about.examples.iter().flat_map(|example| [example.line, example.does]);
            [about.name.name, about.summary, about.text].into_iter().any(|text| regex.is_match(text))
                || examples.any(|text| regex.is_match(text))
                || subjects::is_for(about, |purpose| regex.is_match(purpose))
        };
        for group in Group::ALL {
            let of_group = context.commands.abouts().filter(|about| about.group == *group);
            let commands: Vec<_> = of_group.filter(|about| matching(about)).map(help::entry).collect();
            if !commands.is_empty() {
                let found = Help::Group(HelpGroup { name: group.name(), about: group.about(), commands });
                context.sink.emit(&found)?;
            }
        }
        let found = SUBJECTS.iter().filter(|subject| {
            let texts = [subject.name, subject.summary, &subject.text(records)];
            texts.iter().any(|text| regex.is_match(text))
        });
        let commands: Vec<_> = found.map(Subject::entry).collect();
        let has_subjects = !commands.is_empty();
        if has_subjects {
            let found = Help::Group(HelpGroup { name: "topics", about: "help TOPIC", commands });
            context.sink.emit(&found)?;
        }
        if !has_subjects && !context.commands.abouts().any(|about| matching(&about)) {
            let message = format!("nothing in the help matches `{}`", self.pattern.node);
            context.sink.note(message)?;
        }
        Ok(Flow::Done)
    }
}

/// What follows gdb's `-v` of `apropos`: the answer is as long as with it.
fn after_verbose(input: Tokens<'_>) -> Tokens<'_> {
    match input.rest {
        [minus, v, rest @ ..] if minus.text == "-" && v.text == "v" && v.is_glued && !rest.is_empty() => {
            Tokens { rest, ..input }
        }
        _ => input,
    }
}
