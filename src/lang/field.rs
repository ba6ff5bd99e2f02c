//! The fields that filters know: one table for pages, one for regions. Parser, evaluator, completion and help read them.

use std::fmt::Debug;

/// What a field holds, and so what may be done with it in a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType<F: 'static> {
    /// Stands alone: `dirty`.
    Boolean,
    /// Is compared with numbers: `mapcount > 1`.
    Integer,
    /// Is compared with `==` and `!=` to "text".
    Text,
    /// Is compared with `==` and `!=` to one of these boolean fields: `state == swapped`.
    Word(&'static [F]),
}

/// A set of fields that filters can be made of: [`PageField`] or [`RegionField`].
pub trait FilterField: Copy + Clone + Debug + PartialEq + Eq + 'static {
    /// Every field, in the order of the help.
    const ALL: &'static [Self];
    /// Whether `flags(NAME)` makes sense.
    const HAS_FLAGS: bool;
    /// As it is written.
    fn name(self) -> &'static str;
    /// What it holds.
    fn value_type(self) -> ValueType<Self>;
    /// One line for the help.
    fn doc(self) -> &'static str;
    /// The field with that name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }
}

macro_rules! fields {
    ($(#[$about:meta])* $set:ident, flags: $flags:literal, { $($variant:ident $name:literal $kind:expr, $doc:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $set { $(#[doc = $doc] $variant,)* }

        impl FilterField for $set {
            const ALL: &'static [Self] = &[$($set::$variant,)*];
            const HAS_FLAGS: bool = $flags;
            fn name(self) -> &'static str {
                match self { $($set::$variant => $name,)* }
            }
            fn value_type(self) -> ValueType<Self> {
                use ValueType::*;
                match self { $($set::$variant => $kind,)* }
            }
            fn doc(self) -> &'static str {
                match self { $($set::$variant => $doc,)* }
            }
        }

        impl $set {
            /// Whether it is a number.
            pub fn is_integer(self) -> bool {
                self.value_type() == ValueType::Integer
            }
        }
    };
}

fields! {
    /// What a filter can ask of a page.
    PageField, flags: true, {
        State "state" Word(STATES), "the state of the page: present, swapped, guard, …";
        Kind "kind" Word(KINDS), "what the page is or would be: anonymous, file, shmem, …";
        Present "present" Boolean, "a page frame is mapped";
        Swapped "swapped" Boolean, "the page is in swap";
        Guard "guard" Boolean, "a guard page (MADV_GUARD_INSTALL): any access kills";
        Poisoned "poisoned" Boolean, "poisoned by userfaultfd (UFFDIO_POISON)";
        UserfaultWriteProtected "uffd_wp" Boolean, "nothing there but a write-protection marker of userfaultfd (the state)";
        Migrating "migrating" Boolean, "on its way to another frame";
        HardwarePoisoned "hwpoison" Boolean, "the memory behind the page is broken";
        Device "device" Boolean, "in the memory of a device (private or exclusive)";
        Untouched "untouched" Boolean, "in a region, with nothing there yet";
        PfnMapped "pfn_mapped" Boolean, "mapped by frame number (VM_PFNMAP): the kernel hides it";
        Outside "outside" Boolean, "outside of what the page map covers";
        Unmapped "unmapped" Boolean, "in no region";
        Anonymous "anonymous" Boolean, "memory of the process itself, with no file behind";
        File "file" Boolean, "a page of a file";
        Shmem "shmem" Boolean, "shared memory: tmpfs, memfd, SysV, shared anonymous";
        PrivateCopy "private_copy" Boolean, "the process's own copy of a file's page";
        Zero "zero" Boolean, "the shared page of zeros";
        HugeZero "huge_zero" Boolean, "the shared huge page of zeros";
        Ksm "ksm" Boolean, "merged with equal pages by KSM";
        Hugetlb "hugetlb" Boolean, "of the hugetlb pool";
        Vdso "vdso" Boolean, "mapped by the kernel itself: vdso, vvar";
        DeviceMemory "device_memory" Boolean, "memory of a device, not RAM";
        Cached "cached" Boolean, "untouched, and the file's page is in the page cache";
        NotCached "not_cached" Boolean, "untouched, and the file's page is not in the page cache";
        PastEnd "past_end" Boolean, "untouched, and past the end of the file: any access is SIGBUS";
        MaybeSwapped "maybe_swapped" Boolean, "untouched shared memory with contents that are not in memory: swapped out";
        SoftDirty "soft_dirty" Boolean, "written since the soft-dirty bits were cleared";
        Exclusive "exclusive" Boolean, "mapped only here (page-map bit 56)";
        PmdMapped "pmd_mapped" Boolean, "mapped by one PMD as a huge page (the kernel's THP flag, which any large folio has, is flags(thp))";
        Thp "thp" Boolean, "the same as pmd_mapped";
        Huge "huge" Boolean, "mapped by one PMD or larger: THP or hugetlb";
        Dirty "dirty" Boolean, "the frame's DIRTY flag";
        Referenced "referenced" Boolean, "the frame's REFERENCED flag";
        Active "active" Boolean, "the frame's ACTIVE flag";
        Locked "locked" Boolean, "the frame's LOCKED flag";
        Writeback "writeback" Boolean, "the frame's WRITEBACK flag";
        Unevictable "unevictable" Boolean, "the frame's UNEVICTABLE flag";
        Mlocked "mlocked" Boolean, "the frame's MLOCKED flag";
        Swapbacked "swapbacked" Boolean, "the frame's SWAPBACKED flag";
        Idle "idle" Boolean, "the frame's IDLE flag";
        Readable "readable" Boolean, "in a region that may be read";
        Writable "writable" Boolean, "in a region that may be written";
        Executable "executable" Boolean, "in a region that may be executed";
        Private "private" Boolean, "in a private (copy-on-write) region";
        Shared "shared" Boolean, "in a shared region";
        MapCount "mapcount" Integer, "how often the frame is mapped (/proc/kpagecount)";
        Order "order" Integer, "the order of the folio: it has 2^order pages; 0 is a page by itself";
        Node "node" Integer, "the NUMA node of the frame";
        Zone "zone" Text, "the memory zone of the frame: \"DMA32\", \"Normal\"";
        Cgroup "cgroup" Text, "the memory cgroup that pays for the frame: its path, or \"@inode\"";
        Pfn "pfn" Integer, "the page frame number";
        Phys "phys" Integer, "the physical address of the page";
        Address "address" Integer, "the virtual address of the page";
    }
}

const STATES: &[PageField] = &[
    PageField::Present,
    PageField::Swapped,
    PageField::Guard,
    PageField::Poisoned,
    PageField::UserfaultWriteProtected,
    PageField::Migrating,
    PageField::HardwarePoisoned,
    PageField::Device,
    PageField::Untouched,
    PageField::PfnMapped,
    PageField::Outside,
    PageField::Unmapped,
];

const KINDS: &[PageField] = &[
    PageField::Anonymous,
    PageField::File,
    PageField::Shmem,
    PageField::PrivateCopy,
    PageField::Zero,
    PageField::HugeZero,
    PageField::Ksm,
    PageField::Hugetlb,
    PageField::Vdso,
    PageField::DeviceMemory,
    PageField::Cached,
    PageField::NotCached,
    PageField::PastEnd,
    PageField::MaybeSwapped,
];

fields! {
    /// What a filter can ask of a region.
    RegionField, flags: false, {
        Size "size" Integer, "its length in bytes";
        Rss "rss" Integer, "resident bytes";
        Swapped "swapped" Integer, "bytes in swap";
        Start "start" Integer, "its first address";
        End "end" Integer, "the address after it";
        Offset "offset" Integer, "where in the file it begins";
        Inode "inode" Integer, "the inode of its file, 0 if there is none";
        Name "name" Text, "the name in maps; the part after the last / is enough";
        Perms "perms" Text, "the permissions as in maps: rw-p";
        Readable "readable" Boolean, "may be read";
        Writable "writable" Boolean, "may be written";
        Executable "executable" Boolean, "may be executed";
        Private "private" Boolean, "private: copy-on-write";
        Shared "shared" Boolean, "shared";
        Anonymous "anonymous" Boolean, "memory of the process itself, with no file behind";
        File "file" Boolean, "has a file behind";
        Deleted "deleted" Boolean, "its file was deleted";
    }
}
