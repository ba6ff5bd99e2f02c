//! The free block that a free frame is in. Only the record of the first frame of a block is marked, and has its order.
//!
//! `/proc/kpageflags` says of each frame whether it is free. The block is believed if all its frames are free, only its
//! first one is marked, and it does not go on after its end.

use super::ground::Ground;
use super::layout::{Member, member_list};
use super::pages::PageRecords;
use super::record::FreeBlock;
use crate::access::{Error, Result};
use crate::kernel::{FrameNumber, PageFlags, WordFile};

member_list! {
    /// A member of the first record of a free block.
    FreeMember, FreeLayout {
        Order: "page"."private";
    }
}

/// The largest block: of kernels with pages of 64 KiB (`MAX_PAGE_ORDER`).
const LARGEST_ORDER: u64 = 13;
/// The kernel takes and returns blocks all the time.
const TRIES: u32 = 8;

/// Free blocks.
pub(super) struct FreeBlocks<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a FreeLayout,
    pub(super) ground: &'a dyn Ground,
}

impl FreeBlocks<'_> {
    /// The block that a frame is in.
    pub(super) fn of_frame(&self, frame: u64) -> Result<FreeBlock> {
        if let Some(block) = (0..TRIES).find_map(|_| self.find(frame)) {
            return Ok(block);
        }
        if self.are_free(frame, 1) == Some(true) {
            let what = "the kernel's records of the free block contradict /proc/kpageflags, or changed all the time";
            return Err(Error::not_available(what));
        }
        Err(Error::gone("the frame was allocated during the read"))
    }

    /// Looks at the frames at which a block with this frame may begin, as the kernel does (`is_free_buddy_page` in
    /// mm/page_alloc.c).
    fn find(&self, frame: u64) -> Option<FreeBlock> {
        (0..=LARGEST_ORDER).find_map(|order| {
            let first = frame >> order << order;
            let of_block = self.pages.with(first, |page| self.is_marked(page.half(Member::Maps)?).then_some(()));
            of_block.and_then(|()| self.block(first)).filter(|block| frame - first < 1 << block.order)
        })
    }

    /// The block that begins with a marked frame, if everything agrees.
    fn block(&self, first: u64) -> Option<FreeBlock> {
        let order =
            self.pages.image.word(self.pages.address(first)?.checked_add(self.layout.at(FreeMember::Order))?)?;
        let frames = 1u64 << Some(order).filter(|order| *order <= LARGEST_ORDER)?;
        let bytes = self.pages.read_bytes(first, frames as usize + 1);
        let mut marks = self.pages.each(&bytes).map(|page| Some(self.is_marked(page?.half(Member::Maps)?)));
        let begins = first.is_multiple_of(frames) && marks.next()? == Some(true);
        let goes_on = marks.by_ref().take(frames as usize - 1).all(|mark| mark == Some(false));
        // Only a block of its own may follow, and memory may end.
        let ends = marks.next()? != Some(false) || self.are_free(first + frames, 1) != Some(true);
        let is_whole = begins && goes_on && ends && self.are_free(first, frames as usize)?;
        is_whole.then_some(FreeBlock { first: FrameNumber::new(first), order: order as u8 })
    }

    /// Whether a record has a mark in the place of the map count. The kernel marks more than free blocks, but those
    /// frames are not free.
    fn is_marked(&self, maps: u32) -> bool {
        (maps as i32) < -1
    }

    /// Whether all these frames are free by `/proc/kpageflags`.
    fn are_free(&self, first: u64, frames: usize) -> Option<bool> {
        let mut words = vec![0; frames];
        self.ground.words(WordFile::FrameFlags, first, &mut words)?;
        Some(words.into_iter().all(|word| PageFlags::from_bits_retain(word).contains(PageFlags::BUDDY)))
    }
}
