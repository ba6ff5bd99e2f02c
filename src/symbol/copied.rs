//! Variables of libraries of which a program holds the copy that is used.
//!
//! A program that is not position-independent code all through has room for a library's variable in its own `.bss`; a copy relocation
//! has the dynamic linker fill it, and everybody then uses that one. The library's own place for it is never used.

use super::NoSymbols;
use super::clock::Clock;
use super::relocations;
use super::source::Source;
use object::elf as format;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// More places than this are not kept: programs have some tens.
const MOST: usize = 1 << 16;

/// The file addresses that copy relocations of `source` fill; an error once `clock` has run out.
pub(super) fn by(source: &Source, clock: &mut Clock) -> Result<HashSet<u64>, NoSymbols> {
    let mut places = HashSet::new();
    let Some(copy) = copies(source.elf.machine) else {
        return Ok(places);
    };
    relocations::visit(source, clock, &mut |relocation| {
        if relocation.kind == u64::from(copy.0) {
            places.insert(relocation.place);
        }
        match places.len() < MOST {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(places)
}

/// What the machine calls a copy relocation.
fn copies(machine: format::Machine) -> Option<format::RelocationType> {
    Some(match machine {
        format::EM_X86_64 => format::R_X86_64_COPY,
        format::EM_386 => format::R_386_COPY,
        format::EM_AARCH64 => format::R_AARCH64_COPY,
        format::EM_ARM => format::R_ARM_COPY,
        format::EM_RISCV => format::R_RISCV_COPY,
        format::EM_PPC64 => format::R_PPC64_COPY,
        format::EM_S390 => format::R_390_COPY,
        _ => return None,
    })
}
