//! The threads of the target, each with what the kernel shows of it without stopping it.

use super::{Process, Result};
use crate::kernel::registers::{Registers, ThreadState};
use crate::kernel::status::Stat;
use crate::kernel::text::BadLine;
use crate::kernel::{Name, VirtualAddress};
use crate::source::{Error, File, List};
use std::time::{Duration, Instant};

/// How long the query for a running thread is repeated. In unit tests nothing changes meanwhile.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 500 });
/// How long it is repeated for each of several threads, after the first round: for all together as long as for one.
const AGAIN: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 20 });
/// The pause before the next query.
const PAUSE: Duration = Duration::from_millis(2);

/// A thread.
#[derive(Clone, PartialEq, Debug)]
pub struct Thread {
    /// Its id; that of the main thread is the id of the process.
    pub id: u32,
    /// Its short name.
    pub name: Name,
    /// One letter, as `ps` shows it.
    pub state: char,
}

impl Thread {
    /// Whether it has ended: it has no registers any more. The main thread stays listed while others run.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

impl Process {
    /// Its threads, by number. One that ends meanwhile is left out.
    ///
    /// # Errors
    /// The process is gone, or the source has no list of threads.
    pub fn threads(&self) -> Result<Vec<Thread>> {
        let mut threads = Vec::new();
        for listed in self.source().list(List::Threads)? {
            let stat = Stat::parse(&listed.stat)?;
            threads.push(Thread { id: listed.pid, name: stat.name, state: stat.state });
        }
        threads.sort_unstable_by_key(|thread| thread.id);
        Ok(threads)
    }

    /// Whether a thread is running, or waits in the kernel, and where.
    ///
    /// # Errors
    /// It may not be read, or the thread has ended.
    pub fn thread_state(&self, thread: u32) -> Result<ThreadState> {
        self.read_state(File::ThreadSyscall(thread))
    }

    /// The main thread's program counter and stack pointer (`/proc/PID/syscall`), without stopping it. The query of a
    /// running thread is repeated for a moment: most threads wait soon.
    ///
    /// # Errors
    /// The thread runs all the time, the file may not be read, or the process is gone.
    pub fn registers(&self) -> Result<Registers> {
        self.waiting(File::Syscall, Instant::now() + PATIENCE)?.ok_or_else(|| {
            let pid = self.identity().pid;
            let why = "the kernel shows the registers only of a thread that waits";
            Error::not_available(format!("process {pid} is running: {why}"))
        })
    }

    /// The stack pointer of each thread; `None` of one that runs all the time. A thread that has ended is left out.
    ///
    /// # Errors
    /// Their files may not be read, or the process is gone.
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
        // Those after a busy one were asked once: they may wait now.
        let end = Instant::now() + PATIENCE;
        for (thread, pointer) in stacks.iter_mut().filter(|(_, pointer)| pointer.is_none()) {
            let end = end.min(Instant::now() + AGAIN);
            if let Ok(Some(registers)) = self.waiting(File::ThreadSyscall(thread.id), end) {
                *pointer = Some(registers.stack_pointer);
            }
        }
        Ok(stacks)
    }

    /// The registers as soon as the thread waits; `None` if it still runs at `end`.
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
        let text = self.source().whole(file)?;
        let bad_line = || BadLine { file: "syscall", line: 1, text: Name::new(text.trim_ascii()) };
        Ok(ThreadState::parse(&text).ok_or_else(bad_line)?)
    }
}
