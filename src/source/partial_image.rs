//! An ELF file in memory, of which only some pages could be read.

use crate::access::ReadAt;
use crate::kernel::VirtualAddress;
use std::io;

/// The pages of a mapped ELF file that could be read.
#[derive(Debug)]
pub struct PartialImage {
    /// The size of a page in bytes.
    page: u64,
    /// The pages in order; `None` for those that were not read.
    pages: Vec<Option<Vec<u8>>>,
    /// The address of the image in the target.
    address: u64,
}

impl PartialImage {
    /// Makes an image at `start` of pages with `page` bytes each; `None` without its first page, which has the file
    /// header.
    pub fn new(start: VirtualAddress, page: u64, pages: Vec<Option<Vec<u8>>>) -> Option<Self> {
        let has_header = pages.first().is_some_and(Option::is_some);
        has_header.then_some(PartialImage { page, pages, address: start.get() })
    }

    fn page_at(&self, offset: u64) -> Option<&[u8]> {
        let page = self.pages.get(usize::try_from(offset / self.page).ok()?)?.as_ref()?;
        page.get(usize::try_from(offset % self.page).ok()?..)
    }
}

impl ReadAt for PartialImage {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if offset >= self.len() || into.is_empty() {
            return Ok(0);
        }
        let Some(bytes) = self.page_at(offset) else {
            return Err(io::Error::other("this part of the image is not resident"));
        };
        let length = bytes.len().min(into.len());
        let into = into.get_mut(..length).unwrap_or_default();
        into.copy_from_slice(bytes.get(..length).unwrap_or_default());
        let class = self.page_at(4).and_then(|bytes| bytes.first());
        hide_section_headers(class == Some(&2), offset, into);
        Ok(length)
    }

    fn len(&self) -> u64 {
        self.page.saturating_mul(self.pages.len() as u64)
    }

    fn has_sections(&self) -> bool {
        false
    }

    fn fingerprint(&self) -> [u64; 4] {
        [0, self.address, self.len(), 0]
    }
}

/// Clears the fields for the place and the number of section headers in bytes of an ELF file from `offset` on. Section
/// headers are not loaded into memory. Without the fields, the names come from the dynamic segment, which is loaded.
pub(super) fn hide_section_headers(is_64: bool, offset: u64, bytes: &mut [u8]) {
    let fields = if is_64 { [40..48, 60..64] } else { [32..36, 48..52] };
    for at in fields.into_iter().flatten() {
        let at = u64::checked_sub(at, offset).and_then(|at| usize::try_from(at).ok());
        if let Some(byte) = at.and_then(|at| bytes.get_mut(at)) {
            *byte = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_an_error_and_section_headers_are_hidden() {
        let start = VirtualAddress::new(0x7000);
        assert!(PartialImage::new(start, 64, vec![None, Some(vec![1; 64])]).is_none());
        let mut first = vec![1; 64];
        first[4] = 2;
        let image = PartialImage::new(start, 64, vec![Some(first), None, Some(vec![3; 64])]).expect("a header");
        let mut bytes = [0; 64];
        assert_eq!(image.read_up_to(0, &mut bytes).expect("the header"), 64);
        assert_eq!((bytes[39], &bytes[40..48], bytes[48], &bytes[60..]), (1, &[0; 8][..], 1, &[0; 4][..]));
        assert!(image.read_up_to(100, &mut [0; 4]).is_err());
        assert!(image.read_up_to(60, &mut [0; 8]).is_err());
        assert_eq!(image.read_up_to(190, &mut bytes).expect("the end"), 2);
        assert_eq!(image.len(), 192);
    }
}
