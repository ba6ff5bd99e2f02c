//! `info capabilities`: what is available, how pmdb found out, and how to get the rest.

use super::block::field;
use super::style::Style;
use crate::render::theme::Role;
use crate::report::{Capabilities, Capability};
use std::io::{self, Write};

/// The columns of the names and of their descriptions.
const NAME: usize = 10;
const FOUND: usize = NAME + 18;

/// Writes the block.
pub fn write(style: &Style, report: &Capabilities, out: &mut dyn Write) -> io::Result<()> {
    field(style, "kernel").plain(&report.kernel).end(out)?;
    if let Some(user) = report.user {
        let mut line = field(style, "pmdb");
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
            line.word(", ", Role::Warn, "in a user namespace, not the first");
        }
        line.end(out)?;
    }
    if let Some(pid) = report.pid {
        field(style, "target")
            .plain(format!("process {pid}"))
            .end(out)?;
    }
    for capability in &report.capabilities {
        row(style, capability, out)?;
    }
    Ok(())
}

fn row(style: &Style, capability: &Capability, out: &mut dyn Write) -> io::Result<()> {
    let (word, role) = match capability.available {
        Some(true) => ("yes", Role::Good),
        Some(false) => ("no", Role::Warn),
        None => ("unknown", Role::Warn),
    };
    let mut line = style.line();
    line.push(role, word)
        .tab_to(NAME)
        .plain(capability.name)
        .tab_to(FOUND)
        .indent_here()
        .prose(Role::Plain, &capability.found);
    if capability.available != Some(true) {
        line.new_line().push(Role::Label, "without it: ");
        line.prose(Role::Dim, capability.without);
        if let Some(remedy) = &capability.remedy {
            line.new_line().push(Role::Label, "it takes: ");
            line.prose(Role::Note, remedy);
        }
    }
    line.end(out)
}
