//! The buffers that a process has registered, as pages.

use crate::kernel::{AddressRange, PageSize};

/// Buffers as pages, in order, of which none overlap.
pub(super) fn whole_pages(mut buffers: Vec<AddressRange>, size: PageSize) -> Vec<AddressRange> {
    buffers.sort_by_key(|buffer| buffer.start());
    let mut whole: Vec<AddressRange> = Vec::new();
    for buffer in buffers {
        let start = size.floor(buffer.start());
        let bytes = size.pages_in(buffer.end().get() - start.get()).saturating_mul(size.bytes());
        let Some(end) = start.checked_add(bytes) else {
            continue;
        };
        match whole.last_mut() {
            Some(last) if start <= last.end() => {
                *last = AddressRange::new(last.start(), end.max(last.end())).unwrap_or(*last);
            }
            _ => whole.extend(AddressRange::new(start, end)),
        }
    }
    whole
}
