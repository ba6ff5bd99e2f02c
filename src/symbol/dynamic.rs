//! Symbols by the dynamic segment, for files without section headers: what the dynamic linker itself goes by.
//!
//! The segment gives addresses, not offsets, and no count of symbols: the hash table, which reaches every symbol that can be found by
//! name, gives that.

use super::file::File;
use super::section::{LARGEST_TABLE, Segment, Strings, Table, number};
use object::Endianness;
use object::elf;
use object::endian::Endian;
use std::collections::HashMap;

/// More entries than this are not looked at; linkers write some dozens.
const MOST_ENTRIES: u64 = 4096;
/// As many bytes of a chain are read at once.
const CHAIN: u64 = 64 << 10;

/// The file and its load segments, read in the width and order that it has.
pub(super) struct Dynamic<'a> {
    pub(super) file: &'a File,
    pub(super) is_64: bool,
    pub(super) endian: Endianness,
    pub(super) segments: &'a [Segment],
}

impl Dynamic<'_> {
    /// The symbol table that a dynamic segment at `offset` names; `None` if it names none, or one that is not in the file.
    pub(super) fn table(&self, offset: u64, size: u64) -> Option<Table> {
        let tags = self.tags(offset, size)?;
        let place = |tag| self.offset(*tags.get(&tag)?);
        let symbols = place(DT_SYMTAB)?;
        let strings = Strings {
            offset: place(DT_STRTAB)?,
            size: *tags.get(&DT_STRSZ)?,
        };
        let counted = place(DT_HASH).and_then(|at| self.word(at.checked_add(4)?));
        let count = match counted {
            Some(count) => u64::from(count),
            None => self.count_by_gnu_hash(place(DT_GNU_HASH)?)?,
        };
        let size = count.checked_mul(if self.is_64 { 24 } else { 16 })?;
        let is_sound = size <= LARGEST_TABLE
            && self.file.holds(symbols, size)
            && self.file.holds(strings.offset, strings.size);
        is_sound.then(|| Table {
            offset: symbols,
            size,
            strings,
            full: false,
            versions: place(DT_VERSYM),
        })
    }

    /// The entries up to the one that ends them.
    fn tags(&self, offset: u64, size: u64) -> Option<HashMap<u64, u64>> {
        let width = if self.is_64 { 8 } else { 4 };
        let size = size.min(MOST_ENTRIES * 2 * width);
        let bytes = self.file.read(offset, size, "dynamic segment").ok()?;
        let width = usize::try_from(width).ok()?;
        let entries = bytes.chunks_exact(2 * width).map(|entry| {
            let (tag, value) = entry.split_at(width);
            (number(self.endian, tag), number(self.endian, value))
        });
        Some(entries.take_while(|(tag, _)| *tag != 0).collect())
    }

    /// How many symbols there are: one more than the last that a chain of the hash table ends with.
    fn count_by_gnu_hash(&self, at: u64) -> Option<u64> {
        let buckets = u64::from(self.word(at)?);
        let first = u64::from(self.word(at.checked_add(4)?)?);
        let blooms = u64::from(self.word(at.checked_add(8)?)?);
        let blooms = blooms.checked_mul(if self.is_64 { 8 } else { 4 })?;
        let buckets_at = at.checked_add(16)?.checked_add(blooms)?;
        let length = buckets
            .checked_mul(4)
            .filter(|&length| length <= LARGEST_TABLE)?;
        let bytes = self.file.read(buckets_at, length, "hash table").ok()?;
        let last = bytes
            .chunks_exact(4)
            .map(|word| number(self.endian, word))
            .max()?;
        if last < first {
            return Some(first);
        }
        // The last chain goes on to a word whose lowest bit is set. It is read forwards only, and ends with the file.
        let chains = buckets_at.checked_add(length)?;
        let mut count = last;
        let mut next = chains.checked_add((last - first).checked_mul(4)?)?;
        while count * 24 <= LARGEST_TABLE {
            let mut words = vec![0; CHAIN as usize];
            let read = self.file.read_up_to(next, &mut words).ok()?;
            words.truncate(read / 4 * 4);
            if words.is_empty() {
                return None;
            }
            for word in words.chunks_exact(4) {
                count += 1;
                if number(self.endian, word) & 1 != 0 {
                    return Some(count);
                }
            }
            next = next.checked_add(words.len() as u64)?;
        }
        None
    }

    /// Where an address is in the file.
    fn offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|one| {
            let into = address.checked_sub(one.address)?;
            (into < one.file_size).then(|| one.offset.checked_add(into))?
        })
    }

    fn word(&self, at: u64) -> Option<u32> {
        let bytes = self.file.read(at, 4, "hash table").ok()?;
        Some(self.endian.read_u32(bytes.try_into().ok()?))
    }
}

// As numbers: `object` has a type for each width.
const DT_HASH: u64 = elf::DT_HASH.0 as u64;
const DT_STRTAB: u64 = elf::DT_STRTAB.0 as u64;
const DT_SYMTAB: u64 = elf::DT_SYMTAB.0 as u64;
const DT_STRSZ: u64 = elf::DT_STRSZ.0 as u64;
const DT_GNU_HASH: u64 = elf::DT_GNU_HASH.0 as u64;
const DT_VERSYM: u64 = elf::DT_VERSYM.0 as u64;
