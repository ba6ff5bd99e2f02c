//! The record of `x`, and how it is written.

use crate::inspect::ByteSource;
use crate::kernel::{Kind, State, VirtualAddress};
use crate::lang::Format;
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::block::{absent, is_uncertain, symbol, symbol_text};
use crate::render::text::lines::{Line, Lines, Style};
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::json::{JsonForm, Words, leaf};
use crate::report::record::record;
use crate::report::{Declared, HexString, Shape, SymbolBrief, Why};
use serde::{Serialize, Serializer};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[MemoryRow::SHAPE];

record! {
    /// A row of `x`.
    pub struct MemoryRow as "memory" with why {
        /// Address of the first byte.
        address: VirtualAddress,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// Bytes that the row covers.
        length: u64,
        /// The letter of the format.
        format: &'static str,
        /// Bytes in a unit; for text, in a character.
        unit: u8,
        /// The bytes as they lie in memory, in hexadecimal; `null` where nothing was read.
        bytes: Option<HexString>,
        /// Each unit, written out.
        values: Vec<String>,
        /// For addresses: the symbol at each.
        [optional] symbols: Vec<Option<SymbolBrief>>,
        /// The source of the bytes: `memory`, or `file` for the page cache of the file mapped there.
        source: Option<ByteSource>,
        /// Whether the read faulted the page in (`--fault`).
        [optional] faulted: bool,
        /// The state of the pages before they were read.
        state: State,
        /// The kind of the pages, if they were not read.
        kind: Option<Kind>,
        /// Why a page that is present was not read.
        [optional] unread: Option<&'static str>,
        /// For a text whose end was not found: the state of the page where reading stopped.
        [optional] cut_by: Option<State>,
        /// Why a state is only the most likely one.
        [flat] why: Why,
    }
}

leaf!(ByteSource => JsonForm::Word(Words {
    name: "byte_source",
    all: || [ByteSource::Memory, ByteSource::File].map(|source| source.word().to_owned()).to_vec(),
}));

impl Serialize for ByteSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.word().serialize(serializer)
    }
}

impl Record for MemoryRow {
    fn write(&self, text: &mut Text) {
        text.line(row, self);
    }
}

/// Columns from one tab stop to the next: gdb writes tabs.
const TAB: usize = 8;

/// `0x7ffe… <buf+16>: 0x01 0x02`
fn row(lines: &mut Lines, memory: &MemoryRow) {
    let style = &lines.style;
    let mut line = units(style, memory, false);
    let is_wide = style.width.is_some_and(|width| line.column() > width);
    // A text may contain blanks, at which the line must not wrap.
    let is_text = memory.format == Format::Text.letter();
    let has_blanks = || memory.values.iter().any(|value| value.contains(' '));
    if is_wide && !(is_text && has_blanks()) {
        line = units(style, memory, true);
    }
    lines.add(line);
}

/// With tabs before the values, as in gdb, or with single blanks if that is too wide.
fn units(style: &Style, memory: &MemoryRow, is_narrow: bool) -> Line {
    let mut line = Line::new(style.theme, style.width.filter(|_| is_narrow));
    line.indent(4);
    line.push(Role::Address, memory.address);
    if let Some(named) = &memory.symbol {
        line.plain(" ");
        symbol(&mut line, named);
    }
    line.plain(":");
    for (index, value) in memory.values.iter().enumerate() {
        if is_narrow {
            line.plain(" ")
        } else {
            tab(&mut line)
        };
        line.plain(value);
        if let Some(Some(named)) = memory.symbols.get(index) {
            line.push(Role::Symbol, format!(" {}", symbol_text(named)));
        }
    }
    let uncertain = is_uncertain(&memory.why);
    match memory.cut_by {
        _ if memory.bytes.is_none() => {
            tab(&mut line);
            absent(&mut line, memory.state, memory.kind, memory.unread, uncertain);
            if memory.length > memory.unit.into() {
                line.push(Role::Dim, format!("  ({})", size(memory.length)));
            }
            let reasons = ["kind", "source"].map(|field| memory.why.of(field));
            for reason in reasons.into_iter().flatten() {
                line.push(Role::Note, format!("  ({})", reason.cause()));
            }
        }
        Some(state) => {
            let uncertain = memory.why.of("cut_by").is_some();
            absent(&mut line, state, None, memory.unread, uncertain);
        }
        None => {}
    }
    if memory.source == Some(ByteSource::File) {
        line.push(Role::Note, "  (file)");
    }
    if memory.faulted {
        let state = memory.state.word();
        line.push(Role::Warn, format!("  (faulted in: was {state})"));
    }
    line
}

fn tab(line: &mut Line) -> &mut Line {
    line.pad_to((line.column() / TAB + 1) * TAB)
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::memory::{brief, why_uncertain};

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(memory()),
            Box::new(memory_of_file()),
            Box::new(memory_of_text()),
            Box::new(memory_untouched()),
            Box::new(memory_faulted()),
            Box::new(memory_unread()),
            Box::new(uncertain_memory()),
            Box::new(memory_of_text_cut()),
        ]
    }

    pub fn memory() -> MemoryRow {
        let bytes: Vec<u8> = [0x7fff_f7de_80c0u64, 0x10].iter().flat_map(|word| word.to_le_bytes()).collect();
        MemoryRow {
            address: VirtualAddress::new(0x7fff_f7fa_c010),
            symbol: Some(brief("__malloc_hook", 0)),
            length: 16,
            format: "a",
            unit: 8,
            bytes: Some(HexString(bytes)),
            values: vec!["0x7ffff7de80c0".into(), "0x10".into()],
            symbols: vec![Some(brief("malloc", 16)), None],
            source: Some(ByteSource::Memory),
            faulted: false,
            state: State::Present,
            kind: None,
            unread: None,
            cut_by: None,
            why: Why::default(),
        }
    }

    pub fn memory_of_file() -> MemoryRow {
        MemoryRow {
            address: VirtualAddress::new(0x7fff_f7de_80c4),
            symbol: Some(brief("malloc", 20)),
            length: 4,
            format: "x",
            unit: 1,
            bytes: Some(HexString(vec![0x48, 0x8b, 0x05, 0])),
            values: ["0x48", "0x8b", "0x05", "0x00"].map(str::to_owned).into(),
            symbols: Vec::new(),
            source: Some(ByteSource::File),
            state: State::Untouched,
            ..memory()
        }
    }

    pub fn memory_of_text() -> MemoryRow {
        MemoryRow {
            address: VirtualAddress::new(0x7fff_ffff_e010),
            symbol: None,
            length: 6,
            format: "s",
            unit: 1,
            bytes: Some(HexString(b"h\x1bllo\0".into())),
            values: vec![r#""h\033llo""#.into()],
            symbols: Vec::new(),
            ..memory()
        }
    }

    pub fn memory_untouched() -> MemoryRow {
        MemoryRow {
            address: VirtualAddress::new(0x5555_5557_9000),
            symbol: None,
            length: 8192,
            bytes: None,
            values: Vec::new(),
            symbols: Vec::new(),
            source: None,
            state: State::Untouched,
            kind: Some(Kind::Anonymous),
            ..memory_of_file()
        }
    }

    pub fn memory_faulted() -> MemoryRow {
        MemoryRow { faulted: true, source: Some(ByteSource::Memory), state: State::Swapped, ..memory_of_file() }
    }

    pub fn memory_unread() -> MemoryRow {
        MemoryRow {
            length: 1,
            state: State::Present,
            kind: Some(Kind::DeviceMemory),
            unread: Some("the kernel does not read it"),
            ..memory_untouched()
        }
    }

    pub fn uncertain_memory() -> MemoryRow {
        MemoryRow { state: State::Swapped, kind: None, why: why_uncertain("state"), ..memory_untouched() }
    }

    pub fn memory_of_text_cut() -> MemoryRow {
        MemoryRow {
            bytes: Some(HexString(b"h\x1bllo".into())),
            length: 5,
            cut_by: Some(State::Swapped),
            why: why_uncertain("cut_by"),
            ..memory_of_text()
        }
    }
}
