//! Swapped pages of shared memory in the memory of a made kernel.

use super::super::layout::Member;
use super::super::mapping::{
    MapleKind, MapleLayout, MappingLayout, MappingMember, Mappings, RedBlackLayout, RedBlackMember, TreeLayout,
};
use super::super::pages::PageRecords;
use super::super::swapped::{CacheLayout, CacheMember, CacheMembers, PageCache, SwappedRun};
use super::kernel::{Kernel, MEMORY, PAGE, RECORDS, X86_64, region};
use super::tapes;
use crate::budget::Budget;
use crate::kernel::{Device, Region, SwapEntry};
use std::cell::OnceCell;
use std::ops::Range;

/// In the order of [`CacheMember::ALL`].
const CACHE: [u64; CacheMember::ALL.len()] = [16, 8, 0, 8, 16, 40];
const TREE: u64 = 16;
const HEAD: u64 = TREE + 8;

fn slot(offset: u64) -> SwapEntry {
    SwapEntry { kind: 3, offset }
}

fn value(slot: SwapEntry) -> u64 {
    (u64::from(slot.kind) << 58 | slot.offset) << 1 | 1
}

/// A page cache: pages that are in memory, and pages in slots, with how many each entry is for.
struct Cache {
    kernel: Kernel,
    cache: u64,
}

impl Cache {
    fn new() -> Cache {
        let mut kernel = Kernel::new(X86_64);
        let cache = kernel.page(0);
        Cache { kernel, cache }
    }

    fn layout() -> CacheLayout {
        CacheLayout { members: CacheMembers(CACHE), chunk: 6 }
    }

    fn node(&mut self, shift: u64, number: u64, parent: u64) -> u64 {
        let node = self.kernel.page(0);
        let words = [(0, shift | number << 8), (8, parent), (16, self.cache + TREE)];
        self.kernel.words.extend(words.map(|(at, word)| (node + at, word)));
        node
    }

    /// Puts an entry for `1 << order` pages at `index`.
    fn put(&mut self, index: u64, order: u64, raw: u64) {
        let head = self.cache + HEAD;
        let top = self.kernel.words.get(&head).copied().filter(|&raw| raw != 0);
        let mut node = match top {
            Some(top) => top - 2,
            None => {
                let root = self.node(12, 0, 0);
                self.kernel.words.insert(head, root + 2);
                root
            }
        };
        let mut shift = 12;
        while shift > order / 6 * 6 {
            let number = index >> shift & 63;
            let place = node + 40 + number * 8;
            let below = self.kernel.words.get(&place).copied().filter(|&raw| raw != 0);
            shift -= 6;
            node = match below {
                Some(below) => below - 2,
                None => {
                    let child = self.node(shift, number, node);
                    self.kernel.words.insert(place, child + 2);
                    child
                }
            };
        }
        let first = index >> shift & 63;
        for number in first..first + (1 << (order - shift)) {
            let raw = if number == first { raw } else { first << 2 | 2 };
            self.kernel.words.insert(node + 40 + number * 8, raw);
        }
    }

    fn swapped_within(&self, wanted: Range<u64>, mut budget: Budget) -> crate::access::Result<Vec<SwappedRun>> {
        let (pages, layout) = (self.kernel.pages(), Self::layout());
        PageCache { pages: &pages, layout: &layout, cache: self.cache }.swapped(wanted, &mut budget)
    }

    /// First pages, pages, and first slots.
    fn swapped(&self, wanted: Range<u64>) -> Vec<(u64, u64, u64)> {
        let runs = self.swapped_within(wanted, Budget::unlimited()).expect("a tree");
        assert!(runs.iter().all(|run| run.slot.kind == 3), "{runs:?}");
        runs.iter().map(|run| (run.index, run.pages, run.slot.offset)).collect()
    }
}

/// Small and large entries: pages of 2 MiB of slots at 512, a folio of 8 pages at 72, and 4 pages in memory.
fn mixed() -> Cache {
    let mut cache = Cache::new();
    cache.put(1, 0, value(slot(500)));
    cache.put(2, 0, value(slot(501)));
    cache.put(3, 0, value(slot(700)));
    cache.put(4, 2, RECORDS + 64);
    cache.put(72, 3, value(slot(800)));
    cache.put(512, 9, value(slot(0x10000)));
    cache.put(1024, 6, value(slot(0x20000)));
    cache.put(1088, 0, value(slot(0x30000)));
    cache
}

#[test]
fn slots_are_in_the_tree_of_the_page_cache() {
    let cache = mixed();
    let all = [(1, 2, 500), (3, 1, 700), (72, 8, 800), (512, 512, 0x10000), (1024, 64, 0x20000), (1088, 1, 0x30000)];
    assert_eq!(cache.swapped(0..u64::MAX), all);
    // From the middle of an entry to the middle of another.
    assert_eq!(cache.swapped(2..4), [(2, 1, 501), (3, 1, 700)]);
    assert_eq!(cache.swapped(75..600), [(75, 5, 803), (512, 88, 0x10000)]);
    assert_eq!(cache.swapped(1000..1030), [(1000, 24, 0x10000 + 488), (1024, 6, 0x20000)]);
    assert_eq!(cache.swapped(4..72), []);
    assert_eq!(cache.swapped(2000..1 << 40), []);
}

#[test]
fn a_tree_of_one_page_has_no_node() {
    let mut cache = Cache::new();
    assert_eq!(cache.swapped(0..10), []);
    cache.kernel.words.insert(cache.cache + HEAD, value(slot(9)));
    assert_eq!(cache.swapped(0..10), [(0, 1, 9)]);
    assert_eq!(cache.swapped(1..10), []);
    cache.kernel.words.insert(cache.cache + HEAD, RECORDS + 64);
    assert_eq!(cache.swapped(0..10), []);
}

#[test]
fn nodes_of_other_trees_are_not_believed() {
    let whole = mixed();
    let root = whole.kernel.words[&(whole.cache + HEAD)] - 2;
    // The tree, the parent, and the shift.
    for (at, wrong) in [(16, MEMORY), (8, MEMORY), (0, 7)] {
        let mut damaged = mixed();
        damaged.kernel.words.insert(root + at, wrong);
        let error = damaged.swapped_within(0..10, Budget::unlimited()).expect_err("a damaged root");
        assert!(error.to_string().contains("page cache"), "{error}");
        // The node of the first 4,096 pages is the root itself: below it is that of the first 64.
        let mut damaged = mixed();
        let middle = damaged.kernel.words[&(root + 40)] - 2;
        damaged.kernel.words.insert(middle + at, wrong);
        assert_eq!(damaged.swapped(0..u64::MAX), [], "{at}");
        let mut damaged = mixed();
        let low = damaged.kernel.words[&(middle + 40)] - 2;
        damaged.kernel.words.insert(low + at, wrong);
        assert_eq!(damaged.swapped(0..u64::MAX).first(), Some(&(72, 8, 800)), "{at}");
    }
    // A node below itself.
    let mut endless = mixed();
    endless.kernel.words.insert(root + 40, root + 2);
    assert_eq!(endless.swapped(0..u64::MAX), []);
    let stopped = mixed().swapped_within(0..u64::MAX, Budget::unlimited().at_most(2));
    assert!(matches!(stopped, Err(crate::access::Error::OutOfBudget(_))));
}

/// In the order of [`MappingMember::ALL`], and of [`RedBlackMember::ALL`].
const MAPPING: [u64; MappingMember::ALL.len()] = [0, 8, 16, 96, 40];
const RED_BLACK: [u64; RedBlackMember::ALL.len()] = [8, 32, 16, 8];

fn maple() -> MapleLayout {
    let range = MapleKind { number: 2, pivots: 8, pivot_count: 15, slots: 128 };
    let leaf = MapleKind { number: 1, ..range };
    let gaps = MapleKind { number: 3, pivots: 8, pivot_count: 9, slots: 80 };
    MapleLayout { root: 64 + 8, kinds: [leaf, range, gaps] }
}

/// An address space with mappings of files, and no memory between some of them.
struct Space {
    kernel: Kernel,
    space: u64,
    regions: Vec<Region>,
    mappings: Vec<u64>,
    caches: Vec<u64>,
    /// Of the kernel, once nothing is added to it any more.
    pages: OnceCell<PageRecords>,
}

impl Space {
    fn new() -> Space {
        let mut kernel = Kernel::new(X86_64);
        let space = kernel.page(0);
        let (_, tape) = tapes().next().expect("a tape");
        let layout = tape.layout();
        let at = |member: Member| layout.at(member).expect("a member");
        let (mut regions, mut mappings, mut caches) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..100 {
            let first = 0x1000 + number * 16;
            let pages = if number % 3 == 0 { 16 } else { 5 };
            let [mapping, open, cache, inode, filesystem] = [(); 5].map(|()| kernel.page(0x1234_5678));
            let words = [
                (mapping, first * PAGE),
                (mapping + 8, (first + pages) * PAGE),
                (mapping + 16, space),
                (mapping + 96, open),
                (open + 40, cache),
                (cache + at(Member::Host), inode),
                (inode + at(Member::InodeMapping), cache),
                (inode + at(Member::InodeNumber), 1000 + number),
                (inode + at(Member::InodeFilesystem), filesystem),
            ];
            kernel.words.extend(words);
            let device = filesystem + at(Member::FilesystemDevice);
            let (word, shift) = (device & !7, (device & 7) * 8);
            kernel.words.insert(word, 5 << shift);
            let device = Device { major: 0, minor: 5 };
            regions.push(Region { device, inode: 1000 + number, ..region(first..first + pages) });
            mappings.push(mapping);
            caches.push(cache);
        }
        Space { kernel, space, regions, mappings, caches, pages: OnceCell::new() }
    }

    /// A maple tree of leaves with up to 15 entries, of which some are empty, below one node.
    fn maple(mut self) -> Space {
        let mut ranges = Vec::new();
        for (region, mapping) in self.regions.iter().zip(&self.mappings) {
            let (start, end) = (region.range.start().get(), region.range.end().get());
            if ranges.last().map_or(0, |&(end, _)| end) < start {
                ranges.push((start, 0));
            }
            ranges.push((end, *mapping));
        }
        let mut leaves = Vec::new();
        for part in ranges.chunks(11) {
            let leaf = self.kernel.page(0) + 256;
            for (number, (end, mapping)) in (0..).zip(part) {
                self.kernel.words.insert(leaf + 8 + number * 8, end - 1);
                self.kernel.words.insert(leaf + 128 + number * 8, *mapping);
            }
            leaves.push((part.last().expect("a range").0 - 1, leaf | 1 << 3 | 4));
        }
        // Nodes with gaps above them, and one above these.
        let mut above = Vec::new();
        for part in leaves.chunks(9) {
            let node = self.kernel.page(0);
            for (number, (last, leaf)) in (0..).zip(part) {
                self.kernel.words.insert(node + 8 + number * 8, *last);
                self.kernel.words.insert(node + 80 + number * 8, *leaf);
            }
            above.push((part.last().expect("a leaf").0, node | 3 << 3 | 4));
        }
        let top = self.kernel.page(0);
        for (number, (last, node)) in (0..).zip(above) {
            self.kernel.words.insert(top + 8 + number * 8, last);
            self.kernel.words.insert(top + 80 + number * 8, node);
        }
        self.kernel.words.insert(self.space + 72, top | 3 << 3 | 2);
        self
    }

    fn red_black(mut self) -> Space {
        let root = self.link(0..self.mappings.len());
        self.kernel.words.insert(self.space + RED_BLACK[0], root);
        self
    }

    fn link(&mut self, range: Range<usize>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let middle = range.start + range.len() / 2;
        let [left, right] = [range.start..middle, middle + 1..range.end].map(|part| self.link(part));
        let node = self.mappings[middle] + RED_BLACK[1];
        self.kernel.words.extend([(node + RED_BLACK[2], left), (node + RED_BLACK[3], right)]);
        node
    }

    fn cache(&self, tree: &TreeLayout, region: &Region) -> Option<u64> {
        let pages = self.pages.get_or_init(|| self.kernel.pages());
        Mappings { pages, tree, layout: &MappingLayout(MAPPING) }.page_cache(self.space, region)
    }
}

#[test]
fn a_region_leads_to_the_page_cache_of_its_file() {
    let trees = [
        (Space::new().maple(), TreeLayout::Maple(maple())),
        (Space::new().red_black(), TreeLayout::RedBlack(RedBlackLayout(RED_BLACK))),
    ];
    for (space, tree) in trees {
        for (region, cache) in space.regions.iter().zip(&space.caches) {
            assert_eq!(space.cache(&tree, region), Some(*cache), "{tree:?} {region:?}");
            // Another file, another size, nothing there.
            assert_eq!(space.cache(&tree, &Region { inode: 7, ..region.clone() }), None);
            let first = region.range.start().get() / PAGE;
            assert_eq!(
                space.cache(&tree, &Region { range: super::kernel::region(first..first + 3).range, ..region.clone() }),
                None
            );
        }
        let nowhere = region(0x1005..0x1008);
        assert_eq!(space.cache(&tree, &nowhere), None);
        assert_eq!(space.cache(&tree, &region(0x10..0x20)), None);
        assert_eq!(space.cache(&tree, &region(0x9_0000..0x9_0020)), None);
    }
}

#[test]
fn wrong_trees_lead_to_an_end() {
    let (space, region) = (Space::new().maple(), Space::new().regions[50].clone());
    for wrong in [0, 8, 16, 64, 80, 128, 1 << 40, u64::MAX] {
        let mut all = vec![MapleLayout { root: wrong, ..maple() }];
        for kind in 0..3 {
            let mut layout = maple();
            layout.kinds[kind].pivots = wrong;
            all.push(layout.clone());
            layout = maple();
            layout.kinds[kind].slots = wrong;
            all.push(layout);
        }
        for layout in all {
            let found = space.cache(&TreeLayout::Maple(layout), &region);
            assert!(found.is_none_or(|found| found == space.caches[50]));
        }
    }
    let space = Space::new().red_black();
    for member in 0..RED_BLACK.len() {
        for wrong in [0, 8, 16, 24, 32, 1 << 40, u64::MAX] {
            let mut offsets = RED_BLACK;
            offsets[member] = wrong;
            let found = space.cache(&TreeLayout::RedBlack(RedBlackLayout(offsets)), &region);
            assert!(found.is_none_or(|found| found == space.caches[50]));
        }
    }
}
