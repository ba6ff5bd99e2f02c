//! The records of `find`, and how they are written.

use crate::inspect::ByteSource;
use crate::kernel::{State, VirtualAddress};
use crate::render::Record;
use crate::render::text::block::{of_region, symbol};
use crate::render::text::lines::Lines;
use crate::render::text::{Text, words};
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, EveryState, RegionBrief, Shape, SymbolBrief, Why};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[Match::SHAPE, FindSummary::SHAPE];

record! {
    /// A row of `find`.
    pub struct Match as "match" {
        /// Address of the first byte.
        address: VirtualAddress,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// The region there.
        region: Option<RegionBrief>,
        /// The source of the bytes: `memory`, or `file` if some come from the page cache of the file mapped there.
        source: ByteSource,
    }

    /// The totals of `find`.
    #[derive(Default)]
    pub struct FindSummary as "find-summary" with why {
        /// Number of places that were found.
        matches: u64,
        /// With `in heap live`: places that are not in a chunk in use.
        [optional] not_live: Option<u64>,
        /// With `in heap live`: places in memory that may belong to an arena that was not walked to its end.
        [optional] live_unclear: Option<u64>,
        /// Bytes that were searched.
        searched: u64,
        /// Present pages that could not be read, or that changed during each read.
        unread: u64,
        /// Untouched pages that were searched in the page cache of their file.
        cached: u64,
        /// Untouched pages that are or may be in the page cache, but could not be searched there.
        cache_unread: u64,
        /// Pages that were not searched because the filter cannot be evaluated for them.
        undecided: u64,
        /// Whether the search stopped before the end of the range: by the count, or by Ctrl-C.
        cut_short: bool,
        /// Pages of the range in each state. Pages that are neither present nor cached were not searched.
        [flat] states: EveryState,
        /// Why pages of the page cache could not be searched, and why present pages could not be read where a capture
        /// or a core does not have them. Why pages are `undecided`.
        [flat] why: Why,
    }
}

impl Record for Match {
    fn write(&self, text: &mut Text) {
        text.line(write_match, self);
    }
}

/// `0x7ffe… <buf+16> [heap]`
fn write_match(lines: &mut Lines, found: &Match) {
    let line = lines.line().limit(None);
    line.push(Role::Address, found.address);
    if let Some(named) = &found.symbol {
        line.plain(" ");
        symbol(line, named);
    }
    if let Some(region) = &found.region {
        of_region(line, region);
    }
    if found.source == ByteSource::File {
        line.push(Role::Note, "  (file)");
    }
}

impl Record for FindSummary {
    fn write(&self, text: &mut Text) {
        text.line(find_summary, self);
    }
}

/// `2 matches in 1.2 MiB; not looked at: 12 pages untouched, 3 swapped`
fn find_summary(lines: &mut Lines, summary: &FindSummary) {
    let line = lines.line();
    line.indent(2);
    let matches = counted(summary.matches, "match");
    let searched = match summary.searched {
        0 => "0 B".to_owned(),
        bytes => size(bytes),
    };
    line.plain(format!("{matches} in {searched}"));
    if summary.cached > 0 {
        let text = format!("{} from the page cache", counted(summary.cached, "page"));
        line.word(", ", Role::Note, text);
    }
    let mut separator = "; not resident, not searched: ";
    let states = summary.states.iter().map(|(state, pages)| match state {
        State::Untouched => (state, pages.saturating_sub(summary.cached + summary.cache_unread)),
        _ => (state, *pages),
    });
    for (state, pages) in states.filter(|(state, pages)| **state != State::Present && *pages > 0) {
        let text = counted(pages, &format!("{} page", state.word()));
        line.word(separator, words::state_role(*state), text);
        separator = ", ";
    }
    if summary.unread > 0 {
        let why = summary.why.of("unread").map_or_else(String::new, |reason| format!(": {reason}"));
        let text = format!("{} could not be read{why}", counted(summary.unread, "page"));
        line.word("; ", Role::Warn, text);
    }
    if summary.cache_unread > 0 {
        let pages = counted(summary.cache_unread, "untouched page");
        let why = summary.why.of("cache_unread");
        let why = why.map_or_else(String::new, |reason| format!(": {reason}"));
        let text = format!("the page cache could not be searched for {pages}{why}");
        line.word("; ", Role::Warn, text);
    }
    if summary.cut_short {
        line.word("; ", Role::Note, "stopped early");
    }
    if let Some(places @ 1..) = summary.not_live {
        let text = format!("{} outside chunks in use", counted(places, "more match"));
        lines.line().indent(2).push(Role::Note, text);
    }
    if let Some(places @ 1..) = summary.live_unclear {
        let text = format!("{} in memory whose chunks are unknown", counted(places, "more match"));
        lines.line().indent(2).push(Role::Warn, text);
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::memory::{brief, libc};
    use crate::report::Reason;
    use std::collections::BTreeMap;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(place_found()),
            Box::new(place_found_in_file()),
            Box::new(find_summary()),
            Box::new(find_summary_early()),
            Box::new(FindSummary { not_live: Some(1), live_unclear: Some(12), ..find_summary() }),
        ]
    }

    pub fn place_found() -> Match {
        Match {
            address: VirtualAddress::new(0x7fff_f7de_80c4),
            symbol: Some(brief("malloc", 20)),
            region: Some(libc()),
            source: ByteSource::Memory,
        }
    }

    pub fn place_found_in_file() -> Match {
        Match { source: ByteSource::File, ..place_found() }
    }

    pub fn find_summary() -> FindSummary {
        FindSummary {
            matches: 1,
            not_live: None,
            live_unclear: None,
            searched: 132 << 10,
            unread: 0,
            cached: 4,
            cache_unread: 0,
            undecided: 0,
            why: Why::default(),
            cut_short: false,
            states: EveryState(BTreeMap::from([(State::Present, 33), (State::Untouched, 31), (State::Swapped, 1)])),
        }
    }

    pub fn find_summary_early() -> FindSummary {
        FindSummary {
            matches: 4096,
            unread: 2,
            cached: 0,
            cache_unread: 3,
            why: cache_unread(),
            cut_short: true,
            states: EveryState(BTreeMap::from([(State::Present, 35), (State::Untouched, 3)])),
            ..find_summary()
        }
    }

    fn cache_unread() -> Why {
        let mut why = Why::default();
        let reason = Reason::not_permitted("may not ask what the page cache holds of libc.so.6");
        why.note("cache_unread", &reason);
        why
    }
}
