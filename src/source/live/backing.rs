//! The backing content of a mapping of a file or of shared memory, found without reading any of it.
//!
//! `SEEK_DATA` distinguishes pages of shared memory, in memory or in swap, from holes. cachestat(2) counts the pages of
//! a range in the page cache, so that bisection finds where that changes.

use super::apart::error_from_bytes;
use super::module_file::ModuleFile;
use crate::access::{Error, Result};
use crate::budget::Budget;
use crate::kernel::mapped_file::{HUGETLBFS, OVERLAYFS, TMPFS};
use crate::kernel::{AddressRange, Device, Name, PageSize, Region, VirtualAddress};
use crate::source::{BackingContent, BackingRun, sys};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{Access, AtFlags, CWD, MemfdFlags, SeekFrom, accessat, fstat, major, memfd_create, minor, seek};
use rustix::io::Errno;
use std::sync::OnceLock;

/// The number of pages in one query of the page cache, which limits the memory for the answer.
const WINDOW_PAGES: u64 = 1 << 16;
/// The most windows of a whole file that are queried one by one: 1 TiB with pages of 4 KiB. A sparse file may be
/// larger.
const MOST_WINDOWS: u64 = 1 << 12;

/// Finds the runs of `range` in `region`, whose object is `file`. Each query of the kernel costs one step.
pub(super) fn runs(
    file: &ModuleFile,
    region: &Region,
    range: AddressRange,
    page: PageSize,
    budget: &mut Budget,
) -> Result<Vec<BackingRun>> {
    let Some(range) = range.to_pages(page).intersection(region.range) else {
        return Ok(Vec::new());
    };
    let asked = BackingQuery::about(file, &region.name, page)?;
    let into = range.start().get() - region.range.start().get();
    let first = region.offset.saturating_add(into);
    let end = first.saturating_add(range.len());
    let mut runs = RunBuilder { start: range.start(), first, found: Vec::new(), budget };
    let inside = asked.size.clamp(first, end);
    asked.contents(first, inside, &mut runs)?;
    runs.add(inside, end, Ok(BackingContent::PastEnd));
    Ok(runs.found)
}

/// Returns the bytes of a file that are in the page cache.
pub(super) fn cached_bytes(file: &ModuleFile, name: &Name, page: PageSize, budget: &mut Budget) -> Result<u64> {
    BackingQuery::about(file, name, page)?.cached(budget)
}

/// Encodes runs for [`from_bytes`]: three words each, then the reason why the last one is unknown.
pub(super) fn in_bytes(runs: &[BackingRun]) -> Vec<u8> {
    let mut bytes = (runs.len() as u64).to_ne_bytes().to_vec();
    let mut unknown = String::new();
    for BackingRun { range, content } in runs {
        let code = match content {
            Ok(content) => CODES.iter().position(|code| code == content).unwrap_or(0),
            Err(error) => {
                unknown = format!("{error}\0{}", error.remedy().unwrap_or_default());
                CODES.len()
            }
        };
        for word in [range.start().get(), range.end().get(), code as u64] {
            bytes.extend(word.to_ne_bytes());
        }
    }
    bytes.extend(unknown.into_bytes());
    bytes
}

const CODES: [BackingContent; 4] = [
    BackingContent::PastEnd,
    BackingContent::Hole,
    BackingContent::Contents { cached: false },
    BackingContent::Contents { cached: true },
];

/// Decodes the runs that [`in_bytes`] encoded.
pub(super) fn from_bytes(bytes: &[u8]) -> Vec<BackingRun> {
    let (words, _) = bytes.as_chunks();
    let mut words = words.iter().copied().map(u64::from_ne_bytes);
    let count = usize::try_from(words.next().unwrap_or(0)).unwrap_or(0);
    let texts = bytes.get(size_of::<u64>() * (1 + 3 * count)..);
    let unknown = || error_from_bytes(texts.unwrap_or_default());
    let run = |_| {
        let mut address = || words.next().map(VirtualAddress::new);
        let range = AddressRange::new(address()?, address()?)?;
        let code = usize::try_from(words.next()?).ok()?;
        let content = CODES.get(code).copied().ok_or_else(unknown);
        Some(BackingRun { range, content })
    };
    (0..count).map_while(run).collect()
}

/// Converts runs of a file to runs of addresses, and joins them.
struct RunBuilder<'b> {
    start: VirtualAddress,
    first: u64,
    found: Vec<BackingRun>,
    budget: &'b mut Budget,
}

impl RunBuilder<'_> {
    /// Adds the content of the bytes `from..to` of the file.
    fn add(&mut self, from: u64, to: u64, content: Result<BackingContent>) {
        let at = |offset: u64| self.start.checked_add(offset.saturating_sub(self.first));
        let Some(range) = at(from).zip(at(to)).and_then(|(from, to)| AddressRange::new(from, to)) else {
            return;
        };
        match (self.found.last_mut(), &content) {
            (Some(last), Ok(content)) if last.content.as_ref().is_ok_and(|before| before == content) => {
                last.range = AddressRange::new(last.range.start(), range.end()).unwrap_or(range);
            }
            _ => self.found.push(BackingRun { range, content }),
        }
    }
}

/// The system call that queries the page cache.
#[derive(Clone, Copy)]
enum CacheQuery {
    /// cachestat(2)
    Counts,
    /// mincore(2), which sees the file below an overlay. The result is true only for callers who could write the file.
    Map,
}

/// An object whose content is queried.
struct BackingQuery<'f> {
    file: &'f ModuleFile,
    name: &'f Name,
    page: PageSize,
    /// The size of the object, rounded up to whole pages.
    size: u64,
    shared_memory: bool,
    /// The bytes of its allocated pages, for a file on hugetlbfs.
    pool_bytes: Option<u64>,
    way: CacheQuery,
}

impl<'f> BackingQuery<'f> {
    fn about(file: &'f ModuleFile, name: &'f Name, page: PageSize) -> Result<Self> {
        let failed = |error| Error::io(format!("examining the file of {name}"), error);
        let stat = fstat(file).map_err(failed)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let filesystem = file.filesystem().map_err(failed)?;
        Ok(BackingQuery {
            file,
            name,
            page,
            size: size.checked_next_multiple_of(page.bytes()).unwrap_or(size),
            shared_memory: filesystem == TMPFS,
            pool_bytes: (filesystem == HUGETLBFS).then_some(stat.st_blocks as u64 * 512),
            // Pages of a file on an overlay are in the cache of the file below. cachestat shows only the overlay's
            // cache, which is empty.
            way: if filesystem == OVERLAYFS { CacheQuery::Map } else { CacheQuery::Counts },
        })
    }

    /// Finds the content of the bytes `from..to`, all before the end of the file.
    fn contents(&self, from: u64, to: u64, runs: &mut RunBuilder<'_>) -> Result<()> {
        if let Some(bytes) = self.pool_bytes {
            let content = match bytes {
                0 => Ok(BackingContent::Hole),
                bytes if bytes >= self.size => Ok(BackingContent::Contents { cached: true }),
                // Neither SEEK_DATA nor cachestat shows hugetlb pages.
                _ => Err(Error::not_available(format!(
                    "{} has some of its huge pages, and the kernel does not show which",
                    self.name
                ))),
            };
            runs.add(from, to, content);
            return Ok(());
        }
        if !self.shared_memory {
            return self.add_cached(from, to, runs);
        }
        let mut at = from;
        while at < to {
            runs.budget.go_on()?;
            let data = self
                .seek(SeekFrom::Data(at))?
                .map_or(to, |data| (data / self.page.bytes() * self.page.bytes()).clamp(at, to));
            runs.add(at, data, Ok(BackingContent::Hole));
            if data == to {
                break;
            }
            let hole = self.seek(SeekFrom::Hole(data))?.unwrap_or(to);
            let hole = hole.checked_next_multiple_of(self.page.bytes()).unwrap_or(to);
            // A hole at `data` means that the page was freed after the first seek.
            at = hole.clamp((data + self.page.bytes()).min(to), to);
            self.add_cached(data, at, runs)?;
        }
        Ok(())
    }

    /// Returns the offset of a seek; `None` if there is none before the end.
    fn seek(&self, to: SeekFrom) -> Result<Option<u64>> {
        match seek(self.file, to) {
            Ok(offset) => Ok(Some(offset)),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(Error::io(format!("seeking in the file of {}", self.name), error)),
        }
    }

    /// Finds which of the bytes `from..to` are in the page cache.
    fn add_cached(&self, from: u64, to: u64, runs: &mut RunBuilder<'_>) -> Result<()> {
        let window = WINDOW_PAGES * self.page.bytes();
        let mut way = self.way;
        let mut at = from;
        while at < to {
            let end = to.min(at.saturating_add(window));
            let asked = match way {
                CacheQuery::Counts => self.halve(at, end, runs)?,
                CacheQuery::Map => {
                    runs.budget.go_on()?;
                    self.map(at, end, runs)
                }
            };
            match asked {
                Ok(()) => at = end,
                // Linux before 6.5 has no cachestat.
                Err(Errno::NOSYS) if matches!(way, CacheQuery::Counts) => way = CacheQuery::Map,
                Err(error) => {
                    runs.add(at, to, Err(self.open_error(error)));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Bisects ranges that are partly cached, until each is cached as a whole or not at all. The inner error is why the
    /// kernel shows nothing about them.
    fn halve(&self, from: u64, to: u64, runs: &mut RunBuilder<'_>) -> Result<rustix::io::Result<()>> {
        let mut left = vec![(from, to)];
        while let Some((from, to)) = left.pop() {
            let pages = (to - from) / self.page.bytes();
            runs.budget.go_on()?;
            let cached = match sys::cached_pages(self.file, from, to - from) {
                Ok(cached) => cached,
                Err(error) => return Ok(Err(error)),
            };
            if cached == 0 || cached >= pages {
                runs.add(from, to, Ok(BackingContent::Contents { cached: cached > 0 }));
            } else {
                let middle = from + pages / 2 * self.page.bytes();
                left.push((middle, to));
                left.push((from, middle));
            }
        }
        Ok(Ok(()))
    }

    /// Returns how many bytes of the file are in the page cache.
    fn cached(&self, budget: &mut Budget) -> Result<u64> {
        let counted = match (self.size, self.way) {
            (0, _) => Ok(0),
            (size, CacheQuery::Counts) => sys::cached_pages(self.file, 0, size),
            (_, CacheQuery::Map) => Err(Errno::NOSYS),
        };
        let pages = match counted {
            // Linux before 6.5, and overlays.
            Err(Errno::NOSYS) => self.mapped_pages(budget),
            counted => counted.map_err(|error| self.open_error(error)),
        };
        pages.map(|pages| pages.saturating_mul(self.page.bytes()))
    }

    /// Counts the pages of the file in the page cache by mincore(2). Each window costs one step. Holes may be cached
    /// too, so none is skipped.
    fn mapped_pages(&self, budget: &mut Budget) -> Result<u64> {
        let window = WINDOW_PAGES * self.page.bytes();
        if self.size.div_ceil(window) > MOST_WINDOWS {
            let most = (MOST_WINDOWS * window) >> 30;
            return Err(Error::not_available(format!(
                "{} is larger than {most} GiB: pmdb does not query its page cache window by window",
                self.name
            )));
        }
        let (mut at, mut cached) = (0, 0);
        while at < self.size {
            budget.go_on()?;
            let end = self.size.min(at + window);
            cached += self.window(at, end).map_err(|error| self.open_error(error))?.iter().filter(|one| **one).count();
            at = end;
        }
        Ok(cached as u64)
    }

    /// Returns for each page of a window whether it is in the page cache.
    fn window(&self, from: u64, to: u64) -> rustix::io::Result<Vec<bool>> {
        if !self.could_write() {
            return Err(Errno::PERM);
        }
        sys::cached_map(self.file, from, usize::try_from(to - from).map_err(|_| Errno::OVERFLOW)?)
    }

    fn map(&self, from: u64, to: u64, runs: &mut RunBuilder<'_>) -> rustix::io::Result<()> {
        let map = self.window(from, to)?;
        let mut at = from;
        for stretch in map.chunk_by(|a, b| a == b) {
            let end = at + stretch.len() as u64 * self.page.bytes();
            let cached = stretch.first() == Some(&true);
            runs.add(at, end.min(to), Ok(BackingContent::Contents { cached }));
            at = end;
        }
        Ok(())
    }

    /// Returns whether the kernel shows pmdb the page cache of the file (`can_do_mincore`).
    fn could_write(&self) -> bool {
        let owns = fstat(self.file).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
        let path = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
        owns || accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
    }

    fn open_error(&self, error: Errno) -> Error {
        match error {
            Errno::PERM | Errno::ACCESS => Error::not_permitted(
                "may not query the page cache of another user's file",
                "only the file's owner, those who may write it, and root can",
            ),
            error => Error::io(format!("querying the page cache of {}", self.name), error),
        }
    }
}

/// Returns the device of shared memory in no mounted filesystem, which has no path.
pub(super) fn shared_memory() -> Option<[u64; 2]> {
    static DEVICE: OnceLock<Option<[u64; 2]>> = OnceLock::new();
    *DEVICE.get_or_init(|| device_of_a_memfd(MemfdFlags::empty()))
}

/// Returns major and minor number of a memfd's device. Every memfd, System V segment and shared anonymous mapping is on
/// one filesystem that is mounted nowhere.
fn device_of_a_memfd(kind: MemfdFlags) -> Option<[u64; 2]> {
    let stat = fstat(memfd_create("pmdb", MemfdFlags::CLOEXEC | kind).ok()?).ok()?;
    Some([major(stat.st_dev).into(), minor(stat.st_dev).into()])
}

/// Returns whether a file in no mount is memory of the kernel, which is mounted nowhere. Any other filesystem was
/// unmounted while in use (`umount -l`), as is done with storage that does not answer. A file there may have the name
/// of a memfd.
pub(super) fn is_kernels_own(device: Device, name: &[u8]) -> bool {
    !name.starts_with(b"/") || is_own_memory(device)
}

/// Returns whether the filesystem of this device is mounted nowhere, and in memory: that of memfds, or of a hugetlb
/// pool.
fn is_own_memory(device: Device) -> bool {
    static POOLS: OnceLock<Vec<[u64; 2]>> = OnceLock::new();
    let device = [device.major.into(), device.minor.into()];
    let pools = || POOLS.get_or_init(|| devices_of_pools().unwrap_or_default());
    shared_memory() == Some(device) || pools().contains(&device)
}

/// Returns the devices of the hugetlb pools, one for each page size, by empty memfds, which use no page.
pub(super) fn devices_of_pools() -> Option<Vec<[u64; 2]>> {
    /// The place of the size in the flags, as a logarithm (MFD_HUGE_SHIFT).
    const SIZE_SHIFT: u32 = 26;
    let Ok(pools) = std::fs::read_dir("/sys/kernel/mm/hugepages") else {
        // Without /sys the page sizes are unknown.
        let has_settings = std::fs::exists("/sys/kernel/mm").unwrap_or(false);
        return has_settings.then(Vec::new);
    };
    let device = |pool: std::io::Result<std::fs::DirEntry>| {
        let name = pool.ok()?.file_name().into_string().ok()?;
        let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        let bytes = kib.parse::<u64>().ok()?.checked_mul(1024)?;
        let size = MemfdFlags::from_bits_retain(bytes.trailing_zeros() << SIZE_SHIFT);
        device_of_a_memfd(MemfdFlags::HUGETLB | size)
    };
    pools.map(device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// A file without blocks may be larger than can be queried window by window.
    #[test]
    fn the_cache_of_a_sparse_file_is_counted_within_bounds() {
        let page = PageSize::from_bytes(rustix::param::page_size() as u64).expect("a power of two");
        let file = File::from(memfd_create("pmdb", MemfdFlags::CLOEXEC).expect("a memfd"));
        file.write_all_at(&[1], 5 * page.bytes()).expect("room in memory");
        let window = WINDOW_PAGES * page.bytes();
        let count = |bytes: u64, budget: &mut Budget| {
            file.set_len(bytes).expect("a hole");
            let held = ModuleFile::open_held(file.try_clone().expect("a descriptor").into()).ok().expect("the file");
            let name = Name::from("/memfd:pmdb");
            let asked = BackingQuery { way: CacheQuery::Map, ..BackingQuery::about(&held, &name, page)? };
            asked.cached(budget)
        };
        assert_eq!(count(3 * window, &mut Budget::unlimited()).ok(), Some(page.bytes()));
        let given_up = count(3 * window, &mut Budget::unlimited().at_most(2));
        assert!(matches!(given_up, Err(Error::OutOfBudget(_))), "{given_up:?}");
        let refused = count(1 << 62, &mut Budget::unlimited()).map_err(|error| error.to_string());
        assert!(refused.as_ref().is_err_and(|error| error.contains("is larger than")), "{refused:?}");
    }

    /// A file on a mount that was detached may have any name, and a server that does not answer.
    #[test]
    fn no_file_is_a_memfd_by_its_name() {
        let memfd = memfd_create("ring", MemfdFlags::CLOEXEC).expect("a memfd");
        let device = fstat(memfd).expect("its numbers").st_dev;
        let own = Device { major: major(device), minor: minor(device) };
        let other = Device { major: own.major + 8, ..own };
        for name in [&b"/memfd:ring (deleted)"[..], b"/secretmem (deleted)", b"/dev/zero (deleted)"] {
            assert_eq!([own, other].map(|device| is_kernels_own(device, name)), [true, false]);
        }
        // Sockets and pipes have no path.
        assert!(is_kernels_own(other, b"socket:[7]"));
    }
}
