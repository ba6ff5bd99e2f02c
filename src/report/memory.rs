//! Records of what memory holds.

use super::SymbolBrief;
use super::wire::{not, optional_bytes};
use crate::kernel::{Kind, State, VirtualAddress};
use serde::Serialize;

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
}
