//! The text of `maps`, and the regions in it. The kernel gives no more than a page of it at a time: where there is much, another thread
//! reads on while what has come is decoded.

use crate::kernel::Region;
use crate::kernel::maps::Regions;
use crate::kernel::text::BadLine;
use crate::target::Result;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{self, Errno, pread, retry_on_intr};
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

/// Bytes that are decoded together, and that are read before another thread is called: some 0.2 ms of work, where a thread costs 0.05.
const BLOCK: usize = 64 << 10;
/// Blocks that may wait to be decoded.
const AHEAD: usize = 4;

/// All regions, and the text of them; no text when the address space is gone.
///
/// Fails with what `failed` makes of an error of the kernel's, and on a line that is not understood.
pub(super) fn read(
    maps: impl AsFd,
    failed: impl Fn(Errno) -> crate::target::Error,
) -> Result<(Vec<Region>, Vec<u8>)> {
    let maps = maps.as_fd();
    let mut read = Read::default();
    let first = block(maps, 0).map_err(&failed)?;
    read.add(&first)?;
    if !is_last(&first) {
        let behind = || Blocks::behind(maps, first.len() as u64);
        std::thread::scope(|scope| -> Result<()> {
            let (sender, blocks) = sync_channel(AHEAD);
            let ahead = move || behind().try_for_each(|next| sender.send(next));
            let mut add = |next: io::Result<Vec<u8>>| Ok(read.add(&next.map_err(&failed)?)?);
            match Builder::new().spawn_scoped(scope, ahead) {
                Ok(_) => blocks.into_iter().try_for_each(&mut add),
                // As many threads as this user may have.
                Err(_) => behind().try_for_each(&mut add),
            }
        })?;
    }
    read.finish()
}

/// The blocks of a file, to its end or the first error.
struct Blocks<'a> {
    maps: BorrowedFd<'a>,
    so_far: u64,
    is_at_end: bool,
}

impl<'a> Blocks<'a> {
    fn behind(maps: BorrowedFd<'a>, so_far: u64) -> Self {
        Blocks {
            maps,
            so_far,
            is_at_end: false,
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let next = block(self.maps, self.so_far);
        self.so_far += next.as_ref().map_or(0, |next| next.len() as u64);
        self.is_at_end = next.as_ref().map_or(true, |next| is_last(next));
        Some(next)
    }
}

/// The next bytes behind `so_far`: a whole block of them, unless the file ends.
fn block(maps: BorrowedFd<'_>, so_far: u64) -> io::Result<Vec<u8>> {
    const PAGE: usize = 4 << 10;
    let mut bytes = Vec::with_capacity(BLOCK + PAGE);
    while bytes.len() < BLOCK {
        let at = so_far + bytes.len() as u64;
        if retry_on_intr(|| pread(maps, spare_capacity(&mut bytes), at))? == 0 {
            break;
        }
    }
    Ok(bytes)
}

fn is_last(block: &[u8]) -> bool {
    block.len() < BLOCK
}

/// What has been read.
#[derive(Default)]
struct Read {
    text: Vec<u8>,
    /// Bytes of it that are decoded: whole lines.
    decoded: usize,
    regions: Regions,
}

impl Read {
    fn add(&mut self, block: &[u8]) -> std::result::Result<(), BadLine> {
        self.text.extend_from_slice(block);
        let end = memchr::memrchr(b'\n', &self.text).map_or(0, |at| at + 1);
        self.decode(end)
    }

    fn decode(&mut self, end: usize) -> std::result::Result<(), BadLine> {
        let lines = self.text.get(self.decoded..end).unwrap_or_default();
        self.decoded = self.decoded.max(end);
        self.regions.read(lines)
    }

    fn finish(mut self) -> Result<(Vec<Region>, Vec<u8>)> {
        self.decode(self.text.len())?;
        Ok((self.regions.found, self.text))
    }
}
