//! `display`, `undisplay`, `info display`: values and answers that each prompt shows.

use super::examine::Examine;
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use super::{how, print};
use crate::lang::parser::{
    self, Failed, Parsed, Token, TokenKind, Tokens, after, clause, command_arguments, command_name, layout, many,
    number, range, split_text, time,
};
use crate::lang::{
    self, Count, DisplayContent, Expected, Expression, Format, ParsedCommand, Range, Reach, Span, Spanned, Statement,
    Time, TypedText, ValueFormat, display,
};
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{Declared, HelpExample, Shape};
use crate::{eval, state};
use nom::Parser;
use nom::combinator::{cut, map, opt, peek};
use nom::sequence::terminated;
use std::fmt::{self, Formatter};
use std::rc::Rc;
use std::time::Duration;

const EXAMPLES: &[HelpExample] = &[
    example("display rss(demo_buffer)", "show a value at each prompt"),
    example("display/4xb demo_buffer", "show memory, as x does"),
    example("display walk demo_buffer by state", "show the answer of a command"),
    example("display rss(demo_buffer) every 10ms count 3", "show it now, and twice more"),
    example("display rss(demo_buffer)\nundisplay 1", "remove a display"),
];

/// `display [/FMT] VALUE`, `display COMMAND …`, either with `every TIME [count N]`; alone it shows what is displayed.
#[derive(Debug, Default)]
pub struct Display {
    /// What to display from now on.
    what: Option<DisplayContent>,
    /// Show it now, and again after each such time, instead of at each prompt.
    every: Option<Spanned<Time>>,
    /// How many times to show it.
    count: Option<Spanned<Count>>,
}

impl Command for Display {
    const RECORDS: &'static [Shape] = &[DisplayReport::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("display").of_session().whole().detached(),
        group: Group::Time,
        summary: "show a value or a command's answer at each prompt",
        text: "\
Shows a value or an answer now, and again before each prompt.

  EXPRESSION        the value, as in gdb
  /FMT EXPRESSION   the value in a format; with a count, a size or /s, memory as `x` shows it
  COMMAND …         the answer of a command that changes nothing, such as walk, regions or ps; its name cannot be \
                    abbreviated
  every DURATION    show it again and again until Ctrl-C, and keep no display
  count N           with `every`, show it N times

`display` alone shows all displays. `info display` lists them, and `undisplay N` removes one.",
        examples: EXAMPLES,
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (behind, layout) = opt(layout).parse(input)?;
        let command = if layout.is_none() && is_command_displayed(behind) {
            before_every(behind).or_else(|| terminated(displayed_command, peek(end_of_displayed)).parse(behind).ok())
        } else {
            None
        };
        let (mut behind, what) = match command {
            Some((behind, command)) => (behind, Some(command)),
            None => {
                let value = |value: Spanned<lang::Range>| DisplayContent::Value {
                    layout: layout.unwrap_or_default(),
                    // A row that was pasted may begin with the word, and stand for a number or for a name in quotes.
                    is_quoted: begins_with_command(behind) && is_word_displayed(&value.node.to_string(), behind),
                    value,
                };
                match layout {
                    Some(_) => map(map(cut(range), value), Some).parse(behind)?,
                    None => opt(map(range, value)).parse(behind)?,
                }
            }
        };
        let (mut every, mut count) = (None, None);
        if what.is_some() && clause(&mut behind, &mut every, after("every", time))? {
            clause(&mut behind, &mut count, after("count", parser::count))?;
        }
        Ok((behind, Display { what, every, count }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.what {
            None => {}
            Some(DisplayContent::Command { command, .. }) => write!(f, " {}", command.node)?,
            Some(DisplayContent::Value { layout, is_quoted, value }) => {
                let value = if *is_quoted { in_quotes(&value.node.to_string()) } else { value.node.to_string() };
                write!(f, "{layout} {value}")?;
            }
        }
        display::clause(f, "every", self.every.as_ref().map(|time| &time.node))?;
        display::clause(f, "count", self.count.as_ref().map(|count| &count.node))
    }

    fn nature(&self) -> Nature {
        Nature { concerns_displays: true, ..Nature::default() }
    }

    fn reach(&self) -> Reach {
        let own = Self::ABOUT.name.reach;
        match &self.what {
            Some(DisplayContent::Command { command, .. }) => own.max(command.node.reach()),
            _ => own,
        }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let every = self.every.as_ref();
        let every = every.map(|time| eval::time(time, context.state)).transpose()?;
        let count = self.count.as_ref();
        let count = count.map(|count| eval::count(count, context.state)).transpose()?;
        let Some(what) = &self.what else {
            return show_all(context);
        };
        if count == Some(0) {
            return Err(Error::nothing_wanted("count"));
        }
        if let Some(every) = every {
            return again(context, what, every, count);
        }
        let number = context.state.displays.next_number();
        show(context, Some(number), what)?;
        context.state.displays.add(state::DisplayEntry { number, what: what.clone() });
        Ok(Flow::Done)
    }
}

/// A command that is complete before `every`. `every` is then a clause and no name: `x/u every 1s`.
fn before_every(input: Tokens<'_>) -> Option<(Tokens<'_>, DisplayContent)> {
    let at = input.rest.iter().skip(1).position(is_every)? + 1;
    let (before, behind) = input.rest.split_at_checked(at)?;
    let (left, name) = command_name(Tokens { rest: before, ..input }).ok()?;
    let (left, command) = displayable(left, name.node).ok()?;
    let behind = Tokens { rest: behind, ..input };
    let is_whole = left.rest.is_empty();
    is_whole.then(|| (behind, command_with_text(input, behind, command, name.at)))
}

fn is_every(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Name && token.text == "every"
}

/// A command that `display` runs.
fn displayed_command(input: Tokens<'_>) -> Parsed<'_, DisplayContent> {
    let (behind, name) = command_name(input)?;
    let (behind, command) = displayable(behind, name.node)?;
    Ok((behind, command_with_text(input, behind, command, name.at)))
}

/// The arguments of a command, which is no line of blocks.
fn displayable<'a>(input: Tokens<'a>, name: &str) -> Parsed<'a, Rc<dyn ParsedCommand>> {
    match command_arguments(input, name)? {
        (behind, Statement::Command(command)) => Ok((behind, command)),
        (_, Statement::Control(_)) => input.fail(Expected::Command),
    }
}

/// The command, with the text of it that stands before `behind`.
fn command_with_text(
    input: Tokens<'_>,
    behind: Tokens<'_>,
    command: Rc<dyn ParsedCommand>,
    at: Span,
) -> DisplayContent {
    let command = Spanned::new(command, at);
    let start = input.place().start;
    let end = input.notes.line.len().min(behind.place().start);
    let text = input.notes.line.get(start..end).unwrap_or_default().trim();
    let text = TypedText(text.to_owned());
    DisplayContent::Command { text, command }
}

/// Where nothing, or `every`, follows.
fn end_of_displayed(input: Tokens<'_>) -> Parsed<'_, ()> {
    match split_text(input).0 {
        [] => Ok((input, ())),
        [first, ..] if first.text == "every" => Ok((input, ())),
        _ => Err(nom::Err::Error(Failed)),
    }
}

/// Whether the next token begins with a name that `display` would take for a command if it stood without quotes.
fn begins_with_command(input: Tokens<'_>) -> bool {
    is_word_displayed(input.first().map_or("", |token| token.text.trim_start_matches('\'')), input)
}

fn is_word_displayed(text: &str, input: Tokens<'_>) -> bool {
    input.notes.language.is_displayed(split_first_word(text).0)
}

/// Whether the next word is a command that `display` may run. `x` alone, or before an operator, is a name, as in gdb.
fn is_command_displayed(input: Tokens<'_>) -> bool {
    let Some(first) = input.first().filter(|token| token.kind == TokenKind::Name) else {
        return false;
    };
    let next = split_text(input).0.get(1).map(|token| &token.kind);
    let is_name = first.text == "x" && matches!(next, None | Some(TokenKind::Mark));
    input.notes.language.is_displayed(first.text) && !is_name
}

/// A value with its first word in quotes.
fn in_quotes(text: &str) -> String {
    let (word, rest) = split_first_word(text);
    format!("'{word}'{rest}")
}

/// The name that a text begins with, and the rest.
fn split_first_word(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '@');
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// `undisplay N …`; all of them without a number.
#[derive(Debug)]
pub struct Undisplay {
    numbers: Vec<u64>,
}

impl Command for Undisplay {
    const ABOUT: About = About {
        name: CommandName::new("undisplay").of_session().whole().detached(),
        group: Group::Time,
        summary: "remove displays",
        text: "Removes the displays with these numbers. Without a number, removes all.",
        examples: EXAMPLES,
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(many(number), |numbers| Undisplay { numbers }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.numbers.iter().try_for_each(|number| write!(f, " {number}"))
    }

    fn nature(&self) -> Nature {
        Nature { concerns_displays: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        if self.numbers.is_empty() {
            context.state.displays.clear();
        }
        for number in &self.numbers {
            if !context.state.displays.remove(*number) {
                return Err(Error::refused(format!("there is no display {number}"), "`info display` lists them"));
            }
        }
        Ok(Flow::Done)
    }
}

/// `info display`
#[derive(Debug)]
pub struct InfoDisplay;

impl Command for InfoDisplay {
    const ABOUT: About = About {
        name: CommandName::new("info display").whole().displayed().detached(),
        group: Group::Time,
        summary: "list the displays",
        text: "Lists each display with its number and its expression or command.",
        examples: &[example("info display", "list all displays")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoDisplay))
    }

    fn nature(&self) -> Nature {
        Nature { concerns_displays: true, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let all = context.state.displays.all();
        if all.is_empty() {
            let message = "nothing is displayed: use `display EXPRESSION` or `display COMMAND`";
            context.sink.note(message)?;
        }
        for state::DisplayEntry { number, what } in all {
            context.sink.emit(&row(Some(number), &what, None, None))?;
        }
        Ok(Flow::Done)
    }
}

/// Shorter pauses show the same again.
const SHORTEST: Duration = Duration::from_millis(1);

/// `every TIME`
fn again(context: &mut Context, what: &DisplayContent, every: Duration, count: Option<u64>) -> Outcome {
    let mut left = count.unwrap_or(u64::MAX);
    loop {
        show(context, None, what)?;
        left -= 1;
        if left == 0 {
            return Ok(Flow::Done);
        }
        context.sink.wait(every.max(SHORTEST))?;
    }
}

/// Shows all displays. One without a value now shows why, and does not stop the others.
fn show_all(context: &mut Context) -> Outcome {
    for state::DisplayEntry { number, what } in context.state.displays.all() {
        match show(context, Some(number), &what) {
            Err(Error::Stopped(stopped)) => return Err(stopped.into()),
            Err(error) => {
                let row = row(Some(number), &what, None, Some(error.message()));
                context.sink.emit(&row)?;
            }
            Ok(()) => {}
        }
    }
    Ok(Flow::Done)
}

fn row(number: Option<u64>, what: &DisplayContent, value: Option<String>, reason: Option<String>) -> DisplayReport {
    DisplayReport { number, expression: text(what), value, reason }
}

/// Shows one display. It does not change `$_` and other variables.
fn show(context: &mut Context, number: Option<u64>, what: &DisplayContent) -> Result<(), Error> {
    let command = match what {
        DisplayContent::Command { command, .. } => command.clone(),
        DisplayContent::Value { layout, value, .. } => match memory(*layout) {
            Some(layout) => examination(layout, value)?,
            None => {
                let text = value_text(context, layout.format, value)?;
                return Ok(context.sink.emit(&row(number, what, Some(text), None))?);
            }
        },
    };
    context.sink.emit(&row(number, what, None, None))?;
    let before = (context.state.last_address, context.state.examined);
    let commands = context.commands;
    let shown = how::run(
        &*command.node,
        &mut Context { commands, state: &mut *context.state, sink: &mut *context.sink, resume: None },
    );
    (context.state.last_address, context.state.examined) = before;
    shown.map(|_| ())
}

fn value_text(context: &Context, format: Option<Format>, written: &Spanned<Range>) -> Result<String, Error> {
    let value = eval::value(written, context.state)?;
    Ok(print::text_of(context.state, format, &value))
}

/// The layout, if it is one for memory: a value has no count and no size.
fn memory(layout: ValueFormat) -> Option<ValueFormat> {
    let is_memory =
        layout.count.is_some() || layout.unit.is_some() || layout.backward || layout.format == Some(Format::Text);
    is_memory.then_some(layout)
}

fn examination(layout: ValueFormat, value: &Spanned<Range>) -> Result<Spanned<Rc<dyn ParsedCommand>>, Error> {
    let Range::Expression(expression) = &value.node else {
        let error = eval::Error::new(value.at, "memory is shown from one address on");
        return Err(error.hint("write `display/4xb ADDRESS`").into());
    };
    let address = Some(Spanned::<Expression>::new(expression.clone(), value.at));
    let command: Rc<dyn ParsedCommand> = Rc::new(Examine { layout, may_fault: false, address });
    Ok(Spanned::new(command, value.at))
}

/// The text as it was written.
fn text(what: &DisplayContent) -> String {
    match what {
        DisplayContent::Command { text, .. } => text.0.clone(),
        DisplayContent::Value { layout, value, .. } => match (memory(*layout), layout.format) {
            (Some(layout), _) => format!("x{layout} {}", value.node),
            (None, Some(_)) => format!("{layout} {}", value.node),
            (None, None) => value.node.to_string(),
        },
    }
}

record! {
    /// An answer that is shown at each prompt.
    pub struct DisplayReport as "display" {
        /// The number for `undisplay`; `null` if it is not kept.
        number: Option<u64>,
        /// The expression or command.
        expression: String,
        /// Its value; `null` for a command, and if there is none.
        value: Option<String>,
        /// Why it has no value now.
        [optional] reason: Option<String>,
    }
}

impl Record for DisplayReport {
    fn write(&self, text: &mut Text) {
        text.line(write_line, self);
    }
}

/// `1: rss(heap) = 4096`; for a command, the line before its answer.
fn write_line(lines: &mut Lines, display: &DisplayReport) {
    let line = lines.line();
    if let Some(number) = display.number {
        line.push(Role::Dim, format!("{number}: "));
    }
    line.plain(&display.expression);
    match (&display.value, &display.reason) {
        (Some(value), _) => line.plain(" = ").push(Role::Plain, value),
        (None, Some(why)) => line.plain(" = ").push(Role::Warn, format!("<{why}>")),
        (None, None) => line,
    };
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(displayed()), Box::new(displayed_in_vain())]
    }

    pub fn displayed() -> DisplayReport {
        DisplayReport { number: Some(1), expression: "rss(heap)".into(), value: Some("4096".into()), reason: None }
    }

    pub fn displayed_in_vain() -> DisplayReport {
        DisplayReport { number: Some(2), value: None, reason: Some("no process is attached".into()), ..displayed() }
    }
}
