//! The words of a heap, read once, in windows, and only where the page map has just shown a frame.

use crate::budget::Budget;
use crate::inspect::Result;
use crate::inspect::memory::read_resident;
use crate::kernel::VirtualAddress;
use crate::process::{Target, WordLayout};

/// Bytes of a window that follows the one before, as in a walk over small chunks.
const LARGE: usize = 512 << 10;
/// Bytes of any other window: heads of arenas and of large chunks.
const SMALL: usize = 16 << 10;

/// A limit above all memory of processes, low enough that an address and a few words add up without overflow.
pub(super) const END_OF_MEMORY: u64 = 1 << 62;

/// A source of words of memory.
pub(super) trait Words {
    /// Returns the bytes of a pointer: 4 or 8.
    fn pointer_bytes(&self) -> u64;

    /// Returns the budget of the work.
    fn budget(&mut self) -> &mut Budget;

    /// Returns the word at `address`; `None` if its page has no frame or cannot be read.
    ///
    /// # Errors
    /// The target is gone, or the budget is over.
    fn word(&mut self, address: u64) -> Result<Option<u64>>;

    /// Returns the bytes from `address` on that were already read, and the layout of words in them; `None` if there are
    /// none.
    fn known(&self, address: u64) -> Option<(&[u8], WordLayout)>;
}

/// The words of a process.
pub(super) struct ProcessWords<'a> {
    target: &'a Target,
    layout: WordLayout,
    budget: &'a mut Budget,
    start: u64,
    window: Vec<u8>,
    /// The number of bytes of the window that were read; after them comes a page without a frame.
    read: usize,
    /// Whether all of the last window was read.
    was_full: bool,
}

impl<'a> ProcessWords<'a> {
    pub(super) fn new(target: &'a Target, budget: &'a mut Budget) -> Self {
        ProcessWords {
            target,
            layout: target.process.layout(),
            budget,
            start: 0,
            window: Vec::new(),
            read: 0,
            was_full: false,
        }
    }

    pub(super) fn layout(&self) -> WordLayout {
        self.layout
    }

    /// Returns the bytes from `address` to the end of its window; none if its page has no frame.
    pub(super) fn bytes_at(&mut self, address: u64) -> Result<&[u8]> {
        let offset = address.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        let is_known = offset.is_some_and(|offset| offset < self.window.len());
        if address >= END_OF_MEMORY {
            return Ok(&[]);
        }
        if !is_known {
            self.budget.go_on()?;
            let follows = self.start + self.window.len() as u64;
            self.start = self.layout.page.floor(VirtualAddress::new(address)).get();
            let page = usize::try_from(self.layout.page.bytes()).unwrap_or(SMALL);
            // A large chunk does not end a walk over small ones.
            let goes_on = self.was_full && self.start.checked_sub(follows).is_some_and(|gap| gap <= SMALL as u64);
            self.window.resize(if goes_on { LARGE } else { SMALL.max(page) }, 0);
            self.read = read_resident(self.target, VirtualAddress::new(self.start), &mut self.window)?.bytes;
            self.was_full = self.read == self.window.len();
            // At least the first page stays in the window, so that a page without a frame is not read again.
            let known = self.read.max(page);
            self.window.truncate(known);
        }
        let offset = usize::try_from(address - self.start).unwrap_or(usize::MAX);
        Ok(self.window.get(offset..self.read).unwrap_or_default())
    }
}

impl Words for ProcessWords<'_> {
    fn pointer_bytes(&self) -> u64 {
        u64::from(self.layout.pointer_bytes)
    }

    fn budget(&mut self) -> &mut Budget {
        self.budget
    }

    fn word(&mut self, address: u64) -> Result<Option<u64>> {
        let layout = self.layout;
        // A walk asks for the next words, which are nearly always there.
        let known =
            self.known(address).and_then(|(known, _)| decode(known, layout.pointer_bytes, layout.is_little_endian));
        if known.is_some() {
            return Ok(known);
        }
        let bytes = self.bytes_at(address)?;
        Ok(decode(bytes, layout.pointer_bytes, layout.is_little_endian))
    }

    #[inline]
    fn known(&self, address: u64) -> Option<(&[u8], WordLayout)> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some((self.window.get(offset..self.read)?, self.layout))
    }
}

/// Decodes the first word of `bytes`.
#[inline]
pub(in crate::inspect) fn decode(bytes: &[u8], pointer_bytes: u8, is_little_endian: bool) -> Option<u64> {
    match (pointer_bytes, is_little_endian) {
        (8, true) => bytes.first_chunk().map(|word| u64::from_le_bytes(*word)),
        (8, false) => bytes.first_chunk().map(|word| u64::from_be_bytes(*word)),
        (_, true) => bytes.first_chunk().map(|word| u32::from_le_bytes(*word).into()),
        (_, false) => bytes.first_chunk().map(|word| u32::from_be_bytes(*word).into()),
    }
}
