//! The processes that may map a frame. Its reverse map leads to address spaces, each of which leads to its process, and
//! to the pages at which it may map the frame.

use super::image::READERS;
use super::record::{Meanwhile, RecordedMapper, RecordedPage};
use super::reverse::ReverseMember::{self, *};
use super::reverse::{Bytes, FoundMapping, Place, ReverseMap};
use super::tables::{EntryPlace, PageTables};
use crate::access::{Error, Identity, Result};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Name, Permissions, VirtualAddress};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, available_parallelism};

/// `TASK_COMM_LEN` in include/linux/sched.h.
const NAME_BYTES: u64 = 16;
/// `/proc/PID/stat` has start times in units of this many nanoseconds (USER_HZ of x86 and arm64).
const TICK: u64 = 10_000_000;

/// The number of address spaces that are read between two checks of the budget: some 10 ms of work.
const TOGETHER: usize = 1 << 10;

/// The path to the pages of a process, for a second check. It does not leave this module.
struct Traces {
    process: u32,
    space: u64,
    thread: u64,
    entries: Vec<EntryPlace>,
}

impl ReverseMap<'_> {
    /// Returns the processes that may map a frame, each address space once, with the pages whose entries lead to it;
    /// or, if none does, with all pages that may. Each mapping in the tree costs one step. Calls `meanwhile` with the
    /// processes; if that returns true, the result has only those that still exist after it.
    pub(super) fn mappers(
        &self,
        frame: u64,
        meanwhile: Meanwhile<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<RecordedMapper>> {
        let (tree, index) =
            self.tree(frame).ok_or_else(|| Error::not_available("the kernel records no mappings of this frame"))?;
        let found = Mutex::new(BTreeMap::new());
        let places = self.places(tree, index, budget)?;
        let spaces: Vec<&[Place]> = places.chunk_by(|one, next| one.mapping.space == next.mapping.space).collect();
        on_cores(spaces.len(), budget, &|nth| {
            let mapper = spaces.get(nth).and_then(|places| self.mapper(places, frame));
            if let Some((mapper, traces)) = mapper {
                locked(&found).insert(mapper.process.pid, (mapper, traces));
            }
        })?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut mappers, traces): (Vec<RecordedMapper>, Vec<Traces>) = found.into_values().unzip();
        let is_mapped = |page: &RecordedPage| page.is_mapped;
        if mappers.iter().flat_map(|mapper| &mapper.pages).any(is_mapped) {
            mappers.iter_mut().for_each(|mapper| mapper.pages.retain(is_mapped));
            mappers.retain(|mapper| !mapper.pages.is_empty());
        }
        if meanwhile(&mappers) {
            let left = Mutex::new(BTreeSet::new());
            on_cores(traces.len(), budget, &|nth| {
                if let Some(traces) = traces.get(nth).filter(|traces| !self.are_still_there(traces)) {
                    locked(&left).insert(traces.process);
                }
            })?;
            let left = locked(&left);
            mappers.retain(|mapper| !left.contains(&mapper.process.pid));
        }
        Ok(mappers)
    }

    /// Returns the process of an address space, if that process still has it, with the pages at which it may map the
    /// frame.
    fn mapper(&self, places: &[Place], frame: u64) -> Option<(RecordedMapper, Traces)> {
        const OF_THREAD: [ReverseMember; 5] = [SpaceOfThread, Process, Leader, StartTime, ThreadName];
        let space = places.first()?.mapping.space;
        let of_space = self.structure(space, &[Top, HeapStart, HeapEnd, StackStart, Owner], 0)?;
        let owner = of_space.member(Owner).filter(|&owner| owner != 0)?;
        let thread = self.structure(owner, &OF_THREAD, NAME_BYTES)?;
        (thread.member(SpaceOfThread)? == space).then_some(())?;
        let pid = thread.number(self.layout.at(Process), 4)? as u32;
        let leader = thread.member(Leader)?;
        let leader = if leader == owner { thread } else { self.structure(leader, &OF_THREAD, NAME_BYTES)? };
        let process = Identity { pid, start_time: leader.member(StartTime)? / TICK, name: self.name(&leader)? };
        let top = of_space.member(Top)?;
        let mut traces = Traces { process: pid, space, thread: owner, entries: Vec::new() };
        let page = |place: &Place| {
            let Place { address, mapping } = *place;
            let entry = self.shape.and_then(|shape| {
                let tables = PageTables { top, space, shape };
                tables.place(self.pages, address / self.pages.page_bytes, frame)
            });
            let range = AddressRange::new(VirtualAddress::new(mapping.start), VirtualAddress::new(mapping.end))?;
            traces.entries.extend(entry);
            Some(RecordedPage {
                address: VirtualAddress::new(address),
                is_mapped: entry.is_some(),
                range,
                permissions: permissions(mapping.flags),
                kind: self.kind(&mapping, &of_space),
            })
        };
        let pages: Vec<RecordedPage> = places.iter().filter_map(page).collect();
        Some((RecordedMapper { process, pages }, traces))
    }

    /// Returns whether the process still has its address space, and all entries still lead to the frame.
    fn are_still_there(&self, traces: &Traces) -> bool {
        self.word(traces.space, Owner) == Some(traces.thread)
            && self.word(traces.thread, SpaceOfThread) == Some(traces.space)
            && traces.entries.iter().all(|entry| entry.maps(self.pages))
    }

    /// Returns a hash of the facts that decide a line of `maps`, except its addresses; `None` if the line depends on
    /// facts that are not read here.
    fn kind(&self, mapping: &FoundMapping, space: &Bytes<'_>) -> Option<u64> {
        let FoundMapping { start, end, first, flags, operations, file, given_name, .. } = *mapping;
        let first = match (file, operations) {
            (0, 0) => 0,
            (0, _) => return None,
            _ => first,
        };
        // Whether the name is [heap] or [stack]. Kernels differ in which of the bounds is included.
        let (heap, heap_end, stack) = (space.member(HeapStart)?, space.member(HeapEnd)?, space.member(StackStart)?);
        let is_near = [start.cmp(&heap_end), end.cmp(&heap), start.cmp(&stack), end.cmp(&stack)];
        Some(self.layout.kinds.hash_one((permissions(flags).letters(), first, file, given_name, is_near)))
    }

    /// Returns the name of a thread.
    fn name(&self, thread: &Bytes<'_>) -> Option<Name> {
        let at = self.layout.at(ThreadName);
        let bytes = (at..at.checked_add(NAME_BYTES)?).map(|at| thread.number(at, 1));
        let bytes: Option<Vec<u8>> = bytes.map(|byte| u8::try_from(byte?).ok()).collect();
        Some(Name::copied(bytes?.split(|&byte| byte == 0).next()?))
    }
}

/// Decodes VM_READ, VM_WRITE, VM_EXEC and VM_MAYSHARE in include/linux/mm.h.
fn permissions(flags: u64) -> Permissions {
    let has = |bit: u64| flags & bit != 0;
    Permissions {
        read: has(1),
        write: has(2),
        execute: has(4),
        shared: has(0x80),
        sharing_unknown: false,
        is_unknown: false,
    }
}

/// Does `work` for each number below `all`, in several threads if they are many.
fn on_cores(all: usize, budget: &mut Budget, work: &(dyn Fn(usize) + Sync)) -> Result<()> {
    /// The most work that is done without threads: it lasts less than starting one.
    const FEW: usize = 64;
    let cores = available_parallelism().map_or(1, |cores| cores.get().min(READERS));
    for first in (0..all).step_by(TOGETHER) {
        budget.look()?;
        let end = all.min(first + TOGETHER);
        let next = AtomicUsize::new(first);
        let work = || {
            while let Some(nth) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&nth| nth < end) {
                work(nth);
            }
        };
        std::thread::scope(|scope| {
            let helpers = cores.min((end - first).div_ceil(FEW)) - 1;
            // This user may have no more threads, so this one does the work.
            (0..helpers).all(|_| Builder::new().spawn_scoped(scope, work).is_ok());
            work();
        });
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
