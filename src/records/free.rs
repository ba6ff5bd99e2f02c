//! The free block of a free frame. Only the record of a block's first frame is marked, and contains the order.
//!
//! `/proc/kpageflags` shows for each frame whether it is free. A block is accepted if all its frames are free, only its
//! first one is marked, and the free memory after its end begins another block.

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

/// The largest order of a block: that of kernels with pages of 64 KiB (`MAX_PAGE_ORDER`).
const LARGEST_ORDER: u64 = 13;
/// How often the search is repeated, because the kernel allocates and frees blocks all the time.
const TRIES: u32 = 8;

/// Finds free blocks.
pub(super) struct FreeBlocks<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a FreeLayout,
    pub(super) ground: &'a dyn Ground,
}

impl FreeBlocks<'_> {
    /// Returns the free block that contains a frame.
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

    /// Checks the frames at which a block with this frame may begin, as the kernel does (`is_free_buddy_page` in
    /// mm/page_alloc.c).
    fn find(&self, frame: u64) -> Option<FreeBlock> {
        (0..=LARGEST_ORDER).find_map(|order| {
            let first = frame >> order << order;
            let of_block = self.pages.with(first, |page| self.is_marked(page.half(Member::Maps)?).then_some(()));
            of_block.and_then(|()| self.block(first)).filter(|block| frame - first < 1 << block.order)
        })
    }

    /// Returns the block that begins with a marked frame, if all conditions hold.
    fn block(&self, first: u64) -> Option<FreeBlock> {
        let order =
            self.pages.image.word(self.pages.address(first)?.checked_add(self.layout.at(FreeMember::Order))?)?;
        let frames = 1u64 << Some(order).filter(|order| *order <= LARGEST_ORDER)?;
        let bytes = self.pages.read_bytes(first, frames as usize + 1);
        let mut marks = self.pages.each(&bytes).map(|page| Some(self.is_marked(page?.half(Member::Maps)?)));
        let begins = first.is_multiple_of(frames) && marks.next()? == Some(true);
        let goes_on = marks.by_ref().take(frames as usize - 1).all(|mark| mark == Some(false));
        // After the block comes another block, a used frame, or the end of memory.
        let ends = marks.next()? != Some(false) || self.are_free(first + frames, 1) != Some(true);
        let is_whole = begins && goes_on && ends && self.are_free(first, frames as usize)?;
        is_whole.then_some(FreeBlock { first: FrameNumber::new(first), order: order as u8 })
    }

    /// Returns whether a record has a mark in place of the map count. The kernel also marks others than free blocks,
    /// but their frames are not free.
    fn is_marked(&self, maps: u32) -> bool {
        (maps as i32) < -1
    }

    /// Returns whether all these frames are free by `/proc/kpageflags`.
    fn are_free(&self, first: u64, frames: usize) -> Option<bool> {
        let mut words = vec![0; frames];
        self.ground.words(WordFile::FrameFlags, first, &mut words)?;
        Some(words.into_iter().all(|word| PageFlags::from_bits_retain(word).contains(PageFlags::BUDDY)))
    }
}
