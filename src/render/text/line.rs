//! `info line`.

use super::Text;
use super::block;
use super::footnotes::Footnotes;
use super::lines::Lines;
use crate::render::Record;
use crate::render::theme::Role;
use crate::report::{LineFrame, LineReport, Why};

impl Record for LineReport {
    fn write(&self, text: &mut Text) {
        text.block(write, self);
    }
}

/// `0x401136 <main+4> of demo, in 0x401132..0x40113a`, or for a line `0x401132..0x40113a <main> of demo`; then a line
/// for each function, the innermost first.
pub fn write(lines: &mut Lines, report: &LineReport) {
    let line = lines.line();
    let is_of_line = report.first.is_some();
    let range = report.start.zip(report.end);
    let range = range.filter(|(start, end)| start < end);
    match range.filter(|_| is_of_line) {
        Some((start, end)) => line.push(Role::Address, format!("{start}..{end}")),
        None => line.push(Role::Address, report.address),
    };
    if let Some(symbol) = &report.symbol {
        block::symbol(line.plain(" "), symbol);
    }
    if let Some(module) = &report.module {
        line.plain(" of ").push(Role::Name, module);
    }
    match (range, report.first) {
        (Some((start, end)), None) => {
            line.plain(", in ").push(Role::Address, format!("{start}..{end}"));
        }
        (None, Some(_)) => {
            line.push(Role::Dim, ", where it begins without code");
        }
        (Some(_), Some(false)) => _ = line.push(Role::Dim, ", not its first statement"),
        _ => {}
    }
    for frame in &report.frames {
        place(lines, frame);
    }
    footnotes(&report.why).write(lines);
}

/// The reasons that a reader needs: a missing line also explains a missing column.
fn footnotes(why: &Why) -> Footnotes {
    let mut notes = Footnotes::default();
    for field in ["module", "file", "line"] {
        if let Some(reason) = why.of(field) {
            notes.add(field, reason);
        }
    }
    if let Some(reason) = why.of("frames")
        && why.of("line") != Some(reason)
    {
        notes.add("frames", reason);
    }
    notes
}

/// ` parse at /src/server.c:210:5, inlined into`
fn place(lines: &mut Lines, frame: &LineFrame) {
    let line = lines.line();
    line.plain("  ").indent(4);
    if let Some(function) = &frame.function {
        line.push(Role::Symbol, function).plain(" ");
    }
    line.plain("at ");
    match &frame.file {
        Some(file) => line.push(Role::Name, file),
        None => line.push(Role::Dim, "an unknown file"),
    };
    match frame.line {
        Some(number) => {
            line.plain(format!(":{number}"));
            if let Some(column) = frame.column {
                line.plain(format!(":{column}"));
            }
        }
        None => _ = line.plain(", no line"),
    }
    if frame.inlined {
        line.push(Role::Dim, ", inlined into");
    }
}
