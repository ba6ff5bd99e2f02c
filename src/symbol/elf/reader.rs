//! What `object` reads of a file.
//!
//! `object` decodes what it reads in place. As the file is not mapped, each part that it asks for is read into memory,
//! and kept as long as the reader.

use super::file::{File, FileRange, LONGEST_NAME};
use crate::budget::Budget;
use crate::symbol::NoSymbols;
use elsa::FrozenVec;
use object::ReadRef;
use std::cell::{OnceCell, RefCell};
use std::ops::Range;

/// The parts of a file that were read.
pub(in crate::symbol) struct Reader<'a> {
    file: &'a File,
    start: &'a [u8],
    budget: RefCell<Budget>,
    parts: FrozenVec<Vec<u8>>,
    /// Why the first read that failed did: `object` does not pass it on.
    fault: OnceCell<NoSymbols>,
}

impl<'a> Reader<'a> {
    /// Nothing is allocated beyond the bytes of the budget. `start` has the first bytes of the file.
    pub(in crate::symbol) fn new(file: &'a File, start: &'a [u8], budget: Budget) -> Reader<'a> {
        Reader { file, start, budget: RefCell::new(budget), parts: FrozenVec::new(), fault: OnceCell::new() }
    }

    /// For reading `what`, of which there may be `too_much`.
    pub(in crate::symbol) fn part(&'a self, what: &'static str, too_much: &'static str) -> Part<'a> {
        Part { reader: self, what, too_much }
    }

    /// Why `object` could not decode: because a read failed, or because the file is damaged in this way.
    pub(in crate::symbol) fn fault(&self, damage: &'static str) -> NoSymbols {
        self.fault.get().cloned().unwrap_or(NoSymbols::Damaged(damage))
    }
}

/// What is read, and what it is called where it cannot be.
#[derive(Clone, Copy)]
pub(in crate::symbol) struct Part<'a> {
    reader: &'a Reader<'a>,
    what: &'static str,
    too_much: &'static str,
}

impl<'a> ReadRef<'a> for Part<'a> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.reader.file.length())
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        let Reader { file, start, budget, parts, fault } = self.reader;
        let range = FileRange { offset, size };
        if let Some(known) = range.within(start) {
            return Ok(known);
        }
        let mut budget = budget.borrow_mut();
        let is_allowed = budget.hold(size).map_err(|_| NoSymbols::Damaged(self.too_much));
        let bytes = is_allowed.and_then(|()| file.read_within(range, self.what, &mut budget));
        bytes.map(|bytes| parts.push_get(bytes)).map_err(|reason| _ = fault.set(reason))
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let end = range.end.min(range.start.saturating_add(LONGEST_NAME as u64)).min(self.len()?);
        let bytes = self.read_bytes_at(range.start, end.checked_sub(range.start).ok_or(())?)?;
        bytes.get(..memchr::memchr(delimiter, bytes).ok_or(())?).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::InMemory;

    #[test]
    fn what_was_read_stays_and_the_first_failure_is_kept() {
        let file = File::new(Box::new(InMemory::file(b"one\0two\0three".to_vec())));
        let reader = Reader::new(&file, b"one", Budget::unlimited().holding(19));
        let read = reader.part("words", "too many words");
        let words = [read.read_bytes_at_until(0..8, 0), read.read_bytes_at_until(4..u64::MAX, 0)];
        assert_eq!(words, [Ok(&b"one"[..]), Ok(b"two")]);
        assert!(matches!(reader.fault("no words"), NoSymbols::Damaged("no words")));
        assert_eq!(read.read_bytes_at(8, 3), Err(()), "17 of 19 bytes are taken");
        assert_eq!(read.read_bytes_at(13, 1), Err(()), "it is not in the file");
        assert!(matches!(reader.fault("no words"), NoSymbols::Damaged("too many words")));
        assert_eq!(read.read_bytes_at(8, 1), Ok(&b"t"[..]));
        assert_eq!(words, [Ok(&b"one"[..]), Ok(b"two")]);
        for range in [8..13, 20..30, Range { start: 2, end: 1 }, u64::MAX..u64::MAX] {
            assert_eq!(read.read_bytes_at_until(range, 0), Err(()));
        }
    }
}
