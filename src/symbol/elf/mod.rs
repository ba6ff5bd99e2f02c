//! One ELF file, read by offset within bounds. Both widths, both byte orders.
//!
//! This folder knows no process. The modules above decide where a file is loaded, and which other files describe it.
//!
//! ```text
//! source       a file with its headers read, and its sections
//! headers      segments, sections, symbol tables, notes   section: their types; dynamic: the same without sections
//! file         reads by offset, checked against its length   reader: keeps what `object` decodes in place
//! contents     the bytes of a section, decompressed
//! build_id     the identity of a build                    relocations: the slots and variables that they fill
//! ```

pub(super) mod build_id;
mod contents;
mod dynamic;
mod file;
mod headers;
mod reader;
mod relocations;
mod section;
mod source;

#[cfg(test)]
pub(super) use contents::old_spelling;
pub(super) use contents::{TOO_LARGE, expand_xz};
#[cfg(test)]
pub(super) use file::BETWEEN_LOOKS;
pub(super) use file::{File, FileRange, LONGEST_NAME};
pub(super) use headers::Elf;
pub(super) use relocations::Relocations;
#[cfg(test)]
pub(super) use relocations::visit as visit_relocations;
pub(super) use section::{Section, Segment, Table, VersionTable};
pub(super) use source::Source;
