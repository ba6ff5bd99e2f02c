//! Stubs and slots for calls of imported functions, with gdb's names: the stub `malloc@plt`, the slot `malloc@got.plt`.
//!
//! No table has these names. A stub of the procedure linkage table jumps through a slot of the global offset table, and
//! the relocation that fills the slot gives the number of the function in the dynamic table. The jump gives the slot,
//! so stubs of every layout are decoded in one way.

use super::NoSymbols;
use super::demangle::{GOT, PLT, Query};
use super::elf::{Elf, ElfFile, Relocations, Section, SymbolTable};
use super::table::{self, EntryPass, Kind, NamedSymbols, Symbol};
use crate::budget::Budget;
use crate::kernel::Name;
use object::elf as format;
use std::collections::HashMap;

/// The size and alignment of stubs; those in `.plt.got` have half of it.
const STUB_BYTES: u64 = 16;
/// Bytes of stubs, in all sections together, that are searched for a name: programs have some thousands of stubs.
const MOST_BYTES: u64 = 16 << 20;

/// A stub or a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PltOrGot {
    Stub,
    Slot,
}

impl PltOrGot {
    fn suffix(self) -> &'static str {
        match self {
            PltOrGot::Stub => PLT,
            PltOrGot::Slot => GOT,
        }
    }

    /// Whether a section has stubs or slots, and the size of each. Only the stubs of x86-64 are known.
    fn in_section(elf: &Elf, number: u32, section: &Section) -> Option<(PltOrGot, u64)> {
        let has_stubs = elf.machine == format::EM_X86_64 && elf.is_64;
        Some(match elf.section_name(number)? {
            b".got" | b".got.plt" => (PltOrGot::Slot, elf.pointer_bytes()),
            b".plt" | b".plt.sec" | b".plt.bnd" if has_stubs => (PltOrGot::Stub, STUB_BYTES),
            b".plt.got" if has_stubs && section.alignment == STUB_BYTES / 2 => (PltOrGot::Stub, STUB_BYTES / 2),
            b".plt.got" if has_stubs => (PltOrGot::Stub, STUB_BYTES),
            _ => return None,
        })
    }

    /// The symbol and name of a function's stub or slot.
    fn named(self, source: &ElfFile, place: (u64, u64), function: &Import) -> (Symbol, Name) {
        let kind = match self {
            PltOrGot::Stub => Kind::Function,
            PltOrGot::Slot => Kind::Object,
        };
        function.plt_or_got(source, place, kind, self.suffix())
    }
}

/// The stub or slot that holds a file address, and its name.
pub(super) fn at(
    source: &ElfFile,
    relocations: &Relocations,
    address: u64,
    budget: &mut Budget,
) -> Option<(Symbol, Name)> {
    let ElfFile { file, elf } = source;
    let number = elf.section_at(address)?;
    let section = elf.sections.get(usize::try_from(number).ok()?)?;
    let (part, size) = PltOrGot::in_section(elf, number, section)?;
    let into = address.checked_sub(section.address)? / size * size;
    let start = section.address.checked_add(into)?;
    let place = match part {
        PltOrGot::Stub => {
            let stub = file.read(section.in_file().part(into, size)?, "stub", budget);
            slot(&stub.ok()?, start)?
        }
        PltOrGot::Slot => start,
    };
    let targets = relocations.of(source, budget).ok()?;
    let slot = targets.slots.get(&place)?;
    if part == PltOrGot::Slot && !slot.is_jump {
        return None;
    }
    let function = Import::of(source, slot.function, budget)?;
    Some(part.named(source, (start, size), &function))
}

/// The stubs or slots that `name` means.
pub(super) fn called(
    source: &ElfFile,
    relocations: &Relocations,
    name: &str,
    budget: &mut Budget,
) -> Result<NamedSymbols, NoSymbols> {
    let stripped = |part: PltOrGot| Some((part, name.strip_suffix(part.suffix())?));
    let Some((part, function)) = [PltOrGot::Stub, PltOrGot::Slot].into_iter().find_map(stripped) else {
        return Ok(Vec::new());
    };
    let functions = Import::called(source, function, budget)?;
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let ElfFile { file, elf } = source;
    let slots = &relocations.of(source, budget)?.slots;
    if part == PltOrGot::Slot {
        let size = elf.pointer_bytes();
        let jumps = slots.iter().filter(|(_, slot)| slot.is_jump);
        let found = jumps.filter_map(|(&start, slot)| {
            let function = functions.get(&slot.function)?;
            Some(part.named(source, (start, size), function))
        });
        return Ok(found.collect());
    }
    let mut found = Vec::new();
    let mut room = MOST_BYTES;
    for (number, section) in (0..).zip(&elf.sections) {
        let Some((PltOrGot::Stub, size)) = PltOrGot::in_section(elf, number, section) else {
            continue;
        };
        room = match room.checked_sub(section.size) {
            Some(rest) => rest,
            None => break,
        };
        let stubs = file.read(section.in_file(), "stubs", budget)?;
        let mut start = section.address;
        for stub in stubs.chunks_exact(usize::try_from(size).unwrap_or(usize::MAX)) {
            budget.go_on()?;
            let function = slot(stub, start).and_then(|place| functions.get(&slots.get(&place)?.function));
            found.extend(function.map(|one| part.named(source, (start, size), one)));
            start = start.saturating_add(size);
        }
    }
    Ok(found)
}

/// The slot that the stub at `start` jumps through: `jmp *DISTANCE(%rip)` is `ff 25` and the distance from the next
/// instruction.
fn slot(stub: &[u8], start: u64) -> Option<u64> {
    let at = memchr::memmem::find(stub, &[0xff, 0x25])?;
    let distance = stub.get(at + 2..)?.first_chunk::<4>()?;
    let next = start.checked_add(at as u64 + 6)?;
    Some(next.wrapping_add_signed(i32::from_le_bytes(*distance).into()))
}

/// A function of the dynamic table.
#[derive(Clone)]
pub(super) struct Import {
    number: u32,
    /// The offset of its name in the string table.
    offset: u32,
    name: Vec<u8>,
}

impl Import {
    /// The function with a number.
    pub(super) fn of(source: &ElfFile, number: u32, budget: &mut Budget) -> Option<Import> {
        let table = dynamic(source)?;
        let size = source.elf.symbol_bytes();
        let entry = table.symbols.part(u64::from(number) * size, size)?;
        let (_, entry) = EntryPass::new(source, entry).next(budget).ok()??;
        let offset = entry.name;
        Some(Import { number, offset, name: source.file.string(table.strings, offset)? })
    }

    /// All functions that `name` means, by number.
    pub(super) fn called(source: &ElfFile, name: &str, budget: &mut Budget) -> Result<HashMap<u32, Import>, NoSymbols> {
        let mut found = HashMap::new();
        let Some(table) = dynamic(source) else {
            return Ok(found);
        };
        let query = Query::whole(name);
        let strings = table::strings(&source.file, table.strings, budget)?;
        let mut entries = EntryPass::new(source, table.symbols);
        while let Some((number, entry)) = entries.next(budget)? {
            let offset = entry.name;
            let rest = usize::try_from(offset).ok().and_then(|at| strings.get(at..));
            let name = rest.and_then(table::up_to_end);
            if let Some(called) = name.filter(|called| query.is(called)) {
                found.insert(number, Import { number, offset, name: called.to_vec() });
            }
        }
        Ok(found)
    }

    /// Its stub or slot at an address in the file, with the name of that.
    fn plt_or_got(&self, source: &ElfFile, (address, size): (u64, u64), kind: Kind, suffix: &str) -> (Symbol, Name) {
        let section = source.elf.section_at(address);
        let symbol = Symbol {
            address,
            size,
            name: self.offset,
            section: section.and_then(|number| u16::try_from(number).ok()),
            number: self.number,
            table: 0,
            kind,
            local: true,
        };
        let name = [&self.name, suffix.as_bytes()].concat();
        (symbol, Name::new(name))
    }
}

/// The table that the dynamic linker uses.
fn dynamic(source: &ElfFile) -> Option<&SymbolTable> {
    source.elf.tables.iter().find(|table| !table.full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jump_gives_the_slot() {
        // With lazy binding, and behind `endbr64` and `bnd`.
        let lazy = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
        assert_eq!(slot(&lazy, 0x1030), Some(0x4018));
        let marked = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(slot(&marked, 0x1050), Some(0x3fd0));
        assert_eq!(slot(&[0x90; 16], 0x1000), None);
        assert_eq!(slot(&[0xff, 0x25, 1], 0x1000), None);
        let back = [0xff, 0x25, 0xfa, 0xff, 0xff, 0xff];
        assert_eq!(slot(&back, 0x1000), Some(0x1000));
    }
}
