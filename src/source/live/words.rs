//! Words of page maps and kpage files, as far as the kernel can be asked for them.

use super::directory::own_file;
use crate::source::sys;
use rustix::fd::AsFd;
use rustix::io::Result;
use std::sync::OnceLock;

/// Reads words from `first` on. Fewer than asked for: the file ends there.
pub(super) fn read(file: impl AsFd, first: u64, into: &mut [u64]) -> Result<usize> {
    let is_wrapped = cfg!(target_pointer_width = "32") && first >= WRAPPED && offsets_wrap();
    if first > LAST || is_wrapped { Ok(0) } else { sys::read_words(file, first, into) }
}

/// No file has words after this one: offsets are signed. The kernel would call a larger offset invalid.
const LAST: u64 = i64::MAX as u64 / 8 - 1;

/// The first word whose offset takes more than 32 bits.
const WRAPPED: u64 = 1 << 29;

/// Whether this is a 32-bit kernel. It keeps the lower half of an offset (`unsigned long src = *ppos` in
/// fs/proc/task_mmu.c and fs/proc/page.c): beyond 4 GiB the file begins again. The page map of a 32-bit program has
/// nothing there, so a word comes from its start.
fn offsets_wrap() -> bool {
    static WRAP: OnceLock<bool> = OnceLock::new();
    *WRAP.get_or_init(|| {
        own_file("pagemap").is_ok_and(|own| sys::read_words(&own, WRAPPED, &mut [0]).is_ok_and(|read| read > 0))
    })
}
