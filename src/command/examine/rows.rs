//! The rows of `x`: the record of each.

use super::super::floor::Error;
use super::super::translate;
use super::records::MemoryRow;
use crate::inspect::examine::{Examined, ExaminedContent, ExaminedShape, TextEnd};
use crate::inspect::{Absent, ByteSource, ReadEnd};
use crate::kernel::{Kind, State, VirtualAddress};
use crate::lang::{Format, Unit};
use crate::process::WordLayout;
use crate::render::gdb;
use crate::report::{HexString, SymbolBrief, Why};
use crate::symbol::TargetSymbols;

/// How rows are written.
#[derive(Clone, Copy)]
pub(super) struct RowFormat {
    pub(super) layout: WordLayout,
    pub(super) format: Format,
    pub(super) unit: Unit,
}

impl RowFormat {
    /// What memory is taken for: as many units to a row as in gdb.
    pub(super) fn shape(self) -> ExaminedShape {
        let bytes = self.unit.bytes();
        match (self.format, self.unit) {
            (Format::Text, _) => ExaminedShape::Texts { bytes },
            (_, Unit::Byte | Unit::HalfWord) => ExaminedShape::Units { bytes, in_a_row: 8 },
            (_, Unit::Word) => ExaminedShape::Units { bytes, in_a_row: 4 },
            (_, Unit::GiantWord) => ExaminedShape::Units { bytes, in_a_row: 2 },
        }
    }

    /// The address that a row leaves in `$_`: that of a text, or of the last unit.
    pub(super) fn last(self, row: &Examined) -> Option<VirtualAddress> {
        match row.content {
            ExaminedContent::Text { .. } => Some(row.address),
            _ => row.address.checked_add(row.length.saturating_sub(self.unit.bytes().into())),
        }
    }

    /// The record of a row.
    ///
    /// # Errors
    /// There is none: a unit would pass the last address.
    pub(super) fn record(self, row: Examined, symbols: &TargetSymbols<'_>) -> Result<MemoryRow, Error> {
        let Examined { address, length, content, .. } = row;
        let empty = MemoryRow {
            address,
            symbol: translate::brief(symbols, address),
            length,
            format: self.format.letter(),
            unit: self.unit.bytes(),
            bytes: None,
            values: Vec::new(),
            symbols: Vec::new(),
            source: None,
            faulted: false,
            state: State::Present,
            kind: None,
            unread: None,
            cut_by: None,
            why: Why::default(),
        };
        Ok(match content {
            ExaminedContent::Bytes { bytes, source } => {
                let raws = self.raws(&bytes);
                let (size, pointer) = (self.unit.bytes(), self.layout.pointer_bytes);
                MemoryRow {
                    values: raws.iter().map(|&raw| gdb::unit(self.format, size, raw, pointer)).collect(),
                    symbols: self.symbols(&raws, symbols),
                    ..read(bytes, source, empty)
                }
            }
            ExaminedContent::Text { bytes, source, end } => {
                let characters = self.raws(&bytes).into_iter().take_while(|&raw| raw != 0);
                let text = gdb::text(&characters.collect::<Vec<u64>>(), self.unit.bytes());
                let more = if end == TextEnd::Longer { "..." } else { "" };
                let row = MemoryRow { values: vec![format!("{text}{more}")], ..read(bytes, source, empty) };
                match end {
                    TextEnd::Absent(absent) => MemoryRow {
                        unread: unread(&absent),
                        cut_by: Some(absent.states.likeliest()),
                        why: why("cut_by", &absent),
                        ..row
                    },
                    TextEnd::Zero | TextEnd::Longer => row,
                }
            }
            ExaminedContent::Absent(absent) => MemoryRow {
                state: absent.states.likeliest(),
                kind: absent.kind,
                unread: unread(&absent),
                why: why("state", &absent),
                ..empty
            },
            ExaminedContent::PastTheEnd => {
                let message = format!("a read at {address} would pass 2^64-1");
                return Err(Error::Refused { message, hint: None });
            }
        })
    }

    /// The units as numbers.
    fn raws(self, bytes: &[u8]) -> Vec<u64> {
        bytes.chunks(self.unit.bytes().into()).map(|unit| self.layout.number(unit)).collect()
    }

    /// The symbols at addresses that memory holds.
    fn symbols(self, raws: &[u64], symbols: &TargetSymbols<'_>) -> Vec<Option<SymbolBrief>> {
        match self.format {
            Format::Address => raws.iter().map(|&raw| translate::brief(symbols, VirtualAddress::new(raw))).collect(),
            _ => Vec::new(),
        }
    }
}

/// A row with these bytes, without values so far.
fn read(bytes: Vec<u8>, source: ByteSource, row: MemoryRow) -> MemoryRow {
    MemoryRow {
        bytes: Some(HexString(bytes)),
        source: Some(source),
        faulted: matches!(source, ByteSource::Faulted(_)),
        state: source.state(),
        ..row
    }
}

/// Why pages that are present were not read.
fn unread(absent: &Absent) -> Option<&'static str> {
    match absent.why {
        ReadEnd::NotResident if absent.states.likeliest() != State::Present => None,
        ReadEnd::NotResident | ReadEnd::Changed => Some("it changed during each read"),
        ReadEnd::Unreadable => Some("the kernel refuses to read it"),
        ReadEnd::NotCaptured => Some("it is not in this capture"),
    }
}

/// Why the state (under the name `field`) is uncertain, or why the contents of the file are unknown.
fn why(field: &'static str, absent: &Absent) -> Why {
    let unknown = match absent.kind {
        Some(Kind::Cached) => "source",
        _ => "kind",
    };
    absent.why(field, unknown)
}
