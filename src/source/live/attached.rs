//! An attached process: its identity, and its current address space.

use super::directory::{Directory, read_to_end};
use super::handle::{Handle, process_title};
use super::kernel_records;
use super::memory;
use super::memory::Memory;
use super::module_file::ModuleFile;
use super::pause::Pauses;
use super::storage::Storage;
use super::{PageRegion, Scan, sys};
use crate::access::{Error, Identity, Liveness, Result};
use crate::kernel::{Region, VirtualAddress, maps};
use crate::records::{AddressView, PageTables};
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, pread, retry_on_intr};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// The state that the sources of a process and of its mapped files share.
pub(super) struct Attached {
    handle: Arc<Handle>,
    memory: RwLock<Arc<Memory>>,
    /// The file that a region maps, while a caller keeps it open.
    held: Mutex<Option<(Region, Weak<ModuleFile>)>>,
    /// The mounts that the process sees, and when they were read.
    storage: Mutex<Option<(Instant, Arc<Storage>)>>,
    /// The pauses between reads of the page map.
    pauses: Pauses,
}

/// The number of entries that are read at a time: some 70 µs of work.
const READ_PIECE: usize = 2 << 10;

/// The limits of one scan: 0.1 to 0.4 ms of work for dense memory.
#[derive(Clone, Copy)]
pub(super) struct ScanPiece {
    /// The most populated pages.
    found: u64,
    /// The most pages of address space.
    pages: u64,
}

impl ScanPiece {
    /// The fewest pages that are worth a system call.
    const LEAST: u64 = 1 << 15;
    /// With pages of 4 KiB, 1,024 scans pass over 16 TiB that was never touched, in less than 1 ms.
    const MOST: u64 = 1 << 22;

    pub(super) const FIRST: ScanPiece = ScanPiece { found: 8 << 10, pages: ScanPiece::LEAST };

    /// Where a scan from `start` on ends: it cuts no huge page.
    fn end(self, start: u64, page: u64) -> u64 {
        let bytes = self.pages.saturating_mul(page);
        (start / bytes).saturating_add(1).saturating_mul(bytes)
    }

    /// The limits of the next scan. Memory that was given back page by page may keep its page tables: a scan of 1 GiB
    /// of empty ones takes 1 ms and more, and a scan of 1 TiB without any takes 1 µs.
    fn after(self, took: Duration) -> ScanPiece {
        let pages = match took.as_micros() {
            ..100 => self.pages * 2,
            100..=400 => self.pages,
            _ => self.pages / 2,
        };
        ScanPiece { pages: pages.clamp(ScanPiece::LEAST, ScanPiece::MOST), ..self }
    }
}

/// Joins `count` new ranges with the `found` ones before them: the first new one may continue the last found one.
/// Returns the number of ranges.
fn joined(stretches: &mut [PageRegion], found: usize, count: usize) -> usize {
    let all = found + count;
    if let Some([.., last, next]) = stretches.get_mut(..=found)
        && count > 0
        && last.end == next.start
        && last.categories == next.categories
    {
        last.end = next.end;
        stretches.copy_within(found + 1..all, found);
        return all - 1;
    }
    all
}

/// How long the mounts of a process are cached when only new mounts matter. One command opens the files of many
/// regions.
const RECENT: Duration = Duration::from_millis(20);

impl Attached {
    /// Attaches to the process `pid`.
    pub(super) fn open(pid: u32) -> Result<Self> {
        let (handle, stat) = Handle::open_with_stat(pid)?;
        let memory = Memory::of(&handle, stat)?;
        memory.maps(&handle)?;
        Ok(Self::with(Arc::new(handle), memory))
    }

    /// Attaches to a process for a short inspection. Regions and name are read only when they are needed.
    pub(super) fn for_a_look(handle: Arc<Handle>) -> Result<Self> {
        let memory = Memory::for_a_look(&handle)?;
        Ok(Self::with(handle, memory))
    }

    fn with(handle: Arc<Handle>, memory: Memory) -> Self {
        let memory = RwLock::new(Arc::new(memory));
        Attached { handle, memory, held: Mutex::default(), storage: Mutex::default(), pauses: Pauses::default() }
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

    /// Returns the address space that was last opened.
    pub(super) fn memory(&self) -> Arc<Memory> {
        // The value is consistent even after a panic, because it is replaced as a whole.
        self.memory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the cached mounts of the process, if they are recent; otherwise those that `read` returns.
    pub(super) fn recent_storage(&self, read: impl FnOnce() -> Result<Arc<Storage>>) -> Result<Arc<Storage>> {
        let mut kept = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match &*kept {
            Some((when, storage)) if when.elapsed() < RECENT => Arc::clone(storage),
            _ => Arc::clone(&kept.insert((Instant::now(), read()?)).1),
        })
    }

    /// Returns the file that `region` maps, while a caller keeps it open.
    pub(super) fn open_file(&self, region: &Region) -> Option<Arc<ModuleFile>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, file) = held.as_ref()?;
        (of == region).then(|| file.upgrade()).flatten()
    }

    /// Remembers the file that `region` maps, while a caller keeps it open.
    pub(super) fn set_held(&self, region: &Region, file: &Arc<ModuleFile>) {
        let held = (region.clone(), Arc::downgrade(file));
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    /// Returns whether the process still runs the same program. If not, opens the address space of the new one.
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
            // The files of a process without memory belong to root, so the refusal may mean that it has exited.
            Err(_) if self.handle.is_exiting() => exited(),
            Err(error) => Err(error),
        }
    }

    /// Returns the error why the address space `memory` can no longer be read.
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

    /// Converts the error of a system call on a file of the address space `memory`.
    pub(super) fn access_error(&self, memory: &Memory, file: &str, error: Errno) -> Error {
        match error {
            Errno::SRCH => self.end_error(memory),
            error => Error::io(format!("reading /proc/{}/{}", self.handle.pid(), memory.path(file)), error),
        }
    }

    /// Returns `/proc/PID/maps` of the address space `memory`.
    pub(super) fn maps<'m>(&self, memory: &'m Memory) -> Result<&'m OwnedFd> {
        let maps = memory.maps(&self.handle);
        maps.map_err(|error| if memory.is_alive() { error } else { self.end_error(memory) })
    }

    /// Reads all of `/proc/PID/maps`. Empty if the address space is gone.
    pub(super) fn maps_text(&self, memory: &Memory) -> Result<Vec<u8>> {
        let maps = self.maps(memory)?;
        read_to_end(|text, so_far| pread(maps, spare_capacity(text), so_far))
            .map_err(|error| self.access_error(memory, "maps", error))
    }

    /// Appends the result of one read of `/proc/PID/maps` from `offset` on. A live address space always has regions.
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
        let read = self.read_entries(&memory, first, into);
        let read = read.map_err(|error| self.access_error(&memory, "pagemap", error))?;
        // The page map of a dead address space ends at once: its end is that of memory only for a live one.
        if read < into.len() && !memory.is_alive() {
            return Err(self.end_error(&memory));
        }
        Ok(read)
    }

    /// Calls `read`, which holds the lock of the address space, after a pause if one is due.
    fn between_pauses<T>(&self, read: impl FnOnce() -> T) -> T {
        self.pauses.around(|| self.handle.sleeps(), read)
    }

    /// Reads page-map entries in pieces, with pauses.
    fn read_entries(&self, memory: &Memory, first: u64, into: &mut [u64]) -> rustix::io::Result<usize> {
        let mut so_far = 0;
        for piece in into.chunks_mut(READ_PIECE) {
            let wanted = piece.len();
            let read = self.between_pauses(|| memory::read_words(&memory.page_map, first + so_far as u64, piece))?;
            so_far += read;
            if read < wanted {
                break;
            }
        }
        Ok(so_far)
    }

    /// Scans (PAGEMAP_SCAN) in pieces. Ranges that were split between two pieces are joined.
    pub(super) fn scan_in_pieces(
        &self,
        memory: &Memory,
        question: Scan,
        into: &mut [PageRegion],
        mut piece: ScanPiece,
    ) -> rustix::io::Result<(usize, u64)> {
        let page = memory.page.bytes();
        let mut left = if question.max_pages == 0 { u64::MAX } else { question.max_pages };
        let (mut found, mut start) = (0, question.start);
        loop {
            let end = question.end.min(piece.end(start, page));
            let now = Scan { start, end, max_pages: left.min(piece.found), ..question };
            let room = into.get_mut(found..).unwrap_or_default();
            let (answer, took) = self.between_pauses(|| {
                let begun = Instant::now();
                (sys::scan(&memory.page_map, now, room), begun.elapsed())
            });
            let (count, stopped) = match answer {
                Err(Errno::INTR) => continue,
                answer => answer?,
            };
            piece = piece.after(took);
            let new = room.get(..count).unwrap_or_default();
            let reported: u64 = new.iter().map(|stretch| (stretch.end - stretch.start) / page).sum();
            let stopped = stopped.max(new.last().map_or(0, |stretch| stretch.end));
            left = left.saturating_sub(reported);
            found = joined(into, found, count);
            if stopped <= start || stopped >= question.end || left == 0 || found >= into.len() {
                return Ok((found, stopped));
            }
            start = stopped;
        }
    }

    /// Returns the page tables of the address space, found in the kernel's memory.
    pub(super) fn page_tables(&self) -> Result<PageTables> {
        let memory = self.memory();
        if let Some(tables) = memory.tables.get() {
            return Ok(*tables);
        }
        let found = kernel_records::records()?.tables(&LiveView { attached: self, memory: &memory })?;
        Ok(*memory.tables.get_or_init(|| found))
    }

    /// Clears the soft-dirty bits of the process, unless it now has another address space.
    pub(super) fn clear_soft_dirty(&self) -> Result<()> {
        /// `CLEAR_REFS_SOFT_DIRTY` in fs/proc/task_mmu.c. Other numbers clear other bits.
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
            // `pread` accepts no offset in the upper half, which has only the kernel and gate pages.
            let from = address.checked_add(done as u64);
            let Some(from) = from.filter(|from| i64::try_from(from.get()).is_ok()) else {
                break;
            };
            match retry_on_intr(|| pread(contents, &mut *rest, from.get())) {
                // A guard page, a hole, or a page past the end of its file.
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

/// The view of `/proc` on the address space `memory`.
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
        // Whether pmdb is in the initial PID namespace, and this /proc is that of pmdb's namespace.
        let is_first = proc.file("self/ns/pid").and_then(rustix::fs::fstat).is_ok_and(|stat| stat.st_ino == FIRST);
        let is_same = proc.read("self/stat").is_ok_and(|stat| stat.starts_with(format!("{own} ").as_bytes()));
        (is_first && is_same).then(|| self.attached.handle.pid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Categories;

    #[test]
    fn a_scan_in_pieces_finds_the_same() {
        const PIECE: usize = 64;
        let page = rustix::param::page_size();
        let bytes = 3 * PIECE * page;
        // An area of its own, most of which nobody has touched.
        let mut memory = vec![0_u8; bytes.max(8 << 20)];
        // Some pages are empty, so that there are several stretches.
        for part in memory.chunks_mut(bytes / 5).take(5) {
            let written = part.len().saturating_sub(8 * page);
            part.get_mut(..written).unwrap_or_default().fill(1);
        }
        let attached = Attached::open(std::process::id()).expect("to attach to itself");
        let own = attached.memory();
        let start = (memory.as_ptr().addr() as u64).next_multiple_of(own.page.bytes());
        let end = start + (bytes as u64 - own.page.bytes()) / own.page.bytes() * own.page.bytes();
        let present = Categories::PRESENT.bits();
        for max_pages in [0, 80, PIECE as u64 + 1] {
            let question = Scan { start, end, any_of: present, returned: present, max_pages };
            let mut whole = vec![PageRegion::default(); 64];
            let Ok((count, stopped)) = sys::scan(&own.page_map, question, &mut whole) else {
                // Linux 6.7 has it.
                return;
            };
            let ends = |all: &[PageRegion]| all.iter().map(|one| (one.start, one.end)).collect::<Vec<_>>();
            for piece in
                [ScanPiece { found: PIECE as u64, ..ScanPiece::FIRST }, ScanPiece { pages: 16, ..ScanPiece::FIRST }]
            {
                let mut pieces = vec![PageRegion::default(); 64];
                let (found, at) = attached.scan_in_pieces(&own, question, &mut pieces, piece).expect("a scan");
                assert_eq!((ends(&pieces[..found]), at), (ends(&whole[..count]), stopped), "{max_pages}");
            }
        }
    }

    #[test]
    fn a_scan_goes_as_far_as_the_last_one_was_short() {
        let micros = Duration::from_micros;
        let after = |pages, took| ScanPiece { pages, ..ScanPiece::FIRST }.after(took).pages;
        let few = 4 * ScanPiece::LEAST;
        assert_eq!([99, 100, 400, 401].map(|took| after(few, micros(took)) / ScanPiece::LEAST), [8, 4, 4, 2]);
        assert_eq!(after(ScanPiece::LEAST, micros(9000)), ScanPiece::LEAST);
        assert_eq!(after(ScanPiece::MOST, micros(0)), ScanPiece::MOST);
        // Ends are multiples of its size, so that no huge page is cut.
        let page = rustix::param::page_size() as u64;
        let bytes = ScanPiece::LEAST * page;
        assert_eq!([0, page, bytes].map(|start| ScanPiece::FIRST.end(start, page)), [bytes, bytes, 2 * bytes]);
    }

    #[test]
    fn stretches_that_go_on_are_joined() {
        let stretch = |start, end, categories| PageRegion { start, end, categories };
        let mut all = [stretch(1, 2, 8), stretch(2, 3, 8), stretch(5, 6, 8)];
        assert_eq!(joined(&mut all, 1, 2), 2);
        assert_eq!((all[0].end, all[1].start), (3, 5));
        for next in [stretch(3, 4, 8), stretch(2, 4, 9)] {
            let mut all = [stretch(1, 2, 8), next];
            assert_eq!(joined(&mut all, 1, 1), 2);
        }
        assert_eq!(joined(&mut [stretch(1, 2, 8)], 0, 1), 1);
        assert_eq!(joined(&mut [stretch(1, 2, 8)], 1, 0), 1);
    }
}
