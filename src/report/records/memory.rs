//! Records of what memory holds.

use super::{RegionBrief, SymbolBrief};
use crate::kernel::{Kind, State, VirtualAddress};
use crate::report::Why;
use crate::report::json::{Bytes, EveryState, Hex};
use crate::report::record::record;

record! {
    /// A row of `x`.
    pub struct Memory as "memory" with why if noted {
        /// Address of the first byte.
        address: VirtualAddress,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// Bytes that the row covers.
        length: u64,
        /// The letter of the format.
        format: &'static str,
        /// Bytes in a unit; for text, in a character.
        unit: u8,
        /// The bytes as they lie in memory, in hexadecimal; `null` where nothing was read.
        bytes: Option<Bytes>,
        /// Each unit, written out.
        values: Vec<String>,
        /// For addresses: the symbol at each.
        [optional] symbols: Vec<Option<SymbolBrief>>,
        /// The source of the bytes: `memory`, or `file` for the page cache of the file mapped there.
        source: Option<&'static str>,
        /// Whether the read faulted the page in (`--fault`).
        [optional] faulted: bool,
        /// The state of the pages before they were read.
        state: State,
        /// The kind of the pages, if they were not read.
        kind: Option<Kind>,
        /// Why a page that is present was not read.
        [optional] unread: Option<&'static str>,
        /// For a text whose end was not found: the state of the page where reading stopped.
        [optional] cut_by: Option<State>,
        /// Why a state is only the most likely one.
        [flat] why: Why,
    }

    /// A row of `find`.
    pub struct Match as "match" {
        /// Address of the first byte.
        address: VirtualAddress,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// The region there.
        region: Option<RegionBrief>,
        /// The source of the bytes: `memory`, or `file` if some come from the page cache of the file mapped there.
        source: &'static str,
    }

    /// The totals of `find`.
    #[derive(Default)]
    pub struct FindSummary as "find-summary" with why if noted {
        /// Number of places that were found.
        matches: u64,
        /// Bytes that were searched.
        searched: u64,
        /// Present pages that could not be read, or that changed during each read.
        unread: u64,
        /// Untouched pages that were searched in the page cache of their file.
        cached: u64,
        /// Untouched pages that are or may be in the page cache, but could not be searched there.
        cache_unread: u64,
        /// Whether the search stopped before the end of the range: by the count, or by Ctrl-C.
        cut_short: bool,
        /// Pages of the range in each state. Pages that are neither present nor cached were not searched.
        [flat] states: EveryState,
        /// Why pages of the page cache could not be searched.
        [flat] why: Why,
    }

    /// A row of `patched`.
    pub struct Patch as "patch" {
        /// Address of the first byte.
        address: VirtualAddress,
        /// Number of bytes.
        length: u64,
        /// The function there.
        symbol: Option<SymbolBrief>,
        /// The bytes in memory; `null` where they are those of the file.
        memory: Option<Bytes>,
        /// The bytes in the file; `null` where they are those in memory.
        file: Option<Bytes>,
        /// Their offset in the file.
        file_offset: Hex,
        /// The name of the breakpoint instruction, if the bytes in memory are nothing else.
        breakpoint: Option<&'static str>,
        /// The region.
        region: RegionBrief,
    }

    /// The totals of `patched`.
    #[derive(Default)]
    pub struct PatchedSummary as "patched-summary" with why if noted {
        /// Pages that are private copies of pages of files.
        private_copies: u64,
        /// Those of them that are the same as in the file.
        equal: u64,
        /// Number of stretches of bytes that differ.
        stretches: u64,
        /// Number of bytes that differ, in whole instructions on machines with one instruction size.
        bytes: u64,
        /// Number of stretches that are breakpoint instructions.
        breakpoints: u64,
        /// Private copies that could not be compared.
        uncompared: u64,
        /// Whether Ctrl-C ended it before the end.
        cut_short: bool,
        /// Why pages could not be compared.
        [flat] why: Why,
    }

    /// A row of `telescope`.
    pub struct Telescope as "telescope" with why if noted {
        /// Address of the word.
        address: VirtualAddress,
        /// Bytes from the first word.
        offset: u64,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// The word; `null` where it was not read.
        value: Option<Hex>,
        /// The state of its page.
        state: State,
        /// The source of the word: `memory`, or `file` for the page cache of the file mapped there; `null` where it
        /// was not read.
        source: Option<&'static str>,
        /// The addresses that the chain passes through.
        chain: Vec<Link>,
        /// Why the chain ends: `value`, `text`, `cycle`, `depth`, `unread`.
        ends: &'static str,
        /// Why the state is only the most likely one.
        [flat] why: Why,
    }

    /// An address that memory holds.
    pub struct Link with why if noted {
        /// The address.
        address: VirtualAddress,
        /// The region it lies in.
        region: RegionBrief,
        /// The symbol there.
        symbol: Option<SymbolBrief>,
        /// The state of its page.
        state: State,
        /// The source of the word or the text, as in the row; `null` if neither was read.
        source: Option<&'static str>,
        /// The word there; `null` where it was not read.
        value: Option<Hex>,
        /// The text there, if it is one.
        [optional] text: Option<String>,
        /// Why the state is only the most likely one.
        [flat] why: Why,
    }
}
