//! The regions of a process: `/proc/PID/maps`, a region a line. In kernel words a region is a VMA.

use super::text::{self, BadLine};
use super::{AddressRange, Name, VirtualAddress};
use std::fmt;

/// The suffix by which the kernel marks the path of a deleted file.
pub const DELETED: &[u8] = b" (deleted)";

/// The prefix of the names of System V segments (newseg in ipc/shm.c).
pub const SEGMENT: &[u8] = b"/SYSV";

/// Bytes of the shortest lines that the kernel writes for 64-bit addresses.
const SHORT_LINE: usize = 50;

/// Decodes the whole file into regions in address order.
pub fn parse(bytes: &[u8]) -> Result<Vec<Region>, BadLine> {
    let mut regions = RegionDecoder::default();
    regions.read(bytes)?;
    Ok(regions.regions)
}

/// Decodes `maps` piece by piece.
///
/// The kernel writes the file in pieces, and regions may merge or grow between two of them. Addresses that an earlier
/// line covers are cut off a later region, so that regions never overlap.
#[derive(Default, Debug)]
pub struct RegionDecoder {
    /// The regions decoded so far, in address order.
    pub regions: Vec<Region>,
    lines: usize,
}

impl RegionDecoder {
    /// Decodes further lines. The last of them must be complete.
    pub fn read(&mut self, lines: &[u8]) -> Result<(), BadLine> {
        self.regions.reserve(lines.len() / SHORT_LINE + 1);
        for line in text::lines_from(self.lines, lines) {
            self.lines += 1;
            let last = self.regions.last();
            let before = last.map(|region| &region.name);
            let region = region_after(before, line.bytes).ok_or_else(|| line.bad("maps"))?;
            let covered = last.map_or(VirtualAddress::new(0), |region| region.range.end());
            self.regions.extend(part_above(region, covered));
        }
        Ok(())
    }
}

/// Returns the first address of a line, which is that of its region.
pub fn start_of_line(line: &[u8]) -> Option<VirtualAddress> {
    let (start, _) = text::hexadecimal_before(b'-', line)?;
    Some(VirtualAddress::new(start))
}

/// Decodes one line: `start-end perms offset major:minor inode`, spaces, and a name of any bytes but newlines.
pub(super) fn region(line: &[u8]) -> Option<Region> {
    region_after(None, line)
}

/// Decodes one line. A name equal to that of the region `before`, as names often are, shares its bytes.
fn region_after(before: Option<&Name>, line: &[u8]) -> Option<Region> {
    let (start, rest) = text::hexadecimal_before(b'-', line)?;
    let (end, rest) = text::hexadecimal_before(b' ', rest)?;
    let (permissions, rest) = text::split_once(rest, b' ')?;
    let (offset, rest) = text::hexadecimal_before(b' ', rest)?;
    let (major, rest) = text::hexadecimal_before(b':', rest)?;
    let (minor, rest) = text::hexadecimal_before(b' ', rest)?;
    let (inode, rest) = text::split_once(rest, b' ').unwrap_or((rest, b""));
    // The name begins with a slash, a bracket or a letter, after spaces that align it.
    let unescaped = text::unescape_newline(rest.trim_ascii_start());
    let (path, deleted) = split_mark(&unescaped);
    let same = before.filter(|before| before.as_bytes() == path);
    Some(Region {
        range: AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end))?,
        permissions: parse_permissions(permissions)?,
        offset,
        device: Device { major: major.try_into().ok()?, minor: minor.try_into().ok()? },
        inode: text::decimal(inode)?,
        name: same.cloned().unwrap_or_else(|| Name::copied(path)),
        deleted,
    })
}

fn parse_permissions(text: &[u8]) -> Option<Permissions> {
    let [read, write, execute, shared] = text.try_into().ok()?;
    let set = |letter: u8, on: u8, off: u8| (letter == on || letter == off).then_some(letter == on);
    Some(Permissions {
        read: set(read, b'r', b'-')?,
        write: set(write, b'w', b'-')?,
        execute: set(execute, b'x', b'-')?,
        shared: set(shared, b's', b'p')?,
        sharing_unknown: false,
        is_unknown: false,
    })
}

/// Splits the kernel's mark for deleted files off the path of a file.
///
/// A file name may end with the same words: only the file shows which it is. Bracketed names are never marked. The
/// inode does not decide either: that of the first System V segment is 0.
pub fn name(bytes: &[u8]) -> (Name, bool) {
    let (path, deleted) = split_mark(bytes);
    (Name::copied(path), deleted)
}

fn split_mark(bytes: &[u8]) -> (&[u8], bool) {
    match bytes.strip_suffix(DELETED) {
        Some(path) if path.starts_with(b"/") => (path, true),
        _ => (bytes, false),
    }
}

/// Returns the part of `region` at or above `covered`.
fn part_above(region: Region, covered: VirtualAddress) -> Option<Region> {
    if region.range.start() >= covered {
        return Some(region);
    }
    let start = region.range.start().max(covered);
    let range = AddressRange::new(start, region.range.end())?;
    let offset = match region.inode {
        0 => region.offset,
        _ => region.file_offset(start).unwrap_or(region.offset),
    };
    Some(Region { range, offset, ..region })
}

/// Access rights of a region, as the four letters of `maps` give them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Permissions {
    /// `r`
    pub read: bool,
    /// `w`
    pub write: bool,
    /// `x`
    pub execute: bool,
    /// `s` (shared); otherwise `p`, private: copied on write.
    pub shared: bool,
    /// Whether `shared` is unknown: core files have only the other three letters.
    pub sharing_unknown: bool,
    /// Whether all four letters are unknown: a core file may have none of them.
    pub is_unknown: bool,
}

impl Permissions {
    /// Returns the letters as `maps` prints them, with `?` for an unknown one.
    pub const fn letters(self) -> &'static str {
        if self.is_unknown {
            return "????";
        }
        match (self.read, self.write, self.execute, self.shared, self.sharing_unknown) {
            (false, false, false, _, true) => "---?",
            (false, false, true, _, true) => "--x?",
            (false, true, false, _, true) => "-w-?",
            (false, true, true, _, true) => "-wx?",
            (true, false, false, _, true) => "r--?",
            (true, false, true, _, true) => "r-x?",
            (true, true, false, _, true) => "rw-?",
            (true, true, true, _, true) => "rwx?",
            (false, false, false, false, false) => "---p",
            (false, false, false, true, false) => "---s",
            (false, false, true, false, false) => "--xp",
            (false, false, true, true, false) => "--xs",
            (false, true, false, false, false) => "-w-p",
            (false, true, false, true, false) => "-w-s",
            (false, true, true, false, false) => "-wxp",
            (false, true, true, true, false) => "-wxs",
            (true, false, false, false, false) => "r--p",
            (true, false, false, true, false) => "r--s",
            (true, false, true, false, false) => "r-xp",
            (true, false, true, true, false) => "r-xs",
            (true, true, false, false, false) => "rw-p",
            (true, true, false, true, false) => "rw-s",
            (true, true, true, false, false) => "rwxp",
            (true, true, true, true, false) => "rwxs",
        }
    }

    /// Returns whether the region is shared, if that is known.
    pub fn sharing(self) -> Option<bool> {
        (!self.sharing_unknown).then_some(self.shared)
    }

    /// Returns the right that `of` selects (read, write or execute), if the rights are known.
    pub fn right(self, of: fn(Permissions) -> bool) -> Option<bool> {
        (!self.is_unknown).then(|| of(self))
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.letters())
    }
}

/// A block or anonymous device number, as `maps` prints it (`08:02`, hexadecimal).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Device {
    /// Major number; 0 for filesystems without a disk.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}", self.major, self.minor)
    }
}

/// Returns whether a path is one that the kernel gives to memory without a directory entry. A file may have such a path
/// too.
pub fn is_of_kernel(name: &[u8]) -> bool {
    let begins = |prefix: &&[u8]| name.starts_with(prefix);
    let named: [&[u8]; 2] = [b"/memfd:", SEGMENT];
    let whole: [&[u8]; 3] = [b"/dev/zero", b"/anon_hugepage", b"/secretmem"];
    named.iter().any(begins) || whole.contains(&name)
}

/// One mapped region of the target (a VMA).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Region {
    /// The addresses that the region covers.
    pub range: AddressRange,
    /// The access rights of the region.
    pub permissions: Permissions,
    /// The offset of the first byte in the mapped file, in bytes. For `/dev/mem` it is the physical address.
    pub offset: u64,
    /// The filesystem of the mapped file.
    pub device: Device,
    /// The inode of the mapped file; 0 if there is none.
    pub inode: u64,
    /// The path of the mapped file, a word in brackets, or nothing for plain anonymous memory. `\012` is decoded to a
    /// newline.
    pub name: Name,
    /// Whether the kernel marks the file as deleted (the mark is not part of `name`).
    pub deleted: bool,
}

impl Region {
    /// Returns the names that a user may write for the region: the whole name, and the part after the last slash. Words
    /// in brackets are the kernel's, so a file `[heap]` has only its path.
    pub fn names(&self) -> impl Iterator<Item = Name> + use<> {
        let tail = self.name.file_name();
        let bytes = tail.as_bytes();
        let is_bracketed = bytes.starts_with(b"[") && bytes.ends_with(b"]");
        [self.name.clone()].into_iter().chain((!is_bracketed).then_some(tail))
    }

    /// Returns whether the region is memory that never had a directory entry. The kernel still gives it a path, marked
    /// as deleted: shared anonymous memory (shmem_zero_setup in mm/shmem.c), memfd_create(2), System V segments,
    /// memfd_secret(2), MAP_HUGETLB.
    pub fn is_without_path(&self) -> bool {
        self.deleted && is_of_kernel(self.name.as_bytes())
    }

    /// Returns the number of the mapped object, if other objects may have the same name: the inode, or the number of a
    /// System V segment.
    pub fn object_number(&self) -> Option<u64> {
        // Device 0 has no files: the inode numbers of a core file are made up.
        (self.is_without_path() && self.device != Device::default()).then_some(self.inode)
    }

    /// Returns whether the region maps a file or another object. Memory without an object has inode 0, and so has the
    /// first System V segment of an IPC namespace.
    pub fn maps_object(&self) -> bool {
        self.inode != 0 || self.is_segment()
    }

    /// Returns whether the region maps a System V segment. Its inode is the number of the segment, which may be 0.
    pub fn is_segment(&self) -> bool {
        self.deleted && self.name.as_bytes().starts_with(SEGMENT)
    }

    /// Returns whether the region maps a file that was deleted.
    pub fn is_deleted_file(&self) -> bool {
        self.deleted && !self.is_without_path()
    }

    /// Returns the file offset of `address`, for a region that maps a file.
    pub(crate) fn offset_of(&self, address: VirtualAddress) -> u64 {
        self.offset.wrapping_add(address.get().wrapping_sub(self.range.start().get()))
    }

    /// Returns the offset of `address` in the region's file; `None` outside of the region or without a file.
    pub fn file_offset(&self, address: VirtualAddress) -> Option<u64> {
        let inside = self.maps_object() && self.range.contains(address);
        inside.then(|| address.get() - self.range.start().get()).and_then(|into| self.offset.checked_add(into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(line: &[u8]) -> Region {
        let mut regions = parse(line).expect("a good line");
        assert_eq!(regions.len(), 1);
        regions.remove(0)
    }

    #[test]
    fn a_file() {
        let region = one(b"7f0c2a628000-7f0c2a77d000 r-xp 00028000 fe:00 1835010                    /usr/lib/x86_64-linux-gnu/libc.so.6\n");
        assert_eq!(region.range.start().get(), 0x7f0c_2a62_8000);
        assert_eq!(region.range.end().get(), 0x7f0c_2a77_d000);
        assert_eq!(region.permissions, Permissions { read: true, execute: true, ..Permissions::default() });
        assert_eq!(region.offset, 0x28000);
        assert_eq!(region.device, Device { major: 0xfe, minor: 0 });
        assert_eq!(region.inode, 1_835_010);
        assert_eq!(region.name.as_bytes(), b"/usr/lib/x86_64-linux-gnu/libc.so.6");
        assert!(!region.deleted);
    }

    #[test]
    fn names_as_hostile_as_they_come() {
        for (text, name, deleted) in [
            (&b""[..], &b""[..], false),
            (b"[stack]", b"[stack]", false),
            (b"[anon: a heap of my own]", b"[anon: a heap of my own]", false),
            (b"[anon:x (deleted)]", b"[anon:x (deleted)]", false),
            (b"/tmp/with blanks  and\ttab ", b"/tmp/with blanks  and\ttab ", false),
            (b"/tmp/a\\012b", b"/tmp/a\nb", false),
            (b"/tmp/a\\134b\\01", b"/tmp/a\\134b\\01", false),
            (b"/tmp/\xff\xfe\x1b[31m", b"/tmp/\xff\xfe\x1b[31m", false),
            (b"/tmp/gone (deleted)", b"/tmp/gone", true),
            (b"/tmp/x (deleted) (deleted)", b"/tmp/x (deleted)", true),
            (b"/SYSV00000000 (deleted)", b"/SYSV00000000", true),
            (b"/SYSV", b"/SYSV", false),
            (b"/memfd:one (deleted)", b"/memfd:one", true),
            (b"/dev/zero (deleted)", b"/dev/zero", true),
            (b"(unreachable)/x", b"(unreachable)/x", false),
            (b"anon_inode:[perf_event]", b"anon_inode:[perf_event]", false),
            (b"socket:[12345]", b"socket:[12345]", false),
        ] {
            let mut line = b"55d0a0000000-55d0a0021000 rw-p 00000000 00:01 7 ".to_vec();
            line.resize(73, b' ');
            line.extend_from_slice(text);
            line.push(b'\n');
            let region = one(&line);
            assert_eq!((region.name.as_bytes(), region.deleted), (name, deleted));
        }
    }

    #[test]
    fn widths_and_the_ends_of_the_address_space() {
        let region = one(b"00010000-00031000 r--s 00000000 00:00 0 ");
        assert_eq!(region.range.start().get(), 0x10000);
        assert_eq!(region.permissions.sharing(), Some(true));
        let unshared = Permissions { sharing_unknown: true, ..one(b"00010000-00031000 rw-p 0 00:00 0 ").permissions };
        assert_eq!((unshared.letters(), unshared.sharing()), ("rw-?", None));
        let unknown = Permissions { is_unknown: true, ..unshared };
        let rights = [unknown.right(|one| one.read), unknown.right(|one| one.write), unknown.sharing()];
        assert_eq!((unknown.letters(), rights), ("????", [None; 3]));
        for half in ["r--?", "????", "r-??", "???p"] {
            assert!(parse(format!("00010000-00031000 {half} 00000000 00:00 0 ").as_bytes()).is_err(), "{half}");
        }
        let region = one(b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
        assert_eq!(region.range.end().get(), 0xffff_ffff_ff60_1000);
        let region = one(b"7f0000000000-7f0000001000 rw-s 3f00000000 103:fffff 18446744073709551615 /dev/mem");
        assert_eq!(region.offset, 0x3f_0000_0000);
        assert_eq!(region.device, Device { major: 0x103, minor: 0xfffff });
        assert_eq!(region.inode, u64::MAX);
    }

    #[test]
    fn a_bad_line_is_named() {
        for bad in [
            &b"2000-1000 rw-p 0 0:0 0"[..],
            b"1000-1000 rw-p 0 0:0 0",
            b"1000-2000 rwxq 0 0:0 0",
            b"1000-2000 rw 0 0:0 0",
            b"1000-2000 rw-p 0 0 0",
            b"1000-2000 rw-p 0 100000000:0 0",
            b"1000-2000 rw-p 0 0:0",
            b"10000000000000000-20000000000000000 rw-p 0 0:0 0",
            b"Name: bash",
            b"\xff",
        ] {
            let text = [b"1000-2000 rw-p 00000000 00:00 0 \n".as_slice(), bad].concat();
            let error = parse(&text).expect_err("a bad second line");
            assert_eq!((error.file, error.line), ("maps", 2));
            assert_eq!(error.text.as_bytes(), bad);
        }
    }

    #[test]
    fn rows_that_changed_between_reads_do_not_overlap() {
        let text = b"1000-3000 rw-p 00000000 00:00 0 \n\
            1000-3000 rw-p 00000000 00:00 0 \n\
            2000-5000 rw-p 00007000 08:01 9 /f\n\
            5000-6000 rw-p 00000000 00:00 0 \n";
        let regions = parse(text).expect("regions");
        let ranges: Vec<_> = regions.iter().map(|r| (r.range.start().get(), r.range.end().get())).collect();
        assert_eq!(ranges, [(0x1000, 0x3000), (0x3000, 0x5000), (0x5000, 0x6000)]);
        assert_eq!(regions.get(1).map(|r| r.offset), Some(0x8000));
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        let name = proptest::collection::vec(any::<u8>().prop_filter("one line", |&b| b != b'\n'), 0..30);
        (any::<u64>(), 1u64..1 << 40, name).prop_map(|(start, len, name)| {
            let mut line =
                format!("{start:08x}-{:08x} rw-p 00000000 00:01 77 ", start.saturating_add(len)).into_bytes();
            line.extend(name);
            line
        })
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = parse(&bytes);
        }

        #[test]
        fn regions_are_in_order_and_apart(lines in proptest::collection::vec(line(), 0..6)) {
            if let Ok(regions) = parse(&lines.join(&b'\n')) {
                for pair in regions.windows(2) {
                    prop_assert!(pair[0].range.end() <= pair[1].range.start());
                }
            }
        }
    }

    #[test]
    fn memory_without_a_directory_entry() {
        for (name, is) in [
            ("/dev/zero (deleted)", true),
            ("/memfd:one (deleted)", true),
            ("/SYSV00000000 (deleted)", true),
            ("/anon_hugepage (deleted)", true),
            ("/secretmem (deleted)", true),
            // The device itself, mapped privately.
            ("/dev/zero", false),
            ("/tmp/gone (deleted)", false),
            ("/memfd:one", false),
        ] {
            let line = format!("55d0a0000000-55d0a0021000 rw-s 00000000 00:01 7 {name}\n");
            let regions = parse(line.as_bytes()).expect("a row");
            assert_eq!(regions[0].is_without_path(), is, "{name}");
            let is_gone = name == "/tmp/gone (deleted)";
            assert_eq!(regions[0].is_deleted_file(), is_gone, "{name}");
        }
    }
}
