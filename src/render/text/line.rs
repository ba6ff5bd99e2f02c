//! `info line`.

use super::footnotes::Footnotes;
use super::look::Look;
use crate::render::theme::Role;
use crate::report::{LineFrame, LineReport};
use std::io::{self, Write};

/// `0x401136 <main+4> of demo`, then a line for each function, the innermost first.
pub fn write(look: &Look, report: &LineReport, out: &mut dyn Write) -> io::Result<()> {
    let mut line = look.line();
    line.push(Role::Address, report.address);
    if let Some(symbol) = &report.symbol {
        let offset = match symbol.offset {
            0 => String::new(),
            offset => format!("+{offset}"),
        };
        line.plain(" ")
            .push(Role::Symbol, format!("<{}{offset}>", symbol.name));
    }
    if let Some(module) = &report.module {
        line.plain(" of ").push(Role::Name, module);
    }
    line.end(out)?;
    for frame in &report.frames {
        place(look, frame, out)?;
    }
    Footnotes::of(&report.why).write(look, out)
}

/// `  parse at /src/server.c:210:5, inlined into`
fn place(look: &Look, frame: &LineFrame, out: &mut dyn Write) -> io::Result<()> {
    let mut line = look.line();
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
    line.end(out)
}
