//! The file of a capture: a tar of regular files with relative names. Each is a sequence of gzip members, so that
//! `zcat` prints it, and a part of it can be read in place.

use super::stored::{BLOCK, CompressedBlock, StoredText};
use crate::access::{Error, ReadAt, Result};
use crate::kernel::PageSize;
use crate::kernel::text::one_line;
use crate::own::memory;
use crate::source::PassedOver;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The size of a tar record in bytes.
const RECORD: usize = 512;
/// The length of the longest name in a header.
const LONGEST_NAME: usize = 100;
/// The directory of the members with answers about the machine.
pub const MACHINE: &str = "machine";
/// The name of the last member, which has the place of the index.
const END: &str = "end";
/// The name of the index, the last but one member.
const INDEX: &str = "index.json.gz";
/// The name of the first member, the head of the file.
const FIRST: &str = "capture";
/// The first words of the head and of the end, before the version of the format.
const MAGIC: &str = "pmdb capture ";
/// The version of the format that is written, and the only one that is read.
const VERSION: &str = "2";
/// The commit of pmdb that reads format 1, which no release had.
const READS_FORMAT_1: &str = "5ec26212";
/// The first bytes of compressed files, and the program that expands each. systemd-coredump keeps core files as zstd,
/// lz4 or xz.
const COMPRESSED: [(&[u8], &str); 8] = [
    (b"\x1f\x8b", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd -d"),
    (b"\x04\x22\x4d\x18", "lz4 -d"),
    (b"\x02\x21\x4c\x18", "lz4 -d"),
    (b"\xfd7zXZ\0", "unxz"),
    (b"BZh", "bunzip2"),
    (b"LZIP", "lzip -d"),
    (b"PK\x03\x04", "unzip"),
];
/// The most bytes of an index. Larger ones are not read.
const LARGEST_INDEX: u64 = 64 << 20;
/// The most bytes of an expanded text for each byte of the file, and of an index for each compressed byte. In an index
/// of a process with 60,000 mappings, none of which could be examined, the ratio is 32, and in the text of its smaps
/// 17. Reading a text needs 13 times its length and an index six times, so that a small file needs at most 256 MiB.
const MOST_EXPANDED: u64 = 16;
const MOST_EXPANDED_INDEX: u64 = 32;
/// The most expanded bytes for each compressed byte after the first mebibyte.
const MOST_EXPANDED_LATER: u64 = 64;
/// The length of a short text, which may be uniform and has no limit.
const SHORT: u64 = 1 << 20;

/// The output of a capture.
pub type ArchiveWriter = Box<dyn Write + Send>;

/// The facts about the machine in the head of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The page size of the machine.
    pub page: PageSize,
    /// Whether the machine is little-endian.
    pub is_little: bool,
}

/// The first words of the lines in the head.
const PAGE: &str = "page-bytes ";
const ORDER: &str = "byte-order ";
const ORDERS: [&str; 2] = ["big", "little"];

impl Head {
    fn text(self) -> String {
        let order = ORDERS[usize::from(self.is_little)];
        format!(
            "{MAGIC}{VERSION}\n{PAGE}{}\n{ORDER}{order}\n\n\
             Answers of a Linux kernel about a process. `pmdb -c FILE` opens it.\n",
            self.page.bytes()
        )
    }

    /// Parses the head in the first member, whose version is known. Unknown lines are skipped.
    fn read(text: &str) -> Result<Self> {
        let field = |begins: &str| text.lines().find_map(|line| line.strip_prefix(begins));
        let bytes = field(PAGE).and_then(|bytes| bytes.parse().ok());
        let page = bytes.and_then(PageSize::of_base).ok_or_else(|| damaged("the size of a page"))?;
        let order = field(ORDER).and_then(|order| ORDERS.iter().position(|one| *one == order));
        Ok(Head { page, is_little: order.ok_or_else(|| damaged("the byte order"))? == 1 })
    }
}

/// A capture that is being written.
pub struct Archive {
    out: ArchiveWriter,
    at: u64,
    time: u64,
    head: Head,
}

impl Archive {
    /// Makes an archive that is written to `out`. `time` is that of all its members, in seconds since 1970.
    pub fn new(out: ArchiveWriter, time: u64, head: Head) -> Self {
        Archive { out, at: 0, time, head }
    }

    /// Adds a member with a text.
    pub(super) fn text(&mut self, name: &str, bytes: &[u8]) -> Result<StoredText> {
        let mut packed = Vec::new();
        let mut blocks = Vec::new();
        for part in bytes.chunks(BLOCK) {
            let before = packed.len();
            packed = pack(part, packed).map_err(io_error)?;
            let length = u32::try_from(packed.len() - before).unwrap_or(u32::MAX);
            blocks.push((before as u64, length, part.len() as u32));
        }
        let start = self.member(name, &packed)?;
        let block = |(offset, packed, length)| CompressedBlock { offset: start + offset, packed, length };
        Ok(StoredText::Blocks(blocks.into_iter().map(block).collect()))
    }

    /// Adds a member of compressed blocks. `lengths` are those of each block before and after compression. Returns the
    /// places of the blocks.
    pub(super) fn blocks(&mut self, name: &str, packed: &[u8], lengths: &[(u32, u32)]) -> Result<Vec<CompressedBlock>> {
        let mut offset = self.member(name, packed)?;
        let block = |&(length, packed): &(u32, u32)| {
            let block = CompressedBlock { offset, packed, length };
            offset += u64::from(packed);
            block
        };
        Ok(lengths.iter().map(block).collect())
    }

    /// Adds the index and the end. Returns the length of the file in bytes.
    pub(super) fn finish(mut self, index: &[u8]) -> Result<u64> {
        let packed = pack(index, Vec::new()).map_err(io_error)?;
        let at = self.member(INDEX, &packed)?;
        let text = format!("{MAGIC}{VERSION}\nindex {at} {} {}\n", packed.len(), index.len());
        self.member(END, text.as_bytes())?;
        let end = [0; 2 * RECORD];
        self.out.write_all(&end).and_then(|()| self.out.flush()).map_err(io_error)?;
        Ok(self.at + end.len() as u64)
    }

    /// Adds a member, and returns the offset of its bytes. The head precedes the first one.
    fn member(&mut self, name: &str, bytes: &[u8]) -> Result<u64> {
        if self.at == 0 {
            self.put(FIRST, self.head.text().as_bytes())?;
        }
        self.put(name, bytes)
    }

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<u64> {
        let padding = bytes.len().next_multiple_of(RECORD) - bytes.len();
        let parts = [&header(name, bytes.len(), self.time)[..], bytes, &[0; RECORD][..padding]];
        parts.iter().try_for_each(|part| self.out.write_all(part)).map_err(io_error)?;
        let start = self.at + RECORD as u64;
        self.at = start + (bytes.len() + padding) as u64;
        Ok(start)
    }
}

fn io_error(error: io::Error) -> Error {
    Error::io("writing the capture", Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Appends one gzip member to `into`.
pub(super) fn pack(bytes: &[u8], into: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(into, Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The place of the checksum in a header.
const SUM: Range<usize> = 148..156;

/// Computes the checksum of a header, with spaces in its place.
fn sum_of(header: &[u8; RECORD]) -> u32 {
    let byte = |(at, byte)| u32::from(if SUM.contains(&at) { b' ' } else { byte });
    header.iter().copied().enumerate().map(byte).sum()
}

/// A member of the archive, by its header.
struct Member {
    name: String,
    /// Whether the checksum of the header is right.
    is_whole: bool,
}

/// Makes a header of a regular file (POSIX ustar).
fn header(name: &str, size: usize, time: u64) -> [u8; RECORD] {
    let mut header = [0; RECORD];
    let mut put = |at: usize, text: &str| {
        let place = header.get_mut(at..at + text.len()).unwrap_or_default();
        place.copy_from_slice(text.as_bytes());
    };
    put(0, name.get(..LONGEST_NAME).unwrap_or(name));
    put(100, "0000600");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{time:011o}"));
    put(156, "0");
    put(257, "ustar\x0000");
    let sum = format!("{:06o}\0 ", sum_of(&header));
    header.get_mut(SUM).unwrap_or_default().copy_from_slice(sum.as_bytes());
    header
}

/// A capture that is open for reading.
pub(super) struct ArchiveReader {
    file: Box<dyn ReadAt>,
    length: u64,
    /// The last block of a text that was read, because texts are read in small parts.
    last: Mutex<Option<(CompressedBlock, Arc<Vec<u8>>)>>,
}

impl ArchiveReader {
    /// Opens a capture, and returns its head and the bytes of its index. The version is checked first.
    pub(super) fn open(file: Box<dyn ReadAt>) -> Result<(ArchiveReader, Head, Vec<u8>)> {
        let length = file.len();
        let contents = ArchiveReader { file, length, last: Mutex::default() };
        let head = contents.head()?;
        let last = contents.last_record()?;
        let text = std::str::from_utf8(&last).unwrap_or_default().trim_end_matches('\0');
        let place = text.strip_prefix(&*format!("{MAGIC}{VERSION}\nindex ")).ok_or_else(|| contents.cut_short())?;
        let numbers: Vec<u64> = place.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
        let [offset, packed, size] = numbers[..] else {
            return Err(damaged("its last member"));
        };
        if !is_index_length(size, packed) {
            return Err(damaged("its index (too large)"));
        }
        let index = contents.part(offset, packed, size).ok_or_else(|| damaged("its index"))?;
        Ok((contents, head, index))
    }

    /// Returns the last record that is not empty. Two empty records end an archive, and tools add more. The result is
    /// empty if these two are missing.
    fn last_record(&self) -> Result<[u8; RECORD]> {
        const MOST: usize = 1 << 16;
        let start = self.length.saturating_sub(MOST as u64).next_multiple_of(RECORD as u64);
        let mut last = vec![0; MOST];
        let read = self.file.read_up_to(start, &mut last).map_err(unreadable)?;
        let (records, _) = last.get(..read).unwrap_or_default().as_chunks();
        let written = records.len().saturating_sub(2);
        let (written, empty) = records.split_at(written);
        let is_empty = |record: &[u8; RECORD]| record.iter().all(|&byte| byte == 0);
        let last = written.iter().rfind(|record| !is_empty(record)).filter(|_| empty.iter().all(is_empty));
        Ok(last.copied().unwrap_or([0; RECORD]))
    }

    /// Parses the head in the first member.
    fn head(&self) -> Result<Head> {
        let mut start = [0; 2 * RECORD];
        self.file.read_up_to(0, &mut start).map_err(unreadable)?;
        let (header, first) = start.split_at(RECORD);
        let name = header.strip_prefix(FIRST.as_bytes()).filter(|rest| rest.first() == Some(&0));
        let text = first.split(|&byte| byte == 0).next().and_then(|text| std::str::from_utf8(text).ok());
        let text = name.and(text).and_then(|text| text.strip_prefix(MAGIC));
        let Some((version, lines)) = text.and_then(|text| text.split_once('\n')) else {
            if name.is_some() && self.length < start.len() as u64 {
                return Err(self.cut_short());
            }
            return Err(Error::not_available(match COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic)) {
                Some((_, command)) => format!("this file is compressed: use `{command}` on it first"),
                None => "this file is not a capture of pmdb".to_owned(),
            }));
        };
        match version {
            VERSION => Head::read(lines),
            "1" => Err(Error::not_available(format!(
                "this capture has format 1, which pmdb reads up to its commit {READS_FORMAT_1}"
            ))),
            _ => Err(Error::not_available(format!(
                "this capture has format {}; this pmdb reads {VERSION}",
                one_line(version)
            ))),
        }
    }

    /// Returns the error that the end of the file is missing.
    fn cut_short(&self) -> Error {
        let whole = self.members().iter().filter(|member| member.is_whole).count();
        let what = format!("its last bytes are missing ({whole} members are whole; tar and zcat show them)");
        Error::not_available(format!("this capture is cut short: {what}"))
    }

    /// Returns the members that this version does not know and does not read, and those with a damaged header.
    pub(super) fn passed_over(&self) -> PassedOver {
        let is_known = |name: &str| {
            let top = name.split('/').next().unwrap_or_default();
            let is_process = name.contains('/') && !top.is_empty() && top.bytes().all(|byte| byte.is_ascii_digit());
            is_process || ["files", MACHINE].contains(&top) || [FIRST, INDEX, END].contains(&name)
        };
        let (whole, damaged): (Vec<_>, Vec<_>) = self.members().into_iter().partition(|member| member.is_whole);
        let names = |members: Vec<Member>| members.into_iter().map(|member| member.name);
        let unknown = names(whole).filter(|name| !is_known(name)).collect();
        PassedOver { unknown, damaged: names(damaged).collect(), ..PassedOver::default() }
    }

    /// Returns the members at the beginning of the file, up to a limit.
    fn members(&self) -> Vec<Member> {
        const MOST: usize = 10_000;
        let mut members = Vec::new();
        let mut at = 0u64;
        let mut header = [0; RECORD];
        while members.len() < MOST && matches!(self.file.read_up_to(at, &mut header), Ok(RECORD)) {
            let text = |range: Range<usize>| {
                let bytes = header.get(range).unwrap_or_default();
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                std::str::from_utf8(bytes.get(..end).unwrap_or_default()).unwrap_or_default().to_owned()
            };
            // Empty records end the archive.
            if header.iter().all(|&byte| byte == 0) {
                break;
            }
            let name = text(0..LONGEST_NAME).chars().filter(|c| c.is_ascii_graphic()).collect();
            let is_whole = u32::from_str_radix(text(SUM).trim(), 8) == Ok(sum_of(&header));
            let size = u64::from_str_radix(&text(124..136), 8).ok().filter(|_| text(257..262) == "ustar");
            // The size has 12 octal digits, so that no sum overflows.
            let end = size.map(|size| at + RECORD as u64 + size.next_multiple_of(RECORD as u64));
            let end = end.filter(|&end| end <= self.length);
            members.push(Member { name, is_whole: is_whole && end.is_some() });
            // Without a size the next member cannot be found.
            let Some(end) = end else {
                break;
            };
            at = end;
        }
        members
    }

    /// Expands a block; `None` if it is damaged.
    pub(super) fn block(&self, block: CompressedBlock) -> Option<Vec<u8>> {
        (block.length as usize <= BLOCK).then_some(())?;
        self.part(block.offset, block.packed.into(), block.length.into())
    }

    /// Returns the most bytes of a text that is held in memory as a whole.
    pub(super) fn longest_text(&self) -> u64 {
        most_expanded(self.length, MOST_EXPANDED)
    }

    /// Returns the bytes of a text.
    pub(super) fn text(&self, stored: &StoredText) -> Result<Vec<u8>> {
        let blocks = match stored {
            StoredText::Short(text) => return Ok(text.0.clone()),
            StoredText::Blocks(blocks) => blocks,
        };
        let size = stored.length();
        if size > self.longest_text() {
            return Err(damaged("a text (too large)"));
        }
        memory::check(size).map_err(unreadable)?;
        let mut text = Vec::new();
        for &block in blocks {
            text.extend(self.block(block).ok_or_else(|| damaged("a text"))?);
        }
        Ok(text)
    }

    /// Copies bytes of a text from an offset on, at most to the end of a block. Returns their number; 0 is the end of
    /// the text.
    pub(super) fn read_text(&self, stored: &StoredText, offset: u64, into: &mut [u8]) -> Result<usize> {
        let blocks = match stored {
            StoredText::Short(text) => {
                let mut rest = text.0.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
                return rest.read(into).map_err(unreadable);
            }
            StoredText::Blocks(blocks) => blocks,
        };
        // All blocks but the last have the same length.
        let index = usize::try_from(offset / BLOCK as u64).unwrap_or(usize::MAX);
        let Some(&block) = blocks.get(index) else {
            return Ok(0);
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match &*last {
            Some((known, bytes)) if *known == block => Arc::clone(bytes),
            _ => {
                let bytes = Arc::new(self.block(block).ok_or_else(|| damaged("a text"))?);
                *last = Some((block, Arc::clone(&bytes)));
                bytes
            }
        };
        let rest = bytes.get((offset % BLOCK as u64) as usize..).unwrap_or_default();
        let length = rest.len().min(into.len());
        if let (Some(from), Some(to)) = (rest.get(..length), into.get_mut(..length)) {
            to.copy_from_slice(from);
        }
        Ok(length)
    }

    /// Expands exactly `size` bytes from the `packed` bytes at `offset`.
    fn part(&self, offset: u64, packed: u64, size: u64) -> Option<Vec<u8>> {
        (offset.checked_add(packed)? <= self.length).then_some(())?;
        let mut bytes = memory::zeroed(packed).ok()?;
        (self.file.read_up_to(offset, &mut bytes).ok()? == bytes.len()).then_some(())?;
        let mut whole = memory::zeroed(size).ok()?;
        let mut decoder = GzDecoder::new(&bytes[..]);
        decoder.read_exact(&mut whole).ok()?;
        // The decoder checks the checksum at the end.
        (decoder.read(&mut [0]).ok()? == 0).then_some(whole)
    }
}

/// Returns the most bytes to which `packed` compressed bytes expand in a sound capture, with the ratio `of_small` for a
/// small file.
fn most_expanded(packed: u64, of_small: u64) -> u64 {
    let small = packed.min(SHORT);
    let later = (packed - small).saturating_mul(MOST_EXPANDED_LATER);
    small.saturating_mul(of_small).saturating_add(later).saturating_add(SHORT)
}

/// Returns whether an index may have `size` bytes, and `packed` compressed ones.
pub(super) fn is_index_length(size: u64, packed: u64) -> bool {
    size.max(packed) <= LARGEST_INDEX && size <= most_expanded(packed, MOST_EXPANDED_INDEX)
}

fn unreadable(error: io::Error) -> Error {
    Error::io("reading the capture", Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Returns the error that a part of a capture cannot be read.
pub(super) fn damaged(what: &str) -> Error {
    Error::not_available(format!("this capture is damaged: {what} cannot be read"))
}
