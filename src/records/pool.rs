//! Pages of a page pool (net/core/page_pool.c), which drivers of network devices receive into. The first record of such
//! a page has a signature where a page in a list has the address of the next page.
//!
//! The signature contains an offset of the architecture that no file shows (POISON_POINTER_DELTA). When the kernel
//! removes a page from a list, it adds that offset to two other numbers, and writes the sums there and into the next
//! word. When it allocates the page, it clears the first of them. The offset is accepted if all such pages agree.

use super::layout::member_list;
use super::pages::PageRecords;

member_list! {
    /// A member of the first record of a page of a pool.
    PoolMember, PoolLayout {
        /// The signature (Linux 5.14).
        Magic: "page"."pp_magic";
    }
}

/// PP_SIGNATURE, LIST_POISON1 and LIST_POISON2 in include/linux/poison.h, without the offset of the architecture.
const SIGNATURE: u64 = 0x40;
const NEXT: u64 = 0x100;
const PREVIOUS: u64 = 0x122;

/// The number of places in memory that are examined, and of frames in each.
const PLACES: u64 = 1024;
const FRAMES: usize = 128;
/// The number of pages that must agree.
const AGREEING: u32 = 8;

impl PoolLayout {
    /// Returns the offset of the architecture, if the records of pages that were removed from lists prove it.
    pub(super) fn delta(&self, pages: &PageRecords) -> Option<u64> {
        let (mut delta, mut agreeing) = (None, 0);
        for first in pages.places(PLACES) {
            let bytes = pages.read_bytes(first, FRAMES);
            for page in pages.each(&bytes).flatten() {
                let word = |at| page.number(self.at(PoolMember::Magic).checked_add(at)?, 8);
                let (next, found) = (word(0)?, word(8)?.wrapping_sub(PREVIOUS));
                // The upper bits of an address are all equal.
                let is_number = found.trailing_zeros() >= 12 && !matches!(found >> 57, 0 | 0x7f);
                if is_number && (next == 0 || next == found + NEXT) {
                    if *delta.get_or_insert(found) != found {
                        return None;
                    }
                    agreeing += 1;
                }
            }
        }
        delta.filter(|_| agreeing >= AGREEING)
    }

    /// Returns whether a frame belongs to a pool.
    pub(super) fn has(&self, pages: &PageRecords, delta: u64, frame: u64) -> Option<bool> {
        let head = pages.with(frame, |page| page.head(frame))?;
        // The folio was split since, and does not extend to this frame.
        (frame - head < 1 << pages.folio(head)?.order).then_some(())?;
        let magic = pages.with(head, |page| page.number(self.at(PoolMember::Magic), 8))?;
        // Two bits there have another use, and since Linux 6.16 also an index (PP_MAGIC_MASK in include/linux/mm.h).
        let index_bits = (delta.trailing_zeros() - 7).min(32);
        let ignored = 3 | ((1 << index_bits) - 1) << 7;
        Some(magic & !ignored == delta + SIGNATURE)
    }
}
