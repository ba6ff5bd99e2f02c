//! The files of `/proc` with a 64-bit word for each page or frame: one row each.

/// A file with a 64-bit word for each page or frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WordFile {
    /// `/proc/PID/pagemap`, a word for each page of the address space.
    PageMap,
    /// `/proc/kpageflags`, a word for each page frame.
    FrameFlags,
    /// `/proc/kpagecount`
    FrameCounts,
    /// `/proc/kpagecgroup`
    FrameCgroups,
}

/// The constant properties of a file.
struct About {
    name: &'static str,
    option: &'static str,
    holds: &'static str,
    words: &'static str,
    need: &'static str,
}

impl WordFile {
    /// The files with a word for each page frame. The flags come first: they show where folios are.
    pub(crate) const OF_FRAMES: [WordFile; 3] = [WordFile::FrameFlags, WordFile::FrameCounts, WordFile::FrameCgroups];

    const fn about(self) -> About {
        let (name, option, holds, words, need) = match self {
            WordFile::PageMap => ("pagemap", "CONFIG_PROC_PAGE_MONITOR", "page-map entry", "page_map", ""),
            WordFile::FrameFlags => (
                "kpageflags",
                "CONFIG_PROC_PAGE_MONITOR",
                "flags",
                "flags",
                "frame numbers, and root or CAP_DAC_READ_SEARCH",
            ),
            WordFile::FrameCounts => ("kpagecount", "CONFIG_PROC_PAGE_MONITOR", "map count", "counts", "as for flags"),
            WordFile::FrameCgroups => (
                "kpagecgroup",
                "CONFIG_MEMCG",
                "inode of the memory cgroup",
                "cgroups",
                "as for flags, and a kernel with memory cgroups",
            ),
        };
        About { name, option, holds, words, need }
    }

    /// Returns the name of the file in `/proc`, or in `/proc/PID`.
    pub(crate) const fn name(self) -> &'static str {
        self.about().name
    }

    /// Returns the configuration option without which a kernel does not have the file.
    pub(crate) const fn option(self) -> &'static str {
        self.about().option
    }

    /// Returns the meaning of one word.
    pub(crate) const fn holds(self) -> &'static str {
        self.about().holds
    }

    /// Returns the name of all its words: a field of a capture's index, and the data that a fact needs in the help.
    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "only captures and the help have it"))]
    pub(crate) const fn words(self) -> &'static str {
        self.about().words
    }

    /// Returns what is needed to read the file, for the help.
    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "only the help has it"))]
    pub(crate) const fn need(self) -> &'static str {
        self.about().need
    }
}
