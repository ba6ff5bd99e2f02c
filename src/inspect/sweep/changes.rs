//! Regions that change during a sweep.

use super::super::address_space::AddressSpace;
use super::super::{Error, Result};
use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::process::Liveness;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Regions that are checked one by one: reading all takes longer.
const FEW: usize = 8;
/// Bytes of `maps` that the kernel may have written ahead of a read: the buffer that was asked for, and the rest of one
/// line. Each of the 4,096 bytes of its path may be an escape of four bytes (`seq_read_iter` in fs/seq_file.c).
const WRITTEN: usize = 32 << 10;

/// Checks whether the regions of some spans are still the same.
///
/// If there are many, the text of `maps` is compared with the earlier text. The worker threads do so between their
/// reads, each time as far as the sweep was pulled.
pub(super) struct RegionChanges {
    space: AddressSpace,
    spans: Vec<AddressRange>,
    /// Where what was pulled ends.
    pulled_to: AtomicU64,
    text: Mutex<MapsComparison>,
}

/// The result of comparing the text of `maps` so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MapsComparison {
    /// This many bytes are the same.
    Same(usize),
    /// All of it is the same.
    SameToTheEnd,
    /// It differs, there is none, or it is not compared.
    Other,
}

impl RegionChanges {
    pub fn among(space: &AddressSpace, spans: &[AddressRange]) -> Self {
        let is_compared = space.maps_text().is_known() && touched(space, spans).nth(FEW).is_some();
        let text = if is_compared { MapsComparison::Same(0) } else { MapsComparison::Other };
        RegionChanges {
            space: space.clone(),
            spans: spans.to_vec(),
            pulled_to: AtomicU64::new(0),
            text: Mutex::new(text),
        }
    }

    /// All regions below `end` have been pulled.
    pub fn set_pulled(&self, end: VirtualAddress) {
        self.pulled_to.store(end.get(), Ordering::Release);
    }

    /// Compares as far as was pulled, unless another thread is doing so.
    ///
    /// Fails when the target is gone.
    pub fn compare(&self) -> Result<()> {
        let Ok(mut text) = self.text.try_lock() else {
            return Ok(());
        };
        while let MapsComparison::Same(bytes) = *text {
            let end = VirtualAddress::new(self.pulled_to.load(Ordering::Acquire));
            let behind = self.space.maps_text().region_at(bytes + WRITTEN);
            if behind.is_none_or(|behind| behind > end) {
                break;
            }
            *text = self.compare_next(bytes)?;
        }
        Ok(())
    }

    fn compare_next(&self, bytes: usize) -> Result<MapsComparison> {
        let process = &self.space.target().process;
        Ok(match process.maps_unchanged_from(self.space.maps_text(), bytes)? {
            Some(0) => MapsComparison::SameToTheEnd,
            Some(more) => MapsComparison::Same(bytes + more),
            None => MapsComparison::Other,
        })
    }

    /// Returns the regions that have changed. All must have been pulled.
    ///
    /// Fails when the target is gone or runs another program.
    pub fn finish(&self) -> Result<Vec<AddressRange>> {
        let process = &self.space.target().process;
        match process.liveness()? {
            Liveness::Alive => {}
            Liveness::Executed => return Err(Error::Executed),
            Liveness::Exited => return Err(Error::Exited),
        }
        let mut text = *self.text.lock().unwrap_or_else(PoisonError::into_inner);
        while let MapsComparison::Same(bytes) = text {
            text = self.compare_next(bytes)?;
        }
        if text == MapsComparison::SameToTheEnd {
            return Ok(Vec::new());
        }
        let touched = || touched(&self.space, &self.spans);
        let mut changed = Vec::new();
        if touched().nth(FEW).is_none() {
            for before in touched() {
                let now = process.region_at(before.range.start())?;
                if now.is_none_or(|now| !is_same(before, &now)) {
                    changed.push(before.range);
                }
            }
        } else {
            let mut now = process.regions()?.into_iter().peekable();
            // Both are in the order of their addresses.
            let mut is_there = |before: &Region| {
                while now.next_if(|now| now.range.start() < before.range.start()).is_some() {}
                now.peek().is_some_and(|now| is_same(before, now))
            };
            let gone = touched().filter(|before| !is_there(before));
            changed.extend(gone.map(|before| before.range));
        }
        Ok(changed)
    }
}

/// The regions that `spans` touch, in address order.
fn touched<'v>(space: &'v AddressSpace, spans: &'v [AddressRange]) -> impl Iterator<Item = &'v Region> + use<'v> {
    let regions = space.regions();
    let mut first = 0;
    let inside = spans.iter().flat_map(move |span| {
        first = space.region_from(first, span.start());
        let rest = regions.get(first..).unwrap_or_default().iter();
        rest.take_while(|viewed| viewed.range().start() < span.end())
    });
    let mut last = None;
    inside.map(|viewed| &viewed.region).filter(move |region| last.replace(region.range) != Some(region.range))
}

/// Whether both are the same region. The name does not count: `prctl` can set it without changing a page.
fn is_same(before: &Region, now: &Region) -> bool {
    before.range == now.range
        && before.permissions == now.permissions
        && before.offset == now.offset
        && before.device == now.device
        && before.inode == now.inode
}
