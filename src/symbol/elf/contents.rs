//! An ELF file whose headers were read: the decompressed bytes of its sections, and the targets of its relocations
//! (slots of the global offset table, and copies of libraries' variables). The sizes in the file are not trusted, but
//! limited.

use super::file::{BETWEEN_LOOKS, BoundedFile, TablePass};
use super::headers::{Elf, Section};
use crate::budget::Budget;
use crate::own::memory;
use crate::symbol::NoSymbols;
use flate2::read::ZlibDecoder;
use lzma_rust2::XzReader;
use object::Endianness;
use object::elf::{
    self as format, CompressionHeader32, CompressionHeader64, CompressionType, Rel32, Rel64, Rela32, Rela64,
    RelocationType, SectionType,
};
use object::pod::{self, Pod};
use object::read::elf::{CompressionHeader, Crel};
use ruzstd::decoding::StreamingDecoder;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::sync::OnceLock;

/// An ELF file whose headers were read.
pub(in crate::symbol) struct ElfFile {
    pub(in crate::symbol) file: BoundedFile,
    pub(in crate::symbol) elf: Elf,
}

impl ElfFile {
    /// Reads the headers of a file.
    pub(in crate::symbol) fn read(file: BoundedFile, budget: &mut Budget) -> Result<ElfFile, NoSymbols> {
        let elf = Elf::read(&file, budget)?;
        Ok(ElfFile { file, elf })
    }

    /// Returns the decompressed bytes of the first section with this name; `None` if there is no such section, or if it
    /// has no bytes in this file. Fails if the section expands to more than `most` bytes.
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

    /// Returns whether there is a section with this name, or its old compressed spelling, with bytes in this file.
    pub(in crate::symbol) fn has_section(&self, name: &[u8]) -> bool {
        let has = |name: &[u8]| self.elf.section_called(name).is_some_and(Section::has_bytes);
        has(name) || old_spelling(name).is_some_and(|old| has(&old))
    }
}

/// Returns the bytes of `section`; `None` if it has none in this file.
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

/// The most memory for decompressing xz besides its output, in KiB: its largest preset needs 64 MiB.
const LARGEST_DICTIONARY: u32 = 72 << 10;
/// The least and the most memory for decompressing zstd besides its output. Every program should allow a window of 8
/// MiB (RFC 8878, 3.1.1.1.2); `zstd` by default refuses more than 128 MiB.
const SMALLEST_WINDOW: u64 = 8 << 20;
const LARGEST_WINDOW: u64 = 128 << 20;

/// The most times that bytes may expand. Tables of names and debug information expand to three to ten times their size,
/// and a larger claim is an attack on memory.
const MOST_TIMES: u64 = 64;
/// The size that is always accepted: small tables may consist of zeros.
const ALWAYS_PLAUSIBLE: u64 = 1 << 20;

/// Returns the most bytes to which `compressed` bytes may expand.
fn plausible(compressed: usize) -> u64 {
    (compressed as u64).saturating_mul(MOST_TIMES).max(ALWAYS_PLAUSIBLE)
}

pub(in crate::symbol) const TOO_LARGE: NoSymbols = NoSymbols::Damaged("a section of implausible size");
const BAD: NoSymbols = NoSymbols::Damaged("a compressed section that does not expand");

/// Returns the name that a compressed `.debug_x` had before ELF defined compressed sections.
pub(in crate::symbol) fn old_spelling(name: &[u8]) -> Option<Vec<u8>> {
    let rest = name.strip_prefix(b".debug_")?;
    Some([b".zdebug_", rest].concat())
}

/// Reads a section of binutils before 2.26: `.zdebug_info` begins with `ZLIB` and the size in big-endian order.
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

/// Returns the kind of compression, the claimed size, and the compressed bytes.
fn header(bytes: &[u8], is_64: bool, endian: Endianness) -> Option<(CompressionType, u64, &[u8])> {
    if is_64 {
        let (header, data) = pod::from_bytes::<CompressionHeader64<Endianness>>(bytes).ok()?;
        Some((header.ch_type(endian), header.ch_size(endian), data))
    } else {
        let (header, data) = pod::from_bytes::<CompressionHeader32<Endianness>>(bytes).ok()?;
        Some((header.ch_type(endian), header.ch_size(endian).into(), data))
    }
}

/// Expands compressed bytes to exactly `size` bytes.
fn expand(from: impl Read, size: u64, most: u64, budget: &mut Budget) -> Result<Vec<u8>, NoSymbols> {
    if size > most {
        return Err(TOO_LARGE);
    }
    let bytes = read_within(from, size, size, &RefCell::new(budget))?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(BAD) }
}

/// Decompresses xz; `None` if the result exceeds `most` bytes.
pub(in crate::symbol) fn expand_xz(bytes: &[u8], most: u64, budget: &mut Budget) -> Result<Option<Vec<u8>>, NoSymbols> {
    let most = most.min(plausible(bytes.len()));
    memory::check(u64::from(LARGEST_DICTIONARY) << 10)?;
    let budget = RefCell::new(budget);
    let reader = XzReader::new_mem_limit(DecompressedBytes { bytes, budget: &budget }, false, LARGEST_DICTIONARY);
    let read = read_within(reader, 0, most.saturating_add(1), &budget);
    // If the decoder failed because its input ended, the cause is the budget.
    budget.into_inner().go_on()?;
    let bytes = read?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// A reader of compressed bytes that ends with the budget: a file may have any number of empty blocks, which have no
/// output.
struct DecompressedBytes<'a, 'b> {
    bytes: &'a [u8],
    budget: &'a RefCell<&'b mut Budget>,
}

impl Read for DecompressedBytes<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.budget.borrow_mut().look().map_err(io::Error::other)?;
        self.bytes.read(into)
    }
}

/// Reads at most `most` bytes. Allocates `expected` bytes at once, and more as they arrive.
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

/// The most bytes of relocations that are read, in all sections together: a browser has some tens of megabytes.
const MOST_BYTES: u64 = 96 << 20;
/// The most slots that are kept: large programs have some thousands.
const MOST_SLOTS: usize = 1 << 18;
/// The most copied variables that are kept: programs have some tens.
const MOST_COPIES: usize = 1 << 16;
/// The most slots of indirect functions that are kept: a C library has some tens.
const MOST_RESOLVED: usize = 1 << 12;

/// A slot through which functions of other files are called.
pub(in crate::symbol) struct GotSlot {
    /// The number of the function in `.dynsym`.
    pub(in crate::symbol) function: u32,
    /// Whether only stubs use the slot.
    pub(in crate::symbol) is_jump: bool,
}

/// The targets of a file's relocations, by file address.
#[derive(Default)]
pub(in crate::symbol) struct RelocationTargets {
    pub(in crate::symbol) slots: HashMap<u64, GotSlot>,
    /// The program's copies of libraries' variables, which all files use. A program that is not fully
    /// position-independent has them in its `.bss`, where copy relocations make the dynamic linker fill them.
    pub(in crate::symbol) copies: HashSet<u64>,
    /// For each resolver of an indirect function, the slots that get the address of the chosen function.
    pub(in crate::symbol) indirect: HashMap<u64, Vec<u64>>,
}

/// The targets of a file's relocations, found by the first query.
#[derive(Default)]
pub(in crate::symbol) struct Relocations(OnceLock<RelocationTargets>);

impl Relocations {
    /// Returns the targets. The first query makes a pass over the relocations.
    pub(in crate::symbol) fn of(&self, source: &ElfFile, budget: &mut Budget) -> Result<&RelocationTargets, NoSymbols> {
        match self.0.get() {
            Some(known) => Ok(known),
            None => {
                let targets = read_targets(source, budget)?;
                Ok(self.0.get_or_init(|| targets))
            }
        }
    }
}

fn read_targets(source: &ElfFile, budget: &mut Budget) -> Result<RelocationTargets, NoSymbols> {
    let mut targets = RelocationTargets::default();
    let Some((copy, jump, data, irelative)) = kinds(source.elf.machine) else {
        return Ok(targets);
    };
    let RelocationTargets { slots, copies, indirect } = &mut targets;
    let mut resolved = 0;
    let mut pass = RelocationPass::new(source);
    while let Some((kind, part)) = pass.next(budget)? {
        let has_addend = kind == format::SHT_RELA;
        for relocation in part {
            let is_jump = relocation.r_type == jump;
            if relocation.r_type == copy && copies.len() < MOST_COPIES {
                copies.insert(relocation.r_offset);
            } else if relocation.r_sym != 0 && (is_jump || Some(relocation.r_type) == data) && slots.len() < MOST_SLOTS
            {
                slots.entry(relocation.r_offset).or_insert(GotSlot { function: relocation.r_sym, is_jump });
            } else if relocation.r_type == irelative && resolved < MOST_RESOLVED {
                resolved += 1;
                let resolver = resolver(source, &relocation, has_addend, budget)?;
                resolver
                    .into_iter()
                    .for_each(|resolver| indirect.entry(resolver).or_default().push(relocation.r_offset));
            }
        }
    }
    Ok(targets)
}

/// Returns the file address of the resolver that fills a slot: the addend of its relocation, which older formats keep
/// in the slot itself. `None` if the slot has no bytes in the file.
fn resolver(source: &ElfFile, one: &Crel, has_addend: bool, budget: &mut Budget) -> Result<Option<u64>, NoSymbols> {
    if has_addend {
        return Ok(Some(one.r_addend.cast_unsigned()));
    }
    let ElfFile { file, elf } = source;
    let range = elf.in_file(one.r_offset, elf.pointer_bytes());
    let bytes = match range.map(|range| file.read(range, "slot", budget)) {
        Some(Err(reason)) if reason.is_passing() => return Err(reason),
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) | None => return Ok(None),
    };
    let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    let is_big = matches!(elf.endian, Endianness::Big);
    Ok(Some(if is_big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }))
}

/// Returns the machine's types of relocations: of copied variables; of slots that only stubs use; of slots that stubs
/// share with other code, if such stubs are known; and of slots of indirect functions.
fn kinds(machine: format::Machine) -> Option<(RelocationType, RelocationType, Option<RelocationType>, RelocationType)> {
    use format::*;
    Some(match machine {
        EM_X86_64 => (R_X86_64_COPY, R_X86_64_JUMP_SLOT, Some(R_X86_64_GLOB_DAT), R_X86_64_IRELATIVE),
        EM_386 => (R_386_COPY, R_386_JMP_SLOT, None, R_386_IRELATIVE),
        EM_AARCH64 => (R_AARCH64_COPY, R_AARCH64_JUMP_SLOT, None, R_AARCH64_IRELATIVE),
        EM_ARM => (R_ARM_COPY, R_ARM_JUMP_SLOT, None, R_ARM_IRELATIVE),
        EM_RISCV => (R_RISCV_COPY, R_RISCV_JUMP_SLOT, None, R_RISCV_IRELATIVE),
        EM_PPC64 => (R_PPC64_COPY, R_PPC64_JMP_SLOT, None, R_PPC64_IRELATIVE),
        EM_S390 => (R_390_COPY, R_390_JMP_SLOT, None, R_390_IRELATIVE),
        _ => return None,
    })
}

/// Reads the relocations of a file in parts.
pub(in crate::symbol) struct RelocationPass<'a> {
    elf: &'a Elf,
    sections: std::vec::IntoIter<(SectionType, TablePass<'a>)>,
    current: Option<(SectionType, TablePass<'a>)>,
}

impl<'a> RelocationPass<'a> {
    pub(in crate::symbol) fn new(ElfFile { file, elf }: &'a ElfFile) -> Self {
        let is_wanted = |one: &&Section| matches!(one.kind, format::SHT_RELA | format::SHT_REL) && one.is_loaded();
        let mut sections: Vec<&Section> = elf.sections.iter().filter(is_wanted).collect();
        sections.sort_by_cached_key(|one| one.offset);
        let (mut room, mut end) = (MOST_BYTES, 0);
        // Sections of an intact file do not overlap.
        sections.retain(|section| {
            let is_read = section.offset >= end && section.size <= room;
            if is_read {
                room -= section.size;
                end = section.offset.saturating_add(section.size);
            }
            is_read
        });
        let pass = |section: &Section| {
            let bytes = match (section.kind, elf.is_64) {
                (format::SHT_RELA, true) => size_of::<Rela64<Endianness>>(),
                (format::SHT_RELA, false) => size_of::<Rela32<Endianness>>(),
                (_, true) => size_of::<Rel64<Endianness>>(),
                (_, false) => size_of::<Rel32<Endianness>>(),
            };
            (section.kind, file.pass(section.in_file(), bytes, "relocations"))
        };
        let sections = sections.into_iter().map(pass).collect::<Vec<_>>().into_iter();
        RelocationPass { elf, sections, current: None }
    }

    /// Returns the next part, and the kind of its section.
    pub(in crate::symbol) fn next(
        &mut self,
        budget: &mut Budget,
    ) -> Result<Option<(SectionType, Vec<Crel>)>, NoSymbols> {
        while self.current.is_some() || self.begin() {
            let Some((kind, pass)) = &mut self.current else {
                break;
            };
            match pass.next(budget) {
                Ok(Some(bytes)) => {
                    let part = relocations(bytes, *kind, self.elf);
                    budget.spend(part.len() as u64)?;
                    return Ok(Some((*kind, part)));
                }
                Err(reason) if reason.is_passing() => return Err(reason),
                // Missing parts of a damaged section are skipped.
                Ok(None) | Err(_) => self.current = None,
            }
        }
        Ok(None)
    }

    fn begin(&mut self) -> bool {
        self.current = self.sections.next();
        self.current.is_some()
    }
}

fn relocations(bytes: &[u8], kind: SectionType, elf: &Elf) -> Vec<Crel> {
    fn all<T: Pod>(bytes: &[u8], one: impl Fn(&T) -> Crel) -> Vec<Crel> {
        pod::slice_from_all_bytes(bytes).unwrap_or_default().iter().map(one).collect()
    }
    let endian = elf.endian;
    match (kind, elf.is_64) {
        (format::SHT_RELA, true) => all(bytes, |one: &Rela64<Endianness>| Crel::from_rela(one, endian, false)),
        (format::SHT_RELA, false) => all(bytes, |one: &Rela32<Endianness>| Crel::from_rela(one, endian, false)),
        (_, true) => all(bytes, |one: &Rel64<Endianness>| Crel::from_rel(one, endian)),
        (_, false) => all(bytes, |one: &Rel32<Endianness>| Crel::from_rel(one, endian)),
    }
}
