//! The search for the start of the units or texts before an address.

use super::super::Result;
use super::super::contents::Contents;
use super::{Examination, ExaminedShape, LONGEST_TEXT};
use crate::kernel::{AddressRange, VirtualAddress};

/// The most pages that are read at a time for long or many texts: it bounds the memory.
const MOST_PAGES: u64 = 16;

/// The units or texts before an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Before {
    /// The address of the first of them.
    pub start: VirtualAddress,
    /// Their number: fewer than wanted if memory cannot be read.
    pub count: u64,
    /// The address at which to continue, forward or backward.
    pub next: VirtualAddress,
}

impl Examination {
    /// Goes back by the number of units or texts that are left, so that the next row is the first of them. Returns
    /// `None` if units would begin below address 0.
    ///
    /// # Errors
    /// Those of [`Examination::next`].
    pub fn go_back(&mut self) -> Result<Option<Before>> {
        let before = match self.shape {
            ExaminedShape::Texts { .. } => Some(self.texts_before(self.left)?),
            ExaminedShape::Units { bytes, .. } => {
                let bytes = self.left.checked_mul(bytes.into());
                let start = bytes.and_then(|bytes| self.next.checked_sub(bytes));
                start.map(|start| Before { start, count: self.left, next: start })
            }
        };
        if let Some(before) = before {
            (self.next, self.left) = (before.start, before.count);
        }
        Ok(before)
    }

    /// Returns the texts before the next address, counted as in gdb. A text begins after the zero of the text before,
    /// or where a longer one is cut. For an address right after a zero, the text there counts as the first if it can be
    /// read. Unreadable memory counts as the last one.
    fn texts_before(&mut self, count: u64) -> Result<Before> {
        let size = u64::from(self.shape.unit());
        let end = self.next;
        let mut at = end;
        let mut start = end;
        let mut left = count;
        // The number of characters of the text whose start is not found yet, its zero included.
        let mut characters = 0;
        let mut pages = 1;
        while left > 0 {
            self.budget.look()?;
            let tail = self.tail(at, pages)?;
            let units = tail.bytes.rchunks_exact(size as usize);
            for (unit, behind) in units.zip(std::iter::successors(Some(at.get()), |behind| behind.checked_sub(size))) {
                let is_zero = unit.iter().all(|&byte| byte == 0);
                let begins = VirtualAddress::new(behind);
                if is_zero || characters == LONGEST_TEXT {
                    characters = 0;
                    if begins != end || self.is_there(end)? {
                        (start, left) = (begins, left - 1);
                    }
                }
                characters += 1;
                if left == 0 {
                    break;
                }
            }
            if left == 0 {
                break;
            }
            at = VirtualAddress::new(at.get() - tail.bytes.len() as u64);
            if tail.is_whole {
                pages = (pages * 2).min(MOST_PAGES);
                continue;
            }
            if characters > 0 {
                (start, left) = (at, left - 1);
            }
            if left > 0 && at.get() > 0 {
                (start, left) = (self.unread_before(at)?, left - 1);
            }
            return Ok(Before { start, count: count - left, next: start });
        }
        Ok(Before {
            start,
            count,
            // The zero of the text before, so that the next `x/-s` begins with that text.
            next: VirtualAddress::new(start.get().saturating_sub(size)),
        })
    }

    /// Returns whether a character at `address` can be read.
    fn is_there(&mut self, address: VirtualAddress) -> Result<bool> {
        let size = self.shape.unit();
        let Some(range) = AddressRange::of_length(address, size.into()) else {
            return Ok(false);
        };
        let mut unit = [0; 8];
        let unit = unit.get_mut(..size.into()).unwrap_or_default();
        Ok(self.read_range(range, unit)?.1)
    }

    /// Returns the readable characters before `at`, from at most `pages` pages.
    fn tail(&mut self, at: VirtualAddress, pages: u64) -> Result<Tail> {
        let size = u64::from(self.shape.unit());
        let page = self.space.page_size();
        // --fault must not fault in pages that may not be needed.
        let pages = if self.may_fault { 1 } else { pages };
        let below = page.floor(VirtualAddress::new(at.get().saturating_sub(1)));
        let lowest = below.get().saturating_sub((pages - 1) * page.bytes());
        // A character may begin in the page before; none begins before the first address.
        let length = ((at.get() - lowest) / size).max(1) * size;
        let start = at.get().checked_sub(length).map(VirtualAddress::new);
        let Some(range) = start.and_then(|start| AddressRange::new(start, at)) else {
            return Ok(Tail::default());
        };
        let mut bytes = vec![0; length as usize];
        let (behind, is_whole) = self.read_range(range, &mut bytes)?;
        let readable = (at.get() - behind.get()) / size * size;
        Ok(Tail { bytes: bytes.split_off((length - readable) as usize), is_whole })
    }

    /// Reads the readable bytes of `range`, each to its place. Returns the end of the last unreadable part, and whether
    /// all could be read.
    fn read_range(&mut self, range: AddressRange, into: &mut [u8]) -> Result<(VirtualAddress, bool)> {
        let (mut behind, mut is_whole) = (range.start(), true);
        let mut at = range.start();
        while let Some(rest) = AddressRange::new(at, range.end()) {
            let skipped = (at.get() - range.start().get()) as usize;
            let into = into.get_mut(skipped..).unwrap_or_default();
            match self.contents(rest, into)? {
                Contents::Bytes { count, .. } => at = VirtualAddress::new(at.get() + count as u64),
                Contents::Absent(absent) => {
                    at = absent.range.end();
                    (behind, is_whole) = (at, false);
                }
            }
        }
        Ok((behind, is_whole))
    }

    /// Returns the start of the unreadable memory that ends at `end`: of its region, or of the gap between regions, if
    /// none of it can be read; otherwise of the page.
    fn unread_before(&self, end: VirtualAddress) -> Result<VirtualAddress> {
        let last = VirtualAddress::new(end.get().saturating_sub(1));
        let lowest = match self.space.viewed_region(last) {
            Some(viewed) => viewed.range().start(),
            None => {
                let regions = self.space.viewed_regions().iter();
                let below = regions.map(|viewed| viewed.range().end());
                let below = below.filter(|&below| below <= last).max();
                below.unwrap_or(VirtualAddress::new(0))
            }
        };
        let page = self.space.page_size().floor(last);
        let Some(range) = AddressRange::new(lowest, end) else {
            return Ok(page);
        };
        Ok(match self.space.contents(range, &mut [0], false)? {
            Contents::Absent(absent) if absent.range == range => lowest,
            _ => page,
        })
    }
}

/// The bytes up to an address.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Whether all bytes of the range were read: only then can those before it be added.
    is_whole: bool,
}
