//! The mapping of an address: from the address space of a process to the page cache of the mapped file.
//!
//! Since Linux 6.1 an address space has a maple tree of its mappings, before that a red-black tree. A mapping is
//! accepted if it belongs to the address space and has the ends of the region in `maps`, and if its page cache is that
//! of the file in `maps`.

use super::layout::member_list;
use super::pages::PageRecords;
use crate::kernel::Region;
use crate::kernel::btf::Layout;

member_list! {
    /// A member that describes a mapping.
    MappingMember, MappingLayout {
        Start: "vm_area_struct"."vm_start";
        End: "vm_area_struct"."vm_end";
        /// The address space of a mapping.
        Space: "vm_area_struct"."vm_mm";
        /// The open file of a mapping.
        OpenFile: "vm_area_struct"."vm_file";
        /// The page cache of an open file.
        PageCache: "file"."f_mapping";
    }
}

member_list! {
    /// A member of the tree of mappings before Linux 6.1.
    RedBlackMember, RedBlackLayout {
        Root: "mm_struct"."mm_rb.rb_node";
        Node: "vm_area_struct"."vm_rb";
        Left: "rb_node"."rb_left";
        Right: "rb_node"."rb_right";
    }
}

/// The layout of a maple tree of mappings.
#[derive(Clone, Debug)]
pub(super) struct MapleLayout {
    /// The offset of the root pointer in `mm_struct`.
    pub(super) root: u64,
    /// The kinds of nodes: leaves, and the two kinds of inner nodes.
    pub(super) kinds: [MapleKind; 3],
}

/// The layout of a kind of nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapleKind {
    /// The number of the kind, in pointers to such nodes.
    pub(super) number: u64,
    /// The offset of the pivots: the last indexes of all children but one.
    pub(super) pivots: u64,
    pub(super) pivot_count: u64,
    /// The offset of the children.
    pub(super) slots: u64,
}

/// The kind of tree in an address space.
#[derive(Clone, Debug)]
pub(super) enum TreeLayout {
    Maple(MapleLayout),
    RedBlack(RedBlackLayout),
}

/// The most levels of a tree.
const DEEPEST: u32 = 64;
/// The most children of a node.
const MOST_PIVOTS: u64 = 64;

impl MapleLayout {
    fn of(layout: &Layout) -> Option<MapleLayout> {
        let kind = |name: &str, structure: &str| {
            let pivots = layout.member(structure, "pivot")?;
            let pivot_count = pivots.bits / 64;
            Some(MapleKind {
                number: u64::try_from(layout.enumerator("maple_type", name)?).ok()?,
                pivots: pivots.byte_offset()?,
                pivot_count: Some(pivot_count).filter(|count| (1..=MOST_PIVOTS).contains(count))?,
                slots: layout.member(structure, "slot")?.byte_offset()?,
            })
        };
        Some(MapleLayout {
            root: layout.member("mm_struct", "mm_mt.ma_root")?.byte_offset()?,
            kinds: [
                kind("maple_leaf_64", "maple_range_64")?,
                kind("maple_range_64", "maple_range_64")?,
                kind("maple_arange_64", "maple_arange_64")?,
            ],
        })
    }
}

impl TreeLayout {
    /// Returns the layout from the kernel's BTF; `None` if a member is missing.
    pub(super) fn of(layout: &Layout) -> Option<TreeLayout> {
        let maple = MapleLayout::of(layout).map(TreeLayout::Maple);
        maple.or_else(|| RedBlackLayout::of(layout).map(TreeLayout::RedBlack))
    }
}

/// Finds the page cache of a mapped file.
#[derive(Clone, Copy)]
pub(super) struct Mappings<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) tree: &'a TreeLayout,
    pub(super) layout: &'a MappingLayout,
}

impl Mappings<'_> {
    /// Returns the page cache of the file that `region` of the address space `space` maps.
    pub(super) fn page_cache(&self, space: u64, region: &Region) -> Option<u64> {
        let (start, end) = (region.range.start().get(), region.range.end().get());
        let mapping = match self.tree {
            TreeLayout::Maple(layout) => self.in_maple_tree(layout, space, start),
            TreeLayout::RedBlack(layout) => self.in_red_black_tree(layout, space, start),
        }?;
        let member = |member| self.word(mapping, self.layout.at(member));
        let is_region = (member(MappingMember::Start)?, member(MappingMember::End)?) == (start, end)
            && member(MappingMember::Space)? == space;
        let open = member(MappingMember::OpenFile).filter(|&open| is_region && open != 0)?;
        let cache = self.word(open, self.layout.at(MappingMember::PageCache))?;
        let file = self.pages.file(cache)?;
        ((file.device, file.inode) == (region.device, region.inode)).then_some(cache)
    }

    fn word(&self, structure: u64, offset: u64) -> Option<u64> {
        self.pages.image.word(structure.checked_add(offset)?)
    }

    fn in_red_black_tree(&self, layout: &RedBlackLayout, space: u64, address: u64) -> Option<u64> {
        let mut node = self.word(space, layout.at(RedBlackMember::Root))?;
        for _ in 0..DEEPEST {
            let mapping = node.checked_sub(layout.at(RedBlackMember::Node))?;
            let is_left = address < self.word(mapping, self.layout.at(MappingMember::Start))?;
            if !is_left && address < self.word(mapping, self.layout.at(MappingMember::End))? {
                return Some(mapping);
            }
            let side = if is_left { RedBlackMember::Left } else { RedBlackMember::Right };
            node = self.word(node, layout.at(side))?;
        }
        None
    }

    fn in_maple_tree(&self, layout: &MapleLayout, space: u64, address: u64) -> Option<u64> {
        /// The bits of a node pointer that have the kind of the node (`MAPLE_NODE_TYPE_MASK` in
        /// include/linux/maple_tree.h).
        const KIND_SHIFT: u32 = 3;
        const KIND_MASK: u64 = 0xf;
        /// The alignment of nodes in bytes.
        const ALIGNMENT: u64 = 256;
        let [leaf, ..] = layout.kinds;
        let mut pointer = self.word(space, layout.root)?;
        // A tree of one entry has no node.
        if pointer & 3 != 2 {
            return None;
        }
        for _ in 0..DEEPEST {
            let number = pointer >> KIND_SHIFT & KIND_MASK;
            let kind = layout.kinds.iter().find(|kind| kind.number == number)?;
            let node = pointer & !(ALIGNMENT - 1);
            let mut pivots = vec![0; kind.pivot_count as usize * 8];
            self.pages.image.read(node.checked_add(kind.pivots)?, &mut pivots)?;
            // The pivot of the last used child is followed by a zero, unless the node is full.
            let is_before = |&index: &u64| {
                let pivot = self.pages.image.number(&pivots, index as usize * 8, 8).unwrap_or_default();
                pivot < address && (pivot != 0 || index == 0)
            };
            let child = (0..kind.pivot_count).take_while(is_before).count() as u64;
            pointer = self.word(node, kind.slots.checked_add(child * 8)?)?;
            if number == leaf.number {
                // A reserved entry is not a mapping.
                return Some(pointer).filter(|pointer| pointer & 3 == 0 && *pointer != 0);
            }
        }
        None
    }
}
