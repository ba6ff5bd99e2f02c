//! A region: one line of `/proc/PID/maps`, in kernel words a VMA.

use super::{AddressRange, Name, VirtualAddress};
use std::fmt;

/// Access rights of a region, as the four letters of `maps` give them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Permissions {
    /// `r`
    pub read: bool,
    /// `w`
    pub write: bool,
    /// `x`
    pub execute: bool,
    /// `s` (shared); otherwise `p`, private: copied on write.
    pub shared: bool,
}

impl Permissions {
    /// The four letters.
    pub const fn letters(self) -> &'static str {
        match (self.read, self.write, self.execute, self.shared) {
            (false, false, false, false) => "---p",
            (false, false, false, true) => "---s",
            (false, false, true, false) => "--xp",
            (false, false, true, true) => "--xs",
            (false, true, false, false) => "-w-p",
            (false, true, false, true) => "-w-s",
            (false, true, true, false) => "-wxp",
            (false, true, true, true) => "-wxs",
            (true, false, false, false) => "r--p",
            (true, false, false, true) => "r--s",
            (true, false, true, false) => "r-xp",
            (true, false, true, true) => "r-xs",
            (true, true, false, false) => "rw-p",
            (true, true, false, true) => "rw-s",
            (true, true, true, false) => "rwxp",
            (true, true, true, true) => "rwxs",
        }
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.letters())
    }
}

/// A block or anonymous device number, as `maps` prints it (`08:02`, hexadecimal).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
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

/// One mapped region of the target (a VMA).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// The addresses it covers.
    pub range: AddressRange,
    /// Its access rights.
    pub permissions: Permissions,
    /// Where in the file its first byte lies, in bytes. For `/dev/mem` the physical address.
    pub offset: u64,
    /// The filesystem of the file behind it.
    pub device: Device,
    /// The inode of the file behind it; 0 when there is none.
    pub inode: u64,
    /// What it is called: a path, a word in brackets, or nothing for plain anonymous memory. A newline is a newline.
    pub name: Name,
    /// Whether the kernel marks the file as deleted (the mark is not part of `name`).
    pub deleted: bool,
}

impl Region {
    /// The names that users may write for it: its whole name, or the part after the last slash. Words in brackets are
    /// the kernel's: a file `[heap]` has only its path.
    pub fn names(&self) -> impl Iterator<Item = Name> + use<> {
        let tail = self.name.file_name();
        let bytes = tail.as_bytes();
        let is_bracketed = bytes.starts_with(b"[") && bytes.ends_with(b"]");
        [self.name.clone()].into_iter().chain((!is_bracketed).then_some(tail))
    }

    /// Whether it is memory that never had a directory entry. The kernel still gives it a path, marked as deleted:
    /// shared anonymous memory (shmem_zero_setup in mm/shmem.c), memfd_create(2), System V segments, memfd_secret(2),
    /// MAP_HUGETLB.
    pub fn is_without_path(&self) -> bool {
        let name = self.name.as_bytes();
        let begins = |prefix: &&[u8]| name.starts_with(prefix);
        let named: [&[u8]; 2] = [b"/memfd:", b"/SYSV"];
        let whole: [&[u8]; 3] = [b"/dev/zero", b"/anon_hugepage", b"/secretmem"];
        self.deleted && (named.iter().any(begins) || whole.contains(&name))
    }

    /// Whether it maps a file that was deleted.
    pub fn is_deleted_file(&self) -> bool {
        self.deleted && !self.is_without_path()
    }

    /// The offset of `address` in the region's file; `None` outside of the region or without a file.
    pub fn file_offset(&self, address: VirtualAddress) -> Option<u64> {
        let inside = self.inode != 0 && self.range.contains(address);
        inside.then(|| address.get() - self.range.start().get()).and_then(|into| self.offset.checked_add(into))
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::maps;

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
            let regions = maps::parse(line.as_bytes()).expect("a row");
            assert_eq!(regions[0].is_without_path(), is, "{name}");
            let is_gone = name == "/tmp/gone (deleted)";
            assert_eq!(regions[0].is_deleted_file(), is_gone, "{name}");
        }
    }
}
