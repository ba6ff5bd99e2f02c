//! What memory holds: rows as gdb's `x` has them.

use super::block::{symbol, symbol_text};
use super::look::Look;
use super::words;
use crate::kernel::Kind;
use crate::render::line::Line;
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::Memory;
use std::io::{self, Write};

/// Columns from one tab stop to the next: gdb writes tabs.
const TAB: usize = 8;

/// `0x7ffe… <buf+16>:  0x01  0x02`
pub fn row(look: &Look, memory: &Memory, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Line::new(look.theme, None);
    line.push(Role::Address, memory.address);
    if let Some(named) = &memory.symbol {
        line.plain(" ");
        symbol(&mut line, named);
    }
    line.plain(":");
    for (index, value) in memory.values.iter().enumerate() {
        tab(&mut line);
        line.plain(value);
        if let Some(Some(named)) = memory.symbols.get(index) {
            line.push(Role::Symbol, format!(" {}", symbol_text(named)));
        }
    }
    if memory.bytes.is_none() {
        tab(&mut line);
        absent(&mut line, memory);
    }
    if memory.source == Some("file") {
        line.push(Role::Note, "  (file)");
    }
    if memory.faulted {
        let state = memory.state.word();
        line.push(Role::Warn, format!("  (faulted in: was {state})"));
    }
    line.end(out)
}

fn tab(line: &mut Line) {
    line.pad_to((line.column() / TAB + 1) * TAB);
}

/// `<not resident: untouched>`
fn absent(line: &mut Line, memory: &Memory) {
    let role = words::state_role(memory.state);
    match (memory.unread, memory.kind) {
        (Some(why), _) => line.push(role, format!("<not read: {why}>")),
        (
            None,
            Some(kind @ (Kind::Cached | Kind::NotCached | Kind::PastEnd | Kind::MaybeSwapped)),
        ) => {
            let text = format!("<not resident: {}, {}>", memory.state.word(), kind.word());
            line.push(role, text)
        }
        (None, _) => line.push(role, format!("<not resident: {}>", memory.state.word())),
    };
    if memory.length > memory.unit.into() {
        line.push(Role::Dim, format!("  {}", size(memory.length)));
    }
}
