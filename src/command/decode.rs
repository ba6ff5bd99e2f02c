//! `decode VALUE [as entry|flags]`: a raw word, bit by bit.

use super::flags;
use super::flags::{FlagMeaning, bit_line, write_meanings};
use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::eval::{self, Value};
use crate::inspect::classify::{PageObservation, classify};
use crate::inspect::{KernelBehaviour, StateSet};
use crate::kernel::swaps::{MARKER_BITS, SwapLayout, SwapMeaning};
use crate::kernel::words::worded;
use crate::kernel::{FrameNumber, PageFlags, PageMapEntry, PhysicalAddress, State};
use crate::lang::parser::{Parsed, Tokens, one_of, value, word};
use crate::lang::{Expression, Spanned, display};
use crate::process::Machine;
use crate::render::Record;
use crate::render::text::block::{self, REMARK};
use crate::render::text::lines::Lines;
use crate::render::text::{Text, words};
use crate::render::theme::Role;
use crate::report::record::{record, shapes};
use crate::report::{Declared, FlagNames, Hex, Reason, Shape, SwapSlot};
use nom::Parser;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

worded! {
    /// How `decode` reads a raw word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reading, word {
        /// As an entry of `/proc/PID/pagemap`.
        Entry = "entry",
        /// As a word of `/proc/kpageflags`.
        Flags = "flags",
    }
}

/// `decode VALUE [as entry|flags]`: a raw 64-bit word, explained.
#[derive(Debug)]
pub struct Decode {
    /// The word.
    value: Spanned<Expression>,
    /// As which kind of word; as both if absent.
    reading: Option<Reading>,
}

impl Command for Decode {
    const RECORDS: &'static [Shape] = &[Decoded::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("decode").displayed().alone(),
        group: Group::Look,
        summary: "explain a raw page-map entry or flags word",
        text: "\
Explains each bit of a number, as an entry of /proc/PID/pagemap and as a word of /proc/kpageflags.

  as entry  only as an entry of the page map
  as flags  only as a flags word

Needs no target: the number may come from another tool, or from another machine of the same kind.",
        examples: &[
            example("decode 0x8180000000123456 as entry", "explain an entry of a page map"),
            example("decode 0x440000000000009f as entry", "explain the entry of a guard page"),
            example("decode 0x400005868 as flags", "explain a word of /proc/kpageflags"),
            example("decode 0x868", "explain both readings of a number"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let reading = opt(preceded(word("as"), cut(one_of)));
        let (input, (value, reading)) = (value, reading).parse(input)?;
        Ok((input, Decode { value, reading }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.value.node)?;
        display::clause(f, "as", self.reading.map(|reading| reading.word()))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let Decode { value, reading } = self;
        if let Value::Physical(_) | Value::Frame(_) = eval::evaluate(value, context.state)? {
            let error = eval::Error::new(value.at, "this is a place in physical memory, not a raw word");
            return Err(error.hint(format!("`flags {}` explains the frame", value.node)).into());
        }
        let number = eval::integer(value, context.state)?;
        let Some(raw) = number.to_u64() else {
            return Err(eval::Error::new(value.at, format!("{number} is not a 64-bit word")).into());
        };
        let machine = context.state.machine().clone();
        if reading.is_none() && is_place(raw, &machine) {
            context.sink.note(format!("if this is a physical address: `who phys:{raw:#x}`"))?;
        }
        if *reading != Some(Reading::Flags) {
            let entry = entry(PageMapEntry::new(raw), &machine);
            context.sink.emit(&Decoded::Entry(entry))?;
        }
        if *reading != Some(Reading::Entry) {
            let flags = PageFlags::from_bits_retain(raw);
            let decoded =
                DecodedFlags { raw: Hex(raw), flags: FlagNames(flags), bits: flags::meanings(flags, &machine) };
            context.sink.emit(&Decoded::Flags(decoded))?;
        }
        Ok(Flow::Done)
    }
}

/// Whether a number may be the physical address of memory. Low numbers are words of flags.
fn is_place(raw: u64, machine: &Machine) -> bool {
    const LOW: u64 = 16 << 20;
    let frame = FrameNumber::new(raw >> machine.page_size().shift());
    raw >= LOW && machine.zones().is_ok_and(|zones| zones.of(frame).is_some())
}

/// Bits 0 to 54.
const FRAME_BITS: u64 = (1 << 55) - 1;

/// Every set bit of an entry, and the value of bits 0 to 54.
fn entry(entry: PageMapEntry, machine: &Machine) -> DecodedEntry {
    let layout = machine.swap_layout();
    let mut bits: Vec<BitMeaning> = entry
        .set_bits()
        .map(|bit| BitMeaning { bits: bit.number.to_string(), name: bit.name, meaning: bit.meaning.to_owned() })
        .collect();
    if entry.is_present() {
        bits.push(BitMeaning {
            bits: "0-54".to_owned(),
            name: "frame",
            meaning: match entry.frame() {
                Some(frame) => format!("{frame}, the page frame number"),
                None => "0: hidden, because it was read without CAP_SYS_ADMIN".to_owned(),
            },
        });
    } else if entry.is_swap_hidden() {
        bits.push(BitMeaning {
            bits: "0-54".to_owned(),
            name: "type, offset",
            meaning: "0: hidden, because it was read without CAP_SYS_ADMIN".to_owned(),
        });
    } else if let Some(swap) = entry.swap() {
        bits.push(BitMeaning {
            bits: "5-54".to_owned(),
            name: "offset",
            meaning: format!("{:#x}, {}", swap.offset, offset_words(layout.meaning(swap.kind), swap.offset)),
        });
        bits.push(BitMeaning {
            bits: "0-4".to_owned(),
            name: "type",
            meaning: format!("{}, {}", swap.kind, type_words(layout.meaning(swap.kind))),
        });
    } else if entry.raw() & FRAME_BITS != 0 {
        bits.push(BitMeaning {
            bits: "0-54".to_owned(),
            name: "unused",
            meaning: format!("{:#x}: without bit 62 or 63 these bits have no meaning", entry.raw() & FRAME_BITS),
        });
    }
    let rules = KnownSwapTypes(layout);
    // Neither bit: untouched memory, a hidden device or no region at all. The entry alone does not show which.
    let tells = entry.is_present() || entry.swap().is_some();
    let states = tells.then(|| classify(PageObservation::of(entry), None, &rules).0);
    let state = states.filter(|states| states.is_certain()).map(StateSet::likeliest);
    DecodedEntry {
        raw: Hex(entry.raw()),
        state,
        pfn: entry.frame(),
        physical: entry.frame().and_then(|frame| frame.physical(machine.page_size())),
        swap: entry.swap().filter(|_| state == Some(State::Swapped) && !entry.is_swap_hidden()).map(|swap| SwapSlot {
            kind: swap.kind,
            offset: swap.offset,
            byte_offset: swap.offset.checked_mul(machine.page_size().bytes()).map(Hex),
            device: Err(Reason::NotApplicable("the number alone names no device")),
        }),
        bits,
    }
}

/// The rules of an unknown kernel with a known numbering of swap types.
struct KnownSwapTypes(SwapLayout);

impl KernelBehaviour for KnownSwapTypes {
    fn swap_meaning(&self, kind: u8) -> SwapMeaning {
        self.0.meaning(kind)
    }
    fn swap_in_use(&self) -> bool {
        true
    }
    fn ksm_is_marked(&self) -> bool {
        true
    }
    // The entry may be of an older kernel.
    fn guards_are_marked(&self) -> bool {
        false
    }
    fn huge_files_are_marked(&self) -> bool {
        false
    }
}

fn type_words(meaning: SwapMeaning) -> &'static str {
    match meaning {
        SwapMeaning::Area => "a swap area",
        SwapMeaning::Hwpoison => "memory that failed",
        SwapMeaning::Migration => "a page that is migrating to another frame",
        SwapMeaning::Device => "device memory",
        SwapMeaning::Marker => "a marker without a page",
        SwapMeaning::ReadError => "a page that could not be read back from swap",
        SwapMeaning::Special => {
            "no swap area: migration, failed memory or device memory (which of them depends on the kernel's configuration)"
        }
    }
}

fn offset_words(meaning: SwapMeaning, offset: u64) -> String {
    match meaning {
        SwapMeaning::Area => "the page slot in the area".to_owned(),
        SwapMeaning::Hwpoison | SwapMeaning::Migration | SwapMeaning::Device | SwapMeaning::Special => {
            "a page frame number".to_owned()
        }
        SwapMeaning::Marker => marker_words(offset),
        SwapMeaning::ReadError => "nothing".to_owned(),
    }
}

/// The bits of a marker.
fn marker_words(bits: u64) -> String {
    let mut unknown = bits;
    let mut words = Vec::new();
    for (bit, meaning) in MARKER_BITS.into_iter().filter(|(bit, _)| bits & bit != 0) {
        unknown &= !bit;
        words.push(meaning);
    }
    if unknown != 0 || words.is_empty() {
        words.push("unknown");
    }
    format!("the marker: {}", words.join(", "))
}

shapes! {
    /// `decode`
    pub enum Decoded as "decoded" by "as" {
        /// Read as a page-map entry.
        "entry" Entry(DecodedEntry),
        /// Read as `/proc/kpageflags`.
        "flags" Flags(DecodedFlags),
    }
}

record! {
    /// A number read as a page-map entry.
    pub struct DecodedEntry {
        /// The number.
        raw: Hex,
        /// The state; `null` for an empty entry, whose state depends on the region.
        state: Option<State>,
        /// Its frame.
        pfn: Option<FrameNumber>,
        /// Physical address of the frame: `phys` in filters.
        physical: Option<PhysicalAddress>,
        /// Its swap slot.
        swap: Option<SwapSlot>,
        /// Each set bit (or field), with its meaning.
        bits: Vec<BitMeaning>,
    }

    /// A number read as a word of `/proc/kpageflags`.
    pub struct DecodedFlags {
        /// The number.
        raw: Hex,
        /// Names.
        flags: FlagNames,
        /// Each set bit, with its meaning.
        bits: Vec<FlagMeaning>,
    }

    /// A bit or a field of a page-map entry.
    #[derive(Eq)]
    pub struct BitMeaning {
        /// `63`, `0-54`
        bits: String,
        /// Its name.
        name: &'static str,
        /// Its value and what that means.
        meaning: String,
    }
}

impl Record for Decoded {
    fn write(&self, text: &mut Text) {
        text.block(write_block, self);
    }
}

/// Bits 63 and 62 of an entry.
const PRESENT_OR_SWAPPED: u64 = 3 << 62;

/// Writes a decoded number.
fn write_block(lines: &mut Lines, decoded: &Decoded) {
    match decoded {
        Decoded::Entry(DecodedEntry { raw, state, pfn, physical, swap, bits }) => {
            let line = lines.field("entry");
            line.push(Role::Raw, format!("{raw:#018x}")).indent_at(REMARK).plain("as a page-map entry");
            let line = lines.field("state");
            match state {
                Some(state) => {
                    line.push(words::state_role(*state), state.word()).indent_at(REMARK).plain(words::meaning(*state))
                }
                None if raw.0 & PRESENT_OR_SWAPPED != 0 => line
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
            write_meanings(lines, bits)
        }
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(decoded_entry()), Box::new(decoded_flags())]
    }

    pub fn decoded_entry() -> Decoded {
        Decoded::Entry(DecodedEntry {
            raw: Hex(0x440000000000009f),
            state: Some(State::Guard),
            pfn: None,
            physical: None,
            swap: Some(SwapSlot {
                kind: 31,
                offset: 4,
                byte_offset: Some(Hex(4 * 4096)),
                device: Err(Reason::NotApplicable("the page is not in swap")),
            }),
            bits: vec![
                BitMeaning {
                    bits: "62".into(),
                    name: "swap entry",
                    meaning: "not present: in swap, migrating, or a marker".into(),
                },
                BitMeaning { bits: "0-4".into(), name: "swap type", meaning: "31: a marker".into() },
            ],
        })
    }

    pub fn decoded_flags() -> Decoded {
        let flags = PageFlags::DIRTY;
        Decoded::Flags(DecodedFlags {
            raw: Hex(flags.bits()),
            flags: FlagNames(flags),
            bits: vec![FlagMeaning {
                bit: 4,
                name: "dirty".into(),
                meaning: "written to since it was last saved".into(),
            }],
        })
    }
}
