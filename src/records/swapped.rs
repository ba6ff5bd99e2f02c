//! The pages of shared memory in swap. Their page-map entries are empty: the page cache of the memory has the slot in
//! place of the page.

use super::ground::{Ground, OwnFile};
use super::layout::member_list;
use super::mapping::{MappingLayout, Mappings, TreeLayout};
use super::pages::{PageRecords, unproved};
use crate::access::{Error, Result};
use crate::budget::Budget;
use crate::kernel::btf::Layout;
use crate::kernel::{AddressRange, Region, SwapEntry, VirtualAddress};
use std::ops::Range;

member_list! {
    /// A member of a page cache.
    CacheMember, CacheMembers {
        /// The tree of a page cache.
        Tree: "address_space"."i_pages";
        /// The first node of a tree.
        Head: "xarray"."xa_head";
        /// The number of index bits below a node.
        Shift: "xa_node"."shift";
        Parent: "xa_node"."parent";
        /// The tree to which a node belongs.
        Of: "xa_node"."array";
        Slots: "xa_node"."slots";
    }
}

/// The layout of a page cache.
#[derive(Clone, Debug)]
pub(super) struct CacheLayout {
    pub(super) members: CacheMembers,
    /// log2 of the number of children of a node.
    pub(super) chunk: u32,
}

impl CacheLayout {
    /// Returns the layout from the kernel's BTF; `None` if a member is missing.
    pub(super) fn of(layout: &Layout) -> Option<CacheLayout> {
        let slots = layout.member("xa_node", "slots")?.bits / 64;
        let chunk = Some(slots).filter(|slots| slots.is_power_of_two() && (16..=64).contains(slots))?.trailing_zeros();
        Some(CacheLayout { members: CacheMembers::of(layout)?, chunk })
    }
}

/// A run of pages of shared memory in consecutive slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SwappedRange {
    /// The addresses of whole pages.
    pub range: AddressRange,
    /// The slot of the first page.
    pub slot: SwapEntry,
}

impl SwappedRange {
    /// Makes a run of pages in the slots from `slot` on.
    pub fn new(range: AddressRange, slot: SwapEntry) -> Self {
        SwappedRange { range, slot }
    }
}

/// A run of swapped pages, by indexes in the page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SwappedRun {
    /// The index of the first page.
    pub(super) index: u64,
    pub(super) pages: u64,
    /// The slot of the first page.
    pub(super) slot: SwapEntry,
}

/// The layout of the structures on the way from a process to the slots of its shared memory.
#[derive(Clone, Debug)]
pub(super) struct SlotLayout {
    tree: TreeLayout,
    mapping: MappingLayout,
    cache: CacheLayout,
}

impl SlotLayout {
    /// Returns the layout from the kernel's BTF; `None` if a member is missing.
    pub(super) fn of(layout: &Layout) -> Option<SlotLayout> {
        Some(SlotLayout {
            tree: TreeLayout::of(layout)?,
            mapping: MappingLayout::of(layout)?,
            cache: CacheLayout::of(layout)?,
        })
    }

    /// Returns whether the page caches of pmdb's files contain their pages.
    pub(super) fn is_proved(&self, pages: &PageRecords, ground: &dyn Ground) -> bool {
        /// The most nodes of a walk: several times those of one path.
        const MOST: u64 = 256;
        let agrees = |own: &OwnFile| {
            let head = pages.with(own.frame, |page| page.head(own.frame))?;
            let page_cache = PageCache { pages, layout: &self.cache, cache: pages.folio(head)?.mapping };
            let mut found = None;
            let wanted = own.index..own.index + 1;
            let mut budget = Budget::unlimited().at_most(MOST);
            page_cache.walk(wanted, &mut budget, &mut |_, _, entry| found = Some(entry)).ok()?;
            Some(found == Some(CacheEntry::Folio(pages.address(head)?)))
        };
        let mut indexes = Vec::new();
        let mut has_differed = false;
        ground.own_files(&mut |own| match agrees(&own) {
            Some(true) => indexes.push(own.index),
            _ => has_differed = true,
        });
        indexes.sort_unstable();
        indexes.dedup();
        // One of the indexes must be in a tree of several levels.
        !has_differed && indexes.len() >= 3 && indexes.last().is_some_and(|&last| last >> self.cache.chunk > 0)
    }

    /// Returns the pages of `range`, a part of `region` of the address space `space`, that are in swap.
    pub(super) fn slots(
        &self,
        pages: &PageRecords,
        space: u64,
        region: &Region,
        range: AddressRange,
        budget: &mut Budget,
    ) -> Result<Vec<SwappedRange>> {
        let mappings = Mappings { pages, tree: &self.tree, layout: &self.mapping };
        let cache = mappings.page_cache(space, region).ok_or_else(|| {
            Error::not_available("the kernel's records did not lead to the shared memory of the region")
        })?;
        let page = pages.page_bytes;
        let start = region.range.start().get();
        let index = |address: VirtualAddress| (region.offset + (address.get() - start)) / page;
        let wanted = index(range.start())..index(range.end());
        let first = range.start().get();
        let found = PageCache { pages, layout: &self.cache, cache }.swapped(wanted.clone(), budget)?;
        let address = |index: u64| VirtualAddress::new(first + (index - wanted.start) * page);
        let placed = found.into_iter().filter_map(|SwappedRun { index, pages, slot }| {
            Some(SwappedRange { range: AddressRange::new(address(index), address(index + pages))?, slot })
        });
        Ok(placed.collect())
    }
}

/// Reads a page cache.
pub(super) struct PageCache<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a CacheLayout,
    /// The kernel address of the page cache.
    pub(super) cache: u64,
}

/// The entry of a page in a page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CacheEntry {
    /// The page is in the folio whose record is at this kernel address.
    Folio(u64),
    /// The page is in this slot.
    Slot(SwapEntry),
}

/// A node that was read.
struct Node {
    address: u64,
    bytes: Vec<u8>,
    shift: u32,
    /// The first index below the node.
    first: u64,
}

/// The most bytes of a node.
const LARGEST_NODE: u64 = 1 << 12;

impl PageCache<'_> {
    /// Returns the pages of `wanted` that are in swap, in order. Each node of the tree costs one step.
    pub(super) fn swapped(&self, wanted: Range<u64>, budget: &mut Budget) -> Result<Vec<SwappedRun>> {
        let mut runs: Vec<SwappedRun> = Vec::new();
        self.walk(wanted, budget, &mut |index, pages, entry| {
            let CacheEntry::Slot(slot) = entry else {
                return;
            };
            match runs.last_mut() {
                Some(run) if run.index + run.pages == index && after(run.slot, run.pages) == Some(slot) => {
                    run.pages += pages;
                }
                _ => runs.push(SwappedRun { index, pages, slot }),
            }
        })?;
        Ok(runs)
    }

    /// Calls `each` with the runs of pages of `wanted` that have an entry, in order: the first page, their number, and
    /// the entry of the first.
    pub(super) fn walk(
        &self,
        wanted: Range<u64>,
        budget: &mut Budget,
        each: &mut dyn FnMut(u64, u64, CacheEntry),
    ) -> Result<()> {
        let changed = || unproved("the tree of a page cache is damaged, or changed all the time");
        let at = |member| self.layout.members.at(member);
        let tree = self.cache.checked_add(at(CacheMember::Tree)).ok_or_else(changed)?;
        let head = tree.checked_add(at(CacheMember::Head)).and_then(|head| self.pages.image.word(head));
        let head = head.ok_or_else(changed)?;
        match node_of(head) {
            Some(address) => {
                let root = self.node(address, tree, 0, 0).ok_or_else(changed)?;
                self.look(&root, tree, &wanted, budget, each)
            }
            None => {
                if let Some(entry) = entry_of(head, 0).filter(|_| wanted.contains(&0)) {
                    each(0, 1, entry);
                }
                Ok(())
            }
        }
    }

    /// Reads a node, if it belongs to this tree and is below `parent`.
    fn node(&self, address: u64, tree: u64, parent: u64, first: u64) -> Option<Node> {
        let at = |member| self.layout.members.at(member);
        let length = at(CacheMember::Slots).checked_add(8 << self.layout.chunk)?;
        let mut bytes = vec![0; usize::try_from(Some(length).filter(|&length| length <= LARGEST_NODE)?).ok()?];
        self.pages.image.read(address, &mut bytes)?;
        let member = |member, size| self.pages.image.number(&bytes, usize::try_from(at(member)).ok()?, size);
        let shift = member(CacheMember::Shift, 1)? as u32;
        let is_right = member(CacheMember::Of, 8)? == tree
            && member(CacheMember::Parent, 8)? == parent
            && shift < 64
            && shift.is_multiple_of(self.layout.chunk);
        is_right.then_some(Node { address, bytes, shift, first })
    }

    /// Calls `each` with the entries at and below a node.
    fn look(
        &self,
        node: &Node,
        tree: u64,
        wanted: &Range<u64>,
        budget: &mut Budget,
        each: &mut dyn FnMut(u64, u64, CacheEntry),
    ) -> Result<()> {
        budget.go_on()?;
        let (count, span) = (1u64 << self.layout.chunk, 1u64 << node.shift);
        let begin = self.layout.members.at(CacheMember::Slots) as usize;
        let slot = |number: u64| self.pages.image.number(&node.bytes, begin + number as usize * 8, 8).unwrap_or(0);
        for number in 0..count {
            let Some(first) = number.checked_mul(span).and_then(|into| node.first.checked_add(into)) else {
                break;
            };
            let last = first.saturating_add(span);
            if last <= wanted.start || first >= wanted.end {
                continue;
            }
            // An entry for several children is in the first of them, and the others refer to that one.
            let from = sibling_of(slot(number), count).filter(|&from| from < number).unwrap_or(number);
            let raw = slot(from);
            if let Some(address) = node_of(raw) {
                let child = self.node(address, tree, node.address, first);
                // A node that has changed during the walk counts as empty.
                if let Some(child) =
                    child.filter(|child| child.shift.checked_add(self.layout.chunk) == Some(node.shift))
                {
                    self.look(&child, tree, wanted, budget, each)?;
                }
                continue;
            }
            let start = first.max(wanted.start);
            if let Some(entry) = entry_of(raw, (number - from) * span + (start - first)) {
                each(start, last.min(wanted.end) - start, entry);
            }
        }
        Ok(())
    }
}

/// Returns the node to which an entry points (`xa_is_node` in include/linux/xarray.h).
fn node_of(raw: u64) -> Option<u64> {
    (raw & 3 == 2 && raw > 4096).then(|| raw - 2)
}

/// Returns the number of the child whose entry is also that of this one (`xa_is_sibling`).
fn sibling_of(raw: u64, count: u64) -> Option<u64> {
    let number = raw >> 2;
    (raw & 3 == 2 && number < count - 1).then_some(number)
}

/// Decodes the entry of the page that is `into` pages after the first one of this entry.
fn entry_of(raw: u64, into: u64) -> Option<CacheEntry> {
    /// The type is in the upper bits of a value (`SWP_TYPE_SHIFT` in include/linux/swapops.h), which has 63.
    const TYPE_SHIFT: u32 = 58;
    match raw {
        0 => None,
        raw if raw & 1 == 1 => {
            let value = raw >> 1;
            let slot = SwapEntry { kind: (value >> TYPE_SHIFT) as u8, offset: value & ((1 << TYPE_SHIFT) - 1) };
            Some(CacheEntry::Slot(after(slot, into)?))
        }
        raw if raw & 3 == 0 => Some(CacheEntry::Folio(raw)),
        _ => None,
    }
}

/// Returns the slot `slots` after this one.
fn after(slot: SwapEntry, slots: u64) -> Option<SwapEntry> {
    Some(SwapEntry { offset: slot.offset.checked_add(slots)?, ..slot })
}
