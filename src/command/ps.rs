//! `ps [TEXT]`: processes to attach to.

use super::{About, Context, Example, Flow, Group, Outcome};
use crate::process::ProcessEntry;
use crate::report::{Note, ProcessRow, Record};

pub(super) const ABOUT: About = About {
    name: "ps",
    group: Group::Target,
    summary: "list processes",
    text: "Every process, or those whose name or command line holds a text (of pmdb itself the name alone is searched): id, user, state, resident \
           memory, name and command line. A command line lies in the memory of its process: where that is \
           swapped out, or may not be looked at, it is not asked for, as asking would bring it in.",
    examples: &[
        Example {
            line: "ps",
            does: "all processes",
        },
        Example {
            line: "ps demo",
            does: "those with demo in their name",
        },
    ],
};

pub(super) fn run(context: &mut Context, filter: Option<&str>) -> Outcome {
    // The text is in pmdb's own command line if it was given there.
    let own = std::process::id();
    let wanted = |entry: &&ProcessEntry| {
        filter.is_none_or(|text| {
            let contains = |bytes: &[u8]| {
                bytes
                    .windows(text.len().max(1))
                    .any(|part| part == text.as_bytes())
            };
            text.is_empty()
                || contains(entry.name.as_bytes())
                || entry
                    .command_line
                    .as_ref()
                    .filter(|_| entry.pid != own)
                    .is_some_and(|line| contains(line.as_bytes()))
        })
    };
    let processes = context.state.machine().processes()?;
    let mut none = true;
    for entry in processes.iter().filter(wanted) {
        none = false;
        context.sink.emit(Record::ProcessEntry(row(entry)))?;
    }
    if none {
        let message = "no process has that in its name or command line".to_owned();
        context.sink.emit(Record::Note(Note { message }))?;
    }
    Ok(Flow::Done)
}

/// A process as a row.
pub(super) fn row(entry: &ProcessEntry) -> ProcessRow {
    ProcessRow {
        pid: entry.pid,
        user: entry.user,
        state: entry.state,
        resident: entry.resident,
        name: entry.name.clone(),
        command_line: entry.command_line.clone(),
    }
}
