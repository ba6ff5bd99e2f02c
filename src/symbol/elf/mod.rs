//! One ELF file, read by offset within bounds. Both widths, both byte orders.
//!
//! This folder knows no process. The modules above decide where a file is loaded, and which other files describe it.
//!
//! ```text
//! contents     a file with its headers read, and the bytes of its sections, decompressed
//! headers      segments, sections, symbol tables, build-id      section: their types; the same without section headers
//! file         reads by offset, checked against its length; and keeps what `object` decodes in place
//! relocations  the slots and variables that they fill
//! ```

mod contents;
mod file;
mod headers;
mod relocations;
mod section;

pub(super) use contents::ElfFile;
#[cfg(test)]
pub(super) use contents::old_spelling;
pub(super) use contents::{TOO_LARGE, expand_xz};
#[cfg(test)]
pub(super) use file::BETWEEN_LOOKS;
pub(super) use file::{BoundedFile, FileRange, LONGEST_NAME};
pub(super) use headers::{Elf, build_id_digits};
pub(super) use relocations::Relocations;
#[cfg(test)]
pub(super) use relocations::visit as visit_relocations;
pub(super) use section::{Section, Segment, SymbolTable, VersionTable};
