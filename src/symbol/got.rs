//! The slots of a file's global offset table that the functions of other files are called through, and gdb's names for them:
//! `malloc@got.plt`. No table has these names; the relocation that fills a slot names the function.

use super::NoSymbols;
use super::clock::Clock;
use super::import::Import;
use super::plt_got::GOT;
use super::relocations;
use super::source::Source;
use super::table::{Kind, Symbol};
use crate::kernel::Name;
use object::elf as format;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// More slots than this are not kept: large programs have some thousands.
const MOST_SLOTS: usize = 1 << 18;

/// What fills a slot.
pub(super) struct Filling {
    /// Number in `.dynsym` of the function.
    pub(super) function: u32,
    /// Whether nothing but stubs uses the slot.
    is_jump: bool,
}

/// For each slot that stubs may jump through what it is filled with.
#[derive(Default)]
pub(super) struct Slots(OnceLock<HashMap<u64, Filling>>);

impl Slots {
    /// All that nothing but stubs uses, each with the number of its function.
    fn jumps(
        &self,
        source: &Source,
        clock: &mut Clock,
    ) -> Result<impl Iterator<Item = (u64, u32)>, NoSymbols> {
        let all = self.all(source, clock)?.iter();
        let jumps = all.filter(|(_, one)| one.is_jump);
        Ok(jumps.map(|(&slot, filling)| (slot, filling.function)))
    }

    /// What fills each slot; the first question is a pass over the relocations. An error once `clock` has run out.
    pub(super) fn all(
        &self,
        source: &Source,
        clock: &mut Clock,
    ) -> Result<&HashMap<u64, Filling>, NoSymbols> {
        match self.0.get() {
            Some(known) => Ok(known),
            None => {
                let slots = fillings(source, clock)?;
                Ok(self.0.get_or_init(|| slots))
            }
        }
    }
}

/// What the relocations of `source` fill its slots with.
fn fillings(source: &Source, clock: &mut Clock) -> Result<HashMap<u64, Filling>, NoSymbols> {
    let mut slots = HashMap::new();
    let Some((jump, data)) = kinds(source.elf.machine) else {
        return Ok(slots);
    };
    relocations::visit(source, clock, &mut |one| {
        let is = |kind: format::RelocationType| one.kind == u64::from(kind.0);
        let is_jump = is(jump);
        if one.symbol != 0 && (is_jump || data.is_some_and(is)) {
            slots.entry(one.place).or_insert(Filling {
                function: one.symbol,
                is_jump,
            });
        }
        match slots.len() < MOST_SLOTS {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(slots)
}

type Kinds = (format::RelocationType, Option<format::RelocationType>);

/// What the machine calls the relocations of slots: of those that nothing but stubs uses, and, where stubs are known that jump through
/// others, of those.
fn kinds(machine: format::Machine) -> Option<Kinds> {
    Some(match machine {
        format::EM_X86_64 => (format::R_X86_64_JUMP_SLOT, Some(format::R_X86_64_GLOB_DAT)),
        format::EM_386 => (format::R_386_JMP_SLOT, None),
        format::EM_AARCH64 => (format::R_AARCH64_JUMP_SLOT, None),
        format::EM_ARM => (format::R_ARM_JUMP_SLOT, None),
        format::EM_RISCV => (format::R_RISCV_JUMP_SLOT, None),
        format::EM_PPC64 => (format::R_PPC64_JMP_SLOT, None),
        format::EM_S390 => (format::R_390_JMP_SLOT, None),
        _ => return None,
    })
}

/// The slot that holds a file address, and its name.
pub(super) fn at(
    source: &Source,
    slots: &Slots,
    address: u64,
    clock: &mut Clock,
) -> Option<(Symbol, Name)> {
    let elf = &source.elf;
    let number = elf.section_at(address)?;
    if !matches!(elf.section_name(number)?, b".got" | b".got.plt") {
        return None;
    }
    let section = elf.sections.get(usize::try_from(number).ok()?)?;
    let width = elf.pointer_bytes();
    let into = address.checked_sub(section.address)? / width * width;
    let place = section.address.checked_add(into)?;
    let slots = slots.all(source, clock).ok()?;
    let filling = slots.get(&place).filter(|one| one.is_jump)?;
    let function = Import::of(source, filling.function)?;
    Some(function.plt_or_got(source, (place, width), Kind::Object, GOT))
}

/// The slots of the functions that a person calls `name`.
pub(super) fn called(
    source: &Source,
    slots: &Slots,
    name: &str,
    clock: &mut Clock,
) -> Result<Vec<(Symbol, Name)>, NoSymbols> {
    let functions = Import::called(source, name, clock)?;
    let width = source.elf.pointer_bytes();
    let jumps = slots.jumps(source, clock)?;
    let found = jumps.filter_map(|(slot, number)| {
        let function = functions.get(&number)?;
        Some(function.plt_or_got(source, (slot, width), Kind::Object, GOT))
    });
    Ok(found.collect())
}
