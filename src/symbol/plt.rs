//! Names for the stubs through which a file calls others: `malloc@plt`, as gdb and objdump have them.
//!
//! No table has these names. A stub jumps through a slot of the global offset table, and the relocation that fills the slot
//! names the function. Which slot it is stands in the jump, so stubs of every layout are read in one way.

use super::section::Section;
use super::source::Source;
use super::table::{Kind, Symbol};
use crate::kernel::Name;
use object::elf as format;
use std::ops::ControlFlow;

/// Stubs are as large as this, and aligned to it; those in `.plt.got` to half of it.
const STUB: u64 = 16;
/// Bytes of an entry of a 64-bit symbol table.
const SYMBOL: u64 = 24;
/// Relocations of more bytes than this are not looked through.
const LARGEST: u64 = 64 << 20;

/// The stub that holds a file address, and its name. Only those of x86-64 are known.
pub(super) fn stub_at(source: &Source, address: u64) -> Option<(Symbol, Name)> {
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
    let slot = slot(&bytes, start)?;
    let relocations = |one: &&Section| {
        one.kind == format::SHT_RELA && one.flags & format::SHF_ALLOC.0 != 0 && one.size <= LARGEST
    };
    let symbol = elf
        .sections
        .iter()
        .filter(relocations)
        .find_map(|section| {
            let mut found = None;
            // An address, what and of which symbol, and an addend: eight bytes each.
            let whole = section.size / 24 * 24;
            let visit = &mut |bytes: &[u8]| {
                let entry = bytes
                    .chunks_exact(24)
                    .find(|entry| elf.number(entry) == slot);
                found =
                    entry.and_then(|entry| u32::try_from(elf.number(entry.get(8..)?) >> 32).ok());
                match found {
                    Some(_) => ControlFlow::Break(()),
                    None => ControlFlow::Continue(()),
                }
            };
            file.pass(section.offset, whole, 24, "relocations", visit)
                .ok()?;
            found.filter(|&symbol| symbol != 0)
        })?;
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
