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
mod context;
mod control;
mod counterpart;
mod cut;
mod decode;
mod detach;
mod diff;
mod display;
mod echo;
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
mod version;
mod walk;
mod watch;
mod watch_groups;
mod who;

pub use about::{About, Group};
pub use alias::refuse_taken;
pub use completion::Offer;
pub use context::{Context, Flow, Outcome, Resume};
pub use cut::CUT;
pub use error::Error;
pub use home::expand_home;
pub use set::assign;

use crate::lang::{Command, Spanned};
use crate::report::{SHARED, Shape};
use crate::state::DebugState;
use about::example;
use shown::Shown;
use std::sync::LazyLock;

/// Every command, in the order of `help`.
pub static TABLE: &[About] = &[
    attach::ABOUT,
    detach::ABOUT,
    process::ABOUT,
    threads::ABOUT_THREADS,
    threads::ABOUT_REGISTERS,
    capabilities::ABOUT,
    ps::ABOUT,
    translate::ABOUT,
    region::ABOUT,
    regions::ABOUT,
    walk::ABOUT,
    map::ABOUT,
    flags::ABOUT,
    who::ABOUT,
    summary::ABOUT,
    account::ABOUT,
    explain::ABOUT,
    patched::ABOUT,
    decode::ABOUT,
    examine::ABOUT,
    telescope::ABOUT,
    find::ABOUT,
    print::ABOUT,
    symbol::ABOUT_SYMBOL,
    symbol::ABOUT_ADDRESS,
    symbols::ABOUT,
    modules::ABOUT,
    line::ABOUT,
    watch::ABOUT,
    snapshot::ABOUT,
    snapshot::ABOUT_INFO,
    diff::ABOUT,
    compare::ABOUT,
    soft_dirty::ABOUT,
    display::ABOUT,
    display::ABOUT_UNDISPLAY,
    display::ABOUT_INFO,
    assert::ABOUT,
    control::IF,
    control::ELSE,
    control::END,
    control::WHILE,
    control::LOOP_BREAK,
    control::LOOP_CONTINUE,
    control::FOREACH,
    control::DEFINE,
    control::DOCUMENT,
    alias::ABOUT,
    printf::ABOUT,
    print::ABOUT_OUTPUT,
    set::ABOUT,
    show::ABOUT,
    echo::ABOUT,
    source::ABOUT,
    history::ABOUT,
    complete::ABOUT,
    shell::ABOUT_SHELL,
    shell::ABOUT_PIPE,
    help::ABOUT,
    apropos::ABOUT,
    quit::ABOUT,
];

/// Every record, sorted by the word that JSON has as its `type`.
pub static RECORDS: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let mut records = SHARED.to_vec();
    records.sort_by_key(|shape| shape.name);
    records
});

/// Where the word at the cursor begins, and what it could become.
pub fn complete(state: &DebugState, line: &str, cursor: usize) -> (usize, Vec<Offer>) {
    completion::complete(TABLE, state, line, cursor)
}

/// Runs a command.
///
/// # Errors
/// What was tried, why it failed, and the remedy.
pub fn run(command: &Spanned<Command>, context: &mut Context) -> Outcome {
    context.state.symbols.share_regions(true);
    context.state.notes.take();
    let mut shown = Shown::new(context.state, context.sink);
    let outcome =
        dispatch(&command.node, &mut Context { state: &mut *context.state, sink: &mut shown, resume: context.resume });
    // Displays at the prompt must not change `$_`.
    if !matches!(command.node, Command::Display(_)) {
        shown.remember(context.state);
    }
    context.state.symbols.share_regions(false);
    if outcome.is_ok() {
        for message in context.state.notes.take() {
            context.sink.note(message)?;
        }
    }
    outcome
}

fn dispatch(command: &Command, context: &mut Context) -> Outcome {
    match command {
        Command::Attach(name) => attach::run(context, &name.node),
        Command::Detach => detach::run(context),
        Command::Ps(asked) => ps::run(context, asked),
        Command::InfoProcess => process::run(context),
        Command::InfoCapabilities => capabilities::run(context),
        Command::InfoSymbol(address) => symbol::run_symbol(context, address),
        Command::InfoAddress(name) => symbol::run_address(context, name),
        Command::InfoSymbols { pattern, cut } => symbols::run(context, pattern, cut.as_ref()),
        Command::InfoModules => modules::run(context),
        Command::InfoThreads => threads::run_threads(context),
        Command::InfoRegisters => threads::run_registers(context),
        Command::InfoLine(place) => line::run(context, place),
        Command::Translate { range, cut } => translate::run(context, range, cut.as_ref()),
        Command::Region { address, full } => region::run(context, address, *full),
        Command::Regions(asked) => regions::run(context, asked),
        Command::Walk(asked) => walk::run(context, asked),
        Command::Map { range, filter } => map::run(context, range.as_ref(), filter.as_ref()),
        Command::Flags(place) => flags::run(context, place),
        Command::Who { place, limit } => who::run(context, place, limit.as_ref()),
        Command::Summary(summarized) => summary::run(context, summarized),
        Command::Explain(address) => explain::run(context, address),
        Command::How(command) => how::run(context, |context| dispatch(command, context)),
        Command::Decode { value, reading } => decode::run(context, value, *reading),
        Command::Watch(asked) => watch::run(context, asked),
        Command::Snapshot(asked) => snapshot::run(context, asked),
        Command::SnapshotDelete(name) => snapshot::delete(context, name),
        Command::InfoSnapshots => snapshot::list(context),
        Command::Diff(asked) => diff::run(context, asked),
        Command::Account(asked) => account::run(context, asked),
        Command::Compare(asked) => compare::run(context, asked),
        Command::SoftDirty(asked) => soft_dirty::run(context, asked),
        Command::Print { format, value } => print::run(context, *format, value),
        Command::Examine(asked) => examine::run(context, asked),
        Command::Find(asked) => find::run(context, asked),
        Command::Patched(range) => patched::run(context, range.as_ref()),
        Command::Telescope { address, count } => telescope::run(context, address, *count),
        Command::Set(assignment) => set::run(context, assignment),
        Command::Show(shown) => show::run(context, *shown),
        Command::Printf { format, values } => printf::run(context, format, values),
        Command::Output { format, value } => print::output(context, *format, value),
        Command::Display(asked) => display::run(context, asked, dispatch),
        Command::Undisplay(numbers) => display::undisplay(context, numbers),
        Command::InfoDisplay => display::list(context),
        Command::Echo(text) => echo::run(context, text),
        Command::Assert { condition, message } => assert::run(context, condition, message.as_deref()),
        Command::Alias { name, text } => alias::run(context, name, &text.node),
        Command::Source { path, arguments } => source::run(context, &path.node, arguments),
        Command::History(limit) => history::run(context, *limit),
        Command::Complete(text) => complete::run(context, TABLE, text),
        Command::Help(topic) => help::run(context, TABLE, &RECORDS, topic.as_ref()),
        Command::Apropos(pattern) => apropos::run(context, TABLE, &RECORDS, pattern),
        Command::Quit(status) => quit::run(context, status.as_ref()),
    }
}
