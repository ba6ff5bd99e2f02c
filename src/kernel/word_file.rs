//! The files of `/proc` with a 64-bit word for each page: one row each.

/// A file with a 64-bit word for each page.
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

/// What is known of a file before it is opened.
struct About {
    name: &'static str,
    option: &'static str,
    holds: &'static str,
    words: &'static str,
    need: &'static str,
}

impl WordFile {
    /// Those with a word for each page frame. The flags come first: they show where folios are.
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

    /// Its name in `/proc`, or in `/proc/PID`.
    pub(crate) const fn name(self) -> &'static str {
        self.about().name
    }

    /// The option that a kernel with this file was built with.
    pub(crate) const fn option(self) -> &'static str {
        self.about().option
    }

    /// What a word of it is.
    pub(crate) const fn holds(self) -> &'static str {
        self.about().holds
    }

    /// What all its words are called: as a field of a capture's index, and where the help says what a fact needs.
    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "only captures and the help have it"))]
    pub(crate) const fn words(self) -> &'static str {
        self.about().words
    }

    /// What has to be so that it can be read, as the help has it.
    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "only the help has it"))]
    pub(crate) const fn need(self) -> &'static str {
        self.about().need
    }
}
