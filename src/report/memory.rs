//! Records of what memory holds.

use super::wire::{every_state, not, optional_bytes, optional_hex};
use super::{RegionBrief, SymbolBrief, Why};
use crate::kernel::{Kind, State, VirtualAddress};
use serde::Serialize;
use std::collections::BTreeMap;

/// A row of `x`: units that follow each other, or pages that were not read.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// Of the first byte.
    pub address: VirtualAddress,
    /// The symbol there.
    pub symbol: Option<SymbolBrief>,
    /// Bytes that the row is about.
    pub length: u64,
    /// The letter of the form.
    pub format: &'static str,
    /// Bytes in a unit; of text, in a character.
    pub unit: u8,
    /// The bytes as they lie in memory, in hexadecimal; `None` where nothing was read.
    #[serde(serialize_with = "optional_bytes")]
    pub bytes: Option<Vec<u8>>,
    /// Each unit, written out.
    pub values: Vec<String>,
    /// For addresses: the symbol at each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<Option<SymbolBrief>>,
    /// Where the bytes come from: `memory`, or `file` for the page cache of the file mapped there.
    pub source: Option<&'static str>,
    /// Whether reading has brought the page in (`--fault`).
    #[serde(skip_serializing_if = "not")]
    pub faulted: bool,
    /// The state of the pages before they were read.
    pub state: State,
    /// Of pages that were not read: what they would be.
    pub kind: Option<Kind>,
    /// Why a page that is present was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<&'static str>,
    /// Of a text without its end: the state of the page that kept it from being read on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_by: Option<State>,
    /// Why a state is no more than the likeliest.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// A place that `find` has found.
#[derive(Clone, Debug, Serialize)]
pub struct Match {
    /// Of the first byte.
    pub address: VirtualAddress,
    /// The symbol there.
    pub symbol: Option<SymbolBrief>,
    /// The region there.
    pub region: Option<RegionBrief>,
    /// Where the bytes come from: `memory`, or `file` if some come from the page cache of the file mapped there.
    pub source: &'static str,
}

/// What closes `find`.
#[derive(Clone, Debug, Serialize)]
pub struct FindSummary {
    /// How many places were found.
    pub matches: u64,
    /// Bytes that were looked through.
    pub searched: u64,
    /// Pages that are there and could not be read, or changed each time that they were.
    pub unread: u64,
    /// Pages that are untouched, and were looked through in the page cache of their file.
    pub cached: u64,
    /// Untouched pages that are in the page cache, or may be, and could not be looked through there.
    pub cache_unread: u64,
    /// Whether it was broken off before the end of the range: by the count, or by Ctrl-C.
    pub cut_short: bool,
    /// Pages of the range in each state; those that are not present, nor cached, were not looked through.
    #[serde(flatten, serialize_with = "every_state")]
    pub states: BTreeMap<State, u64>,
    /// Why pages of the page cache could not be looked through, for the first of them.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// A row of `telescope`: a word of memory, and where it leads.
#[derive(Clone, Debug, Serialize)]
pub struct Telescope {
    /// Of the word.
    pub address: VirtualAddress,
    /// How far it is from the first.
    pub offset: u64,
    /// The symbol there.
    pub symbol: Option<SymbolBrief>,
    /// The word; `None` where it was not read.
    #[serde(serialize_with = "optional_hex")]
    pub value: Option<u64>,
    /// The state of its page.
    pub state: State,
    /// Where it comes from: `memory`, or `file` for the page cache of the file mapped there; `None` where it was not read.
    pub source: Option<&'static str>,
    /// Where the word points to, where that points to, and so on, as far as they are addresses.
    pub chain: Vec<Link>,
    /// Why it is followed no further: `value`, `text`, `cycle`, `depth`, `unread`.
    pub ends: &'static str,
    /// Why the state is no more than the likeliest.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}

/// An address that memory holds.
#[derive(Clone, Debug, Serialize)]
pub struct Link {
    /// The address.
    pub address: VirtualAddress,
    /// The region it lies in.
    pub region: RegionBrief,
    /// The symbol there.
    pub symbol: Option<SymbolBrief>,
    /// The state of its page.
    pub state: State,
    /// Where the word or the text comes from, as in the row; `None` where neither was read.
    pub source: Option<&'static str>,
    /// The word there; `None` where it was not read.
    #[serde(serialize_with = "optional_hex")]
    pub value: Option<u64>,
    /// The text there, where there is one that can be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why the state is no more than the likeliest.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}
