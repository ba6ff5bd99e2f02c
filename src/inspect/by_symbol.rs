//! Pages in parts, by the symbols in which they begin.

use crate::kernel::{PageSize, VirtualAddress};

/// Tells in which symbol a page begins, by a number that the caller gives it, and of how many pages from there on that
/// is so.
pub type SymbolAt<'a> = Box<dyn FnMut(VirtualAddress) -> (Option<u32>, u64) + 'a>;

/// Neighbouring pages in parts: where each begins, its pages, and the number of the symbol in which they begin.
/// `symbol_at` tells that number for an address, and of how many pages from there on it is so.
#[doc(hidden)]
pub fn parts_by_symbol(
    size: PageSize,
    mut address: VirtualAddress,
    mut pages: u64,
    mut symbol_at: impl FnMut(VirtualAddress) -> (Option<u32>, u64),
) -> impl Iterator<Item = (VirtualAddress, u64, Option<u32>)> {
    std::iter::from_fn(move || {
        if pages == 0 {
            return None;
        }
        let (symbol, length) = symbol_at(address);
        let (start, part) = (address, length.clamp(1, pages));
        let next = address.checked_add(part * size.bytes());
        (address, pages) = next.map_or((address, 0), |next| (next, pages - part));
        Some((start, part, symbol))
    })
}
