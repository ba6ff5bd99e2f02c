//! An attached process: its identity, and its current address space.

use super::apart::Storage;
use super::directory::{Directory, read_to_end};
use super::handle::{Handle, process_title};
use super::kernel_records;
use super::memory;
use super::memory::Memory;
use super::module_file::ModuleFile;
use crate::access::{Error, Identity, Liveness, Result};
use crate::kernel::{Region, VirtualAddress, maps};
use crate::records::{AddressView, PageTables};
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, pread, retry_on_intr};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// Shared by the sources of the process and of the files behind its regions.
pub(super) struct Attached {
    handle: Arc<Handle>,
    memory: RwLock<Arc<Memory>>,
    /// The file behind a region that somebody keeps open.
    held: Mutex<Option<(Region, Weak<ModuleFile>)>>,
    /// What it saw mounted, and when.
    storage: Mutex<Option<(Instant, Arc<Storage>)>>,
}

/// For so long what a process sees mounted is not asked again where only new mounts matter: one command opens the files
/// behind many regions.
const RECENT: Duration = Duration::from_millis(20);

impl Attached {
    /// Attaches to the process `pid`.
    pub(super) fn open(pid: u32) -> Result<Self> {
        let (handle, stat) = Handle::open_with_stat(pid)?;
        let memory = Memory::of(&handle, stat)?;
        memory.maps(&handle)?;
        Ok(Self::with(Arc::new(handle), memory))
    }

    /// Attaches to a process for a quick look. Its regions and its name are read only when they are asked for.
    pub(super) fn for_a_look(handle: Arc<Handle>) -> Result<Self> {
        let memory = Memory::for_a_look(&handle)?;
        Ok(Self::with(handle, memory))
    }

    fn with(handle: Arc<Handle>, memory: Memory) -> Self {
        let memory = RwLock::new(Arc::new(memory));
        Attached { handle, memory, held: Mutex::default(), storage: Mutex::default() }
    }

    pub(super) fn identity(&self) -> Identity {
        Identity {
            pid: self.handle.pid(),
            name: self.memory().name(&self.handle).clone(),
            start_time: self.handle.start_time(),
        }
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
    pub(super) fn directory(&self) -> &Directory {
        self.handle.directory()
    }

    /// The address space as it was last opened.
    pub(super) fn memory(&self) -> Arc<Memory> {
        // The value is consistent even after a panic: it is replaced whole.
        self.memory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it sees mounted, or saw a moment ago; otherwise what `read` gives.
    pub(super) fn recent_storage(&self, read: impl FnOnce() -> Result<Arc<Storage>>) -> Result<Arc<Storage>> {
        let mut kept = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match &*kept {
            Some((when, storage)) if when.elapsed() < RECENT => Arc::clone(storage),
            _ => Arc::clone(&kept.insert((Instant::now(), read()?)).1),
        })
    }

    /// The file behind `region`, while somebody keeps it open.
    pub(super) fn open_file(&self, region: &Region) -> Option<Arc<ModuleFile>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, file) = held.as_ref()?;
        (of == region).then(|| file.upgrade()).flatten()
    }

    /// Takes note of the file behind `region` that somebody keeps open.
    pub(super) fn set_held(&self, region: &Region, file: &Arc<ModuleFile>) {
        let held = (region.clone(), Arc::downgrade(file));
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    /// Whether it is still the same program; opens the address space of the new one if not.
    pub(super) fn liveness(&self) -> Result<Liveness> {
        let exited = || Ok(Liveness::Exited(self.handle.exit_code()));
        if self.handle.has_exited() {
            return exited();
        }
        if self.memory().is_alive() {
            return Ok(Liveness::Alive);
        }
        let open = || {
            let memory = Memory::open(&self.handle)?;
            memory.maps(&self.handle)?;
            Ok(memory)
        };
        match open() {
            Ok(memory) => {
                *self.memory.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(memory);
                Ok(Liveness::Executed)
            }
            Err(Error::Gone { .. }) => exited(),
            // The files of a process without memory belong to root: the refusal may mean that it has exited.
            Err(_) if self.handle.is_exiting() => exited(),
            Err(error) => Err(error),
        }
    }

    /// Why the address space `memory` can no longer be read.
    pub(super) fn end_error(&self, memory: &Memory) -> Error {
        let has_gone = match Memory::open(&self.handle) {
            Ok(now) => !now.is_alive(),
            Err(Error::Gone { .. }) => true,
            Err(_) => self.handle.is_exiting(),
        };
        if has_gone {
            return self.handle.exit_error(memory.name(&self.handle));
        }
        let who = process_title(self.handle.pid(), memory.name(&self.handle));
        Error::gone(format!("{who} has executed another program: earlier answers about its memory no longer hold"))
    }

    /// An error of a system call on a file of the address space `memory`.
    pub(super) fn access_error(&self, memory: &Memory, file: &str, error: Errno) -> Error {
        match error {
            Errno::SRCH => self.end_error(memory),
            error => Error::io(format!("reading /proc/{}/{}", self.handle.pid(), memory.path(file)), error),
        }
    }

    /// `/proc/PID/maps` of the address space `memory`.
    pub(super) fn maps<'m>(&self, memory: &'m Memory) -> Result<&'m OwnedFd> {
        let maps = memory.maps(&self.handle);
        maps.map_err(|error| if memory.is_alive() { error } else { self.end_error(memory) })
    }

    /// All of it. Empty when the address space is gone.
    pub(super) fn maps_text(&self, memory: &Memory) -> Result<Vec<u8>> {
        let maps = self.maps(memory)?;
        read_to_end(|text, so_far| pread(maps, spare_capacity(text), so_far))
            .map_err(|error| self.access_error(memory, "maps", error))
    }

    /// Appends what one read gives of it from `offset` on. A live address space always has regions.
    pub(super) fn maps_from(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        let memory = self.memory();
        let maps = self.maps(&memory)?;
        let read = retry_on_intr(|| pread(maps, spare_capacity(into), offset))
            .map_err(|error| self.access_error(&memory, "maps", error))?;
        match (offset, read) {
            (0, 0) if !memory.is_alive() => Err(self.end_error(&memory)),
            _ => Ok(read),
        }
    }

    pub(super) fn entries(&self, first: u64, into: &mut [u64]) -> Result<usize> {
        let memory = self.memory();
        let read = memory::read_words(&memory.page_map, first, into)
            .map_err(|error| self.access_error(&memory, "pagemap", error))?;
        // The page map of a dead address space ends at once: only that of a live one tells where memory ends.
        if read < into.len() && !memory.is_alive() {
            return Err(self.end_error(&memory));
        }
        Ok(read)
    }

    /// The page tables of the address space, as they are in the kernel's memory.
    pub(super) fn page_tables(&self) -> Result<PageTables> {
        let memory = self.memory();
        if let Some(tables) = memory.tables.get() {
            return Ok(*tables);
        }
        let found = kernel_records::records()?.tables(&LiveView { attached: self, memory: &memory })?;
        Ok(*memory.tables.get_or_init(|| found))
    }

    /// Clears the soft-dirty bits of the address space, if it is still the known one.
    pub(super) fn clear_soft_dirty(&self) -> Result<()> {
        /// `CLEAR_REFS_SOFT_DIRTY` in fs/proc/task_mmu.c: the other numbers clear other things.
        const SOFT_DIRTY: &[u8] = b"4";
        let memory = self.memory();
        if !memory.is_alive() {
            return Err(self.end_error(&memory));
        }
        let path = memory.path("clear_refs");
        let written = self.handle.directory().write(&path, SOFT_DIRTY);
        written.map_err(|error| match error {
            Errno::SRCH | Errno::NOENT => self.end_error(&memory),
            Errno::ACCESS | Errno::PERM => Error::not_permitted(
                format!("may not write to /proc/{}/{path}", self.handle.pid()),
                "only the user that the process runs as and root may clear its soft-dirty bits",
            ),
            error => Error::io(format!("writing to /proc/{}/{path}", self.handle.pid()), error),
        })
    }

    pub(super) fn read_memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let memory = self.memory();
        let contents = memory.contents(&self.handle)?;
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            // `pread` takes no offset in the upper half, where only the kernel and gate pages are.
            let from = address.checked_add(done as u64);
            let Some(from) = from.filter(|from| i64::try_from(from.get()).is_ok()) else {
                break;
            };
            match retry_on_intr(|| pread(contents, &mut *rest, from.get())) {
                // A guard page, a hole, a page beyond the end of its file.
                Err(Errno::IO | Errno::FAULT) => break,
                Err(error) => return Err(self.access_error(&memory, "mem", error)),
                Ok(0) => break,
                Ok(read) => done += read,
            }
        }
        if done < into.len() && !memory.is_alive() {
            return Err(self.end_error(&memory));
        }
        Ok(done)
    }
}

/// What `/proc` says of the address space `memory`.
struct LiveView<'a> {
    attached: &'a Attached,
    memory: &'a Memory,
}

impl AddressView for LiveView<'_> {
    fn entries(&self, first: u64, into: &mut [u64]) -> Option<()> {
        let read = memory::read_words(&self.memory.page_map, first, into).ok()?;
        (read == into.len()).then_some(())
    }

    fn regions(&self) -> Vec<Region> {
        let text = self.attached.maps_text(self.memory).unwrap_or_default();
        maps::parse(&text).unwrap_or_default()
    }

    fn number(&self) -> Option<u32> {
        /// `PROC_PID_INIT_INO` in include/linux/proc_ns.h.
        const FIRST: u64 = 0xeffffffc;
        let (proc, own) = (Directory::proc().ok()?, rustix::process::getpid().as_raw_nonzero().get());
        // Of the namespace of pmdb, and of that of this /proc.
        let is_first = proc.file("self/ns/pid").and_then(rustix::fs::fstat).is_ok_and(|stat| stat.st_ino == FIRST);
        let is_same = proc.read("self/stat").is_ok_and(|stat| stat.starts_with(format!("{own} ").as_bytes()));
        (is_first && is_same).then(|| self.attached.handle.pid())
    }
}
