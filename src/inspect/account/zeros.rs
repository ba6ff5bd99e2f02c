//! All-zero pieces of huge pages: what would be free if the huge page were split.

use super::super::Result;
use super::super::address_space::AddressSpace;
use super::super::memory::read_resident;
use super::super::page::Page;
use super::sums::Amount;
use crate::budget::Budget;
use crate::kernel::VirtualAddress;

/// Bytes read at a time.
const READ_BYTES: u64 = 1 << 20;

/// Reads huge pages, without a page fault.
#[derive(Default)]
pub(super) struct ZeroPieces {
    buffer: Vec<u8>,
}

impl ZeroPieces {
    /// The bytes of all-zero pieces among these pages; unknown are those that went meanwhile, or may not be read.
    pub fn of(&mut self, space: &AddressSpace, page: &Page, budget: &mut Budget) -> Result<Amount> {
        let size = space.page().bytes();
        let piece = usize::try_from(size).unwrap_or(usize::MAX);
        let mut found = Amount::default();
        let mut done = 0;
        let all = page.bytes(space.page());
        while done < all {
            budget.look()?;
            let wanted = (all - done).min(READ_BYTES.max(size));
            self.buffer.resize(usize::try_from(wanted).unwrap_or(piece), 0);
            let start = VirtualAddress::new(page.address.get().saturating_add(done));
            let read = read_resident(space.target(), start, &mut self.buffer)?.bytes as u64;
            let whole = read - read % size;
            let read = self.buffer.get(..usize::try_from(whole).unwrap_or(0)).unwrap_or_default();
            let zeros = read.chunks_exact(piece).filter(|bytes| is_zero(bytes)).count() as u64;
            found.known += zeros * size;
            // A page that cannot be read is passed over.
            let passed = if whole < wanted { size } else { 0 };
            found.unknown += passed;
            done += whole + passed;
        }
        Ok(found)
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // A piece that is not all zeros mostly shows it early.
    bytes.chunks(64).all(|part| part.iter().fold(0, |all, &byte| all | byte) == 0)
}
