//! Help, notes and errors.

use super::block;
use super::style::Style;
use crate::render::line::Line;
use crate::render::printable::{columns, cut, printable, push_printable};
use crate::render::theme::Role;
use crate::report::{
    AssertionsSummary, ErrorPlace, ErrorReport, Help, HelpCommand, HelpExample, HelpGroup,
    HelpSubject, Note, UserCommands, UserHelp,
};
use std::io::{self, Write};

/// The longest line of prose: longer ones are hard to read.
const PROSE: usize = 100;
/// The column of summaries in a list of commands.
const SUMMARY: usize = 22;

fn prose_line(style: &Style) -> Line {
    Line::new(style.theme, style.width.map(|width| width.min(PROSE)))
}

/// Writes the help of a group, a command or a subject.
pub fn help(style: &Style, help: &Help, out: &mut dyn Write) -> io::Result<()> {
    match help {
        Help::Group(HelpGroup {
            name,
            about,
            commands,
        }) => {
            let mut line = prose_line(style);
            line.push(Role::Heading, name);
            line.tab_to(SUMMARY).indent_here().prose(Role::Dim, about);
            line.end(out)?;
            for command in commands {
                let mut line = prose_line(style);
                line.plain("  ").push(Role::Command, command.name);
                if !command.short.is_empty() {
                    line.push(Role::Dim, format!(", {}", command.short.join(", ")));
                }
                line.tab_to(SUMMARY).indent_here();
                line.prose(Role::Plain, command.summary).end(out)?;
            }
            Ok(())
        }
        Help::Command(HelpCommand {
            name,
            short,
            usage,
            summary,
            text,
            examples,
        }) => {
            let mut line = prose_line(style);
            line.push(Role::Command, name);
            if !short.is_empty() {
                line.push(Role::Dim, format!(" ({})", short.join(", ")));
            }
            line.plain(": ").indent(2).prose(Role::Plain, summary);
            line.end(out)?;
            for usage in usage {
                style
                    .line()
                    .indent(6)
                    .plain("  ")
                    .push(Role::Keyword, usage)
                    .end(out)?;
            }
            paragraphs(style, text, out)?;
            for (index, HelpExample { line, does }) in examples.iter().enumerate() {
                if index == 0 {
                    writeln!(out)?;
                    style.line().push(Role::Heading, "examples").end(out)?;
                }
                // The lines before the last one only prepare it.
                let (before, last) = line.rsplit_once('\n').unwrap_or(("", line));
                for line in before.lines() {
                    style
                        .line()
                        .plain("  ")
                        .push(Role::Command, line)
                        .end(out)?;
                }
                prose_line(style)
                    .plain("  ")
                    .push(Role::Command, last)
                    .tab_to(SUMMARY * 2)
                    .indent_here()
                    .prose(Role::Dim, does)
                    .end(out)?;
            }
            Ok(())
        }
        Help::Subject(HelpSubject {
            name,
            summary,
            text,
        }) => {
            let mut line = prose_line(style);
            line.push(Role::Heading, name).plain(": ");
            line.indent(2).prose(Role::Plain, summary).end(out)?;
            paragraphs(style, text, out)
        }
        Help::UserDefined(UserCommands { commands }) => {
            style
                .line()
                .push(Role::Heading, "user-defined")
                .plain(": commands that you made")
                .end(out)?;
            for UserHelp { name, text } in commands {
                prose_line(style)
                    .plain("  ")
                    .push(Role::Command, name)
                    .tab_to(SUMMARY)
                    .indent_here()
                    .prose(Role::Plain, text.lines().next().unwrap_or_default())
                    .end(out)?;
            }
            Ok(())
        }
        Help::UserCommand(UserHelp { name, text }) => {
            style.line().push(Role::Command, name).end(out)?;
            text.lines()
                .try_for_each(|line| style.line().plain("  ").plain(line).end(out))
        }
    }
}

/// The last line of a run with assertions.
pub(super) fn assertions(
    style: &Style,
    summary: &AssertionsSummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let AssertionsSummary {
        held,
        failed,
        unknown,
    } = summary;
    let plural = if *held == 1 { "" } else { "s" };
    let mut line = style.line();
    line.plain(format!("{held} assertion{plural} held, {failed} failed"));
    if *unknown > 0 {
        line.plain(format!(", {unknown} could not be evaluated"));
    }
    line.end(out)
}

/// Fills paragraphs. Lines that begin with a blank stay as they are. In such a line two blanks separate a term from its meaning, and
/// the meaning wraps under itself.
fn paragraphs(style: &Style, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut paragraph = String::new();
    let flush = |paragraph: &mut String, out: &mut dyn Write| -> io::Result<()> {
        if paragraph.is_empty() {
            return Ok(());
        }
        prose_line(style).prose(Role::Plain, &*paragraph).end(out)?;
        paragraph.clear();
        Ok(())
    };
    if !text.trim().is_empty() {
        writeln!(out)?;
    }
    for line in text.trim_matches('\n').lines() {
        if line.trim().is_empty() {
            flush(&mut paragraph, out)?;
            writeln!(out)?;
        } else if line.starts_with(' ') {
            flush(&mut paragraph, out)?;
            as_it_stands(style, line).end(out)?;
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim());
        }
    }
    flush(&mut paragraph, out)
}

/// `  word    its meaning`, or a line to be typed.
fn as_it_stands(style: &Style, text: &str) -> Line {
    let mut line = prose_line(style);
    let begins = text.len() - text.trim_start().len();
    let word = text.get(begins..).unwrap_or_default();
    line.plain(" ".repeat(begins));
    match word.split_once("  ") {
        Some((word, meaning)) => {
            let meaning = meaning.trim_start();
            let column = columns(text).saturating_sub(columns(meaning));
            line.push(Role::Command, word).pad_to(column);
            line.indent_here().prose(Role::Plain, meaning);
        }
        None => _ = line.indent_here().prose(Role::Plain, word),
    }
    line
}

/// Writes a remark.
pub fn note(style: &Style, note: &Note, out: &mut dyn Write) -> io::Result<()> {
    let mut line = style.line();
    line.push(Role::Note, "note: ").indent(2);
    line.prose(Role::Plain, &note.message);
    line.end(out)
}

/// Writes `FILE:LINE:COLUMN: error: …`, the line with a caret under the place, and the hint.
pub fn error(style: &Style, error: &ErrorReport, out: &mut dyn Write) -> io::Result<()> {
    let mut line = style.line();
    if let Some(place) = &error.place {
        line.plain(position(place));
    }
    line.push(Role::Error, "error: ").indent(2);
    line.prose(Role::Plain, &error.message);
    line.end(out)?;
    if let Some(place) = &error.place {
        drawing(style, place, out)?;
    }
    if !error.expected.is_empty() {
        let mut line = style.line();
        line.plain("  ").push(Role::Dim, "expected").plain(" ");
        line.indent_here();
        for (index, one) in error.expected.iter().enumerate() {
            match index > 0 && index + 1 == error.expected.len() {
                true => line.word(" ", Role::Plain, format!("or {one}")),
                false => line.word(", ", Role::Plain, one),
            };
        }
        line.end(out)?;
    }
    for region in &error.nearest {
        let mut line = style.line();
        line.plain("  ");
        block::region(&mut line, region);
        line.end(out)?;
    }
    if let Some(hint) = &error.hint {
        let mut line = style.line();
        line.plain("  ").push(Role::Note, "hint: ").indent_here();
        line.prose(Role::Plain, hint).end(out)?;
    }
    Ok(())
}

/// `tour.pmdb:3:11: `; empty for a line that was just typed.
fn position(place: &ErrorPlace) -> String {
    let Some(file) = &place.file else {
        return String::new();
    };
    let mut text = format!("{file}:");
    for number in [place.line, place.line.and(place.column)]
        .into_iter()
        .flatten()
    {
        text.push_str(&format!("{number}:"));
    }
    text.push(' ');
    text
}

/// The columns for a line of input.
fn room(style: &Style) -> usize {
    style.width.map_or(PROSE, |width| width.min(PROSE)).max(20) - 4
}

fn whole_line(style: &Style, text: &str, out: &mut dyn Write) -> io::Result<()> {
    // Enough characters even if each takes one column.
    let start: String = text.trim().chars().take(PROSE).collect();
    let start = start.replace('\t', " ");
    let shown = printable(&start);
    style
        .line()
        .plain("  ")
        .plain(cut(&shown, room(style)))
        .end(out)
}

/// The line, and a caret and tildes under the place. A long line is cut on both sides of the place.
fn drawing(style: &Style, place: &ErrorPlace, out: &mut dyn Write) -> io::Result<()> {
    if place.text.is_empty() {
        return Ok(());
    }
    let Some(column) = place.column else {
        // A line that was just typed needs no repeating.
        return match place.file {
            Some(_) => whole_line(style, &place.text, out),
            None => Ok(()),
        };
    };
    let room = room(style);
    let before = column.saturating_sub(1).min(place.text.chars().count());
    let skipped = before.saturating_sub(room / 2);
    let skipped = match place.text.chars().nth(skipped + room) {
        // It fits as it is.
        None if place.text.chars().nth(room).is_none() => 0,
        _ => skipped,
    };
    let (mut text, mut at, mut end) = (String::new(), None, 0);
    if skipped > 0 {
        text.push('…');
    }
    let mut rest = place.text.chars().enumerate().skip(skipped);
    let mut more = false;
    for (index, c) in rest.by_ref() {
        if columns(&text) >= room && index > before {
            more = true;
            break;
        }
        if index == before {
            at = Some(columns(&text));
        }
        match c {
            '\t' => text.push(' '),
            c => push_printable(&mut text, c),
        }
        if index < before.saturating_add(place.width.max(1)) {
            end = columns(&text);
        }
    }
    let at = at.unwrap_or_else(|| columns(&text));
    let waves = end.saturating_sub(at + 1);
    if more {
        text.push('…');
    }
    style.line().plain("  ").plain(&text).end(out)?;
    let caret = format!("^{}", "~".repeat(waves));
    style
        .line()
        .pad_to(2 + at)
        .push(Role::Error, caret)
        .end(out)
}
