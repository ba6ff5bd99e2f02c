//! Names for the stubs through which a file calls others: `malloc@plt`, as gdb and objdump have them.
//!
//! No table has these names. A stub jumps through a slot of the global offset table, and the relocation that fills the slot
//! names the function. Which slot it is stands in the jump, so stubs of every layout are read in one way.

use super::NoSymbols;
use super::clock::Clock;
use super::elf::Elf;
use super::got::Slots;
use super::import::Import;
use super::plt_got::PLT;
use super::section::Section;
use super::source::Source;
use super::table::{Kind, Symbol};
use crate::kernel::Name;
use object::elf as format;
use std::ops::ControlFlow;

/// Stubs are as large as this, and aligned to it; those in `.plt.got` to half of it.
const STUB_BYTES: u64 = 16;
/// Stubs of more bytes than this, all sections together, are not looked through for a name: programs have some thousands of them.
const MOST_BYTES: u64 = 16 << 20;

/// The stub that holds a file address, and its name. Only those of x86-64 are known.
pub(super) fn at(
    source: &Source,
    slots: &Slots,
    address: u64,
    clock: &mut Clock,
) -> Option<(Symbol, Name)> {
    let Source { file, elf } = source;
    let number = elf.section_at(address)?;
    let section = elf.sections.get(usize::try_from(number).ok()?)?;
    let size = size_in(elf, number, section)?;
    let into = address.checked_sub(section.address)? / size * size;
    let start = section.address.checked_add(into)?;
    let bytes = file
        .read(section.offset.checked_add(into)?, size, "stub")
        .ok()?;
    let slots = slots.all(source, clock).ok()?;
    let number = slots.get(&slot(&bytes, start)?)?.function;
    let function = Import::of(source, number)?;
    Some(function.plt_or_got(source, (start, size), Kind::Function, PLT))
}

/// The stubs for the functions that a person calls `name`.
pub(super) fn called(
    source: &Source,
    slots: &Slots,
    name: &str,
    clock: &mut Clock,
) -> Result<Vec<(Symbol, Name)>, NoSymbols> {
    let functions = Import::called(source, name, clock)?;
    let mut found = Vec::new();
    if functions.is_empty() {
        return Ok(found);
    }
    let Source { file, elf } = source;
    let mut room = MOST_BYTES;
    for (number, section) in (0..).zip(&elf.sections) {
        let Some(size) = size_in(elf, number, section) else {
            continue;
        };
        room = match room.checked_sub(section.size) {
            Some(rest) => rest,
            None => break,
        };
        let slots = slots.all(source, clock)?;
        let width = usize::try_from(size).unwrap_or(usize::MAX);
        let whole = section.size / size * size;
        let mut start = section.address;
        file.pass(section.offset, whole, width, "stubs", &mut |bytes| {
            for stub in bytes.chunks_exact(width) {
                let function =
                    slot(stub, start).and_then(|slot| functions.get(&slots.get(&slot)?.function));
                found.extend(function.map(|function| {
                    function.plt_or_got(source, (start, size), Kind::Function, PLT)
                }));
                start = start.saturating_add(size);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(found)
}

/// How large the stubs of a section are, if it is one of stubs.
fn size_in(elf: &Elf, number: u32, section: &Section) -> Option<u64> {
    if elf.machine != format::EM_X86_64 || !elf.is_64 {
        return None;
    }
    match elf.section_name(number)? {
        b".plt" | b".plt.sec" | b".plt.bnd" => Some(STUB_BYTES),
        b".plt.got" if section.alignment == STUB_BYTES / 2 => Some(STUB_BYTES / 2),
        b".plt.got" => Some(STUB_BYTES),
        _ => None,
    }
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
