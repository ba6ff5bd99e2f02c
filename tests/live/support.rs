//! Helpers for several modules of tests.

pub use crate::shown::shows_frames;
pub use crate::skips::skip;
use pmdb::kernel::{AddressRange, PageMapEntry, PageSize, VirtualAddress};
use pmdb::report::Effect;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

/// Has gdb write a core file of a process, with all its memory. Returns what gdb said.
pub fn write_core(pid: &str, core: &Path) -> io::Result<Output> {
    let write = format!("generate-core-file {}", core.display());
    Command::new("gdb").args(["-nx", "-batch", "--readnever", "-p", pid, "-ex", &write]).output()
}

/// Whether this is root, with the rights of root on this machine and not only in a container.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root() && File::open("/proc/kpageflags").is_ok() && shows_frames()
}

/// Whether the kernel has PAGEMAP_SCAN: Linux 6.7.
pub fn has_scan() -> bool {
    release() >= (6, 7)
}

/// Whether not even root may change the hugetlb pool. It is hidden in a guest whose kernel stops when hugetlb memory is
/// unmapped, even if it was never touched.
pub fn pool_is_hidden() -> bool {
    let setting = "/proc/sys/vm/nr_hugepages";
    rustix::process::geteuid().is_root() && rustix::fs::access(setting, rustix::fs::Access::WRITE_OK).is_err()
}

/// Whether pmdb cannot rule out this effect of an access on this older kernel. Before 5.19 no mark tells whether an
/// anonymous page is exclusive to one process (PG_anon_exclusive), and before 6.11 none whether it came back from swap
/// write-protected. Without a scan, poisoned hugetlb pages do not show.
pub fn is_left_open(effect: &str) -> bool {
    match effect {
        "copy" => release() < (5, 19),
        "nothing" | "reuse" => release() < (6, 11),
        "poisoned" | "wait" => !has_scan(),
        // Only a scan tells whether writes are tracked (UFFD_FEATURE_WP_ASYNC).
        "unprotect" => !has_scan(),
        _ => false,
    }
}

/// The reported effects, without those that are left open and not expected.
pub fn certain(told: &[Effect], expected: &[Effect]) -> Vec<Effect> {
    let word = |one: &Effect| serde_json::to_value(one).expect("a word");
    let is_certain = |one: &Effect| expected.contains(one) || !is_left_open(word(one).as_str().expect("a word"));
    told.iter().copied().filter(is_certain).collect()
}

/// The first two numbers of the kernel's release.
pub fn release() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let mut number = || numbers.next().expect("a number");
    (number(), number())
}

pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

pub fn page() -> PageSize {
    PageSize::from_bytes(page_bytes()).expect("a page size")
}

/// Bytes that one PMD maps, where the kernel can map so much at once.
pub fn huge_page_bytes() -> Option<u64> {
    let setting = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    std::fs::read_to_string(setting).ok()?.trim().parse().ok()
}

/// Bytes in a huge page of the pool, as mmap gives them.
pub fn pool_page_bytes() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let line = info.lines().find(|line| line.starts_with("Hugepagesize:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

pub fn at(address: u64) -> VirtualAddress {
    VirtualAddress::new(address)
}

pub fn range(start: u64, len: u64) -> AddressRange {
    AddressRange::new(at(start), at(start + len)).expect("a range")
}

/// The page-map entry of `address`, read without pmdb. `None` where the page map ends.
pub fn plain_entry(pid: u32, address: u64) -> Option<u64> {
    let file = File::open(format!("/proc/{pid}/pagemap")).expect("its page map");
    let mut bytes = [0; 8];
    let read = file.read_at(&mut bytes, address / page_bytes() * 8).expect("a read");
    (read == 8).then(|| u64::from_ne_bytes(bytes))
}

/// Whether the page-map entry is empty, read without pmdb. Kernels that track soft-dirty pages set bit 55 on holes too.
pub fn is_hole(pid: u32, address: u64) -> bool {
    plain_entry(pid, address).is_some_and(|entry| entry & !(1 << 55) == 0)
}

/// Whether the mapping that holds `address` is shared (`s` in its permissions).
pub fn is_shared(pid: u32, address: u64) -> bool {
    let maps = plain_maps(pid);
    let mut rows = maps.iter();
    let row = rows.find(|(start, end, _)| (*start..*end).contains(&address));
    row.is_some_and(|(_, _, rest)| rest.get(3) == Some(&b's'))
}

/// Whether smaps gives the region that starts at `start` this flag.
pub fn has_vm_flag(pid: u32, start: u64, flag: &str) -> bool {
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("its smaps");
    let region = smaps.lines().skip_while(|line| !line.starts_with(&format!("{start:08x}-")));
    let mut flags = region.filter_map(|line| line.strip_prefix("VmFlags:"));
    let flags = flags.next().expect("the flags of a region");
    flags.split_whitespace().any(|one| one == flag)
}

/// The page-map entries of `pages` pages from `address` on, through pmdb.
pub fn entries(process: &pmdb::process::Process, address: u64, pages: usize) -> Vec<PageMapEntry> {
    let mut entries = vec![PageMapEntry::default(); pages];
    let read = process.entries(address / page_bytes(), &mut entries).expect("entries");
    entries.truncate(read);
    entries
}

/// The rows of `/proc/PID/maps`, decoded without pmdb: start, end, and the rest of the line.
pub fn plain_maps(pid: u32) -> Vec<(u64, u64, Vec<u8>)> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).expect("its maps");
    let rows = text.split(|&byte| byte == b'\n').filter(|row| !row.is_empty());
    let row = |row: &[u8]| {
        let dash = row.iter().position(|&byte| byte == b'-').expect("a dash");
        let blank = row.iter().position(|&byte| byte == b' ').expect("a blank");
        let number =
            |bytes: &[u8]| u64::from_str_radix(std::str::from_utf8(bytes).expect("digits"), 16).expect("a number");
        (number(&row[..dash]), number(&row[dash + 1..blank]), row[blank + 1..].to_vec())
    };
    rows.map(row).collect()
}

/// The page-map entries of a range, in order, read without pmdb: the page's index and the word. Without those that the
/// page map does not cover.
pub fn plain_entries(pid: u32, start: u64, end: u64) -> Vec<(u64, u64)> {
    let file = File::open(format!("/proc/{pid}/pagemap")).expect("its page map");
    let first = start / page_bytes();
    let mut bytes = vec![0; ((end - start) / page_bytes() * 8) as usize];
    let Ok(read) = file.read_at(&mut bytes, first * 8) else { panic!("its page map can be read") };
    let words = bytes[..read].chunks_exact(8);
    (first..).zip(words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")))).collect()
}

/// Those of present pages, without regions of more than `most` pages.
pub fn plain_present_entries(pid: u32, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let maps = plain_maps(pid).into_iter().filter(move |(start, end, _)| end - start <= most * page_bytes());
    let entries = maps.flat_map(move |(start, end, _)| plain_entries(pid, start, end));
    entries.filter(|(_, word)| word >> 63 == 1)
}

/// Numbers that look random and are the same each time (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
    /// One below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
