//! The closed list of what is read of a process and of its machine. No path comes from outside.

use crate::kernel::{AddressRange, PageSize};

/// A file that is read whole, or a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum File {
    /// `/proc/PID/stat`
    Stat,
    /// `/proc/PID/status`, of a thread that still runs where the main thread has ended.
    Status,
    /// `/proc/PID/status` of the main thread.
    MainStatus,
    /// `/proc/PID/limits`
    Limits,
    /// `/proc/PID/syscall`
    Syscall,
    /// `/proc/PID/task/TID/syscall`
    ThreadSyscall(u32),
    /// `/proc/PID/smaps`
    Smaps,
    /// `/proc/PID/smaps_rollup`
    SmapsRollup,
    /// `/proc/PID/cmdline`. The kernel reads it from the memory of the process, and may fault that in.
    CommandLine,
    /// `/proc/PID/cgroup`
    Cgroup,
    /// `/proc/PID/mountinfo`
    Mounts,
    /// `/proc/PID/auxv`
    Auxiliary,
    /// Where `/proc/PID/exe` leads.
    Program,
    /// Where `/proc/PID/ns/user` leads.
    UserNamespace,
    /// Where the link in `/proc/PID/map_files` leads for a mapping of these ends.
    MappedFile(AddressRange),
    /// `/proc/self/maps`
    OwnMaps,
    /// The beginning of `/proc/self/smaps`: some regions.
    OwnSmaps,
    /// `/proc/self/mountinfo`
    OwnMounts,
    /// Where `/proc/self/ns/user` leads.
    OwnUserNamespace,
    /// The release of the kernel, as `uname -r` prints it.
    Release,
    /// `/proc/uptime`
    Uptime,
    /// `/proc/swaps`
    Swaps,
    /// `/proc/zoneinfo`
    Zones,
    /// `/proc/iomem`
    Iomem,
    /// The kernel's configuration.
    Config(ConfigPlace),
    /// A setting below `/sys/kernel/mm`.
    Setting(Setting),
}

/// Where the configuration of a kernel may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigPlace {
    /// `/proc/config.gz`, packed.
    Kernel,
    /// `/boot`
    Boot,
    /// `/lib/modules`
    Modules,
}

/// A number below `/sys/kernel/mm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Pages that KSM has merged.
    MergedPages,
    /// Whether KSM merges pages of zeros into the zero page.
    ZeroPageIsMerged,
    /// Bytes that one PMD maps.
    HugePageBytes,
    /// Free pages of the hugetlb pool whose pages have this many bytes.
    FreePoolPages(u64),
    /// Reserved pages of that pool.
    ReservedPoolPages(u64),
}

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

impl File {
    /// Its path and what it tells. A path without a slash in front is below `/proc/PID`. Files whose path depends on
    /// more are completed in [`File::path`].
    fn row(self) -> (&'static str, &'static str) {
        match self {
            File::Stat => ("stat", "the process"),
            File::Status | File::MainStatus => ("status", "the process"),
            File::Limits => ("limits", "the limits of the process"),
            File::Syscall => ("syscall", "registers"),
            File::ThreadSyscall(_) => ("task", "registers"),
            File::Smaps => ("smaps", "the kernel's counts for each region"),
            File::SmapsRollup => ("smaps_rollup", "the kernel's counts for the process"),
            File::CommandLine => ("cmdline", "the command line"),
            File::Cgroup => ("cgroup", "the cgroups of the process"),
            File::Mounts => ("mountinfo", "the mounted filesystems"),
            File::Auxiliary => ("auxv", "the auxiliary vector of the program"),
            File::Program => ("exe", "the program"),
            File::UserNamespace => ("ns/user", "the user namespace"),
            File::MappedFile(_) => ("map_files", "the name of a mapped file"),
            File::OwnMaps => ("/proc/self/maps", "the regions of pmdb itself"),
            File::OwnSmaps => ("/proc/self/smaps", "the kernel's counts for the regions of pmdb itself"),
            File::OwnMounts => ("/proc/self/mountinfo", "the mounted filesystems"),
            File::OwnUserNamespace => ("/proc/self/ns/user", "the user namespace"),
            File::Release => ("/proc/sys/kernel/osrelease", "the release of the kernel"),
            File::Uptime => ("/proc/uptime", "the uptime"),
            File::Swaps => ("/proc/swaps", "swap areas"),
            File::Zones => ("/proc/zoneinfo", "zones and nodes of frames"),
            File::Iomem => ("/proc/iomem", "the use of physical addresses"),
            File::Config(_) => ("/", "the options that the kernel was built with"),
            File::Setting(setting) => ("/sys", setting.what()),
        }
    }

    /// Its path below `/proc/PID`, if it is one of the process.
    pub(super) fn of_process(self) -> Option<String> {
        match self {
            File::MappedFile(range) => Some(mapped_file(range)),
            File::ThreadSyscall(thread) => Some(format!("task/{thread}/syscall")),
            file => Some(file.row().0.to_owned()).filter(|path| !path.starts_with('/')),
        }
    }

    /// Its path for process `pid`. The path of a configuration has `$(uname -r)` for the release.
    pub(super) fn path(self, pid: u32) -> String {
        match (self, self.of_process()) {
            (_, Some(name)) => format!("/proc/{pid}/{name}"),
            (File::Config(place), _) => place.path("$(uname -r)"),
            (File::Setting(setting), _) => format!("/sys/{}", setting.path()),
            (file, None) => file.row().0.to_owned(),
        }
    }

    /// What it tells.
    pub(super) fn what(self) -> &'static str {
        self.row().1
    }
}

/// The link of a mapping below `/proc/PID`.
pub(super) fn mapped_file(range: AddressRange) -> String {
    let (start, end) = (range.start().get(), range.end().get());
    format!("map_files/{start:x}-{end:x}")
}

impl ConfigPlace {
    /// From the likeliest to have it.
    pub const ALL: [ConfigPlace; 3] = [ConfigPlace::Kernel, ConfigPlace::Boot, ConfigPlace::Modules];

    /// The path of the configuration of a release.
    pub fn path(self, release: &str) -> String {
        match self {
            ConfigPlace::Kernel => "/proc/config.gz".to_owned(),
            ConfigPlace::Boot => format!("/boot/config-{release}"),
            ConfigPlace::Modules => format!("/lib/modules/{release}/config"),
        }
    }
}

impl Setting {
    /// Its path below `/sys`.
    pub(super) fn path(self) -> String {
        let pool = |bytes: u64, name: &str| format!("kernel/mm/hugepages/hugepages-{}kB/{name}", bytes >> 10);
        match self {
            Setting::MergedPages => "kernel/mm/ksm/pages_shared".to_owned(),
            Setting::ZeroPageIsMerged => "kernel/mm/ksm/use_zero_pages".to_owned(),
            Setting::HugePageBytes => "kernel/mm/transparent_hugepage/hpage_pmd_size".to_owned(),
            Setting::FreePoolPages(bytes) => pool(bytes, "free_hugepages"),
            Setting::ReservedPoolPages(bytes) => pool(bytes, "resv_hugepages"),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Setting::MergedPages => "the number of pages that KSM has merged: with none, its flag means nothing",
            Setting::ZeroPageIsMerged => "whether KSM uses the page of zeros",
            Setting::HugePageBytes => "bytes that one PMD maps",
            Setting::FreePoolPages(_) => "free pages of the hugetlb pool",
            Setting::ReservedPoolPages(_) => "reserved pages of the hugetlb pool",
        }
    }
}

impl WordFile {
    /// Its name in `/proc`, or in `/proc/PID`.
    pub(super) fn name(self) -> &'static str {
        match self {
            WordFile::PageMap => "pagemap",
            WordFile::FrameFlags => "kpageflags",
            WordFile::FrameCounts => "kpagecount",
            WordFile::FrameCgroups => "kpagecgroup",
        }
    }
}

/// The number of pages that a page map covers, found by bisection: the addresses after it, such as the kernel half,
/// belong to no process. `covers` says whether it has the entry of a page
/// index.
///
/// # Errors
/// Those of `covers`.
pub fn covered_pages<E>(page: PageSize, mut covers: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let (mut low, mut high) = (0, (u64::MAX >> page.shift()).saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if covers(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn the_end_is_found_wherever_it_is() {
        let page = PageSize::from_bytes(4096).expect("a power of two");
        for end in [0, 1, 2, 1 << 35, (1 << 35) + 7, 1 << 52] {
            let found = covered_pages(page, |index| Ok::<_, Infallible>(index < end));
            assert_eq!(found, Ok(end));
        }
        assert_eq!(covered_pages(page, |_| Err("gone")), Err("gone"));
    }
}
