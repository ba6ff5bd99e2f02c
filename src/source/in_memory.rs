//! A file of which all bytes are in memory.

use super::ReadAt;
use crate::kernel::VirtualAddress;

/// Contents that need no reading any more: expanded from another file, or lent by the kernel where there is no file.
#[derive(Clone, Debug)]
pub struct InMemory {
    bytes: Vec<u8>,
    /// Where the target has them, if they are its memory.
    address: u64,
}

impl InMemory {
    /// A file with these bytes. It is as old as what they were taken from, which is looked at for changes.
    pub fn file(bytes: Vec<u8>) -> Self {
        InMemory { bytes, address: 0 }
    }

    /// What a mapping of the target's without a file holds, the vdso say.
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
