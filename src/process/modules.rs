//! The files that the regions of a process map, and the layout of words in its memory.

use crate::access::{Error, InMemory, ReadAt, Result};
use crate::kernel::mapped_file::MappedFile;
use crate::kernel::status::{self, Status};
use crate::kernel::{AddressRange, Name, PageMapEntry, PageSize, Region, VirtualAddress, WordFile};
use crate::source::{Backing, BackingRun, File, FileLocation, Held, PartialImage, Place, Probe, Source, as_words};
use std::ffi::c_char;
use std::sync::Arc;

/// An existing file, or why it was not opened.
pub type OpenedFile = Result<Box<dyn ReadAt>>;

/// The files that regions map.
#[derive(Clone)]
pub struct Modules {
    source: Arc<dyn Source>,
}

impl Modules {
    /// Makes the modules of the process that a source reads.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Modules { source }
    }

    /// Opens the file that `region` maps, if it is a regular file of the same device and inode (through `map_files`, or
    /// by path below the target's root).
    pub fn open(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        let file = self.source.file(FileLocation::Region(region))?;
        file.ok_or_else(|| Error::not_available(format!("{} has no file", region.range)))
    }

    /// Opens the regular file at `path` below the target's root, with links followed as the target would, for files
    /// that no region maps, such as separate debug files. `None` if there is none. The caller has to check that it is
    /// the right file.
    pub fn at_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        self.source.file(FileLocation::Path(path))
    }

    /// Opens the regular file at `path` below pmdb's root, which differs from that of a process in a container, for
    /// debug files that the user of pmdb has installed. `None` if there is none.
    pub fn at_own_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        self.source.file(FileLocation::OwnPath(path))
    }

    /// Opens the file in which the target lists the names of generated code for perf, and returns its path in the
    /// target's root: `/tmp/perf-PID.map`, with the target's PID in its namespace. Only a regular file of the target's
    /// user, or of root, is trusted: anything else there is an error. `None` if there is none.
    pub fn perf_map(&self) -> Result<Option<(Name, OpenedFile)>> {
        let status = self.source.fetch(File::MainStatus)?;
        let status = Status::parse(&status)?;
        let path = format!("/tmp/perf-{}.map", status.own_number);
        let file = self.source.file(FileLocation::Trusted(path.as_bytes(), status.user));
        Ok(file.transpose().map(|file| (Name::new(path), file)))
    }

    /// Returns the file that `region` maps, without opening it.
    ///
    /// # Errors
    /// Fails if no path leads to the file, or if only a file server has the answer, which may not reply.
    pub fn mapped_file(&self, region: &Region) -> Result<MappedFile> {
        let words = self.source.fetch(Probe::MappedFile(region))?;
        MappedFile::from_words(&words).ok_or_else(|| Error::not_available(format!("the file of {}", region.range)))
    }

    /// Keeps the file that `region` maps open while the result lives.
    pub fn hold(&self, region: &Region) -> Held {
        self.source.hold(region)
    }

    /// Returns the backing content of the pages of `range`, a part of `region`, as runs in address order, without gaps.
    /// The object is not read, and nothing is brought into memory. The number of system calls grows with the runs, not
    /// with the pages.
    pub fn backing_content(&self, region: &Region, range: AddressRange) -> Result<Vec<BackingRun>> {
        self.source.fetch(Backing { region, range })
    }

    /// Reads the page cache of the object that `region` maps (a file or shared memory) at `address`, without filling
    /// it: right before the read it checks which pages are cached. Returns the number of bytes before the first page
    /// that is not cached, or before the end of the object.
    pub fn read_cached(&self, region: &Region, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        self.source.bytes(Place::PageCache(region), address, into)
    }

    /// Reads the vdso or another image that is only in memory, as far as it can be read without a page fault.
    pub fn image(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        let layout = WordLayout::of(&*self.source);
        if region.range.len() <= IMAGE_BYTES {
            let pages = self.readable_pages(region, layout)?;
            if let Some(whole) = pages.iter().cloned().collect::<Option<Vec<_>>>() {
                return Ok(Box::new(InMemory::mapping(whole.concat(), region.range.start())));
            }
            // The kernel maps the same vdso into every process, and reading that of pmdb disturbs no other process.
            if region.name.as_bytes() == b"[vdso]"
                && usize::from(layout.pointer_bytes) == size_of::<usize>()
                && let Some(vdso) = self.source.file(FileLocation::OwnVdso(region))?
            {
                return Ok(vdso);
            }
            if let Some(image) = PartialImage::new(region.range.start(), layout.page.bytes(), pages) {
                return Ok(Box::new(image));
            }
        }
        Err(Error::not_available(if self.source.origin().times().is_some() {
            format!("memory of {} is not in this file", region.name)
        } else {
            format!("{} is not resident, and reading it would change that", region.name)
        }))
    }

    /// Reads the pages of a region; `None` for those that cannot be read without a page fault. A capture or a core has
    /// no faults: its memory alone decides, and may include a page that the process had not touched.
    fn readable_pages(&self, region: &Region, layout: WordLayout) -> Result<Vec<Option<Vec<u8>>>> {
        let (source, page, start) = (&*self.source, layout.page, region.range.start());
        let count = region.range.pages(page) as usize;
        let present = || -> Result<Vec<bool>> {
            if source.origin().times().is_some() {
                return Ok(vec![true; count]);
            }
            let mut entries = vec![PageMapEntry::default(); count];
            let words = as_words(&mut entries);
            let read = source.words(WordFile::PageMap, page.index(start), words)?;
            Ok(entries.iter().take(read).map(|entry| entry.is_present()).collect())
        };
        let mut pages: Vec<Option<Vec<u8>>> = vec![None; count];
        for ((place, is_present), number) in pages.iter_mut().zip(present()?).zip(0u64..) {
            let Some(at) = start.checked_add(number * page.bytes()).filter(|_| is_present) else {
                continue;
            };
            let mut bytes = vec![0; page.bytes() as usize];
            *place = match source.bytes(Place::Memory, at, &mut bytes) {
                Ok(read) => (read == bytes.len()).then_some(bytes),
                Err(Error::NotAvailable { .. }) => None,
                Err(error) => return Err(error),
            };
        }
        // The read may have faulted in pages that were unmapped before it: they are left out.
        let still = present()?;
        for (number, place) in pages.iter_mut().enumerate() {
            if still.get(number) != Some(&true) {
                *place = None;
            }
        }
        Ok(pages)
    }
}

/// The most bytes of an image, which has only a few pages.
const IMAGE_BYTES: u64 = 1 << 20;

/// The layout of words in the target's memory, which may differ from that of pmdb's machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WordLayout {
    /// Base page size.
    pub page: PageSize,
    /// The size of a pointer: 4 or 8 bytes.
    pub pointer_bytes: u8,
    /// Whether the least significant byte comes first.
    pub is_little_endian: bool,
    /// Whether plain `char` of C is signed.
    pub is_char_signed: bool,
}

/// Machines on which plain `char` is unsigned, by the `e_machine` of their programs (linux/elf-em.h).
const UNSIGNED_CHAR: &[u16] = &[
    20,  // EM_PPC
    21,  // EM_PPC64
    22,  // EM_S390
    40,  // EM_ARM
    94,  // EM_XTENSA
    164, // EM_HEXAGON
    183, // EM_AARCH64
    243, // EM_RISCV
    252, // EM_CSKY
];

impl WordLayout {
    /// Returns the layout of pmdb.
    pub fn own() -> Self {
        WordLayout {
            page: PageSize::FOUR_KIB,
            pointer_bytes: size_of::<usize>() as u8,
            is_little_endian: cfg!(target_endian = "little"),
            is_char_signed: c_char::MIN != 0,
        }
    }

    /// Encodes a number in `bytes` bytes (at most eight) as in memory.
    pub fn bytes(self, number: u64, bytes: u8) -> Vec<u8> {
        let most = usize::from(bytes).min(size_of::<u64>());
        let mut all: Vec<u8> = number.to_le_bytes().into_iter().take(most).collect();
        if !self.is_little_endian {
            all.reverse();
        }
        all
    }

    /// Decodes bytes in memory (at most eight) to a number.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_little_endian { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) }
    }

    /// Returns the layout by the auxiliary vector, or that of pmdb if the vector may not be read. The executable shows
    /// the same, but an inotify watch on that file would notice the read.
    pub(super) fn of(source: &dyn Source) -> Self {
        let vector = source.fetch(File::Auxiliary).ok();
        let pointer_bytes = vector.and_then(|bytes| status::pointer_bytes(&bytes));
        let order = source.word(Probe::LittleEndian);
        let machine = source.word(Probe::Machine).and_then(|machine| u16::try_from(machine).ok());
        let own = WordLayout::own();
        WordLayout {
            page: source.page_size(),
            pointer_bytes: pointer_bytes.unwrap_or(own.pointer_bytes),
            is_little_endian: order.map_or(own.is_little_endian, |first| first == 1),
            is_char_signed: machine.map_or(own.is_char_signed, |machine| !UNSIGNED_CHAR.contains(&machine)),
        }
    }
}
