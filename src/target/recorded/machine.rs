//! A machine with its reads written down.

use super::log::{Log, Read, counted, quoted, told};
use super::modules::RecordedModules;
use super::process::RecordedProcess;
use crate::kernel::iomem::Resources;
use crate::kernel::mounts::MemoryFiles;
use crate::kernel::swaps::{SwapAreas, SwapLayout};
use crate::kernel::zones::Zones;
use crate::kernel::{Device, FrameNumber, Name, PageFlags, PageSize};
use crate::target::{
    Finding, KernelVersion, Machine, Opened, ProcessEntry, Relation, Result, Standing, pool_of,
};
use std::sync::Arc;

/// Where the kernel says how much a PMD maps.
const HUGE_PAGE_BYTES: &str = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";

/// Where the kernel says how many merged pages there are.
const MERGED: &str = "/sys/kernel/mm/ksm/pages_shared";

/// The frame that is read to find out whether any may be: every machine has it, and nobody maps it.
const PROBE: FrameNumber = FrameNumber::new(1);

/// A [`Machine`] around another.
pub(super) struct RecordedMachine {
    machine: Arc<dyn Machine>,
    log: Arc<Log>,
}

impl RecordedMachine {
    pub(super) fn new(machine: Arc<dyn Machine>, log: Arc<Log>) -> Self {
        RecordedMachine { machine, log }
    }

    /// A read of a file that has a word for each frame.
    fn frames<T: Copy>(
        &self,
        name: &'static str,
        what: &str,
        first: FrameNumber,
        into: &[T],
        answer: &Result<usize>,
        word: impl Fn(T) -> u64,
    ) {
        let words = answer.as_ref().map(|&read| {
            let read = into.get(..read).unwrap_or_default();
            read.iter().map(|&one| word(one)).collect()
        });
        let what = match into.len() {
            1 if first == PROBE => format!("{what} of frame {first}: whether they may be read"),
            1 => format!("{what} of frame {first}"),
            _ => format!("{what} from frame {first} on"),
        };
        let file = format!("/proc/{name}");
        self.log
            .add_words(name, file, first.get(), into.len(), words, what);
    }
}

// What is not handed on would be answered by a default, and otherwise than without the record.
#[deny(clippy::missing_trait_methods)]
impl Machine for RecordedMachine {
    fn kernel(&self) -> KernelVersion {
        self.machine.kernel()
    }

    fn page(&self) -> PageSize {
        self.machine.page()
    }

    fn frame_flags(&self, first: FrameNumber, into: &mut [PageFlags]) -> Result<usize> {
        let answer = self.machine.frame_flags(first, into);
        self.frames("kpageflags", "flags", first, into, &answer, |flags| {
            flags.bits()
        });
        answer
    }

    fn false_flags(&self) -> Option<PageFlags> {
        let answer = self.machine.false_flags();
        let found = match answer {
            None => "not readable",
            Some(flags) if flags.contains(PageFlags::KSM) => "none, or not told by flags",
            Some(_) => "some",
        };
        let what = "whether pages are merged, and so whether the flag of it means anything";
        self.log
            .add_file("ksm", MERGED.to_owned(), what, found.to_owned());
        answer
    }

    fn frame_counts(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        let answer = self.machine.frame_counts(first, into);
        self.frames("kpagecount", "map count", first, into, &answer, |count| {
            count
        });
        answer
    }

    fn frame_cgroups(&self, first: FrameNumber, into: &mut [u64]) -> Result<usize> {
        let answer = self.machine.frame_cgroups(first, into);
        let what = "inode of the memory cgroup";
        self.frames("kpagecgroup", what, first, into, &answer, |inode| inode);
        answer
    }

    fn zones(&self) -> Result<Arc<Zones>> {
        let answer = self.machine.zones();
        let found = told(&answer, |zones| {
            counted(zones.iter().count(), "zone", "zones")
        });
        let file = "/proc/zoneinfo".to_owned();
        self.log
            .add_file("zoneinfo", file, "zones and nodes of frames", found);
        answer
    }

    fn iomem(&self) -> Result<Arc<Resources>> {
        let answer = self.machine.iomem();
        let found = told(&answer, |_| "read".to_owned());
        let file = "/proc/iomem".to_owned();
        self.log
            .add_file("iomem", file, "what lies at physical addresses", found);
        answer
    }

    fn cgroup_path(&self, inode: u64) -> Result<Option<Name>> {
        let answer = self.machine.cgroup_path(inode);
        // Of several hierarchies that of memory: their inodes may coincide.
        let mount = self.machine.cgroup_mount();
        let file = mount.map_or("/sys/fs/cgroup".to_owned(), |mount| mount.to_string());
        self.log.add(
            "cgroup",
            Read {
                repeat: Some(format!("find {} -inum {inode}", quoted(&file))),
                file,
                what: format!("the cgroup whose directory has the inode {inode}"),
                found: Some(told(&answer, |path| {
                    path.as_ref().map_or("none".to_owned(), Name::to_string)
                })),
                ..Read::default()
            },
        );
        answer
    }

    fn swaps(&self) -> Result<SwapAreas> {
        let answer = self.machine.swaps();
        let found = told(&answer, |_| "read".to_owned());
        self.log
            .add_file("swaps", "/proc/swaps".to_owned(), "swap areas", found);
        answer
    }

    fn swap_layout(&self) -> SwapLayout {
        let answer = self.machine.swap_layout();
        let what = "the options that number the types of swap entries";
        let file = self.configuration();
        let found = match file {
            Some(_) => "read",
            None => "not readable",
        };
        let file = file.map_or("/proc/config.gz".to_owned(), |file| file.to_string());
        self.log.add_file("config", file, what, found.to_owned());
        answer
    }

    fn configuration(&self) -> Option<Name> {
        self.machine.configuration()
    }

    fn cgroup_mount(&self) -> Result<Name> {
        self.machine.cgroup_mount()
    }

    fn pools_are_told(&self) -> bool {
        self.machine.pools_are_told()
    }

    fn kernel_option(&self, name: &str) -> Option<bool> {
        self.machine.kernel_option(name)
    }

    fn has_exact_map_counts(&self) -> Option<bool> {
        self.machine.has_exact_map_counts()
    }

    fn findings(&self) -> Vec<Finding> {
        self.machine.findings()
    }

    fn standing(&self) -> Option<Standing> {
        self.machine.standing()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        let answer = self.machine.huge_page_bytes();
        let found = answer.map_or("not readable".to_owned(), |bytes| bytes.to_string());
        let what = "bytes that one PMD maps";
        self.log
            .add_file("hpage_pmd_size", HUGE_PAGE_BYTES.to_owned(), what, found);
        answer
    }

    fn huge_pages_to_spare(&self, bytes: u64) -> Option<bool> {
        let answer = self.machine.huge_pages_to_spare(bytes);
        let file = format!("/sys/{}/free_hugepages", pool_of(bytes));
        let found = match answer {
            Some(true) => "more than resv_hugepages",
            Some(false) => "no more than resv_hugepages",
            None => "not readable",
        };
        let what = "pages of the pool that are promised to nobody";
        self.log.add_file("hugepages", file, what, found.to_owned());
        answer
    }

    fn has_soft_dirty(&self) -> Option<bool> {
        self.machine.has_soft_dirty()
    }

    fn memory_files(&self, device: Device) -> Option<MemoryFiles> {
        let answer = self.machine.memory_files(device);
        // Those of disks have numbers of their own.
        if device.major == 0 {
            let what = format!("of which kind the files of device {device} are");
            let found = match answer {
                Some(MemoryFiles::Shared) => "shared memory",
                Some(MemoryFiles::Hugetlb) => "of the hugetlb pool",
                None => "of no kind of memory",
            };
            let file = "/proc/self/mountinfo".to_owned();
            self.log
                .add_file("mountinfo", file, &what, found.to_owned());
        }
        answer
    }

    fn processes(&self) -> Result<Vec<ProcessEntry>> {
        let answer = self.machine.processes();
        self.listed(told(&answer, |all| {
            counted(all.len(), "process", "processes")
        }));
        answer
    }

    fn relations(&self) -> Result<Vec<Relation>> {
        let answer = self.machine.relations();
        self.listed(told(&answer, |all| {
            counted(all.len(), "process", "processes")
        }));
        answer
    }

    fn open(&self, one: &Relation) -> Result<Opened> {
        let opened = self.machine.open(one)?;
        let log = || Arc::clone(&self.log);
        Ok(Opened {
            process: Box::new(RecordedProcess::new(opened.process, log())),
            modules: Box::new(RecordedModules::new(one.pid, opened.modules, log())),
        })
    }

    fn find_memory(
        &self,
        others: &[u32],
        process: u32,
    ) -> Option<std::result::Result<usize, usize>> {
        self.machine.find_memory(others, process)
    }
}

impl RecordedMachine {
    fn listed(&self, found: String) {
        self.log.add(
            "proc",
            Read {
                file: "/proc".to_owned(),
                what: "the processes".to_owned(),
                found: Some(found),
                repeat: Some("ls /proc".to_owned()),
                ..Read::default()
            },
        );
    }
}
