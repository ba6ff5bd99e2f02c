//! A file of which all bytes are in memory.

use super::ReadAt;
use crate::kernel::VirtualAddress;

/// Contents that were already read: expanded from another file, or a mapping without a file.
#[derive(Clone, Debug)]
pub struct InMemory {
    bytes: Vec<u8>,
    /// Where the target has them, if they are its memory.
    address: u64,
}

impl InMemory {
    /// A file with these bytes. Its fingerprint never changes: the file that they come from is checked instead.
    pub fn file(bytes: Vec<u8>) -> Self {
        InMemory { bytes, address: 0 }
    }

    /// The contents of a mapping of the target without a file, such as the vdso.
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
