//! The files of `/proc` with a 64-bit word for each page.

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
}

impl WordFile {
    /// Those with a word for each page frame.
    pub(crate) const OF_FRAMES: [WordFile; 3] = [WordFile::FrameFlags, WordFile::FrameCounts, WordFile::FrameCgroups];

    const fn about(self) -> About {
        let (name, option, holds) = match self {
            WordFile::PageMap => ("pagemap", "CONFIG_PROC_PAGE_MONITOR", "page-map entry"),
            WordFile::FrameFlags => ("kpageflags", "CONFIG_PROC_PAGE_MONITOR", "flags"),
            WordFile::FrameCounts => ("kpagecount", "CONFIG_PROC_PAGE_MONITOR", "map count"),
            WordFile::FrameCgroups => ("kpagecgroup", "CONFIG_MEMCG", "inode of the memory cgroup"),
        };
        About { name, option, holds }
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
}
