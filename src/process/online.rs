//! Which frames are online system memory. The kernel has a `struct page` for each of them. All other frames have 0 in
//! `/proc/kpageflags`, `kpagecount` and `kpagecgroup` (`pfn_to_online_page` in fs/proc/page.c).

use super::Machine;
use crate::access::{Error, Result};
use crate::kernel::{FrameNumber, text};
use crate::source::{File, KernelSetting};
use rustix::io::Errno;
use std::sync::PoisonError;

/// The kind of memory at a frame.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MemoryAt {
    /// System memory that is in use.
    Online,
    /// System memory in a block that is offline.
    Offline,
    /// Anything else: a hole, or memory of a device, including persistent memory.
    Other,
    /// Unknown, because neither resources nor blocks of memory can be read.
    Unknown(Error),
}

impl Machine {
    /// Returns the kind of memory at `frame`, and the first frame after it for which that may differ.
    pub fn memory_at(&self, frame: FrameNumber) -> (MemoryAt, FrameNumber) {
        let resources = self.iomem();
        let (is_system, end) = match &resources {
            Ok(resources) => resources.is_system_memory(frame, self.page_size()),
            Err(_) => (true, FrameNumber::new(u64::MAX)),
        };
        if !is_system {
            return (MemoryAt::Other, end);
        }
        match (self.block_of(frame), resources) {
            (Ok((Some(true), block_end)), _) => (MemoryAt::Online, end.min(block_end)),
            (Ok((Some(false), block_end)), _) => (MemoryAt::Offline, end.min(block_end)),
            // No block contains the frame: the resources decide.
            (Ok((None, block_end)), Ok(_)) => (MemoryAt::Online, end.min(block_end)),
            (Ok((None, block_end)), Err(_)) => (MemoryAt::Other, block_end),
            (Err(_), Ok(_)) => (MemoryAt::Online, end),
            (Err(blocks), Err(resources)) => {
                let both = format!("{resources}, and {blocks}");
                (MemoryAt::Unknown(Error::not_available(both)), end)
            }
        }
    }

    /// Forgets which blocks of memory are online. Each query does so before its first frame, because a block may go
    /// offline at any time.
    pub fn forget_blocks(&self) {
        self.cache.blocks.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns whether the block of `frame` is online (`None` if there is no such block), and the first frame of the
    /// next block.
    fn block_of(&self, frame: FrameNumber) -> Result<(Option<bool>, FrameNumber)> {
        let bytes = self.cache.block_bytes.get_or_init(|| {
            let text = self.source().fetch(File::Setting(KernelSetting::MemoryBlockBytes))?;
            let bytes = text::hexadecimal(text.trim_ascii()).filter(|&bytes: &u64| bytes >= self.page_size().bytes());
            bytes.ok_or_else(|| Error::not_available("the size of blocks of memory is no number"))
        });
        let frames = bytes.clone()? >> self.page_size().shift();
        let block = frame.get() / frames;
        let mut known = self.cache.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let is_online = match known.get(&block) {
            Some(is_online) => *is_online,
            None => {
                let state = self.source().fetch(File::Setting(KernelSetting::MemoryBlock(block)));
                let is_online = match state {
                    Ok(state) => Some(state.trim_ascii() == b"online"),
                    Err(Error::Io { error: Errno::NOENT, .. }) => None,
                    Err(error) => return Err(error),
                };
                *known.entry(block).or_insert(is_online)
            }
        };
        Ok((is_online, FrameNumber::new((block + 1).saturating_mul(frames))))
    }
}
