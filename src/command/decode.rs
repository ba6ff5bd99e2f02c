//! `decode VALUE [as entry|flags]`: a raw word, bit by bit.

use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example, flags};
use crate::eval;
use crate::inspect::classify::{PageObservation, classify};
use crate::inspect::{KernelBehaviour, StateSet};
use crate::kernel::swaps::{SwapLayout, SwapMeaning};
use crate::kernel::words::worded;
use crate::kernel::{PageFlags, PageMapEntry, State};
use crate::lang::parser::{Parsed, Tokens, one_of, value, word};
use crate::lang::{Expression, Spanned, display};
use crate::process::Machine;
use crate::report::{BitMeaning, Decoded, DecodedEntry, DecodedFlags, FlagNames, Hex, Reason, SwapSlot};
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
    const ABOUT: About = About {
        name: CommandName::new("decode").displayed(),
        group: Group::Look,
        summary: "explain a raw page-map entry or flags word",
        text: "\
Explains each bit of a number, as an entry of /proc/PID/pagemap and as a word of /proc/kpageflags.

  as entry  only as an entry of the page map
  as flags  only as a flags word

Needs no target: the number may come from another tool, or from another machine of the same kind.",
        examples: &[
            example("decode 0x8600000000123456 as entry", "explain an entry of a page map"),
            example("decode 0x440000000000009f as entry", "explain the entry of a guard page"),
            example("decode 0x40005868 as flags", "explain a word of /proc/kpageflags"),
            example("decode 0x868", "explain both readings of a number"),
        ],
    };

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
        let number = eval::integer(value, context.state)?;
        let Some(raw) = number.to_u64() else {
            return Err(eval::Error::new(value.at, format!("{number} is not a 64-bit word")).into());
        };
        let machine = context.state.machine().clone();
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
            meaning: format!("{:#x}, {}", swap.offset, offset_words(layout.meaning(swap.kind))),
        });
        bits.push(BitMeaning {
            bits: "0-4".to_owned(),
            name: "type",
            meaning: format!("{}, {}", swap.kind, type_words(layout.meaning(swap.kind))),
        });
    }
    let rules = Numbered(layout);
    // Neither bit: untouched memory, a hidden device or no region at all. The entry alone does not show which.
    let tells = entry.is_present() || entry.swap().is_some();
    let states = tells.then(|| classify(PageObservation::of(entry), None, &rules).0);
    let state = states.filter(|states| states.is_certain()).map(StateSet::likeliest);
    DecodedEntry {
        raw: Hex(entry.raw()),
        state,
        pfn: entry.frame(),
        physical: entry.frame().and_then(|frame| frame.physical(machine.page())),
        swap: entry.swap().filter(|_| state == Some(State::Swapped) && !entry.is_swap_hidden()).map(|swap| SwapSlot {
            kind: swap.kind,
            offset: swap.offset,
            byte_offset: swap.offset.checked_mul(machine.page().bytes()).map(Hex),
            device: Err(Reason::NotApplicable("the number alone names no device")),
        }),
        bits,
    }
}

/// The rules of an unknown kernel with a known numbering of swap types.
struct Numbered(SwapLayout);

impl KernelBehaviour for Numbered {
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

fn offset_words(meaning: SwapMeaning) -> &'static str {
    match meaning {
        SwapMeaning::Area => "the page slot in the area",
        SwapMeaning::Hwpoison | SwapMeaning::Migration | SwapMeaning::Device | SwapMeaning::Special => {
            "a page frame number"
        }
        SwapMeaning::Marker => "marks: 1 userfaultfd write-protection, 2 poisoned, 4 guard",
        SwapMeaning::ReadError => "nothing",
    }
}
