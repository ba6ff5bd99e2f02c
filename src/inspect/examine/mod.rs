//! The contents of memory, unit by unit or text by text, without faulting in a page.
//!
//! ```
//! use pmdb::inspect::examine::{ExaminedContent, ExaminedShape};
//! use pmdb::{AddressSpace, Target, VirtualAddress};
//!
//! let numbers = [1u64, 2, 3];
//! let space = AddressSpace::of(&Target::attach(std::process::id())?)?;
//! let shape = ExaminedShape::Units { bytes: 8, in_a_row: 1 };
//! let mut rows = space.examine(VirtualAddress::of(&numbers), shape).limit(3);
//! while let Some(row) = rows.next()? {
//!     match row.content {
//!         ExaminedContent::Bytes { bytes, .. } => println!("{}: {bytes:x?}", row.address),
//!         ExaminedContent::Absent(absent) => println!("{}: {}", row.address, absent.states.likeliest().word()),
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backward;

use super::contents::{Absent, ByteSource, Contents};
use super::{AddressSpace, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, VirtualAddress};
pub use backward::Before;
use std::collections::VecDeque;

/// The most characters of a text, as in gdb.
pub const LONGEST_TEXT: usize = 200;

/// Bytes of one read: whole rows of every size.
const WINDOW: usize = 64 << 10;

/// The shape in which memory is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExaminedShape {
    /// Numbers of one size.
    Units {
        /// Bytes of a unit: 1, 2, 4 or 8.
        bytes: u8,
        /// The most units of a row.
        in_a_row: u8,
    },
    /// Texts, each up to a zero or the [longest](LONGEST_TEXT).
    Texts {
        /// Bytes of a character: 1, 2 or 4.
        bytes: u8,
    },
}

impl ExaminedShape {
    /// Returns the bytes of a unit or character.
    pub fn unit(self) -> u8 {
        match self {
            ExaminedShape::Units { bytes, .. } | ExaminedShape::Texts { bytes } => bytes,
        }
    }
}

/// A row of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Examined {
    /// The address of the first byte.
    pub address: VirtualAddress,
    /// Bytes that the row covers.
    pub length: u64,
    /// The contents of the row.
    pub content: ExaminedContent,
}

/// The contents of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExaminedContent {
    /// The row has whole units.
    Bytes {
        /// The bytes of all units.
        bytes: Vec<u8>,
        /// The source of the bytes.
        source: ByteSource,
    },
    /// The row is a text.
    Text {
        /// The bytes of its characters, and of the zero if it has one.
        bytes: Vec<u8>,
        /// The source of the bytes.
        source: ByteSource,
        /// The end of the text.
        end: TextEnd,
    },
    /// The memory was not read.
    Absent(Absent),
    /// A unit there would pass the last address. It is the last row.
    PastTheEnd,
}

/// The end of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextEnd {
    /// The text ends with a zero.
    Zero,
    /// The text is longer.
    Longer,
    /// The memory after it was not read.
    Absent(Absent),
}

/// Rows of memory from an address on.
#[must_use]
pub struct Examination {
    /// The regions: perhaps only some, until all are needed.
    space: AddressSpace,
    shape: ExaminedShape,
    may_fault: bool,
    /// The number of units or texts that are still to come.
    left: u64,
    next: VirtualAddress,
    /// The bytes of units that were read and are in no row yet.
    read: VecDeque<u8>,
    source: ByteSource,
    buffer: Vec<u8>,
    faulted: u64,
    budget: Budget,
}

/// The result of a read from several sources.
struct ReadOn {
    /// The number of bytes that were read.
    read: usize,
    /// The weakest of the sources of these bytes.
    source: ByteSource,
    /// The memory that ended the read early.
    absent: Option<Absent>,
}

impl AddressSpace {
    /// Returns the contents of memory from `start` on, one unit or text. If the space does not have all regions, they
    /// are read when they are needed.
    pub fn examine(&self, start: VirtualAddress, shape: ExaminedShape) -> Examination {
        Examination {
            space: self.clone(),
            shape,
            may_fault: false,
            left: 1,
            next: start,
            read: VecDeque::new(),
            source: ByteSource::Memory,
            buffer: Vec::new(),
            faulted: 0,
            budget: Budget::unlimited(),
        }
    }
}

impl Examination {
    /// Sets the number of units or texts.
    pub fn limit(self, units: u64) -> Self {
        Examination { left: units, ..self }
    }

    /// Sets whether pages that are not resident may be read, too, which changes the target.
    pub fn faulting(self, may_fault: bool) -> Self {
        Examination { may_fault, ..self }
    }

    /// Limits the examination by a budget.
    pub fn with_budget(self, budget: Budget) -> Self {
        Examination { budget, ..self }
    }

    /// Returns the address at which the next row begins.
    pub fn next_address(&self) -> VirtualAddress {
        self.next
    }

    /// Returns the number of pages that were faulted in so far.
    pub fn faulted(&self) -> u64 {
        self.faulted
    }

    /// Returns the next row; `None` after the last.
    ///
    /// # Errors
    /// The target is gone, its memory may not be read, or the budget is over.
    pub fn next(&mut self) -> Result<Option<Examined>> {
        if self.left == 0 {
            return Ok(None);
        }
        let in_a_row = match self.shape {
            ExaminedShape::Units { in_a_row, .. } => in_a_row,
            ExaminedShape::Texts { .. } => {
                self.budget.look()?;
                return self.text().map(Some);
            }
        };
        if self.read.is_empty() {
            self.budget.look()?;
            if let Some(row) = self.read_units()? {
                return Ok(Some(row));
            }
        }
        let unit = usize::from(self.shape.unit());
        let length = self.read.len().min(unit * usize::from(in_a_row));
        let bytes: Vec<u8> = self.read.drain(..length).collect();
        self.left = self.left.saturating_sub((length / unit) as u64);
        Ok(Some(self.row(length as u64, ExaminedContent::Bytes { bytes, source: self.source })))
    }

    /// Reads the next units. Returns a row if no unit could be read.
    fn read_units(&mut self) -> Result<Option<Examined>> {
        let size = u64::from(self.shape.unit());
        let Some(wanted) = self.addresses(self.left.saturating_mul(size)) else {
            return Ok(Some(self.past_the_end()));
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(WINDOW, 0);
        let window = usize::try_from(wanted.len()).map_or(WINDOW, |all| all.min(WINDOW));
        let window = buffer.get_mut(..window).unwrap_or_default();
        let row = match self.contents(wanted, window)? {
            Contents::Bytes { count: read, source } if read as u64 >= size => {
                let whole = read as u64 / size * size;
                self.take(window.get(..whole as usize).unwrap_or_default(), source);
                None
            }
            // A unit that crosses the end of what could be read.
            Contents::Bytes { count: read, source } => {
                let unit = window.get_mut(..size as usize).unwrap_or_default();
                let rest = self.read_on(unit, ReadOn { read, source, absent: None }, |_| false)?;
                match rest.absent {
                    Some(absent) => Some(self.absent(absent, 1)),
                    None if rest.read < unit.len() => Some(self.past_the_end()),
                    None => {
                        self.take(unit, rest.source);
                        None
                    }
                }
            }
            Contents::Absent(absent) => {
                let units = absent.range.len().div_ceil(size).min(self.left);
                Some(self.absent(absent, units))
            }
        };
        self.buffer = buffer;
        Ok(row)
    }

    /// Returns the row of the next text.
    fn text(&mut self) -> Result<Examined> {
        let size = usize::from(self.shape.unit());
        // Memory that cannot be read is one row, however long.
        let Some(wanted) = self.addresses(u64::MAX) else {
            return Ok(self.past_the_end());
        };
        let mut buffer = vec![0; LONGEST_TEXT * size];
        let (read, source) = match self.contents(wanted, &mut buffer)? {
            Contents::Bytes { count, source } => (count, source),
            Contents::Absent(absent) => {
                self.left -= 1;
                let length = absent.range.len();
                return Ok(self.row(length, ExaminedContent::Absent(absent)));
            }
        };
        let is_zero = |unit: &[u8]| unit.iter().all(|&byte| byte == 0);
        let has_end = |bytes: &[u8]| bytes.chunks_exact(size).any(is_zero);
        let reading = self.read_on(&mut buffer, ReadOn { read, source, absent: None }, has_end)?;
        let read = buffer.get(..reading.read).unwrap_or_default();
        let mut units = read.chunks_exact(size);
        let characters = units.clone().take_while(|unit| !is_zero(unit)).count();
        let end = match reading.absent {
            _ if units.any(is_zero) => TextEnd::Zero,
            Some(absent) => TextEnd::Absent(absent),
            None => TextEnd::Longer,
        };
        let shown = (characters + usize::from(end == TextEnd::Zero)) * size;
        let bytes = read.get(..shown).unwrap_or_default().to_vec();
        Ok(match end {
            TextEnd::Absent(absent) if bytes.is_empty() => self.absent(absent, 1),
            _ if bytes.is_empty() => self.past_the_end(),
            end => {
                self.left -= 1;
                self.row(shown as u64, ExaminedContent::Text { bytes, source: reading.source, end })
            }
        })
    }

    /// Continues a read, from any source, until `into` is full or `ends` is true for the bytes so far.
    fn read_on(&mut self, into: &mut [u8], begun: ReadOn, ends: impl Fn(&[u8]) -> bool) -> Result<ReadOn> {
        let mut on = begun;
        while on.read < into.len() && !ends(into.get(..on.read).unwrap_or_default()) {
            let from = self.next.checked_add(on.read as u64);
            let wanted = from.and_then(|from| AddressRange::new(from, VirtualAddress::new(u64::MAX)));
            let Some(wanted) = wanted else {
                break;
            };
            match self.contents(wanted, into.get_mut(on.read..).unwrap_or_default())? {
                Contents::Bytes { count, source } => {
                    on.read += count;
                    on.source = on.source.weaker(source);
                }
                Contents::Absent(absent) => return Ok(ReadOn { absent: Some(absent), ..on }),
            }
        }
        Ok(on)
    }

    /// Reads from the start of `wanted`, and counts the pages that are faulted in.
    fn contents(&mut self, wanted: AddressRange, into: &mut [u8]) -> Result<Contents> {
        let mut contents = self.space.contents(wanted, into, self.may_fault)?;
        // Absent memory ends where the next region begins, which may be far away.
        let is_text = matches!(self.shape, ExaminedShape::Texts { .. });
        let is_unended = |absent: &Absent| absent.range.end() == wanted.end() && is_text;
        if matches!(&contents, Contents::Absent(absent) if is_unended(absent)) && !self.space.is_complete() {
            self.space = AddressSpace::of(self.space.target())?;
            contents = self.space.contents(wanted, into, self.may_fault)?;
        }
        if let Contents::Bytes { count, source: ByteSource::Faulted(_) } = contents {
            let read = AddressRange::of_length(wanted.start(), count as u64);
            self.faulted += read.map_or(0, |read| read.pages(self.space.page_size()));
        }
        Ok(contents)
    }

    /// Returns the next `bytes` addresses, or as many as there are; `None` if there is no room for a unit.
    fn addresses(&self, bytes: u64) -> Option<AddressRange> {
        let end = VirtualAddress::new(self.next.get().saturating_add(bytes));
        self.next.checked_add(u64::from(self.shape.unit()))?;
        AddressRange::new(self.next, end)
    }

    /// Keeps units that were read for the next rows.
    fn take(&mut self, units: &[u8], source: ByteSource) {
        (self.read, self.source) = (units.iter().copied().collect(), source);
    }

    /// Returns a row for `units` units that were not read.
    fn absent(&mut self, absent: Absent, units: u64) -> Examined {
        self.left -= units;
        self.row(units.saturating_mul(self.shape.unit().into()), ExaminedContent::Absent(absent))
    }

    fn past_the_end(&mut self) -> Examined {
        self.left = 0;
        self.row(0, ExaminedContent::PastTheEnd)
    }

    /// Returns the next row, and advances by its length.
    fn row(&mut self, length: u64, content: ExaminedContent) -> Examined {
        let address = self.next;
        self.next = VirtualAddress::new(address.get().saturating_add(length));
        Examined { address, length, content }
    }
}
