//! The live [`Process`].

use super::attached::Attached;
use super::memory::Memory;
use super::populated::{self, IN_ENTRIES};
use super::{command_line, features, naming, own_page};
use crate::kernel::registers::Standing;
use crate::kernel::smaps::{self, Smaps};
use crate::kernel::status::{self, Stat, Status};
use crate::kernel::{
    AddressRange, Device, Name, PageMapEntry, Permissions, Region, Registers, VirtualAddress, maps,
};
use crate::target::{
    Categories, Error, Feature, Finding, Identity, Layout, Liveness, MapsText, Populated, Process,
    ProcessStatus, Result, sys,
};
use procfs::FromRead;
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A process that runs.
pub(super) struct LiveProcess {
    attached: Arc<Attached>,
    abilities: Abilities,
    /// Whether the newer calls may be used.
    scan: AtomicBool,
    /// Whether the last region asked for was told by PROCMAP_QUERY.
    has_queried: AtomicBool,
}

/// What the kernel tells pmdb, whichever process it is about.
#[derive(Clone, Copy)]
pub(super) struct Abilities {
    /// What PAGEMAP_SCAN knows on this kernel.
    scannable: Categories,
    frames_hidden: bool,
}

impl LiveProcess {
    pub(super) fn new(attached: Arc<Attached>) -> Result<Self> {
        let abilities = Abilities {
            scannable: populated::supported(&attached.memory().page_map),
            frames_hidden: own_page::are_frames_hidden(),
        };
        Ok(Self::with(attached, abilities))
    }

    /// Without asking the kernel again.
    pub(super) fn with(attached: Arc<Attached>, abilities: Abilities) -> Self {
        LiveProcess {
            attached,
            abilities,
            scan: AtomicBool::new(true),
            has_queried: AtomicBool::new(false),
        }
    }

    pub(super) fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn may_scan(&self) -> bool {
        self.scan.load(Ordering::Relaxed)
    }

    fn scannable(&self) -> Categories {
        match self.may_scan() {
            true => self.abilities.scannable,
            false => Categories::empty(),
        }
    }

    /// The region at `address` by PROCMAP_QUERY; `None` if the kernel cannot be asked or its answer is not final.
    fn queried(&self, address: VirtualAddress) -> Result<Option<Option<Region>>> {
        if !self.may_scan() {
            return Ok(None);
        }
        let memory = self.attached.memory();
        match sys::query_mapping(self.attached.maps(&memory)?, address.get()) {
            Ok(mapping) => Ok(Some(self.settled(&memory, mapping))),
            // Gate regions such as [vsyscall] are in the text only. They lie where no page map reaches.
            Err(Errno::NOENT) => {
                let index = memory.page.index(address);
                let reached = self
                    .attached
                    .entries(index, &mut [PageMapEntry::default()])?
                    == 1;
                Ok(reached.then_some(None))
            }
            Err(Errno::SRCH) => Err(self.attached.lost(&memory)),
            // ENOTTY before Linux 6.11, ENAMETOOLONG for a path that the text can hold, a sandbox's EPERM: the text always answers.
            Err(_) => Ok(None),
        }
    }
}

impl LiveProcess {
    /// The region next below `start`, if less than `gap` bytes lie between, as [`queried`](Self::queried) has it. The kernel only looks
    /// upwards: where nothing adjoins, from the far end of the gap.
    fn queried_below(&self, start: VirtualAddress, gap: u64) -> Result<Option<Option<Region>>> {
        let below = |distance: u64| start.get().checked_sub(distance).map(VirtualAddress::new);
        let Some(last) = below(1) else {
            return Ok(Some(None));
        };
        match self.queried(last)? {
            Some(None) => {}
            told => return Ok(told),
        }
        let memory = self.attached.memory();
        let maps = self.attached.maps(&memory)?;
        let mut nearest = None;
        let mut from = below(gap).unwrap_or_default();
        while from < start {
            match sys::query_mapping_from(maps, from.get()) {
                Ok(mapping) if mapping.start < start.get() => {
                    from = VirtualAddress::new(mapping.end);
                    nearest = Some(mapping);
                }
                Ok(_) | Err(Errno::NOENT) => break,
                Err(Errno::SRCH) => return Err(self.attached.lost(&memory)),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(nearest.and_then(|one| self.settled(&memory, one))))
    }

    fn settled(&self, memory: &Memory, mapping: sys::Mapping) -> Option<Region> {
        let mut region = region(mapping)?;
        naming::settle_unescaped(self.attached.directory(), memory, &mut region);
        Some(region)
    }
}

impl Process for LiveProcess {
    fn identity(&self) -> Identity {
        self.attached.identity()
    }

    fn layout(&self) -> Layout {
        self.attached.layout()
    }

    fn liveness(&self) -> Result<Liveness> {
        self.attached.liveness()
    }

    fn regions(&self) -> Result<Vec<Region>> {
        self.attached.regions()
    }

    fn regions_and_text(&self) -> Result<(Vec<Region>, MapsText)> {
        self.attached.regions_and_text()
    }

    fn still_says(&self, before: &MapsText, so_far: usize) -> Result<Option<usize>> {
        self.attached.still_says(before, so_far)
    }

    fn region_at(&self, address: VirtualAddress) -> Result<Option<Region>> {
        let queried = self.queried(address)?;
        self.has_queried.store(queried.is_some(), Ordering::Relaxed);
        match queried {
            Some(answer) => Ok(answer),
            None => {
                let regions = self.attached.regions()?;
                Ok(regions
                    .into_iter()
                    .find(|region| region.range.contains(address)))
            }
        }
    }

    fn has_queried(&self) -> bool {
        self.has_queried.load(Ordering::Relaxed)
    }

    fn nearest_below(
        &self,
        address: VirtualAddress,
        gap: u64,
        most: usize,
    ) -> Result<Option<Vec<Region>>> {
        let mut found: Vec<Region> = Vec::new();
        while found.len() < most {
            let start = found.last().map_or(address, |last| last.range.start());
            match self.queried_below(start, gap)? {
                Some(Some(region)) => found.push(region),
                Some(None) => break,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn entries(&self, first: u64, into: &mut [PageMapEntry]) -> Result<usize> {
        self.attached.entries(first, into)
    }

    fn categories(&self) -> Categories {
        match self.scannable() {
            none if none.is_empty() => IN_ENTRIES,
            known => known,
        }
    }

    fn set_scan(&self, on: bool) {
        self.scan.store(on, Ordering::Relaxed);
    }

    fn populated(
        &self,
        range: AddressRange,
        wanted: Categories,
        visit: &mut dyn FnMut(Populated) -> ControlFlow<()>,
    ) -> Result<()> {
        populated::visit(&self.attached, range, wanted, self.scannable(), visit)
    }

    fn is_pfn_mapped(&self, region: &Region) -> Result<Option<bool>> {
        if self.scannable().is_empty() {
            return Ok(None);
        }
        let start = region.range.start();
        let passed_over = populated::is_passed_over(&self.attached, start)?;
        // A hole is passed over too: if the region has gone meanwhile, nothing was learnt.
        match passed_over {
            Some(true) if self.region_at(start)?.is_none() => Ok(None),
            answer => Ok(answer),
        }
    }

    fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        self.attached.read_memory(address, into)
    }

    fn frames_hidden(&self) -> bool {
        self.abilities.frames_hidden
    }

    fn findings(&self) -> Vec<Finding> {
        let memory = self.attached.memory();
        let handle = self.attached.handle();
        let who = super::handle::named(handle.pid(), memory.name(handle));
        let maps = self.attached.maps_text(&memory).unwrap_or_default();
        vec![
            features::yes(Feature::PageMap, self.relation(&who)),
            features::map_files(handle.directory(), &maps, &who),
            features::tried(
                Feature::Memory,
                memory.contents(handle),
                &format!("the memory of {who} can be opened"),
            ),
        ]
    }

    fn registers(&self) -> Result<Registers> {
        match self.standing()? {
            Standing::Waiting(registers) => Ok(registers),
            Standing::Running => Err(Error::NotAvailable {
                what: format!(
                    "process {} is running: the kernel tells registers only of a thread that waits",
                    self.attached.handle().pid()
                ),
            }),
        }
    }

    fn stack_limit(&self) -> Result<Option<u64>> {
        let limits = self.file("limits")?;
        status::stack_limit(&limits).ok_or_else(|| Error::NotAvailable {
            what: "/proc/PID/limits holds no stack limit".to_owned(),
        })
    }

    fn smaps(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Vec<Smaps>> {
        let memory = self.attached.memory();
        let text = self.file_while("smaps", go_on);
        // Opened by its path, it is of whatever program runs now: of the one that is known here, if that is alive afterwards still.
        match memory.is_alive() {
            true => Ok(smaps::parse_while(&text?, go_on)?),
            false => Err(self.attached.lost(&memory)),
        }
    }

    fn status(&self) -> Result<ProcessStatus> {
        let memory = self.attached.memory();
        let handle = self.attached.handle();
        let stat = Stat::parse(&self.file("stat")?)?;
        let status = Status::parse(&self.file("status")?)?;
        let link = handle.directory().link(&memory.path("exe")).ok();
        Ok(ProcessStatus {
            pid: handle.pid(),
            parent: stat.parent,
            name: stat.name,
            state: status.state,
            threads: stat.threads,
            age: age(stat.start_time),
            user: status.user,
            tracer: status.tracer,
            executable: link.map(Name::new),
            command_line: command_line::read(
                handle.directory(),
                &memory.path("cmdline"),
                &memory.page_map,
                stat.arguments,
            ),
            memory: status.memory,
        })
    }
}

impl LiveProcess {
    /// That its page map is open, and whose process it is.
    fn relation(&self, who: &str) -> String {
        let us = rustix::process::geteuid().as_raw();
        let status = self
            .file("status")
            .ok()
            .and_then(|text| Status::parse(&text).ok());
        let user = match status {
            Some(status) if status.user != us => {
                format!(", which runs as user {}, pmdb as user {us}", status.user)
            }
            _ => String::new(),
        };
        let link = |path: &str| self.attached.handle().directory().link(path).ok();
        let own = super::directory::Directory::open("/proc/self");
        let own = own.and_then(|own| own.link("ns/user")).ok();
        let namespace = match link("ns/user") {
            Some(theirs) if own.is_some_and(|own| own != theirs) => {
                "; it is in another user namespace"
            }
            _ => "",
        };
        format!("the page map of {who} is open{user}{namespace}")
    }

    /// The whole of a file of the process.
    fn file(&self, name: &str) -> Result<Vec<u8>> {
        self.file_while(name, &mut || true)
    }

    /// As much of it as is read before `go_on` says no.
    fn file_while(&self, name: &str, go_on: &mut dyn FnMut() -> bool) -> Result<Vec<u8>> {
        let memory = self.attached.memory();
        let handle = self.attached.handle();
        let path = memory.path(name);
        let read = handle.directory().read_while(&path, go_on);
        read.map_err(|error| match error {
            Errno::SRCH | Errno::NOENT => handle.exited(memory.name(handle)),
            error => Error::io(format!("reading /proc/{}/{path}", handle.pid()), error),
        })
    }

    /// What `/proc/PID/syscall` says of the main thread. The kernel lets only those read it who may trace the process.
    fn standing(&self) -> Result<Standing> {
        let memory = self.attached.memory();
        let handle = self.attached.handle();
        let path = memory.path("syscall");
        let bytes = handle.directory().read(&path).map_err(|error| {
            let who = super::handle::named(handle.pid(), memory.name(handle));
            match error {
                Errno::SRCH => handle.exited(memory.name(handle)),
                // Kernels without CONFIG_HAVE_ARCH_TRACEHOOK have no such file.
                Errno::NOENT if !handle.has_exited() => Error::NotAvailable {
                    what: format!(
                        "this kernel does not tell the registers of {who} (no /proc/PID/syscall)"
                    ),
                },
                Errno::NOENT => handle.exited(memory.name(handle)),
                error => super::memory::refused(handle, &who, &path, error),
            }
        })?;
        Standing::parse(&bytes).ok_or_else(|| Error::NotAvailable {
            what: format!("/proc/{}/{path} holds no registers", handle.pid()),
        })
    }
}

/// What PROCMAP_QUERY found, as a line of the text would say it.
fn region(mapping: sys::Mapping) -> Option<Region> {
    let range = AddressRange::new(
        VirtualAddress::new(mapping.start),
        VirtualAddress::new(mapping.end),
    )?;
    let (name, deleted) = maps::name(&mapping.name);
    let has = |bit: u64| mapping.flags & bit != 0;
    let (major, minor) = mapping.device;
    Some(Region {
        range,
        permissions: Permissions {
            read: has(1),
            write: has(2),
            execute: has(4),
            shared: has(8),
        },
        offset: mapping.offset,
        device: Device { major, minor },
        inode: mapping.inode,
        name,
        deleted,
    })
}

/// Seconds since a process started, from its start in clock ticks since boot.
fn age(start_time: u64) -> Option<f64> {
    let uptime = super::directory::Directory::open("/proc")
        .ok()?
        .read("uptime")
        .ok()?;
    let uptime = procfs::Uptime::from_read(&uptime[..]).ok()?.uptime;
    Some(uptime - start_time as f64 / procfs::ticks_per_second() as f64)
}
