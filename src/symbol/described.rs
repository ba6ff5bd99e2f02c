//! Makes a symbol table of the functions that debug information describes, for a file whose table was stripped.
//!
//! The table is written as an ELF file in memory, and read like that of any other file.

use super::elf::{BoundedFile, Elf, ElfFile};
use super::expanded::{ExpandedBytes, ExpandedMemory};
use super::lines::{DescribedFunction, described_functions};
use super::{NoLines, NoSymbols};
use crate::budget::Budget;
use crate::own::memory;
use crate::process::InMemory;
use object::elf::{self as format, SHF_ALLOC};

/// The most sections of an ELF file in which symbols have plain section numbers.
const MOST_SECTIONS: usize = 0xff00;
/// The sizes in bytes of the file header, a section header, and a symbol.
const FILE_HEADER: u64 = 64;
const SECTION_HEADER: u64 = 64;
const SYMBOL: u64 = 24;

/// Makes the ELF file with the functions that `source` describes, for a module whose file is `image`; `None` if it
/// describes none, or if there is no room for them.
pub(super) fn table_of(
    source: &ElfFile,
    image: &Elf,
    expanded: &ExpandedMemory,
    budget: &mut Budget,
) -> Result<Option<(ElfFile, ExpandedBytes)>, NoSymbols> {
    let functions = match described_functions(source, budget) {
        Ok(functions) => functions,
        Err(NoLines::Interrupted) => return Err(NoSymbols::Interrupted),
        // Damaged or excessive debug information gives no names.
        Err(_) => return Ok(None),
    };
    if functions.is_empty() || image.sections.len() >= MOST_SECTIONS {
        return Ok(None);
    }
    let text: usize = functions.iter().map(|one| one.name.as_bytes().len() + 1).sum();
    let tables = functions.len() as u64 * SYMBOL + text as u64;
    let size = FILE_HEADER + (image.sections.len() as u64 + 2) * SECTION_HEADER + tables;
    if size > expanded.bytes_left() {
        return Ok(None);
    }
    // The tables are written separately first, and then copied into the file.
    memory::check(2 * size)?;
    let bytes = written(&functions, image);
    let kept = expanded.keep(bytes.len() as u64);
    let made = ElfFile::read(BoundedFile::new(Box::new(InMemory::file(bytes))), budget)?;
    Ok(Some((made, kept)))
}

fn written(functions: &[DescribedFunction], image: &Elf) -> Vec<u8> {
    let mut names = vec![0];
    let mut symbols = vec![0; SYMBOL as usize];
    for function in functions {
        let Some(section) = image.section_at(function.address).and_then(|number| u16::try_from(number).ok()) else {
            continue;
        };
        let Ok(name) = u32::try_from(names.len()) else {
            break;
        };
        names.extend(function.name.as_bytes().iter().filter(|&&byte| byte != 0));
        names.push(0);
        let binding = if function.is_external { format::STB_GLOBAL } else { format::STB_LOCAL };
        symbols.extend(name.to_le_bytes());
        symbols.extend([binding.0 << 4 | format::STT_FUNC.0, 0]);
        symbols.extend(section.to_le_bytes());
        symbols.extend([function.address, function.size].map(u64::to_le_bytes).concat());
    }
    // The sections of the image keep their numbers. The two tables follow.
    let loaded = image.sections.iter().map(|section| {
        let flags = if section.is_loaded() { SHF_ALLOC.0 } else { 0 };
        (format::SHT_NOBITS.0, flags, section.address, 0, section.size, 0)
    });
    let count = image.sections.len() as u64;
    let tables = FILE_HEADER + (count + 2) * SECTION_HEADER;
    let symbols_size = symbols.len() as u64;
    let own = [
        (format::SHT_SYMTAB.0, 0, 0, tables, symbols_size, count as u32 + 1),
        (format::SHT_STRTAB.0, 0, 0, tables + symbols_size, names.len() as u64, 0),
    ];
    let mut file = file_header(image, count + 2);
    for (kind, flags, address, offset, size, link) in loaded.chain(own) {
        file.extend([0, kind].map(u32::to_le_bytes).concat());
        file.extend([flags, address, offset, size].map(u64::to_le_bytes).concat());
        file.extend([link, 0].map(u32::to_le_bytes).concat());
        file.extend([1, 0].map(u64::to_le_bytes).concat());
    }
    file.extend(symbols);
    file.extend(names);
    file
}

/// Returns the header of a 64-bit little-endian file, whatever the module is, because its words are read only here.
fn file_header(image: &Elf, sections: u64) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([format::ET_DYN.0, image.machine.0].map(u16::to_le_bytes).concat());
    file.extend(1u32.to_le_bytes());
    file.extend([0, 0, FILE_HEADER].map(u64::to_le_bytes).concat());
    file.extend(0u32.to_le_bytes());
    file.extend([FILE_HEADER as u16, 0, 0, SECTION_HEADER as u16, sections as u16, 0].map(u16::to_le_bytes).concat());
    file
}
