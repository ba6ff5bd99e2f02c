//! The zero-filled subpages of huge pages, which a split of the huge page would free.

use super::super::Result;
use super::super::address_space::AddressSpace;
use super::super::memory::MemoryReader;
use super::super::page::Page;
use super::sums::Amount;
use crate::budget::Budget;
use crate::kernel::{AddressRange, VirtualAddress};

/// The bytes of one read.
const READ_BYTES: u64 = 1 << 20;

/// Reads huge pages without a page fault.
#[derive(Default)]
pub(in crate::inspect) struct ZeroPieces {
    reader: MemoryReader,
    buffer: Vec<u8>,
}

impl ZeroPieces {
    /// Returns the bytes of zero-filled subpages of these pages. Pages that went during the read or may not be read are
    /// unknown.
    pub(super) fn of(&mut self, space: &AddressSpace, page: &Page, budget: &mut Budget) -> Result<Amount> {
        let mut found = Amount::default();
        if let Some(range) = page.range(space.page_size()) {
            let (pieces, unknown) = self.find(space, range, budget)?;
            found = Amount { known: pieces.iter().map(|piece| piece.len()).sum(), unknown };
        }
        Ok(found)
    }

    /// Returns the zero-filled subpages of `range` in address order, neighbours joined, and the bytes that went during
    /// the read or may not be read.
    pub fn find(
        &mut self,
        space: &AddressSpace,
        range: AddressRange,
        budget: &mut Budget,
    ) -> Result<(Vec<AddressRange>, u64)> {
        let size = space.page_size().bytes();
        let piece = usize::try_from(size).unwrap_or(usize::MAX);
        let mut pages_of_zeros: Vec<AddressRange> = Vec::new();
        let (mut unknown, mut done) = (0, 0);
        let all = range.len();
        while done < all {
            budget.look()?;
            let wanted = (all - done).min(READ_BYTES.max(size));
            self.buffer.resize(usize::try_from(wanted).unwrap_or(piece), 0);
            let start = VirtualAddress::new(range.start().get().saturating_add(done));
            let read = self.reader.read(space.target(), start, &mut self.buffer)?.bytes as u64;
            let whole = read - read % size;
            let read = self.buffer.get(..usize::try_from(whole).unwrap_or(0)).unwrap_or_default();
            let zeros = (0..).zip(read.chunks_exact(piece)).filter(|(_, bytes)| is_zero(bytes));
            for piece in zeros.filter_map(|(index, _)| AddressRange::of_length(start.checked_add(index * size)?, size))
            {
                match pages_of_zeros.last_mut() {
                    Some(last) if last.end() == piece.start() => {
                        *last = AddressRange::new(last.start(), piece.end()).unwrap_or(piece);
                    }
                    _ => pages_of_zeros.push(piece),
                }
            }
            // A page that cannot be read is skipped.
            let passed = if whole < wanted { size } else { 0 };
            unknown += passed;
            done += whole + passed;
        }
        Ok((pages_of_zeros, unknown))
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // In a subpage with other bytes, one of the first mostly is not zero.
    bytes.chunks(64).all(|part| part.iter().fold(0, |all, &byte| all | byte) == 0)
}
