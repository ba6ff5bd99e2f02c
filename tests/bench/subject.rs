//! The target processes: this program, executed again. They end with it, even when it is killed.

use super::Scenario;
use super::floor::page_bytes;
use super::target::{Target, announce, wait};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

pub const SCENARIOS: &[Scenario] = &[
    ("library", |arguments| library(&arguments[0])),
    ("small", |arguments| small(number(arguments, 0))),
    ("in_order", |arguments| in_order(number(arguments, 0))),
    ("shuffled", |arguments| shuffled(number(arguments, 0))),
    ("churned", |arguments| churned(number(arguments, 0))),
    ("huge", |arguments| huge(number(arguments, 0))),
    ("partly", |arguments| partly(number(arguments, 0))),
    ("reserved", |arguments| {
        reserved(number(arguments, 0), number(arguments, 1));
    }),
    ("heap", |arguments| super::heaps::play(number(arguments, 0), number(arguments, 1))),
    ("regions", |arguments| regions(number(arguments, 0))),
    ("waits", |arguments| super::held_up::play(number(arguments, 0))),
    ("processes", |arguments| {
        processes(number(arguments, 0), number(arguments, 1), number(arguments, 2));
    }),
];

/// A process, and the memory that it announced.
pub struct Subject {
    pub target: Target,
    pub start: u64,
    pub len: u64,
}

impl Subject {
    pub fn start(scenario: &str, numbers: &[u64]) -> Subject {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let mut target = Target::start(scenario, &numbers);
        let said = target.numbers();
        let (start, len) = (said[0], said[1]);
        Subject { target, start, len }
    }

    pub fn pid(&self) -> u32 {
        self.target.pid()
    }

    pub fn range(&self) -> (u64, u64) {
        (self.start, self.len)
    }
}

fn number(arguments: &[String], index: usize) -> usize {
    arguments[index].parse().expect("a number")
}

/// New private memory.
fn map(len: usize) -> *mut u8 {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED, "no memory");
    memory.cast()
}

fn advise(memory: *mut u8, len: usize, advice: i32) {
    // SAFETY: advice about memory of its own.
    unsafe { libc::madvise(memory.cast(), len, advice) };
}

fn protect(memory: *mut u8, len: usize, prot: i32) {
    // SAFETY: memory of its own, which is not touched afterwards in a way that `prot` forbids.
    assert_eq!(unsafe { libc::mprotect(memory.cast(), len, prot) }, 0);
}

/// Writes to a page every `step` bytes.
fn write(memory: *mut u8, len: usize, step: usize) {
    for offset in (0..len).step_by(step) {
        // SAFETY: within the mapping.
        unsafe { memory.add(offset).write_volatile(1) };
    }
}

fn say(memory: *mut u8, len: usize) {
    announce(format!("{} {len}", memory as usize));
}

/// Memory in pages of 4 KiB.
fn small(len: usize) {
    let memory = map(len);
    advise(memory, len, libc::MADV_NOHUGEPAGE);
    write(memory, len, page_bytes() as usize);
    say(memory, len);
    wait();
}

/// The same, with frames that follow each other: huge pages that the page tables map by small ones. A machine that has
/// run for a while has no frames in order for small pages.
fn in_order(len: usize) {
    let memory = huge_memory(len);
    let page = page_bytes() as usize;
    for offset in (0..len).step_by(HUGE) {
        // SAFETY: within the mapping.
        let first = unsafe { memory.add(offset) };
        protect(first, page, libc::PROT_READ);
        protect(first, page, libc::PROT_READ | libc::PROT_WRITE);
    }
    say(memory, len);
    wait();
}

/// The same, written to in no order: neighbouring pages have frames far from each other.
fn shuffled(len: usize) {
    let memory = map(len);
    advise(memory, len, libc::MADV_NOHUGEPAGE);
    let page = page_bytes() as usize;
    let mut pages: Vec<usize> = (0..len / page).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for last in (1..pages.len()).rev() {
        // Xorshift.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        pages.swap(last, random as usize % (last + 1));
    }
    for number in pages {
        // SAFETY: within the mapping.
        unsafe { memory.add(number * page).write_volatile(1) };
    }
    say(memory, len);
    wait();
}

/// The same, of which every third page was freed and filled again: few frames follow each other.
fn churned(len: usize) {
    let memory = map(len);
    advise(memory, len, libc::MADV_NOHUGEPAGE);
    let page = page_bytes() as usize;
    write(memory, len, page);
    for offset in (0..len).step_by(3 * page) {
        // SAFETY: within the mapping.
        advise(unsafe { memory.add(offset) }, page, libc::MADV_DONTNEED);
    }
    write(memory, len, page);
    say(memory, len);
    wait();
}

const HUGE: usize = 2 << 20;

/// Memory in huge pages.
fn huge_memory(len: usize) -> *mut u8 {
    let memory = map(len + HUGE);
    // SAFETY: within the mapping, which is so much larger.
    let memory = unsafe { memory.add(memory.align_offset(HUGE)) };
    advise(memory, len, libc::MADV_HUGEPAGE);
    write(memory, len, page_bytes() as usize);
    memory
}

/// Memory in huge pages. When told to fork, it has a child that writes to a page of every third one.
fn huge(len: usize) {
    let memory = huge_memory(len);
    say(memory, len);
    if wait().is_none() {
        return;
    }
    fork(|| write(memory, len, 3 * HUGE + 5 * page_bytes() as usize));
    announce("forked");
    wait();
}

/// A reservation without access, and some populated pages in it.
fn reserved(len: usize, pages: usize) {
    let memory = map(len);
    advise(memory, len, libc::MADV_NOHUGEPAGE);
    write(memory, len, len / pages);
    protect(memory, len, libc::PROT_NONE);
    say(memory, len);
    wait();
}

/// `count` regions: every second page has other permissions.
fn regions(count: usize) {
    let page = page_bytes() as usize;
    let len = count * page;
    let memory = map(len);
    advise(memory, len, libc::MADV_NOHUGEPAGE);
    write(memory, len, page);
    for offset in (0..len).step_by(2 * page) {
        // SAFETY: within the mapping.
        protect(unsafe { memory.add(offset) }, page, libc::PROT_READ);
    }
    say(memory, len);
    wait();
}

/// Forks `count` processes, which share `len` bytes of earlier memory and have `own` bytes of their own each, and
/// announces their numbers. When told to go on, it forks one more child. Only these two share three pages: one of a
/// file, one at the same address, and one that the child has moved. It announces their addresses and the number of the
/// child.
fn processes(count: usize, len: usize, own: usize) {
    let shared = map(len);
    advise(shared, len, libc::MADV_NOHUGEPAGE);
    write(shared, len, page_bytes() as usize);
    say(shared, len);
    let pids: Vec<String> = (0..count)
        .map(|_| {
            let child = fork(|| write(map(own), own, page_bytes() as usize));
            child.to_string()
        })
        .collect();
    announce(pids.join(" "));
    if wait().is_none() {
        return;
    }
    let page = page_bytes() as usize;
    let [near, moved] = [(); 2].map(|()| {
        let memory = map(page);
        write(memory, page, page);
        memory
    });
    let file = map_file(page);
    let child = fork(|| {
        // SAFETY: a page of a file that nobody cuts short.
        unsafe { file.read_volatile() };
        let (to, flags) = (map(page), libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
        // SAFETY: both are memory of its own that nothing points to.
        let at = unsafe { libc::mremap(moved.cast(), page, page, flags, to) };
        assert_eq!(at, to.cast());
    });
    let [file, near, moved] = [file, near, moved].map(|memory| memory as usize);
    announce(format!("{file} {near} {moved} {child}"));
    wait();
}

/// A file on a disk of which every second stretch of a few pages is in the page cache; half of those are mapped.
fn partly(len: usize) {
    let folder = std::env::current_exe().expect("this program");
    let folder = folder.parent().expect("its folder");
    let mut file = tempfile::tempfile_in(folder).expect("a file");
    let stretch = 4 * page_bytes() as usize;
    for _ in 0..len / stretch {
        file.write_all(&vec![7; stretch]).expect("room for it");
    }
    file.sync_all().expect("a file that is saved");
    let whole = std::num::NonZeroU64::new(len as u64);
    // Pages cached by a write may be in large folios, which stay whole.
    rustix::fs::fadvise(&file, 0, whole, rustix::fs::Advice::DontNeed).expect("advice");
    rustix::fs::fadvise(&file, 0, whole, rustix::fs::Advice::Random).expect("advice");
    for start in (0..len).step_by(2 * stretch) {
        let mut bytes = vec![0; stretch];
        file.read_exact_at(&mut bytes, start as u64).expect("a read");
    }
    let (prot, flags, null) = (libc::PROT_READ, libc::MAP_PRIVATE, std::ptr::null_mut());
    // SAFETY: a new mapping of a file that nobody cuts short.
    let memory = unsafe { libc::mmap(null, len, prot, flags, file.as_raw_fd(), 0) };
    assert_ne!(memory, libc::MAP_FAILED, "no mapping");
    advise(memory.cast(), len, libc::MADV_RANDOM);
    let memory = memory.cast::<u8>();
    for start in (0..len / 2).step_by(2 * stretch) {
        // SAFETY: a byte of it.
        unsafe { memory.add(start).read_volatile() };
    }
    say(memory, len);
    wait();
}

/// A page of a new file, read.
fn map_file(len: usize) -> *const u8 {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(len as u64).expect("a page");
    let (prot, flags, null) = (libc::PROT_READ, libc::MAP_SHARED, std::ptr::null_mut());
    // SAFETY: a new mapping of a file that nobody cuts short.
    let memory = unsafe { libc::mmap(null, len, prot, flags, file.as_raw_fd(), 0) };
    assert_ne!(memory, libc::MAP_FAILED, "no mapping");
    let memory = memory.cast::<u8>();
    // SAFETY: its first byte.
    unsafe { memory.read_volatile() };
    memory
}

/// Forks a child that does `work`, and then lives until this process ends. Returns when the work is done.
fn fork(work: impl FnOnce()) -> i32 {
    let (ready, done) = rustix::pipe::pipe().expect("a pipe");
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            drop(ready);
            set_parent_process_death_signal(Some(Signal::KILL)).expect("to die with its parent");
            work();
            // A write to the pipe fails if the parent has gone before the signal was requested.
            if rustix::io::write(&done, b".").is_err() {
                std::process::exit(0);
            }
            drop(done);
            loop {
                // SAFETY: waits for a signal, of which there is one: the last.
                unsafe { libc::pause() };
            }
        }
        child => {
            drop(done);
            assert!(child > 0, "no more processes");
            let mut byte = [0];
            assert_eq!(rustix::io::read(&ready, &mut byte), Ok(1));
            child
        }
    }
}

/// Maps the load segments of a library as the dynamic linker would, without running any of it.
fn library(path: &str) {
    use object::elf::{FileHeader64, PT_LOAD};
    use object::read::elf::{FileHeader, ProgramHeader};
    let file = std::fs::File::open(path).expect("the library");
    // The whole file: a tool that has changed a library may have put its headers at the end.
    let bytes = std::fs::read(path).expect("the library");
    let header = FileHeader64::<object::Endianness>::parse(&*bytes).expect("an ELF file");
    let endian = header.endian().expect("a byte order");
    let segments = header.program_headers(endian, &*bytes).expect("its segments");
    let loaded = || segments.iter().filter(|one| one.p_type(endian) == PT_LOAD);
    let page = page_bytes();
    let end = loaded().map(|one| one.p_vaddr(endian) + one.p_memsz(endian)).max();
    let whole = map(end.expect("load segments").next_multiple_of(page) as usize);
    for one in loaded().filter(|one| one.p_filesz(endian) > 0) {
        let into = one.p_vaddr(endian) % page;
        let at = whole.wrapping_add((one.p_vaddr(endian) - into) as usize);
        let prot = if one.p_flags(endian).contains(object::elf::PF_X) {
            libc::PROT_READ | libc::PROT_EXEC
        } else {
            libc::PROT_READ
        };
        let (len, flags) = ((one.p_filesz(endian) + into) as usize, libc::MAP_PRIVATE | libc::MAP_FIXED);
        let offset = (one.p_offset(endian) - into) as libc::off_t;
        // SAFETY: over the mapping that was just made, of which nothing is used.
        let mapped = unsafe { libc::mmap(at.cast(), len, prot, flags, file.as_raw_fd(), offset) };
        assert_ne!(mapped, libc::MAP_FAILED, "not mapped");
    }
    announce("mapped");
    wait();
}
