//! The backing of pages that are not mapped: the page cache of files, and the page cache and swap slots of shared
//! memory.

use super::AddressSpace;
use crate::inspect::classify::{Backing, KernelBehaviour as _};
use crate::inspect::page::Evidence;
use crate::inspect::region::ViewedRegion;
use crate::kernel::{AddressRange, Region, VirtualAddress};
use crate::process::{self, BackingContent, BackingRun, Error, RecordParts, SwappedRange};

impl AddressSpace {
    /// Returns whether `viewed` maps a file or shared memory, whose content can be read for pages that are not mapped.
    pub(in crate::inspect) fn has_object(&self, viewed: &ViewedRegion) -> bool {
        matches!(viewed.backing, Backing::File | Backing::Shmem) && !self.is_pfn_mapped(viewed)
    }

    /// Returns whether untouched pages of `viewed` can have backing content: the region maps a file, shared memory,
    /// secret memory or hugetlb pages.
    pub(in crate::inspect) fn has_content(&self, viewed: &ViewedRegion) -> bool {
        matches!(viewed.backing, Backing::Hugetlb | Backing::Secret) || self.has_object(viewed)
    }

    /// Returns whether `need` asks for the backing content of untouched pages of `viewed`.
    pub(in crate::inspect) fn asks_content(&self, need: Evidence, viewed: &ViewedRegion) -> bool {
        let is_shared_memory = || viewed.backing == Backing::Shmem && self.has_object(viewed);
        need.contains(Evidence::CONTENT) && self.has_content(viewed)
            || need.contains(Evidence::SHARED_CONTENT) && is_shared_memory()
    }

    /// Returns the backing content of the pages of `range`, which lies in `viewed`.
    pub(in crate::inspect) fn backing_content(&self, viewed: &ViewedRegion, range: AddressRange) -> Vec<BackingRun> {
        let runs = self.read_backing_content(viewed, range);
        if let Some(error) = runs.iter().find_map(|run| run.content.as_ref().err()) {
            viewed.lacks_content.get_or_init(|| error.clone().into());
        }
        runs
    }

    fn read_backing_content(&self, viewed: &ViewedRegion, range: AddressRange) -> Vec<BackingRun> {
        let region = &viewed.region;
        // No other process can map this memory: no other has filled it.
        let is_own = !region.permissions.shared && region.name.as_bytes() == b"/anon_hugepage";
        if viewed.backing == Backing::Secret {
            return self.secret_content(region, range);
        }
        match self.files(region).backing_content(region, range) {
            Ok(runs) => runs,
            Err(_) if is_own && viewed.backing == Backing::Hugetlb => {
                vec![BackingRun { range, content: Ok(BackingContent::Hole) }]
            }
            Err(error) => vec![BackingRun { range, content: Err(error) }],
        }
    }

    /// Returns the backing content of secret memory. The kernel shows its end, but not which pages it has.
    fn secret_content(&self, region: &Region, range: AddressRange) -> Vec<BackingRun> {
        let modules = &self.target().modules;
        let file = match modules.mapped_file(region) {
            Ok(file) => file,
            Err(error) => return vec![BackingRun { range, content: Err(error) }],
        };
        let bytes = file.bytes.checked_next_multiple_of(self.page_size().bytes()).unwrap_or(u64::MAX);
        let inside = bytes.saturating_sub(region.offset);
        let end = VirtualAddress::new(region.range.start().get().saturating_add(inside));
        let end = end.clamp(range.start(), range.end());
        let hidden = || Err(Error::not_available("the kernel does not show which pages secret memory has"));
        let parts = [(range.start(), end, hidden()), (end, range.end(), Ok(BackingContent::PastEnd))];
        let run = |(from, to, content)| Some(BackingRun { range: AddressRange::new(from, to)?, content });
        parts.into_iter().filter_map(run).collect()
    }

    /// Returns whether the swap slots of untouched pages of `viewed` can be read: those of shared memory, which the
    /// page map does not show, from the kernel's own records.
    pub(in crate::inspect) fn has_slots(&self, viewed: &ViewedRegion) -> bool {
        self.may_have_slots(viewed) && self.require_slots().is_ok() && viewed.lacks_slots.get().is_none()
    }

    /// Returns whether untouched pages of `viewed` may be in swap without any sign of it: the page map has no entry for
    /// shared memory in swap.
    pub fn hides_swapped(&self, viewed: &ViewedRegion) -> bool {
        viewed.backing == Backing::Shmem && self.swap_in_use() && !self.has_slots(viewed)
    }

    /// Returns whether pages of `viewed` may be in swap without an entry in the page map, and the kernel's records can
    /// be read.
    pub(in crate::inspect) fn may_have_slots(&self, viewed: &ViewedRegion) -> bool {
        let has_records = || self.target().machine.require_records(RecordParts::OWNER).is_ok();
        viewed.backing == Backing::Shmem && self.swap_in_use() && has_records()
    }

    /// Checks that the slots of shared memory can be read. Returns the error if they cannot.
    pub(in crate::inspect) fn require_slots(&self) -> process::Result<()> {
        let ask = || self.target().process.require_slots();
        self.0.cache.slots.get_or_init(ask).clone()
    }

    /// Returns the pages of `range`, a part of `viewed`, that its shared memory has in swap.
    pub(in crate::inspect) fn slots(
        &self,
        viewed: &ViewedRegion,
        range: AddressRange,
    ) -> process::Result<Vec<SwappedRange>> {
        let found = self.target().process.slots(&viewed.region, range);
        if found.is_err() {
            viewed.lacks_slots.get_or_init(|| ());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Device, Kind, State, SwapEntry, VirtualAddress};
    use crate::process::fake::{FILE, PAGE, PRESENT, World, region};
    use std::collections::{BTreeMap, HashMap};

    const FIRST: u64 = 0x1000;

    /// Returns shared memory with a mapped page, five pages in neighbouring slots, two in others, and a poisoned one.
    fn world() -> World {
        let mut shared = region(FIRST, 64);
        shared.device = Device { major: 0, minor: 30 };
        (shared.inode, shared.permissions.shared) = (7, true);
        let mut world = World { tmpfs: Some(shared.device), swaps: true, ..World::new([shared]) };
        world.entries.insert(FIRST, PRESENT | FILE | 0x77);
        let slot = |kind, offset| SwapEntry { kind, offset };
        let mut slots: BTreeMap<u64, SwapEntry> = (0..5).map(|at| (FIRST + 3 + at, slot(0, 100 + at))).collect();
        // The last is a marker (PTE_MARKER_POISONED).
        slots.extend([(FIRST + 8, slot(0, 7)), (FIRST + 20, slot(0, 8)), (FIRST + 21, slot(31, 2))]);
        World { slots: Some(slots), records: Some(HashMap::new()), ..world }
    }

    /// Returns the states, numbers of pages, and first slots of the pages.
    fn seen(world: World, need: Evidence) -> Vec<(State, u64, Option<u64>)> {
        let (_, target) = world.target();
        let space = AddressSpace::of(&target).expect("a space");
        let mut seen: Vec<(State, u64, Option<u64>)> = Vec::new();
        let mut pages = space.pages(&space.spans(), need);
        while let Some(chunk) = pages.next().expect("a sweep") {
            for page in chunk.pages() {
                let slot = page.slot.filter(|_| page.state() == State::Swapped).map(|slot| slot.offset);
                match seen.last_mut() {
                    Some((state, pages, None)) if *state == page.state() && slot.is_none() => *pages += page.pages,
                    _ => seen.push((page.state(), page.pages, slot)),
                }
            }
        }
        seen
    }

    #[test]
    fn shared_memory_in_swap_is_swapped() {
        use State::{Poisoned, Present, Swapped, Untouched};
        let expected = [
            (Present, 1, None),
            (Untouched, 2, None),
            (Swapped, 5, Some(100)),
            (Swapped, 1, Some(7)),
            (Untouched, 11, None),
            (Swapped, 1, Some(8)),
            (Poisoned, 1, None),
            (Untouched, 42, None),
        ];
        for scans in [true, false] {
            for need in [Evidence::empty(), Evidence::KINDS, Evidence::CONTENT] {
                assert_eq!(seen(World { scans, ..world() }, need), expected, "{scans} {need:?}");
            }
        }
        let each = seen(world(), Evidence::ENTRIES | Evidence::EACH);
        let slots: Vec<u64> = each.iter().filter_map(|(.., slot)| *slot).collect();
        assert_eq!(slots, [100, 101, 102, 103, 104, 7, 8]);
    }

    #[test]
    fn without_records_or_swap_it_is_untouched() {
        let untouched = [(State::Present, 1, None), (State::Untouched, 63, None)];
        let off = [
            World { records: None, ..world() },
            World { slots: None, ..world() },
            World { swaps: false, ..world() },
            World { tmpfs: None, ..world() },
        ];
        for world in off {
            assert_eq!(seen(world, Evidence::KINDS), untouched);
        }
    }

    #[test]
    fn slots_that_cannot_be_read_are_not_none() {
        for (fail, swapped) in [(false, Ok(7 * PAGE)), (true, Err(()))] {
            let (_, target) = World { slots_fail: fail, ..world() }.target();
            let space = AddressSpace::of(&target).expect("a space");
            let mut counts = space.region_stats(&space.spans(), Evidence::empty());
            let (_, stats) = counts.next().expect("a sweep").expect("a region");
            assert_eq!(stats.swapped.map_err(|_| ()), swapped);
        }
    }

    #[test]
    fn a_page_of_shared_memory_has_its_slot() {
        let (_, target) = world().target();
        let space = AddressSpace::of(&target).expect("a space");
        let at = |page: u64| space.detail(VirtualAddress::new(page * PAGE)).expect("a page");
        let swapped = at(FIRST + 5);
        assert_eq!((swapped.page.state(), swapped.page.kind), (State::Swapped, Some(Kind::Shmem)));
        assert_eq!(swapped.swap, Ok(SwapEntry { kind: 0, offset: 102 }));
        assert_eq!(at(FIRST + 2).page.state(), State::Untouched);
        assert!(at(FIRST + 2).swap.is_err());
    }
}
