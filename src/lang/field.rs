//! The fields of filters: those of pages and those of regions. Parser, evaluator and completion use them. Each state,
//! kind and flag is a field under its own name.

use crate::kernel::{Kind, PageFlags, State};
use std::fmt::Debug;

/// The type of a field: it decides how a filter uses the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Stands alone: `dirty`.
    Boolean,
    /// Is compared with numbers: `mapcount > 1`.
    Integer,
    /// Is compared with `==` and `!=` to "text".
    Text,
    /// Is compared with `==` and `!=` to some of the boolean fields: `state == swapped`.
    Word,
}

/// A set of fields that filters can be made of: [`PageField`] or [`RegionField`].
pub trait FilterField: Copy + Debug + PartialEq + Eq + 'static {
    /// What has these fields.
    const SUBJECT: FilterSubject;
    /// Every field.
    fn all() -> impl Iterator<Item = Self>;
    /// As it is written.
    fn name(self) -> &'static str;
    /// What it holds.
    fn value_type(self) -> ValueType;
    /// Whether this field can be compared with the boolean field `word`: `state == swapped`.
    fn takes(self, word: Self) -> bool;
    /// The field with that name. A boolean field and a number may share one.
    fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|field| field.name() == name)
    }
    /// The number of that name, or the field that is none: `shared > 1M` beside `shared`.
    fn with_name(name: &str, is_number: bool) -> Option<Self> {
        Self::all().find(|field| field.name() == name && field.is_integer() == is_number)
    }
    /// Whether it is a number.
    fn is_integer(self) -> bool {
        self.value_type() == ValueType::Integer
    }
}

/// What a filter is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterSubject {
    /// A page, or a page frame.
    Page,
    /// A region.
    Region,
}

impl FilterSubject {
    /// Whether a field of this name is a condition by itself.
    pub fn has_condition(self, name: &str) -> bool {
        self.fields().contains(&(name, ValueType::Boolean))
    }

    /// The names of its fields, with what each holds. A condition and a number may share one.
    pub(super) fn fields(self) -> Vec<(&'static str, ValueType)> {
        fn of<F: FilterField>() -> Vec<(&'static str, ValueType)> {
            F::all().map(|field| (field.name(), field.value_type())).collect()
        }
        match self {
            FilterSubject::Page => of::<PageField>(),
            FilterSubject::Region => of::<RegionField>(),
        }
    }

    /// The conditions that a field can be compared with: those of `state == swapped`.
    pub(super) fn words(self, name: &str) -> Vec<&'static str> {
        let compared = PageField::from_name(name).filter(|_| self == FilterSubject::Page);
        let is_taken = |word: &PageField| compared.is_some_and(|field| field.takes(*word));
        PageField::all().filter(is_taken).map(PageField::name).collect()
    }
}

/// The hint for a condition on pages, or a flag of frames, where a value or a range is wanted.
pub fn as_value(word: &str) -> Option<String> {
    if FilterSubject::Page.has_condition(word) {
        return Some(format!(
            "`{word}` is a condition on pages: `walk all where {word}` lists them, `print count(all where {word})` counts them"
        ));
    }
    match (PageField::from_name(word), PageFlags::from_flag_name(word)) {
        (Some(_), _) => Some(format!("`{word}` is a field of pages: `help {word}` explains it")),
        (None, Some(_)) => {
            Some(format!("`{word}` is a flag of frames: `walk all where flags({word})` lists their pages"))
        }
        (None, None) => None,
    }
}

macro_rules! fields {
    (
        $(#[$about:meta])*
        $set:ident of $subject:ident, {
            $($(#[$of_group:meta])* $group:ident($one:ty) $(of $word:ident)? = $name_of:path, $all:expr;)*
            --
            $($(#[doc = $doc:literal])* $variant:ident $name:literal $kind:ident;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $set {
            $($(#[$of_group])* $group($one),)*
            $($(#[doc = $doc])* $variant,)*
        }

        impl $set {
            /// Its meaning, for the help. Empty for a state, kind or flag: other tables explain those.
            pub fn doc(self) -> &'static str {
                match self {
                    $($set::$group(_) => "",)*
                    $($set::$variant => concat!($($doc),*).trim_ascii_start(),)*
                }
            }
        }

        impl FilterField for $set {
            const SUBJECT: FilterSubject = FilterSubject::$subject;

            fn all() -> impl Iterator<Item = Self> {
                let all = [$($set::$variant),*].into_iter();
                $(let all = all.chain($all.iter().copied().map($set::$group));)*
                all
            }

            fn name(self) -> &'static str {
                match self {
                    $($set::$group(one) => $name_of(one),)*
                    $($set::$variant => $name,)*
                }
            }

            fn value_type(self) -> ValueType {
                match self {
                    $($set::$group(_) => ValueType::Boolean,)*
                    $($set::$variant => ValueType::$kind,)*
                }
            }

            fn takes(self, word: Self) -> bool {
                match (self, word) {
                    $($(($set::$word, $set::$group(_)) => true,)?)*
                    _ => false,
                }
            }
        }
    };
}

fields! {
    /// What a filter can ask of a page.
    PageField of Page, {
        /// Whether the page is in this state.
        State(State) of AnyState = State::word, State::ALL;
        /// Whether the page is of this kind.
        Kind(Kind) of AnyKind = Kind::word, Kind::ALL;
        /// Whether the frame has this flag.
        Flag(PageFlags) = flag_name, FLAGS;
        --
        /// The state of the page: `state == swapped`.
        AnyState "state" Word;
        /// The kind of the page: `kind != file`.
        AnyKind "kind" Word;
        /// Written since the soft-dirty bits were cleared.
        SoftDirty "soft_dirty" Boolean;
        /// Mapped only here (page-map bit 56).
        Exclusive "exclusive" Boolean;
        /// Mapped by one PMD as a huge page that is not of the hugetlb pool (the kernel's THP flag, set on any large
        /// folio, is flags(thp)).
        PmdMapped "pmd_mapped" Boolean;
        /// The same as pmd_mapped.
        Thp "thp" Boolean;
        /// Mapped by one PMD or larger: THP or hugetlb.
        Huge "huge" Boolean;
        /// In a readable region.
        Readable "readable" Boolean;
        /// In a writable region.
        Writable "writable" Boolean;
        /// In an executable region.
        Executable "executable" Boolean;
        /// In a private (copy-on-write) region.
        Private "private" Boolean;
        /// In a shared region.
        Shared "shared" Boolean;
        /// The number of mappings of the frame (/proc/kpagecount).
        MapCount "mapcount" Integer;
        /// The number of references to the folio of the frame: a pin of a page that is no large folio is 1024.
        RefCount "refcount" Integer;
        /// Pinned, as for a device: a large folio with pins, or 1024 references that nothing else explains.
        Pinned "pinned" Boolean;
        /// Accessed through this mapping since the kernel last cleared the bit (page-table entry).
        Accessed "accessed" Boolean;
        /// Written to through this mapping since the kernel last cleared the bit (page-table entry).
        TableDirty "pte_dirty" Boolean;
        /// The order of the folio, which has 2^order pages; 0 is a single page.
        Order "order" Integer;
        /// The NUMA node of the frame.
        Node "node" Integer;
        /// The memory zone of the frame, such as \"DMA32\" or \"Normal\".
        Zone "zone" Text;
        /// The memory cgroup that the frame is charged to, as its path or \"@inode\".
        Cgroup "cgroup" Text;
        /// The page frame number.
        Pfn "pfn" Integer;
        /// The physical address of the page.
        Phys "phys" Integer;
        /// The virtual address of the page.
        Address "address" Integer;
    }
}

impl PageField {
    /// The field of another name: a heading of a table of pages, or a word for huge pages.
    pub fn from_other_name(name: &str) -> Option<Self> {
        Some(match name {
            "maps" => Self::MapCount,
            "frame" => Self::Pfn,
            "physical" => Self::Phys,
            "start" => Self::Address,
            "huge" | "thp" => Self::PmdMapped,
            _ => return None,
        })
    }
}

/// The flags that are fields of their own; `flags(NAME)` tests any flag.
const FLAGS: &[PageFlags] = &[
    PageFlags::DIRTY,
    PageFlags::REFERENCED,
    PageFlags::ACTIVE,
    PageFlags::LOCKED,
    PageFlags::WRITEBACK,
    PageFlags::UNEVICTABLE,
    PageFlags::MLOCKED,
    PageFlags::SWAPBACKED,
    PageFlags::IDLE,
];

fn flag_name(flag: PageFlags) -> &'static str {
    flag.known_name().unwrap_or_default()
}

fields! {
    /// What a filter can ask of a region.
    RegionField of Region, {
        --
        /// Length in bytes.
        Size "size" Integer;
        /// Resident bytes, without pages of zeros and the hugetlb pool.
        Rss "rss" Integer;
        /// Resident bytes.
        Present "present" Integer;
        /// Proportional share of `rss` in bytes: each page divided by the number of its mappings.
        Pss "pss" Integer;
        /// Bytes in swap.
        Swapped "swapped" Integer;
        /// Resident bytes that are also mapped elsewhere: shared > 1M.
        SharedBytes "shared" Integer;
        /// Resident bytes that are mapped only here: private > 1M.
        PrivateBytes "private" Integer;
        /// Bytes mapped as huge pages.
        Huge "huge" Integer;
        /// First address.
        Start "start" Integer;
        /// Address after the last one.
        End "end" Integer;
        /// Offset in its file.
        Offset "offset" Integer;
        /// Inode of its file, 0 if there is none.
        Inode "inode" Integer;
        /// Name as in maps; the part after the last / is enough.
        Name "name" Text;
        /// Permissions as in maps: rw-p.
        Perms "perms" Text;
        /// Mapped readable.
        Readable "readable" Boolean;
        /// Mapped writable.
        Writable "writable" Boolean;
        /// Mapped executable.
        Executable "executable" Boolean;
        /// Mapped private (copy-on-write).
        Private "private" Boolean;
        /// Mapped shared.
        Shared "shared" Boolean;
        /// Not backed by a file.
        Anonymous "anonymous" Boolean;
        /// Backed by a file.
        File "file" Boolean;
        /// Backed by a file that was deleted.
        Deleted "deleted" Boolean;
    }
}
