//! `history [N]`

use super::{About, CommandName, Context, Flow, Group, Outcome, example};
use crate::report::HistoryEntry;

/// Lines shown when no number is given, as many as a small screen holds.
const USUAL: usize = 20;

pub(super) const ABOUT: About = About {
    name: CommandName::new("history"),
    group: Group::Language,
    summary: "list the lines typed before",
    text: "\
Lists the last N lines typed at the prompt, 20 by default. The file $XDG_STATE_HOME/pmdb/history, which only you can \
read, keeps them between sessions. `set history size N` limits their number. With --no-shell there is no file.",
    examples: &[example("history 5", "list the last five lines")],
};

pub(super) fn run(context: &mut Context, limit: Option<u64>) -> Outcome {
    let wanted = limit.map_or(USUAL, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    for (number, line) in context.state.lines.last(wanted) {
        let entry = HistoryEntry { number, line: line.into() };
        context.sink.emit(&entry)?;
    }
    Ok(Flow::Done)
}
