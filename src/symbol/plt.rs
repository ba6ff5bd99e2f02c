//! Names for the stubs through which a file calls others: `malloc@plt`, as gdb and objdump have them.
//!
//! No table has these names. A stub jumps through a slot of the global offset table, and the relocation that fills the slot
//! names the function. Which slot it is stands in the jump, so stubs of every layout are read in one way.

use super::relocations;
use super::source::Source;
use super::table::{Kind, Symbol};
use crate::kernel::Name;
use object::elf as format;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// Stubs are as large as this, and aligned to it; those in `.plt.got` to half of it.
const STUB: u64 = 16;
/// Bytes of an entry of a 64-bit symbol table.
const SYMBOL: u64 = 24;
/// More slots than this are not kept: large programs have some thousands.
const MOST_SLOTS: usize = 1 << 18;

/// For each slot of the global offset table that stubs may jump through, the number in `.dynsym` of the function it is filled with.
#[derive(Default)]
pub(super) struct Slots(OnceLock<HashMap<u64, u32>>);

impl Slots {
    /// The symbol whose address fills a slot. The first question is a pass over the relocations.
    fn symbol(&self, source: &Source, slot: u64) -> Option<u32> {
        let slots = self.0.get_or_init(|| {
            let mut slots = HashMap::new();
            relocations::visit(source, &mut |one| {
                let kinds = [format::R_X86_64_JUMP_SLOT, format::R_X86_64_GLOB_DAT];
                if one.symbol != 0 && kinds.iter().any(|kind| u64::from(kind.0) == one.kind) {
                    slots.entry(one.place).or_insert(one.symbol);
                }
                match slots.len() < MOST_SLOTS {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            slots
        });
        slots.get(&slot).copied()
    }
}

/// The stub that holds a file address, and its name. Only those of x86-64 are known.
pub(super) fn stub_at(source: &Source, slots: &Slots, address: u64) -> Option<(Symbol, Name)> {
    let Source { file, elf } = source;
    if elf.machine != format::EM_X86_64 || !elf.is_64 {
        return None;
    }
    let number = elf.section_at(address)?;
    let section = elf.sections.get(usize::try_from(number).ok()?)?;
    let size = match elf.section_name(number)? {
        b".plt" | b".plt.sec" | b".plt.bnd" => STUB,
        b".plt.got" if section.alignment == STUB / 2 => STUB / 2,
        b".plt.got" => STUB,
        _ => return None,
    };
    let into = address.checked_sub(section.address)? / size * size;
    let start = section.address.checked_add(into)?;
    let bytes = file
        .read(section.offset.checked_add(into)?, size, "stub")
        .ok()?;
    let symbol = slots.symbol(source, slot(&bytes, start)?)?;
    let table = elf.tables.iter().find(|table| !table.full)?;
    let at = table.offset.checked_add(u64::from(symbol) * SYMBOL)?;
    let entry = file.read(at, 4, "symbol table").ok()?;
    let name = u32::try_from(elf.number(&entry)).ok()?;
    let called = table.strings.get(file, name)?;
    let stub = Symbol {
        address: start,
        size,
        name,
        section: u16::try_from(number).ok(),
        number: symbol,
        table: 0,
        kind: Kind::Function,
        local: true,
    };
    Some((stub, Name::new([&called, &b"@plt"[..]].concat())))
}

/// The slot that the stub at `start` jumps through: `jmp *DISTANCE(%rip)` is `ff 25` and the distance from the next instruction.
fn slot(stub: &[u8], start: u64) -> Option<u64> {
    let at = memchr::memmem::find(stub, &[0xff, 0x25])?;
    let distance = stub.get(at + 2..)?.first_chunk::<4>()?;
    let next = start.checked_add(at as u64 + 6)?;
    Some(next.wrapping_add_signed(i32::from_le_bytes(*distance).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_stands_in_the_jump() {
        // With lazy binding, and behind `endbr64` and `bnd`.
        let lazy = [
            0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff,
        ];
        assert_eq!(slot(&lazy, 0x1030), Some(0x4018));
        let marked = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0,
        ];
        assert_eq!(slot(&marked, 0x1050), Some(0x3fd0));
        assert_eq!(slot(&[0x90; 16], 0x1000), None);
        assert_eq!(slot(&[0xff, 0x25, 1], 0x1000), None);
        let back = [0xff, 0x25, 0xfa, 0xff, 0xff, 0xff];
        assert_eq!(slot(&back, 0x1000), Some(0x1000));
    }
}
