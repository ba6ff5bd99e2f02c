//! The memory of a kernel in `/proc/kcore`: an ELF file whose segments have the place of each address.

use crate::access::{Error, Result};
use crate::kernel::elf::{ElfHeader, ProgramHeader};

/// Reads at an offset of the file: fills the buffer, or returns false.
pub(crate) type ReadCore = Box<dyn Fn(u64, &mut [u8]) -> bool + Send + Sync>;

/// The number of threads that can read the file at the same time.
pub(crate) const READERS: usize = 4;

/// The most segments. A machine has one for each range of its memory, and one more for the records of that.
const MOST_SEGMENTS: u16 = 16_384;
/// The most bytes of notes.
const MOST_NOTES: u64 = 1 << 20;

/// The memory of a kernel, with the places of addresses in its file.
pub(crate) struct Image {
    core: ReadCore,
    is_little_endian: bool,
    /// The `e_machine` of the file.
    machine: u16,
    /// The segments of memory, in the order of the file.
    segments: Vec<ImageSegment>,
    /// The text of VMCOREINFO.
    info: Vec<u8>,
}

/// A range of kernel addresses in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ImageSegment {
    pub(super) start: u64,
    pub(super) length: u64,
    offset: u64,
    /// The physical address of the segment, if it is memory.
    pub(super) physical: Option<u64>,
}

impl ImageSegment {
    /// Returns the offset in the file of `length` bytes at `address`.
    fn offset_of(&self, address: u64, length: u64) -> Option<u64> {
        let within = address.checked_sub(self.start)?;
        let fits = within.checked_add(length)? <= self.length;
        fits.then_some(self.offset.checked_add(within)?)
    }
}

impl Image {
    /// Reads the headers of the file.
    ///
    /// # Errors
    /// Fails if it is not that of a 64-bit kernel.
    pub(crate) fn open(core: ReadCore) -> Result<Image> {
        let damaged = || Error::not_available("/proc/kcore does not begin with the headers of an ELF file");
        let mut header = [0; ElfHeader::BYTES];
        let header = core(0, &mut header).then(|| ElfHeader::parse(&header)).flatten().ok_or_else(damaged)?;
        let form = header.start.form;
        if !form.is_64 {
            return Err(Error::not_available("the kernel has 32 bits: /proc/kcore does not show its records of pages"));
        }
        let bytes_of_one = ProgramHeader::bytes(form);
        let count =
            header.program_count.filter(|&count| header.program_bytes == bytes_of_one && count <= MOST_SEGMENTS);
        let count = count.ok_or_else(damaged)?;
        let (is_little_endian, machine) = (form.is_little, header.start.machine);
        let mut image = Image { core, is_little_endian, machine, segments: Vec::new(), info: Vec::new() };
        let mut bytes = vec![0; usize::from(count) * usize::from(bytes_of_one)];
        if !(image.core)(header.programs, &mut bytes) {
            return Err(damaged());
        }
        for one in bytes.chunks_exact(bytes_of_one.into()) {
            image.add(ProgramHeader::parse(form, one).ok_or_else(damaged)?);
        }
        Ok(image)
    }

    fn add(&mut self, header: ProgramHeader) {
        let ProgramHeader { offset, start, physical, size: length, .. } = header;
        match header.kind {
            ProgramHeader::LOAD => {
                let physical = Some(physical).filter(|&physical| physical != u64::MAX);
                self.segments.push(ImageSegment { start, length, offset, physical });
            }
            ProgramHeader::NOTE => {
                let mut notes = vec![0; header.stored.min(MOST_NOTES) as usize];
                if (self.core)(offset, &mut notes) {
                    self.info = self.find_info(&notes).unwrap_or_default().to_vec();
                }
            }
            _ => {}
        }
    }

    /// Returns the contents of the note VMCOREINFO.
    fn find_info<'a>(&self, mut notes: &'a [u8]) -> Option<&'a [u8]> {
        loop {
            let field = |at| self.number(notes, at, 4).and_then(|size| usize::try_from(size).ok());
            let (name, contents) = (field(0)?, field(4)?);
            let begin = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
            let end = begin.checked_add(contents)?;
            if notes.get(12..)?.starts_with(b"VMCOREINFO\0") {
                return notes.get(begin..end);
            }
            notes = notes.get(end.checked_next_multiple_of(4)?..)?;
        }
    }

    /// Returns the value after `key=` in VMCOREINFO.
    pub(super) fn info(&self, key: &str, radix: u32) -> Option<u64> {
        let value = |line: &[u8]| {
            let rest = line.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?;
            let number = std::str::from_utf8(rest).ok()?.trim();
            u64::from_str_radix(number.trim_start_matches("0x"), radix).ok()
        };
        self.info.split(|&byte| byte == b'\n').find_map(value)
    }

    /// Returns the processor (`e_machine`).
    pub(super) fn machine(&self) -> u16 {
        self.machine
    }

    pub(super) fn segments(&self) -> &[ImageSegment] {
        &self.segments
    }

    /// Reads memory at `address`, which must be inside one segment.
    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let length = into.len() as u64;
        let offset = self.segments.iter().find_map(|segment| segment.offset_of(address, length))?;
        (self.core)(offset, into).then_some(())
    }

    /// Reads memory at `address`. Bytes in no segment become zeros, as do those that the kernel may not read.
    pub(super) fn read_covered(&self, address: u64, into: &mut [u8]) {
        // Nearly always one segment contains all bytes.
        if self.read(address, into).is_some() {
            return;
        }
        into.fill(0);
        let end = address.saturating_add(into.len() as u64);
        for segment in &self.segments {
            let (from, to) = (address.max(segment.start), end.min(segment.start.saturating_add(segment.length)));
            if from >= to {
                continue;
            }
            let part = into.get_mut((from - address) as usize..(to - address) as usize);
            if let (Some(part), Some(offset)) = (part, segment.offset_of(from, to - from))
                && !(self.core)(offset, part)
            {
                part.fill(0);
            }
        }
    }

    /// Returns the pointer, or another 64-bit word, at `address`.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        self.number(&bytes, 0, 8)
    }

    /// Returns the 32-bit number at `address`.
    pub(super) fn half(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        self.number(&bytes, 0, 4).map(|number| number as u32)
    }

    /// Decodes a number of `size` bytes (at most 8) in the byte order of the kernel.
    #[inline]
    pub(super) fn number(&self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        let mut whole = [0; 8];
        Some(if self.is_little_endian {
            whole.get_mut(..size)?.copy_from_slice(bytes);
            u64::from_le_bytes(whole)
        } else {
            whole.get_mut(8usize.checked_sub(size)?..)?.copy_from_slice(bytes);
            u64::from_be_bytes(whole)
        })
    }
}
