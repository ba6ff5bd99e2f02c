//! The closed list of what is read of the kernel's structures, with the names that they have had.

use crate::access::{Error, Result};
use crate::kernel::PageFlags;
use crate::kernel::btf::Layout;

/// Declares the members, each with the places that it has had: structure, member, and after how many records of a page
/// that structure begins.
macro_rules! members {
    ($($(#[doc = $about:literal])+ $member:ident: $($structure:literal . $name:literal $(after $pages:literal)?),+;)*) => {
        /// A member of a structure of the kernel.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Member {
            $($(#[doc = $about])+ $member,)*
        }

        impl Member {
            /// All of them.
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
    /// What it belongs to: an address with bits for its kind.
    Mapping: "page"."mapping";
    /// Its index in a file (renamed in Linux 6.16).
    Index: "page"."index", "page"."__folio_index";
    /// The way from a later page of a folio to the first one (a mask since Linux 7.1).
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

/// Declares a list of members with the places that they have had on all known kernels, and a layout of them.
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
            /// All of them, each with the structures and members that it has been.
            pub(super) const ALL: &'static [($list, &'static [(&'static str, &'static str)])] =
                &[$(($list::$member, &[$(($structure, $name)),+]),)*];
        }

        /// Where these members are, in bytes, in the order of the list.
        #[derive(Clone, Debug)]
        pub(super) struct $layout(pub(super) [u64; $list::ALL.len()]);

        impl $layout {
            /// The layout that the kernel describes; `None` if it describes another way.
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

/// Where the members are, in bytes, and the bits of flags.
#[derive(Clone, Debug)]
pub(super) struct PageLayout {
    /// The size of the record of a page.
    pub(super) page: u64,
    /// The size of the record of a section.
    pub(super) section: Option<u64>,
    /// In the order of [`Member::ALL`].
    pub(super) offsets: Vec<Option<u64>>,
    pub(super) flags: Vec<(PageFlags, u32)>,
    /// The bit on pages of a folio that is mapped both as a whole and page by page (before Linux 6.2).
    pub(super) double_map: Option<u32>,
}

/// No record of a page was ever larger, and no member that is read lies farther into its structure.
const LARGEST_PAGE: u64 = 256;
const FARTHEST: u64 = 1 << 16;

impl PageLayout {
    /// The layout that the kernel describes.
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

    /// Where a member is, in its structure; for one of a later page, from the first page of the folio.
    pub(super) fn at(&self, member: Member) -> Option<u64> {
        self.offsets.get(member as usize).copied().flatten()
    }

    /// How many records of pages the numbers of a large folio take.
    pub(super) fn folio_records(&self) -> usize {
        let members = [Member::Pins, Member::EntireMaps, Member::AllMaps, Member::Pages];
        let last = members.into_iter().filter_map(|member| self.at(member)).max().unwrap_or_default();
        (last / self.page) as usize + 1
    }

    /// The flags of a page with this word.
    pub(super) fn flags(&self, word: u64) -> PageFlags {
        let set = self.flags.iter().filter(|(_, bit)| word >> bit & 1 != 0);
        let mut flags = set.fold(PageFlags::empty(), |flags, (flag, _)| flags | *flag);
        // The bit of the swap cache has other meanings for pages of files.
        if !flags.contains(PageFlags::SWAPBACKED) {
            flags -= PageFlags::SWAPCACHE;
        }
        flags
    }

    /// All flags that [`flags`](Self::flags) knows on this kernel.
    pub(super) fn known_flags(&self) -> PageFlags {
        self.flags.iter().fold(PageFlags::empty(), |flags, (flag, _)| flags | *flag)
    }
}

fn unknown_form(what: &str) -> Error {
    Error::not_available(format!("/sys/kernel/btf/vmlinux describes {what} in a form that is unknown to pmdb"))
}
