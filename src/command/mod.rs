//! The commands: one file each, a static table of all, and the dispatch from a parsed command to its file.
//!
//! A command reads the state, asks `inspect`, and emits records; it prints nothing.

mod about;
mod account;
mod alias;
mod apropos;
mod assert;
mod attach;
mod capabilities;
mod compare;
mod complete;
mod completion;
mod control;
mod counterpart;
mod cut;
mod decode;
mod detach;
mod diff;
mod display;
mod echo;
mod entry;
mod error;
mod examine;
mod explain;
mod find;
mod flags;
mod frames;
mod groups;
mod help;
mod history;
mod home;
mod how;
mod line;
mod map;
mod modules;
mod named_pages;
mod page_sweep;
pub mod parse;
mod patched;
mod print;
mod printf;
mod process;
mod ps;
mod quit;
mod region;
mod regions;
mod schedule;
mod set;
mod shell;
mod show;
mod shown;
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
mod version;
mod walk;
mod watch;
mod watch_groups;
mod who;

pub use about::{About, Group};
pub use assert::Assert;
pub use completion::Offer;
pub use cut::CUT;
pub use display::Display;
use entry::{Command, Entry, Run};
pub use entry::{Commands, Context, Flow, Nature, Outcome, Resume};
pub use error::Error;
pub use home::expand_home;
pub use print::Print;
pub use set::{Set, assign};
pub use source::Source;

use crate::eval;
use crate::lang::parser::{Parsed, Tokens};
use crate::lang::{CommandName, Expected, Language, ParsedCommand, Spanned, Statement, Syntax};
use crate::render::Sink;
use crate::report::{SHARED, Shape};
use crate::state::DebugState;
use about::example;
use shown::Shown;
use std::sync::LazyLock;

/// All commands, and their language.
pub static COMMANDS: Commands = Commands { entries: &ENTRIES, records: &RECORDS, language: LANGUAGE };

/// The language of the commands.
pub const LANGUAGE: Language = Language(&SYNTAX);

/// Every command, in the order of `help`.
static ENTRIES: [Entry; 61] = [
    legacy(attach::ABOUT, parse::parse_attach),
    Entry::of::<detach::Detach>(),
    legacy(process::ABOUT, parse::parse_info_process),
    legacy(threads::ABOUT_THREADS, parse::parse_info_threads),
    legacy(threads::ABOUT_REGISTERS, parse::parse_info_registers),
    legacy(capabilities::ABOUT, parse::parse_info_capabilities),
    legacy(ps::ABOUT, parse::parse_ps),
    Entry::of::<translate::Translate>(),
    legacy(region::ABOUT, parse::parse_region),
    legacy(regions::ABOUT, parse::parse_regions),
    Entry::of::<walk::Walk>(),
    Entry::of::<map::Map>(),
    legacy(flags::ABOUT, parse::parse_flags),
    legacy(who::ABOUT, parse::parse_who),
    legacy(summary::ABOUT, parse::parse_summary),
    Entry::of::<account::AccountFor>(),
    legacy(explain::ABOUT, parse::parse_explain),
    legacy(patched::ABOUT, parse::parse_patched),
    legacy(decode::ABOUT, parse::parse_decode),
    Entry::of::<examine::Examine>(),
    legacy(telescope::ABOUT, parse::parse_telescope),
    Entry::of::<find::Find>(),
    Entry::of::<print::Print>(),
    legacy(symbol::ABOUT_SYMBOL, parse::parse_info_symbol),
    legacy(symbol::ABOUT_ADDRESS, parse::parse_info_address),
    legacy(symbols::ABOUT, parse::parse_info_symbols),
    legacy(modules::ABOUT, parse::parse_info_modules),
    legacy(line::ABOUT, parse::parse_info_line),
    Entry::of::<watch::Watch>(),
    legacy(snapshot::ABOUT, parse::parse_snapshot),
    legacy(snapshot::ABOUT_INFO, parse::parse_info_snapshots),
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

/// The records of each command that has some of its own.
static RECORDS_OF_COMMANDS: &[&[Shape]] = &[
    compare::RECORDS,
    diff::RECORDS,
    snapshot::RECORDS,
    soft_dirty::RECORDS,
    watch::RECORDS,
    find::RECORDS,
    patched::RECORDS,
    telescope::RECORDS,
    examine::RECORDS,
];

/// Every record, sorted by the word that JSON has as its `type`.
pub static RECORDS: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let mut records = [SHARED].iter().chain(RECORDS_OF_COMMANDS).copied().flatten().copied().collect::<Vec<_>>();
    records.sort_by_key(|shape| shape.name);
    records
});

static SYNTAX: [Syntax; ENTRIES.len()] = Entry::syntax(&ENTRIES);

const fn legacy(about: About, parse: for<'a> fn(Tokens<'a>) -> Parsed<'a, Statement>) -> Entry {
    Entry { about, parse, of: entry::of::<parse::Command> }
}

/// Where the word at the cursor begins, and what it could become.
pub fn complete(state: &DebugState, line: &str, cursor: usize) -> (usize, Vec<Offer>) {
    completion::complete(COMMANDS, state, line, cursor)
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
    state.symbols.share_regions(true);
    state.notes.take();
    let mut shown = Shown::new(state, sink);
    let outcome = how::run(command, &mut Context { commands: COMMANDS, state: &mut *state, sink: &mut shown, resume });
    // Displays at the prompt must not change `$_`.
    if command.downcast_ref::<Display>().is_none() {
        shown.remember(state);
    }
    state.symbols.share_regions(false);
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

impl Run for parse::Command {
    fn run(&self, context: &mut Context) -> Outcome {
        dispatch(self, context)
    }

    fn nature(&self) -> Nature {
        Nature { chooses_target: matches!(self, parse::Command::Attach(_)), ..Nature::default() }
    }
}

fn dispatch(command: &parse::Command, context: &mut Context) -> Outcome {
    match command {
        parse::Command::Attach(name) => attach::run(context, &name.node),
        parse::Command::Ps(asked) => ps::run(context, asked),
        parse::Command::InfoProcess => process::run(context),
        parse::Command::InfoCapabilities => capabilities::run(context),
        parse::Command::InfoSymbol(address) => symbol::run_symbol(context, address),
        parse::Command::InfoAddress(name) => symbol::run_address(context, name),
        parse::Command::InfoSymbols { pattern, cut } => symbols::run(context, pattern, cut.as_ref()),
        parse::Command::InfoModules => modules::run(context),
        parse::Command::InfoThreads => threads::run_threads(context),
        parse::Command::InfoRegisters => threads::run_registers(context),
        parse::Command::InfoLine(place) => line::run(context, place),
        parse::Command::Region { address, full } => region::run(context, address, *full),
        parse::Command::Regions(asked) => regions::run(context, asked),
        parse::Command::Flags(place) => flags::run(context, place),
        parse::Command::Who { place, limit } => who::run(context, place, limit.as_ref()),
        parse::Command::Summary(summarized) => summary::run(context, summarized),
        parse::Command::Explain(address) => explain::run(context, address),
        parse::Command::Decode { value, reading } => decode::run(context, value, *reading),
        parse::Command::Snapshot(asked) => snapshot::run(context, asked),
        parse::Command::SnapshotDelete(name) => snapshot::delete(context, name),
        parse::Command::InfoSnapshots => snapshot::list(context),
        parse::Command::Patched(range) => patched::run(context, range.as_ref()),
        parse::Command::Telescope { address, count } => telescope::run(context, address, *count),
    }
}
