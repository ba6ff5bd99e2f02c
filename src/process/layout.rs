//! The shape of the words of a program.

use crate::kernel::{PageSize, auxiliary};
use crate::source::{File, Probe, Source};

/// The shape of the target's memory words. The target's own, never this machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Base page size.
    pub page: PageSize,
    /// Bytes in a pointer: 4 or 8.
    pub pointer_bytes: u8,
    /// Whether the least significant byte comes first.
    pub little_endian: bool,
}

impl Layout {
    /// A number as `bytes` bytes, eight at most, as they lie in memory.
    pub fn bytes(self, number: u64, bytes: u8) -> Vec<u8> {
        let most = usize::from(bytes).min(size_of::<u64>());
        let mut all: Vec<u8> = number.to_le_bytes().into_iter().take(most).collect();
        if !self.little_endian {
            all.reverse();
        }
        all
    }

    /// Bytes as they lie in memory, eight at most, as a number.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.little_endian { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) }
    }

    /// The layout that the auxiliary vector gives, or pmdb's own if that may not be read. The program file gives the
    /// same, but a watch on that file (inotify) would notice the read.
    pub(super) fn of(source: &dyn Source) -> Self {
        let told = source.whole(File::Auxiliary).ok();
        let pointer_bytes = told.and_then(|bytes| auxiliary::pointer_bytes(&bytes));
        let order = source.word(Probe::LittleEndian);
        Layout {
            page: source.page_size(),
            pointer_bytes: pointer_bytes.unwrap_or(size_of::<usize>() as u8),
            little_endian: order.map_or(cfg!(target_endian = "little"), |first| first == 1),
        }
    }
}
