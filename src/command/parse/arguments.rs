//! The arguments of commands that have several, and the words among them.

use crate::kernel::words::worded;
use crate::lang::{Count, Cut, Expression, Filter, Layout, PageField, Range, RegionField, Spanned, Time};

/// `ps [TEXT] [by KEY] [limit N|top N]`: the processes whose name contains the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Ps {
    /// What the name must contain, or a variable that holds it.
    pub filter: Option<Spanned<String>>,
    /// In which order; by number if absent.
    pub by: Option<ProcessOrder>,
    /// Which of the rows; all if absent.
    pub cut: Option<Cut>,
}

worded! {
    /// The order of the rows of `ps`; of amounts the largest is first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProcessOrder, word {
        /// Resident bytes.
        Rss = "rss",
        /// The proportional share.
        Pss = "pss",
        /// Resident bytes that nobody else maps.
        Uss = "uss",
        /// Bytes in swap.
        Swapped = "swapped",
        /// Bytes mapped as huge pages.
        Huge = "huge",
        /// The same as `rss`.
        Resident = "resident",
        /// By process id.
        Pid = "pid",
        /// By user id.
        User = "user",
        /// By the letter of the state.
        State = "state",
        /// By name.
        Name = "name",
        /// By command line.
        Command = "command",
    }
}

/// `regions [TEXT] [where FILTER] [by KEY] [limit N|top N] [full]`
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// What the name must contain, or a variable that holds it.
    pub name: Option<Spanned<String>>,
    /// Which regions; all if absent.
    pub filter: Option<Spanned<Filter<RegionField>>>,
    /// In which order; by address if absent.
    pub by: Option<RegionOrder>,
    /// Which of the rows; all if absent.
    pub cut: Option<Cut>,
    /// Whether to add what only `smaps` knows.
    pub full: bool,
}

worded! {
    /// The order of the rows of `regions`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RegionOrder, word {
        /// Largest first.
        Size = "size",
        /// Most resident first.
        Rss = "rss",
        /// By the name of the mapping.
        Name = "name",
        /// Largest proportional share first.
        Pss = "pss",
        /// Most in swap first.
        Swapped = "swapped",
        /// Most mapped as huge pages first.
        Huge = "huge",
        /// Most present first, the hugetlb pool included.
        Present = "present",
        /// Most bytes that are also mapped elsewhere first.
        Shared = "shared",
        /// Most bytes that are mapped only here first.
        Private = "private",
        /// By first address.
        Start = "start",
        /// By the address after the last.
        End = "end",
        /// By permissions, as text.
        Perms = "perms",
    }
}

/// `walk RANGE [where FILTER] [by KEY[, KEY]] [limit N|top N]`
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// The pages, or with `pfn:A..pfn:B` the frames.
    pub range: Spanned<Range>,
    /// Which of them; all if absent.
    pub filter: Option<Spanned<Filter<PageField>>>,
    /// Group by these, one or two; rows of neighbours if there are none.
    pub by: Vec<GroupKey>,
    /// Which of the rows; all if absent.
    pub cut: Option<Cut>,
}

worded! {
    /// What `walk … by KEY` groups pages by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GroupKey, word {
        /// The state: present, swapped, guard, …
        State = "state",
        /// The kind: anonymous, file, shmem, …
        Kind = "kind",
        /// The set of page flags.
        Flags = "flags",
        /// The region.
        Region = "region",
        /// The run of physically consecutive frames.
        Run = "run",
        /// The order of the folio.
        Order = "order",
        /// The NUMA node.
        Node = "node",
        /// The memory zone.
        Zone = "zone",
        /// The memory cgroup.
        Cgroup = "cgroup",
        /// Mapped by one PMD as a huge page, or not.
        PmdMapped = "pmd_mapped",
        /// The number of mappings of the frame.
        MapCount = "mapcount",
        /// Mapped only here, or not.
        Exclusive = "exclusive",
        /// The symbol in which the page begins.
        Symbol = "symbol",
    }
}

/// `watch RANGE [every DURATION] [for DURATION] [count N] [until FILTER] [with KIND, …] [by KEY] [as timeline]`
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The pages.
    pub range: Spanned<Range>,
    /// Add changes up by this; show each change if absent.
    pub by: Option<WatchKey>,
    /// Time between two samples; the command's default if absent.
    pub every: Option<Spanned<Time>>,
    /// Stop after this time.
    pub duration: Option<Spanned<Time>>,
    /// Stop after the row that reaches so many pages.
    pub count: Option<Spanned<Count>>,
    /// Stop when this holds.
    pub until: Option<Until>,
    /// Kinds of change that are shown only on request, in the order given, each once.
    pub with: Vec<OnRequest>,
    /// Whether to draw a timeline instead of a line for each change.
    pub is_timeline: bool,
}

worded! {
    /// What `watch … by KEY` groups changes by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WatchKey, word {
        /// The region of a page.
        Region = "region",
    }
}

worded! {
    /// Changes that `watch` shows only when `with` asks for them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OnRequest, word {
        /// The frame's `/proc/kpageflags`.
        Flags = "flags",
        /// The frame's `/proc/kpagecount`.
        MapCount = "mapcount",
        /// The soft-dirty bit.
        SoftDirty = "soft_dirty",
    }
}

/// `until [all|none] FILTER`
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// For how many pages it must hold.
    pub of: Quantifier,
    /// What must hold; a comparison without fields is about no page.
    pub filter: Spanned<Filter<PageField>>,
}

/// For how many pages a filter must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// For at least one.
    Any,
    /// For each, and there is at least one.
    All,
    /// For none.
    None,
}

/// `snapshot [NAME] [in RANGE] [with KEPT, …]`: keeps the page map.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// What it is to be called; a number if absent.
    pub name: Option<Spanned<String>>,
    /// Of what; all if absent.
    pub range: Option<Spanned<Range>>,
    /// What else is kept.
    pub with: Vec<Kept>,
}

worded! {
    /// What a snapshot keeps beside the page map.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kept, word {
        /// The frames' `/proc/kpageflags`.
        Flags = "flags",
        /// The frames' `/proc/kpagecount`.
        Counts = "counts",
        /// A hash of the contents of each resident page.
        Content = "content",
    }
}

/// `diff [A] [B] [in RANGE] [where FILTER] [by KEY] [top N | limit N]`
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The earlier snapshot; the last one taken if absent.
    pub from: Option<Spanned<String>>,
    /// The later one; now if absent.
    pub to: Option<Spanned<String>>,
    /// In which range; all that both snapshots cover if absent.
    pub range: Option<Spanned<Range>>,
    /// Which pages, as they are now.
    pub filter: Option<Spanned<Filter<PageField>>>,
    /// Group by this.
    pub by: Option<DiffKey>,
    /// Which rows.
    pub cut: Option<Cut>,
}

worded! {
    /// What `diff … by KEY` groups changes by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DiffKey, word {
        /// The region.
        Region = "region",
        /// The symbol.
        Symbol = "symbol",
        /// The kind of change.
        Change = "change",
    }
}

/// `compare PID …|children [in RANGE] [by KEY] [top N | limit N]`
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// With which processes.
    pub with: Compared,
    /// Of what; all if absent.
    pub range: Option<Spanned<Range>>,
    /// By what the pages add up; by region if absent.
    pub by: Option<CompareKey>,
    /// Which rows.
    pub cut: Option<Cut>,
}

/// Which process `compare` compares with.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// Each of these: a process id, or a text that is the name of a process.
    Processes(Vec<Spanned<Expression>>),
    /// Each child of the attached process.
    Children,
}

worded! {
    /// What `compare … by KEY` groups pages by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CompareKey, word {
        /// The region.
        Region = "region",
        /// The symbol in which a page begins; where there is none, the region.
        Symbol = "symbol",
    }
}

/// `x[/NFU] [ADDRESS]`
#[derive(Clone, Debug, PartialEq)]
pub struct Examine {
    /// Count, format and unit size; the parts that are absent stay as in the last `x`.
    pub layout: Layout,
    /// Whether to read pages that are not resident, which faults them in.
    pub fault: bool,
    /// Where to begin; behind the last `x` if absent.
    pub address: Option<Spanned<Expression>>,
}

/// `find[/UN] RANGE, PATTERN, …`
#[derive(Clone, Debug, PartialEq)]
pub struct Find {
    /// The size of numbers, and the most matches.
    pub layout: Layout,
    /// Where to look.
    pub range: Spanned<Range>,
    /// What to look for, one behind the other; at least one.
    pub patterns: Vec<Spanned<Pattern>>,
    /// In which pages; all if absent.
    pub filter: Option<Spanned<Filter<PageField>>>,
}

/// A part of what `find` looks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A number in the target's byte order, or the bytes of a text.
    Value(Expression),
    /// Bytes as they lie in memory.
    Bytes(Vec<u8>),
}
