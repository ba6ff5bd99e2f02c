//! Help, notes, errors, and news of the target.

use crate::render::Record;
use crate::render::text::lines::{Line, Lines};
use crate::render::text::{Text, block};
use crate::render::theme::{Role, columns, cut, printable, push_printable};
use crate::render::units::counted;
use crate::report::{
    Answer, AssertionReport, AssertionsSummary, End, ErrorPlace, ErrorReport, Hello, Help, HelpCommand, HelpExample,
    HelpGroup, HelpOverview, HelpQuestion, HelpQuestions, HelpSubject, Note, TargetEvent, TargetReport, UserCommands,
    UserHelp, term_and_meaning,
};

impl Record for Help {
    fn write(&self, text: &mut Text) {
        text.block(help, self);
    }
}

impl Record for Note {
    fn write(&self, text: &mut Text) {
        text.line(note, self);
    }
}

impl Record for Answer {
    fn write(&self, text: &mut Text) {
        text.answer(&self.message);
    }
}

impl Record for AssertionsSummary {
    fn write(&self, text: &mut Text) {
        text.line(assertions, self);
    }
}

impl Record for ErrorReport {
    fn write(&self, text: &mut Text) {
        text.line(error, self);
    }
}

impl Record for crate::report::EchoedText {
    fn write(&self, text: &mut Text) {
        text.verbatim(&self.text);
    }
}

/// One that holds is silent, and one that fails is an error.
impl Record for AssertionReport {
    fn write(&self, _: &mut Text) {}
}

/// For programs.
impl Record for Hello {
    fn write(&self, _: &mut Text) {}
}

/// For programs.
impl Record for End {
    fn write(&self, _: &mut Text) {}
}

/// The longest line of prose: longer ones are hard to read.
const PROSE: usize = 100;
/// The width of help in a pipe or file, as that of manual pages.
const PIPED: usize = 80;
/// The column of summaries in a list of commands.
const SUMMARY: usize = 22;
/// The column of what a group is for, in the overview.
const PURPOSE: usize = 10;

fn prose_line(lines: &mut Lines) -> &mut Line {
    let width = lines.style.width.unwrap_or(PIPED).min(PROSE);
    lines.line().limit(Some(width))
}

/// A usage may be as wide as the terminal.
fn usage_line(lines: &mut Lines) -> &mut Line {
    let width = lines.style.width.unwrap_or(PIPED);
    lines.line().limit(Some(width))
}

/// Writes the help of a group, a command or a subject.
pub fn help(lines: &mut Lines, help: &Help) {
    match help {
        Help::Overview(overview) => self::overview(lines, overview),
        Help::Questions(HelpQuestions { about, questions }) => {
            prose_line(lines).plain("questions about ").push(Role::Heading, about);
            self::questions(lines, questions);
        }
        Help::Group(HelpGroup { name, about, commands }) => {
            let line = prose_line(lines);
            line.push(Role::Heading, name);
            line.indent_at(SUMMARY).prose(Role::Dim, about);
            for command in commands {
                let line = prose_line(lines);
                line.plain("  ").push(Role::Command, command.name);
                if !command.short.is_empty() {
                    line.push(Role::Dim, format!(", {}", command.short.join(", ")));
                }
                line.indent_at(SUMMARY);
                line.prose(Role::Plain, command.summary);
            }
        }
        Help::Command(HelpCommand { name, short, usage, summary, text, examples }) => {
            let line = prose_line(lines);
            line.push(Role::Command, name);
            if !short.is_empty() {
                line.push(Role::Dim, format!(" ({})", short.join(", ")));
            }
            line.plain(": ").indent(2).prose(Role::Plain, summary);
            for usage in usage {
                usage_line(lines).indent(6).plain("  ").push(Role::Keyword, usage);
            }
            paragraphs(lines, text);
            for (index, HelpExample { line, does }) in examples.iter().enumerate() {
                if index == 0 {
                    lines.line();
                    lines.line().push(Role::Heading, "examples");
                }
                // The lines before the last one only prepare it.
                let (before, last) = line.rsplit_once('\n').unwrap_or(("", line));
                for line in before.lines() {
                    lines.line().plain("  ").push(Role::Command, line);
                }
                let line = prose_line(lines).indent(6).plain("  ").push(Role::Command, last);
                if last.chars().count() + 4 > SUMMARY * 2 {
                    line.new_line();
                } else {
                    line.indent_at(SUMMARY * 2);
                }
                line.prose(Role::Dim, does);
            }
        }
        Help::Subject(HelpSubject { name, summary, text }) => {
            let line = prose_line(lines);
            line.push(Role::Heading, name).plain(": ");
            line.indent(2).prose(Role::Plain, summary);
            paragraphs(lines, text)
        }
        Help::UserDefined(UserCommands { commands }) => {
            lines.line().push(Role::Heading, "user-defined").plain(": commands that you made");
            for UserHelp { name, text } in commands {
                prose_line(lines)
                    .plain("  ")
                    .push(Role::Command, name)
                    .indent_at(SUMMARY)
                    .prose(Role::Plain, text.lines().next().unwrap_or_default());
            }
        }
        Help::UserCommand(UserHelp { name, text }) => {
            lines.line().push(Role::Command, name);
            for line in text.lines() {
                lines.line().plain("  ").plain(line);
            }
        }
    }
}

/// Two or three lines for each group: all of it fits a small screen.
/// Questions, and the names of all commands; one to begin with has a star.
fn overview(lines: &mut Lines, overview: &HelpOverview) {
    let HelpOverview { questions, core, groups } = overview;
    self::questions(lines, questions);
    for HelpGroup { name, commands, .. } in groups {
        let line = prose_line(lines);
        line.push(Role::Heading, name).indent_at(PURPOSE);
        for (index, command) in commands.iter().enumerate() {
            let star = if core.contains(&command.name) { "*" } else { "" };
            line.word(if index == 0 { "" } else { ", " }, Role::Command, format!("{}{star}", command.name));
        }
    }
    prose_line(lines)
        .prose(Role::Plain, "`help cookbook` has lines for tasks (ENOMEM, OOM, DMA), `help NAME` explains a command (try * first), group or topic (`help topics`), `apropos WORD` searches.");
}

fn questions(lines: &mut Lines, questions: &[HelpQuestion]) {
    let widest = questions.iter().map(|question| question.line.chars().count()).max().unwrap_or_default();
    for HelpQuestion { line, asks } in questions {
        let shown = prose_line(lines).plain("  ").push(Role::Command, line);
        shown.indent_at(widest + 4).prose(Role::Plain, asks);
    }
}

/// The last line of a run with assertions.
pub(super) fn assertions(lines: &mut Lines, summary: &AssertionsSummary) {
    let AssertionsSummary { held, failed, unknown } = summary;
    let plural = if *held == 1 { "" } else { "s" };
    let line = lines.line();
    line.plain(format!("{held} assertion{plural} held, {failed} failed"));
    if *unknown > 0 {
        line.plain(format!(", {unknown} could not be evaluated"));
    }
}

/// Fills paragraphs. Lines that begin with a blank stay as they are. In such a line two blanks separate a term from its
/// meaning, and the meaning wraps under itself.
fn paragraphs(lines: &mut Lines, text: &str) {
    let mut paragraph = String::new();
    let flush = |paragraph: &mut String, lines: &mut Lines| {
        if !paragraph.is_empty() {
            prose_line(lines).prose(Role::Plain, std::mem::take(paragraph));
        }
    };
    if !text.trim().is_empty() {
        lines.line();
    }
    for line in text.trim_matches('\n').lines() {
        if line.trim().is_empty() {
            flush(&mut paragraph, lines);
            lines.line();
        } else if line.starts_with(' ') {
            flush(&mut paragraph, lines);
            as_it_stands(lines, line);
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim());
        }
    }
    flush(&mut paragraph, lines);
}

/// ` word its meaning`, or a line to be typed.
fn as_it_stands(lines: &mut Lines, text: &str) {
    let line = prose_line(lines);
    let begins = text.len() - text.trim_start().len();
    let word = text.get(begins..).unwrap_or_default();
    line.plain(" ".repeat(begins));
    match term_and_meaning(text) {
        Some((word, meaning)) => {
            let column = columns(text).saturating_sub(columns(meaning));
            line.push(Role::Command, word).pad_to(column);
            line.indent_here().prose(Role::Plain, meaning);
        }
        None => _ = line.indent_here().prose(Role::Plain, word),
    }
}

/// Writes a remark.
pub fn note(lines: &mut Lines, note: &Note) {
    let line = lines.line();
    line.push(Role::Note, "note: ").indent(2);
    line.prose(Role::Plain, &note.message);
}

/// Writes `FILE:LINE:COLUMN: error: …`, the line with a caret under the place, and the hint.
pub fn error(lines: &mut Lines, error: &ErrorReport) {
    let line = lines.line();
    if let Some(place) = &error.place {
        line.plain(place.position());
    }
    line.push(Role::Error, "error: ").indent(2);
    line.prose(Role::Plain, &error.message);
    if let Some(place) = error.place.as_ref().filter(|place| !place.is_built_in()) {
        draw_place(lines, place);
    }
    if !error.expected.is_empty() {
        write_expected(lines, error);
    }
    callers(lines, &error.callers);
    for region in &error.nearest {
        let line = lines.line();
        line.plain("  nearest: ");
        block::region(line, region);
    }
    // Always: errors may go elsewhere than the answers that had it already.
    if let Some(hint) = &error.hint {
        let line = lines.line();
        line.plain("  ").push(Role::Note, "hint: ").indent_here();
        line.prose(Role::Plain, hint);
    }
}

/// Writes the alternatives, the first of many with the help that lists the others.
fn write_expected(lines: &mut Lines, error: &ErrorReport) {
    const SHOWN: usize = 6;
    let (shown, others) = error.expected.split_at(error.expected.len().min(SHOWN));
    let line = lines.line();
    line.plain("  ").push(Role::Dim, "expected").plain(" ");
    line.indent_here();
    for (index, one) in shown.iter().enumerate() {
        if index > 0 && index + 1 == error.expected.len() {
            line.word(" ", Role::Plain, format!("or {one}"))
        } else {
            line.word(", ", Role::Plain, one)
        };
    }
    if !others.is_empty() {
        let typed = error.place.as_ref().map_or("", |place| place.text.trim_start());
        let command = typed.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_')).next().unwrap_or_default();
        let topic = if command.is_empty() { "language" } else { command };
        line.word(" ", Role::Plain, format!("or … (help {topic})"));
    }
}

/// Writes the lines that led to an error. Of a long chain the middle is left out.
fn callers(lines: &mut Lines, callers: &[ErrorPlace]) {
    /// How many are shown at each end.
    const SHOWN: usize = 4;
    let (first, rest) = callers.split_at(callers.len().min(SHOWN));
    let (middle, last) = rest.split_at(rest.len().saturating_sub(SHOWN));
    first.iter().for_each(|place| caller(lines, place));
    if let [one] = middle {
        caller(lines, one);
    } else if !middle.is_empty() {
        lines.line().plain("  ").push(Role::Dim, format!("… {} more calls", middle.len()));
    }
    last.iter().for_each(|place| caller(lines, place));
}

fn caller(lines: &mut Lines, place: &ErrorPlace) {
    const LEAD: &str = "called from ";
    let shown = place.to_string();
    let room = room(lines).saturating_sub(LEAD.len());
    lines.line().plain("  ").push(Role::Dim, LEAD).plain(cut(&printable(&shown), room));
}

/// The columns for a line of input.
fn room(lines: &Lines) -> usize {
    let width = lines.style.width;
    width.map_or(PROSE, |width| width.min(PROSE)).max(20) - 4
}

fn whole_line(lines: &mut Lines, text: &str) {
    // Enough characters even if each takes one column.
    let start: String = text.trim().chars().take(PROSE).collect();
    let start = start.replace('\t', " ");
    let shown = printable(&start);
    let room = room(lines);
    lines.line().plain("  ").plain(cut(&shown, room));
}

/// The line, and a caret and tildes under the place. A long line is cut on both sides of the place.
fn draw_place(lines: &mut Lines, place: &ErrorPlace) {
    if place.text.is_empty() {
        return;
    }
    let Some(column) = place.column else {
        // A line that was just typed needs no repeating.
        if place.file.is_some() {
            whole_line(lines, &place.text);
        }
        return;
    };
    let room = room(lines);
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
    lines.line().plain("  ").plain(&text);
    let caret = format!("^{}", "~".repeat(waves));
    lines.line().pad_to(2 + at).push(Role::Error, caret);
}

impl Record for TargetReport {
    fn write(&self, text: &mut Text) {
        text.line(target, self);
    }

    fn is_greeting(&self) -> bool {
        self.remarks.is_empty()
    }
}

/// `attached to process 812 (bash), /usr/bin/bash, 34 regions`
pub fn target(lines: &mut Lines, target: &TargetReport) {
    let line = lines.line();
    match target.event {
        TargetEvent::Attached => line.plain("attached to process "),
        TargetEvent::Opened => line.plain("opened the capture of process "),
        TargetEvent::Detached => line.plain("detached from process "),
        TargetEvent::Exited => line.push(Role::Bad, "the process has exited: "),
        TargetEvent::Executed => line.push(Role::Warn, "the process has executed another program: "),
    };
    line.plain(target.pid).plain(" (").push(Role::Name, &target.name).plain(")");
    if let Some(executable) = &target.executable {
        line.word(", ", Role::Name, executable);
    }
    if let Some(regions) = target.regions {
        line.word(", ", Role::Plain, counted(regions, "region"));
    }
    for remark in &target.remarks {
        let line = lines.line();
        line.plain("  ").indent_here().prose(Role::Note, remark);
    }
}
