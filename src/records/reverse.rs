//! The reverse map: the mappings through which the kernel finds the page-table entries of a frame. Anonymous memory has
//! a tree of the mappings that may have its pages. The page cache of a file has a tree of the mappings of that file.
//!
//! The walk has no locks. It checks back pointers, and reads the page-table entry of each page, but its result is a
//! hint. The caller compares the number of mappings with the map count of the frame, and reads some in `/proc`.

use super::layout::member_list;
use super::pages::{PageRecords, RawPage, unproved};
use crate::access::Result;
use crate::budget::Budget;
use crate::kernel::btf::Layout;
use crate::kernel::page_table::TableShape;
use std::collections::BTreeMap;
use std::hash::RandomState;

member_list! {
    /// A member on the way from a page to the processes that may map it.
    ReverseMember, ReverseMembers {
        /// The first node of the tree of anonymous memory.
        AnonymousRoot: "anon_vma"."rb_root.rb_root.rb_node";
        /// The place of its node in an entry of the tree.
        EntryNode: "anon_vma_chain"."rb";
        /// The last page of the entries at and below a node.
        EntryLast: "anon_vma_chain"."rb_subtree_last";
        /// The tree to which an entry belongs.
        EntryOf: "anon_vma_chain"."anon_vma";
        /// The mapping of an entry.
        EntryMapping: "anon_vma_chain"."vma";
        /// The first node of the tree of a page cache.
        FileRoot: "address_space"."i_mmap.rb_root.rb_node";
        /// The place of its node in a mapping.
        MappingNode: "vm_area_struct"."shared.rb";
        /// The last page of the mappings at and below a node.
        MappingLast: "vm_area_struct"."shared.rb_subtree_last";
        Left: "rb_node"."rb_left";
        Right: "rb_node"."rb_right";
        Start: "vm_area_struct"."vm_start";
        End: "vm_area_struct"."vm_end";
        /// The page of the object at which a mapping begins.
        FirstPage: "vm_area_struct"."vm_pgoff";
        /// The address space of a mapping.
        Space: "vm_area_struct"."vm_mm";
        /// The flags of a mapping.
        Flags: "vm_area_struct"."vm_flags";
        /// The functions of a mapping, from a file, the kernel or a driver. Anonymous memory has none: zero.
        Operations: "vm_area_struct"."vm_ops";
        /// The open file of a mapping.
        OpenFile: "vm_area_struct"."vm_file";
        /// The page cache of an open file.
        PageCache: "file"."f_mapping";
        /// The top page table of an address space.
        Top: "mm_struct"."pgd";
        HeapStart: "mm_struct"."start_brk";
        HeapEnd: "mm_struct"."brk";
        StackStart: "mm_struct"."start_stack";
        /// The thread that owns an address space.
        Owner: "mm_struct"."owner";
        /// The address space of a thread.
        SpaceOfThread: "task_struct"."mm";
        /// The process of a thread.
        Process: "task_struct"."tgid";
        /// The first thread of a process: its name and start time are those of the process.
        Leader: "task_struct"."group_leader";
        StartTime: "task_struct"."start_boottime";
        ThreadName: "task_struct"."comm";
    }
}

use ReverseMember::*;

/// The most bytes that are read from one structure.
const LONGEST: u64 = 1 << 12;
/// The most nodes of one tree. Beyond it, reading all of them is no longer cheaper than searching every process.
const MOST_NODES: u32 = if cfg!(test) { 1 << 10 } else { 1 << 18 };

/// The layout of the structures on the way from a page to processes.
pub(super) struct ReverseLayout {
    members: ReverseMembers,
    /// The offset of a mapping's name that its process set; `None` if this kernel keeps none.
    given_name: Option<u64>,
    /// The key of the hash that numbers kinds of mappings, so that the number reveals no kernel address.
    pub(super) kinds: RandomState,
}

impl ReverseLayout {
    /// Returns the layout from the kernel's BTF; `None` if a member is missing.
    pub(super) fn of(layout: &Layout) -> Option<Self> {
        let given_name = layout.member("vm_area_struct", "anon_name");
        Some(Self::new(ReverseMembers::of(layout)?, given_name.and_then(|member| member.byte_offset())))
    }

    pub(super) fn new(members: ReverseMembers, given_name: Option<u64>) -> Self {
        ReverseLayout { members, given_name, kinds: RandomState::new() }
    }

    pub(super) fn at(&self, member: ReverseMember) -> u64 {
        self.members.at(member)
    }

    /// Returns the offset of a mapping's name. From Linux 5.17 to 6.1 that is also the place of the node in the tree of
    /// a file: only mappings without a file have a name there.
    fn name_of(&self, has_file: bool) -> Option<u64> {
        let node = self.at(MappingNode)..=self.at(MappingLast);
        self.given_name.filter(|name| !(has_file && node.contains(name)))
    }
}

/// The reverse map of pages.
pub(super) struct ReverseMap<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a ReverseLayout,
    /// The structure of page tables, if it is known.
    pub(super) shape: Option<TableShape>,
}

/// The tree of a page's mappings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// The tree of anonymous memory, at this kernel address.
    Anonymous(u64),
    /// The tree of a page cache, at this kernel address.
    File(u64),
}

/// A part of a kernel structure.
pub(super) struct Bytes<'a> {
    map: &'a ReverseMap<'a>,
    /// The offset of the first byte in the structure.
    first: u64,
    bytes: Vec<u8>,
}

impl Bytes<'_> {
    pub(super) fn number(&self, offset: u64, size: usize) -> Option<u64> {
        let at = usize::try_from(offset.checked_sub(self.first)?).ok()?;
        self.map.pages.image.number(&self.bytes, at, size)
    }

    fn word(&self, offset: u64) -> Option<u64> {
        self.number(offset, 8)
    }

    pub(super) fn member(&self, member: ReverseMember) -> Option<u64> {
        self.word(self.map.layout.at(member))
    }
}

/// The place of a page in a mapping.
pub(super) struct Place {
    pub(super) address: u64,
    pub(super) mapping: FoundMapping,
}

/// A node of a tree.
struct Node {
    /// The last page of this node and of all nodes below it.
    last: u64,
    left: u64,
    right: u64,
    /// The mapping of the node. Mappings that begin later are to its right.
    mapping: FoundMapping,
    /// Whether the mapping belongs to this tree.
    is_of_tree: bool,
}

#[derive(Clone, Copy)]
pub(super) struct FoundMapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) space: u64,
    /// The first page of the object in the mapping.
    pub(super) first: u64,
    pub(super) flags: u64,
    pub(super) operations: u64,
    pub(super) file: u64,
    pub(super) given_name: u64,
}

impl ReverseMap<'_> {
    /// Returns the tree of a frame's mappings, and the index of its page there.
    pub(super) fn tree(&self, frame: u64) -> Option<(Tree, u64)> {
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

    pub(super) fn word(&self, structure: u64, member: ReverseMember) -> Option<u64> {
        self.pages.image.word(structure.checked_add(self.layout.at(member))?)
    }

    /// Reads the part of a structure that contains all these members, and `more` bytes.
    pub(super) fn structure(&self, address: u64, members: &[ReverseMember], more: u64) -> Option<Bytes<'_>> {
        let offsets = || members.iter().map(|&member| self.layout.at(member));
        let (first, last) = (offsets().min()?, offsets().max()?);
        let length = (last - first).checked_add(more)?.checked_add(8).filter(|&length| length <= LONGEST)?;
        let mut bytes = vec![0; length as usize];
        self.pages.image.read(address.checked_add(first)?, &mut bytes)?;
        Some(Bytes { map: self, first, bytes })
    }

    /// Returns the places of the page with this index, ordered by address space and by address. A walk may meet a
    /// mapping twice while the tree changes.
    pub(super) fn places(&self, tree: Tree, index: u64, budget: &mut Budget) -> Result<Vec<Place>> {
        let root = match tree {
            Tree::Anonymous(map) => self.word(map, AnonymousRoot),
            Tree::File(mapping) => self.word(mapping, FileRoot),
        };
        let mut places = BTreeMap::new();
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
            let right = Some(node.right).filter(|_| node.mapping.first <= index);
            left.extend([Some(node.left), right].into_iter().flatten().filter(|&child| child != 0));
            if let Some(place) = self.place(node.mapping, index).filter(|_| node.is_of_tree) {
                places.insert((place.mapping.space, place.address), place);
            }
        }
        Ok(places.into_values().collect())
    }

    /// Returns the place of the page `index` in a mapping.
    fn place(&self, mapping: FoundMapping, index: u64) -> Option<Place> {
        let offset = index.checked_sub(mapping.first)?.checked_mul(self.pages.page_bytes)?;
        let address = mapping.start.checked_add(offset).filter(|&address| address < mapping.end)?;
        Some(Place { address, mapping })
    }

    fn node(&self, tree: Tree, node: u64) -> Option<Node> {
        const OF_MAPPING: [ReverseMember; 7] = [Start, End, FirstPage, Space, Flags, Operations, OpenFile];
        let links = self.layout.at(Left).max(self.layout.at(Right));
        let at = |member| self.layout.at(member);
        // The number of bytes from the last other member to the name.
        let given_name = self.layout.given_name.map_or(0, |name| name.saturating_sub(at(OpenFile)));
        let (entry, mapping);
        let (of_node, place, last) = match tree {
            Tree::Anonymous(_) => {
                let members = [EntryNode, EntryLast, EntryOf, EntryMapping];
                entry = self.structure(node.checked_sub(at(EntryNode))?, &members, links)?;
                mapping = self.structure(entry.member(EntryMapping)?, &OF_MAPPING, given_name)?;
                (&entry, EntryNode, EntryLast)
            }
            Tree::File(_) => {
                let members = [&OF_MAPPING[..], &[MappingNode, MappingLast]].concat();
                mapping = self.structure(node.checked_sub(at(MappingNode))?, &members, links.max(given_name))?;
                (&mapping, MappingNode, MappingLast)
            }
        };
        let is_of_tree = match tree {
            Tree::Anonymous(map) => of_node.member(EntryOf)? == map,
            Tree::File(cache) => self.word(mapping.member(OpenFile)?, PageCache) == Some(cache),
        };
        let child = |side| of_node.word(at(place).checked_add(at(side))?);
        let member = |member| mapping.member(member);
        Some(Node {
            last: of_node.member(last)?,
            left: child(Left)?,
            right: child(Right)?,
            mapping: FoundMapping {
                start: member(Start)?,
                end: member(End)?,
                space: member(Space)?,
                first: member(FirstPage)?,
                flags: member(Flags)?,
                operations: member(Operations)?,
                file: member(OpenFile)?,
                given_name: match self.layout.name_of(member(OpenFile)? != 0) {
                    Some(at) => mapping.word(at)?,
                    None => 0,
                },
            },
            is_of_tree,
        })
    }
}
