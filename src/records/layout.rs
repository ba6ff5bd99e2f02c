//! The closed list of the members of kernel structures that are read, with their names in all known kernels.

use crate::access::{Error, Result};
use crate::kernel::PageFlags;
use crate::kernel::btf::Layout;

/// Declares the members, each with its places in known kernels: structure, member, and the number of page records
/// before that structure.
macro_rules! members {
    ($($(#[doc = $about:literal])+ $member:ident: $($structure:literal . $name:literal $(after $pages:literal)?),+;)*) => {
        /// A member of a kernel structure.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Member {
            $($(#[doc = $about])+ $member,)*
        }

        impl Member {
            /// All members.
            pub(super) const ALL: &'static [Member] = &[$(Member::$member,)*];

            fn places(self) -> &'static [(&'static str, &'static str, u64)] {
                match self {
                    $(Member::$member => &[$(($structure, $name, 0 $(+ $pages)?)),+],)*
                }
            }
        }
    };
}

members! {
    /// Flags of a page.
    Flags: "page"."flags";
    /// References to a page, or to the folio that begins with it.
    References: "page"."_refcount";
    /// How often page tables map this page alone, counted from -1.
    Maps: "page"."_mapcount";
    /// The owner of a page: an address with bits for its kind.
    Mapping: "page"."mapping";
    /// The index of a page in a file (renamed in Linux 6.16).
    Index: "page"."index", "page"."__folio_index";
    /// The link from a tail page of a folio to the head (a mask since Linux 7.1).
    Compound: "page"."compound_head", "page"."compound_info";
    /// Pins of a large folio.
    Pins: "folio"."_pincount", "page"."hpage_pinned_refcount" after 2;
    /// How often page tables map a folio as a whole, counted from -1.
    EntireMaps: "folio"."_entire_mapcount", "page"."compound_mapcount" after 1;
    /// All mappings of a large folio, counted from -1 (Linux 6.10).
    AllMaps: "folio"."_large_mapcount";
    /// Pages of a large folio.
    Pages: "folio"."_nr_pages", "folio"."_folio_nr_pages", "page"."compound_nr" after 1;
    /// The file of a page cache.
    Host: "address_space"."host";
    /// The inode number of a file.
    InodeNumber: "inode"."i_ino";
    /// The filesystem of a file.
    InodeFilesystem: "inode"."i_sb";
    /// The page cache of a file.
    InodeMapping: "inode"."i_mapping";
    /// The device of a filesystem.
    FilesystemDevice: "super_block"."s_dev";
    /// The records of the pages of a section of memory.
    SectionMap: "mem_section"."section_mem_map";
}

/// Declares a list of members with their places in all known kernels, and the type of their layout.
macro_rules! member_list {
    ($(#[doc = $about:literal])+ $list:ident, $layout:ident {
        $($(#[doc = $of_member:literal])* $member:ident: $($structure:literal . $name:literal),+;)*
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum $list {
            $($(#[doc = $of_member])* $member,)*
        }

        impl $list {
            /// All members, each with the structures and members that it was in known kernels.
            pub(super) const ALL: &'static [($list, &'static [(&'static str, &'static str)])] =
                &[$(($list::$member, &[$(($structure, $name)),+]),)*];
        }

        /// The offsets of these members in bytes, in the order of the list.
        #[derive(Clone, Debug)]
        pub(super) struct $layout(pub(super) [u64; $list::ALL.len()]);

        impl $layout {
            /// Returns the layout from the kernel's BTF; `None` if a member is missing.
            pub(super) fn of(layout: &$crate::kernel::btf::Layout) -> Option<$layout> {
                let mut offsets = [0; $list::ALL.len()];
                for (offset, (_, places)) in offsets.iter_mut().zip($list::ALL) {
                    let mut places = places.iter().filter_map(|(structure, name)| layout.member(structure, name));
                    *offset = places.next()?.byte_offset()?;
                }
                Some($layout(offsets))
            }

            pub(super) fn at(&self, member: $list) -> u64 {
                self.0.get(member as usize).copied().unwrap_or_default()
            }
        }
    };
}
pub(super) use member_list;

/// The flags that `/proc/kpageflags` copies from a page, with the kernel's names.
const FLAGS: [(PageFlags, &str); 17] = [
    (PageFlags::LOCKED, "PG_locked"),
    (PageFlags::REFERENCED, "PG_referenced"),
    (PageFlags::UPTODATE, "PG_uptodate"),
    (PageFlags::DIRTY, "PG_dirty"),
    (PageFlags::LRU, "PG_lru"),
    (PageFlags::ACTIVE, "PG_active"),
    (PageFlags::SLAB, "PG_slab"),
    (PageFlags::WRITEBACK, "PG_writeback"),
    (PageFlags::RECLAIM, "PG_reclaim"),
    (PageFlags::SWAPCACHE, "PG_swapcache"),
    (PageFlags::SWAPBACKED, "PG_swapbacked"),
    (PageFlags::COMPOUND_HEAD, "PG_head"),
    (PageFlags::UNEVICTABLE, "PG_unevictable"),
    (PageFlags::MLOCKED, "PG_mlocked"),
    (PageFlags::RESERVED, "PG_reserved"),
    (PageFlags::PRIVATE, "PG_private"),
    (PageFlags::PRIVATE_2, "PG_private_2"),
];

/// The offsets of the members in bytes, and the bits of flags.
#[derive(Clone, Debug)]
pub(super) struct PageLayout {
    /// The size of `struct page` in bytes.
    pub(super) page: u64,
    /// The size of `struct mem_section` in bytes.
    pub(super) section: Option<u64>,
    /// The offsets, in the order of [`Member::ALL`].
    pub(super) offsets: Vec<Option<u64>>,
    pub(super) flags: Vec<(PageFlags, u32)>,
    /// The bit on pages of a folio that is mapped both as a whole and page by page (before Linux 6.2).
    pub(super) double_map: Option<u32>,
}

/// The largest possible `struct page`, and the largest offset of a member that is read.
const LARGEST_PAGE: u64 = 256;
const FARTHEST: u64 = 1 << 16;

impl PageLayout {
    /// Returns the layout from the kernel's BTF.
    pub(super) fn of(layout: &Layout) -> Result<PageLayout> {
        let page = layout.size_of("page").filter(|&size| (32..=LARGEST_PAGE).contains(&size));
        let page = page.ok_or_else(|| unknown_form("struct page"))?;
        let offset = |member: &Member| {
            member.places().iter().find_map(|&(structure, name, pages)| {
                let offset = layout.member(structure, name)?.byte_offset()? + pages * page;
                Some(offset).filter(|&offset| offset < FARTHEST)
            })
        };
        let bit = |name: &str| {
            let bit = layout.enumerator("pageflags", name)?;
            u32::try_from(bit).ok().filter(|&bit| bit < 64)
        };
        let made = PageLayout {
            page,
            section: layout.size_of("mem_section").filter(|&size| size > 0),
            offsets: Member::ALL.iter().map(offset).collect(),
            flags: FLAGS.iter().filter_map(|&(flag, name)| Some((flag, bit(name)?))).collect(),
            double_map: bit("PG_double_map"),
        };
        for member in [Member::Flags, Member::References, Member::Maps, Member::Mapping, Member::Compound] {
            let fits = made.at(member).is_some_and(|offset| offset + 8 <= page);
            fits.then_some(()).ok_or_else(|| unknown_form("a member of struct page"))?;
        }
        Ok(made)
    }

    /// Returns the offset of a member in its structure. For a member of a later page, it is from the first page of the
    /// folio.
    pub(super) fn at(&self, member: Member) -> Option<u64> {
        self.offsets.get(member as usize).copied().flatten()
    }

    /// Returns the number of page records that contain the counts of a large folio.
    pub(super) fn folio_records(&self) -> usize {
        let members = [Member::Pins, Member::EntireMaps, Member::AllMaps, Member::Pages];
        let last = members.into_iter().filter_map(|member| self.at(member)).max().unwrap_or_default();
        (last / self.page) as usize + 1
    }

    /// Decodes the flags of a page from this word.
    pub(super) fn flags(&self, word: u64) -> PageFlags {
        let set = self.flags.iter().filter(|(_, bit)| word >> bit & 1 != 0);
        let mut flags = set.fold(PageFlags::empty(), |flags, (flag, _)| flags | *flag);
        // For pages of files the bit of the swap cache has other meanings.
        if !flags.contains(PageFlags::SWAPBACKED) {
            flags -= PageFlags::SWAPCACHE;
        }
        flags
    }

    /// Returns the flags that [`flags`](Self::flags) can decode on this kernel.
    pub(super) fn known_flags(&self) -> PageFlags {
        self.flags.iter().fold(PageFlags::empty(), |flags, (flag, _)| flags | *flag)
    }
}

fn unknown_form(what: &str) -> Error {
    Error::not_available(format!("/sys/kernel/btf/vmlinux describes {what} in a form that is unknown to pmdb"))
}
