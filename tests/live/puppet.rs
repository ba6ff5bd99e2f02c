//! A process that does with its memory what a test tells it to, line by line, and answers when it is done.

use super::Scenario;
use super::states::MADV_COLLAPSE;
use super::support::{at, huge_page_bytes, page_bytes, plain_entry};
use super::system::{self, Changed};
use super::target::{Target, announce, command, wait};
use pmdb::inspect::AddressSpace;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

pub const SCENARIOS: &[Scenario] = &[("puppet", |_| {
    stay_on_one_processor();
    announce("ready");
    while let Some(line) = wait() {
        let mut words = line.split_whitespace();
        let verb = words.next().expect("a verb");
        let numbers = words.map(|word| word.parse().expect("a number"));
        announce(act(verb, &numbers.collect::<Vec<usize>>()));
    }
})];

/// A page that was just mapped waits in a batch of its processor, and is not paged out until that processor drains the
/// batch (lru_add_drain in mm/swap.c). Paging out drains the batch of its own processor.
pub fn stay_on_one_processor() {
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    // Where it may not be chosen, the kernel keeps a page now and then.
    _ = sched_setaffinity(None, &here);
}

/// The test's end of the strings.
pub struct Puppet(pub Target);

impl Puppet {
    pub fn start() -> Self {
        Self::run(&mut command("puppet", &[]))
    }

    /// Starts one whose command was changed.
    pub fn run(command: &mut Command) -> Self {
        let mut target = Target::spawn(command);
        assert_eq!(target.line(), "ready");
        Puppet(target)
    }

    /// Starts one that has a huge page, mapped by one PMD, with its address and number of pages; or the reason why the
    /// kernel gives none.
    pub fn with_huge_page() -> Result<(Self, u64, u64), &'static str> {
        let bytes = huge_page_bytes().ok_or("no transparent huge pages")?;
        let pages = bytes / page_bytes();
        let mut puppet = Self::start();
        let memory = puppet.maps("huge", pages);
        puppet.writes(memory, pages);
        _ = puppet.advises(memory, pages, MADV_COLLAPSE);
        let target = puppet.0.attach();
        let space = AddressSpace::at(&target, at(memory)).expect("a space");
        match space.detail(at(memory)).expect("its detail").huge {
            Ok(true) => {
                // Or khugepaged may later collapse what a test gave back of it. The huge page stays.
                puppet.advises(memory, pages, libc::MADV_NOHUGEPAGE).expect("to keep khugepaged away");
                Ok((puppet, memory, pages))
            }
            _ => Err("the kernel gave no huge page, or cannot say"),
        }
    }

    /// Makes a huge page again of what was one, which is kept from khugepaged; or the error number.
    pub fn collapses(&mut self, memory: u64, pages: u64) -> Result<(), i32> {
        self.advises(memory, pages, libc::MADV_HUGEPAGE)?;
        let collapsed = self.advises(memory, pages, MADV_COLLAPSE);
        self.advises(memory, pages, libc::MADV_NOHUGEPAGE)?;
        collapsed
    }

    /// New hugetlb memory of that page size, without a reservation; or the error number.
    pub fn maps_unreserved(&mut self, bytes: u64) -> Result<u64, i64> {
        let size = bytes.trailing_zeros().into();
        let answer = self.asks("hugetlb", &[bytes, size, libc::MAP_NORESERVE as u64]);
        u64::try_from(answer).map_err(|_| -answer)
    }

    /// Has it do something, and returns its answer: an address or a process id. An error number is negative.
    pub fn asks(&mut self, verb: &str, numbers: &[u64]) -> i64 {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        self.0.send(&format!("{verb} {}", numbers.join(" ")));
        self.0.line().parse().expect("a number")
    }

    /// The same, where it cannot fail.
    pub fn does(&mut self, verb: &str, numbers: &[u64]) -> u64 {
        let answer = self.asks(verb, numbers);
        u64::try_from(answer).unwrap_or_else(|_| panic!("{verb} {numbers:?}: errno {}", -answer))
    }

    /// New memory: `anonymous`, `shared`, `memfd`, `copied` (a private mapping of a memfd), `secret`, `hugetlb`, `huge`
    /// (aligned, with huge pages wanted), `aligned` (the same without that advice), `reserved` (no access).
    pub fn maps(&mut self, verb: &str, pages: u64) -> u64 {
        self.does(verb, &[pages * page_bytes()])
    }

    /// New memory far from the program: anonymous memory right after a program may be its `.bss`, and new memory may be
    /// there if a static program is loaded among other mappings. This much does not fit there.
    pub fn maps_far(&mut self) -> u64 {
        self.maps("anonymous", (64 << 20) / page_bytes())
    }

    /// Maps a file that the test holds open.
    pub fn maps_file(&mut self, file: &std::fs::File, pages: u64, prot: i32, flags: i32) -> u64 {
        self.maps_file_at(file, 0, pages, prot, flags)
    }

    /// Maps a part of it.
    pub fn maps_file_at(&mut self, file: &std::fs::File, offset: u64, pages: u64, prot: i32, flags: i32) -> u64 {
        let (pid, fd) = (std::process::id(), file.as_raw_fd());
        let numbers = [pages * page_bytes(), pid.into(), fd as u64, prot as u64, flags as u64, offset];
        self.does("file", &numbers)
    }

    pub fn writes(&mut self, address: u64, pages: u64) {
        self.does("write", &[address, pages]);
    }

    pub fn reads(&mut self, address: u64, pages: u64) {
        self.does("read", &[address, pages]);
    }

    pub fn unmaps(&mut self, address: u64, pages: u64) {
        self.does("unmap", &[address, pages * page_bytes()]);
    }

    /// A puppet with `pages` written pages of anonymous memory, of which the first `out` are in swap; or why there is
    /// none. The swap area is on until the last value is dropped: drop the puppet before it.
    pub fn in_swap(pages: u64, out: u64) -> Result<(Puppet, u64, Changed), String> {
        let swap = system::swap()?;
        let mut puppet = Puppet::start();
        let memory = puppet.maps("anonymous", pages);
        puppet.writes(memory, pages);
        if !puppet.pages_out(memory, out) {
            return Err("the kernel kept the page".to_owned());
        }
        Ok((puppet, memory, swap))
    }

    /// Pages out `pages` pages, and returns whether all are out. A page in another processor's batch for the LRU list
    /// is kept (lru_add_drain in mm/swap.c): then it tries again.
    pub fn pages_out(&mut self, address: u64, pages: u64) -> bool {
        let pid = self.0.pid();
        let is_out = |page| plain_entry(pid, address + page * page_bytes()).is_some_and(|entry| entry >> 63 == 0);
        (0..20).any(|_| {
            let advised = self.advises(address, pages, libc::MADV_PAGEOUT);
            advised.expect("to page out");
            (0..pages).all(is_out)
        })
    }

    /// `madvise`, or its error number.
    pub fn advises(&mut self, address: u64, pages: u64, advice: i32) -> Result<(), i32> {
        let answer = self.asks("advise", &[address, pages * page_bytes(), advice as u64]);
        if answer < 0 { Err(-answer as i32) } else { Ok(()) }
    }
}

fn act(verb: &str, numbers: &[usize]) -> i64 {
    let number = |index: usize| numbers[index];
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let fresh = |prot, flags, fd: Option<OwnedFd>| {
        let fd = fd.map_or(-1, |fd| {
            let raw = fd.as_raw_fd();
            // The mapping keeps the file; the number is not used again.
            std::mem::forget(fd);
            raw
        });
        // SAFETY: a new mapping at an address of the kernel's choice.
        mapped(unsafe { libc::mmap(std::ptr::null_mut(), number(0), prot, flags, fd, 0) })
    };
    let small = |address: i64| {
        // SAFETY: the mapping made just now; huge pages would fill what is to stay empty.
        unsafe { libc::madvise(address as *mut _, number(0), libc::MADV_NOHUGEPAGE) };
        address
    };
    match verb {
        // It may be more than the machine has memory for.
        "anonymous" => small(fresh(rw, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, None)),
        "shared" => fresh(rw, libc::MAP_SHARED | libc::MAP_ANONYMOUS, None),
        "memfd" => fresh(rw, libc::MAP_SHARED, Some(memfd(number(0)))),
        "copied" => fresh(rw, libc::MAP_PRIVATE, Some(memfd(number(0)))),
        "program" => {
            let file = std::fs::File::open("/proc/self/exe").expect("this program");
            fresh(rw, libc::MAP_PRIVATE, Some(file.into()))
        }
        "file" => {
            let path = format!("/proc/{}/fd/{}", number(1), number(2));
            let writes = number(3) as i32 & libc::PROT_WRITE != 0;
            let file = std::fs::File::options().read(true).write(writes).open(path);
            let file = file.expect("the test's file");
            let (fd, null) = (file.as_raw_fd(), std::ptr::null_mut());
            let (prot, flags, offset) = (number(3) as i32, number(4) as i32, number(5) as libc::off64_t);
            // SAFETY: a new mapping at an address of the kernel's choice.
            mapped(unsafe { libc::mmap64(null, number(0), prot, flags, fd, offset) })
        }
        "secret" => secret(number(0)),
        "aio" => ring(number(0)),
        "packets" => super::lent::packets(number(0)),
        "uring" => super::lent::uring(number(0)),
        "perf" => super::lent::perf(number(0)),
        "droppable" => super::lent::droppable(number(0)),
        "full" => super::lent::full(number(0), number(1)),
        "hugetlb" => {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
            // Which of the sizes: its logarithm; without it the usual one.
            let size = numbers.get(1).map_or(0, |&size| size as i32);
            let more = numbers.get(2).map_or(0, |&flags| flags as i32);
            fresh(rw, flags | more | size << libc::MAP_HUGE_SHIFT, None)
        }
        "pooled" => pooled(number(0), number(1)),
        "pooled_again" => pooled_again(number(0), number(1)),
        "reserved" => {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            small(fresh(libc::PROT_NONE, flags, None))
        }
        "huge" => huge(number(0)),
        "aligned" => aligned(number(0)),
        "prctl" => {
            // SAFETY: options that take no memory.
            answer(unsafe { libc::prctl(number(0) as i32, number(1), number(2), 0, 0) }.into())
        }
        "write" => each_page(number(0), number(1), |byte| {
            // SAFETY: the test says that this is memory to write.
            unsafe { byte.write_volatile(byte.read_volatile().wrapping_add(1)) }
        }),
        "read" => each_page(number(0), number(1), |byte| {
            // SAFETY: the test says that this is memory to read.
            _ = unsafe { byte.read_volatile() };
        }),
        // SAFETY: memory of the test's own.
        "unmap" => answer(unsafe { libc::munmap(number(0) as *mut _, number(1)) }.into()),
        "advise" => {
            let advice = number(2) as i32;
            // Newer kernels send a signal for failed memory at once, and not at the next access. A later access still
            // ends the process.
            extern "C" fn carry_on(_: i32) {}
            // SAFETY: a handler that does nothing, for as long as the call takes; memory of the test's own.
            unsafe {
                let told = libc::signal(libc::SIGBUS, carry_on as *const () as usize);
                let result = libc::madvise(number(0) as *mut _, number(1), advice);
                let answered = answer(result.into());
                libc::signal(libc::SIGBUS, told);
                answered
            }
        }
        "protect" => {
            let prot = number(2) as i32;
            // SAFETY: memory of the test's own.
            answer(unsafe { libc::mprotect(number(0) as *mut _, number(1), prot) }.into())
        }
        "striped" => super::machine::striped(number(0), number(1), number(2)),
        "pkey" => keyed(number(0), number(1), number(2)),
        // SAFETY: nothing else in this program moves the break while this verb runs.
        "brk" => mapped(unsafe { libc::sbrk(number(0) as libc::intptr_t) }),
        // SAFETY: memory of the test's own.
        "lock" => answer(unsafe { libc::mlock(number(0) as *const _, number(1)) }.into()),
        "grow" => {
            let (address, old, new) = (number(0) as *mut _, number(1), number(2));
            // SAFETY: memory of the test's own, not moved.
            mapped(unsafe { libc::mremap(address, old, new, 0) })
        }
        "load" => super::access::felt(number(0), false),
        "store" => super::access::felt(number(0), true),
        "branch" => super::access::branch(),
        "child_load" => super::access::of_child(number(0), false),
        "child_store" => super::access::of_child(number(0), true),
        "handled" => super::userfault::handle(number(0), number(1), number(2)),
        "told" => super::userfault::told(),
        "move" => {
            let (address, bytes, to) = (number(0) as *mut _, number(1), number(2));
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: memory of the test's own, to where the test has reserved as much.
            mapped(unsafe { libc::mremap(address, bytes, bytes, flags, to) })
        }
        "fork" => fork(number(0), number(1)),
        "kill" => kill(number(0)),
        "uffd" => super::userfault::protect(number(0), number(1), number(2)),
        "poison" => super::userfault::poison(number(0), number(1)),
        "exec" => {
            let error = command("idle", &[]).exec();
            panic!("exec: {error}");
        }
        "exit" => std::process::exit(0),
        _ => panic!("unknown: {verb}"),
    }
}

/// The result of a system call, or its negative error number.
pub fn answer(result: i64) -> i64 {
    match result {
        -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(1)),
        result => result,
    }
}

/// Where a mapping begins. `MAP_FAILED` is -1 only in the width of a pointer.
pub fn mapped(start: *mut libc::c_void) -> i64 {
    match start {
        libc::MAP_FAILED => answer(-1),
        start => start as i64,
    }
}

pub fn each_page(start: usize, pages: usize, act: impl Fn(*mut u8)) -> i64 {
    let size = page_bytes() as usize;
    for page in 0..pages {
        act((start + page * size) as *mut u8);
    }
    0
}

pub fn memfd(bytes: usize) -> OwnedFd {
    // SAFETY: a name that ends in zero; the number that comes back is ours.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"pmdb-live".as_ptr(), 0)) };
    // SAFETY: a file of our own.
    assert_eq!(unsafe { libc::ftruncate64(fd.as_raw_fd(), bytes as i64) }, 0);
    fd
}

/// The file of the hugetlb pool that [`pooled`] made.
static POOLED: std::sync::OnceLock<OwnedFd> = std::sync::OnceLock::new();

/// Maps a new file of the hugetlb pool; the error number where there is none.
fn pooled(bytes: usize, flags: usize) -> i64 {
    // SAFETY: a name that ends in zero.
    let fd = unsafe { libc::memfd_create(c"pmdb-pool".as_ptr(), libc::MFD_HUGETLB) };
    if fd < 0 {
        return answer(-1);
    }
    // SAFETY: the number is ours.
    let file = POOLED.get_or_init(|| unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: a file of our own.
    if unsafe { libc::ftruncate64(file.as_raw_fd(), bytes as i64) } != 0 {
        return answer(-1);
    }
    pooled_again(bytes, flags)
}

/// Maps it once more.
fn pooled_again(bytes: usize, flags: usize) -> i64 {
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let fd = POOLED.get().expect("a file").as_raw_fd();
    // SAFETY: a new mapping at an address of the kernel's choice.
    mapped(unsafe { libc::mmap(std::ptr::null_mut(), bytes, rw, flags as i32, fd, 0) })
}

/// Memory that even the kernel does not map for itself (memfd_secret), or the error number.
fn secret(bytes: usize) -> i64 {
    // SAFETY: a system call without memory.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_secret, 0) } as i32;
    if fd < 0 {
        return answer(-1);
    }
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a file of our own, and a new mapping of it at an address of the kernel's choice, which keeps it.
    unsafe {
        assert_eq!(libc::ftruncate64(fd, bytes as i64), 0);
        mapped(libc::mmap(std::ptr::null_mut(), bytes, rw, libc::MAP_SHARED, fd, 0))
    }
}

/// The ring of asynchronous I/O for so many events, or the error number.
fn ring(events: usize) -> i64 {
    let mut ring: libc::c_ulong = 0;
    // SAFETY: a system call that writes the address of its new mapping to a variable of ours.
    match unsafe { libc::syscall(libc::SYS_io_setup, events, &raw mut ring) } {
        0 => ring as i64,
        _ => answer(-1),
    }
}

// The crate does not have the numbers of ppc64le.
#[cfg(not(any(target_arch = "s390x", target_arch = "powerpc64")))]
const PKEY: [libc::c_long; 2] = [libc::SYS_pkey_alloc, libc::SYS_pkey_mprotect];
#[cfg(target_arch = "powerpc64")]
const PKEY: [libc::c_long; 2] = [384, 386];

/// Gives memory a new protection key, for which this thread has rights without those of `denied`; or the error number.
#[cfg(not(target_arch = "s390x"))]
fn keyed(start: usize, bytes: usize, denied: usize) -> i64 {
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let [alloc, protect] = PKEY;
    // SAFETY: a system call without memory.
    let key = unsafe { libc::syscall(alloc, 0, denied) };
    if key < 0 {
        return answer(-1);
    }
    // SAFETY: memory of the test's own.
    match unsafe { libc::syscall(protect, start, bytes, rw, key) } {
        0 => key as i64,
        _ => answer(-1),
    }
}

/// s390x has no such keys, and libc no numbers of these calls there.
#[cfg(target_arch = "s390x")]
fn keyed(_: usize, _: usize, _: usize) -> i64 {
    -i64::from(libc::ENOSYS)
}

/// Memory that begins where a huge page can, with huge pages wanted.
pub fn huge(bytes: usize) -> i64 {
    let start = aligned(bytes);
    // SAFETY: the mapping made just now.
    unsafe { libc::madvise(start as *mut _, bytes, libc::MADV_HUGEPAGE) };
    start
}

/// The same without any advice.
fn aligned(bytes: usize) -> i64 {
    let align = super::support::huge_page_bytes().unwrap_or(2 << 20) as usize;
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes + 2 * align, rw, flags, -1, 0) };
    let start = start as usize;
    let aligned = start.next_multiple_of(align).max(start + 1).next_multiple_of(align);
    let rest = start + bytes + 2 * align - (aligned + bytes);
    // SAFETY: the ends of that mapping, and what is left of it.
    unsafe {
        libc::munmap(start as *mut _, aligned - start);
        libc::munmap((aligned + bytes) as *mut _, rest);
    }
    aligned as i64
}

/// A child that writes `pages` pages from `start` on, and then lives until it is killed.
pub fn fork(start: usize, pages: usize) -> i64 {
    let mut ends = [0; 2];
    // SAFETY: room for two numbers.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: this program has one thread here; the child calls nothing that takes a lock.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above; memory that the test says may be written, and the pipe.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        each_page(start, pages, |byte| {
            // SAFETY: as above.
            unsafe { byte.write_volatile(byte.read_volatile().wrapping_add(1)) }
        });
        loop {
            // SAFETY: one byte of our own; then nothing but waiting.
            unsafe {
                libc::write(ends[1], [1u8].as_ptr().cast(), 1);
                libc::pause();
            }
        }
    }
    let mut byte = [0u8];
    // SAFETY: room for one byte; both ends are ours.
    unsafe {
        libc::read(ends[0], byte.as_mut_ptr().cast(), 1);
        libc::close(ends[0]);
        libc::close(ends[1]);
    }
    answer(child.into())
}

pub fn kill(child: usize) -> i64 {
    let mut status = 0;
    // SAFETY: a child of our own, that nobody else waits for.
    unsafe {
        libc::kill(child as i32, libc::SIGKILL);
        answer(libc::waitpid(child as i32, &mut status, 0).into())
    }
}
