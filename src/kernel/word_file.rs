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

impl WordFile {
    /// Its name in `/proc`, or in `/proc/PID`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            WordFile::PageMap => "pagemap",
            WordFile::FrameFlags => "kpageflags",
            WordFile::FrameCounts => "kpagecount",
            WordFile::FrameCgroups => "kpagecgroup",
        }
    }
}
