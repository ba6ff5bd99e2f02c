//! The tables of `ps` and `info threads`.

use super::Text;
use super::cells::{amount, fact, none, symbol, unknown};
use super::tables::{PID, Table};
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::report::{ProcessMemory, ProcessRow, ThreadRow};

impl Record for ProcessRow {
    fn write(&self, text: &mut Text) {
        text.row(table(self), self);
    }
}

impl Record for ThreadRow {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&THREADS, self);
    }
}

const USER: Column = Column::number("user", 6, Role::Plain);
const STATE: Column = Column::word("state", 5, Role::Plain);
const NAME: Column = Column::name("name", 16, Role::Name);
const COMMAND_LINE: Column = Column::name("command", 12, Role::Dim);

/// `ps`
static PROCESSES: Table<ProcessRow> = Table::of(&[
    PID.cell(|_, process| Cell::new(&process.pid)),
    USER.cell(|_, process| Cell::new(&process.user)),
    STATE.cell(|_, process| Cell::new(process.state.to_string())),
    bytes("resident").cell(|_, process| process.resident.map_or_else(none, Cell::size)),
    NAME.cell(|_, process| Cell::new(&process.name)),
    COMMAND_LINE.cell(|_, process| command_line(process)),
]);

/// `ps`, with what the kernel counts of their memory
static PROCESS_MEMORY: Table<ProcessRow> = Table::of(&[
    PID.cell(|_, process| Cell::new(&process.pid)),
    USER.rank(2).cell(|_, process| Cell::new(&process.user)),
    bytes("rss").cell(|_, process| counted(process, |memory| memory.rss.or(process.resident))),
    bytes("pss").cell(|_, process| counted(process, |memory| memory.pss)),
    bytes("uss").cell(|_, process| counted(process, |memory| memory.uss)),
    bytes("swapped").cell(|_, process| counted(process, |memory| memory.swapped)),
    bytes("huge").rank(1).cell(|_, process| counted(process, |memory| memory.huge)),
    NAME.cell(|_, process| Cell::new(&process.name)),
    COMMAND_LINE.rank(3).cell(|_, process| command_line(process)),
]);

/// `info threads`
pub static THREADS: Table<ThreadRow> = Table::of(&[
    Column::number("id", 7, Role::Size).cell(|_, thread| Cell::new(&thread.id)),
    Column::name("name", 15, Role::Name).cell(|_, thread| Cell::new(&thread.name)),
    STATE.cell(|_, thread| Cell::new(&thread.state)),
    Column::word("stack pointer", 14, Role::Address).cell(|_, thread| fact(&thread.sp)),
    Column::word("stands at", 14, Role::Address).rank(1).cell(|_, thread| fact(&thread.pc)),
    Column::name("symbol", 16, Role::Symbol).cell(|_, thread| symbol(&thread.symbol)),
]);

const fn bytes(title: &'static str) -> Column {
    Column::number(title, 8, Role::Size)
}

/// The table of a process: with what the kernel counts of its memory, where that was asked for.
pub fn table(process: &ProcessRow) -> &'static Table<ProcessRow> {
    match process.memory {
        None => &PROCESSES,
        Some(_) => &PROCESS_MEMORY,
    }
}

fn counted(process: &ProcessRow, of: impl FnOnce(&ProcessMemory) -> Option<u64>) -> Cell<'static> {
    let Some(memory) = &process.memory else {
        return none();
    };
    match of(memory) {
        Some(bytes) => amount(bytes),
        None if memory.hidden => unknown(),
        None => none(),
    }
}

fn command_line(process: &ProcessRow) -> Cell<'_> {
    process.command_line.as_ref().map_or_else(unknown, Cell::new)
}

/// The headings of its columns.
#[cfg(test)]
pub(crate) fn headings() -> Vec<&'static str> {
    PROCESSES.columns().iter().chain(&PROCESS_MEMORY.columns()).map(|column| column.title).collect()
}
