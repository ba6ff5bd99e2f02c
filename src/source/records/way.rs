//! The way from a page of a process to page tables that may be its own: by the reverse map of the page, which leads to
//! the mappings that have it, and their address spaces.

use super::image::Image;
use super::layout::member_list;
use super::pages::PageRecords;
use crate::kernel::btf::Layout;
use crate::kernel::{FrameNumber, PageSize};

member_list! {
    /// A member on the way from a page to the tables.
    TableMember, TableMembers {
        /// The tree of a reverse map.
        Root: "anon_vma"."rb_root";
        /// Where a node of it is in its entry.
        Node: "anon_vma_chain"."rb";
        Left: "rb_node"."rb_left";
        Right: "rb_node"."rb_right";
        /// The reverse map that an entry is of.
        Of: "anon_vma_chain"."anon_vma";
        /// The mapping of an entry.
        Mapping: "anon_vma_chain"."vma";
        Start: "vm_area_struct"."vm_start";
        End: "vm_area_struct"."vm_end";
        /// The address space of a mapping.
        Space: "vm_area_struct"."vm_mm";
        /// The first table of an address space.
        Top: "mm_struct"."pgd";
    }
}

member_list! {
    /// A member on the way from an address space to the process whose it is, and back.
    OwnerMember, OwnerLayout {
        /// A thread of that process.
        Owner: "mm_struct"."owner";
        /// The address space of a thread.
        Space: "task_struct"."mm";
        /// The number of its process, in the first pid namespace.
        Process: "task_struct"."tgid";
    }
}

/// Where the members of the way are.
#[derive(Clone, Debug)]
pub(super) struct TableLayout {
    pub(super) members: TableMembers,
    /// `None` where an address space has no owner (without CONFIG_MEMCG).
    pub(super) owner: Option<OwnerLayout>,
}

impl TableLayout {
    /// The layout that the kernel describes; `None` if it describes another way.
    pub(super) fn of(layout: &Layout) -> Option<TableLayout> {
        Some(TableLayout { members: TableMembers::of(layout)?, owner: OwnerLayout::of(layout) })
    }
}

/// The most entries of one reverse map.
const MOST_NODES: usize = 4096;

/// From a page to the first tables of the address spaces that may map it.
pub(super) struct Way<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a TableLayout,
    pub(super) page: PageSize,
    /// The process whose address space it has to be, by its number; `None` if the entries tell.
    pub(super) of: Option<u32>,
}

impl Way<'_> {
    /// First tables of the address spaces that may map this frame at this page.
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

    /// The reverse map of the frame of an anonymous page.
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

    /// The nodes of the tree of a reverse map.
    fn nodes(&self, map: u64) -> Vec<u64> {
        // The pointer to its first node is the first member of a root.
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

    /// The first table of the address space of a node, if the node is of this reverse map and its mapping has this
    /// address.
    fn top(&self, node: u64, map: u64, address: u64) -> Option<(u64, u64)> {
        let entry = node.checked_sub(self.layout.members.at(TableMember::Node))?;
        if self.follow(entry, TableMember::Of)? != map {
            return None;
        }
        let mapping = self.follow(entry, TableMember::Mapping)?;
        let range = self.follow(mapping, TableMember::Start)?..self.follow(mapping, TableMember::End)?;
        let space = self.follow(mapping, TableMember::Space)?;
        let top = self.follow(space, TableMember::Top)?;
        (range.contains(&address) && self.is_wanted(space)).then_some((top, space))
    }

    /// Whether an address space may be that of the process: it names a thread of it, which has this address space.
    fn is_wanted(&self, space: u64) -> bool {
        let Some(process) = self.of else {
            return true;
        };
        let is_of = |layout: &OwnerLayout| {
            let owner = self.image().word(space.checked_add(layout.at(OwnerMember::Owner))?)?;
            let back = self.image().word(owner.checked_add(layout.at(OwnerMember::Space))?)?;
            let number = self.image().half(owner.checked_add(layout.at(OwnerMember::Process))?)?;
            Some(back == space && number == process)
        };
        self.layout.owner.as_ref().and_then(is_of) == Some(true)
    }
}
