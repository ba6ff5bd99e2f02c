//! An ELF file whose headers were read, and the bytes of its sections, decompressed if they are compressed. The file's
//! own claim of their size is not trusted: it is bounded.

use super::file::{BETWEEN_LOOKS, BoundedFile};
use super::headers::Elf;
use super::section::Section;
use crate::budget::Budget;
use crate::source::memory;
use crate::symbol::NoSymbols;
use flate2::read::ZlibDecoder;
use lzma_rust2::XzReader;
use object::elf::{self as format, CompressionHeader32, CompressionHeader64, CompressionType};
use object::read::elf::CompressionHeader;
use object::{Endianness, pod};
use ruzstd::decoding::StreamingDecoder;
use std::cell::RefCell;
use std::io::{self, Read};

/// An ELF file whose headers were read.
pub(in crate::symbol) struct ElfFile {
    pub(in crate::symbol) file: BoundedFile,
    pub(in crate::symbol) elf: Elf,
}

impl ElfFile {
    /// Reads the headers.
    pub(in crate::symbol) fn read(file: BoundedFile, budget: &mut Budget) -> Result<ElfFile, NoSymbols> {
        let elf = Elf::read(&file, budget)?;
        Ok(ElfFile { file, elf })
    }

    /// The bytes of the first section of that name, expanded if they are compressed; `None` if there is no such
    /// section, or if it has no bytes in this file. Sections that expand to more than `most` bytes are an error.
    pub(in crate::symbol) fn section(
        &self,
        name: &[u8],
        most: u64,
        budget: &mut Budget,
    ) -> Result<Option<Vec<u8>>, NoSymbols> {
        let Some(section) = self.elf.section_called(name) else {
            return of_old_compressed(&self.file, &self.elf, name, most, budget);
        };
        of(&self.file, &self.elf, section, most, budget)
    }

    /// Whether there is a section of that name, or of its old compressed spelling, with bytes in this file.
    pub(in crate::symbol) fn has_section(&self, name: &[u8]) -> bool {
        let has = |name: &[u8]| self.elf.section_called(name).is_some_and(Section::has_bytes);
        has(name) || old_spelling(name).is_some_and(|old| has(&old))
    }
}

/// The bytes of `section`; `None` if it has none in this file.
pub(in crate::symbol) fn of(
    file: &BoundedFile,
    elf: &Elf,
    section: &Section,
    most: u64,
    budget: &mut Budget,
) -> Result<Option<Vec<u8>>, NoSymbols> {
    if !section.has_bytes() {
        return Ok(None);
    }
    let compressed = section.flags.contains(format::SHF_COMPRESSED);
    // Compressed bytes beyond that limit are not worth reading either.
    if section.size > most {
        return Err(TOO_LARGE);
    }
    let what = "section contents";
    let bytes = file.read(section.in_file(), what, budget)?;
    if !compressed {
        Ok(Some(bytes))
    } else {
        let (method, size, data) =
            header(&bytes, elf.is_64, elf.endian).ok_or(NoSymbols::CutShort("compressed section"))?;
        match method {
            _ if size > plausible(data.len()) => Err(TOO_LARGE),
            format::ELFCOMPRESS_ZLIB => expand(ZlibDecoder::new(data), size, most, budget),
            format::ELFCOMPRESS_ZSTD => {
                // The decoder allocates its window without checking whether there is memory.
                let window = size.clamp(SMALLEST_WINDOW, LARGEST_WINDOW);
                memory::check(window)?;
                let decoder = StreamingDecoder::new_with_max_window_size(data, window);
                let decoder = decoder.map_err(|_| BAD)?;
                expand(decoder, size, most, budget)
            }
            _ => Err(NoSymbols::Damaged("an unknown kind of compression")),
        }
        .map(Some)
    }
}

/// The memory that decompressing xz may take beside its output, in KiB: its largest preset takes 64 MiB.
const LARGEST_DICTIONARY: u32 = 72 << 10;
/// The memory that decompressing zstd may take beside its output. Every program should allow a window of 8 MiB (RFC
/// 8878, 3.1.1.1.2); `zstd` by default refuses more than 128 MiB.
const SMALLEST_WINDOW: u64 = 8 << 20;
const LARGEST_WINDOW: u64 = 128 << 20;

/// Tables of names and debug information expand to three to ten times their size. A larger claim is an attack on
/// memory.
const MOST_TIMES: u64 = 64;
/// Small tables may consist of zeros.
const ALWAYS_PLAUSIBLE: u64 = 1 << 20;

/// The most bytes that `compressed` bytes may expand to.
fn plausible(compressed: usize) -> u64 {
    (compressed as u64).saturating_mul(MOST_TIMES).max(ALWAYS_PLAUSIBLE)
}

pub(in crate::symbol) const TOO_LARGE: NoSymbols = NoSymbols::Damaged("a section of implausible size");
const BAD: NoSymbols = NoSymbols::Damaged("a compressed section that does not expand");

/// The name that a compressed `.debug_x` had before ELF defined compressed sections.
pub(in crate::symbol) fn old_spelling(name: &[u8]) -> Option<Vec<u8>> {
    let rest = name.strip_prefix(b".debug_")?;
    Some([b".zdebug_", rest].concat())
}

/// The same for files of binutils before 2.26: `.zdebug_info` begins with `ZLIB` and the size, in big-endian order.
fn of_old_compressed(
    file: &BoundedFile,
    elf: &Elf,
    name: &[u8],
    most: u64,
    budget: &mut Budget,
) -> Result<Option<Vec<u8>>, NoSymbols> {
    let Some(old) = old_spelling(name) else {
        return Ok(None);
    };
    let Some(section) = elf.section_called(&old) else {
        return Ok(None);
    };
    let Some(bytes) = of(file, elf, section, most, budget)? else {
        return Ok(None);
    };
    let rest = bytes.strip_prefix(b"ZLIB").ok_or(BAD)?;
    let (size, data) = rest.split_first_chunk::<8>().ok_or(BAD)?;
    let size = u64::from_be_bytes(*size);
    if size > plausible(data.len()) {
        return Err(TOO_LARGE);
    }
    expand(ZlibDecoder::new(data), size, most, budget).map(Some)
}

/// The kind of compression, the claimed size, and the compressed bytes.
fn header(bytes: &[u8], is_64: bool, endian: Endianness) -> Option<(CompressionType, u64, &[u8])> {
    if is_64 {
        let (header, data) = pod::from_bytes::<CompressionHeader64<Endianness>>(bytes).ok()?;
        Some((header.ch_type(endian), header.ch_size(endian), data))
    } else {
        let (header, data) = pod::from_bytes::<CompressionHeader32<Endianness>>(bytes).ok()?;
        Some((header.ch_type(endian), header.ch_size(endian).into(), data))
    }
}

/// Expands to exactly `size` bytes.
fn expand(from: impl Read, size: u64, most: u64, budget: &mut Budget) -> Result<Vec<u8>, NoSymbols> {
    if size > most {
        return Err(TOO_LARGE);
    }
    let bytes = read_within(from, size, size, &RefCell::new(budget))?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(BAD) }
}

/// Decompresses xz; `None` if that gives more than `most` bytes.
pub(in crate::symbol) fn expand_xz(bytes: &[u8], most: u64, budget: &mut Budget) -> Result<Option<Vec<u8>>, NoSymbols> {
    let most = most.min(plausible(bytes.len()));
    memory::check(u64::from(LARGEST_DICTIONARY) << 10)?;
    let budget = RefCell::new(budget);
    let reader = XzReader::new_mem_limit(Limited { bytes, budget: &budget }, false, LARGEST_DICTIONARY);
    let read = read_within(reader, 0, most.saturating_add(1), &budget);
    // If the decoder failed because its input ended, the cause is the budget.
    budget.into_inner().go_on()?;
    let bytes = read?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Compressed bytes, which end with the budget: a file may have any number of empty blocks, which give no output.
struct Limited<'a, 'b> {
    bytes: &'a [u8],
    budget: &'a RefCell<&'b mut Budget>,
}

impl Read for Limited<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.budget.borrow_mut().look().map_err(io::Error::other)?;
        self.bytes.read(into)
    }
}

/// At most `most` bytes. Room for `expected` bytes is made at once, for more as they come.
fn read_within(
    mut from: impl Read,
    expected: u64,
    most: u64,
    budget: &RefCell<&mut Budget>,
) -> Result<Vec<u8>, NoSymbols> {
    let mut bytes = memory::zeroed(expected)?;
    let mut length: usize = 0;
    while (length as u64) < most {
        if length > 0 && length.is_multiple_of(BETWEEN_LOOKS) {
            budget.borrow_mut().look()?;
        }
        if length == bytes.len() {
            memory::grow(&mut bytes, (most - length as u64).min(BETWEEN_LOOKS as u64))?;
        }
        let end = bytes.len().min((length / BETWEEN_LOOKS + 1).saturating_mul(BETWEEN_LOOKS));
        match from.read(bytes.get_mut(length..end).unwrap_or_default()) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => return Err(NoSymbols::OutOfMemory),
            Err(_) => return Err(BAD),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}
