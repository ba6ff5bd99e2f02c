//! The arguments of commands that have several, and the words among them.

use crate::kernel::words::worded;
use crate::lang::{Cut, Filter, Range, RegionField, Spanned};

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
