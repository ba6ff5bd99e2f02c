//! The commands: one file each, the list of all, and how a parsed command is run.
//!
//! A command reads the state, asks `inspect`, and emits records; it prints nothing.

mod account;
mod alias;
mod apropos;
mod assert;
mod attach;
mod capabilities;
mod capture;
mod change_groups;
mod compare;
mod compiler_names;
mod complete;
mod completion;
mod control;
mod decode;
mod diff;
mod display;
mod echo;
mod examine;
mod explain;
mod find;
mod flags;
mod floor;
mod frames;
mod heap;
mod heap_sentence;
mod help;
mod history;
mod how;
mod huge;
mod line;
mod map;
mod modules;
mod named_pages;
mod patched;
mod pins;
mod pointers;
mod print;
mod printf;
mod process;
mod ps;
mod quit;
mod region;
mod regions;
mod rows;
mod schedule;
mod set;
mod shell;
mod show;
mod snapshot;
mod soft_dirty;
mod source;
pub mod subjects;
mod summary;
mod symbol;
mod symbols;
mod telescope;
#[cfg(test)]
mod tests;
mod threads;
mod timeline;
mod translate;
mod unobserved;
mod until;
mod walk;
mod watch;
mod who;

pub use alias::Alias;
pub use assert::Assert;
pub use attach::{Attach, TargetName, command_alone};
pub use capture::TargetCapture;
pub use completion::{BETWEEN_KEYS, Offer};
pub use display::Display;
pub use floor::{About, Commands, Context, Error, Flow, Group, Nature, Outcome, Resume};
pub use help::{HelpOn, explains as is_explained};
pub use print::Print;
pub use rows::CUT;
pub use set::{Set, assign};
pub use source::{SCRIPTS, SourceScript, expand_home};

use crate::budget::Budget;
use crate::eval::{self, Integer, Slip, Value};
use crate::hint::Hints;
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::{Expected, Language, ParsedCommand, Spanned, Syntax};
use crate::render::{More, Record, Sink};
use crate::report::{SHARED, Shape, Stopped};
use crate::state::{DebugState, Remarks};
use floor::{Entry, RunCommand};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;
use std::time::Duration;

/// All commands, and their language.
pub static COMMANDS: Commands = Commands { entries: &ENTRIES, records: &RECORDS, language: LANGUAGE };

/// The language of the commands.
pub const LANGUAGE: Language = Language { commands: &SYNTAX, advice: Some(&Hints) };

/// Every command, in the order of `help`.
static ENTRIES: [Entry; 67] = [
    Entry::of::<attach::Attach>(),
    Entry::of::<attach::Detach>(),
    Entry::of::<capture::TargetCapture>(),
    Entry::of::<capture::WriteCapture>(),
    Entry::of::<capture::ExportCore>(),
    Entry::of::<process::InfoProcess>(),
    Entry::of::<threads::InfoThreads>(),
    Entry::of::<threads::InfoRegisters>(),
    Entry::of::<capabilities::InfoCapabilities>(),
    Entry::of::<ps::Ps>(),
    Entry::of::<translate::Translate>(),
    Entry::of::<region::RegionAt>(),
    Entry::of::<regions::Regions>(),
    Entry::of::<walk::Walk>(),
    Entry::of::<map::Map>(),
    Entry::of::<flags::Flags>(),
    Entry::of::<who::Who>(),
    Entry::of::<summary::Summary>(),
    Entry::of::<account::AccountFor>(),
    Entry::of::<heap::Heap>(),
    Entry::of::<huge::Huge>(),
    Entry::of::<explain::Explain>(),
    Entry::of::<pins::PinsOf>(),
    Entry::of::<patched::Patched>(),
    Entry::of::<decode::Decode>(),
    Entry::of::<examine::Examine>(),
    Entry::of::<telescope::TelescopeAt>(),
    Entry::of::<find::Find>(),
    Entry::of::<print::Print>(),
    Entry::of::<symbol::InfoSymbol>(),
    Entry::of::<symbol::InfoAddress>(),
    Entry::of::<symbols::InfoSymbols>(),
    Entry::of::<modules::InfoModules>(),
    Entry::of::<line::InfoLine>(),
    Entry::of::<watch::Watch>(),
    Entry::of::<snapshot::SnapshotCommand>(),
    Entry::of::<snapshot::InfoSnapshots>(),
    Entry::of::<diff::Diff>(),
    Entry::of::<compare::Compare>(),
    Entry::of::<soft_dirty::SoftDirty>(),
    Entry::of::<display::Display>(),
    Entry::of::<display::Undisplay>(),
    Entry::of::<display::InfoDisplay>(),
    Entry::of::<assert::Assert>(),
    Entry::of_language(control::IF, control::if_line),
    Entry::of_language(control::ELSE, control::else_line),
    Entry::of_language(control::END, control::end_line),
    Entry::of_language(control::WHILE, control::while_line),
    Entry::of_language(control::LOOP_BREAK, control::loop_break_line),
    Entry::of_language(control::LOOP_CONTINUE, control::loop_continue_line),
    Entry::of_language(control::FOREACH, control::foreach_line),
    Entry::of_language(control::DEFINE, control::define_line),
    Entry::of_language(control::DOCUMENT, control::document_line),
    Entry::of::<alias::Alias>(),
    Entry::of::<printf::Printf>(),
    Entry::of::<print::OutputValue>(),
    Entry::of::<set::Set>(),
    Entry::of::<show::Show>(),
    Entry::of::<echo::Echo>(),
    Entry::of::<source::SourceScript>(),
    Entry::of::<history::History>(),
    Entry::of::<complete::Complete>(),
    Entry::of_language(shell::ABOUT_SHELL, |input| input.fail(Expected::ShellCommand)),
    Entry::of_language(shell::ABOUT_PIPE, |input| input.fail(Expected::ShellCommand)),
    Entry::of::<help::HelpOn>(),
    Entry::of::<apropos::Apropos>(),
    Entry::of::<quit::Quit>(),
];

/// Every record, sorted by the word that JSON has as its `type`.
pub static RECORDS: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let own = ENTRIES.iter().flat_map(|entry| entry.records);
    let mut records: Vec<Shape> = SHARED.iter().chain(how::RECORDS).chain(own).copied().collect();
    records.sort_by_cached_key(|shape| shape.name);
    records
});

static SYNTAX: [Syntax; ENTRIES.len()] = Entry::syntax(&ENTRIES);

/// Where the word at the cursor begins, and what it could become. `patience` is the time limit of a search for names.
pub fn complete(state: &DebugState, line: &str, cursor: usize, patience: Duration) -> (usize, Vec<Offer>) {
    completion::complete(COMMANDS, state, line, cursor, patience)
}

/// What the session must know of a command.
pub fn nature(command: &dyn ParsedCommand) -> Nature {
    COMMANDS.find(command).map(RunCommand::nature).unwrap_or_default()
}

/// Runs a command. A panic ends the command alone: the session has other answers, and a server other requests.
///
/// # Errors
/// What was tried, why it failed, and the remedy.
pub fn run(
    command: &dyn ParsedCommand,
    state: &mut DebugState,
    sink: &mut dyn Sink,
    resume: Option<Resume>,
) -> Outcome {
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| run_unguarded(command, state, sink, resume)));
    ran.unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
}

fn run_unguarded(
    command: &dyn ParsedCommand,
    state: &mut DebugState,
    sink: &mut dyn Sink,
    resume: Option<Resume>,
) -> Outcome {
    state.symbols.begin_command();
    state.remarks.clear();
    let (remarks, typed) = (state.remarks.clone(), state.line.clone());
    let slips = SlipNotes { remarks, command, typed, is_continued: resume.is_some() };
    let mut shown = LastRowSink::new(state, slips, sink);
    let outcome = how::run(command, &mut Context { commands: COMMANDS, state: &mut *state, sink: &mut shown, resume });
    let noted = shown.say_slips();
    // Displays at the prompt must not change `$_`.
    if command.downcast_ref::<Display>().is_none() {
        shown.remember(state);
    }
    state.symbols.end_command();
    if outcome.is_ok() {
        noted?;
        for message in state.remarks.take_notes() {
            sink.note(message)?;
        }
    }
    outcome
}

/// Refuses a name that a command has.
///
/// # Errors
/// With the place of the name.
pub fn refuse_taken(name: &Spanned<String>) -> Result<(), eval::Error> {
    alias::refuse_taken(LANGUAGE, name)
}

/// Passes records on, and keeps the address of the last row and the totals.
struct LastRowSink<'a> {
    sink: &'a mut dyn Sink,
    slips: SlipNotes<'a>,
    page: PageSize,
    row: Option<VirtualAddress>,
    /// The totals, by the names of their variables.
    totals: BTreeMap<&'static str, u64>,
}

/// The slips in one command.
struct SlipNotes<'a> {
    remarks: Remarks,
    command: &'a dyn ParsedCommand,
    /// The line of the command.
    typed: String,
    /// Whether an empty line continues it: they were noted before.
    is_continued: bool,
}

impl SlipNotes<'_> {
    /// The notes to be printed now.
    fn take(&self) -> Vec<String> {
        let slips = self.remarks.take_slips();
        let message = |slip| LANGUAGE.respelled(&self.message(slip), &self.typed);
        if self.is_continued { Vec::new() } else { slips.iter().map(message).collect() }
    }

    /// The whole command is shown if what was written is one argument of it.
    fn message(&self, slip: &Slip) -> String {
        let Slip { cause, written, meant } = slip;
        let line = self.command.to_string();
        let is_argument = |at: usize| {
            let behind = &line[at + written.len()..];
            line[..at].ends_with(' ') && (behind.is_empty() || behind.starts_with([' ', ',']))
        };
        let places: Vec<usize> =
            line.match_indices(written.as_str()).map(|(at, _)| at).filter(|&at| is_argument(at)).collect();
        match places[..] {
            [at] => format!("{cause} `{}{meant}{}`", &line[..at], &line[at + written.len()..]),
            _ => format!("{cause} `{meant}`"),
        }
    }
}

impl<'a> LastRowSink<'a> {
    fn new(state: &DebugState, slips: SlipNotes<'a>, sink: &'a mut dyn Sink) -> Self {
        LastRowSink { sink, slips, page: state.machine().page_size(), row: None, totals: BTreeMap::new() }
    }

    /// Sets the variables. Commands with rows unset `$_` before the first row.
    fn remember(self, state: &mut DebugState) {
        state.last_address = self.row.or(state.last_address);
        for (name, number) in self.totals {
            let value = Value::Integer(Integer::from(number));
            state.variables.insert(name.to_owned(), value);
        }
    }

    /// Notes the slips that were found since.
    fn say_slips(&mut self) -> Result<(), Stopped> {
        self.slips.take().into_iter().try_for_each(|message| self.sink.note(message))
    }

    fn note(&mut self, record: &dyn Record) {
        self.row = record.address().or(self.row);
        // Of several totals the last counts: it is that of all processes.
        self.totals.extend(record.totals(self.page));
    }
}

impl Sink for LastRowSink<'_> {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.say_slips()?;
        self.note(record);
        self.sink.emit(record)
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        self.sink.name_columns(titles);
    }

    fn show(&mut self, more: More) {
        self.sink.show(more);
    }

    fn is_greeting(&self) -> bool {
        self.sink.is_greeting()
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.say_slips()?;
        self.sink.check()
    }

    fn budget(&self) -> Budget {
        self.sink.budget()
    }

    fn progress(&mut self, done: u64, total: u64, what: &'static str) -> Result<(), Stopped> {
        self.say_slips()?;
        self.sink.progress(done, total, what)
    }

    fn take_output(&mut self) -> Result<OwnedFd, String> {
        self.sink.take_output()
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.say_slips()?;
        self.sink.wait(duration)
    }
}
