//! The status of a process and its threads, read without stopping it: ids, executable, command line, and registers of
//! waiting threads.
//!
//! The kernel reads the command line from the memory of the process, and would fault absent pages in. So it is read
//! only if the page map shows that all of it is resident.

use super::{Process, Result, core_notes, maps_text};
use crate::access::Error;
use crate::budget::until_interrupted;
use crate::kernel::numa::{self, PolicyNodes};
use crate::kernel::status::{Registers, ResourceLimit, Stat, ThreadState};
use crate::kernel::text::BadLine;
use crate::kernel::{AddressRange, Name, PageMapEntry, VirtualAddress, WordFile};
use crate::source::{Answer, File, List, Probe, Query, Source, as_words};
use procfs::FromRead;
#[cfg(feature = "cli")]
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the query of a running thread is repeated. In unit tests its state does not change.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 500 });
/// How long the query is repeated for each of several threads, after the first round. All together get as long as one.
const AGAIN: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 20 });
/// The pause between two queries.
const PAUSE: Duration = Duration::from_millis(2);

/// A thread of a process.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Thread {
    /// The thread id. That of the main thread is the process id.
    pub id: u32,
    /// The name of the thread (`comm`).
    pub name: Name,
    /// The state as one letter, as `ps` shows it.
    pub state: char,
}

impl Thread {
    /// Returns whether the thread has ended, so that it has no registers. The main thread stays listed while others
    /// run.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// The status of a process, from `/proc/PID/status`, `stat`, `exe` and `cmdline`.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ProcessStatus {
    /// Process id.
    pub pid: u32,
    /// Parent process id.
    pub parent: u32,
    /// `comm`
    pub name: Name,
    /// The state, as one letter and its word: `S (sleeping)`.
    pub state: String,
    /// Number of threads.
    pub threads: u32,
    /// Seconds since the start of the process, if the uptime of the machine is known.
    pub age: Option<f64>,
    /// Real user id.
    pub user: u32,
    /// The process id of the tracer; 0 if there is none.
    pub tracer: u32,
    /// The path of the executable, if it may be read.
    pub executable: Option<Name>,
    /// The command line, with spaces between arguments.
    pub command_line: Option<Name>,
    /// The Vm, Rss and Huge fields of status in the order of the file: the kernel's name and bytes.
    pub memory: Vec<(String, u64)>,
}

impl Process {
    /// Returns the link `/proc/PID/exe`, if it may be read.
    pub fn executable(&self) -> Option<Name> {
        self.source().fetch(File::Program).ok().map(Name::new)
    }

    /// Reads `/proc/PID/status` and `stat`, for `info process`.
    pub fn status(&self) -> Result<ProcessStatus> {
        let stat = core_notes::stat(&**self.source())?;
        let status = core_notes::status(&**self.source())?;
        Ok(ProcessStatus {
            pid: self.identity().pid,
            parent: stat.parent,
            name: stat.name,
            state: status.state,
            threads: stat.threads,
            age: age(&**self.source(), stat.start_time),
            user: status.user,
            tracer: status.tracer,
            executable: self.executable(),
            command_line: read_command_line(&**self.source(), stat.arguments),
            memory: status.memory,
        })
    }

    /// Returns the bytes of locked regions (`VmLck`); `None` if unknown.
    pub(crate) fn locked_bytes(&self) -> Option<u64> {
        let status = core_notes::status(&**self.source()).ok()?;
        status.memory.iter().find(|(name, _)| name == "VmLck").map(|&(_, bytes)| bytes)
    }

    /// Returns whether memory of the region that begins at `start` may be on `node`, by the cpuset and the memory
    /// policy; `None` if unknown.
    pub fn may_use_node(&self, start: VirtualAddress, node: u32) -> Option<bool> {
        let status = core_notes::status(&**self.source()).ok()?;
        let policy = numa::policy(&self.source().fetch(File::NumaMaps).ok()?, start)?;
        let by_policy = match policy {
            PolicyNodes::Any => true,
            PolicyNodes::Only(nodes) => nodes.contains(node),
        };
        Some(by_policy && status.allowed_nodes?.contains(node))
    }

    /// Reads the memory policy of each region (`/proc/PID/numa_maps`), by its first address.
    #[cfg(feature = "cli")]
    pub(crate) fn policies(&self) -> Result<BTreeMap<VirtualAddress, Vec<u8>>> {
        let text = self.source().fetch(File::NumaMaps)?;
        Ok(numa::policies(&text).map(|(start, policy)| (start, policy.to_vec())).collect())
    }

    /// Returns whether transparent huge pages are allowed for the process, and not switched off by PR_SET_THP_DISABLE;
    /// `None` before Linux 5.0.
    pub fn may_have_huge_pages(&self) -> Result<Option<bool>> {
        Ok(core_notes::status(&**self.source())?.may_be_huge)
    }

    /// Returns about how often khugepaged has examined all processes since this one started, as if its passes
    /// (`full_scans`) were spread evenly over the time that the machine runs, and none took less than `least`. Returns
    /// `None` if that is unknown.
    #[cfg(feature = "cli")]
    pub(crate) fn khugepaged_passes(&self, least: Duration) -> Option<u64> {
        let source = &**self.source();
        let passes = core_notes::setting(source, crate::source::KernelSetting::CollapsePasses)?;
        let uptime = uptime(source)?;
        let age = uptime - start(source, core_notes::stat(source).ok()?.start_time)?;
        Some(passes_since(passes, uptime, age, least))
    }

    /// Reads a limit of `/proc/PID/limits`, in bytes; `None` if it is unlimited.
    pub fn limit(&self, limit: ResourceLimit) -> Result<Option<u64>> {
        let limits = self.source().fetch(File::Limits)?;
        limit.find(&limits).ok_or_else(|| Error::not_available("/proc/PID/limits does not have this limit"))
    }

    /// Lists the threads by id. A thread that ends during the listing is left out.
    ///
    /// # Errors
    /// Fails if the process is gone, or the source has no list of threads.
    pub fn threads(&self) -> Result<Vec<Thread>> {
        let mut threads = Vec::new();
        if let Some(notes) = core_notes::notes(&**self.source()) {
            let Stat { name, state, .. } = notes.stat();
            threads.extend(notes.threads.iter().map(|one| Thread { id: one.id, name: name.clone(), state }));
        } else {
            for listed in self.source().list(List::Threads)? {
                let stat = Stat::parse(&listed.stat)?;
                threads.push(Thread { id: listed.pid, name: stat.name, state: stat.state });
            }
        }
        threads.sort_unstable_by_key(|thread| thread.id);
        Ok(threads)
    }

    /// Returns whether a thread runs, or waits in the kernel, with its registers.
    ///
    /// # Errors
    /// Fails if the file may not be read, or the thread has ended.
    pub fn thread_state(&self, thread: u32) -> Result<ThreadState> {
        self.read_state(File::ThreadSyscall(thread))
    }

    /// Returns the program counter and stack pointer of the main thread (`/proc/PID/syscall`), without stopping it. The
    /// query of a running thread is repeated for 0.5 s: most threads wait soon.
    ///
    /// # Errors
    /// Fails if the thread runs all the time, the file may not be read, or the process is gone.
    pub fn registers(&self) -> Result<Registers> {
        self.waiting(File::Syscall, Instant::now() + PATIENCE)?.ok_or_else(|| {
            let pid = self.identity().pid;
            let why = "the kernel shows the registers only of a thread that waits";
            Error::not_available(format!("process {pid} is running: {why}"))
        })
    }

    /// Returns the program counter and stack pointer of a thread, as [`registers`](Self::registers) does.
    ///
    /// # Errors
    /// Fails as [`registers`](Self::registers), or if the thread has ended.
    #[cfg(feature = "cli")]
    pub(crate) fn registers_of(&self, thread: u32) -> Result<Registers> {
        self.waiting(File::ThreadSyscall(thread), Instant::now() + PATIENCE)?.ok_or_else(|| {
            let why = "the kernel shows the registers only of a thread that waits";
            Error::not_available(format!("thread {thread} is running: {why}"))
        })
    }

    /// Returns the stack pointer of each thread; `None` for one that runs all the time. Threads that have ended are
    /// left out.
    ///
    /// # Errors
    /// Fails if the files of threads may not be read, or the process is gone.
    pub fn stack_pointers(&self) -> Result<Vec<(Thread, Option<VirtualAddress>)>> {
        let end = Instant::now() + PATIENCE;
        let mut stacks = Vec::new();
        for thread in self.threads()?.into_iter().filter(|thread| !thread.has_ended()) {
            match self.waiting(File::ThreadSyscall(thread.id), end) {
                Ok(registers) => stacks.push((thread, registers.map(|registers| registers.stack_pointer))),
                Err(Error::NotAvailable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Threads after a busy one were queried once, and may wait now.
        let end = Instant::now() + PATIENCE;
        for (thread, pointer) in stacks.iter_mut().filter(|(_, pointer)| pointer.is_none()) {
            let end = end.min(Instant::now() + AGAIN);
            if let Ok(Some(registers)) = self.waiting(File::ThreadSyscall(thread.id), end) {
                *pointer = Some(registers.stack_pointer);
            }
        }
        Ok(stacks)
    }

    /// Returns the registers as soon as the thread waits; `None` if it still runs at `end`.
    fn waiting(&self, file: File, end: Instant) -> Result<Option<Registers>> {
        loop {
            match self.read_state(file)? {
                ThreadState::Waiting(registers) => return Ok(Some(registers)),
                ThreadState::Running if Instant::now() < end => std::thread::sleep(PAUSE),
                ThreadState::Running => return Ok(None),
            }
        }
    }

    fn read_state(&self, file: File) -> Result<ThreadState> {
        if let Some(notes) = core_notes::notes(&**self.source()) {
            let id = if let File::ThreadSyscall(id) = file { id } else { notes.process.id };
            let lacks = |what: &str| Error::not_in("this core", &format!("{what} {id}"));
            let thread = notes.thread(id).ok_or_else(|| lacks("thread"))?;
            let registers = thread.registers.ok_or_else(|| lacks("the registers of thread"))?;
            return Ok(ThreadState::Waiting(registers));
        }
        let text = self.source().fetch(file)?;
        let bad_line = || BadLine { file: "syscall", line: 1, text: Name::new(text.trim_ascii()) };
        Ok(ThreadState::parse(&text).ok_or_else(bad_line)?)
    }
}

/// More pages than arguments can have (ARG_MAX). A program may claim any addresses (PR_SET_MM).
const MOST_PAGES: u64 = 4096;

/// The most regions in which the one after the arguments is searched. The kernel allows 65,530 (vm.max_map_count)
/// unless root has raised that.
const MOST_REGIONS: u64 = 1 << 17;

/// Reads `cmdline`; `None` if it may not be read. `arguments` are the addresses from `stat`.
pub(super) fn read_command_line(source: &dyn Source, arguments: Option<AddressRange>) -> Option<Name> {
    if source.origin().is_core() {
        return source.fetch(File::CommandLine).ok().map(|bytes| joined_by_blanks(&bytes));
    }
    let page = source.page_size();
    let arguments = arguments.filter(|arguments| arguments.pages(page) <= MOST_PAGES)?;
    let own = usize::try_from(arguments.pages(page)).ok()?;
    let title_end = arguments.start().checked_add(page.bytes())?;
    let read_by_kernel = AddressRange::new(arguments.start(), arguments.end().max(title_end))?;
    let pages = usize::try_from(read_by_kernel.pages(page)).ok()?;
    let mut entries = vec![PageMapEntry::default(); pages];
    let first = page.index(arguments.start());
    let read = source.words(WordFile::PageMap, first, as_words(&mut entries));
    entries.truncate(read.ok()?);
    let last = page.floor(VirtualAddress::new(title_end.get() - 1));
    let is_mapped = || match source.fetch(Query::At(last)) {
        Ok(Answer::Found(_)) => true,
        Ok(Answer::Nothing) => false,
        // Before Linux 6.11 only the text of `maps` shows it.
        _ => maps_text::read(source, &mut until_interrupted().at_most(MOST_REGIONS))
            .map_or(true, |(regions, _)| regions.iter().any(|one| one.range.contains(last))),
    };
    let may = may_be_read(&entries, own, is_mapped);
    let bytes = may.then(|| source.fetch(File::CommandLine).ok())??;
    Some(joined_by_blanks(&bytes))
}

/// Returns whether a read of the command line faults no page in. The first `own` entries belong to the pages of the
/// arguments. If the last argument does not end in a zero byte (setproctitle), the kernel reads up to a page from the
/// first argument on (get_mm_proctitle in fs/proc/base.c). That may reach into one more page, which is harmless if it
/// is resident, or in no region.
fn may_be_read(entries: &[PageMapEntry], own: usize, next_is_mapped: impl FnOnce() -> bool) -> bool {
    let Some((arguments, next)) = entries.split_at_checked(own) else {
        return false;
    };
    arguments.iter().all(|entry| entry.is_present())
        && match next.first() {
            None => true,
            Some(next) => next.is_present() || (!next.is_swap_entry() && !next_is_mapped()),
        }
}

/// Joins the arguments with spaces. In `cmdline` each ends in a zero byte.
fn joined_by_blanks(bytes: &[u8]) -> Name {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let arguments = bytes.get(..end).unwrap_or_default();
    let joined = arguments.iter().map(|&byte| if byte == 0 { b' ' } else { byte });
    Name::new(joined.collect::<Vec<u8>>())
}

/// Returns the seconds since a process started, from its start in clock ticks since boot.
pub(super) fn age(source: &dyn Source, start_time: u64) -> Option<f64> {
    Some(uptime(source)? - start(source, start_time)?)
}

/// Returns when a process started, in seconds since boot.
fn start(source: &dyn Source, start_time: u64) -> Option<f64> {
    Some(start_time as f64 / source.word(Probe::TicksPerSecond)? as f64)
}

/// Returns how long the machine runs, in seconds.
fn uptime(source: &dyn Source) -> Option<f64> {
    let uptime = source.fetch(File::Uptime).ok()?;
    Some(procfs::Uptime::from_read(&uptime[..]).ok()?.uptime)
}

/// Returns how many of the `passes` in `uptime` seconds fell into the last `age` seconds, at least `least` apart.
#[cfg(feature = "cli")]
fn passes_since(passes: u64, uptime: f64, age: f64, least: Duration) -> u64 {
    let evenly = passes as f64 * (age / uptime).clamp(0.0, 1.0);
    evenly.min(age / least.as_secs_f64()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "cli")]
    #[test]
    fn passes_of_khugepaged_are_no_more_than_its_pace_allows() {
        // 895 passes in 11 hours are one in 45 s on the average. A pass over 384 MiB takes 240 s and more.
        let since = |age, least| passes_since(895, 40_600.0, age, Duration::from_secs(least));
        assert_eq!((since(680.0, 0), since(680.0, 240), since(40_600.0, 10)), (14, 2, 895));
    }

    #[test]
    fn the_page_after_the_arguments_must_be_resident_or_in_no_region() {
        let there = PageMapEntry::new(1 << 63 | 1);
        let swapped = PageMapEntry::new(1 << 62 | 0x20);
        let empty = PageMapEntry::default();
        for (entries, own, next_is_mapped, expected) in [
            (&[there][..], 1, true, true),
            (&[there, there], 1, true, true),
            (&[there, swapped], 1, true, false),
            (&[there, empty], 1, true, false),
            (&[there, empty], 1, false, true),
            (&[there, empty], 2, false, false),
            (&[swapped, there], 1, true, false),
            (&[], 1, false, false),
        ] {
            let may = may_be_read(entries, own, || next_is_mapped);
            assert_eq!(may, expected, "{entries:?} {own} {next_is_mapped}");
        }
    }
}
