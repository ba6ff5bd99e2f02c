//! Who may have pinned pages: registered buffers, and descriptors of devices.

use crate::kernel::descriptors::PinningDevice;
use crate::kernel::{AddressRange, PageSize};
use crate::process::{self, Identity, PinningDescriptor, Process};
use std::collections::{BTreeSet, VecDeque};

/// Ranges without a known buffer for which descendants are searched.
const MOST_UNLISTED: usize = 1024;

/// A registered buffer, or a file descriptor of a device, which may have pinned pages.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PinHolder {
    /// The process.
    pub process: Identity,
    /// What the descriptor is for.
    pub device: PinningDevice,
    /// Its number.
    pub descriptor: u32,
    /// The thread in whose own table it is, if that is not the table of the process.
    pub thread: Option<u32>,
    /// The buffer, in that process; `None` for a device, whose buffers the kernel does not list.
    pub buffer: Option<AddressRange>,
}

/// The pages of the buffers that a process has registered with io_uring, in order, of which none overlap. Others may be
/// mapped there since.
///
/// # Errors
/// Fails if the descriptors of the process are unknown.
pub(in crate::inspect) fn registered_buffers(process: &Process, size: PageSize) -> process::Result<Vec<AddressRange>> {
    let mut holders = Holders::default();
    holders.add(&process.identity(), process.pinning_descriptors(), |_| true);
    match holders.refused.pop_front() {
        Some((_, error)) => Err(error),
        None => Ok(holders.whole_pages(size)),
    }
}

/// The holders that were found so far.
#[derive(Default)]
pub(super) struct Holders {
    /// Each with whether a pinned page is in its buffer.
    pub(super) found: Vec<(bool, PinHolder)>,
    /// The processes whose descriptors were searched.
    pub(super) searched: BTreeSet<u32>,
    /// Processes whose descriptors are unknown.
    pub(super) refused: VecDeque<(u32, process::Error)>,
    /// Pinned memory that no buffer explains, and how many of the pages that were asked for it has.
    pub(super) unlisted: Vec<(AddressRange, u64)>,
}

impl Holders {
    /// Adds the descriptors of a process, and of its buffers those that are wanted.
    pub(super) fn add(
        &mut self,
        process: &Identity,
        descriptors: process::Result<Vec<PinningDescriptor>>,
        is_wanted: impl Fn(AddressRange) -> bool,
    ) {
        let descriptors = match descriptors {
            Ok(descriptors) => descriptors,
            Err(error) => return self.refused.push_back((process.pid, error)),
        };
        self.searched.insert(process.pid);
        for PinningDescriptor { thread, number: descriptor, device, buffers } in descriptors {
            let buffers: Vec<Option<AddressRange>> = if device.lists_buffers() {
                buffers.into_iter().filter(|&buffer| is_wanted(buffer)).map(Some).collect()
            } else {
                vec![None]
            };
            let all = buffers.into_iter();
            let all = all.map(|buffer| PinHolder { process: process.clone(), device, descriptor, thread, buffer });
            let new: Vec<_> = all.filter(|new| self.found.iter().all(|(_, known)| known != new)).collect();
            self.found.extend(new.into_iter().map(|holder| (false, holder)));
        }
    }

    /// Adds the descriptors of a process that inherited the memory, and of its buffers those that explain pins. Returns
    /// how many pages these explain.
    pub(super) fn add_inherited(
        &mut self,
        process: &Identity,
        descriptors: process::Result<Vec<PinningDescriptor>>,
    ) -> u64 {
        let before = self.found.len();
        let unlisted = std::mem::take(&mut self.unlisted);
        let is_in = |pinned: AddressRange, buffer| pinned.intersection(buffer).is_some();
        self.add(process, descriptors, |buffer| unlisted.iter().any(|(pinned, _)| is_in(*pinned, buffer)));
        self.list_since(before);
        let new = self.found.get(before..).unwrap_or_default();
        let buffers: Vec<AddressRange> = new.iter().filter_map(|(_, one)| one.buffer).collect();
        let (listed, rest): (Vec<_>, Vec<_>) =
            unlisted.into_iter().partition(|(pinned, _)| buffers.iter().any(|&buffer| is_in(*pinned, buffer)));
        self.unlisted = rest;
        listed.iter().map(|(_, pages)| pages).sum()
    }

    /// Marks the buffers that were found after the first `before` holders. Returns whether there are any.
    pub(super) fn list_since(&mut self, before: usize) -> bool {
        let mut is_listed = false;
        for (is_pinned, one) in self.found.iter_mut().skip(before) {
            *is_pinned |= one.buffer.is_some();
            is_listed |= *is_pinned;
        }
        is_listed
    }

    /// Marks the buffers that have pinned memory. Returns whether there are any.
    pub(super) fn explain(&mut self, pinned: AddressRange) -> bool {
        let mut is_listed = false;
        for (is_pinned, one) in &mut self.found {
            if one.buffer.is_some_and(|buffer| buffer.intersection(pinned).is_some()) {
                (*is_pinned, is_listed) = (true, true);
            }
        }
        is_listed
    }

    /// Adds pinned memory that no buffer explains, if there is not too much already.
    pub(super) fn add_unlisted(&mut self, pinned: AddressRange, pages: u64) {
        if self.unlisted.len() < MOST_UNLISTED {
            self.unlisted.push((pinned, pages));
        }
    }

    /// The buffers as pages, in order, of which none overlap.
    pub(super) fn whole_pages(&self, size: PageSize) -> Vec<AddressRange> {
        let mut buffers: Vec<AddressRange> = self.found.iter().filter_map(|(_, one)| one.buffer).collect();
        buffers.sort_by_cached_key(|buffer| buffer.start());
        let mut whole: Vec<AddressRange> = Vec::new();
        for buffer in buffers {
            let start = size.floor(buffer.start());
            let bytes = size.pages_in(buffer.end().get() - start.get()).saturating_mul(size.bytes());
            let Some(end) = start.checked_add(bytes) else {
                continue;
            };
            match whole.last_mut() {
                Some(last) if start <= last.end() => {
                    *last = AddressRange::new(last.start(), end.max(last.end())).unwrap_or(*last);
                }
                _ => whole.extend(AddressRange::new(start, end)),
            }
        }
        whole
    }
}
