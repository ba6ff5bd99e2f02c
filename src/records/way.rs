//! The search for page tables that may be those of a process. A page of the process has a reverse map, which leads to
//! the mappings of the page, and to their address spaces. A process without such a page is in the kernel's list of
//! processes, as is pmdb, whose page leads to that list.

use super::image::Image;
use super::layout::member_list;
use super::pages::PageRecords;
use crate::kernel::btf::Layout;
use crate::kernel::status::LARGEST_PID;
use crate::kernel::{FrameNumber, PageSize};

member_list! {
    /// A member on the way from a page to page tables.
    TableMember, TableMembers {
        /// The tree of a reverse map.
        Root: "anon_vma"."rb_root";
        /// The place of its node in an entry of the tree.
        Node: "anon_vma_chain"."rb";
        Left: "rb_node"."rb_left";
        Right: "rb_node"."rb_right";
        /// The reverse map to which an entry belongs.
        Of: "anon_vma_chain"."anon_vma";
        /// The mapping of an entry.
        Mapping: "anon_vma_chain"."vma";
        Start: "vm_area_struct"."vm_start";
        End: "vm_area_struct"."vm_end";
        /// The address space of a mapping.
        Space: "vm_area_struct"."vm_mm";
        /// The top page table of an address space.
        Top: "mm_struct"."pgd";
    }
}

member_list! {
    /// A member on the way from an address space to its process, and back.
    OwnerMember, OwnerLayout {
        /// The thread that owns an address space.
        Owner: "mm_struct"."owner";
        /// The address space of a thread.
        Space: "task_struct"."mm";
        /// The process id of a thread in the initial PID namespace.
        Process: "task_struct"."tgid";
        /// The main thread of a process, which is in the list of processes.
        Leader: "task_struct"."group_leader";
        /// The node of a process in that list.
        Listed: "task_struct"."tasks";
        Next: "list_head"."next";
        Previous: "list_head"."prev";
    }
}

/// The layout of the structures on the way.
#[derive(Clone, Debug)]
pub(super) struct TableLayout {
    pub(super) members: TableMembers,
    /// The layout of owners; `None` if address spaces have none (without CONFIG_MEMCG).
    pub(super) owner: Option<OwnerLayout>,
}

impl TableLayout {
    /// Returns the layout from the kernel's BTF; `None` if a member is missing.
    pub(super) fn of(layout: &Layout) -> Option<TableLayout> {
        Some(TableLayout { members: TableMembers::of(layout)?, owner: OwnerLayout::of(layout) })
    }
}

/// The most entries of one reverse map.
const MOST_NODES: usize = 4096;
/// How often a list is followed again from its start after it changed.
const TRIES: u32 = 4;

/// Finds the top page tables of the address spaces that may map a page.
pub(super) struct Way<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a TableLayout,
    pub(super) page: PageSize,
    /// The id of the process that must own the address space; `None` if the entries decide.
    pub(super) of: Option<u32>,
}

impl Way<'_> {
    /// Returns top page table and address of the address spaces that may map this frame at this page.
    pub(super) fn tops(&self, page: u64, frame: FrameNumber) -> Vec<(u64, u64)> {
        let mut tops = Vec::new();
        let Some(map) = self.reverse_map(frame) else {
            return tops;
        };
        let address = page.saturating_mul(self.page.bytes());
        for node in self.nodes(map) {
            let top = self.top(node, map, address);
            tops.extend(top.filter(|top| !tops.contains(top)));
        }
        tops
    }

    /// Returns the reverse map of an anonymous page's frame.
    fn reverse_map(&self, frame: FrameNumber) -> Option<u64> {
        let frame = frame.get();
        let head = self.pages.with(frame, |page| page.head(frame))?;
        let mapping = self.pages.folio(head)?.mapping;
        (mapping & 3 == 1).then(|| mapping - 1)
    }

    fn image(&self) -> &Image {
        &self.pages.image
    }

    fn follow(&self, structure: u64, member: TableMember) -> Option<u64> {
        self.image().word(structure.checked_add(self.layout.members.at(member))?)
    }

    /// Returns the nodes of the tree of a reverse map.
    fn nodes(&self, map: u64) -> Vec<u64> {
        // The pointer to the first node is the first member of a root.
        let mut left: Vec<u64> = self.follow(map, TableMember::Root).filter(|&node| node != 0).into_iter().collect();
        let mut nodes = Vec::new();
        while let Some(node) = left.pop()
            && nodes.len() < MOST_NODES
        {
            nodes.push(node);
            let children = [TableMember::Left, TableMember::Right].map(|side| self.follow(node, side));
            left.extend(children.into_iter().flatten().filter(|&child| child != 0));
        }
        nodes
    }

    /// Returns the top page table and the address space of a node, if the node belongs to this reverse map, and its
    /// mapping contains this address.
    fn top(&self, node: u64, map: u64, address: u64) -> Option<(u64, u64)> {
        let mapping = self.mapping(node, map)?;
        let range = self.follow(mapping, TableMember::Start)?..self.follow(mapping, TableMember::End)?;
        let space = self.follow(mapping, TableMember::Space)?;
        let top = self.follow(space, TableMember::Top)?;
        let is_wanted = self.of.is_none_or(|process| self.is_of(space, process));
        (range.contains(&address) && is_wanted).then_some((top, space))
    }

    /// Returns the mapping of a node, if the node belongs to this reverse map.
    fn mapping(&self, node: u64, map: u64) -> Option<u64> {
        let entry = node.checked_sub(self.layout.members.at(TableMember::Node))?;
        (self.follow(entry, TableMember::Of)? == map).then_some(())?;
        self.follow(entry, TableMember::Mapping)
    }

    /// Returns whether a process owns an address space: the owner is a thread of it, and has this address space.
    fn is_of(&self, space: u64, process: u32) -> bool {
        self.thread(space).is_some_and(|thread| self.process(thread) == Some(process))
    }

    fn of_thread(&self, structure: u64, member: OwnerMember) -> Option<u64> {
        self.image().word(structure.checked_add(self.layout.owner.as_ref()?.at(member))?)
    }

    /// Returns the thread that owns an address space, if that thread has this address space.
    fn thread(&self, space: u64) -> Option<u64> {
        let thread = self.of_thread(space, OwnerMember::Owner)?;
        (self.of_thread(thread, OwnerMember::Space)? == space).then_some(thread)
    }

    fn process(&self, thread: u64) -> Option<u32> {
        self.image().half(thread.checked_add(self.layout.owner.as_ref()?.at(OwnerMember::Process))?)
    }

    /// Finds the top page table and the address space of the process `number` by the list of processes. `frame` is of
    /// an anonymous page of any process.
    pub(super) fn listed(&self, number: u32, frame: FrameNumber) -> Option<(u64, u64)> {
        let map = self.reverse_map(frame)?;
        let spaces = self.nodes(map).into_iter().filter_map(|node| {
            let mapping = self.mapping(node, map)?;
            self.follow(mapping, TableMember::Space)
        });
        let known = spaces.filter_map(|space| self.thread(space)).next()?;
        let leader = self.of_thread(known, OwnerMember::Leader)?;
        let thread = (0..TRIES).find_map(|_| self.in_list(leader, number))?;
        let space = self.of_thread(thread, OwnerMember::Space)?;
        // The main thread may have ended before the others. Then it has no address space.
        let top = self.follow(space, TableMember::Top)?;
        self.is_of(space, number).then_some((top, space))
    }

    /// Finds the main thread of a process, in the list that contains `leader`; `None` also if the list changed during
    /// the search.
    fn in_list(&self, leader: u64, number: u32) -> Option<u64> {
        let listed = self.layout.owner.as_ref()?.at(OwnerMember::Listed);
        let first = leader.checked_add(listed)?;
        let mut node = first;
        for _ in 0..LARGEST_PID {
            let thread = node.checked_sub(listed)?;
            if self.process(thread)? == number {
                return Some(thread);
            }
            let next = self.of_thread(node, OwnerMember::Next)?;
            // A node that was removed from the list may be freed.
            if next == first || self.of_thread(next, OwnerMember::Previous)? != node {
                return None;
            }
            node = next;
        }
        None
    }
}
