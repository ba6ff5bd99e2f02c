//! The machine that pmdb runs on.

use super::directory::{Directory, read_all};
use super::memory::{self, FrameFile};
use super::{apart, directory, features};
use crate::kernel::PageMapEntry;
use crate::source::feature::by_trying;
use crate::source::question::ConfigPlace;
use crate::source::{Error, Feature, File, Finding, Probe, Result, sys};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, fstat, major, memfd_create, minor, openat};
use rustix::io::Errno;
use std::cmp::Ordering;
use std::io::Read;
use std::sync::OnceLock;

/// The files of the machine that stay open.
pub(super) struct LiveMachine {
    pub(super) flags: FrameFile,
    pub(super) counts: FrameFile,
    pub(super) cgroups: FrameFile,
    /// The entry of a page of pmdb's own.
    own_entry: OnceLock<PageMapEntry>,
}

impl Default for LiveMachine {
    fn default() -> Self {
        LiveMachine {
            flags: FrameFile::new("kpageflags", "CONFIG_PROC_PAGE_MONITOR"),
            counts: FrameFile::new("kpagecount", "CONFIG_PROC_PAGE_MONITOR"),
            cgroups: FrameFile::new("kpagecgroup", "CONFIG_MEMCG"),
            own_entry: OnceLock::new(),
        }
    }
}

impl LiveMachine {
    /// The contents of a file of the machine, or where a link leads.
    pub(super) fn read(&self, file: File) -> Result<Vec<u8>> {
        let path = file.path(std::process::id());
        let name = |top: &str| path.strip_prefix(top).and_then(|name| name.strip_prefix('/')).unwrap_or(&path);
        let below = |top: &str| Directory::open(top)?.read(name(top));
        let read = match file {
            File::Release => return Ok(release()),
            File::OwnUserNamespace => Directory::open("/proc/self").and_then(|own| own.link("ns/user")),
            File::OwnMaps => below("/proc/self"),
            File::OwnSmaps => Directory::open("/proc/self").and_then(|own| own.read_beginning("smaps")),
            File::OwnMounts => apart::own_text(),
            File::Setting(_) => below("/sys"),
            File::Config(place @ (ConfigPlace::Boot | ConfigPlace::Modules)) => {
                beside(&place.path(&String::from_utf8_lossy(&release())))
            }
            _ => Directory::proc().and_then(|proc| proc.read(name("/proc"))),
        };
        read.map_err(|error| Error::io(format!("reading {path}"), error))
    }

    /// Tries something on pmdb itself.
    pub(super) fn probe(&self, probe: Probe<'_>) -> Result<Vec<u64>> {
        let words: Option<Vec<u64>> = match probe {
            Probe::PageBytes => Some(vec![rustix::param::page_size() as u64]),
            Probe::LittleEndian => Some(vec![u64::from(cfg!(target_endian = "little"))]),
            Probe::Machine => own_machine().map(|machine| vec![machine.into()]),
            Probe::TicksPerSecond => Some(vec![procfs::ticks_per_second()]),
            Probe::OwnEntry => self.own_entry().map(|entry| vec![entry.raw()]),
            Probe::OwnFlags => memory::own_flags(&self.flags).map(|flags| vec![flags.bits()]),
            Probe::FrameRight => Some(vec![u64::from(directory::has_sys_admin())]),
            Probe::OwnNumber => return own_number().map(|number| vec![number.into()]),
            Probe::User => Some(vec![rustix::process::geteuid().as_raw().into()]),
            Probe::SharedMemory => shared_memory().map(Vec::from),
            Probe::Pools => devices_of_pools().map(|devices| devices.concat()),
            Probe::Compare(one, other) => compare(one, other).map(|order| vec![order]),
            Probe::FollowOwn(range) => {
                let own = Directory::open("/proc/self");
                let own = own.map_err(|error| Error::io("opening /proc/self", error))?;
                return features::follow(&own, range).map(|()| Vec::new());
            }
            Probe::Follow(_) | Probe::IsNamed(..) => None,
        };
        words.ok_or_else(|| Error::not_available("the kernel does not report it"))
    }

    /// Read once. A page that was just then in swap is no answer.
    fn own_entry(&self) -> Option<PageMapEntry> {
        let read = || memory::own_entry().map(|entry| *self.own_entry.get_or_init(|| entry));
        self.own_entry.get().copied().or_else(read)
    }

    /// The findings that take no decoding.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![
            by_trying(Feature::PageMap, features::open_own_file("pagemap"), "pmdb's own page map can be opened"),
            features::other_users(),
            features::frame_numbers(),
            features::frame_file(Feature::FrameFlags, "kpageflags", &self.flags),
            features::frame_file(Feature::MapCounts, "kpagecount", &self.counts),
            features::frame_file(Feature::FrameCgroups, "kpagecgroup", &self.cgroups),
            features::cgroup_paths(),
            by_trying(Feature::Memory, features::open_own_file("mem"), "pmdb's own memory can be opened"),
            features::guard_bit(),
            features::idle_bitmap(),
            features::ksm_flag(&self.flags),
        ];
        findings.extend(features::calls());
        findings
    }
}

/// The machine that pmdb's own program is for.
fn own_machine() -> Option<u16> {
    const OFFSET: usize = 18;
    let mut header = [0; OFFSET + 2];
    std::fs::File::open("/proc/self/exe").ok()?.read_exact(&mut header).ok()?;
    header.last_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn own_number() -> Result<u32> {
    let link = Directory::proc().and_then(|proc| proc.link("self"));
    let link = link.map_err(|error| Error::io("finding pmdb itself by /proc/self", error))?;
    let number = std::str::from_utf8(&link).ok().and_then(|link| link.parse().ok());
    number.ok_or_else(|| Error::io("reading /proc/self", Errno::INVAL))
}

fn release() -> Vec<u8> {
    rustix::system::uname().release().to_bytes().to_vec()
}

/// A configuration that a distribution has installed beside the kernel.
fn beside(path: &str) -> rustix::io::Result<Vec<u8>> {
    // A generous bound for a text of some 300 KiB.
    const MOST: u64 = 8 << 20;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(CWD, path, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    match u64::try_from(stat.st_size) {
        Ok(0..=MOST) => read_all(file),
        _ => Err(Errno::FBIG),
    }
}

/// As `kcmp` numbers it.
fn compare(one: u32, other: u32) -> Option<u64> {
    let order = directory::with_raised_rights(|| sys::compare_memory(one, other))?;
    Some(match order {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    })
}

/// The device of shared memory in no mounted filesystem, which no path leads to.
pub(super) fn shared_memory() -> Option<[u64; 2]> {
    static DEVICE: OnceLock<Option<[u64; 2]>> = OnceLock::new();
    *DEVICE.get_or_init(|| device_of_a_memfd(MemfdFlags::empty()))
}

/// Every memfd, System V segment and shared anonymous mapping is on one filesystem that is mounted nowhere. A memfd of
/// pmdb's own shows its major and minor number.
fn device_of_a_memfd(kind: MemfdFlags) -> Option<[u64; 2]> {
    let stat = fstat(memfd_create("pmdb", MemfdFlags::CLOEXEC | kind).ok()?).ok()?;
    Some([major(stat.st_dev).into(), minor(stat.st_dev).into()])
}

/// The devices of the hugetlb pools, one for each page size. An empty memfd takes no page of them.
fn devices_of_pools() -> Option<Vec<[u64; 2]>> {
    /// Where a size stands among the flags: its logarithm (MFD_HUGE_SHIFT).
    const SIZE_SHIFT: u32 = 26;
    let Ok(pools) = std::fs::read_dir("/sys/kernel/mm/hugepages") else {
        // Without /sys the page sizes are unknown.
        let has_settings = std::fs::exists("/sys/kernel/mm").unwrap_or(false);
        return has_settings.then(Vec::new);
    };
    let device = |pool: std::io::Result<std::fs::DirEntry>| {
        let name = pool.ok()?.file_name().into_string().ok()?;
        let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        let bytes = kib.parse::<u64>().ok()?.checked_mul(1024)?;
        let size = MemfdFlags::from_bits_retain(bytes.trailing_zeros() << SIZE_SHIFT);
        device_of_a_memfd(MemfdFlags::HUGETLB | size)
    };
    pools.map(device).collect()
}
