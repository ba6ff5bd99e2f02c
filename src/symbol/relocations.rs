//! One pass over the relocations that a program brings along, within a bound: sections may lie over each other and be as many as
//! the file likes.

use super::NoSymbols;
use super::clock::Clock;
use super::section::Section;
use super::source::Source;
use object::elf as format;
use std::ops::ControlFlow;

/// Relocations of more bytes than this, all sections together, are not looked through; a browser's take some tens of megabytes.
const MOST_BYTES: u64 = 96 << 20;

/// A relocation.
pub(super) struct Relocation {
    /// The file address that it fills.
    pub(super) place: u64,
    /// What it does there, as the machine numbers that.
    pub(super) kind: u64,
    /// The number in `.dynsym` of the symbol that it takes; 0 for none.
    pub(super) symbol: u32,
}

/// Visits the relocations of `source` until `visit` breaks. An error once `clock` has run out: then not all were visited.
pub(super) fn visit(
    source: &Source,
    clock: &mut Clock,
    visit: &mut dyn FnMut(Relocation) -> ControlFlow<()>,
) -> Result<(), NoSymbols> {
    let Source { file, elf } = source;
    let width = if elf.is_64 { 8 } else { 4 };
    let is_wanted = |one: &&Section| {
        matches!(one.kind, format::SHT_RELA | format::SHT_REL)
            && one.flags & format::SHF_ALLOC.0 != 0
    };
    let mut sections: Vec<&Section> = elf.sections.iter().filter(is_wanted).collect();
    sections.sort_by_key(|one| one.offset);
    let (mut room, mut end) = (MOST_BYTES, 0);
    for section in sections {
        // Those of a sound file lie beside each other.
        if section.offset < end || section.size > room {
            continue;
        }
        room -= section.size;
        end = section.offset.saturating_add(section.size);
        // An address, what and of which symbol, and for one of the kinds an addend.
        let words = if section.kind == format::SHT_RELA {
            3
        } else {
            2
        };
        let entry = words * width;
        let whole = section.size / entry as u64 * entry as u64;
        let mut flow = ControlFlow::Continue(());
        let mut given_up = false;
        let mut each = |bytes: &[u8]| {
            given_up = clock.is_over_now();
            if given_up {
                return ControlFlow::Break(());
            }
            for entry in bytes.chunks_exact(entry) {
                let (place, rest) = entry.split_at(width);
                let (info, _) = rest.split_at(width);
                let info = elf.number(info);
                let (symbol, kind) = match elf.is_64 {
                    true => (info >> 32, info & 0xffff_ffff),
                    false => (info >> 8, info & 0xff),
                };
                let place = elf.number(place);
                let symbol = u32::try_from(symbol).unwrap_or(0);
                flow = visit(Relocation {
                    place,
                    kind,
                    symbol,
                });
                if flow.is_break() {
                    break;
                }
            }
            flow
        };
        // What cannot be read relocates nothing.
        _ = file.pass(section.offset, whole, entry, "relocations", &mut each);
        if given_up {
            return Err(clock.reason());
        }
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}
