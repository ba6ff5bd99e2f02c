//! Looking for a frame in one process.

use crate::inspect::{Error, Result};
use crate::kernel::{AddressRange, FrameNumber, PageMapEntry, PageSize, VirtualAddress};
use crate::report::Stopped;
use crate::target::{Categories, Process};
use std::ops::ControlFlow;

/// Entries of one read: 64 KiB.
const BATCH: usize = 8192;

/// Looks for one frame, with room for entries that is used again.
pub struct Hunter {
    frame: FrameNumber,
    page: PageSize,
    entries: Vec<PageMapEntry>,
}

/// Who is told: of neighbouring pages that map the frame (the first and how many), and, between reads, whether to go on.
pub trait Prey {
    fn found(&mut self, address: VirtualAddress, pages: u64) -> Result<()>;
    fn check(&mut self) -> Result<(), Stopped>;
}

impl Hunter {
    pub fn new(frame: FrameNumber, page: PageSize) -> Self {
        Hunter {
            frame,
            page,
            entries: vec![PageMapEntry::default(); BATCH],
        }
    }

    /// Every address there could be.
    pub fn everything(&self) -> Option<AddressRange> {
        let last = self.page.floor(VirtualAddress::new(u64::MAX));
        AddressRange::new(VirtualAddress::default(), last)
    }

    /// Whether the page at `address` maps the frame.
    pub fn is_at(&self, process: &dyn Process, address: VirtualAddress) -> Result<bool> {
        let mut entry = [PageMapEntry::default()];
        let read = process.entries(self.page.index(address), &mut entry)?;
        let [entry] = entry;
        Ok(read == 1 && entry.frame() == Some(self.frame))
    }

    /// Goes through what is populated in `range`.
    pub fn search(
        &mut self,
        process: &dyn Process,
        range: AddressRange,
        prey: &mut dyn Prey,
    ) -> Result<()> {
        let mut fault = None;
        process.populated(range, Categories::PRESENT, &mut |stretch| {
            if !stretch.categories.contains(Categories::PRESENT) {
                return ControlFlow::Continue(());
            }
            match self.read(process, stretch.range, prey) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    fault = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        fault.map_or(Ok(()), Err)
    }

    fn read(
        &mut self,
        process: &dyn Process,
        range: AddressRange,
        prey: &mut dyn Prey,
    ) -> Result<()> {
        let mut index = self.page.index(range.start());
        let mut left = range.pages(self.page);
        // Neighbours that map it: the first index, and how many.
        let mut run = (0, 0);
        while left > 0 {
            prey.check().map_err(Error::from)?;
            let batch = usize::try_from(left).unwrap_or(BATCH).min(BATCH);
            let into = self.entries.get_mut(..batch).unwrap_or_default();
            let read = process.entries(index, into)?;
            let entries = self.entries.get(..read).unwrap_or_default();
            for (entry, index) in entries.iter().zip(index..) {
                if entry.frame() != Some(self.frame) {
                    continue;
                }
                run = match run {
                    (first, pages) if pages > 0 && first + pages == index => (first, pages + 1),
                    done => {
                        self.tell(done, prey)?;
                        (index, 1)
                    }
                };
            }
            if read < batch {
                break;
            }
            index += batch as u64;
            left -= batch as u64;
        }
        self.tell(run, prey)
    }

    fn tell(&self, (first, pages): (u64, u64), prey: &mut dyn Prey) -> Result<()> {
        match pages {
            0 => Ok(()),
            _ => prey.found(VirtualAddress::new(first << self.page.shift()), pages),
        }
    }
}
