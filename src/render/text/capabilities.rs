//! `info capabilities`: what is available, how pmdb found out, and how to get the rest.

use super::Text;
use super::lines::Lines;
use crate::render::Record;
use crate::render::theme::Role;
use crate::report::{Capabilities, Capability};

impl Record for Capabilities {
    fn write(&self, text: &mut Text) {
        text.block(write, self);
    }
}

/// The columns of the names and of their descriptions.
const NAME: usize = 10;
const FOUND: usize = NAME + 18;

/// Writes the block.
pub fn write(lines: &mut Lines, report: &Capabilities) {
    lines.field("kernel").plain(&report.kernel);
    if let Some(user) = report.user {
        let line = lines.field("pmdb");
        line.plain(format!("runs as user {user}"));
        match report.rights.as_deref() {
            None => {}
            Some([]) => _ = line.word(", ", Role::Plain, "without rights of its own"),
            Some(rights) => {
                for (index, right) in rights.iter().enumerate() {
                    let text = match index {
                        0 => format!("with {right}"),
                        _ => (*right).to_owned(),
                    };
                    line.word(", ", Role::Plain, text);
                }
            }
        }
        if report.first_user_namespace == Some(false) {
            line.word(", ", Role::Warn, "in a user namespace other than the initial one");
        }
    }
    if let Some(pid) = report.pid {
        lines.field("target").plain(format!("process {pid}"));
    }
    for capability in &report.capabilities {
        row(lines, capability);
    }
}

fn row(lines: &mut Lines, capability: &Capability) {
    let (word, role) = match capability.available {
        Some(true) => ("yes", Role::Good),
        Some(false) => ("no", Role::Warn),
        None => ("unknown", Role::Warn),
    };
    let line = lines.line();
    line.push(role, word).tab_to(NAME).plain(capability.name).indent_at(FOUND).prose(Role::Plain, &capability.found);
    if capability.available != Some(true) {
        line.new_line().push(Role::Label, "without it: ");
        line.prose(Role::Dim, capability.without);
        if let Some(remedy) = &capability.remedy {
            line.new_line().push(Role::Label, "it takes: ");
            line.prose(Role::Note, remedy);
        }
    }
}
