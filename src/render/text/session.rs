//! The session's target.

use super::Text;
use super::lines::Lines;
use crate::render::Record;
use crate::render::theme::Role;
use crate::render::units::counted;
use crate::report::TargetReport;

impl Record for TargetReport {
    fn write(&self, text: &mut Text) {
        text.line(target, self);
    }

    fn is_greeting(&self) -> bool {
        self.remarks.is_empty()
    }
}

/// `attached to process 812 (bash), /usr/bin/bash, 34 regions`
pub fn target(lines: &mut Lines, target: &TargetReport) {
    let line = lines.line();
    match target.event {
        "attached" => line.plain("attached to process "),
        "detached" => line.plain("detached from process "),
        "exited" => line.push(Role::Bad, "the process has exited: "),
        "executed" => line.push(Role::Warn, "the process runs another program now: "),
        other => line.plain(format!("{other}: process ")),
    };
    line.plain(target.pid).plain(" (").push(Role::Name, &target.name).plain(")");
    if let Some(executable) = &target.executable {
        line.plain(", ").push(Role::Name, executable);
    }
    if let Some(regions) = target.regions {
        line.plain(format!(", {}", counted(regions, "region")));
    }
    for remark in &target.remarks {
        let line = lines.line();
        line.plain("  ").indent_here().prose(Role::Note, remark);
    }
}
