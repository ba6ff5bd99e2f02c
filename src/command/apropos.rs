//! `apropos REGEX`

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::subjects::questions::QUESTIONS;
use super::subjects::{self, SUBJECTS, Subject};
use crate::eval;
use crate::lang::display::write_quoted;
use crate::lang::parser::{Parsed, Tokens, raw_text};
use crate::lang::{Expected, Spanned};
use crate::report::{Help, HelpGroup, HelpQuestions};
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
Lists the questions, commands and topics whose help has a word that begins with the text. The text is a regular \
expression, and case is ignored: `apropos .*dirty` also finds soft-dirty. If several words do not follow each other \
anywhere, finds what has all of them.",
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
        let all = self.pattern.node.as_str();
        let mut found = self.entries(&[all], context)?;
        // Several words need not follow each other.
        if found.is_empty() {
            found = self.entries(&all.split_whitespace().collect::<Vec<_>>(), context)?;
        }
        if found.is_empty() {
            context.sink.note(format!("nothing in the help matches `{all}`"))?;
        }
        found.iter().try_for_each(|help| context.sink.emit(help))?;
        Ok(Flow::Done)
    }
}

impl Apropos {
    /// Questions, commands and topics in which all of these expressions match.
    fn entries(&self, patterns: &[&str], context: &Context) -> Result<Vec<Help>, Error> {
        let of_words = |pattern: &&str| Spanned::new(format!(r"\b(?:{pattern})"), self.pattern.at);
        let regexes = patterns.iter().map(|pattern| eval::regex(&of_words(pattern), true));
        let regexes = regexes.collect::<Result<Vec<_>, _>>()?;
        let is_match = |texts: &[&str]| regexes.iter().all(|regex| texts.iter().any(|text| regex.is_match(text)));
        Ok(matching(&self.pattern.node, is_match, context))
    }
}

/// The entries that have a word, or one that begins with it.
pub(super) fn entries_with(word: &str, context: &Context) -> Vec<Help> {
    let wanted = word.to_lowercase();
    let has_word = |text: &&str| {
        let text = text.to_lowercase();
        let ends = |(at, _): (usize, &str)| text[..at].chars().next_back();
        text.match_indices(&wanted).any(|found| !ends(found).is_some_and(char::is_alphanumeric))
    };
    matching(word, |texts| texts.iter().any(has_word), context)
}

/// The questions, commands and topics whose texts match.
fn matching(about: &str, is_match: impl Fn(&[&str]) -> bool, context: &Context) -> Vec<Help> {
    let mut found = Vec::new();
    // The words for a question are not shown: the beginning of one would be found without a visible reason.
    let word = about.to_lowercase();
    let questions = QUESTIONS.iter().filter(|question| is_match(&question.texts()) || question.has_word(&word));
    let questions: Vec<_> = questions.map(|question| question.shown).collect();
    if !questions.is_empty() {
        found.push(Help::Questions(HelpQuestions { about: about.to_owned(), questions }));
    }
    let is_found = |about: &&About| {
        let examples = about.examples.iter().flat_map(|example| [example.line, example.does]);
        let texts = [about.name.name, about.summary, about.text].into_iter().chain(examples);
        is_match(&texts.chain(subjects::purposes(about)).collect::<Vec<_>>())
    };
    for group in Group::ALL {
        let of_group = context.commands.abouts().filter(|about| about.group == *group);
        let commands: Vec<_> = of_group.filter(is_found).map(subjects::entry).collect();
        if !commands.is_empty() {
            found.push(Help::Group(HelpGroup { name: group.name(), about: group.about(), commands }));
        }
    }
    let text = |subject: &&Subject| is_match(&[subject.name, subject.summary, &subject.text(context.commands.records)]);
    let topics: Vec<_> = SUBJECTS.iter().filter(text).map(Subject::entry).collect();
    if !topics.is_empty() {
        found.push(Help::Group(HelpGroup { name: "topics", about: "help TOPIC", commands: topics }));
    }
    found
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
