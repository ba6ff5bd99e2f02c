//! A symbol with its address in the process.

use super::Kind;
use super::demangle::{plt_got_suffix, readable};
use crate::kernel::{Name, VirtualAddress};

/// A symbol, placed in the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolAt {
    /// As the file spells it; [`SymbolAt::name`] is for people.
    pub mangled: Name,
    /// Where it starts in the process.
    pub start: VirtualAddress,
    /// Bytes; 0 where the file gives none.
    pub size: u64,
    /// The distance of the queried address from its start; 0 for a query by name.
    pub offset: u64,
    /// What it names.
    pub kind: Kind,
    /// Whether it is visible in its file only: a static.
    pub local: bool,
    /// The ELF section it lies in.
    pub section: Option<Name>,
    /// The module that defines it, by its whole name in `maps`.
    pub module: Name,
    /// Where it starts in the file's own numbers, as objdump shows them.
    pub file_address: VirtualAddress,
}

impl SymbolAt {
    /// The name for people: demangled at each call, without hash and without a default version.
    pub fn name(&self) -> Name {
        readable(&self.mangled)
    }

    /// Whether it is only a stub or slot for an imported function: `malloc@plt`, `malloc@got.plt`. Each file has its
    /// own.
    pub fn is_plt_or_got(&self) -> bool {
        self.local && plt_got_suffix(self.mangled.as_bytes()).is_some()
    }
}
