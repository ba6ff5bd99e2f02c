//! `ps [TEXT] [by KEY] [limit N|top N]`: processes to attach to, and who uses the memory.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::rows::RowLimit;
use super::symbols::pattern_text;
use crate::hint::names_sorting;
use crate::kernel::Name;
use crate::kernel::smaps::Smaps;
use crate::kernel::words::{Worded, worded};
use crate::lang::parser::{Parsed, Tokens, after, clause, cut_to, one_of, part, split_text};
use crate::lang::{self, Expected, Spanned, display};
use crate::own::users::UserNames;
use crate::process::{self, Machine, ProcessEntry};
use crate::render::Record;
use crate::render::bar::{BAR, bar_of_largest};
use crate::render::columns::{Cell, Column, PID, Table, amount, none, unknown};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::render::units::counted;
use crate::report::record::record;
use crate::report::{Declared, Fact, Reason, Shape};
use std::fmt::{self, Formatter};

worded! {
    /// The order of the rows of `ps`; of amounts the largest is first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProcessOrder, word {
        /// Resident bytes.
        Rss = "rss",
        /// The proportional share.
        Pss = "pss",
        /// Resident bytes that nobody else maps.
        Uss = "uss",
        /// Bytes in swap.
        Swapped = "swapped",
        /// Bytes mapped as huge pages.
        Huge = "huge",
        /// The same as `rss`.
        Resident = "resident",
        /// By process id.
        Pid = "pid",
        /// By user id.
        User = "user",
        /// By the letter of the state.
        State = "state",
        /// By name.
        Name = "name",
        /// By command line.
        Command = "command",
    }
}

/// `ps [TEXT] [by KEY] [limit N|top N]`: the processes whose name contains the text.
#[derive(Debug)]
pub struct Ps {
    /// What the name must contain, or a variable that holds it.
    filter: Option<Spanned<String>>,
    /// In which order; by number if absent.
    by: Option<ProcessOrder>,
    /// Which of the rows; all if absent.
    cut: Option<lang::LimitClause>,
}

/// The order and the number of rows of `ps`.
type ProcessClauses = (Option<ProcessOrder>, Option<lang::LimitClause>);

fn process_clauses(mut input: Tokens<'_>) -> Parsed<'_, ProcessClauses> {
    let (mut by, mut cut) = (None, None);
    while clause(&mut input, &mut by, after("by", one_of))? || clause(&mut input, &mut cut, cut_to)? {}
    Ok((input, (by, cut)))
}

impl Command for Ps {
    const RECORDS: &'static [Shape] = &[ProcessRow::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("ps").displayed().alone(),
        group: Group::Target,
        summary: "list processes, with the memory that each uses",
        text: "\
Lists processes with id, user, state, resident memory, name and command line. TEXT selects the processes that have \
it in their name or command line, or as their id.

  by rss, by resident  resident bytes
  by pss               the proportional share: each page divided by the number of its mappings
  by uss               bytes of exclusive pages
  by swapped           bytes in swap
  by huge              bytes mapped as huge pages
  by pid, by user, …   another column: pid, user, state, name, command
  top N                the N largest, by rss unless `by` names another column
  limit N              the first N rows

Amounts are sorted from the largest down, the other columns from the lowest up. The kernel counts the amounts for \
each process. Only huge includes the hugetlb pool. Without an order, processes without memory, as the threads of the \
kernel, are last. A user that /etc/passwd does not list, \
or of a capture, is shown by its number.

A command line is in the memory of its process. pmdb does not read it without the right to examine that memory, or \
if it is swapped out: a read would swap it in. A row has its first 200 letters, `info process` and JSON have all. For pmdb itself, TEXT matches the name only.",
        examples: &[
            example("ps", "list all processes"),
            example("ps demo", "list the processes with demo in their name"),
            example("ps by pss top 3", "list the three largest proportional shares"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        input.expect(Expected::Text);
        let (text, behind) = split_text(input);
        for length in 0..=text.len() {
            let (before, rest) = input.rest.split_at(length);
            if before.last().is_some_and(|last| input.is_clause_word(last.text)) {
                continue;
            }
            let Ok((after, (by, cut))) = process_clauses(Tokens { rest, ..input }) else {
                continue;
            };
            if after.rest.len() != behind.rest.len() {
                continue;
            }
            let filter = (!before.is_empty()).then(|| part(input, before).map(|raw| raw.text));
            return Ok((after, Ps { filter, by, cut }));
        }
        input.fail(Expected::Text)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        display::write_quoted(f, self.filter.as_ref().map(|filter| filter.node.as_str()))?;
        display::clause(f, "by", self.by.map(|by| by.word()))?;
        display::cut(f, self.cut.as_ref())
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let asked = self;
        let cut = RowLimit::of(asked.cut.as_ref(), context.state)?;
        let filter = asked.filter.as_ref();
        let filter = filter.map(|text| pattern_text(context, text).node);
        // Searched for as a text, it would find the shell that runs pmdb with it.
        if let Some(order) = filter.as_deref().and_then(order_in) {
            let hint = format!("`ps TEXT by {0}`, `ps TEXT by {0} top 5`", order.word());
            return Err(Error::refused("only `top N` and `limit N` can follow the order", hint));
        }
        let wanted = |entry: &&ProcessEntry| filter.as_ref().is_none_or(|text| is_named(entry, text));
        let order = asked.by.or(RowLimit::top(cut).map(|_| ProcessOrder::Rss));
        if let Some(order) = order.filter(|order| RowLimit::top(cut).is_some() && !is_amount(*order)) {
            let word = order.word();
            let hint = format!("for the first N: `ps by {word} limit N`");
            return Err(Error::refused(format!("`top` shows the largest, and `{word}` has no size"), hint));
        }
        context.sink.name_columns(&Vec::from_iter(order.map(ProcessOrder::word)));
        let machine = context.state.machine().clone();
        let processes = machine.processes()?;
        let users = users_of(&machine);
        let mut rows: Vec<ProcessRow> = processes.iter().filter(wanted).map(|entry| row(entry, &users)).collect();
        let clause = filter.as_deref().and_then(|text| clause_in(text, rows.is_empty()));
        match (clause, filter) {
            (Some(clause), Some(text)) if rows.is_empty() => {
                return Err(Error::refused(format!("no process has `{text}` in its name or command line"), clause));
            }
            (Some(clause), _) => context.sink.note(clause)?,
            (None, Some(text)) if rows.is_empty() => context.sink.note(format!("no process matches `{text}`"))?,
            (None, _) => {}
        }
        if let Some(order) = order {
            let done = rows.len() as u64;
            for (index, row) in rows.iter_mut().enumerate() {
                context.sink.progress(index as u64, done, "processes")?;
                if is_counted(order) {
                    row.memory = Some(memory(&machine, row.pid));
                }
            }
            sort(&mut rows, order);
        } else {
            rows.sort_by_key(|row| row.resident.is_none());
        }
        let all = rows.len();
        let most = cut.map_or(usize::MAX, RowLimit::rows);
        let hidden = rows.iter().filter(|row| is_hidden(row)).count();
        for row in rows.into_iter().take(most) {
            context.sink.emit(&row)?;
        }
        if let Some(more) = all.checked_sub(most).filter(|&more| more > 0) {
            context.sink.note(counted(more as u64, "more process"))?;
        }
        if hidden > 0 {
            let processes = counted(hidden as u64, "process");
            context.sink.note(format!("memory of {processes} unknown: permission denied"))?;
        }
        Ok(Flow::Done)
    }
}

/// Whether a process has this number, or the text in its name or its command line.
fn is_named(entry: &ProcessEntry, text: &str) -> bool {
    let contains = |bytes: &[u8]| bytes.windows(text.len().max(1)).any(|part| part == text.as_bytes());
    // pmdb's own command line contains the text if it was given there.
    let command_line = entry.command_line.as_ref().filter(|_| entry.pid != std::process::id());
    text.is_empty()
        || text == entry.pid.to_string()
        || contains(entry.name.as_bytes())
        || command_line.is_some_and(|line| contains(line.as_bytes()))
}

/// The order in a text such as `postgres by pss total`, where a clause goes on with a word that cannot stand there.
fn order_in(text: &str) -> Option<ProcessOrder> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let order = |three: &[&str]| match three {
        ["by", order, _] => ProcessOrder::from_word(order),
        _ => None,
    };
    words.windows(3).find_map(order)
}

/// The note if a text looks like a clause. A lone `by` may also be a word of some command line.
fn clause_in(text: &str, is_in_none: bool) -> Option<&'static str> {
    let mut words = text.split_whitespace().peekable();
    if words.peek() == Some(&"where") {
        return Some("`ps` has no filters: it searches for the text `where`. To list the largest: `ps by rss top 10`");
    }
    while let Some(word) = words.next() {
        let is_order = words.peek().is_some_and(|next| ProcessOrder::from_word(next).is_some());
        match word {
            "by" if is_order => {
                return Some("read as text: only `top N` or `limit N` can follow the order");
            }
            "by" if is_in_none => {
                return Some(
                    "`by` needs a column title of ps or a count, such as rss, pss, uss, swapped, huge or name",
                );
            }
            "aux" | "ax" | "-ef" | "-e" | "-aux" if is_in_none => {
                return Some("`ps` lists all processes");
            }
            word if is_in_none && names_sorting(word) => {
                return Some("to sort: `ps by rss`");
            }
            "top" | "limit" if is_in_none => {
                return Some("`top` and `limit` are followed by a number");
            }
            _ => {}
        }
    }
    None
}

/// The kernel's counts of a process's memory.
pub(super) fn memory(machine: &Machine, pid: u32) -> ProcessMemory {
    let counted = machine.rollup_of(pid);
    // A kernel thread has no memory, and an ended process no longer.
    let is_hidden = matches!(counted, Err(process::Error::NotPermitted { .. }));
    let counted = counted.ok();
    let sum = |fields: &[&str]| {
        let smaps: &Smaps = counted.as_ref()?;
        let bytes = fields.iter().filter_map(|field| smaps.field(field));
        Some(bytes.sum())
    };
    ProcessMemory {
        rss: sum(&["Rss"]),
        pss: sum(&["Pss"]),
        uss: counted.as_ref().map(Smaps::uss),
        swapped: sum(&["Swap"]),
        huge: sum(&["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb"]),
        hidden: is_hidden,
    }
}

/// Whether the kernel hides the memory of a process.
fn is_hidden(row: &ProcessRow) -> bool {
    row.memory.as_ref().is_some_and(|memory| memory.hidden)
}

/// Whether the kernel has to count the memory of each process for this order.
fn is_counted(order: ProcessOrder) -> bool {
    use ProcessOrder as By;
    matches!(order, By::Pss | By::Uss | By::Swapped | By::Huge)
}

/// Whether the largest comes first.
fn is_amount(order: ProcessOrder) -> bool {
    is_counted(order) || matches!(order, ProcessOrder::Rss | ProcessOrder::Resident)
}

fn sort(rows: &mut [ProcessRow], order: ProcessOrder) {
    use ProcessOrder as By;
    let most = |a: &ProcessRow, b: &ProcessRow, count: fn(&ProcessMemory) -> Option<u64>| {
        let counted = |row: &ProcessRow| row.memory.as_ref().and_then(count);
        counted(b).cmp(&counted(a))
    };
    // One sort for all orders: each is 6 KB of the program.
    rows.sort_by(|a, b| match order {
        By::Rss | By::Resident => b.resident.cmp(&a.resident),
        By::Pss => most(a, b, |memory| memory.pss),
        By::Uss => most(a, b, |memory| memory.uss),
        By::Swapped => most(a, b, |memory| memory.swapped),
        By::Huge => most(a, b, |memory| memory.huge),
        By::Pid => a.pid.cmp(&b.pid),
        By::User => by_user(a).cmp(&by_user(b)),
        By::State => a.state.cmp(&b.state),
        By::Name => a.name.cmp(&b.name),
        By::Command => by_command(a).cmp(&by_command(b)),
    });
}

/// The key of `by user`, as the column is shown: numbers, then names.
fn by_user(row: &ProcessRow) -> (Option<&Name>, u32) {
    (row.user_name.as_ref().ok(), row.user)
}

/// The key of `by command`: processes without a command line, or with an unknown one, come last.
fn by_command(row: &ProcessRow) -> (bool, Option<&Name>) {
    let command_line = row.command_line.as_ref().filter(|text| !text.is_empty());
    (command_line.is_none(), command_line)
}

/// The names of the users of a machine: those of another one are unknown.
pub(super) fn users_of(machine: &Machine) -> Fact<UserNames> {
    if machine.is_captured() {
        return Err(Reason::NotInFile("a capture does not have the names of users".to_owned()));
    }
    Ok(UserNames::of_this_machine())
}

fn name_of(user: u32, users: &Fact<UserNames>) -> Fact<Name> {
    let name = users.as_ref().map_err(Clone::clone)?.name(user);
    name.cloned().ok_or(Reason::NotApplicable("/etc/passwd does not list the user"))
}

/// A process as a row.
pub(super) fn row(entry: &ProcessEntry, users: &Fact<UserNames>) -> ProcessRow {
    ProcessRow {
        pid: entry.pid,
        user: entry.user,
        user_name: name_of(entry.user, users),
        state: entry.state,
        resident: entry.resident,
        memory: None,
        name: entry.name.clone(),
        command_line: entry.command_line.clone(),
    }
}

record! {
    /// A row of `ps`, and of an ambiguous name.
    pub struct ProcessRow as "process-entry" with why if any {
        /// Process id.
        pid: u32,
        /// User id.
        user: u32,
        /// Name of the user; `null` if /etc/passwd has none, and in a capture.
        user_name: Fact<Name>,
        /// State of the process, one letter.
        state: char,
        /// Resident bytes.
        resident: Option<u64>,
        /// With `by pss`, `uss`, `swapped` or `huge`: what the kernel counts of its memory.
        [optional] memory: Option<ProcessMemory>,
        /// Short name (`comm`).
        name: Name,
        /// Command line.
        command_line: Option<Name>,
    }

    /// The kernel's counts for the memory of a process, in bytes.
    #[derive(Eq)]
    pub struct ProcessMemory {
        /// Resident bytes at the moment when the others were counted. Without the hugetlb pool.
        rss: Option<u64>,
        /// The proportional share: each page divided by how often it is mapped. Without the hugetlb pool.
        pss: Option<u64>,
        /// Bytes of exclusive pages, without the hugetlb pool.
        uss: Option<u64>,
        /// Bytes in swap.
        swapped: Option<u64>,
        /// Bytes mapped as huge pages, the hugetlb pool included.
        huge: Option<u64>,
        /// Whether they are `null` because the process may not be examined; otherwise it has no memory, or has ended.
        hidden: bool,
    }
}

impl Record for ProcessRow {
    fn write(&self, text: &mut Text) {
        text.row(table(self), self);
    }
}

const USER: Column = Column::name("user", 8, Role::Plain);
const STATE: Column = Column::word("state", 5, Role::Plain);
const NAME: Column = Column::name("name", 16, Role::Name);
const COMMAND_LINE: Column = Column::name("command", 12, Role::Dim);

/// `ps`
static PROCESSES: Table<ProcessRow> = Table::of(&[
    PID.cell(|_, process| Cell::new(&process.pid)),
    USER.cell(|_, process| user(process)),
    STATE.cell(|_, process| Cell::new(process.state.to_string())),
    bytes("resident").cell(|_, process| process.resident.map_or_else(none, Cell::size)),
    BAR.cell(|_, process| bar_of_largest(process.resident.unwrap_or_default())),
    NAME.cell(|_, process| Cell::new(&process.name)),
    COMMAND_LINE.cell(|_, process| command_line(process)),
]);

/// `ps`, with what the kernel counts of their memory
static PROCESS_MEMORY: Table<ProcessRow> = Table::of(&[
    PID.cell(|_, process| Cell::new(&process.pid)),
    USER.rank(2).cell(|_, process| user(process)),
    bytes("rss").cell(|_, process| amount_of(process, |memory| memory.rss.or(process.resident))),
    bytes("pss").cell(|_, process| amount_of(process, |memory| memory.pss)),
    bytes("uss").cell(|_, process| amount_of(process, |memory| memory.uss)),
    bytes("swapped").rank(1).cell(|_, process| amount_of(process, |memory| memory.swapped)),
    bytes("huge").rank(3).cell(|_, process| amount_of(process, |memory| memory.huge)),
    NAME.cell(|_, process| Cell::new(&process.name)),
    // Cut rather than left out: it distinguishes processes of one name.
    COMMAND_LINE.cell(|_, process| command_line(process)),
]);

const fn bytes(title: &'static str) -> Column {
    Column::number(title, 8, Role::Size)
}

/// The table of a process: with what the kernel counts of its memory, where that was asked for.
fn table(process: &ProcessRow) -> &'static Table<ProcessRow> {
    match process.memory {
        None => &PROCESSES,
        Some(_) => &PROCESS_MEMORY,
    }
}

/// The name of the user, or the number of one without.
fn user(process: &ProcessRow) -> Cell<'_> {
    process.user_name.as_ref().map_or_else(|_| Cell::new(&process.user), Cell::new)
}

fn amount_of(process: &ProcessRow, of: impl FnOnce(&ProcessMemory) -> Option<u64>) -> Cell<'static> {
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
    process.command_line.as_ref().map_or_else(unknown, |line| Cell::new(short_command_line(line)))
}

/// A command line for a row: those of a JVM or of a browser have thousands of letters.
pub(super) fn short_command_line(line: &Name) -> String {
    const MOST: usize = 200;
    let line = line.to_string();
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}\u{2026}", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The headings of its columns.
#[cfg(test)]
pub(crate) fn headings() -> Vec<&'static str> {
    let columns = [PROCESSES.columns(), PROCESS_MEMORY.columns()].concat();
    columns.iter().map(|column| column.title).filter(|title| !title.is_empty()).collect()
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(process_row()), Box::new(process_memory_row())]
    }

    pub fn process_row() -> ProcessRow {
        ProcessRow {
            memory: None,
            pid: 812,
            user: 1000,
            user_name: Ok(Name::from("dora")),
            state: 'S',
            resident: Some(3 << 20),
            name: Name::from("demo"),
            command_line: Some(Name::from("demo --size 4")),
        }
    }

    pub fn process_memory_row() -> ProcessRow {
        ProcessRow {
            memory: Some(ProcessMemory {
                rss: Some(3 << 20),
                pss: Some(2 << 20),
                uss: Some(1 << 20),
                swapped: Some(0),
                huge: None,
                hidden: false,
            }),
            ..process_row()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_first_letters_of_a_command_line() {
        let long = Name::from(&*"\u{e4}".repeat(2000));
        assert_eq!(short_command_line(&long), "\u{e4}".repeat(200) + "\u{2026}");
        let short = Name::from(&*"a".repeat(200));
        assert_eq!(short_command_line(&short), "a".repeat(200));
    }

    #[test]
    fn processes_without_a_command_line_come_last() {
        let commands = [None, Some("b"), Some(""), Some("a")];
        let row = |(command, pid): (Option<&str>, u32)| ProcessRow {
            pid,
            user: 0,
            user_name: Err(Reason::Changed),
            state: 'S',
            resident: None,
            memory: None,
            name: Name::from("process"),
            command_line: command.map(Name::from),
        };
        let mut rows: Vec<ProcessRow> = commands.into_iter().zip(1..).map(row).collect();
        sort(&mut rows, ProcessOrder::Command);
        assert_eq!(rows.iter().map(|row| row.pid).collect::<Vec<_>>(), [4, 2, 1, 3]);
    }

    #[test]
    fn users_are_sorted_as_they_are_shown() {
        let users = [(1000, Some("dora")), (0, Some("root")), (7, None), (33, Some("adam")), (1001, Some("dora"))];
        let mut rows = users.map(|(user, name)| ProcessRow {
            user,
            user_name: name.map(Name::from).ok_or(Reason::Changed),
            ..samples::process_row()
        });
        sort(&mut rows, ProcessOrder::User);
        assert_eq!(rows.map(|row| row.user), [7, 33, 1000, 1001, 0]);
    }

    #[test]
    fn a_capture_has_no_names_of_users() {
        let of_capture: Fact<UserNames> = Err(Reason::NotInFile("a capture".to_owned()));
        assert!(matches!(name_of(0, &of_capture), Err(Reason::NotInFile(_))));
        assert!(matches!(name_of(0, &Ok(UserNames::default())), Err(Reason::NotApplicable(_))));
    }

    #[test]
    fn a_word_after_the_order_is_no_text() {
        for (text, order) in [
            ("postgres by pss total", Some(ProcessOrder::Pss)),
            ("by rss descending", Some(ProcessOrder::Rss)),
            ("by rss", None),
            ("stand by me", None),
        ] {
            assert_eq!(order_in(text), order, "{text}");
        }
    }

    #[test]
    fn a_clause_that_was_searched_for_as_text_is_noted() {
        for (text, is_in_none, noted) in [
            ("where rss > 50M", false, true),
            ("where", true, true),
            ("nowhere", true, false),
            ("sort", true, true),
            ("python --sort=-rss", true, true),
            ("sort", false, false),
            ("python by rss", false, true),
            ("python top", true, true),
            ("python top", false, false),
        ] {
            assert_eq!(clause_in(text, is_in_none).is_some(), noted, "{text}");
        }
    }
}
