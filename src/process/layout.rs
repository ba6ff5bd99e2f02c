//! The shape of the words of a program.

use crate::kernel::{PageSize, auxiliary};
use crate::source::{File, Probe, Source};
use std::ffi::c_char;

/// The shape of the target's memory words. The target's own, never this machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Base page size.
    pub page: PageSize,
    /// Bytes in a pointer: 4 or 8.
    pub pointer_bytes: u8,
    /// Whether the least significant byte comes first.
    pub little_endian: bool,
    /// Whether plain `char` of C has a sign.
    pub signed_char: bool,
}

/// Machines on which plain `char` has no sign, by the `e_machine` of their programs (linux/elf-em.h).
const UNSIGNED_CHAR: &[u16] = &[
    20,  // EM_PPC
    21,  // EM_PPC64
    22,  // EM_S390
    40,  // EM_ARM
    94,  // EM_XTENSA
    164, // EM_HEXAGON
    183, // EM_AARCH64
    243, // EM_RISCV
    252, // EM_CSKY
];

impl Layout {
    /// The layout of pmdb's own words.
    pub fn own() -> Self {
        Layout {
            page: PageSize::FOUR_KIB,
            pointer_bytes: size_of::<usize>() as u8,
            little_endian: cfg!(target_endian = "little"),
            signed_char: c_char::MIN != 0,
        }
    }

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
        let machine = source.word(Probe::Machine).and_then(|machine| u16::try_from(machine).ok());
        let own = Layout::own();
        Layout {
            page: source.page_size(),
            pointer_bytes: pointer_bytes.unwrap_or(own.pointer_bytes),
            little_endian: order.map_or(own.little_endian, |first| first == 1),
            signed_char: machine.map_or(own.signed_char, |machine| !UNSIGNED_CHAR.contains(&machine)),
        }
    }
}
