//! A table of the facts about a page: the word of each, and how the language uses it. Parser, completion, help, `where`
//! and `by` read this table. `inspect::fact` computes the values and lists what each needs.

use super::page_flags::FLAGS;
use super::{Kind, PageFlags, State};

/// The type of a word's value, which decides how a filter uses the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Used alone: `dirty`.
    Boolean,
    /// Compared with numbers: `mapcount > 1`.
    Integer,
    /// Compared with `==` and `!=` to "text".
    Text,
    /// Compared with `==` and `!=` to some of the boolean words: `state == swapped`.
    Word,
    /// Tested for one of its members: `flags(dirty)`.
    Set,
}

/// A fact about pages: a row of the table.
#[derive(Debug)]
pub struct FactWords {
    /// The word for the fact in filters and `by`.
    pub word: &'static str,
    /// Other accepted words: its name in JSON, the title of a column that shows it, and others.
    pub accepted: &'static [&'static str],
    /// The name of its field in JSON, which is one of these words; empty if no record has one.
    pub json: &'static str,
    /// The type of its value.
    pub value_type: ValueType,
    /// Whether pages can be grouped by the fact.
    pub is_key: bool,
    /// Whether frames without a process have the fact.
    pub is_of_frames: bool,
    /// Whether changes between two samples have the fact.
    pub is_of_changes: bool,
    /// Whether values may be long, so that they are the last column of a row.
    pub is_long: bool,
    /// The data that it needs, as the help names them; empty if none.
    pub need: &'static str,
    /// The meaning of the fact.
    pub about: &'static str,
}

macro_rules! yes {
    (yes) => {
        true
    };
    (no) => {
        false
    };
}

macro_rules! long {
    (long) => {
        true
    };
}

macro_rules! page_facts {
    ($(
        $(#[doc = $about:literal])*
        $fact:ident = $word:literal, $json:literal, $type:ident, $key:ident, $frames:ident, $changes:ident, $need:literal
            $(, accepted $($accepted:literal)+)? $(, may_be $long:ident)?;
    )*) => {
        /// A fact about a page or a frame, known or unknown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum PageFact {
            $($(#[doc = $about])* $fact,)*
        }

        impl PageFact {
            /// All facts, in the order of the table.
            pub const ALL: &'static [PageFact] = &[$(PageFact::$fact),*];

            /// Returns the row of the fact.
            pub const fn row(self) -> &'static FactWords {
                match self {
                    $(PageFact::$fact => const { &FactWords {
                        word: $word,
                        accepted: &[$($($accepted),+)?],
                        json: $json,
                        value_type: ValueType::$type,
                        is_key: yes!($key),
                        is_of_frames: yes!($frames),
                        is_of_changes: yes!($changes),
                        is_long: false $(|| long!($long))?,
                        need: $need,
                        about: concat!($($about),*).trim_ascii_start(),
                    } },)*
                }
            }
        }
    };
}

page_facts! {
    //  word          JSON field      value    a key  of frames  of changes  needs
    /// The state of the page: `state == swapped`.
    State = "state", "state", Word, yes, no, yes, "";
    /// The kind of the page: `kind != file`.
    Kind = "kind", "kind", Word, yes, no, no, "";
    /// The set of page flags.
    Flags = "flags", "flags", Set, yes, yes, yes, "flags", may_be long;
    /// Written since the soft-dirty bits were cleared.
    SoftDirty = "soft_dirty", "soft_dirty", Boolean, yes, no, no, "soft-dirty";
    /// Mapped only here: bit 56 of the page map, or in huge mappings a map count of 1.
    Exclusive = "exclusive", "exclusive", Boolean, yes, no, no, "scan";
    /// Mapped by one PMD as a huge page that is not of the hugetlb pool (the kernel's THP flag, set on any large
    /// folio, is flags(thp)).
    PmdMapped = "pmd_mapped", "", Boolean, yes, no, no, "scan", accepted "thp";
    /// Mapped by one PMD or larger: THP or hugetlb.
    Huge = "huge", "huge", Boolean, yes, no, no, "scan";
    /// In a readable region.
    Readable = "readable", "", Boolean, yes, no, no, "";
    /// In a writable region.
    Writable = "writable", "", Boolean, yes, no, no, "";
    /// In an executable region.
    Executable = "executable", "", Boolean, yes, no, no, "";
    /// In a private (copy-on-write) region.
    Private = "private", "", Boolean, yes, no, no, "";
    /// In a shared region.
    Shared = "shared", "", Boolean, yes, no, no, "";
    /// The number of mappings of the frame (/proc/kpagecount).
    MapCount = "mapcount", "map_count", Integer, yes, yes, yes, "counts", accepted "map_count" "maps";
    /// The number of references to the folio of the frame: a pin of a page that is no large folio is 1024.
    RefCount = "refcount", "", Integer, yes, yes, no, "kcore";
    /// Pinned, as for a device: a large folio with pins, or 1024 references that nothing else explains.
    Pinned = "pinned", "", Boolean, yes, yes, no, "kcore";
    /// Accessed through this mapping since the kernel last cleared the bit (page-table entry).
    Accessed = "accessed", "", Boolean, yes, no, no, "kcore";
    /// Written to through this mapping since the kernel last cleared the bit (page-table entry).
    TableDirty = "pte_dirty", "", Boolean, yes, no, no, "kcore";
    /// The order of the folio, which has 2^order pages; 0 is a single page.
    Order = "order", "order", Integer, yes, yes, no, "flags";
    /// The mapping of a large folio: "aligned" (whole, at a multiple of its size), "unaligned" (whole) or "part".
    Folio = "folio", "", Text, yes, no, no, "flags";
    /// The NUMA node of the frame.
    Node = "node", "node", Integer, yes, yes, yes, "frames";
    /// The memory zone of the frame, such as "DMA32" or "Normal".
    Zone = "zone", "zone", Text, yes, yes, no, "frames";
    /// The memory cgroup that the frame is charged to, as its path or "@inode".
    Cgroup = "cgroup", "cgroup", Text, yes, yes, no, "cgroups", may_be long;
    /// The use of the page by heaps of glibc: "live", "free", "both" at once, "top" (the free end) or "none".
    Heap = "heap", "", Text, yes, no, no, "memory";
    /// The name of the region, or the part after its last slash: region ~ "libc".
    Region = "region", "region", Text, no, no, no, "";
    /// The page frame number.
    Pfn = "pfn", "pfn", Integer, no, yes, no, "frames", accepted "frame";
    /// The physical address of the page.
    Phys = "phys", "physical", Integer, no, yes, no, "frames", accepted "physical";
    /// The virtual address of the page.
    Address = "address", "address", Integer, no, no, no, "", accepted "start";
}

/// A word about pages: a fact, or whether a page has one state, kind or flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageField {
    /// A fact.
    Fact(PageFact),
    /// Whether the page is in this state.
    State(State),
    /// Whether the page is of this kind.
    Kind(Kind),
    /// Whether the frame has this flag.
    Flag(PageFlags),
}

impl PageField {
    /// Returns the fact that the word is about.
    pub const fn fact(self) -> PageFact {
        match self {
            PageField::Fact(fact) => fact,
            PageField::State(_) => PageFact::State,
            PageField::Kind(_) => PageFact::Kind,
            PageField::Flag(_) => PageFact::Flags,
        }
    }

    /// Returns the type of the word's value.
    pub const fn value_type(self) -> ValueType {
        match self {
            PageField::Fact(fact) => fact.row().value_type,
            _ => ValueType::Boolean,
        }
    }

    /// Returns the word as it is written; empty for a flag without a name.
    pub fn word(self) -> &'static str {
        match self {
            PageField::Fact(fact) => fact.row().word,
            PageField::State(state) => state.word(),
            PageField::Kind(kind) => kind.word(),
            PageField::Flag(flag) => flag.known_name().unwrap_or_default(),
        }
    }

    /// Returns whether the word is complete by itself. Other flags are written as `flags(NAME)`, and sets with a
    /// member.
    pub fn stands_alone(self) -> bool {
        match self {
            PageField::Flag(flag) => FLAG_WORDS.contains(&flag),
            other => other.value_type() != ValueType::Set,
        }
    }

    /// Returns the meaning of the word.
    pub fn about(self) -> &'static str {
        match self {
            PageField::Fact(fact) => fact.row().about,
            PageField::State(state) => super::words::Worded::about(state),
            PageField::Kind(kind) => super::words::Worded::about(kind),
            PageField::Flag(flag) => FLAGS.iter().find(|info| info.flag == flag).map_or("", |info| info.meaning),
        }
    }
}

/// The flags with a word; `flags(NAME)` tests any flag.
pub const FLAG_WORDS: &[PageFlags] = &[
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

/// A key that pages are grouped by. Each command declares the keys that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A fact about a page, or its state, kind or flag.
    Page(PageField),
    /// The region.
    Region,
    /// The file or the name that regions map.
    Mapping,
    /// The symbol in which the page begins, or the variable that points to its memory.
    Symbol,
    /// The run of physically consecutive frames: a stream, not a group.
    Run,
    /// The kind of change, of what changed.
    Change,
}

impl Key {
    /// Returns all keys that are words: those that do not come from the page first.
    pub fn all() -> impl Iterator<Item = Key> {
        let facts = PageFact::ALL.iter().filter(|fact| fact.row().is_key).map(|&fact| PageField::Fact(fact));
        let states = State::ALL.iter().map(|&state| PageField::State(state));
        let kinds = Kind::ALL.iter().map(|&kind| PageField::Kind(kind));
        let flags = FLAG_WORDS.iter().map(|&flag| PageField::Flag(flag));
        let pages = facts.chain(states).chain(kinds).chain(flags).map(Key::Page);
        [Key::Region, Key::Mapping, Key::Symbol, Key::Run, Key::Change].into_iter().chain(pages)
    }

    /// Returns the key as it is written; empty for a flag without a name.
    pub fn word(self) -> &'static str {
        match self {
            Key::Page(field) => field.word(),
            Key::Region => "region",
            Key::Mapping => "mapping",
            Key::Symbol => "symbol",
            Key::Run => "run",
            Key::Change => "change",
        }
    }

    /// Returns whether the names of its groups may be long.
    pub const fn is_long(self) -> bool {
        match self {
            Key::Page(PageField::Fact(fact)) => fact.row().is_long,
            Key::Region | Key::Symbol => true,
            Key::Page(_) | Key::Mapping | Key::Run | Key::Change => false,
        }
    }

    /// Returns the type of the values by which it groups.
    pub const fn value_type(self) -> ValueType {
        match self {
            Key::Page(field) => field.value_type(),
            _ => ValueType::Word,
        }
    }

    /// Returns what it groups by, for the help.
    pub fn about(self) -> &'static str {
        match self {
            Key::Page(field) => field.about(),
            Key::Region => "The region.",
            Key::Mapping => "The file or the name that regions map.",
            Key::Symbol => {
                "The symbol in which the page begins, or `*NAME` for anonymous memory that the variable NAME points to; \
                 `*NAME[..]` if more than 4 of its words point to some."
            }
            Key::Run => "The run of physically consecutive frames.",
            Key::Change => "The kind of change.",
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Page(PageField::Flag(flag)) if !FLAG_WORDS.contains(flag) => {
                write!(f, "flags({})", flag.names().first().map_or("", |name| name))
            }
            key => f.write_str(key.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_of_one_fact() {
        let mut words = std::collections::BTreeSet::new();
        for fact in PageFact::ALL {
            let row = fact.row();
            for word in [row.word].iter().chain(row.accepted) {
                assert!(words.insert(*word), "{word}");
            }
            assert!(row.json.is_empty() || row.json == row.word || row.accepted.contains(&row.json), "{}", row.word);
            assert!(!row.about.is_empty(), "{}", row.word);
        }
        assert!(FLAG_WORDS.iter().all(|flag| flag.known_name().is_some()));
    }

    #[test]
    fn a_flag_without_a_word_is_written_with_its_name() {
        assert_eq!(Key::Page(PageField::Flag(PageFlags::THP)).to_string(), "flags(thp)");
        assert_eq!(Key::Page(PageField::Flag(PageFlags::DIRTY)).to_string(), "dirty");
        assert_eq!(Key::Page(PageField::Flag(PageFlags::from_bits_retain(1 << 60))).to_string(), "flags(bit60)");
    }
}
