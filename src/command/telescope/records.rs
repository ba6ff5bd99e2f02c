//! The records of `telescope`, and how they are written.

use crate::inspect::ByteSource;
use crate::inspect::chains::ChainEnd;
use crate::kernel::{State, VirtualAddress};
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::block::{absent, is_uncertain, of_file, of_region, symbol};
use crate::render::text::lines::{Line, Lines};
use crate::render::theme::Role;
use crate::report::json::words;
use crate::report::record::record;
use crate::report::{Declared, Hex, RegionBrief, Shape, SymbolBrief, Why};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[Telescope::SHAPE];

record! {
    /// A row of `telescope`.
    pub struct Telescope as "telescope" with why {
        /// Address of the word.
        address: VirtualAddress,
        /// Bytes from the first word.
        offset: u64,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// The word; `null` where it was not read.
        value: Option<Hex>,
        /// The state of its page; `null` in a core file without a page map.
        state: Option<State>,
        /// The source of the word: `memory`, or `file` for the page cache of the file mapped there; `null` where it
        /// was not read.
        source: Option<ByteSource>,
        /// The addresses that the chain passes through.
        chain: Vec<Link>,
        /// Why the chain ends: `value`, `text`, `cycle`, `depth`, `unread`.
        ends: ChainEnd,
        /// Why the state is only the most likely one.
        [flat] why: Why,
    }

    /// An address that memory holds.
    pub struct Link with why {
        /// The address.
        address: VirtualAddress,
        /// The region it lies in.
        region: RegionBrief,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// The state of its page; `null` in a core file without a page map.
        state: Option<State>,
        /// The source of the word or the text, as in the row; `null` if neither was read.
        source: Option<ByteSource>,
        /// The word there; `null` where it was not read.
        value: Option<Hex>,
        /// The text there, if it is one.
        [optional] text: Option<String>,
        /// Why the state is only the most likely one.
        [flat] why: Why,
    }
}

impl Record for Telescope {
    fn write(&self, text: &mut Text) {
        text.line(telescope, self);
    }
}

/// Columns of an address of a 64-bit process.
const ADDRESS: usize = 14;

/// `0x7ffe… +0x08 0x55… <main+4> tgt r-xp → 0x41`
fn telescope(lines: &mut Lines, row: &Telescope) {
    let line = lines.line();
    line.indent(4).push(Role::Address, row.address);
    line.pad_to(ADDRESS).push(Role::Dim, format!("  +{:#05x}", row.offset)).plain("  ");
    match row.value {
        Some(value) => _ = line.push(Role::Raw, format!("{value:#x}")),
        None => word_absent(line, row.state, &row.why),
    }
    of_file(line, row.source == Some(ByteSource::File));
    for (index, link) in row.chain.iter().enumerate() {
        if index > 0 {
            line.push(Role::Dim, " \u{2192} ").push(Role::Raw, link.address);
        }
        if let Some(named) = &link.symbol {
            line.plain(" ");
            symbol(line, named);
        }
        of_region(line, &link.region);
        of_file(line, link.source == Some(ByteSource::File));
    }
    let Some(last) = row.chain.last() else {
        if row.ends == ChainEnd::Cycle {
            line.plain(" (a cycle)");
        }
        return;
    };
    line.push(Role::Dim, " \u{2192} ");
    match (row.ends, &last.text, last.value) {
        (ChainEnd::Text, Some(text), _) => _ = line.plain(text),
        (_, _, None) => word_absent(line, last.state, &last.why),
        (ChainEnd::Cycle, _, Some(value)) => _ = line.plain(format!("{value:#x} (a cycle)")),
        (ChainEnd::Depth, _, Some(value)) => _ = line.plain(format!("{value:#x} \u{2192} \u{2026}")),
        (_, _, Some(value)) => _ = line.plain(format!("{value:#x}")),
    }
}

/// A word that was not read, and why, if it is in the page cache.
fn word_absent(line: &mut Line, state: Option<State>, why: &Why) {
    let reason = why.of("source");
    let Some(state) = state.filter(|state| *state != State::Present || reason.is_none()) else {
        let reason = reason.map_or("its page is unknown", |reason| reason.cause());
        line.push(Role::Warn, format!("<not read: {reason}>"));
        return;
    };
    absent(line, state, None, None, is_uncertain(why));
    if let Some(reason) = reason {
        line.push(Role::Note, format!("  ({})", reason.cause()));
    }
}

words!(ChainEnd => "chain_end");

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::memory::{brief, libc, why_uncertain};
    use crate::report::Reason;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(telescope()),
            Box::new(telescope_text()),
            Box::new(telescope_cycle()),
            Box::new(telescope_of_file()),
            Box::new(telescope_swapped()),
            Box::new(telescope_of_core()),
        ]
    }

    fn link(symbol: Option<SymbolBrief>, address: u64, value: Option<u64>) -> Link {
        Link {
            address: VirtualAddress::new(address),
            region: libc(),
            symbol,
            state: Some(State::Present),
            source: Some(ByteSource::Memory),
            value: value.map(Hex),
            text: None,
            why: Why::default(),
        }
    }

    pub fn telescope() -> Telescope {
        Telescope {
            address: VirtualAddress::new(0x7fff_ffff_e010),
            offset: 8,
            symbol: None,
            value: Some(Hex(0x7fff_f7de_80c0)),
            state: Some(State::Present),
            source: Some(ByteSource::Memory),
            chain: vec![
                link(Some(brief("malloc", 16)), 0x7fff_f7de_80c0, Some(0x7fff_f7de_8000)),
                link(None, 0x7fff_f7de_8000, Some(0x41)),
            ],
            ends: ChainEnd::Value,
            why: Why::default(),
        }
    }

    pub fn telescope_text() -> Telescope {
        let mut row = telescope();
        row.chain.truncate(1);
        if let Some(link) = row.chain.last_mut() {
            link.text = Some(r#""hello\n""#.into());
        }
        row.ends = ChainEnd::Text;
        row
    }

    pub fn telescope_of_file() -> Telescope {
        let mut row = telescope();
        (row.source, row.state) = (Some(ByteSource::File), Some(State::Untouched));
        if let Some(link) = row.chain.last_mut() {
            (link.source, link.state) = (Some(ByteSource::File), Some(State::Untouched));
        }
        row
    }

    pub fn telescope_cycle() -> Telescope {
        let mut row = telescope();
        if let Some(link) = row.chain.last_mut() {
            link.value = Some(Hex(0x7fff_f7de_80c0));
        }
        row.ends = ChainEnd::Cycle;
        row
    }

    /// A word that leads to memory that a core file does not have.
    pub fn telescope_of_core() -> Telescope {
        let mut row = telescope();
        if let Some(link) = row.chain.last_mut() {
            (link.state, link.source, link.value) = (None, None, None);
            link.why.note("source", &Reason::NotInFile("memory at 0x7ffff7e0a1b0 is not in this core".to_owned()));
        }
        row.ends = ChainEnd::Unread;
        row
    }

    pub fn telescope_swapped() -> Telescope {
        let mut row = telescope();
        if let Some(link) = row.chain.last_mut() {
            link.value = None;
            link.source = None;
            link.state = Some(State::Swapped);
            link.why = why_uncertain("state");
        }
        row.ends = ChainEnd::Unread;
        row
    }
}
