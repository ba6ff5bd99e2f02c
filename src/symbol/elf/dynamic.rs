//! Symbols by the dynamic segment, which the dynamic linker uses, for files without section headers.
//!
//! The segment gives addresses, not offsets, and no count of symbols. The count follows from the hash table, which
//! reaches every symbol that can be found by name.

use super::file::{File, FileRange};
use super::reader::Part;
use super::section::{LARGEST_TABLE, Segment, Table};
use object::elf;
use object::read::elf::{Dyn, FileHeader, GnuHashTable};
use object::{Endianness, ReadRef};
use std::collections::HashMap;

/// More entries than this are not read: linkers write some dozens.
const MOST_ENTRIES: usize = 4096;
/// Bytes of a hash table that are read at first, and at most.
const SMALLEST_HASH: u64 = 64 << 10;
const LARGEST_HASH: u64 = 64 << 20;

/// The symbol table that the entries of a dynamic segment name; `None` if they name none, or one that is not in the
/// file.
pub(in crate::symbol) fn table<H: FileHeader<Endian = Endianness>>(
    file: &File,
    endian: Endianness,
    segments: &[Segment],
    entries: &[H::Dyn],
    read: Part<'_>,
) -> Option<Table> {
    let entries = entries.iter().take(MOST_ENTRIES).map(|one| (one.tag(endian), one.val(endian)));
    let values: HashMap<_, _> = entries.take_while(|one| one.0 != elf::DT_NULL).collect();
    let place = |tag| offset_of(segments, *values.get(&tag)?);
    let strings = FileRange { offset: place(elf::DT_STRTAB)?, size: *values.get(&elf::DT_STRSZ)? };
    let count = match place(elf::DT_HASH).and_then(|at| count_by_hash(endian, at, read)) {
        Some(count) => count,
        None => count_by_gnu_hash::<H>(file, endian, place(elf::DT_GNU_HASH)?)?,
    };
    let symbols = FileRange { offset: place(elf::DT_SYMTAB)?, size: u64::from(count) * size_of::<H::Sym>() as u64 };
    let is_sound = symbols.size <= LARGEST_TABLE && file.holds(symbols) && file.holds(strings);
    is_sound.then(|| Table { symbols, strings, full: false, versions: place(elf::DT_VERSYM) })
}

/// The number of symbols: each has a link in the chains.
fn count_by_hash(endian: Endianness, offset: u64, read: Part<'_>) -> Option<u32> {
    let header = read.read_at::<elf::HashHeader<Endianness>>(offset).ok()?;
    Some(header.chain_count.get(endian))
}

/// The number of symbols: one more than the last symbol of the last chain. The size of the table is not recorded, so
/// more of it is read until that chain ends. Without chains there are only the symbols before the table's first.
fn count_by_gnu_hash<H: FileHeader<Endian = Endianness>>(file: &File, endian: Endianness, offset: u64) -> Option<u32> {
    let rest = FileRange { offset, size: file.length().checked_sub(offset)?.min(LARGEST_HASH) };
    let mut size = SMALLEST_HASH;
    loop {
        let bytes = file.read(rest.at_most(size), "hash table").ok()?;
        let table = GnuHashTable::<H>::parse(endian, &bytes).ok();
        let count = table.as_ref().and_then(|one| one.symbol_table_length(endian));
        if count.is_some() || size >= rest.size {
            return count.or_else(|| Some(table?.symbol_base()));
        }
        size *= 4;
    }
}

/// The file offset of an address.
fn offset_of(segments: &[Segment], address: u64) -> Option<u64> {
    segments.iter().find_map(|one| {
        let into = address.checked_sub(one.address)?;
        (into < one.file_size).then(|| one.offset.checked_add(into))?
    })
}
