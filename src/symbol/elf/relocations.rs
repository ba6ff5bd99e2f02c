//! The places that a program's relocations fill: the slots of its global offset table, and its copies of libraries'
//! variables. They are found in one bounded pass, as a file may have any number of sections, which may overlap.

use super::contents::ElfFile;
use super::section::Section;
use crate::budget::Budget;
use crate::symbol::NoSymbols;
use object::Endianness;
use object::elf::{self as format, FileHeader32, FileHeader64, RelocationType};
use object::pod::Pod;
use object::read::elf::{Crel, FileHeader};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// More bytes of relocations, in all sections together, are not read: a browser's take some tens of megabytes.
const MOST_BYTES: u64 = 96 << 20;
/// More slots than this are not kept: large programs have some thousands.
const MOST_SLOTS: usize = 1 << 18;
/// More copied variables than this are not kept: programs have some tens.
const MOST_COPIES: usize = 1 << 16;

/// A slot that functions of other files are called through.
pub(in crate::symbol) struct GotSlot {
    /// Number in `.dynsym` of the function.
    pub(in crate::symbol) function: u32,
    /// Whether nothing but stubs uses the slot.
    pub(in crate::symbol) is_jump: bool,
}

/// What the relocations of a file fill, by file address.
#[derive(Default)]
pub(in crate::symbol) struct RelocationTargets {
    pub(in crate::symbol) slots: HashMap<u64, GotSlot>,
    /// The program's copies of libraries' variables, which everybody uses. A program that is not all
    /// position-independent code has them in its own `.bss`, where copy relocations make the dynamic linker fill them.
    pub(in crate::symbol) copies: HashSet<u64>,
}

/// The places that the relocations of a file fill, found on the first query.
#[derive(Default)]
pub(in crate::symbol) struct Relocations(OnceLock<RelocationTargets>);

impl Relocations {
    /// The first query makes a pass over the relocations.
    pub(in crate::symbol) fn of(&self, source: &ElfFile, budget: &mut Budget) -> Result<&RelocationTargets, NoSymbols> {
        match self.0.get() {
            Some(known) => Ok(known),
            None => {
                let targets = read_targets(source, budget)?;
                Ok(self.0.get_or_init(|| targets))
            }
        }
    }
}

fn read_targets(source: &ElfFile, budget: &mut Budget) -> Result<RelocationTargets, NoSymbols> {
    let mut targets = RelocationTargets::default();
    let Some((copy, jump, data)) = kinds(source.elf.machine) else {
        return Ok(targets);
    };
    let RelocationTargets { slots, copies } = &mut targets;
    visit(source, budget, &mut |one| {
        let is_jump = one.r_type == jump;
        if one.r_type == copy && copies.len() < MOST_COPIES {
            copies.insert(one.r_offset);
        } else if one.r_sym != 0 && (is_jump || Some(one.r_type) == data) && slots.len() < MOST_SLOTS {
            slots.entry(one.r_offset).or_insert(GotSlot { function: one.r_sym, is_jump });
        }
        ControlFlow::Continue(())
    })?;
    Ok(targets)
}

/// The machine's types of relocations: of copied variables; of slots that only stubs use; and of slots that stubs share
/// with other code, where such stubs are known.
fn kinds(machine: format::Machine) -> Option<(RelocationType, RelocationType, Option<RelocationType>)> {
    use format::*;
    Some(match machine {
        EM_X86_64 => (R_X86_64_COPY, R_X86_64_JUMP_SLOT, Some(R_X86_64_GLOB_DAT)),
        EM_386 => (R_386_COPY, R_386_JMP_SLOT, None),
        EM_AARCH64 => (R_AARCH64_COPY, R_AARCH64_JUMP_SLOT, None),
        EM_ARM => (R_ARM_COPY, R_ARM_JUMP_SLOT, None),
        EM_RISCV => (R_RISCV_COPY, R_RISCV_JUMP_SLOT, None),
        EM_PPC64 => (R_PPC64_COPY, R_PPC64_JMP_SLOT, None),
        EM_S390 => (R_390_COPY, R_390_JMP_SLOT, None),
        _ => return None,
    })
}

/// Visits the relocations of `source` until `visit` breaks.
pub(in crate::symbol) fn visit(
    source: &ElfFile,
    budget: &mut Budget,
    visit: &mut dyn FnMut(Crel) -> ControlFlow<()>,
) -> Result<(), NoSymbols> {
    let is_wanted = |one: &&Section| matches!(one.kind, format::SHT_RELA | format::SHT_REL) && one.is_loaded();
    let mut sections: Vec<&Section> = source.elf.sections.iter().filter(is_wanted).collect();
    sections.sort_by_key(|one| one.offset);
    let (mut room, mut end) = (MOST_BYTES, 0);
    for section in sections {
        // In an intact file they do not overlap.
        if section.offset < end || section.size > room {
            continue;
        }
        room -= section.size;
        end = section.offset.saturating_add(section.size);
        let flow = if source.elf.is_64 {
            visit_section::<FileHeader64<Endianness>>(source, section, budget, visit)?
        } else {
            visit_section::<FileHeader32<Endianness>>(source, section, budget, visit)?
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn visit_section<H: FileHeader<Endian = Endianness>>(
    source: &ElfFile,
    section: &Section,
    budget: &mut Budget,
    visit: &mut dyn FnMut(Crel) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, NoSymbols> {
    let endian = source.elf.endian;
    match section.kind {
        format::SHT_RELA => {
            pass(source, section, budget, &mut |one: &H::Rela| visit(Crel::from_rela(one, endian, false)))
        }
        _ => pass(source, section, budget, &mut |one: &H::Rel| visit(Crel::from_rel(one, endian))),
    }
}

fn pass<T: Pod>(
    source: &ElfFile,
    section: &Section,
    budget: &mut Budget,
    visit: &mut dyn FnMut(&T) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, NoSymbols> {
    let passed = source.file.pass(section.in_file(), "relocations", budget, &mut |entries, budget| {
        budget.spend(entries.len() as u64)?;
        Ok(entries.iter().try_for_each(&mut *visit))
    });
    match passed {
        Err(reason) if reason.is_passing() => Err(reason),
        // What a damaged section lacks is unknown.
        passed => Ok(passed.unwrap_or(ControlFlow::Continue(()))),
    }
}
