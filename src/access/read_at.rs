//! Files that are read at offsets.

use crate::kernel::VirtualAddress;

/// A mapped file that was opened by its identity. It is read with pread(2) and not mapped, as its owner may truncate
/// it.
pub trait ReadAt: Send + Sync {
    /// Reads at `offset`. Returns 0 at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize>;
    /// Reads at `offset` until `into` is full or the file ends. Returns the number of bytes read.
    fn read_up_to(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let Some(at) = offset.checked_add(done as u64) else {
                break;
            };
            match self.read_at(at, rest) {
                Ok(0) => break,
                Ok(read) => done += read.min(rest.len()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
    /// Returns the size in bytes when the file was opened.
    fn len(&self) -> u64;
    /// Returns whether the file was empty when it was opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns whether section headers can be read: memory of a process holds only what is loaded.
    fn has_sections(&self) -> bool {
        true
    }
    /// Returns device, inode, size and modification time at present. They change if the contents may have changed.
    fn fingerprint(&self) -> [u64; 4];
}

/// Contents that were already read: decompressed from another file, or of a mapping without a file.
#[derive(Clone, Debug)]
pub struct InMemory {
    bytes: Vec<u8>,
    /// The address of the contents in the target if they are its memory; 0 otherwise.
    address: u64,
}

impl InMemory {
    /// Returns a file with these bytes. Its fingerprint never changes: the file that they come from is checked instead.
    pub fn file(bytes: Vec<u8>) -> Self {
        InMemory { bytes, address: 0 }
    }

    /// Returns the contents of a mapping of the target that has no file, such as the vdso.
    pub fn mapping(bytes: Vec<u8>, start: VirtualAddress) -> Self {
        let address = start.get();
        InMemory { bytes, address }
    }
}

impl ReadAt for InMemory {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut rest = self.bytes.get(at..).unwrap_or_default();
        std::io::Read::read(&mut rest, into)
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn fingerprint(&self) -> [u64; 4] {
        [0, self.address, self.len(), 0]
    }
}
