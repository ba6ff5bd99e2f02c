//! Lines of the source.

use super::{SymbolBrief, Why};
use crate::kernel::{Name, VirtualAddress};
use serde::Serialize;

/// `info line`: the line of the source that an address was compiled from, or a stretch of code that a line was compiled to.
#[derive(Clone, Debug, Serialize)]
pub struct LineReport {
    /// The address: of a line, where the stretch begins.
    pub address: VirtualAddress,
    /// Where the code of the same line begins.
    pub start: Option<VirtualAddress>,
    /// The address behind it; as `start`, if the line begins there without code of its own.
    pub end: Option<VirtualAddress>,
    /// File name of the module it belongs to.
    pub module: Option<Name>,
    /// The symbol it lies in.
    pub symbol: Option<SymbolBrief>,
    /// Source file, with its whole path as far as the compiler told it.
    pub file: Option<Name>,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Column, from 1.
    pub column: Option<u64>,
    /// Of a line: whether this is its first statement in its function, or in this copy of an inlined one, where a debugger would stop; or
    /// its first code there, if it has no statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<bool>,
    /// The function, and those that it was inlined into, the innermost first; the first has the place above.
    pub frames: Vec<LineFrame>,
    /// Why fields are `None`, or `frames` are not all.
    pub why: Why,
}

/// A function around an address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LineFrame {
    /// Demangled name.
    pub function: Option<Name>,
    /// Source file.
    pub file: Option<Name>,
    /// Line of the address, or of the call of the function before.
    pub line: Option<u64>,
    /// Column of it.
    pub column: Option<u64>,
    /// Whether it was inlined into the next.
    pub inlined: bool,
    /// Why fields are `None`.
    #[serde(skip_serializing_if = "Why::is_empty")]
    pub why: Why,
}
