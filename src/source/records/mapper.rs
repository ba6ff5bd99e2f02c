//! The processes that may map a frame: from its reverse map to address spaces, and from each of them to its process
//! and to the pages at which it may map the frame.

use super::record::{Meanwhile, RecordedMapper, RecordedPage};
use super::reverse::ReverseMember::{self, *};
use super::reverse::{Bytes, FoundMapping, Place, ReverseMap};
use super::tables::{EntryPlace, PageTables};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Name, Permissions, VirtualAddress};
use crate::source::{Error, Identity, Result};
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::panic::resume_unwind;
use std::thread::{Builder, available_parallelism};

/// `TASK_COMM_LEN` in include/linux/sched.h.
const NAME_BYTES: u64 = 16;
/// `/proc/PID/stat` has start times in units of this many nanoseconds (USER_HZ of x86 and arm64).
const TICK: u64 = 10_000_000;

/// So many address spaces are read before the budget is looked at again: some 10 ms of work.
const TOGETHER: usize = 1 << 10;

/// What led to the pages of a process. It stays in this room.
struct Traces {
    space: u64,
    thread: u64,
    entries: Vec<EntryPlace>,
}

impl ReverseMap<'_> {
    /// Processes that may map a frame, each address space once, with the pages whose entries lead to it; or, if none
    /// does, with all pages that may. Each mapping in the tree is a step. Calls `meanwhile` with them; if that returns
    /// true, the result is those that are still there then.
    pub(super) fn mappers(
        &self,
        frame: u64,
        meanwhile: Meanwhile<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<RecordedMapper>> {
        let (tree, index) =
            self.tree(frame).ok_or_else(|| Error::not_available("the kernel records no mappings of this frame"))?;
        let mut found: BTreeMap<u32, (RecordedMapper, Traces)> = BTreeMap::new();
        let spaces: Vec<(u64, Vec<Place>)> = self.spaces(tree, index, budget)?.into_iter().collect();
        for some in spaces.chunks(TOGETHER) {
            budget.look()?;
            let all = on_cores(some, |(space, places)| self.mapper(*space, places, frame));
            found.extend(all.into_iter().flatten().map(|found| (found.0.process.pid, found)));
        }
        let (mut mappers, mut traces): (Vec<RecordedMapper>, Vec<Traces>) = found.into_values().unzip();
        let is_mapped = |page: &RecordedPage| page.is_mapped;
        if mappers.iter().flat_map(|mapper| &mapper.pages).any(is_mapped) {
            mappers.iter_mut().for_each(|mapper| mapper.pages.retain(is_mapped));
            traces.retain(|traces| !traces.entries.is_empty());
            mappers.retain(|mapper| !mapper.pages.is_empty());
        }
        if meanwhile(&mappers) {
            let mut still = Vec::new();
            for some in traces.chunks(TOGETHER) {
                budget.look()?;
                still.extend(on_cores(some, |traces| self.is_still_there(traces)));
            }
            let mut still = still.into_iter();
            mappers.retain(|_| still.next() == Some(true));
        }
        Ok(mappers)
    }

    /// The process of an address space, if that process still has it, and the pages at which it may map the frame.
    fn mapper(&self, space: u64, places: &[Place], frame: u64) -> Option<(RecordedMapper, Traces)> {
        const OF_THREAD: [ReverseMember; 5] = [SpaceOfThread, Process, Leader, StartTime, ThreadName];
        let of_space = self.structure(space, &[Top, HeapStart, HeapEnd, StackStart, Owner], 0)?;
        let owner = of_space.member(Owner).filter(|&owner| owner != 0)?;
        let thread = self.structure(owner, &OF_THREAD, NAME_BYTES)?;
        (thread.member(SpaceOfThread)? == space).then_some(())?;
        let pid = thread.number(self.layout.at(Process), 4)? as u32;
        let leader = thread.member(Leader)?;
        let leader = if leader == owner { thread } else { self.structure(leader, &OF_THREAD, NAME_BYTES)? };
        let process = Identity { pid, start_time: leader.member(StartTime)? / TICK, name: self.name(&leader)? };
        let top = of_space.member(Top)?;
        let mut traces = Traces { space, thread: owner, entries: Vec::new() };
        let mut page = |place: &Place| {
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
        let mut pages: Vec<RecordedPage> = places.iter().filter_map(&mut page).collect();
        pages.sort_unstable_by_key(|page| page.address);
        Some((RecordedMapper { process, pages }, traces))
    }

    /// Whether the process still has its address space, and all entries still lead to the frame.
    fn is_still_there(&self, traces: &Traces) -> bool {
        self.word(traces.space, Owner) == Some(traces.thread)
            && self.word(traces.thread, SpaceOfThread) == Some(traces.space)
            && traces.entries.iter().all(|entry| entry.maps(self.pages))
    }

    /// A number for what a line of `maps` depends on, but for its addresses; `None` if it depends on more than is read
    /// here.
    fn kind(&self, mapping: &FoundMapping, space: &Bytes<'_>) -> Option<u64> {
        let FoundMapping { start, end, first, flags, operations, file, given_name, .. } = *mapping;
        let first = match (file, operations) {
            (0, 0) => 0,
            (0, _) => return None,
            _ => first,
        };
        // Whether it is called [heap] or [stack]. Which of the bounds is included differs between kernels.
        let (heap, heap_end, stack) = (space.member(HeapStart)?, space.member(HeapEnd)?, space.member(StackStart)?);
        let is_near = [start.cmp(&heap_end), end.cmp(&heap), start.cmp(&stack), end.cmp(&stack)];
        Some(self.layout.kinds.hash_one((permissions(flags).letters(), first, file, given_name, is_near)))
    }

    /// The name of a thread.
    fn name(&self, thread: &Bytes<'_>) -> Option<Name> {
        let at = self.layout.at(ThreadName);
        let bytes = (at..at.checked_add(NAME_BYTES)?).map(|at| thread.number(at, 1));
        let bytes: Option<Vec<u8>> = bytes.map(|byte| u8::try_from(byte?).ok()).collect();
        Some(Name::copied(bytes?.split(|&byte| byte == 0).next()?))
    }
}

/// VM_READ, VM_WRITE, VM_EXEC and VM_MAYSHARE in include/linux/mm.h.
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

/// Does `work` for each, on several cores if they are many.
fn on_cores<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    /// Less work takes less time than starting a thread.
    const FEW: usize = 64;
    /// `/proc/kcore` is open so many times.
    const MOST: usize = 4;
    let cores = available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    let share = all.len().div_ceil(cores).max(FEW);
    let do_all = |share: &[T]| share.iter().map(&work).collect::<Vec<R>>();
    let (own, others) = all.split_at(share.min(all.len()));
    std::thread::scope(|scope| {
        let start = |share| (share, Builder::new().spawn_scoped(scope, move || do_all(share)));
        let others: Vec<_> = others.chunks(share).map(start).collect();
        let mut done = do_all(own);
        for (share, helper) in others {
            done.extend(match helper {
                Ok(helper) => helper.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // This user may have no more threads: this one does the work.
                Err(_) => do_all(share),
            });
        }
        done
    })
}
