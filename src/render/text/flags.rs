//! `flags` and `decode`: every bit with its meaning.

use super::Text;
use super::block::{self, REMARK};
use super::footnotes::Footnotes;
use super::lines::Lines;
use super::words;
use crate::kernel::PageFlags;
use crate::render::Record;
use crate::render::theme::Role;
use crate::report::{Decoded, DecodedEntry, DecodedFlags, FlagMeaning, FlagsReport, Reason, Why};

impl Record for FlagsReport {
    fn write(&self, text: &mut Text) {
        text.block(write, self);
    }
}

impl Record for Decoded {
    fn write(&self, text: &mut Text) {
        text.block(decoded, self);
    }
}

/// The columns of a bit's name and its meaning.
const BIT: usize = 10;
const NAME: usize = BIT + 11;
const MEANING: usize = NAME + 16;

/// Writes the facts of a frame.
pub fn write(lines: &mut Lines, report: &FlagsReport) {
    let line = lines.field("frame");
    match &report.pfn {
        Ok(frame) => line.push(Role::Frame, frame),
        Err(_) => line.push(Role::Warn, "hidden"),
    };
    line.indent_at(REMARK);
    if let Ok(physical) = &report.physical {
        line.plain("physical ").push(Role::Physical, physical);
    }
    if let Some(address) = report.address {
        line.word(", ", Role::Plain, "mapped at ").push(Role::Address, address);
    }
    if let Ok(flags) = report.words.flags {
        raw_flags(lines, flags);
        meanings(lines, &report.meanings);
    }
    if let Ok(times) = report.words.map_count {
        let line = lines.field("mapped");
        line.plain(match times {
            // The kernel keeps no count for it, however many page tables hold it.
            0 if report.words.flags.as_ref().is_ok_and(|flags| flags.contains(PageFlags::ZERO_PAGE)) => {
                "not counted, as always for the page of zeros".to_owned()
            }
            0 => "by no page table".to_owned(),
            times => words::times(times, &report.words),
        });
    }
    if let Ok(folio) = &report.folio {
        block::folio(lines, folio, None);
    }
    block::place(lines, &report.place);
    let is_unexplained = |field: &str, _: &Reason| !block::is_place_said(&report.place, field);
    Footnotes::of(&Why::of_record(report), is_unexplained).write(lines);
}

fn raw_flags(lines: &mut Lines, flags: PageFlags) {
    let line = lines.field("flags");
    line.push(Role::Raw, format!("{:#018x}", flags.bits()));
    if flags.is_empty() {
        line.indent_at(REMARK).push(Role::Dim, "none set");
    }
}

fn meanings(lines: &mut Lines, bits: &[FlagMeaning]) {
    for bit in bits {
        let number = format!("bit {}", bit.bit);
        bit_line(lines, &number, &bit.name, &bit.meaning);
    }
}

fn bit_line(lines: &mut Lines, number: &str, name: &str, meaning: &str) {
    let line = lines.field("");
    line.push(Role::Dim, number).tab_to(NAME).push(Role::Flag, name).indent_at(MEANING).prose(Role::Plain, meaning);
}

/// Bits 62 and 63 of an entry: without either, nothing is there.
const SOMETHING: u64 = 3 << 62;

/// Writes a decoded number.
pub fn decoded(lines: &mut Lines, decoded: &Decoded) {
    match decoded {
        Decoded::Entry(DecodedEntry { raw, state, pfn, physical, swap, bits }) => {
            let line = lines.field("entry");
            line.push(Role::Raw, format!("{raw:#018x}")).indent_at(REMARK).plain("as a page-map entry");
            let line = lines.field("state");
            match state {
                Some(state) => line
                    .push(words::state_role(*state), state.word())
                    .indent_at(REMARK)
                    .push(Role::Dim, words::meaning(*state)),
                None if raw.0 & SOMETHING != 0 => line
                    .push(Role::Warn, "not certain")
                    .indent_at(REMARK)
                    .push(Role::Dim, "no page, but a special entry: the entry alone does not show which"),
                None => line
                    .push(Role::Dim, "empty")
                    .indent_at(REMARK)
                    .push(Role::Dim, "nothing there: untouched, unmapped, or hidden by a driver"),
            };
            if let Some(frame) = pfn {
                let line = lines.field("frame");
                line.push(Role::Frame, frame);
                if let Some(physical) = physical {
                    line.indent_at(REMARK).plain("physical ").push(Role::Physical, physical);
                }
            }
            if let Some(slot) = swap {
                block::swap(lines, slot, "type");
            }
            for bit in bits {
                let number =
                    if bit.bits.contains('-') { format!("bits {}", bit.bits) } else { format!("bit {}", bit.bits) };
                bit_line(lines, &number, bit.name, &bit.meaning);
            }
        }
        Decoded::Flags(DecodedFlags { raw, bits, .. }) => {
            let line = lines.field("flags");
            line.push(Role::Raw, format!("{raw:#018x}")).indent_at(REMARK).plain("as the page flags of a frame");
            if bits.is_empty() {
                lines.field("").push(Role::Dim, "none set");
            }
            meanings(lines, bits)
        }
    }
}
