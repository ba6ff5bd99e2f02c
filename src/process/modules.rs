//! The files behind the regions of a process, and the shape of the words of its program.

use crate::access::{Error, InMemory, ReadAt, Result};
use crate::kernel::mapped_file::MappedFile;
use crate::kernel::status::{self, Status};
use crate::kernel::{AddressRange, Name, PageMapEntry, PageSize, Region, VirtualAddress, WordFile};
use crate::source::{Backing, BackingRun, File, FileLocation, Held, PartialImage, Place, Probe, Source, as_words};
use std::ffi::c_char;
use std::sync::Arc;

/// An existing file: its bytes, or why it was not opened.
pub type OpenedFile = Result<Box<dyn ReadAt>>;

/// The files behind regions.
#[derive(Clone)]
pub struct Modules {
    source: Arc<dyn Source>,
}

impl Modules {
    /// The modules of the process that a source reads.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Modules { source }
    }

    /// Opens the file behind `region`, if it is a regular file of the same device and inode (through `map_files`, or by
    /// path under the target's own root).
    pub fn open(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        let file = self.source.file(FileLocation::Region(region))?;
        file.ok_or_else(|| Error::not_available(format!("{} has no file", region.range)))
    }

    /// Opens the regular file that bears `path` in the target's own root, links followed as the target would: for files
    /// that no region maps, such as separate debug files. `None` if nothing bears it. Whether it is the right file is
    /// for the caller to check.
    pub fn at_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        self.source.file(FileLocation::Path(path))
    }

    /// Opens the regular file that bears `path` where pmdb itself runs, which is elsewhere for a process in a
    /// container: for debug files that the user of pmdb has installed. `None` if nothing bears it.
    pub fn at_own_path(&self, path: &[u8]) -> Result<Option<Box<dyn ReadAt>>> {
        self.source.file(FileLocation::OwnPath(path))
    }

    /// The file in which the target writes down the names of code that it makes, as perf would look for it:
    /// `/tmp/perf-PID.map` in the target's own root, PID being what the target itself is called, and its path there.
    /// Only a regular file of the target's user, or of root, is believed: anything else there is an error. `None` if
    /// there is none.
    pub fn perf_map(&self) -> Result<Option<(Name, OpenedFile)>> {
        let status = self.source.fetch(File::MainStatus)?;
        let status = Status::parse(&status)?;
        let path = format!("/tmp/perf-{}.map", status.own_number);
        let file = self.source.file(FileLocation::Trusted(path.as_bytes(), status.user));
        Ok(file.transpose().map(|file| (Name::new(path), file)))
    }

    /// What is behind `region`, without opening it.
    ///
    /// # Errors
    /// Nothing leads to it, or only a server could tell, which may not answer.
    pub fn mapped_file(&self, region: &Region) -> Result<MappedFile> {
        let words = self.source.fetch(Probe::MappedFile(region))?;
        MappedFile::from_words(&words).ok_or_else(|| Error::not_available(format!("the file of {}", region.range)))
    }

    /// Keeps the file behind `region` open while the result lives.
    pub fn hold(&self, region: &Region) -> Held {
        self.source.hold(region)
    }

    /// The backing content of the pages of `range`, which lies in `region`: runs in address order, without gaps. The
    /// object is not read, and nothing is brought into memory. The number of system calls follows the number of runs,
    /// not of pages.
    pub fn backing_content(&self, region: &Region, range: AddressRange) -> Result<Vec<BackingRun>> {
        self.source.fetch(Backing { region, range })
    }

    /// Reads the page cache of the object behind `region` (a file or shared memory) at `address`, without filling it:
    /// right before the read it checks which pages are cached. Returns the number of bytes before the first page that
    /// is not cached, or before the end of the object.
    pub fn read_cached(&self, region: &Region, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        self.source.bytes(Place::PageCache(region), address, into)
    }

    /// Bytes of the vdso or another mapping that only memory holds, as far as they can be read without a page fault.
    pub fn image(&self, region: &Region) -> Result<Box<dyn ReadAt>> {
        let layout = WordLayout::of(&*self.source);
        if region.range.len() <= IMAGE_BYTES {
            let pages = self.readable_pages(region, layout)?;
            if let Some(whole) = pages.iter().cloned().collect::<Option<Vec<_>>>() {
                return Ok(Box::new(InMemory::mapping(whole.concat(), region.range.start())));
            }
            // The kernel lends every process the same vdso, and reading one's own disturbs nobody.
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

    /// The pages of a region; `None` for those that cannot be read without a page fault. A capture or a core has no
    /// faults: there only its memory decides, and a page that the process had not touched may be in it.
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
        // What went during the read may have been faulted in again by it.
        let still = present()?;
        for (number, place) in pages.iter_mut().enumerate() {
            if still.get(number) != Some(&true) {
                *place = None;
            }
        }
        Ok(pages)
    }
}

/// An image has only a few pages: a larger region is none.
const IMAGE_BYTES: u64 = 1 << 20;

/// The shape of the target's memory words. The target's own, never this machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WordLayout {
    /// Base page size.
    pub page: PageSize,
    /// Bytes in a pointer: 4 or 8.
    pub pointer_bytes: u8,
    /// Whether the least significant byte comes first.
    pub is_little_endian: bool,
    /// Whether plain `char` of C has a sign.
    pub is_char_signed: bool,
}

/// Machines on which plain `char` has no sign, by the `e_machine` of their programs (linux/elf-em.h).
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
    /// The layout of pmdb's own words.
    pub fn own() -> Self {
        WordLayout {
            page: PageSize::FOUR_KIB,
            pointer_bytes: size_of::<usize>() as u8,
            is_little_endian: cfg!(target_endian = "little"),
            is_char_signed: c_char::MIN != 0,
        }
    }

    /// A number as `bytes` bytes, eight at most, as they lie in memory.
    pub fn bytes(self, number: u64, bytes: u8) -> Vec<u8> {
        let most = usize::from(bytes).min(size_of::<u64>());
        let mut all: Vec<u8> = number.to_le_bytes().into_iter().take(most).collect();
        if !self.is_little_endian {
            all.reverse();
        }
        all
    }

    /// Bytes as they lie in memory, eight at most, as a number.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_little_endian { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) }
    }

    /// The layout that the auxiliary vector gives, or pmdb's own if that may not be read. The executable gives the
    /// same, but a watch on that file (inotify) would notice the read.
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
