//! The slab cache of a frame. A cache is accepted if it is in the list of all caches, has a printable name, and its
//! objects have a plausible size.

use super::layout::member_list;
use super::pages::PageRecords;
use super::record::SlabCache;
use crate::access::{Error, Result};

member_list! {
    /// A member on the way from a frame to its cache.
    SlabMember, SlabLayout {
        /// The cache of a frame (in a separate structure since Linux 5.17).
        Cache: "slab"."slab_cache", "page"."slab_cache";
        Name: "kmem_cache"."name";
        /// Bytes of an object, without and with the overhead of the allocator.
        ObjectBytes: "kmem_cache"."object_size";
        Bytes: "kmem_cache"."size";
        /// The next cache in the list of all.
        Next: "kmem_cache"."list.next";
        /// `list_head.prev`: the cache before it.
        Previous: "list_head"."prev";
    }
}

use SlabMember::*;

/// The longest name of a cache, and the largest object: the allocator passes larger ones to the page allocator.
const LONGEST: usize = 128;
const LARGEST: u32 = 1 << 25;
/// How often a reading is repeated if two readings differ.
const TRIES: u32 = 4;

/// Finds the slab caches of frames.
pub(super) struct SlabCaches<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a SlabLayout,
}

impl SlabCaches<'_> {
    /// Returns the slab cache of a frame.
    pub(super) fn of_frame(&self, frame: u64) -> Result<SlabCache> {
        for _ in 0..TRIES {
            let (first, second) = (self.find(frame), self.find(frame));
            match first {
                first if first != second => {}
                Some(cache) => return Ok(cache),
                None => return Err(Error::not_available("the kernel's record of the slab cache was not proved")),
            }
        }
        Err(Error::gone("the kernel's record of the slab cache changed during the read"))
    }

    fn find(&self, frame: u64) -> Option<SlabCache> {
        let image = &self.pages.image;
        let at = |structure: u64, member| structure.checked_add(self.layout.at(member));
        let head = self.pages.with(frame, |page| page.head(frame))?;
        let cache = image.word(at(self.pages.address(head)?, Cache)?)?;
        let link = at(cache, Next)?;
        let is_listed = image.word(at(image.word(link)?, Previous)?)? == link;
        let (object, whole) = (image.half(at(cache, ObjectBytes)?)?, image.half(at(cache, Bytes)?)?);
        let has_size = (1..=whole).contains(&object) && whole <= LARGEST;
        let mut name = vec![0; LONGEST];
        image.read_covered(image.word(at(cache, Name)?)?, &mut name);
        name.truncate(name.iter().position(|&byte| byte == 0)?);
        let is_text = !name.is_empty() && name.iter().all(|byte| (b' '..=b'~').contains(byte));
        (is_listed && has_size && is_text).then_some(SlabCache { name, object_bytes: object })
    }
}
