//! The backing content of pages that are not mapped: files in the page cache or not, past their end, shared memory in
//! swap.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::states::{detail, pages};
use super::support::{self, at, is_hole, page_bytes, range, skip};
use pmdb::inspect::{Evidence, Page};
use pmdb::kernel::{Kind, State};
use pmdb::process::Target;
use pmdb::report::Reason;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

pub const TESTS: &[Test] = &[
    ("behind::pages_of_a_file", pages_of_a_file),
    ("behind::a_file_partly_cached", a_file_partly_cached),
    ("behind::shared_memory", shared_memory),
    ("behind::shared_memory_in_swap", shared_memory_in_swap),
    ("behind::a_file_of_the_pool", a_file_of_the_pool),
    ("behind::nothing_is_read_or_mapped", nothing_is_read_or_mapped),
];

/// A file of `bytes` bytes on a disk, until this is dropped: without rights, a path is the only way to it.
pub struct DiskFile {
    file: File,
    pub path: PathBuf,
}

/// A folder on a disk that this user may write to: /tmp may be a tmpfs, and the program's folder may not be writable.
fn on_disk() -> PathBuf {
    const TMPFS: u64 = 0x0102_1994;
    let built = std::env::current_exe().expect("this program");
    let built = built.parent().expect("its folder").to_owned();
    let folders = [built, std::env::temp_dir(), PathBuf::from("/var/tmp")];
    let serves = |folder: &PathBuf| {
        let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
        writable && rustix::fs::statfs(folder).is_ok_and(|of| of.f_type as u64 != TMPFS)
    };
    folders.into_iter().find(serves).expect("a folder on a disk")
}

impl DiskFile {
    pub fn of(bytes: u64) -> DiskFile {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = on_disk().join(format!("behind-{}-{number}", std::process::id()));
        let options = File::options().read(true).write(true).create_new(true).open(&path);
        let file = options.expect("a new file");
        file.write_all_at(&vec![7; bytes as usize], 0).expect("to fill it");
        file.sync_all().expect("to save it");
        DiskFile { file, path }
    }
}

impl Deref for DiskFile {
    type Target = File;
    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}

/// Drops pages of a file from the page cache; what is dirty or mapped stays.
pub fn drop_cached(file: &File, first: u64, pages: u64) {
    let (offset, length) = (first * page_bytes(), pages * page_bytes());
    // SAFETY: a system call without memory.
    let result =
        unsafe { libc::posix_fadvise64(file.as_raw_fd(), offset as i64, length as i64, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(result, 0);
}

/// Keeps these pages of a file in the page cache, and no others, until this is dropped, even under memory pressure.
pub struct Held {
    start: *mut libc::c_void,
    length: usize,
}

impl Held {
    pub fn of(file: &File, first: u64, pages: u64) -> Held {
        let (length, offset) = ((pages * page_bytes()) as usize, (first * page_bytes()) as i64);
        let (prot, flags, fd) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice; nobody cuts the file short.
        let start = unsafe {
            let start = libc::mmap64(std::ptr::null_mut(), length, prot, flags, fd, offset);
            assert_ne!(start, libc::MAP_FAILED);
            // Without reading ahead.
            assert_eq!(libc::madvise(start, length, libc::MADV_RANDOM), 0);
            assert_eq!(libc::mlock(start, length), 0);
            start
        };
        Held { start, length }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: just what was mapped.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// Whether a page of a file is in the page cache, by mincore(2).
pub fn is_cached(file: &File, page: u64) -> bool {
    let mut byte = [0u8];
    let size = page_bytes() as usize;
    let offset = (page * page_bytes()) as i64;
    // SAFETY: a mapping of one page that is not touched, and one byte for it.
    unsafe {
        let start =
            libc::mmap64(std::ptr::null_mut(), size, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), offset);
        assert_ne!(start, libc::MAP_FAILED);
        assert_eq!(libc::mincore(start, size, byte.as_mut_ptr()), 0);
        libc::munmap(start, size);
    }
    byte[0] & 1 != 0
}

/// The kinds of `pages` untouched pages, queried one by one and in a sweep.
fn kinds(target: &Target, start: u64, count: u64) -> Vec<Kind> {
    let one_by_one: Vec<Kind> = (0..count)
        .map(|page| {
            let detail = detail(target, start + page * page_bytes());
            // Only the kernel's own records show that shared memory is in swap.
            let expected = if detail.page.slot.is_some() { State::Swapped } else { State::Untouched };
            assert_eq!(detail.page.state(), expected, "page {page}");
            detail.page.kind.expect("a kind")
        })
        .collect();
    let swept: Vec<Page> = pages(target, &[(start, count)], Evidence::CONTENT);
    let swept: Vec<Kind> = swept.iter().map(|page| page.kind.expect("a kind")).collect();
    assert_eq!(one_by_one, swept);
    // In one row, without reading the backing content.
    let together = pmdb::inspect::AddressSpace::of(target).expect("a space");
    let mut rows = 0;
    let mut last = None;
    let mut pages = together.pages(&[range(start, count * page_bytes())], Evidence::CONTENT);
    while let Some(chunk) = pages.next().expect("a sweep") {
        for page in chunk.pages() {
            rows += u64::from(last != page.kind);
            last = page.kind;
        }
    }
    let changes = one_by_one.chunk_by(|a, b| a == b).count() as u64;
    assert_eq!(rows, changes);
    one_by_one
}

/// Two pages of which one is cached, one not, and what lies beyond the end.
fn pages_of_a_file() {
    const NAME: &str = "behind::pages_of_a_file";
    let file = DiskFile::of(8 * page_bytes() + 1);
    let mut puppet = Puppet::start();
    let memory = puppet.maps_file(&file, 12, libc::PROT_READ, libc::MAP_SHARED);
    drop_cached(&file, 0, 12);
    if is_cached(&file, 0) {
        return skip(NAME, "the filesystem keeps what it should drop");
    }
    let _held = Held::of(&file, 3, 1);
    let target = puppet.0.attach();
    use Kind::{Cached, NotCached, PastEnd};
    // The ninth page holds one byte of the file; what follows is beyond it.
    let expected: Vec<Kind> = (0..12)
        .map(|page| match page {
            3 => Cached,
            0..9 => NotCached,
            _ => PastEnd,
        })
        .collect();
    assert_eq!(kinds(&target, memory, 12), expected);
}

fn a_file_partly_cached() {
    let pages = 2000;
    let file = DiskFile::of(pages * page_bytes());
    let mut puppet = Puppet::start();
    let memory = puppet.maps_file(&file, pages, libc::PROT_READ, libc::MAP_PRIVATE);
    drop_cached(&file, 0, pages);
    if is_cached(&file, 0) {
        return skip("behind::a_file_partly_cached", "the filesystem keeps what it should drop");
    }
    let held = [(0, 1), (3, 1), (5, 200), (1024, 300), (1999, 1)];
    let _held = held.map(|(first, count)| Held::of(&file, first, count));
    let target = puppet.0.attach();
    let found = kinds(&target, memory, pages);
    let is_held = |page: u64| held.iter().any(|&(first, count)| (first..first + count).contains(&page));
    let mut others = [0, 0];
    for (page, kind) in (0..).zip(found) {
        let is_cached = is_cached(&file, page);
        let expected = if is_cached { Kind::Cached } else { Kind::NotCached };
        assert_eq!(kind, expected, "page {page}");
        if is_held(page) {
            assert!(is_cached, "page {page}")
        } else {
            // A large folio is kept, or read, as a whole.
            others[usize::from(is_cached)] += 1
        }
    }
    let [dropped, kept] = others;
    assert!(dropped > kept, "{dropped} dropped, {kept} kept");
}

fn shared_memory() {
    for verb in ["memfd", "shared"] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps(verb, 6);
        puppet.writes(memory + 2 * page_bytes(), 2);
        // Its page stays in the object, and is mapped here no more.
        puppet.advises(memory + 3 * page_bytes(), 1, libc::MADV_DONTNEED).expect("to unmap");
        let target = puppet.0.attach();
        let first = detail(&target, memory + 3 * page_bytes());
        match first.content {
            Ok(_) => assert_eq!(first.page.kind, Some(Kind::Cached), "{verb}"),
            // Only map_files leads there.
            Err(reason) => {
                assert!(matches!(reason, Reason::NotPermitted { .. } | Reason::NotOnThisKernel(_)));
                assert!(!super::support::is_root(), "{verb}: {reason}");
                assert_eq!(first.page.kind, Some(Kind::Shmem));
                continue;
            }
        }
        let kind = |page| detail(&target, memory + page * page_bytes()).page.kind;
        for hole in [0, 1, 4, 5] {
            assert_eq!(kind(hole), Some(Kind::Shmem), "{verb} page {hole}");
        }
        let swept = pages(&target, &[(memory, 6)], Evidence::CONTENT);
        let swept: Vec<_> = swept.iter().map(|page| page.kind).collect();
        use Kind::{Cached, Shmem};
        assert_eq!(swept, [Shmem, Shmem, Shmem, Cached, Shmem, Shmem].map(Some), "{verb}");
    }
}

fn shared_memory_in_swap() {
    const NAME: &str = "behind::shared_memory_in_swap";
    let swap = match super::system::swap() {
        Ok(swap) => swap,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("memfd", 3);
    puppet.writes(memory, 2);
    let pid = puppet.0.pid();
    if !puppet.pages_out(memory, 2) || !is_hole(pid, memory) {
        return skip(NAME, "the kernel kept the page");
    }
    let target = puppet.0.attach();
    let one = detail(&target, memory);
    if one.content.is_err() {
        return skip(NAME, "map_files is not for this user");
    }
    let found = kinds(&target, memory, 3);
    use Kind::{MaybeSwapped, Shmem};
    if super::slots::are_read(&target) {
        assert_eq!((one.page.state(), one.page.kind), (State::Swapped, Some(Shmem)));
        assert_eq!(found, [Shmem; 3]);
    } else {
        assert_eq!(found, [MaybeSwapped, MaybeSwapped, Shmem]);
    }
    // No filter takes a page in swap for one that is not: its answer is unknown, or true.
    let range = format!("{memory:#x},+{:#x}", 3 * page_bytes());
    let count = |filter: &str| program(&[], pid, true, &[format!("print count({range} where {filter})")]);
    let walk = program(&[], pid, false, &[format!("walk {range} where swapped")]);
    let whole = program(&[], pid, true, &["print swapped(all)".to_owned()]);
    if super::slots::are_read(&target) {
        assert!(count("swapped").contains("\"as_number\":2,"), "{}", count("swapped"));
    } else {
        assert!(
            count("swapped").contains("whether the filter holds for 2 pages is not certain"),
            "{}",
            count("swapped")
        );
        assert!(walk.contains("`maybe_swapped` finds it"), "{walk}");
        assert!(!walk.contains("no page matches"), "{walk}");
    }
    assert!(count("swapped or maybe_swapped").contains("\"as_number\":2,"), "{}", count("swapped or maybe_swapped"));
    // What has no contents is not in swap.
    let hole = format!("print count({:#x},+1p where not swapped)", memory + 2 * page_bytes());
    let hole = program(&[], pid, true, &[hole]);
    assert!(hole.contains("\"as_number\":1,"), "{hole}");
    assert!(whole.contains("\"as_number\":") && !whole.contains("\"as_number\":0,"), "{whole}");
    assert!(is_hole(pid, memory), "asking brings nothing back");
    drop(puppet);
    drop(swap);
}

fn nothing_is_read_or_mapped() {
    let file = DiskFile::of(64 * page_bytes());
    let mut puppet = Puppet::start();
    let memory = puppet.maps_file(&file, 64, libc::PROT_READ, libc::MAP_SHARED);
    drop_cached(&file, 0, 64);
    if is_cached(&file, 0) {
        return skip("behind::nothing_is_read_or_mapped", "the filesystem keeps what it should drop");
    }
    let target = puppet.0.attach();
    assert_eq!(kinds(&target, memory, 64), [Kind::NotCached; 64]);
    assert!((0..64).all(|page| !is_cached(&file, page)));
    assert!((0..64).all(|page| is_hole(puppet.0.pid(), memory + page * page_bytes())));
    assert_eq!(target.process.region_at(at(memory)).expect("its region").expect("a region").range.start(), at(memory));
}

/// The kernel shows how many huge pages a file has, but not which: whether a filter on them holds is then unknown.
fn a_file_of_the_pool() {
    const NAME: &str = "behind::a_file_of_the_pool";
    let pool = match super::system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = 2 * support::pool_page_bytes();
    let pages = bytes / page_bytes();
    let mut puppet = Puppet::start();
    let answer = puppet.asks("pooled", &[bytes, libc::MAP_SHARED as u64]);
    let Ok(filled) = u64::try_from(answer) else {
        return skip(NAME, &format!("error {}", -answer));
    };
    let untouched = puppet.does("pooled_again", &[bytes, libc::MAP_SHARED as u64]);
    let pid = puppet.0.pid();
    let asks = |filter: &str| {
        let lines = [
            format!("walk {untouched:#x},+{bytes:#x} where {filter}"),
            format!("print count({untouched:#x},+{bytes:#x} where {filter})"),
        ];
        program(&[], pid, true, &lines)
    };
    let matches = |filter: &str, expected: u64| {
        let said = asks(filter);
        assert!(said.contains(&format!("\"type\":\"walk-summary\",\"pages\":{expected},")), "{filter}: {said}");
        assert!(!said.contains("\"error\""), "{filter}: {said}");
    };
    for filter in ["cached", "not_cached", "past_end", "maybe_swapped"] {
        matches(filter, 0);
    }
    puppet.writes(filled, 1);
    for filter in ["cached", "not cached", "not_cached"] {
        let said = asks(filter);
        let errors = said.lines().filter(|line| line.starts_with("{\"type\":\"error\"")).count();
        // It is known of no page: an error of both, with the reason.
        assert_eq!(errors, 2, "{filter}: {said}");
        assert_eq!(said.matches("the kernel does not show which").count(), 2, "{filter}: {said}");
    }
    let told = program(&[], pid, false, &[format!("translate {untouched:#x}")]);
    assert!(told.contains("the page of its file, or one from the hugetlb pool"), "{told}");
    puppet.writes(filled + bytes / 2, 1);
    matches("cached", pages);
    matches("not cached", 0);
    matches("not_cached", 0);
    drop(puppet);
    drop(pool);
}
