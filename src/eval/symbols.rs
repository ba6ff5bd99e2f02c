//! Symbols in expressions: `&name`, `libc.so.6!malloc`, `libc.so.6!0x1149`, `symbol(A)`.

use super::Value;
use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::names::Named;
use crate::kernel::VirtualAddress;
use crate::lang::{Name, Place, Spanned, SymbolName};

impl Evaluator<'_> {
    /// `libc.so.6!malloc`
    pub(super) fn module_symbol(
        &self,
        module: &Spanned<Name>,
        symbol: &Spanned<Name>,
    ) -> Result<Named> {
        self.module(module)?;
        Err(Error::new(symbol.at, "symbols cannot be read"))
    }

    /// `libc.so.6!0x1149`
    pub(super) fn module_address(
        &self,
        module: &Spanned<Name>,
        address: &Spanned<u64>,
    ) -> Result<Value> {
        self.module(module)?;
        Err(Error::new(address.at, "symbols cannot be read"))
    }

    /// `&name`
    pub(super) fn symbol_name(&self, symbol: &SymbolName) -> Result<Named> {
        Err(Error::new(symbol.symbol.at, "symbols cannot be read"))
    }

    /// `symbol(A)`
    pub(super) fn symbol_text(&self, address: VirtualAddress, at: Place) -> Result<Value> {
        Err(Error::new(at, format!("{address}: symbols cannot be read")))
    }
}
