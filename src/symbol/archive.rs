//! Programs and libraries in an archive (`.apk`, `.zip`, `.jar`), stored without compression and mapped from there, as
//! Android's loader does. Each is a module, whose file begins at its place in the archive.
//!
//! Such a mapping begins with the header of a program, and not at the start of the archive. The archive's directory has
//! the name: `base.apk!/lib/arm64-v8a/libmain.so`, as gdb and simpleperf write it. Without a directory the place
//! replaces the name: `base.apk+0x4000`. Nothing in the archive is trusted.

use super::elf::{PROGRAM_HEADER, is_program_header};
use crate::budget::Budget;
use crate::kernel::{Name, PageSize, Region};
use crate::own::memory;
use crate::process::{Modules, ReadAt};
use std::collections::BTreeMap;

/// The most archives of one process that are opened, and the most mappings of one archive that are examined.
pub(super) const MOST_ARCHIVES: usize = 64;
const MOST_HEADERS: usize = 256;
/// The most bytes of a directory that are read: that of the largest packages has some megabytes.
const LARGEST_DIRECTORY: u64 = 32 << 20;
/// The longest name of a file (PATH_MAX).
const LONGEST_NAME: usize = 4096;

/// The lengths in bytes of the fixed parts of a ZIP archive (APPNOTE.TXT, 4.3.7, 4.3.12 and 4.3.16): the header before
/// a stored file, an entry of the directory, and the end of the archive, which a comment may follow.
const LOCAL_HEADER: u64 = 30;
const ENTRY: usize = 46;
const END: usize = 22;
const LONGEST_COMMENT: u64 = 0xffff;

/// A file in an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StoredFile {
    /// The whole name, with that of the archive.
    pub(super) name: Name,
    /// The offset of the first byte in the archive.
    pub(super) start: u64,
    /// The offset after the last byte in the archive.
    end: u64,
}

impl StoredFile {
    /// Returns whether a region of the archive maps a part of the file.
    pub(super) fn holds(&self, region: &Region) -> bool {
        (self.start..self.end).contains(&region.offset)
    }
}

/// Returns whether some of `regions`, all those of one file, are code that was not loaded from the start of that file.
pub(super) fn may_be_archive(regions: &[Region], page: PageSize) -> bool {
    let mut head: Option<&Region> = None;
    regions.iter().any(|region| {
        if region.offset == 0 {
            head = Some(region);
        }
        region.permissions.execute && !head.is_some_and(|head| is_loaded_with(head, region, page))
    })
}

/// Returns whether a region may be loaded together with `head`, the start of its file below it. The head of a program
/// ends in the page where its code begins, or before it, and the code is at least as far above the head in memory as in
/// the file.
fn is_loaded_with(head: &Region, code: &Region, page: PageSize) -> bool {
    let into = code.range.start().get() - head.range.start().get();
    code.offset == 0 || head.range.len() <= code.offset.saturating_add(page.bytes()) && into >= code.offset
}

/// Returns the programs and libraries in an archive that are mapped from there, in their order. `regions` are all those
/// of the archive.
pub(super) fn stored_files(regions: &[Region], modules: &Modules, budget: &mut Budget) -> Vec<StoredFile> {
    let opened = regions.first().and_then(|region| Some((&region.name, modules.open(region).ok()?)));
    let Some((path, archive)) = opened else {
        return Vec::new();
    };
    let mut starts: Vec<u64> = regions.iter().map(|region| region.offset).filter(|&offset| offset > 0).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.truncate(MOST_HEADERS);
    starts.retain(|&start| {
        let mut header = [0; PROGRAM_HEADER];
        let read = budget.look().is_ok().then(|| archive.read_up_to(start, &mut header));
        matches!(read, Some(Ok(PROGRAM_HEADER))) && is_program_header(&header)
    });
    if starts.is_empty() {
        return Vec::new();
    }
    let mut listed = listed(&*archive, &starts, budget).unwrap_or_default();
    let ends = starts.iter().skip(1).copied().chain([archive.len()]);
    let files = starts.iter().zip(ends).map(|(&start, next)| {
        let (name, end) = match listed.remove(&start) {
            Some((member, end)) => ([path.as_bytes(), b"!/", &*member].concat(), end.min(next)),
            None => ([path.as_bytes(), format!("+{start:#x}").as_bytes()].concat(), next),
        };
        StoredFile { name: Name::new(name), start, end }
    });
    files.collect()
}

/// Returns the names and ends of the files that begin at `starts`, by the directory of an archive. `None` without a
/// directory.
fn listed(archive: &dyn ReadAt, starts: &[u64], budget: &mut Budget) -> Option<BTreeMap<u64, (Vec<u8>, u64)>> {
    let length = archive.len();
    let tail = length.min(END as u64 + LONGEST_COMMENT);
    let tail = read(archive, length - tail, tail)?;
    let end = memchr::memmem::rfind(&tail, b"PK\x05\x06").and_then(|at| tail.get(at..at + END))?;
    let directory = read(archive, word(end, 16)?, word(end, 12)?.min(LARGEST_DIRECTORY))?;
    let (mut rest, mut found) = (&*directory, BTreeMap::new());
    while let Some(entry) = rest.get(..ENTRY).filter(|entry| entry.starts_with(b"PK\x01\x02")) {
        budget.go_on().ok()?;
        let [name, extra, comment] = [28, 30, 32].map(|at| half(entry, at).unwrap_or(0) as usize);
        let (header, size) = (word(entry, 42)?, word(entry, 20)?);
        let farthest = header.saturating_add(LOCAL_HEADER + 2 * LONGEST_COMMENT);
        let next = starts.get(starts.partition_point(|&start| start < header));
        // The lengths in the header before the file may differ.
        if half(entry, 10) == Some(0)
            && name <= LONGEST_NAME
            && next.is_some_and(|&start| start <= farthest)
            && let Some(local) = read(archive, header, LOCAL_HEADER).filter(|local| local.starts_with(b"PK\x03\x04"))
        {
            let start = header.saturating_add(LOCAL_HEADER + half(&local, 26)? + half(&local, 28)?);
            let name = rest.get(ENTRY..ENTRY + name)?.to_vec();
            found.insert(start, (name, start.saturating_add(size)));
        }
        rest = rest.get(ENTRY + name + extra + comment..)?;
    }
    Some(found)
}

/// Reads `size` bytes at an offset; `None` if the file ends before them.
fn read(file: &dyn ReadAt, at: u64, size: u64) -> Option<Vec<u8>> {
    at.checked_add(size).filter(|&end| end <= file.len())?;
    let mut bytes = memory::zeroed(size).ok()?;
    let read = file.read_up_to(at, &mut bytes).ok()?;
    (read == bytes.len()).then_some(bytes)
}

/// Decodes two bytes as a number.
fn half(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes).into())
}

/// Decodes four bytes as a number.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes).into())
}

/// An archive from one of its files on.
pub(super) struct FromStart {
    archive: Box<dyn ReadAt>,
    start: u64,
}

impl FromStart {
    pub(super) fn new(archive: Box<dyn ReadAt>, start: u64) -> FromStart {
        FromStart { archive, start }
    }
}

impl ReadAt for FromStart {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        self.start.checked_add(offset).map_or(Ok(0), |offset| self.archive.read_at(offset, into))
    }
    fn len(&self) -> u64 {
        self.archive.len().saturating_sub(self.start)
    }
    fn has_sections(&self) -> bool {
        self.archive.has_sections()
    }
    fn fingerprint(&self) -> [u64; 4] {
        self.archive.fingerprint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{AddressRange, Device, Permissions, VirtualAddress};
    use crate::process::InMemory;

    const PAGE: u64 = 0x1000;

    /// A header before a file, with a name and padding of these lengths.
    fn local(name: u16, padding: u16) -> Vec<u8> {
        let lengths = [name.to_le_bytes(), padding.to_le_bytes()].concat();
        [b"PK\x03\x04", &[0; 22][..], &lengths, &vec![0; usize::from(name) + usize::from(padding)]].concat()
    }

    /// An archive with two files, which begin at 0x100 and 0x180; the second is compressed.
    fn archive() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut directory = Vec::new();
        for (name, method, start) in [("lib/a.so", 0u16, 0x100), ("b", 8, 0x180)] {
            let header = bytes.len() as u32;
            let padding = start - bytes.len() - LOCAL_HEADER as usize - name.len();
            bytes.extend(local(name.len() as u16, padding as u16));
            bytes.resize(start + 0x40, 1);
            let length = (name.len() as u16).to_le_bytes();
            let sizes = [0x40u32.to_le_bytes(), 0x40u32.to_le_bytes()].concat();
            let entry = [b"PK\x01\x02", &[0; 6][..], &method.to_le_bytes(), &[0; 8], &sizes, &length, &[0; 12]];
            directory.extend([entry.concat(), header.to_le_bytes().to_vec(), name.as_bytes().to_vec()].concat());
        }
        let (size, at) = ((directory.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes());
        bytes.extend([&*directory, b"PK\x05\x06", &[0; 8], &size, &at, &[7, 0], b"comment"].concat());
        bytes
    }

    fn files(bytes: Vec<u8>) -> Option<BTreeMap<u64, (Vec<u8>, u64)>> {
        listed(&InMemory::file(bytes), &[0x100, 0x180], &mut Budget::unlimited())
    }

    #[test]
    fn the_directory_names_what_is_stored() {
        let expected = BTreeMap::from([(0x100, (b"lib/a.so".to_vec(), 0x140))]);
        assert_eq!(files(archive()), Some(expected));
        let whole = archive();
        assert_eq!(files(whole[..whole.len() - 8].to_vec()), None, "its end is gone");
        assert_eq!(files(Vec::new()), None);
    }

    /// Whatever its numbers are, a directory is read to its end, and names only what its headers hold.
    #[test]
    fn a_damaged_directory_names_less() {
        let whole = archive();
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                let found = files(bytes).unwrap_or_default();
                assert!(found.len() <= 2 && found.iter().all(|(start, (_, end))| start <= end), "{at}");
            }
        }
    }

    fn region(&(start, pages, offset, execute): &(u64, u64, u64, bool)) -> Region {
        Region {
            range: AddressRange::of_length(VirtualAddress::new(start), pages * PAGE).expect("a range"),
            permissions: Permissions { read: true, execute, ..Permissions::default() },
            offset,
            device: Device { major: 8, minor: 1 },
            inode: 7,
            name: Name::from("/opt/base.apk"),
            deleted: false,
        }
    }

    #[test]
    fn only_code_that_was_not_loaded_from_the_start_is_looked_at() {
        for (regions, may_be) in [
            // As GNU ld and lld lay out programs: the second begins its code in the last page of its head.
            (&[(0x10_0000, 1, 0, false), (0x10_1000, 2, 0x1000, true)][..], false),
            (&[(0x10_0000, 2, 0, false), (0x10_2000, 2, 0x1000, true)], false),
            (&[(0x10_0000, 4, 0, true)], false),
            // Data.
            (&[(0x10_0000, 4, 0x4000, false)], false),
            // In an archive, which may be mapped as a whole below it, or right before it.
            (&[(0x10_0000, 1, 0x4000, false), (0x10_1000, 2, 0x5000, true)], true),
            (&[(0x8_0000, 64, 0, false), (0x10_0000, 1, 0x4000, false), (0x10_1000, 2, 0x5000, true)], true),
            (&[(0x10_0000, 8, 0, false), (0x10_8000, 1, 0x4000, false), (0x10_9000, 2, 0x5000, true)], true),
        ] {
            let mapped: Vec<Region> = regions.iter().map(region).collect();
            assert_eq!(may_be_archive(&mapped, PageSize::FOUR_KIB), may_be, "{regions:x?}");
        }
    }
}
