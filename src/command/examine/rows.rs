//! The rows of `x`: units of one size, or texts.

use super::super::{Error, translate};
use super::records::MemoryRow;
use crate::inspect::{Absent, AddressSpace, ByteSource, Contents, ReadEnd};
use crate::kernel::{AddressRange, Kind, State, VirtualAddress};
use crate::lang::{Format, Unit};
use crate::render::Sink;
use crate::render::gdb;
use crate::report::{HexString, SymbolBrief, Why};
use crate::{process, symbol};

/// The most characters of a text, as in gdb.
pub(super) const LONGEST_TEXT: usize = 200;

/// Bytes that are read at a time: whole rows of every size.
const WINDOW: usize = 64 << 10;

/// One `x`.
pub(super) struct Examination<'a> {
    pub(super) space: &'a AddressSpace,
    /// All regions, once they are needed.
    pub(super) whole: Option<AddressSpace>,
    pub(super) symbols: symbol::TargetSymbols<'a>,
    pub(super) layout: process::WordLayout,
    pub(super) format: Format,
    pub(super) unit: Unit,
    pub(super) may_fault: bool,
    /// The address of the next row.
    pub(super) next: VirtualAddress,
    /// The last address that was shown.
    pub(super) last: Option<VirtualAddress>,
    /// Pages that were faulted in.
    pub(super) faulted: u64,
}

impl Examination<'_> {
    /// So many units, row by row.
    pub(super) fn units(&mut self, mut count: u64, sink: &mut dyn Sink) -> Result<(), Error> {
        let size = u64::from(self.unit.bytes());
        let mut buffer = vec![0; WINDOW];
        while count > 0 {
            sink.check()?;
            let wanted = self.next_addresses(count.saturating_mul(size))?;
            let window = usize::try_from(wanted.len()).map_or(WINDOW, |all| all.min(WINDOW));
            let window = buffer.get_mut(..window).unwrap_or_default();
            let shown = match self.contents(wanted, window)? {
                Contents::Bytes { count: read, source } if read as u64 >= size => {
                    let whole = read as u64 / size * size;
                    let bytes = window.get(..whole as usize).unwrap_or_default();
                    self.rows(bytes, source, sink)?;
                    whole / size
                }
                // A unit that crosses the end of what could be read.
                Contents::Bytes { count: read, source } => {
                    let unit = window.get_mut(..size as usize).unwrap_or_default();
                    let rest = self.read_on(unit, read, source, |_| false)?;
                    match rest.absent {
                        Some(absent) => self.absent(&absent, size, sink)?,
                        None if rest.read < unit.len() => return Err(self.past_the_end()),
                        None => {
                            let unit = unit.to_vec();
                            self.rows(&unit, rest.source, sink)?;
                        }
                    }
                    1
                }
                Contents::Absent(absent) => {
                    let units = absent.range.len().div_ceil(size).min(count);
                    self.absent(&absent, units.saturating_mul(size), sink)?;
                    units
                }
            };
            count -= shown;
        }
        Ok(())
    }

    /// Continues a read after `read` bytes from `source`, from whatever source, until `into` is full or `ends` is true
    /// for the bytes so far.
    fn read_on(
        &mut self,
        into: &mut [u8],
        mut read: usize,
        mut source: ByteSource,
        ends: impl Fn(&[u8]) -> bool,
    ) -> Result<ReadOn, Error> {
        let mut absent = None;
        while read < into.len() && !ends(into.get(..read).unwrap_or_default()) {
            let from = self.next.checked_add(read as u64);
            let wanted = from.and_then(|from| AddressRange::new(from, VirtualAddress::new(u64::MAX)));
            let Some(wanted) = wanted else {
                break;
            };
            match self.contents(wanted, into.get_mut(read..).unwrap_or_default())? {
                Contents::Bytes { count, source: other } => {
                    read += count;
                    source = source.weaker(other);
                }
                Contents::Absent(other) => {
                    absent = Some(other);
                    break;
                }
            }
        }
        Ok(ReadOn { read, source, absent })
    }

    /// The regions that are known.
    pub(super) fn space(&self) -> &AddressSpace {
        self.whole.as_ref().unwrap_or(self.space)
    }

    /// Reads from the start of `wanted`, and counts the pages that are faulted in.
    pub(super) fn contents(&mut self, wanted: AddressRange, into: &mut [u8]) -> Result<Contents, Error> {
        let mut contents = self.space().contents(wanted, into, self.may_fault)?;
        // What is not there ends where the next region begins, which may be far away.
        let is_unended = |absent: &Absent| absent.range.end() == wanted.end() && self.format == Format::Text;
        if matches!(&contents, Contents::Absent(absent) if is_unended(absent)) && !self.space().is_complete() {
            let whole = self.whole.insert(AddressSpace::of(self.space.target())?);
            contents = whole.contents(wanted, into, self.may_fault)?;
        }
        if let Contents::Bytes { count, source: ByteSource::Faulted(_) } = contents {
            let read = AddressRange::of_length(wanted.start(), count as u64);
            self.faulted += read.map_or(0, |read| read.pages(self.space.page()));
        }
        Ok(contents)
    }

    /// The next `bytes` addresses, or as many as there are.
    fn next_addresses(&self, bytes: u64) -> Result<AddressRange, Error> {
        let end = VirtualAddress::new(self.next.get().saturating_add(bytes));
        let least = self.next.checked_add(u64::from(self.unit.bytes()));
        least.and_then(|_| AddressRange::new(self.next, end)).ok_or_else(|| self.past_the_end())
    }

    fn past_the_end(&self) -> Error {
        Error::Refused { message: format!("a read at {} would pass 2^64-1", self.next), hint: None }
    }

    /// Rows of whole units, as many to a row as in gdb.
    fn rows(&mut self, bytes: &[u8], source: ByteSource, sink: &mut dyn Sink) -> Result<(), Error> {
        let size = self.unit.bytes();
        let in_a_row = match self.unit {
            Unit::Byte | Unit::HalfWord => 8,
            Unit::Word => 4,
            Unit::GiantWord => 2,
        };
        for row in bytes.chunks(in_a_row * usize::from(size)) {
            let raws = row.chunks(size.into()).map(|unit| self.layout.number(unit));
            let raws: Vec<u64> = raws.collect();
            let pointer = self.layout.pointer_bytes;
            let symbols = match self.format {
                Format::Address => raws.iter().map(|&raw| self.symbol_of(raw)).collect(),
                _ => Vec::new(),
            };
            let memory = MemoryRow {
                values: raws.iter().map(|&raw| gdb::unit(self.format, size, raw, pointer)).collect(),
                symbols,
                ..self.row(row, source)
            };
            let behind = raws.len().saturating_sub(1) as u64 * u64::from(size);
            self.last = self.next.checked_add(behind);
            self.go_on(row.len() as u64);
            sink.emit(&memory)?;
        }
        Ok(())
    }

    /// The symbol at an address that memory holds.
    fn symbol_of(&self, raw: u64) -> Option<SymbolBrief> {
        self.symbol(VirtualAddress::new(raw))
    }

    fn symbol(&self, address: VirtualAddress) -> Option<SymbolBrief> {
        translate::brief(&self.symbols, address)
    }

    /// A row with these bytes, without values so far.
    fn row(&self, bytes: &[u8], source: ByteSource) -> MemoryRow {
        MemoryRow {
            address: self.next,
            symbol: self.symbol(self.next),
            length: bytes.len() as u64,
            format: self.format.letter(),
            unit: self.unit.bytes(),
            bytes: Some(HexString(bytes.to_vec())),
            values: Vec::new(),
            symbols: Vec::new(),
            source: Some(source.word()),
            faulted: matches!(source, ByteSource::Faulted(_)),
            state: source.state(),
            kind: None,
            unread: None,
            cut_by: None,
            why: Why::default(),
        }
    }

    /// A row for `length` bytes that were not read.
    fn absent(&mut self, absent: &Absent, length: u64, sink: &mut dyn Sink) -> Result<(), Error> {
        let memory = MemoryRow {
            length,
            bytes: None,
            source: None,
            state: absent.states.likeliest(),
            kind: absent.kind,
            unread: unread(absent),
            why: why("state", absent),
            ..self.row(&[], ByteSource::Memory)
        };
        let behind = length.saturating_sub(u64::from(self.unit.bytes()));
        self.last = self.next.checked_add(behind);
        self.go_on(length);
        sink.emit(&memory)?;
        Ok(())
    }

    fn go_on(&mut self, bytes: u64) {
        self.next = VirtualAddress::new(self.next.get().saturating_add(bytes));
    }

    /// So many texts, each up to the zero that ends it.
    pub(super) fn texts(&mut self, count: u64, sink: &mut dyn Sink) -> Result<(), Error> {
        let size = usize::from(self.unit.bytes());
        let mut buffer = vec![0; LONGEST_TEXT * size];
        let mut left = count;
        while left > 0 {
            sink.check()?;
            // Memory that cannot be read is one row, however long.
            let wanted = self.next_addresses(u64::MAX)?;
            let (read, source) = match self.contents(wanted, &mut buffer)? {
                Contents::Bytes { count, source } => (count, source),
                Contents::Absent(absent) => {
                    self.absent(&absent, absent.range.len(), sink)?;
                    left -= 1;
                    continue;
                }
            };
            left -= 1;
            let has_end = |bytes: &[u8]| {
                let mut units = bytes.chunks_exact(size);
                units.any(|unit| unit.iter().all(|&byte| byte == 0))
            };
            let found = self.read_on(&mut buffer, read, source, has_end)?;
            let read = buffer.get(..found.read).unwrap_or_default();
            let units = read.chunks_exact(size).map(|unit| self.layout.number(unit));
            let units: Vec<u64> = units.take_while(|&raw| raw != 0).collect();
            let ended = has_end(read);
            let shown = (units.len() + usize::from(ended)) * size;
            let bytes = read.get(..shown).unwrap_or_default().to_vec();
            // Behind a text without its end: more of it, or memory that cannot be read.
            let cut = found.absent.filter(|_| !ended);
            if bytes.is_empty() {
                let Some(absent) = cut else {
                    return Err(self.past_the_end());
                };
                self.absent(&absent, size as u64, sink)?;
                continue;
            }
            let mut text = gdb::text(&units, self.unit.bytes());
            if !ended && cut.is_none() {
                text.push_str("...");
            }
            let memory = MemoryRow {
                values: vec![text],
                unread: cut.as_ref().and_then(unread),
                cut_by: cut.as_ref().map(|absent| absent.states.likeliest()),
                why: cut.as_ref().map_or_else(Why::default, |absent| why("cut_by", absent)),
                ..self.row(&bytes, found.source)
            };
            self.last = Some(self.next);
            self.go_on(bytes.len() as u64);
            sink.emit(&memory)?;
        }
        Ok(())
    }
}

/// The result of a read from several sources.
struct ReadOn {
    /// How many.
    read: usize,
    /// The weakest of their sources.
    source: ByteSource,
    /// Why the read ended early.
    absent: Option<Absent>,
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
