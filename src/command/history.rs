//! `history [N]`

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::kernel::Name;
use crate::lang::parser::{Parsed, Tokens, number};
use crate::render::Record;
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{Declared, Shape};
use nom::Parser;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};

/// Lines shown when no number is given, as many as a small screen holds.
const USUAL: usize = 20;

/// `history [N]`: the last N lines.
#[derive(Debug)]
pub struct History {
    limit: Option<u64>,
}

impl Command for History {
    const RECORDS: &'static [Shape] = &[HistoryEntry::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("history").of_session().detached(),
        group: Group::Language,
        summary: "list the lines typed before",
        text: "\
Lists the last N lines typed at the prompt, 20 by default. The file $XDG_STATE_HOME/pmdb/history, which only you can \
read, keeps them between sessions. `set history size N` limits their number. With --no-shell there is no file.",
        examples: &[example("history 5", "list the last five lines")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        let entry = |number, line: &str| HistoryEntry { number, line: Name::from(line) };
        let block = entry(8, "define foo\nwalk $arg0 by state\nend");
        vec![Box::new(entry(7, "translate $sp")), Box::new(block)]
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        map(opt(number), |limit| History { limit }).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.limit.map_or(Ok(()), |limit| write!(f, " {limit}"))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let wanted = self.limit.map_or(USUAL, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        for (number, line) in context.state.lines.last(wanted) {
            let entry = HistoryEntry { number, line: line.into() };
            context.sink.emit(&entry)?;
        }
        Ok(Flow::Done)
    }
}

record! {
    /// `history`
    pub struct HistoryEntry as "history" {
        /// Number.
        number: usize,
        /// The line.
        line: Name,
    }
}

impl Record for HistoryEntry {
    /// Each line of a block on a row of its own.
    fn write(&self, text: &mut Text) {
        for (index, line) in self.line.as_bytes().split(|&byte| byte == b'\n').enumerate() {
            let number = if index == 0 { self.number } else { FURTHER };
            text.row(&HISTORY, &HistoryEntry { number, line: Name::copied(line) });
        }
    }
}

/// The number of the further lines of a block: the first entry is 1.
const FURTHER: usize = 0;

/// `history`
static HISTORY: Table<HistoryEntry> = Table::of(&[
    Column::number("", 5, Role::Dim).cell(|_, entry| match entry.number {
        FURTHER => Cell::new(""),
        number => Cell::new(number.to_string()),
    }),
    Column::word("", 20, Role::Plain).cell(|_, entry| Cell::new(&entry.line)),
]);
