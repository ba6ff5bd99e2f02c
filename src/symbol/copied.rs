//! Variables of libraries of which a program holds the copy that is used.
//!
//! A program that is not position-independent code all through has room for a library's variable in its own `.bss`; a copy relocation
//! has the dynamic linker fill it, and everybody then uses that one. The library's own place for it is never used.

use super::source::Source;
use object::elf as format;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Relocations of more bytes than this are not looked through; a browser's take some tens of megabytes.
const LARGEST: u64 = 256 << 20;

/// The file addresses that copy relocations of `source` fill.
pub(super) fn by(source: &Source) -> HashSet<u64> {
    let Source { file, elf } = source;
    let mut places = HashSet::new();
    let Some(copy) = copies(elf.machine) else {
        return places;
    };
    let width = if elf.is_64 { 8 } else { 4 };
    for section in &elf.sections {
        let words = match section.kind {
            format::SHT_RELA => 3,
            format::SHT_REL => 2,
            _ => continue,
        };
        if section.flags & format::SHF_ALLOC.0 == 0 || section.size > LARGEST {
            continue;
        }
        let entry = words * width;
        let whole = section.size / entry as u64 * entry as u64;
        // What cannot be read copies nothing.
        _ = file.pass(section.offset, whole, entry, "relocations", &mut |bytes| {
            for entry in bytes.chunks_exact(entry) {
                let (place, rest) = entry.split_at(width);
                let (info, _) = rest.split_at(width);
                let kind = match elf.is_64 {
                    true => elf.number(info) & 0xffff_ffff,
                    false => elf.number(info) & 0xff,
                };
                if kind == u64::from(copy.0) {
                    places.insert(elf.number(place));
                }
            }
            ControlFlow::Continue(())
        });
    }
    places
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
