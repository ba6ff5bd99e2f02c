//! `display`, `undisplay`, `info display`: values and answers that each prompt shows.

use super::parse;
use super::{About, CommandName, Context, Error, Flow, Group, Outcome, example, how, print};
use crate::command::parse::{Command, Examine};
use crate::eval;
use crate::lang::{Displayed, Expression, Format, Layout, ParsedCommand, Range, Spanned, Unit};
use crate::report::{DisplayReport, HelpExample};
use crate::state::Display;
use std::rc::Rc;
use std::time::Duration;

const EXAMPLES: &[HelpExample] = &[
    example("display rss(demo_buffer)", "show a value at each prompt"),
    example("display/4xb demo_buffer", "show memory, as x does"),
    example("display walk demo_buffer by state", "show the answer of a command"),
    example("display rss(demo_buffer) every 10ms count 3", "show it now, and twice more"),
    example("display rss(demo_buffer)\nundisplay 1", "remove a display"),
];

pub(super) const ABOUT: About = About {
    name: CommandName::new("display").whole(),
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

pub(super) const ABOUT_UNDISPLAY: About = About {
    name: CommandName::new("undisplay").whole(),
    group: Group::Time,
    summary: "remove displays",
    text: "Removes the displays with these numbers. Without a number, removes all.",
    examples: EXAMPLES,
};

pub(super) const ABOUT_INFO: About = About {
    name: CommandName::new("info display").whole().displayed(),
    group: Group::Time,
    summary: "list the displays",
    text: "Lists each display with its number and its expression or command.",
    examples: &[example("info display", "list all displays")],
};

/// Shorter pauses show the same again.
const SHORTEST: Duration = Duration::from_millis(1);

pub(super) fn run(context: &mut Context, asked: &parse::Display) -> Outcome {
    let every = asked.every.as_ref();
    let every = every.map(|time| eval::time(time, context.state)).transpose()?;
    let count = asked.count.as_ref();
    let count = count.map(|count| eval::count(count, context.state)).transpose()?;
    let Some(what) = &asked.what else {
        return show_all(context);
    };
    if count == Some(0) {
        return Err(Error::nothing_wanted("count"));
    }
    if let Some(every) = every {
        return again(context, what, every, count);
    }
    let number = context.state.displays.next();
    show(context, Some(number), what)?;
    context.state.displays.keep(Display { number, what: what.clone() });
    Ok(Flow::Done)
}

/// `every TIME`
fn again(context: &mut Context, what: &Displayed, every: Duration, count: Option<u64>) -> Outcome {
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
    for Display { number, what } in context.state.displays.all() {
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

fn row(number: Option<u64>, what: &Displayed, value: Option<String>, reason: Option<String>) -> DisplayReport {
    DisplayReport { number, expression: text(what), value, reason }
}

/// Shows one display. It does not change `$_` and other variables.
fn show(context: &mut Context, number: Option<u64>, what: &Displayed) -> Result<(), Error> {
    let command = match what {
        Displayed::Command { command, .. } => command.clone(),
        Displayed::Value { layout, value, .. } => match memory(*layout) {
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
fn memory(layout: Layout) -> Option<Layout> {
    let is_memory =
        layout.count.is_some() || layout.unit.is_some() || layout.backward || layout.format == Some(Format::Text);
    is_memory.then_some(layout)
}

fn examination(layout: Layout, value: &Spanned<Range>) -> Result<Spanned<Rc<dyn ParsedCommand>>, Error> {
    let Range::Expression(expression) = &value.node else {
        let error = eval::Error::new(value.at, "memory is shown from one address on");
        return Err(error.hint("display/4xb ADDRESS").into());
    };
    let address = Some(Spanned::<Expression>::new(expression.clone(), value.at));
    let command: Rc<dyn ParsedCommand> = Rc::new(Command::Examine(Examine { layout, fault: false, address }));
    Ok(Spanned::new(command, value.at))
}

/// The text as it was written.
fn text(what: &Displayed) -> String {
    match what {
        Displayed::Command { text, .. } => text.0.clone(),
        Displayed::Value { layout, value, .. } => match (memory(*layout), layout.format) {
            (Some(layout), _) => format!("x{} {}", layout_text(layout), value.node),
            (None, Some(_)) => format!("{} {}", layout_text(*layout), value.node),
            (None, None) => value.node.to_string(),
        },
    }
}

/// `/4xb`
fn layout_text(layout: Layout) -> String {
    let backward = if layout.backward { "-" } else { "" };
    let count = layout.count.map_or(String::new(), |count| count.to_string());
    let letters = [layout.format.map(Format::letter), layout.unit.map(Unit::letter)];
    let letters: String = letters.into_iter().flatten().collect();
    format!("/{backward}{count}{letters}")
}

pub(super) fn undisplay(context: &mut Context, numbers: &[u64]) -> Outcome {
    if numbers.is_empty() {
        context.state.displays.clear();
    }
    for number in numbers {
        if !context.state.displays.remove(*number) {
            return Err(Error::refused(format!("there is no display {number}"), "info display lists them"));
        }
    }
    Ok(Flow::Done)
}

pub(super) fn list(context: &mut Context) -> Outcome {
    let all = context.state.displays.all();
    if all.is_empty() {
        let message = "nothing is displayed: display EXPRESSION, display COMMAND";
        context.sink.note(message)?;
    }
    for Display { number, what } in all {
        context.sink.emit(&row(Some(number), &what, None, None))?;
    }
    Ok(Flow::Done)
}
