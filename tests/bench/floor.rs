//! What the kernel's own reads cost: one thread, 64 KiB a read, and nothing is done with the bytes.

use super::kernel_calls;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const READ_WORDS: usize = 8192;
const FRAME_BITS: u64 = (1 << 55) - 1;

pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

pub fn page_map(pid: u32) -> File {
    File::open(format!("/proc/{pid}/pagemap")).expect("its page map")
}

/// Reads the words from `first` to `end` of a file; returns how many there were.
fn words(file: &File, first: u64, end: u64, buffer: &mut [u64], mut each: impl FnMut(&[u64])) -> u64 {
    let mut at = first;
    while at < end {
        let wanted = ((end - at) as usize).min(buffer.len());
        let (_, bytes, _) = {
            // SAFETY: every pattern of bytes is a number.
            unsafe { buffer[..wanted].align_to_mut::<u8>() }
        };
        let read = file.read_at(bytes, at * 8).expect("a read") / 8;
        if read == 0 {
            break;
        }
        each(&buffer[..read]);
        at += read as u64;
    }
    at - first
}

/// All entries of a range of addresses.
pub fn entries(pid: u32, (start, len): (u64, u64)) {
    let (file, page) = (page_map(pid), page_bytes());
    let mut buffer = vec![0; READ_WORDS];
    words(&file, start / page, (start + len) / page, &mut buffer, |words| {
        black_box(words);
    });
}

/// What `page-types -p` reads of a range (tools/mm/page-types.c): entries in large reads, the flags of each frame by a
/// read of its own. The program does no less.
pub fn page_types_reads(pid: u32, (start, len): (u64, u64)) {
    const BATCH: usize = 64 << 10;
    let (file, page) = (page_map(pid), page_bytes());
    let flags = File::open("/proc/kpageflags").expect("to be root");
    let (mut buffer, mut flag) = (vec![0; BATCH], [0]);
    words(&file, start / page, (start + len) / page, &mut buffer, |words_read| {
        for frame in words_read.iter().filter(|entry| *entry >> 63 == 1).map(|entry| entry & FRAME_BITS) {
            words(&flags, frame, frame + 1, &mut flag, |flag| {
                black_box(flag);
            });
        }
    });
}

/// Reads a range of addresses whole, and searches it for bytes that it does not hold.
pub fn find(pid: u32, (start, len): (u64, u64), needle: &[u8]) {
    const CHUNK: u64 = 1 << 20;
    let finder = memchr::memmem::Finder::new(needle);
    let mut buffer = vec![0u8; CHUNK as usize];
    for at in (start..start + len).step_by(CHUNK as usize) {
        let wanted = CHUNK.min(start + len - at) as usize;
        let (local, remote) = (
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: wanted },
            libc::iovec { iov_base: at as *mut libc::c_void, iov_len: wanted },
        );
        // SAFETY: no more is written than the buffer takes; the other address is of the other process.
        let read = unsafe { libc::process_vm_readv(pid as i32, &local, 1, &remote, 1, 0) };
        assert_eq!(read, wanted as isize, "all of it is there");
        assert!(finder.find(&buffer[..wanted]).is_none());
    }
}

/// The populated pages of a range of addresses, and the frames of its huge pages with as few calls as possible: the
/// last entry of a huge page and the first of the next are neighbours.
pub fn huge_entries(pid: u32, range: (u64, u64)) {
    /// Pages of a huge page.
    const HUGE: u64 = 512;
    scan(pid, range);
    let (file, page) = (page_map(pid), page_bytes());
    let (first, end) = (range.0 / page, (range.0 + range.1) / page);
    let mut buffer = [0; 2];
    for last in (first + HUGE - 1..end).step_by(2 * HUGE as usize) {
        words(&file, last, (last + 2).min(end), &mut buffer, |words| {
            black_box(words);
        });
    }
}

/// The populated pages of a range of addresses.
pub fn scan(pid: u32, (start, len): (u64, u64)) {
    assert!(kernel_calls::scan(&page_map(pid), start, start + len, |stretch| {
        black_box(stretch);
    }));
}

/// Anonymous memory that this program has now.
pub fn own_anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("its own status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

/// The runs of frames of a range, in the order of frames: a reader of the other two files has to know them first.
pub fn frame_runs(pid: u32, (start, len): (u64, u64)) -> Vec<(u64, u64)> {
    let (file, page) = (page_map(pid), page_bytes());
    let mut frames = Vec::new();
    let mut buffer = vec![0; READ_WORDS];
    words(&file, start / page, (start + len) / page, &mut buffer, |words| {
        frames.extend(words.iter().map(|word| word & FRAME_BITS));
    });
    frames.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for frame in frames {
        match runs.last_mut() {
            Some((_, end)) if *end >= frame => *end = frame + 1,
            _ => runs.push((frame, frame + 1)),
        }
    }
    runs
}

/// The entries of a range, and flags and map counts of its frames in the order of frames.
pub fn three_files(pid: u32, range: (u64, u64), runs: &[(u64, u64)]) {
    entries(pid, range);
    let mut buffer = vec![0; READ_WORDS];
    for path in ["/proc/kpageflags", "/proc/kpagecount"] {
        let file = File::open(path).expect("to be root");
        for &(first, end) in runs {
            words(&file, first, end, &mut buffer, |words| {
                black_box(words);
            });
        }
    }
}

/// The entries of a range, and the flags of its frames in the order of frames.
pub fn entries_and_flags(pid: u32, range: (u64, u64), runs: &[(u64, u64)]) {
    entries(pid, range);
    let mut buffer = vec![0; READ_WORDS];
    let file = File::open("/proc/kpageflags").expect("to be root");
    for &(first, end) in runs {
        words(&file, first, end, &mut buffer, |words| {
            black_box(words);
        });
    }
}

/// All bytes of a range of addresses.
pub fn memory(pid: u32, (start, len): (u64, u64)) {
    let file = File::open(format!("/proc/{pid}/mem")).expect("its memory");
    let mut buffer = vec![0; 256 << 10];
    let (mut at, end) = (start, start + len);
    while at < end {
        let wanted = ((end - at) as usize).min(buffer.len());
        let read = file.read_at(&mut buffer[..wanted], at).expect("a read");
        assert!(read > 0, "all of it is there");
        black_box(&buffer);
        at += read as u64;
    }
}

/// The flags of all physical frames; returns how many there are.
pub fn all_flags() -> u64 {
    let file = File::open("/proc/kpageflags").expect("to be root");
    let mut buffer = vec![0; READ_WORDS];
    words(&file, 0, u64::MAX, &mut buffer, |words| {
        black_box(words);
    })
}

/// The text of `/proc/PID/maps`.
pub fn maps(pid: u32) {
    let mut file = File::open(format!("/proc/{pid}/maps")).expect("its maps");
    let mut buffer = vec![0; 64 << 10];
    while file.read(&mut buffer).expect("a read") > 0 {
        black_box(&buffer);
    }
}

/// The reads that counting in regions needs at least: the regions, the entries of their pages, and the regions again.
pub fn counted_regions(pid: u32, range: (u64, u64)) {
    maps(pid);
    entries(pid, range);
    maps(pid);
}

/// The populated pages of each process, and their entries.
pub fn populated(pids: &[u32]) {
    let page = page_bytes();
    let mut buffer = vec![0; READ_WORDS];
    for &pid in pids {
        let file = page_map(pid);
        let mut stretches = Vec::new();
        kernel_calls::scan(&file, 0, TASK_BYTES, |stretch| stretches.push(stretch));
        for stretch in stretches {
            words(&file, stretch.start / page, stretch.end / page, &mut buffer, |words| {
                black_box(words);
            });
        }
    }
}

/// The user half of x86-64 with four levels of page tables, less a page.
const TASK_BYTES: u64 = 0x7fff_ffff_f000;

/// The least that a program can do to translate one address.
pub struct Minimal {
    program: PathBuf,
}

const MINIMAL: &str = r#"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char path[64];
    uint64_t entry = 0;
    if (argc != 3)
        return 2;
    snprintf(path, sizeof path, "/proc/%s/pagemap", argv[1]);
    int file = open(path, O_RDONLY);
    off_t page = strtoull(argv[2], 0, 16) / sysconf(_SC_PAGESIZE);
    if (pread(file, &entry, sizeof entry, page * sizeof entry) != sizeof entry)
        return 1;
    printf("%016llx\n", (unsigned long long)entry);
    return 0;
}
"#;

impl Minimal {
    /// Compiles it into `folder`; `None` without a C compiler.
    pub fn compile(folder: &Path) -> Option<Minimal> {
        let (source, program) = (folder.join("minimal.c"), folder.join("minimal"));
        std::fs::write(&source, MINIMAL).ok()?;
        let mut cc = Command::new("cc");
        let status = cc.arg("-O2").arg("-o").arg(&program).arg(&source).status();
        status.ok()?.success().then_some(Minimal { program })
    }

    pub fn run(&self, pid: u32, address: u64) {
        let mut command = Command::new(&self.program);
        command.arg(pid.to_string()).arg(format!("{address:x}"));
        let status = command.stdout(Stdio::null()).status().expect("to start it");
        assert!(status.success());
    }
}
