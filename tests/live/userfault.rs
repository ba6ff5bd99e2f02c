//! Userfaultfd from within the process whose memory it is: write protection without a handler, and poison.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
const UFFDIO_WRITEPROTECT: libc::Ioctl = 0xc018_aa06_u32 as libc::Ioctl;
const UFFDIO_POISON: libc::Ioctl = 0xc020_aa08_u32 as libc::Ioctl;
const WP_UNPOPULATED: u64 = 1 << 13;
const POISON: u64 = 1 << 14;
const WP_ASYNC: u64 = 1 << 15;
const MODE_MISSING: u64 = 1;
const MODE_WP: u64 = 2;
const MODE_MINOR: u64 = 4;

fn failure() -> i64 {
    -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(1))
}

/// One descriptor for the life of the process: closed, it takes its markers with it.
fn descriptor() -> Result<i32, i64> {
    static DESCRIPTOR: OnceLock<Result<i32, i64>> = OnceLock::new();
    *DESCRIPTOR.get_or_init(|| {
        const USER_MODE_ONLY: libc::c_int = 1;
        // SAFETY: a system call without memory.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(failure());
        }
        let mut api = [0xaau64, WP_UNPOPULATED | POISON | WP_ASYNC, 0];
        // SAFETY: three words, as struct uffdio_api has.
        match unsafe { libc::ioctl(fd as i32, UFFDIO_API, api.as_mut_ptr()) } {
            0 => Ok(fd as i32),
            _ => Err(failure()),
        }
    })
}

fn register(start: usize, length: usize, mode: u64) -> Result<i32, i64> {
    let fd = descriptor()?;
    let mut range = [start as u64, length as u64, mode, 0];
    // SAFETY: four words, as struct uffdio_register has.
    match unsafe { libc::ioctl(fd, UFFDIO_REGISTER, range.as_mut_ptr()) } {
        0 => Ok(fd),
        _ => Err(failure()),
    }
}

/// Write-protects `protected` bytes of a range that is registered whole; a write lifts that by itself.
pub fn protect(start: usize, length: usize, protected: usize) -> i64 {
    let protect = || -> Result<i64, i64> {
        let fd = register(start, length, MODE_WP)?;
        let mut range = [start as u64, protected as u64, 1];
        // SAFETY: three words, as struct uffdio_writeprotect has.
        match unsafe { libc::ioctl(fd, UFFDIO_WRITEPROTECT, range.as_mut_ptr()) } {
            0 => Ok(0),
            _ => Err(failure()),
        }
    };
    protect().unwrap_or_else(|error| error)
}

/// Poisons a range: any access is SIGBUS.
pub fn poison(start: usize, length: usize) -> i64 {
    let poison = || -> Result<i64, i64> {
        let fd = register(start, length, MODE_MISSING)?;
        let mut range = [start as u64, length as u64, 0, 0];
        // SAFETY: four words, as struct uffdio_poison has.
        match unsafe { libc::ioctl(fd, UFFDIO_POISON, range.as_mut_ptr()) } {
            0 => Ok(0),
            _ => Err(failure()),
        }
    };
    poison().unwrap_or_else(|error| error)
}

/// The number of events that the handler received.
static TOLD: AtomicI64 = AtomicI64::new(0);

/// How often the handler was told.
pub fn told() -> i64 {
    TOLD.load(Ordering::SeqCst)
}

/// Registers a range with a handler that receives missing faults (`mode` 1), writes (`mode` 2, which write-protects the
/// range) or minor faults (`mode` 4), and resolves them.
pub fn handle(start: usize, length: usize, mode: usize) -> i64 {
    const UFFDIO_ZEROPAGE: libc::Ioctl = 0xc020_aa04_u32 as libc::Ioctl;
    const UFFDIO_CONTINUE: libc::Ioctl = 0xc020_aa07_u32 as libc::Ioctl;
    const PAGEFAULT_FLAG_WP: u64 = 2;
    const PAGEFAULT_FLAG_MINOR: u64 = 4;
    const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
    let mode = mode as u64;
    let handle = || -> Result<i64, i64> {
        const USER_MODE_ONLY: libc::c_int = 1;
        // SAFETY: a system call without memory.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(failure());
        }
        let fd = fd as i32;
        // The features of write protection and of minor faults are asked for by bits of their own.
        let features = match mode {
            MODE_MINOR => FEATURE_MINOR_SHMEM,
            mode => mode >> 1,
        };
        let mut api = [0xaau64, features, 0];
        let mut range = [start as u64, length as u64, mode, 0];
        let mut protected = [start as u64, length as u64, 1];
        // SAFETY: words enough for each of the structures.
        let done = unsafe {
            libc::ioctl(fd, UFFDIO_API, api.as_mut_ptr()) == 0
                && libc::ioctl(fd, UFFDIO_REGISTER, range.as_mut_ptr()) == 0
                && (mode != MODE_WP || libc::ioctl(fd, UFFDIO_WRITEPROTECT, protected.as_mut_ptr()) == 0)
        };
        if !done {
            return Err(failure());
        }
        std::thread::spawn(move || {
            let page = super::support::page_bytes();
            // struct uffd_msg: 32 bytes, of which a page fault has flags and address in the second and third word.
            let mut message = [0u64; 4];
            // SAFETY: 32 bytes for the message, words enough for the structures.
            unsafe {
                while libc::read(fd, message.as_mut_ptr().cast(), 32) == 32 {
                    TOLD.fetch_add(1, Ordering::SeqCst);
                    let at = message[2] / page * page;
                    match message[1] & (PAGEFAULT_FLAG_WP | PAGEFAULT_FLAG_MINOR) {
                        PAGEFAULT_FLAG_MINOR => libc::ioctl(fd, UFFDIO_CONTINUE, [at, page, 0, 0].as_mut_ptr()),
                        0 => libc::ioctl(fd, UFFDIO_ZEROPAGE, [at, page, 0, 0].as_mut_ptr()),
                        _ => libc::ioctl(fd, UFFDIO_WRITEPROTECT, [at, page, 0].as_mut_ptr()),
                    };
                }
            }
        });
        Ok(0)
    };
    handle().unwrap_or_else(|error| error)
}
