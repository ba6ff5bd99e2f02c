//! Reads a module's file by offset. Every read is checked against the file's length. Nothing is mapped, because the
//! owner of the file may truncate it at any time.
//!
//! `object` decodes in place, so each part that it needs is read into memory, and kept as long as its reader.

use crate::budget::{Budget, OutOfBudget};
use crate::own::memory;
use crate::process::ReadAt;
use crate::symbol::NoSymbols;
use elsa::FrozenVec;
use object::ReadRef;
use std::cell::{OnceCell, RefCell};
use std::ops::Range;

/// The longest name that is read, in bytes.
pub(in crate::symbol) const LONGEST_NAME: usize = 64 * 1024;

/// The bytes of one read in a pass over a table: few enough to stay in the processor's cache.
const CHUNK: usize = 64 * 1024;

/// The bytes that are read or decompressed between two checks of the budget: xz at its slowest decompresses some ten
/// megabytes a second.
pub(in crate::symbol) const BETWEEN_LOOKS: usize = 512 << 10;

/// A range of bytes in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::symbol) struct FileRange {
    pub(in crate::symbol) offset: u64,
    pub(in crate::symbol) size: u64,
}

impl FileRange {
    /// Returns the `size` bytes from `at` on in this range; `None` if they are not all inside.
    pub(in crate::symbol) fn part(self, at: u64, size: u64) -> Option<FileRange> {
        let is_within = at.checked_add(size)? <= self.size;
        let offset = self.offset.checked_add(at).filter(|_| is_within)?;
        Some(FileRange { offset, size })
    }

    /// Returns the bytes of this range, if they are among the first ones of the file.
    pub(in crate::symbol) fn bytes_in(self, start: &[u8]) -> Option<&[u8]> {
        let end = self.offset.checked_add(self.size)?;
        start.get(usize::try_from(self.offset).ok()?..usize::try_from(end).ok()?)
    }

    /// Returns at most the first `most` bytes of this range.
    pub(in crate::symbol) fn at_most(self, most: u64) -> FileRange {
        let size = self.size.min(most);
        FileRange { size, ..self }
    }
}

/// A file, or an image in memory, that claims to be an ELF file.
pub(in crate::symbol) struct BoundedFile {
    bytes: Box<dyn ReadAt>,
    length: u64,
    fingerprint: [u64; 4],
}

impl BoundedFile {
    pub(in crate::symbol) fn new(bytes: Box<dyn ReadAt>) -> Self {
        BoundedFile { length: bytes.len(), fingerprint: bytes.fingerprint(), bytes }
    }

    /// Returns whether the file is unchanged since it was opened.
    pub(in crate::symbol) fn is_unchanged(&self) -> bool {
        self.bytes.fingerprint() == self.fingerprint
    }

    /// Returns whether the section headers can be read.
    pub(in crate::symbol) fn has_sections(&self) -> bool {
        self.bytes.has_sections()
    }

    /// Returns the size in bytes when the file was opened.
    pub(in crate::symbol) fn length(&self) -> u64 {
        self.length
    }

    /// Returns whether both are the same file, by device and inode.
    pub(in crate::symbol) fn is_same_as(&self, other: &BoundedFile) -> bool {
        self.fingerprint.first_chunk::<2>() == other.fingerprint.first_chunk::<2>() && self.length == other.length
    }

    /// Returns whether all of `range` is in the file.
    pub(in crate::symbol) fn holds(&self, range: FileRange) -> bool {
        let end = range.offset.checked_add(range.size);
        end.is_some_and(|end| end <= self.length)
    }

    /// Reads until `into` is full or the file ends. Returns the number of bytes.
    pub(in crate::symbol) fn read_up_to(&self, offset: u64, into: &mut [u8]) -> Result<usize, NoSymbols> {
        Ok(self.bytes.read_up_to(offset, into)?)
    }

    /// Reads within a budget, because a large part lasts long.
    pub(in crate::symbol) fn read_up_to_within(
        &self,
        offset: u64,
        into: &mut [u8],
        budget: &mut Budget,
    ) -> Result<usize, NoSymbols> {
        let mut done = 0;
        for part in into.chunks_mut(BETWEEN_LOOKS) {
            budget.look()?;
            let read = self.read_up_to(offset.saturating_add(done as u64), part)?;
            done += read;
            if read < part.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Reads the bytes in `range`; `what` names them in the error if the file is too short. Never allocates more than
    /// the file's length.
    pub(in crate::symbol) fn read(
        &self,
        range: FileRange,
        what: &'static str,
        budget: &mut Budget,
    ) -> Result<Vec<u8>, NoSymbols> {
        let cut = NoSymbols::CutShort(what);
        if !self.holds(range) {
            return Err(cut);
        }
        let mut bytes = memory::zeroed(range.size)?;
        let read = self.read_up_to_within(range.offset, &mut bytes, budget)?;
        if read < bytes.len() { Err(cut) } else { Ok(bytes) }
    }

    /// Makes a pass over the table in `range`, with entries of `entry` bytes, in large reads.
    pub(in crate::symbol) fn pass(&self, range: FileRange, entry: usize, what: &'static str) -> TablePass<'_> {
        let entry = entry.max(1);
        // An incomplete entry at the end is skipped.
        let rest = range.at_most(range.size - range.size % entry as u64);
        TablePass { file: self, rest, most: (CHUNK / entry * entry) as u64, bytes: Vec::new(), what }
    }

    /// Returns the string at offset `at` in the table of strings; `None` if it is empty, too long, or not in the table.
    pub(in crate::symbol) fn string(&self, table: FileRange, at: u32) -> Option<Vec<u8>> {
        let room = table.size.checked_sub(u64::from(at))?;
        let offset = table.offset.checked_add(u64::from(at))?;
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(LONGEST_NAME);
        let mut name = Vec::new();
        let mut wanted = 128;
        loop {
            let read = name.len();
            let next = room.min(wanted);
            if next <= read {
                return None;
            }
            name.resize(next, 0);
            let more = self.read_up_to(offset + read as u64, name.get_mut(read..)?).ok()?;
            name.truncate(read + more);
            if let Some(end) = memchr::memchr(0, name.get(read..)?) {
                name.truncate(read + end);
                return (!name.is_empty()).then_some(name);
            }
            if more == 0 {
                return None;
            }
            wanted *= 4;
        }
    }
}

/// Reads a table part by part.
pub(in crate::symbol) struct TablePass<'a> {
    file: &'a BoundedFile,
    rest: FileRange,
    /// The most bytes of a part.
    most: u64,
    /// The buffer for all parts: allocating new memory would last longer than reading into it.
    bytes: Vec<u8>,
    what: &'static str,
}

impl TablePass<'_> {
    /// Returns the next part, which consists of whole entries.
    pub(in crate::symbol) fn next(&mut self, budget: &mut Budget) -> Result<Option<&[u8]>, NoSymbols> {
        if self.rest.size == 0 {
            return Ok(None);
        }
        budget.look()?;
        let part = self.rest.at_most(self.most);
        if !self.file.holds(part) {
            return Err(NoSymbols::CutShort(self.what));
        }
        if self.bytes.is_empty() {
            self.bytes = memory::zeroed(part.size)?;
        }
        self.bytes.truncate(usize::try_from(part.size).unwrap_or(usize::MAX));
        if self.file.read_up_to(part.offset, &mut self.bytes)? < self.bytes.len() {
            return Err(NoSymbols::CutShort(self.what));
        }
        self.rest = FileRange { offset: part.offset.saturating_add(part.size), size: self.rest.size - part.size };
        Ok(Some(&self.bytes))
    }
}

/// Keeps the parts of a file that `object` reads.
pub(in crate::symbol) struct Reader<'a> {
    file: &'a BoundedFile,
    start: &'a [u8],
    budget: RefCell<Budget>,
    parts: FrozenVec<Vec<u8>>,
    /// The reason of the first failed read, which `object` does not return.
    fault: OnceCell<NoSymbols>,
}

impl<'a> Reader<'a> {
    /// Makes a reader that allocates at most the bytes of the budget. `start` has the first bytes of the file.
    pub(in crate::symbol) fn new(file: &'a BoundedFile, start: &'a [u8], budget: Budget) -> Reader<'a> {
        Reader { file, start, budget: RefCell::new(budget), parts: FrozenVec::new(), fault: OnceCell::new() }
    }

    /// Makes a view for reading `what`. `too_much` is the error if there is too much of it.
    pub(in crate::symbol) fn part(&'a self, what: &'static str, too_much: &'static str) -> LabelledPart<'a> {
        LabelledPart { reader: self, what, too_much }
    }

    /// Returns whether the budget allowed all reads of `object`, which may ignore a failed one.
    pub(in crate::symbol) fn check(&self) -> Result<(), OutOfBudget> {
        self.budget.borrow().check()
    }

    /// Returns why `object` could not decode: a read failed, or the file is damaged in this way.
    pub(in crate::symbol) fn fault(&self, damage: &'static str) -> NoSymbols {
        self.fault.get().cloned().unwrap_or(NoSymbols::Damaged(damage))
    }
}

/// A view on a file, with the name of what is read in errors.
#[derive(Clone, Copy)]
pub(in crate::symbol) struct LabelledPart<'a> {
    reader: &'a Reader<'a>,
    what: &'static str,
    too_much: &'static str,
}

impl<'a> ReadRef<'a> for LabelledPart<'a> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.reader.file.length())
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        let Reader { file, start, budget, parts, fault } = self.reader;
        let range = FileRange { offset, size };
        if let Some(known) = range.bytes_in(start) {
            return Ok(known);
        }
        let mut budget = budget.borrow_mut();
        let is_allowed = budget.hold(size).map_err(|_| NoSymbols::Damaged(self.too_much));
        let bytes = is_allowed.and_then(|()| file.read(range, self.what, &mut budget));
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
        let file = BoundedFile::new(Box::new(InMemory::file(b"one\0two\0three".to_vec())));
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
