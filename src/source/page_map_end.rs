//! Where a page map ends: the addresses after it, such as the kernel half, belong to no process.

use crate::kernel::PageSize;

/// The number of pages that a page map covers, found by bisection. `covers` says whether it has the entry of a page
/// index.
///
/// # Errors
/// Those of `covers`.
pub fn covered_pages<E>(page: PageSize, mut covers: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let (mut low, mut high) = (0, (u64::MAX >> page.shift()).saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if covers(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn the_end_is_found_wherever_it_is() {
        let page = PageSize::from_bytes(4096).expect("a power of two");
        for end in [0, 1, 2, 1 << 35, (1 << 35) + 7, 1 << 52] {
            let found = covered_pages(page, |index| Ok::<_, Infallible>(index < end));
            assert_eq!(found, Ok(end));
        }
        assert_eq!(covered_pages(page, |_| Err("gone")), Err("gone"));
    }
}
