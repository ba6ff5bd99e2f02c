//! Values, symbols, processes, and the session's target.

use super::Text;
use super::block::{self, region_name};
use super::lines::Lines;
use super::tables::Table;
use crate::render::Record;
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::render::units::{counted, duration, size};
use crate::report::{
    DisplayReport, HistoryEntry, ProcessReport, Reason, SettingReport, SymbolReport, SymbolsSummary, TargetReport,
    ValueReport,
};

impl Record for ValueReport {
    fn write(&self, text: &mut Text) {
        text.line(value, self);
    }
}

impl Record for DisplayReport {
    fn write(&self, text: &mut Text) {
        text.line(display, self);
    }
}

impl Record for SymbolReport {
    fn write(&self, text: &mut Text) {
        text.line(symbol, self);
    }
}

impl Record for SymbolsSummary {
    fn write(&self, text: &mut Text) {
        text.line(symbols_summary, self);
    }
}

impl Record for ProcessReport {
    fn write(&self, text: &mut Text) {
        text.block(process, self);
    }
}

impl Record for TargetReport {
    fn write(&self, text: &mut Text) {
        text.line(target, self);
    }

    fn is_greeting(&self) -> bool {
        self.remarks.is_empty()
    }
}

impl Record for SettingReport {
    fn write(&self, text: &mut Text) {
        text.row(&SETTINGS, self);
    }
}

impl Record for HistoryEntry {
    fn write(&self, text: &mut Text) {
        text.row(&HISTORY, self);
    }
}

/// `show`
pub static SETTINGS: Table<SettingReport> = Table::of(&[
    Column::word("setting", 17, Role::Command).cell(|_, setting| Cell::new(&setting.name)),
    Column::word("value", 12, Role::Plain).cell(|_, setting| Cell::new(&setting.value)),
    Column::word("meaning", 20, Role::Dim).cell(|_, setting| Cell::new(&setting.meaning)),
]);

/// `history`
pub static HISTORY: Table<HistoryEntry> = Table::of(&[
    Column::number("", 5, Role::Dim).cell(|_, entry| Cell::new(entry.number.to_string())),
    Column::word("", 20, Role::Plain).cell(|_, entry| Cell::new(&entry.line)),
]);

/// `$1 = 0x401136 <main+4> in demo`
pub fn value(lines: &mut Lines, value: &ValueReport) {
    let line = lines.line();
    if let Some(number) = value.number {
        line.push(Role::Dim, format!("${number} = "));
    } else if let Some(name) = &value.name {
        line.push(Role::Dim, format!("${name} = "));
    }
    let role = match value.kind {
        "address" | "range" => Role::Address,
        "physical" => Role::Physical,
        "frame" => Role::Frame,
        "text" => Role::Quoted,
        _ => Role::Plain,
    };
    match value.value.as_str() {
        // The name of memory without one, for instance.
        "" => line.push(role, "\"\""),
        text => line.push(role, text),
    };
    if let Some(symbol) = &value.symbol {
        line.plain(" ");
        block::symbol(line, &symbol.0);
    }
    if let Some(region) = &value.region {
        let (role, name) = region_name(region);
        line.plain("  in ").push(role, name);
    }
    if let Some(also) = &value.also {
        line.plain("  ").push(Role::Dim, format!("({also})"));
    }
}

/// `1: rss(heap) = 4096`; for a command, the line before its answer.
pub fn display(lines: &mut Lines, display: &DisplayReport) {
    let line = lines.line();
    if let Some(number) = display.number {
        line.push(Role::Dim, format!("{number}: "));
    }
    line.plain(&display.expression);
    match (&display.value, &display.reason) {
        (Some(value), _) => line.plain(" = ").push(Role::Plain, value),
        (None, Some(why)) => line.plain(" = ").push(Role::Warn, format!("<{why}>")),
        (None, None) => line,
    };
}

/// `malloc+16 in section .text of libc.so.6`, then where and how big.
pub fn symbol(lines: &mut Lines, symbol: &SymbolReport) {
    let line = lines.line();
    line.push(Role::Symbol, &symbol.name);
    if symbol.offset != 0 {
        line.push(Role::Symbol, format!("+{}", symbol.offset));
    }
    if let Some(section) = &symbol.section {
        line.plain(format!(" in section {section}"));
    }
    line.plain(" of ").push(Role::Name, &symbol.module);
    let line = lines.line();
    line.plain("  at ").push(Role::Address, symbol.address).indent(2).word(", ", Role::Plain, kind_words(symbol.kind));
    if symbol.size > 0 {
        line.word(", ", Role::Plain, counted(symbol.size, "byte"));
    }
    line.word(", ", Role::Plain, format!("linked at {}", symbol.file_address));
    if let Some(mangled) = &symbol.mangled {
        line.word(", ", Role::Plain, format!("mangled {mangled}"));
    }
}

/// `12 symbols`, and the modules without symbols.
pub fn symbols_summary(lines: &mut Lines, summary: &SymbolsSummary) {
    let line = lines.line();
    line.plain(counted(summary.symbols, "symbol"));
    if summary.cut_short {
        line.plain("; there are more: the limit is reached");
    }
    for silent in &summary.silent {
        let line = lines.line();
        line.plain("no symbols of ")
            .push(Role::Name, &silent.module)
            .plain(": ")
            .indent(2)
            .prose(Role::Dim, &silent.reason);
    }
}

fn kind_words(kind: &str) -> &str {
    match kind {
        "tls" => "thread-local",
        "untyped" => "a symbol without a type",
        other => other,
    }
}

/// The block of `info process`.
pub fn process(lines: &mut Lines, process: &ProcessReport) {
    let line = lines.field("process");
    line.plain(process.pid).plain("  ").push(Role::Name, &process.name).plain(format!(
        "  {}, {}, user {}, parent {}",
        process.state,
        counted(process.threads.into(), "thread"),
        process.user,
        process.parent
    ));
    if let Some(tracer) = process.tracer {
        lines.field("traced").plain(format!("by process {tracer}"));
    }
    if let Some(executable) = &process.executable {
        lines.field("program").push(Role::Name, executable);
    }
    if let Some(command_line) = &process.command_line {
        lines.field("command").plain(command_line);
    }
    if let Some(age) = process.age {
        lines.field("running").plain(format!("for {}", duration(age)));
    }
    lines.field("layout").plain(format!(
        "pages of {}, {}-bit pointers",
        size(process.page_size),
        u32::from(process.pointer_bytes) * 8
    ));
    let frames = lines.field("frames");
    if process.frames_hidden {
        frames.prose(Role::Warn, Reason::FrameHidden)
    } else {
        frames.plain("shown")
    };
    let mut label = "memory";
    for memory in &process.memory {
        let line = lines.field(label);
        let bytes = size(memory.bytes);
        line.push(Role::Plain, &memory.name)
            .pad_to(30usize.saturating_sub(bytes.len()))
            .push(Role::Size, bytes)
            .indent_at(32)
            .prose(Role::Dim, memory.meaning);
        label = "";
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
