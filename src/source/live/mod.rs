//! Running processes and machines, read from `/proc`.

mod apart;
mod attached;
mod backing;
mod cgroups;
mod directory;
mod features;
mod filesystem;
mod handle;
mod kept_file;
mod kernel_records;
mod mapped_file;
mod memory;
mod module_file;
mod modules;
mod pause;
mod storage;

#[cfg(feature = "cli")]
pub(crate) use modules::installed_debug_file;

use super::ConfigPlace;
use super::feature::by_trying;
use super::{
    Answer, Asked, Feature, File, FileLocation, Held, KernelRecords, List, Listed, Mapping, Origin, PageRegion, Place,
    Probe, Query, Question, RecordsOf, Reply, Scan, Source, SourceAccess, sys,
};
use crate::access::{Error, Identity, Liveness, MemoryLifetime, ReadAt, Result};
use crate::budget::Budget;
use crate::kernel::elf::ElfStart;
use crate::kernel::{AddressRange, PageMapEntry, Region, TableEntry, VirtualAddress, WordFile};
use crate::own::rights;
use crate::records::{FrameRecord, Meanwhile, OwnerDetail, RecordParts, RecordedMapper, SwappedRange};
use attached::{Attached, ScanPiece};
use directory::{Directory, read_all};
use handle::{Handle, process_title};
use memory::FrameFiles;
use modules::LiveModules;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::any::Any;
use std::cmp::Ordering;
use std::io::Read;
use std::sync::{Arc, OnceLock};

/// Opens the files of `/proc` that pmdb reads, for the process with this id, or for the process of the thread with this
/// id. The process does not change.
///
/// # Errors
/// Fails with [`Gone`](Error::Gone) if there is no such process or it is a zombie, with
/// [`NotAvailable`](Error::NotAvailable) for a kernel thread, and with [`NotPermitted`](Error::NotPermitted) if its
/// page map may not be read.
pub fn process(pid: u32) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(Live { attached: Some(Arc::new(Attached::open(pid)?)), machine: Arc::default() }))
}

/// Returns the process with this id, or the one of the thread with this id.
///
/// # Errors
/// Fails with [`Gone`](Error::Gone) if there is none.
pub fn process_of(number: u32) -> Result<u32> {
    handle::process_of(number)
}

/// Returns the machine that pmdb runs on, without a process.
pub fn machine() -> Arc<dyn Source> {
    Arc::new(Live { attached: None, machine: Arc::default() })
}

/// A running process, and its machine.
struct Live {
    attached: Option<Arc<Attached>>,
    machine: Arc<LiveMachine>,
}

impl Live {
    fn attached(&self) -> Result<&Arc<Attached>> {
        self.attached.as_ref().ok_or_else(|| Error::not_available("no process is attached"))
    }

    fn modules(&self) -> Result<LiveModules> {
        Ok(LiveModules::new(Arc::clone(self.attached()?)))
    }
}

impl Source for Live {
    fn identity(&self) -> Identity {
        match &self.attached {
            Some(attached) => attached.identity(),
            None => Identity::default(),
        }
    }

    fn liveness(&self) -> Result<Liveness> {
        self.attached()?.liveness()
    }

    fn origin(&self) -> Origin {
        Origin::Live(self.attached.as_ref().map(|attached| attached.memory() as Arc<dyn MemoryLifetime>))
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        match question {
            Question::Text(file) => file.reply(self.text(file, budget)),
            Question::GroupText(asked) => asked.reply(cgroups::text(asked, budget)),
            Question::Groups(which) => which.reply(cgroups::groups(which, budget)),
            Question::Mapping(query) => query.reply(self.attached()?.query(query)),
            Question::FileMappings(asked) => asked.reply(self.attached()?.file_mappings(budget)),
            Question::Backing(asked) => asked.reply(self.modules()?.backing_content(asked.region, asked.range, budget)),
            Question::Probe(probe) => probe.reply(self.probe(probe, budget)),
            Question::Rights(asked) => asked.reply(Ok(Some(self.machine.access()))),
            Question::Notes(_) | Question::HeapWords(_) => question.unanswered(),
            Question::Records(of) => of.reply(self.require_records(of)),
        }
    }

    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        self.attached()?.maps_from(offset, into)
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        match file {
            WordFile::PageMap => self.attached()?.entries(first, into),
            of_frames => self.machine.frame_files.read(of_frames, first, into),
        }
    }

    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        kernel_records::records()?;
        Ok(self)
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        match place {
            Place::Memory => self.attached()?.read_memory(address, into),
            Place::PageCache(region) => self.modules()?.read_cached(region, address, into),
        }
    }

    fn clear_soft_dirty(&self) -> Result<()> {
        self.attached()?.clear_soft_dirty()
    }

    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        self.attached()?.scan(question, into)
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        match which {
            List::Held => handle::held_processes(),
            List::All => handle::all_processes(),
            List::One(number) => handle::one_process(number).map(|one| vec![one]),
            List::Threads => handle::threads(self.attached()?.directory()),
            List::Descriptors => handle::descriptors(self.attached()?.directory(), "fd"),
            List::DescriptorsOf(thread) => {
                handle::descriptors(self.attached()?.directory(), &format!("task/{thread}/fd"))
            }
        }
    }

    fn open(&self, pid: u32, held: &Held) -> Result<Arc<dyn Source>> {
        let held = held.0.clone().and_then(|held| held.downcast().ok());
        let handle = match held {
            Some(handle) => handle,
            None => Arc::new(Handle::open(pid)?),
        };
        Ok(Arc::new(Live {
            attached: Some(Arc::new(Attached::for_a_look(handle)?)),
            machine: Arc::clone(&self.machine),
        }))
    }

    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        let modules = self.modules()?;
        match place {
            FileLocation::Region(region) => modules.open(region).map(Some),
            FileLocation::Path(path) => modules.at_path(path),
            FileLocation::OwnPath(path) => modules::at_own_path(path),
            FileLocation::Trusted(path, user) => modules.open_trusted(path, user),
            FileLocation::OwnVdso(region) => Ok(modules::own_vdso(region)),
        }
    }

    fn hold(&self, region: &Region) -> Held {
        let held = self.modules().ok().and_then(|modules| modules.hold(region));
        Held(held.map(|file| file as Arc<dyn Any + Send + Sync>))
    }
}

impl Live {
    /// Files of the machine are short, and their contents are cached: Ctrl-C does not interrupt them, so that nothing
    /// is missing in the cache.
    fn text(&self, file: File, budget: &mut Budget) -> Result<Vec<u8>> {
        match file.of_process() {
            Some(name) => self.attached()?.read(file, &name, budget),
            None => self.machine.read(file),
        }
    }

    fn probe(&self, probe: Probe<'_>, budget: &mut Budget) -> Result<Vec<u64>> {
        match probe {
            Probe::Follow(range) => features::follow(self.attached()?.directory(), range).map(|()| Vec::new()),
            Probe::IsNamed(region, path) => Ok(vec![u64::from(self.modules()?.is_named(region, path))]),
            Probe::MappedFile(region) => self.modules()?.status(region).map(Vec::from),
            Probe::DescriptorMount(thread, number) => {
                mapped_file::mount_of_descriptor(self.attached()?.directory(), thread, number)
            }
            Probe::Descriptor(thread, at) => mapped_file::behind_descriptor(self.attached()?.directory(), thread, at),
            Probe::DescriptorCache(place, file) => {
                mapped_file::cached_of_descriptor(self.attached()?, place, file, budget)
            }
            Probe::Filesystem(device, point) => filesystem::room(self.attached()?, device, point),
            probe => self.machine.probe(probe),
        }
    }

    fn require_records(&self, of: RecordsOf) -> Result<()> {
        match of {
            RecordsOf::Frames(parts) => kernel_records::records()?.require(parts),
            RecordsOf::PageTables => self.attached()?.page_tables().map(drop),
            RecordsOf::Slots => {
                kernel_records::records()?.require_slots()?;
                self.attached()?.page_tables().map(drop)
            }
        }
    }
}

impl KernelRecords for Live {
    fn frames(&self, first: u64, parts: RecordParts, into: &mut [FrameRecord]) -> Result<()> {
        kernel_records::records()?.read(first, parts, into);
        Ok(())
    }

    fn mappers(&self, frame: u64, meanwhile: Meanwhile<'_>, budget: &mut Budget) -> Result<Vec<RecordedMapper>> {
        kernel_records::records()?.mappers(frame, meanwhile, budget)
    }

    fn owner_detail(&self, frame: u64) -> Result<Option<OwnerDetail>> {
        kernel_records::records()?.owner_detail(frame)
    }

    fn table_entries(&self, first: u64, into: &mut [Option<TableEntry>]) -> Result<()> {
        let tables = self.attached()?.page_tables()?;
        kernel_records::records()?.table_entries(&tables, first, into);
        Ok(())
    }

    fn slots(&self, region: &Region, range: AddressRange, budget: &mut Budget) -> Result<Vec<SwappedRange>> {
        let tables = self.attached()?.page_tables()?;
        kernel_records::records()?.slots(&tables, region, range, budget)
    }
}

impl Attached {
    /// Reads the file `name` below `/proc/PID`, or the target of a link with this name.
    fn read(&self, file: File, name: &str, budget: &mut Budget) -> Result<Vec<u8>> {
        let memory = self.memory();
        let handle = self.handle();
        let directory = handle.directory();
        let path = match file {
            File::MainStatus
            | File::ThreadSyscall(_)
            | File::MappedFile(_)
            | File::UserNamespace
            | File::IpcNamespace
            | File::MountNamespace => name.to_owned(),
            _ => memory.path(name),
        };
        let read = match file {
            File::Program
            | File::Root
            | File::UserNamespace
            | File::IpcNamespace
            | File::MountNamespace
            | File::MappedFile(_) => directory.link(&path),
            _ => directory.read_within(&path, budget),
        };
        // The file is that of the current program. It is the expected one if its address space still exists after the
        // read.
        if file == File::Smaps && !memory.is_alive() {
            return Err(self.end_error(&memory));
        }
        budget.check()?;
        read.map_err(|error| match (file, error) {
            // Kernels without CONFIG_HAVE_ARCH_TRACEHOOK have no such file.
            (File::ThreadSyscall(thread), Errno::SRCH | Errno::NOENT) if !handle.has_exited() => {
                Error::not_available(format!("there is no thread {thread} any more"))
            }
            (File::Syscall, Errno::NOENT) if !handle.has_exited() => Error::not_available(format!(
                "this kernel does not show the registers of {} (no /proc/PID/syscall)",
                process_title(handle.pid(), memory.name(handle))
            )),
            (_, Errno::SRCH | Errno::NOENT) => handle.exit_error(memory.name(handle)),
            // Only tracers of the process may read these files.
            (File::Syscall | File::ThreadSyscall(_), error) => {
                memory::open_error(handle, memory.name(handle), &path, error)
            }
            (_, error) => Error::io(format!("reading /proc/{}/{path}", handle.pid()), error),
        })
    }

    /// Scans (PAGEMAP_SCAN) as far as possible. The kernel refuses a scan that ends above the caller's address space,
    /// which is smaller than the target's if a 32-bit pmdb inspects a 64-bit process.
    fn scan(&self, question: Scan, into: &mut [PageRegion]) -> Result<(usize, u64)> {
        let memory = self.memory();
        let end = memory::end_of_scan(question.end, memory.page);
        if question.start > end {
            return Ok((0, question.start));
        }
        let scanned = self.scan_in_pieces(&memory, Scan { end, ..question }, into, ScanPiece::FIRST);
        scanned.map_err(|error| self.access_error(&memory, "pagemap", error))
    }

    /// Queries the mappings of files one by one. `map_files` has a link for each; a process with many regions may have
    /// few. The list is empty for a process whose main thread has ended.
    fn file_mappings(&self, budget: &mut Budget) -> Result<Option<Vec<Mapping>>> {
        let Ok(starts) = self.directory().starts_of_mappings() else {
            return Ok(None);
        };
        let mut found = Vec::with_capacity(starts.len());
        for start in starts {
            budget.look()?;
            match self.query(Query::At(VirtualAddress::new(start)))? {
                Answer::Found(mapping) if mapping.start == start => found.push(mapping),
                _ => return Ok(None),
            }
        }
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    fn query(&self, question: Query) -> Result<Answer> {
        let memory = self.memory();
        let maps = self.maps(&memory)?;
        match sys::query_mapping(maps, question) {
            Ok(mapping) => Ok(Answer::Found(mapping)),
            Err(Errno::NOENT) => Ok(Answer::Nothing),
            Err(Errno::SRCH) => Err(self.end_error(&memory)),
            // ENOTTY before Linux 6.11, ENAMETOOLONG for a path that only the text can hold, or EPERM in a sandbox.
            Err(_) => Ok(Answer::Unavailable),
        }
    }
}

/// The files of the machine that stay open, and other cached answers.
#[derive(Default)]
struct LiveMachine {
    frame_files: FrameFiles,
    /// The page-map entry of a page of pmdb.
    own_entry: OnceLock<PageMapEntry>,
}

impl LiveMachine {
    /// Reads a file of the machine, or the target of a link.
    fn read(&self, file: File) -> Result<Vec<u8>> {
        let path = file.path(std::process::id());
        let name = |top: &str| path.strip_prefix(top).and_then(|name| name.strip_prefix('/')).unwrap_or(&path);
        let below = |top: &str| Directory::open(top)?.read(name(top));
        let read = match file {
            File::Release => return Ok(release()),
            File::OwnUserNamespace => Directory::open("/proc/self").and_then(|own| own.link("ns/user")),
            File::OwnIpcNamespace => Directory::open("/proc/self").and_then(|own| own.link("ns/ipc")),
            File::OwnProcessNamespace => Directory::open("/proc/self").and_then(|own| own.link("ns/pid")),
            File::OwnMaps => below("/proc/self"),
            File::OwnSmaps => Directory::open("/proc/self").and_then(|own| own.read_beginning("smaps")),
            File::OwnMounts => storage::own_text(),
            File::Setting(_) => below("/sys"),
            File::Config(place @ (ConfigPlace::Boot | ConfigPlace::Modules)) => {
                beside(&place.path(&String::from_utf8_lossy(&release())))
            }
            _ => Directory::proc().and_then(|proc| proc.read(name("/proc"))),
        };
        read.map_err(|error| Error::io(format!("reading {path}"), error))
    }

    /// Answers a probe by a trial on pmdb.
    fn probe(&self, probe: Probe<'_>) -> Result<Vec<u64>> {
        let words: Option<Vec<u64>> = match probe {
            Probe::PageBytes => Some(vec![rustix::param::page_size() as u64]),
            Probe::LittleEndian => Some(vec![u64::from(cfg!(target_endian = "little"))]),
            Probe::Machine => own_machine().map(|machine| vec![machine.into()]),
            Probe::TicksPerSecond => Some(vec![procfs::ticks_per_second()]),
            Probe::OwnEntry => self.own_entry().map(|entry| vec![entry.raw()]),
            Probe::OwnFlags => memory::own_flags(&self.frame_files).map(|flags| vec![flags.bits()]),
            Probe::FrameRight => Some(vec![u64::from(rights::has_sys_admin())]),
            Probe::OwnNumber => return own_number().map(|number| vec![number.into()]),
            Probe::User => Some(vec![rustix::process::geteuid().as_raw().into()]),
            Probe::SharedMemory => backing::shared_memory().map(Vec::from),
            Probe::Pools => backing::devices_of_pools().map(|devices| devices.concat()),
            Probe::Compare(one, other) => compare(sys::Compared::Memory, one, other).map(|order| vec![order]),
            Probe::CompareFiles(one, other) => compare(sys::Compared::Files, one, other).map(|order| vec![order]),
            Probe::FollowOwn(range) => {
                let own = Directory::open("/proc/self");
                let own = own.map_err(|error| Error::io("opening /proc/self", error))?;
                return features::follow(&own, range).map(|()| Vec::new());
            }
            Probe::OwnFilesystem(device, point) => return filesystem::own_room(device, point),
            Probe::Follow(_)
            | Probe::IsNamed(..)
            | Probe::Filesystem(..)
            | Probe::MappedFile(_)
            | Probe::Descriptor(..)
            | Probe::DescriptorMount(..)
            | Probe::DescriptorCache(..) => None,
        };
        words.ok_or_else(|| Error::not_available("the kernel does not report it"))
    }

    /// Reads the entry once. A page that is in swap at that moment is no answer.
    fn own_entry(&self) -> Option<PageMapEntry> {
        let read = || memory::own_entry().map(|entry| *self.own_entry.get_or_init(|| entry));
        self.own_entry.get().copied().or_else(read)
    }

    /// Tries which files may be read here, as far as that needs no decoding.
    fn access(&self) -> SourceAccess {
        let mut findings = vec![
            by_trying(Feature::PageMap, features::open_own_file("pagemap"), "pmdb's own page map can be opened"),
            features::other_users(),
            features::frame_numbers(),
        ];
        findings.extend(features::frame_files(&self.frame_files));
        findings.extend([
            features::cgroup_paths(),
            by_trying(Feature::Memory, features::open_own_file("mem"), "pmdb's own memory can be opened"),
            features::guard_bit(),
            features::idle_bitmap(),
            features::ksm_flag(&self.frame_files),
        ]);
        findings.extend(features::calls());
        SourceAccess { findings, credentials: directory::credentials() }
    }
}

/// Returns the `e_machine` of pmdb's executable.
fn own_machine() -> Option<u16> {
    let mut start = [0; ElfStart::BYTES];
    std::fs::File::open("/proc/self/exe").ok()?.read_exact(&mut start).ok()?;
    ElfStart::parse(&start).map(|start| start.machine)
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

/// Reads a configuration that a distribution has installed with the kernel.
fn beside(path: &str) -> rustix::io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(CWD, path, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    match u64::try_from(stat.st_size) {
        Ok(0..=ConfigPlace::MOST_BYTES) => read_all(file),
        _ => Err(Errno::FBIG),
    }
}

/// Compares two processes, with the numbers of kcmp(2).
fn compare(what: sys::Compared, one: u32, other: u32) -> Option<u64> {
    let order = rights::with_raised_rights(|| sys::compare(what, one, other))?;
    Some(match order {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    })
}
