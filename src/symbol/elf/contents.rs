//! The bytes of a section, decompressed if they are compressed. The file's own claim of their size is not trusted: it
//! is bounded.

use super::file::{BETWEEN_QUESTIONS, File, GoOn};
use super::headers::Elf;
use super::section::Section;
use crate::source::memory;
use crate::symbol::NoSymbols;
use crate::symbol::clock::Clock;
use flate2::read::ZlibDecoder;
use lzma_rust2::XzReader;
use object::Endianness;
use object::elf::{self as format, CompressionHeader32, CompressionHeader64, CompressionType};
use object::pod;
use object::read::elf::CompressionHeader;
use ruzstd::decoding::StreamingDecoder;
use std::cell::RefCell;
use std::io::{self, Read};

/// The bytes of `section`; `None` if it has none in this file. `go_on` is called now and then.
pub(in crate::symbol) fn of(
    file: &File,
    elf: &Elf,
    section: &Section,
    most: u64,
    go_on: &mut GoOn,
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
    let bytes = file.read_while(section.in_file(), what, go_on)?;
    if !compressed {
        Ok(Some(bytes))
    } else {
        let (method, size, data) =
            header(&bytes, elf.is_64, elf.endian).ok_or(NoSymbols::CutShort("compressed section"))?;
        match method {
            _ if size > plausible(data.len()) => Err(TOO_LARGE),
            format::ELFCOMPRESS_ZLIB => expand(ZlibDecoder::new(data), size, most, go_on),
            format::ELFCOMPRESS_ZSTD => {
                // The decoder allocates its window without checking whether there is memory.
                let window = size.clamp(SMALLEST_WINDOW, LARGEST_WINDOW);
                memory::check(window)?;
                let decoder = StreamingDecoder::new_with_max_window_size(data, window);
                let decoder = decoder.map_err(|_| BAD)?;
                expand(decoder, size, most, go_on)
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
pub(in crate::symbol) fn of_old_compressed(
    file: &File,
    elf: &Elf,
    name: &[u8],
    most: u64,
    go_on: &mut GoOn,
) -> Result<Option<Vec<u8>>, NoSymbols> {
    let Some(old) = old_spelling(name) else {
        return Ok(None);
    };
    let Some(section) = elf.section_called(&old) else {
        return Ok(None);
    };
    let Some(bytes) = of(file, elf, section, most, go_on)? else {
        return Ok(None);
    };
    let rest = bytes.strip_prefix(b"ZLIB").ok_or(BAD)?;
    let (size, data) = rest.split_first_chunk::<8>().ok_or(BAD)?;
    let size = u64::from_be_bytes(*size);
    if size > plausible(data.len()) {
        return Err(TOO_LARGE);
    }
    expand(ZlibDecoder::new(data), size, most, go_on).map(Some)
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
fn expand(from: impl Read, size: u64, most: u64, go_on: &mut GoOn) -> Result<Vec<u8>, NoSymbols> {
    if size > most {
        return Err(TOO_LARGE);
    }
    let bytes = read_within(from, memory::empty(size)?, size, go_on)?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(BAD) }
}

/// Decompresses xz; `None` if that gives more than `most` bytes. An error once `clock` has run out.
pub(in crate::symbol) fn expand_xz(bytes: &[u8], most: u64, clock: &mut Clock) -> Result<Option<Vec<u8>>, NoSymbols> {
    let most = most.min(plausible(bytes.len()));
    memory::check(u64::from(LARGEST_DICTIONARY) << 10)?;
    let clock = RefCell::new(clock);
    let go_on = || !clock.borrow_mut().is_over_now();
    let compressed = Asking { bytes, go_on: &go_on };
    let reader = XzReader::new_mem_limit(compressed, false, LARGEST_DICTIONARY);
    match read_within(reader, Vec::new(), most.saturating_add(1), &mut &go_on) {
        Ok(bytes) => Ok((bytes.len() as u64 <= most).then_some(bytes)),
        Err(_) if !go_on() => Err(clock.borrow().reason()),
        Err(reason) => Err(reason),
    }
}

/// Compressed bytes, which end once `go_on` says no: a file may have any number of empty blocks, which give no output.
struct Asking<'a> {
    bytes: &'a [u8],
    go_on: &'a dyn Fn() -> bool,
}

impl Read for Asking<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if (self.go_on)() { self.bytes.read(into) } else { Err(io::Error::other("nobody waits for it any longer")) }
    }
}

/// Appends at most `most` bytes, and grows `bytes` as they come.
fn read_within(mut from: impl Read, mut bytes: Vec<u8>, most: u64, go_on: &mut GoOn) -> Result<Vec<u8>, NoSymbols> {
    let mut room = most;
    while room > 0 {
        let part = room.min(BETWEEN_QUESTIONS as u64);
        let read = from.by_ref().take(part).read_to_end(&mut bytes);
        let read = read.map_err(|error| match error.kind() {
            io::ErrorKind::OutOfMemory => NoSymbols::OutOfMemory,
            _ => BAD,
        });
        if (read? as u64) < part {
            break;
        }
        room -= part;
        if room > 0 && !go_on() {
            return Err(NoSymbols::Interrupted);
        }
    }
    Ok(bytes)
}
