//! The commands: one file each. Here: what a command is, the list of all, and how one is run.
//!
//! A command reads the state, asks `inspect`, and emits records; it prints nothing.

mod about;
mod account;
mod alias;
mod apropos;
mod assert;
mod attach;
mod capabilities;
mod capture;
mod compare;
mod complete;
mod completion;
mod control;
mod counterpart;
mod decode;
mod diff;
mod display;
mod echo;
mod error;
mod examine;
mod explain;
mod find;
mod flags;
mod frames;
mod help;
mod history;
mod how;
mod line;
mod map;
mod modules;
mod named_pages;
mod patched;
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
mod watch_groups;
mod who;

pub use about::{About, Group};
pub use assert::Assert;
pub use attach::{Attach, TargetName};
pub use capture::TargetCapture;
pub use completion::{BETWEEN_KEYS, Offer};
pub use display::Display;
pub use error::Error;
pub use print::Print;
pub use rows::CUT;
pub use set::{Set, assign};
pub use source::{Source, expand_home};

use crate::budget::Budget;
use crate::eval::{self, Integer, Value};
use crate::kernel::{FrameNumber, PageSize, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens};
use crate::lang::{CommandName, Expected, How, Language, ParsedCommand, Spanned, Statement, Syntax};
use crate::process::Target;
use crate::render::{Record, Sink};
use crate::report::{AssertionReport, SHARED, Shape, Stopped};
use crate::state::DebugState;
use about::example;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// All commands, and their language.
pub static COMMANDS: Commands = Commands { entries: &ENTRIES, records: &RECORDS, language: LANGUAGE };

/// The language of the commands.
pub const LANGUAGE: Language = Language(&SYNTAX);

/// Every command, in the order of `help`.
static ENTRIES: [Entry; 64] = [
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
    Entry::of::<explain::Explain>(),
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
    Entry::of::<snapshot::Snapshot>(),
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
    Entry::of::<print::Output>(),
    Entry::of::<set::Set>(),
    Entry::of::<show::Show>(),
    Entry::of::<echo::Echo>(),
    Entry::of::<source::Source>(),
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
    records.sort_by_key(|shape| shape.name);
    records
});

static SYNTAX: [Syntax; ENTRIES.len()] = Entry::syntax(&ENTRIES);

/// Where the word at the cursor begins, and what it could become. `patience` is the time limit of a search for names.
pub fn complete(state: &DebugState, line: &str, cursor: usize, patience: Duration) -> (usize, Vec<Offer>) {
    completion::complete(COMMANDS, state, line, cursor, patience)
}

/// What the session must know of a command.
pub fn nature(command: &dyn ParsedCommand) -> Nature {
    COMMANDS.find(command).map(Run::nature).unwrap_or_default()
}

/// Runs a command.
///
/// # Errors
/// What was tried, why it failed, and the remedy.
pub fn run(
    command: &dyn ParsedCommand,
    state: &mut DebugState,
    sink: &mut dyn Sink,
    resume: Option<Resume>,
) -> Outcome {
    state.symbols.begin_command();
    state.notes.take();
    let mut shown = LastRowSink::new(state, sink);
    let outcome = how::run(command, &mut Context { commands: COMMANDS, state: &mut *state, sink: &mut shown, resume });
    // Displays at the prompt must not change `$_`.
    if command.downcast_ref::<Display>().is_none() {
        shown.remember(state);
    }
    state.symbols.end_command();
    if outcome.is_ok() {
        for message in state.notes.take() {
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

/// A command: its arguments, and all that is known of it.
pub trait Command: Debug + Sized + 'static {
    /// Its name and its help.
    const ABOUT: About;

    /// The records that are declared with it.
    const RECORDS: &'static [Shape] = &[];

    /// Samples of these records.
    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        Vec::new()
    }

    /// Parses what follows the name.
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self>;

    /// The same as a statement. A command with something before its `--how` parses that itself.
    fn statement(input: Tokens<'_>) -> Parsed<'_, Statement> {
        let (behind, command) = Self::parse(input)?;
        Ok((behind, Statement::Command(Rc::new(command))))
    }

    /// Writes what follows the name, with the blank before it, so that it parses to the same.
    fn write(&self, _f: &mut Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Reads the state, asks `inspect`, emits records.
    ///
    /// # Errors
    /// What was tried, why it failed, and the remedy.
    fn run(&self, context: &mut Context) -> Outcome;

    /// What the session must know of it.
    fn nature(&self) -> Nature {
        Nature::default()
    }
}

/// What the session must know of a command.
#[derive(Clone, Copy, Default)]
pub struct Nature {
    /// It can draw a picture into an SVG file.
    pub draws: bool,
    /// It changes how the process runs.
    pub changes_process: bool,
    /// It writes a file, which `--no-shell` refuses.
    pub writes_file: bool,
    /// It attaches to a process, or detaches from it.
    pub chooses_target: bool,
    /// It has to do with displays, so that the next prompt need not show them.
    pub concerns_displays: bool,
    /// Ctrl-C is its normal end.
    pub ends_by_interrupt: bool,
}

impl<C: Command> ParsedCommand for C {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(C::ABOUT.name.name)?;
        Command::write(self, f)
    }
}

/// A command behind a pointer.
pub trait Run {
    /// As [`Command::run`].
    ///
    /// # Errors
    /// As [`Command::run`].
    fn run(&self, context: &mut Context) -> Outcome;

    /// As [`Command::nature`].
    fn nature(&self) -> Nature;
}

impl<C: Command> Run for C {
    fn run(&self, context: &mut Context) -> Outcome {
        Command::run(self, context)
    }

    fn nature(&self) -> Nature {
        Command::nature(self)
    }
}

/// A command in the list of all.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name and its help.
    pub about: About,
    /// The records that are declared with it.
    records: &'static [Shape],
    #[cfg(test)]
    samples: fn() -> Vec<Box<dyn Record>>,
    parse: for<'a> fn(Tokens<'a>) -> Parsed<'a, Statement>,
    of: fn(&dyn ParsedCommand) -> Option<&dyn Run>,
}

impl Entry {
    /// The entry of a command.
    const fn of<C: Command>() -> Self {
        Entry {
            about: C::ABOUT,
            records: C::RECORDS,
            #[cfg(test)]
            samples: C::samples,
            parse: C::statement,
            of: of::<C>,
        }
    }

    /// The entry of words that the language itself gives a meaning: lines of blocks, `pipe`, `shell`.
    const fn of_language(about: About, parse: for<'a> fn(Tokens<'a>) -> Parsed<'a, Statement>) -> Self {
        Entry {
            about,
            records: &[],
            #[cfg(test)]
            samples: Vec::new,
            parse,
            of: |_| None,
        }
    }

    /// The entries as the parser sees them.
    const fn syntax<const N: usize>(entries: &[Entry; N]) -> [Syntax; N] {
        let mut all = [Syntax { name: entries[0].about.name, parse: entries[0].parse }; N];
        let mut at = 1;
        while at < N {
            all[at] = Syntax { name: entries[at].about.name, parse: entries[at].parse };
            at += 1;
        }
        all
    }
}

fn of<C: Run + 'static>(command: &dyn ParsedCommand) -> Option<&dyn Run> {
    command.downcast_ref::<C>().map(|command| command as &dyn Run)
}

/// All commands, and the language that they make.
#[derive(Clone, Copy)]
pub struct Commands {
    entries: &'static [Entry],
    /// Every record, sorted by the word that JSON has as its `type`.
    pub records: &'static LazyLock<Vec<Shape>>,
    /// The language of these commands.
    pub language: Language,
}

impl Commands {
    /// Their descriptions, in the order of the help.
    pub fn abouts(self) -> impl Iterator<Item = &'static About> {
        self.entries.iter().map(|entry| &entry.about)
    }

    /// The commands that `words` mean: by full name or short form, otherwise those whose words begin with them.
    fn matching(self, words: &str) -> Vec<&'static About> {
        let is_meant = |about: &&About| about.name.name == words || about.name.short.contains(&words);
        if let Some(about) = self.abouts().find(is_meant) {
            return vec![about];
        }
        let begins = |about: &&About| {
            let mut name = about.name.name.split(' ');
            words.split(' ').all(|word| name.next().is_some_and(|part| part.starts_with(word)))
        };
        self.abouts().filter(begins).collect()
    }

    /// What runs a command.
    fn find(self, command: &dyn ParsedCommand) -> Option<&dyn Run> {
        let command = command.downcast_ref::<How>().map_or(command, |How(inner)| &**inner);
        self.entries.iter().find_map(|entry| (entry.of)(command))
    }
}

/// The input of a command.
pub struct Context<'a> {
    /// All commands.
    pub commands: Commands,
    /// The debugging session: target, variables, settings.
    pub state: &'a mut DebugState,
    /// Where its records go.
    pub sink: &'a mut dyn Sink,
    /// Where the same command stopped before, when an empty line asks for more of it.
    pub resume: Option<Resume>,
}

impl Context<'_> {
    /// The target.
    fn target(&self) -> Result<Arc<Target>, Error> {
        self.state.target().cloned().ok_or_else(Error::no_target)
    }
}

/// Where a command that stopped early continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resume {
    /// From this address.
    Address(VirtualAddress),
    /// From this frame.
    Frame(FrameNumber),
    /// With the action that the user has agreed to.
    Agreed,
}

/// What happens after a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Flow {
    /// The next line.
    Done,
    /// The next line; an empty one continues from here.
    More(Resume),
    /// The lines of a file with these arguments, then the next line.
    Source(std::path::PathBuf, Vec<Value>),
    /// The next line if it holds; otherwise an error.
    Asserted(Box<AssertionReport>),
    /// The same command again, if the user says yes to this question.
    Ask(String),
    /// Leave, with this exit status.
    Quit(u8),
}

/// What every command returns.
pub type Outcome = Result<Flow, Error>;

/// Passes records on, and keeps the address of the last row and the totals.
struct LastRowSink<'a> {
    sink: &'a mut dyn Sink,
    page: PageSize,
    row: Option<VirtualAddress>,
    /// The totals, by the names of their variables.
    totals: BTreeMap<&'static str, u64>,
}

impl<'a> LastRowSink<'a> {
    fn new(state: &DebugState, sink: &'a mut dyn Sink) -> Self {
        LastRowSink { sink, page: state.machine().page(), row: None, totals: BTreeMap::new() }
    }

    /// Sets the variables. Commands with rows unset `$_` before the first row.
    fn remember(self, state: &mut DebugState) {
        state.last_address = self.row.or(state.last_address);
        for (name, number) in self.totals {
            let value = Value::Integer(Integer::from(number));
            state.variables.insert(name.to_owned(), value);
        }
    }

    fn note(&mut self, record: &dyn Record) {
        self.row = record.address().or(self.row);
        // The totals of several processes add up.
        for (name, number) in record.totals(self.page) {
            *self.totals.entry(name).or_default() += number;
        }
    }
}

impl Sink for LastRowSink<'_> {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.note(record);
        self.sink.emit(record)
    }

    fn name_columns(&mut self, titles: &[&'static str]) {
        self.sink.name_columns(titles);
    }

    fn is_greeting(&self) -> bool {
        self.sink.is_greeting()
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.sink.check()
    }

    fn budget(&self) -> Budget {
        self.sink.budget()
    }

    fn progress(&mut self, done: u64, total: u64, what: &'static str) -> Result<(), Stopped> {
        self.sink.progress(done, total, what)
    }

    fn wait(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.sink.wait(duration)
    }
}
