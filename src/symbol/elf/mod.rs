//! One ELF file, read by offset within bounds. Both widths, both byte orders.
//!
//! This module is independent of processes. The modules above decide where a file is loaded, and which other files
//! describe it.
//!
//! ```text
//! contents  a file with its headers read; the bytes of its sections, decompressed; what its relocations fill
//! headers   segments, sections, symbol tables, build-id; the same without section headers
//! file      reads by offset, checked against its length; and keeps what `object` decodes in place
//! ```

mod contents;
mod file;
mod headers;

pub(super) use contents::{ElfFile, Relocations, TOO_LARGE, expand_xz};
#[cfg(test)]
pub(super) use contents::{RelocationPass, old_spelling};
#[cfg(test)]
pub(super) use file::BETWEEN_LOOKS;
pub(super) use file::{BoundedFile, FileRange, LONGEST_NAME, TablePass};
pub(super) use headers::{
    Elf, PROGRAM_HEADER, Section, Segment, SymbolTable, VersionTable, build_id_digits, is_program_header,
};
