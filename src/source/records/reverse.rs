//! The reverse map: the mappings through which the kernel itself finds the page-table entries of a frame. Anonymous
//! memory has a tree of the mappings that may have its pages. The page cache of a file has a tree of the mappings of
//! that file.
//!
//! The walk takes no locks. It checks back pointers, but its result is a hint. The caller reads the page-map entry of
//! each page, and compares the number of mappings with the map count of the frame.

use super::layout::member_list;
use super::pages::{PageRecords, RawPage, unproved};
use crate::budget::Budget;
use crate::kernel::VirtualAddress;
use crate::source::{Error, Result};
use std::collections::BTreeMap;

/// An address space that may map a frame, by its process, and the pages at which it may.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordedMapper {
    /// The process.
    pub pid: u32,
    /// The first bytes of the pages.
    pub pages: Vec<VirtualAddress>,
}

impl RecordedMapper {
    /// A process that may map a frame at these pages.
    pub fn new(pid: u32, pages: Vec<VirtualAddress>) -> Self {
        RecordedMapper { pid, pages }
    }
}

member_list! {
    /// A member on the way from a page to the processes that may map it.
    ReverseMember, ReverseLayout {
        /// The first node of the tree of anonymous memory.
        AnonymousRoot: "anon_vma"."rb_root.rb_root.rb_node";
        /// Where a node of it is in its entry.
        EntryNode: "anon_vma_chain"."rb";
        /// The last page of the entries at and below a node.
        EntryLast: "anon_vma_chain"."rb_subtree_last";
        /// The tree that an entry is of.
        EntryOf: "anon_vma_chain"."anon_vma";
        /// The mapping of an entry.
        EntryMapping: "anon_vma_chain"."vma";
        /// The first node of the tree of a page cache.
        FileRoot: "address_space"."i_mmap.rb_root.rb_node";
        /// Where a node of it is in its mapping.
        MappingNode: "vm_area_struct"."shared.rb";
        /// The last page of the mappings at and below a node.
        MappingLast: "vm_area_struct"."shared.rb_subtree_last";
        Left: "rb_node"."rb_left";
        Right: "rb_node"."rb_right";
        Start: "vm_area_struct"."vm_start";
        End: "vm_area_struct"."vm_end";
        /// The page of its object that a mapping begins with.
        FirstPage: "vm_area_struct"."vm_pgoff";
        /// The address space of a mapping.
        Space: "vm_area_struct"."vm_mm";
        /// The open file of a mapping.
        OpenFile: "vm_area_struct"."vm_file";
        /// The page cache of an open file.
        PageCache: "file"."f_mapping";
        /// The thread that an address space belongs to.
        Owner: "mm_struct"."owner";
        /// The address space of a thread.
        SpaceOfThread: "task_struct"."mm";
        /// The process of a thread.
        Process: "task_struct"."tgid";
    }
}

use ReverseMember::*;

/// No member of a mapping or of an entry lies farther into it.
const FARTHEST: u64 = 1 << 10;
/// The most nodes of one tree. With more, to read each is no longer cheaper than to ask every process.
const MOST_NODES: u32 = if cfg!(test) { 1 << 10 } else { 1 << 18 };

impl ReverseLayout {
    /// How many bytes have all of these members of one structure.
    fn length_with(&self, members: &[ReverseMember]) -> usize {
        let last = members.iter().map(|&member| self.at(member)).max().unwrap_or_default();
        (last.min(FARTHEST) + 8) as usize
    }
}

/// The reverse map of pages.
pub(super) struct ReverseMap<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a ReverseLayout,
}

/// The tree of one page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree {
    /// Of anonymous memory.
    Anonymous(u64),
    /// Of a page cache.
    File(u64),
}

/// The first bytes of a structure.
struct Bytes<'a> {
    map: &'a ReverseMap<'a>,
    bytes: Vec<u8>,
}

impl Bytes<'_> {
    fn word(&self, offset: u64) -> Option<u64> {
        self.map.pages.image.number(&self.bytes, usize::try_from(offset).ok()?, 8)
    }

    fn member(&self, member: ReverseMember) -> Option<u64> {
        self.word(self.map.layout.at(member))
    }
}

/// A node of a tree.
struct Node {
    /// The last page of it and of all nodes below it.
    last: u64,
    left: u64,
    right: u64,
    /// The first page of its mapping. What begins later is to its right.
    first: u64,
    /// Its mapping, if that is of this tree.
    mapping: Option<FoundMapping>,
}

#[derive(Clone, Copy)]
struct FoundMapping {
    start: u64,
    end: u64,
    space: u64,
}

impl ReverseMap<'_> {
    /// Processes that may map a frame, each address space once. Each mapping in the tree is a step.
    pub(super) fn mappers(&self, frame: u64, budget: &mut Budget) -> Result<Vec<RecordedMapper>> {
        let (tree, index) =
            self.tree(frame).ok_or_else(|| Error::not_available("the kernel records no mappings of this frame"))?;
        let spaces = self.spaces(tree, index, budget)?;
        let mut processes: BTreeMap<u32, Vec<VirtualAddress>> = BTreeMap::new();
        for (space, pages) in spaces {
            budget.go_on()?;
            if let Some(process) = self.process(space) {
                processes.entry(process).or_default().extend(pages);
            }
        }
        let mapper = |(pid, mut pages): (u32, Vec<VirtualAddress>)| {
            pages.sort_unstable();
            RecordedMapper { pid, pages }
        };
        Ok(processes.into_iter().map(mapper).collect())
    }

    /// The tree that has the mappings of a frame, and the index of its page there.
    fn tree(&self, frame: u64) -> Option<(Tree, u64)> {
        let head = self.pages.with(frame, |page: RawPage<'_>| page.head(frame))?;
        let folio = self.pages.folio(head)?;
        let index = folio.index.checked_add(frame - head)?;
        let tree = match folio.mapping & 3 {
            _ if !folio.may_have_owner() => return None,
            1 => Tree::Anonymous(folio.mapping - 1),
            0 if folio.mapping != 0 => Tree::File(folio.mapping),
            _ => return None,
        };
        Some((tree, index))
    }

    fn word(&self, structure: u64, member: ReverseMember) -> Option<u64> {
        self.pages.image.word(structure.checked_add(self.layout.at(member))?)
    }

    /// The first bytes of a structure, with all of these members.
    fn structure(&self, address: u64, members: &[ReverseMember], more: u64) -> Option<Bytes<'_>> {
        let mut bytes = vec![0; self.layout.length_with(members) + more as usize];
        self.pages.image.read(address, &mut bytes)?;
        Some(Bytes { map: self, bytes })
    }

    /// The address spaces with a mapping of the page with this index, and the addresses of the page in them.
    fn spaces(&self, tree: Tree, index: u64, budget: &mut Budget) -> Result<BTreeMap<u64, Vec<VirtualAddress>>> {
        let root = match tree {
            Tree::Anonymous(map) => self.word(map, AnonymousRoot),
            Tree::File(mapping) => self.word(mapping, FileRoot),
        };
        let mut spaces: BTreeMap<u64, Vec<VirtualAddress>> = BTreeMap::new();
        let mut left: Vec<u64> = root.into_iter().filter(|&node| node != 0).collect();
        let mut seen = 0;
        while let Some(node) = left.pop() {
            budget.go_on()?;
            seen += 1;
            if seen > MOST_NODES {
                return Err(unproved("the mappings of a page are too many, or changed all the time"));
            }
            let Some(node) = self.node(tree, node).filter(|node| node.last >= index) else {
                continue;
            };
            let right = Some(node.right).filter(|_| node.first <= index);
            left.extend([Some(node.left), right].into_iter().flatten().filter(|&child| child != 0));
            if let Some((space, address)) = node.mapping.and_then(|mapping| self.place(mapping, node.first, index)) {
                spaces.entry(space).or_default().push(address);
            }
        }
        Ok(spaces)
    }

    /// Where a mapping that begins with page `first` has the page `index`.
    fn place(&self, mapping: FoundMapping, first: u64, index: u64) -> Option<(u64, VirtualAddress)> {
        let offset = index.checked_sub(first)?.checked_mul(self.pages.page_bytes)?;
        let address = mapping.start.checked_add(offset).filter(|&address| address < mapping.end)?;
        Some((mapping.space, VirtualAddress::new(address)))
    }

    fn node(&self, tree: Tree, node: u64) -> Option<Node> {
        const OF_MAPPING: [ReverseMember; 5] = [Start, End, FirstPage, Space, OpenFile];
        let links = self.layout.at(Left).max(self.layout.at(Right)).min(FARTHEST);
        let at = |member| self.layout.at(member);
        let (entry, mapping);
        let (of_node, place, last) = match tree {
            Tree::Anonymous(_) => {
                let members = [EntryNode, EntryLast, EntryOf, EntryMapping];
                entry = self.structure(node.checked_sub(at(EntryNode))?, &members, links)?;
                mapping = self.structure(entry.member(EntryMapping)?, &OF_MAPPING, 0)?;
                (&entry, EntryNode, EntryLast)
            }
            Tree::File(_) => {
                let members = [&OF_MAPPING[..], &[MappingNode, MappingLast]].concat();
                mapping = self.structure(node.checked_sub(at(MappingNode))?, &members, links)?;
                (&mapping, MappingNode, MappingLast)
            }
        };
        let is_of_tree = match tree {
            Tree::Anonymous(map) => of_node.member(EntryOf)? == map,
            Tree::File(cache) => self.word(mapping.member(OpenFile)?, PageCache) == Some(cache),
        };
        let child = |side| of_node.word(at(place).checked_add(at(side))?);
        let found =
            FoundMapping { start: mapping.member(Start)?, end: mapping.member(End)?, space: mapping.member(Space)? };
        Some(Node {
            last: of_node.member(last)?,
            left: child(Left)?,
            right: child(Right)?,
            first: mapping.member(FirstPage)?,
            mapping: Some(found).filter(|_| is_of_tree),
        })
    }

    /// The process of an address space, if that process still has it.
    fn process(&self, space: u64) -> Option<u32> {
        let thread = self.word(space, Owner).filter(|&thread| thread != 0)?;
        let has_it = self.word(thread, SpaceOfThread)? == space;
        let number = self.pages.image.half(thread.checked_add(self.layout.at(Process))?)?;
        has_it.then_some(number)
    }
}
