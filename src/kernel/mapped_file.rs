//! The file of a mapping or a file descriptor, by `stat` and `statfs`. Neither has to open the file.

use super::Device;
use super::mounts::MemoryFiles;

/// The type of a file, by the type bits of its mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A block device: its pages are in the page cache, like those of a file.
    BlockDevice,
    /// A character device: its driver decides what is mapped.
    CharacterDevice,
    /// Anything else: a socket, or an object of the kernel that has no type.
    Other,
}

/// How full a filesystem is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilesystemRoom {
    /// The size of the filesystem in bytes.
    pub bytes: u64,
    /// Free bytes, including those reserved for root.
    pub free: u64,
    /// Free bytes that any user may allocate.
    pub available: u64,
    /// The size of a block in bytes.
    pub block: u64,
    /// Whether the filesystem is in memory (tmpfs, hugetlbfs), so that its numbers are exact.
    pub is_memory: bool,
}

/// The file behind a mapping or a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedFile {
    /// The device of the filesystem and the inode of the file, if they were requested.
    pub identity: Option<(Device, u64)>,
    /// The number of directory entries. A memfd has none.
    pub links: u64,
    /// The type of the file.
    pub file_type: FileType,
    /// The device number of a device file.
    pub device: Device,
    /// The size of the file in bytes; 0 for a device.
    pub bytes: u64,
    /// Bytes allocated for the file. For a file in memory: those of all its pages, including swapped ones.
    pub allocated: u64,
    /// The type of the filesystem (`f_type` of statfs, include/uapi/linux/magic.h).
    pub filesystem: u64,
    /// How full the filesystem is; `None` if it has no limit (memfds, System V segments, secret memory).
    pub room: Option<FilesystemRoom>,
}

impl FilesystemRoom {
    /// Decodes words of `statfs`: type, block size, blocks, free blocks and available blocks. `None` if the filesystem
    /// counts no blocks, such as a tmpfs without a limit (`simple_statfs` in fs/libfs.c, `shmem_statfs` in
    /// mm/shmem.c), or has -1 blocks, as a hugetlbfs with only a reserve (`hugetlbfs_statfs` in fs/hugetlbfs/inode.c).
    pub fn from_words(words: &[u64]) -> Option<FilesystemRoom> {
        let &[filesystem, block, blocks, free, available] = words.first_chunk()?;
        let in_bytes = |blocks: u64| blocks.saturating_mul(block);
        (blocks > 0 && i64::try_from(blocks).is_ok()).then(|| FilesystemRoom {
            bytes: in_bytes(blocks),
            free: in_bytes(free),
            available: in_bytes(available),
            block,
            is_memory: [TMPFS, HUGETLBFS].contains(&filesystem),
        })
    }

    /// Returns the bytes of all files; for hugetlbfs also those of pages that are reserved for them.
    pub fn used(&self) -> u64 {
        self.bytes.saturating_sub(self.free)
    }
}

impl MappedFile {
    /// The number of words that a probe has for a file.
    pub const WORDS: usize = 14;

    /// Decodes the words of a probe: mode, major and minor number of a device file, size, type of the filesystem, its
    /// block size, blocks, free blocks and available blocks; major and minor number of the filesystem's device, inode,
    /// allocated blocks of 512 bytes, links. `None` if there are fewer than nine words: captures may lack the others.
    pub fn from_words(words: &[u64]) -> Option<MappedFile> {
        let (&[mode, major, minor, bytes], room) = words.split_first_chunk()?;
        let (&[filesystem, ..], rest) = room.split_first_chunk::<5>()?;
        let file_type = match mode & 0o170_000 {
            0o100_000 => FileType::Regular,
            0o060_000 => FileType::BlockDevice,
            0o020_000 => FileType::CharacterDevice,
            _ => FileType::Other,
        };
        let number = |word: u64| u32::try_from(word).unwrap_or(u32::MAX);
        let room = FilesystemRoom::from_words(room);
        let device = Device { major: number(major), minor: number(minor) };
        let (identity, allocated, links) = match *rest {
            [major, minor, inode, allocated, links, ..] => {
                (Some((Device { major: number(major), minor: number(minor) }, inode)), allocated, links)
            }
            _ => (None, 0, 0),
        };
        let allocated = allocated.saturating_mul(STAT_BLOCK);
        Some(MappedFile { identity, links, file_type, device, bytes, allocated, filesystem, room })
    }

    /// Returns the kind of memory that holds the file, by the filesystem alone; `None` if it is not one in memory.
    pub fn memory_files(&self) -> Option<MemoryFiles> {
        match self.filesystem {
            TMPFS => Some(MemoryFiles::Shared),
            HUGETLBFS => Some(MemoryFiles::Hugetlb),
            _ => None,
        }
    }

    /// Returns whether the file is memory of memfd_secret(2).
    pub fn is_secret(&self) -> bool {
        self.filesystem == SECRETMEM
    }

    /// Returns whether the file is a buffer that drivers share (dma-buf).
    pub fn is_dma_buffer(&self) -> bool {
        self.filesystem == DMA_BUF
    }
}

/// The unit of `st_blocks` in bytes.
const STAT_BLOCK: u64 = 512;

/// `TMPFS_MAGIC` (include/uapi/linux/magic.h): also the filesystem of memfds, System V segments and shared anonymous
/// memory.
pub const TMPFS: u64 = 0x0102_1994;
/// `HUGETLBFS_MAGIC`
pub const HUGETLBFS: u64 = 0x9584_58f6;
/// `SECRETMEM_MAGIC`
pub const SECRETMEM: u64 = 0x5345_434d;
/// `OVERLAYFS_SUPER_MAGIC`
pub const OVERLAYFS: u64 = 0x794c_7630;
/// Filesystems for which `stat` and `maps` show different device numbers: overlayfs, `BTRFS_SUPER_MAGIC`,
/// `BCACHEFS_STATFS_MAGIC`, `CEPH_SUPER_MAGIC`.
pub const OTHER_NUMBERS: [u64; 4] = [OVERLAYFS, 0x9123_683e, 0xca45_1a4e, 0x00c3_6400];
/// `DMA_BUF_MAGIC`
const DMA_BUF: u64 = 0x444d_4142;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_probe() {
        let file = |words: &[u64]| MappedFile::from_words(words);
        let full =
            file(&[0o100_600, 0, 0, 16 << 20, 0x0102_1994, 4096, 256, 0, 0, 0, 26, 7, 16, 1]).expect("all words");
        assert_eq!(full.file_type, FileType::Regular);
        assert_eq!(
            (full.identity, full.allocated, full.links),
            (Some((Device { major: 0, minor: 26 }, 7)), 16 * 512, 1)
        );
        assert_eq!(
            full.room,
            Some(FilesystemRoom { bytes: 1 << 20, free: 0, available: 0, block: 4096, is_memory: true })
        );
        // A memfd: its file system has no limit.
        let memfd = file(&[0o100_777, 0, 0, 4096, 0x0102_1994, 4096, 0, 0, 0, 0, 1, 8, 8, 0]).expect("all words");
        assert_eq!(memfd.room, None);
        let disk = file(&[0o060_660, 254, 16, 0, 0x0102_1994, 4096, 9, 9, 9]).expect("all words");
        assert_eq!((disk.file_type, disk.device), (FileType::BlockDevice, Device { major: 254, minor: 16 }));
        let huge = file(&[u64::MAX; MappedFile::WORDS]).expect("all words");
        assert_eq!(huge.room, None);
        // A hugetlbfs with `min_size` only.
        assert_eq!(FilesystemRoom::from_words(&[HUGETLBFS, 2 << 20, u64::MAX, u64::MAX - 3, u64::MAX - 3]), None);
        let largest = FilesystemRoom::from_words(&[TMPFS, 4096, i64::MAX as u64, 0, 0]);
        assert_eq!(largest.map(|room| room.bytes), Some(u64::MAX));
        assert!(file(&[0; MappedFile::WORDS]).is_some_and(|file| !file.is_secret()));
        assert_eq!(disk.identity, None, "of a capture that lacks it");
        assert_eq!(file(&[0o100_600; 8]), None);
    }
}
