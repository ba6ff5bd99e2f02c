//! Reading a module's file by offset: every read is checked against the file's length, and nothing is mapped, as the
//! owner of the file may cut it short at any time.

use super::NoSymbols;
use crate::process::ReadAt;
use crate::source::memory;
use std::ops::ControlFlow;

/// How much is read at once when a table is passed over.
const CHUNK: usize = 256 * 1024;

/// How much is read or expanded between two questions whether to go on: xz gives some ten megabytes a second where it is slowest.
pub(super) const BETWEEN_QUESTIONS: usize = 512 << 10;

/// Asked now and then whether somebody still waits.
pub(super) type GoOn<'a> = dyn FnMut() -> bool + 'a;

/// A file, or an image in memory, that claims to be an ELF file.
pub(super) struct File {
    bytes: Box<dyn ReadAt>,
    length: u64,
    fingerprint: [u64; 4],
}

impl File {
    pub(super) fn new(bytes: Box<dyn ReadAt>) -> Self {
        File {
            length: bytes.len(),
            fingerprint: bytes.fingerprint(),
            bytes,
        }
    }

    /// Whether the file is still as it was when it was opened.
    pub(super) fn is_unchanged(&self) -> bool {
        self.bytes.fingerprint() == self.fingerprint
    }

    /// Its size in bytes when it was opened.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether both are one file: device and inode are the same.
    pub(super) fn is_same_as(&self, other: &File) -> bool {
        self.fingerprint.first_chunk::<2>() == other.fingerprint.first_chunk::<2>()
            && self.length == other.length
    }

    /// Whether `size` bytes at `offset` lie in the file.
    pub(super) fn holds(&self, offset: u64, size: u64) -> bool {
        offset
            .checked_add(size)
            .is_some_and(|end| end <= self.length)
    }

    /// Reads until `into` is full or the file ends; how much there was.
    pub(super) fn read_up_to(&self, offset: u64, into: &mut [u8]) -> Result<usize, NoSymbols> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let Some(at) = offset.checked_add(done as u64) else {
                break;
            };
            match self.bytes.read_at(at, rest) {
                Ok(0) => break,
                Ok(read) => done += read.min(rest.len()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Reads `size` bytes; `what` names them if the file is too short. Nothing is allocated beyond the file's length.
    pub(super) fn read(
        &self,
        offset: u64,
        size: u64,
        what: &'static str,
    ) -> Result<Vec<u8>, NoSymbols> {
        self.read_while(offset, size, what, &mut || true)
    }

    /// The same, asking now and then whether to go on.
    pub(super) fn read_while(
        &self,
        offset: u64,
        size: u64,
        what: &'static str,
        go_on: &mut GoOn,
    ) -> Result<Vec<u8>, NoSymbols> {
        let cut = NoSymbols::CutShort(what);
        if !self.holds(offset, size) {
            return Err(cut);
        }
        let mut bytes = memory::zeroed(size)?;
        let mut at = offset;
        for part in bytes.chunks_mut(BETWEEN_QUESTIONS) {
            if at > offset && !go_on() {
                return Err(NoSymbols::Interrupted);
            }
            if self.read_up_to(at, part)? < part.len() {
                return Err(cut);
            }
            at += part.len() as u64;
        }
        Ok(bytes)
    }

    /// Passes over a table in large reads, each a whole number of entries, until `visit` breaks.
    pub(super) fn pass(
        &self,
        offset: u64,
        size: u64,
        entry: usize,
        what: &'static str,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), NoSymbols> {
        let chunk = (CHUNK / entry * entry) as u64;
        let mut at = 0;
        while at < size {
            let bytes = self.read(offset.saturating_add(at), chunk.min(size - at), what)?;
            if visit(&bytes).is_break() {
                break;
            }
            at += chunk;
        }
        Ok(())
    }
}
