//! The commands: one file each, a static table that names them all, and the way from a parsed command to its file.
//!
//! A command reads the state, asks `inspect`, and emits records; it formats nothing.

mod about;
mod alias;
mod apropos;
mod assert;
mod attach;
mod capabilities;
mod context;
mod control;
mod decode;
mod detach;
mod echo;
mod error;
mod examine;
mod explain;
mod find;
mod flags;
mod format;
mod frames;
mod groups;
mod help;
mod history;
mod how;
mod line;
mod modules;
mod print;
mod process;
mod ps;
mod quit;
mod region;
mod regions;
mod set;
mod shell;
mod show;
mod shown;
mod source;
mod summary;
mod symbol;
mod symbols;
mod table;
mod telescope;
#[cfg(test)]
mod tests;
mod through;
mod translate;
mod walk;
mod watch;
mod who;

pub use about::{About, Example, Group};
pub use alias::refuse_taken;
pub use context::{Context, Flow, Outcome, Resume};
pub use error::Error;
pub use set::assign;
pub use table::{TABLE, find};

use crate::lang::{Command, Spanned};
use crate::report::{Note, Record};
use shown::Shown;

/// Runs a command.
///
/// # Errors
/// What was tried, why it failed, and the way out.
pub fn run(command: &Spanned<Command>, context: &mut Context) -> Outcome {
    context.state.symbols.share_regions(true);
    context.state.notes.take();
    let mut shown = Shown::new(context.state, context.sink);
    let outcome = dispatch(
        &command.node,
        &mut Context {
            state: &mut *context.state,
            sink: &mut shown,
            resume: context.resume,
        },
    );
    shown.remember(context.state);
    context.state.symbols.share_regions(false);
    if outcome.is_ok() {
        for message in context.state.notes.take() {
            context.sink.emit(Record::Note(Note { message }))?;
        }
    }
    outcome
}

fn dispatch(command: &Command, context: &mut Context) -> Outcome {
    match command {
        Command::Attach(name) => attach::run(context, &name.node),
        Command::Detach => detach::run(context),
        Command::Ps { filter } => ps::run(context, filter.as_deref()),
        Command::InfoProcess => process::run(context),
        Command::InfoCapabilities => capabilities::run(context),
        Command::InfoSymbol(address) => symbol::run_symbol(context, address),
        Command::InfoAddress(name) => symbol::run_address(context, name),
        Command::InfoSymbols { pattern, limit } => symbols::run(context, pattern, *limit),
        Command::InfoModules => modules::run(context),
        Command::InfoLine(place) => line::run(context, place),
        Command::Translate { range, limit } => translate::run(context, range, *limit),
        Command::Region { address, full } => region::run(context, address, *full),
        Command::Regions { filter, by, full } => regions::run(context, filter.as_ref(), *by, *full),
        Command::Walk {
            range,
            filter,
            by,
            limit,
        } => {
            let arguments = through::Arguments {
                range,
                filter: filter.as_ref(),
                by: *by,
                limit: *limit,
            };
            walk::run(context, &arguments)
        }
        Command::Flags { place } => flags::run(context, place),
        Command::Who { place, limit } => who::run(context, place, *limit),
        Command::Summary(summarized) => summary::run(context, summarized),
        Command::Explain { address } => explain::run(context, address),
        Command::How(command) => how::run(context, |context| dispatch(command, context)),
        Command::Decode { value, reading } => decode::run(context, value, *reading),
        Command::Watch {
            range,
            every,
            duration,
            count,
            until,
            with,
        } => {
            let arguments = watch::Arguments {
                range,
                every: *every,
                duration: *duration,
                count: *count,
                until: until.as_ref(),
                with,
            };
            watch::run(context, &arguments)
        }
        Command::Print { format, value } => print::run(context, *format, value),
        Command::Examine {
            layout,
            fault,
            address,
        } => examine::run(context, *layout, *fault, address.as_ref()),
        Command::Find {
            layout,
            range,
            patterns,
        } => find::run(context, *layout, range, patterns),
        Command::Telescope { address, count } => telescope::run(context, address, *count),
        Command::Set(assignment) => set::run(context, assignment),
        Command::Show(shown) => show::run(context, *shown),
        Command::Echo(text) => echo::run(context, text),
        Command::Assert { condition, message } => {
            assert::run(context, condition, message.as_deref())
        }
        Command::Alias { name, text } => alias::run(context, name, &text.node),
        Command::Source { path, arguments } => source::run(context, &path.node, arguments),
        Command::History { limit } => history::run(context, *limit),
        Command::Help { topic } => help::run(context, TABLE, topic.as_ref()),
        Command::Apropos(pattern) => apropos::run(context, TABLE, pattern),
        Command::Quit { status } => quit::run(context, status.as_ref()),
    }
}
