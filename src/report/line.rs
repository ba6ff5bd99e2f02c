//! Lines of the source.

use super::{SymbolBrief, Why};
use crate::kernel::{Name, VirtualAddress};
use serde::Serialize;

/// `info line`: the line of the source that an address was compiled from.
#[derive(Clone, Debug, Serialize)]
pub struct LineReport {
    /// The address.
    pub address: VirtualAddress,
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
    /// The function, and those that it was inlined into, the innermost first; the first has the place above.
    pub frames: Vec<LineFrame>,
    /// Why fields are `None`.
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
}
