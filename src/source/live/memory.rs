//! Files that the kernel ties to one address space when they are opened, and that read as empty after an exec. Files
//! with a 64-bit word for each page: page maps, `/proc/kpageflags`, `kpagecount` and `kpagecgroup`; and their words for
//! a page of pmdb.
//!
//! pmdb knows the correct words for its page, and so notices if the kernel hides or misreports them.

use super::directory::{self, Directory, own_file};
use super::handle::{Handle, process_title};
use crate::access::{Error, MemoryLifetime, Result};
use crate::kernel::status::{Stat, Status};
use crate::kernel::{Device, Name, PageFlags, PageMapEntry, PageSize, WordFile};
use crate::own::rights;
use crate::records::PageTables;
use crate::source::{PageRegion, Scan, covered_pages, sys};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::convert::Infallible;
use std::sync::OnceLock;

/// The address space of a process while it runs the same program.
pub(super) struct Memory {
    /// The name of the process when this was opened, or when the process was listed.
    name: OnceLock<Name>,
    /// The page size of the process.
    pub(super) page: PageSize,
    /// `/proc/PID/pagemap`
    pub(super) page_map: OwnedFd,
    /// A thread that still runs, if the main thread has ended: `/proc/PID/maps` and others are empty then.
    thread: Option<u32>,
    /// Device and inode of the executable, if known.
    program: OnceLock<Option<(Device, u64)>>,
    maps: OnceLock<Result<OwnedFd>>,
    contents: OnceLock<Result<OwnedFd>>,
    /// The page tables, once they were found.
    pub(super) tables: OnceLock<PageTables>,
}

impl Memory {
    /// Opens the page map of the current address space of the process.
    pub(super) fn open(handle: &Handle) -> Result<Self> {
        Self::of(handle, handle.stat()?)
    }

    /// Opens the page map, with the current `stat`.
    pub(super) fn of(handle: &Handle, stat: Stat) -> Result<Self> {
        Self::with_name(stat.name.into(), handle)
    }

    /// Opens the page map. The name is read only when it is needed.
    pub(super) fn for_a_look(handle: &Handle) -> Result<Self> {
        Self::with_name(OnceLock::new(), handle)
    }

    fn with_name(name: OnceLock<Name>, handle: &Handle) -> Result<Self> {
        let (thread, page_map) = open_page_map(handle).map_err(|error| {
            let name = name.get_or_init(|| handle.first_name());
            let who = process_title(handle.pid(), name);
            let stat = handle.stat().ok();
            match error {
                // The files of a kernel thread have another owner and no contents.
                _ if stat.as_ref().is_some_and(|stat| stat.is_kernel_thread) => {
                    Error::not_available(format!("{who} is a kernel thread: it has no memory of its own"))
                }
                Errno::SRCH | Errno::NOENT if stat.as_ref().is_some_and(is_zombie) => {
                    Error::gone(format!("{who} is a zombie: it has exited, and its parent has not waited for it yet"))
                }
                Errno::SRCH | Errno::NOENT => handle.exit_error(name),
                error => open_error(handle, name, "pagemap", error),
            }
        })?;
        Ok(Memory {
            name,
            page: PageSize::from_bytes(rustix::param::page_size() as u64).unwrap_or(PageSize::FOUR_KIB),
            page_map,
            thread,
            program: OnceLock::new(),
            maps: OnceLock::new(),
            contents: OnceLock::new(),
            tables: OnceLock::new(),
        })
    }

    /// Returns the name of the process; empty if the process ended before the first call.
    pub(super) fn name(&self, handle: &Handle) -> &Name {
        self.name.get_or_init(|| handle.first_name())
    }

    /// Returns the path of a file below `/proc/PID`, for a thread that still runs.
    pub(super) fn path(&self, file: &str) -> String {
        path(self.thread, file)
    }

    /// Returns whether its executable has this device and inode (`stat`). `process` is the directory of the process.
    pub(super) fn is_of_program(&self, file: (Device, u64), process: &Directory) -> bool {
        *self.program.get_or_init(|| process.behind_link("exe").ok()) == Some(file)
    }

    /// Returns whether the address space still exists.
    pub(super) fn is_alive(&self) -> bool {
        has_memory(&self.page_map)
    }

    /// Returns `/proc/PID/maps` of the same address space as the page map.
    pub(super) fn maps(&self, handle: &Handle) -> Result<&OwnedFd> {
        let open = || {
            let (path, name) = (self.path("maps"), self.name(handle));
            let opened = handle.directory().file(&path);
            let maps = opened.map_err(|error| open_error(handle, name, &path, error));
            // `maps` was opened after the page map: after an exec in between it is of the new program.
            if self.is_alive() { maps } else { Err(handle.exit_error(name)) }
        };
        open_once(&self.maps, open)
    }

    /// Returns `/proc/PID/mem`, opened when it is first needed, because it needs more rights than the page map.
    pub(super) fn contents(&self, handle: &Handle) -> Result<&OwnedFd> {
        let open = || {
            let (path, name) = (self.path("mem"), self.name(handle));
            let opened = handle.directory().file(&path);
            opened.map_err(|error| match error {
                Errno::SRCH | Errno::NOENT => handle.exit_error(name),
                error => open_error(handle, name, &path, error),
            })
        };
        open_once(&self.contents, open)
    }
}

impl MemoryLifetime for Memory {
    fn is_alive(&self) -> bool {
        self.is_alive()
    }
}

/// Returns the cached result of `open`. An error is cached if it is permanent, and not if files or memory were short.
fn open_once(place: &OnceLock<Result<OwnedFd>>, open: impl FnOnce() -> Result<OwnedFd>) -> Result<&OwnedFd> {
    let opened = match place.get() {
        Some(opened) => opened,
        None => match open() {
            Err(error) if error.is_passing() => return Err(error),
            opened => place.get_or_init(|| opened),
        },
    };
    opened.as_ref().map_err(Clone::clone)
}

fn path(thread: Option<u32>, file: &str) -> String {
    match thread {
        Some(thread) => format!("task/{thread}/{file}"),
        None => file.to_owned(),
    }
}

/// Opens the page map of the process. If its main thread has ended, opens that of any thread that still has memory (see
/// sourceware bug 31207).
fn open_page_map(handle: &Handle) -> rustix::io::Result<(Option<u32>, OwnedFd)> {
    let directory = handle.directory();
    // Before Linux 6.12 the page map of a thread that has ended can be opened, and is empty.
    let open = |thread| match directory.file(&path(thread, "pagemap")) {
        Ok(file) if !has_memory(&file) => Err(Errno::SRCH),
        opened => opened,
    };
    match open(None) {
        Ok(file) => return Ok((None, file)),
        // The files of a zombie belong to root, so that others get EACCES instead of the error for missing memory.
        Err(error) if error != Errno::SRCH && !handle.stat().is_ok_and(|stat| is_zombie(&stat)) => return Err(error),
        Err(_) => {}
    }
    let mut failure = Errno::SRCH;
    for thread in directory.numbers("task")? {
        match open(Some(thread)) {
            Ok(file) => return Ok((Some(thread), file)),
            Err(error) if thread != handle.pid() => failure = error,
            Err(_) => {}
        }
    }
    Err(failure)
}

/// Returns whether a page map has an address space: it then has an entry for address 0, mapped or not.
fn has_memory(page_map: &OwnedFd) -> bool {
    let mut first = [0];
    read_words(page_map, 0, &mut first).is_ok_and(|read| read == 1)
}

/// Returns whether the main thread has ended and was not reaped.
fn is_zombie(stat: &Stat) -> bool {
    stat.state == 'Z'
}

/// Returns why a file of a process may not be opened, with a remedy.
pub(super) fn open_error(handle: &Handle, name: &Name, file: &str, error: Errno) -> Error {
    let who = process_title(handle.pid(), name);
    let path = format!("/proc/{}/{file}", handle.pid());
    if error != Errno::ACCESS && error != Errno::PERM {
        return Error::io(format!("opening {path} of {who}"), error);
    }
    let what = format!("may not open {path} of {who}");
    let may_be_yama = is_for_tracers(file) && handle.directory().file(&beside(file, "pagemap")).is_ok();
    if may_be_yama && let Some((why, remedy)) = yama(rights::has_sys_ptrace()) {
        return Error::not_permitted(format!("{what}: {why}"), remedy);
    }
    let is_one_namespace = rights::in_first_user_namespace() != Some(false);
    let has_rights = rights::holds(TO_LOOK);
    let why = why_refused(own_status().as_ref(), handle.status().as_ref(), has_rights, is_one_namespace);
    Error::not_permitted(format!("{what}: {why}"), rights::way_to(TO_LOOK))
}

/// The capabilities that override each refusal to inspect a process in the same user namespace, except that of a
/// security module.
const TO_LOOK: &str = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";

/// Returns why a process may not be inspected, as far as the statuses of pmdb and of the process prove it. If pmdb is
/// in another user namespace than the initial one, the process may be in yet another.
fn why_refused(own: Option<&Status>, process: Option<&Status>, has_rights: bool, is_one_namespace: bool) -> String {
    match own.zip(process).map(|(own, process)| own.refused_by(process, is_one_namespace)) {
        // Users, groups and capabilities are no reasons then. The remedy lists the possible ones.
        _ if has_rights => "permission denied".into(),
        Some(Some(why)) => why,
        Some(None) => "it is not dumpable (it changed its ids, or requested that), is in another user namespace, or a \
                       security module protects it"
            .into(),
        None => "permission denied".into(),
    }
}

/// Reads the status of pmdb.
fn own_status() -> Option<Status> {
    Status::parse(&directory::read_all(directory::own_file("status").ok()?).ok()?).ok()
}

/// Returns whether a file is readable only for tracers of the process (PTRACE_MODE_ATTACH), which Yama can restrict
/// further.
fn is_for_tracers(file: &str) -> bool {
    matches!(file.rsplit('/').next(), Some("mem" | "syscall"))
}

/// Returns the file `name` in the directory of another file of the process.
fn beside(file: &str, name: &str) -> String {
    file.rsplit_once('/').map_or_else(|| name.to_owned(), |(directory, _)| format!("{directory}/{name}"))
}

/// Returns why Yama refuses tracing of a process that may be inspected, with a remedy; `None` if Yama does not refuse.
/// A process of another user, one that is not dumpable, and one with more rights may not be inspected either: the
/// kernel checks these first (__ptrace_may_access in kernel/ptrace.c), and Yama only for tracing.
fn yama(has_right: bool) -> Option<(String, String)> {
    let text = Directory::proc().and_then(|proc| proc.read(YAMA)).ok()?;
    let scope = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
    yama_at(scope, has_right)
}

const YAMA: &str = "sys/kernel/yama/ptrace_scope";

/// Decides for a scope of Yama, like `yama_ptrace_access_check` in security/yama/yama_lsm.c.
fn yama_at(scope: u32, has_right: bool) -> Option<(String, String)> {
    let who_may = match scope {
        // Scope 3 has no exception, and cannot be lowered (`yama_dointvec_minmax`).
        3.. => {
            let why = format!("Yama allows it to nobody (ptrace_scope {scope})");
            let remedy = "restart the machine with kernel.yama.ptrace_scope below 3: until then it cannot be lowered";
            return Some((why, remedy.to_owned()));
        }
        1 if !has_right => "only to ancestors of the process",
        2 if !has_right => "only with CAP_SYS_PTRACE",
        _ => return None,
    };
    let why = format!("Yama allows it {who_may} (ptrace_scope {scope})");
    Some((why, format!("{}, or set /proc/{YAMA} to 0 as root", rights::way_to("CAP_SYS_PTRACE"))))
}

/// Reads words from `first` on, and returns how many were read: fewer than `into` holds at the end of the file.
pub(super) fn read_words(file: impl AsFd, first: u64, into: &mut [u64]) -> rustix::io::Result<usize> {
    let is_wrapped = cfg!(target_pointer_width = "32") && first >= WRAPPED && offsets_wrap();
    if first > LAST || is_wrapped { Ok(0) } else { sys::read_words(file, first, into) }
}

/// The last possible word of a file, because offsets are signed. The kernel calls a larger offset invalid.
const LAST: u64 = i64::MAX as u64 / 8 - 1;

/// The first word whose offset needs more than 32 bits.
const WRAPPED: u64 = 1 << 29;

/// Returns whether this is a 32-bit kernel. It uses only the lower half of an offset (`unsigned long src = *ppos` in
/// fs/proc/task_mmu.c and fs/proc/page.c), so that the file begins again at 4 GiB. The page map of a 32-bit program has
/// no entries there, so if a word is read, it is that from the beginning.
fn offsets_wrap() -> bool {
    static WRAP: OnceLock<bool> = OnceLock::new();
    *WRAP.get_or_init(|| {
        own_file("pagemap").is_ok_and(|own| sys::read_words(&own, WRAPPED, &mut [0]).is_ok_and(|read| read > 0))
    })
}

/// The files with a word for each frame.
pub(super) struct FrameFiles([FrameFile; WordFile::OF_FRAMES.len()]);

impl Default for FrameFiles {
    fn default() -> Self {
        FrameFiles(WordFile::OF_FRAMES.map(|is| FrameFile { is, file: OnceLock::new() }))
    }
}

impl FrameFiles {
    /// Reads words of `file` from frame `first` on, and returns how many were read: fewer than `into` holds at the end
    /// of physical memory.
    pub(super) fn read(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        let of_frames = self.0.iter().find(|one| one.is == file);
        let missing = || Error::not_available(format!("{} has no words of frames", file.name()));
        of_frames.ok_or_else(missing)?.read(first, into)
    }
}

/// A file with a word for each frame, opened when it is first read.
struct FrameFile {
    is: WordFile,
    file: OnceLock<Result<OwnedFd>>,
}

impl FrameFile {
    /// Reads words from `first` on, and returns how many were read: fewer than `into` holds at the end of physical
    /// memory.
    fn read(&self, first: u64, into: &mut [u64]) -> Result<usize> {
        let file = self.file.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)?;
        read_words(file, first, into).map_err(|error| Error::io(format!("reading /proc/{}", self.is.name()), error))
    }

    fn open(&self) -> Result<OwnedFd> {
        let name = self.is.name();
        let opened = Directory::proc().and_then(|proc| proc.file(name));
        let file = opened.map_err(|error| match error {
            Errno::ACCESS | Errno::PERM => Error::not_permitted(
                format!("cannot open /proc/{name}: permission denied"),
                rights::way_to("CAP_DAC_READ_SEARCH"),
            ),
            Errno::NOENT => Error::not_available(format!(
                "there is no /proc/{name} (no {}, or this /proc is mounted with subset=pid)",
                self.is.option()
            )),
            error => Error::io(format!("opening /proc/{name}"), error),
        })?;
        // Containers mount an empty file over it to hide it. Every machine has memory, so the real file is never empty.
        let mut first = [0u64];
        match read_words(&file, 0, &mut first) {
            Ok(0) => Err(Error::not_available(format!("/proc/{name} is empty: something hides it, as containers do"))),
            _ => Ok(file),
        }
    }
}

/// Returns the flags of a private anonymous page that no other process maps.
pub(super) fn own_flags(files: &FrameFiles) -> Option<PageFlags> {
    let mut flags = [0];
    let read = files.read(WordFile::FrameFlags, own_entry()?.frame()?.get(), &mut flags).ok()?;
    (read == 1).then_some(PageFlags::from_bits_retain(flags[0]))
}

/// Returns the page-map entry of a private anonymous page of pmdb, if the page is resident.
pub(super) fn own_entry() -> Option<PageMapEntry> {
    let page = std::hint::black_box(Box::new(std::process::id()));
    let entry = own_entry_at((&raw const *page).addr() as u64);
    std::hint::black_box(&page);
    entry.filter(|entry| entry.is_present())
}

/// Returns the page-map entry of an address in this program.
pub(super) fn own_entry_at(address: u64) -> Option<PageMapEntry> {
    let index = address / rustix::param::page_size() as u64;
    let mut entry = [0];
    let read = read_words(own_file("pagemap").ok()?, index, &mut entry).ok()?;
    (read == 1).then_some(PageMapEntry::new(entry[0]))
}

/// Returns the lower of `end` and the end of the addresses that this program may scan. Ends below pmdb's stack, which
/// is near that limit, need no system call.
pub(super) fn end_of_scan(end: u64, page: PageSize) -> u64 {
    let on_the_stack = 0u8;
    let here = (&raw const on_the_stack).addr() as u64;
    if end <= here { end } else { end.min(end_of_scans(page)) }
}

/// Returns the end of the addresses that this program may scan: that of its address space (`access_ok` in
/// `pagemap_scan_get_args`), which may be below that of its page map. 0 if the page map cannot be read.
fn end_of_scans(page: PageSize) -> u64 {
    static PAGES: OnceLock<u64> = OnceLock::new();
    let pages = *PAGES.get_or_init(|| {
        let Ok(own) = own_file("pagemap") else {
            return 0;
        };
        let covers = |index: u64| {
            let one = Scan { end: (index + 1) << page.shift(), max_pages: 1, ..Scan::default() };
            let is_read = read_words(&own, index, &mut [0]).is_ok_and(|read| read == 1);
            let is_scanned = || sys::scan(&own, one, &mut [PageRegion::default()]);
            Ok::<_, Infallible>(is_read && is_scanned() != Err(Errno::FAULT))
        };
        covered_pages(page, covers).unwrap_or_else(|never| match never {})
    });
    pages << page.shift()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yama_is_named_where_it_refuses_with_what_helps_at_its_scope() {
        for file in ["mem", "task/12/mem", "syscall", "task/12/syscall"] {
            assert!(is_for_tracers(file), "{file}");
        }
        // Looking is not tracing: Yama does not restrict it.
        for file in ["pagemap", "maps", "task/12/maps", "smaps"] {
            assert!(!is_for_tracers(file), "{file}");
        }
        assert_eq!(beside("mem", "pagemap"), "pagemap");
        assert_eq!(beside("task/12/mem", "pagemap"), "task/12/pagemap");
        for (scope, has_right, says, helps) in [
            (0, false, None, ""),
            (1, false, Some("only to ancestors of the process (ptrace_scope 1)"), "ptrace_scope to 0"),
            (2, false, Some("only with CAP_SYS_PTRACE (ptrace_scope 2)"), "ptrace_scope to 0"),
            (3, false, Some("to nobody (ptrace_scope 3)"), "restart the machine"),
            // The right outdoes all but the last scope.
            (1, true, None, ""),
            (2, true, None, ""),
            (3, true, Some("to nobody (ptrace_scope 3)"), "restart the machine"),
        ] {
            let found = yama_at(scope, has_right);
            let (why, remedy) = found.clone().unwrap_or_default();
            assert_eq!(found.is_some(), says.is_some(), "scope {scope}");
            assert!(why.contains(says.unwrap_or_default()) && remedy.contains(helps), "{why}: {remedy}");
        }
    }

    /// What the kernel asks of users, groups and capabilities is a reason only without the rights that override it.
    #[test]
    fn each_reason_of_a_refusal_is_the_one_that_is_proved() {
        let status = |user: u32, group: u32, permitted: u64| {
            let text = format!(
                "State:\tS\nTgid:\t1\nTracerPid:\t0\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t{group}\t{group}\t\
                 {group}\t{group}\nCapPrm:\t{permitted:016x}\nCapEff:\t{permitted:016x}\n"
            );
            Status::parse(text.as_bytes()).expect("a status")
        };
        let own = status(1000, 100, 1);
        for (process, has_rights, says) in [
            (Some(status(7, 100, 0)), false, "it runs as user 7, pmdb as user 1000"),
            (Some(status(1000, 7, 0)), false, "it runs as group 7, pmdb as group 100"),
            (Some(status(1000, 100, 3)), false, "it has capabilities that pmdb does not have"),
            (
                Some(status(1000, 100, 1)),
                false,
                "it is not dumpable (it changed its ids, or requested that), is in another user namespace, or a security module protects it",
            ),
            (None, false, "permission denied"),
            (Some(status(7, 7, 3)), true, "permission denied"),
            (Some(status(1000, 100, 3)), true, "permission denied"),
            (Some(status(1000, 100, 1)), true, "permission denied"),
        ] {
            assert_eq!(why_refused(Some(&own), process.as_ref(), has_rights, true), says);
        }
        assert_eq!(why_refused(None, Some(&own), false, true), "permission denied");
        let elsewhere = why_refused(Some(&own), Some(&status(1000, 100, 3)), false, false);
        assert!(elsewhere.contains("is in another user namespace, or"), "{elsewhere}");
    }

    #[test]
    fn only_a_lasting_refusal_is_kept() {
        let open = || Ok(std::fs::File::open("/proc/self/maps").expect("it").into());
        let fail = |error| Err(Error::io("opening it", error));
        for passing in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR] {
            let place = OnceLock::new();
            assert!(open_once(&place, || fail(passing)).is_err());
            assert!(open_once(&place, open).is_ok(), "{passing}");
            assert!(open_once(&place, || fail(passing)).is_ok(), "it is open by now");
        }
        let place = OnceLock::new();
        assert!(open_once(&place, || fail(Errno::IO)).is_err());
        assert!(open_once(&place, open).is_err());
    }

    #[test]
    fn frames_beyond_every_offset_are_beyond_physical_memory() {
        let files = FrameFiles::default();
        for frame in [1 << 60, u64::MAX / 8, u64::MAX] {
            match files.read(WordFile::FrameFlags, frame, &mut [0u64; 16]) {
                Ok(read) => assert_eq!(read, 0, "{frame:#x}"),
                Err(Error::NotPermitted { what, .. } | Error::NotAvailable { what }) => {
                    crate::skips::skip("source::physical_memory_has_ended", &what.to_string());
                }
                Err(error) => panic!("{frame:#x}: {error}"),
            }
        }
    }
}
