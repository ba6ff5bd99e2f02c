//! What a bare name stands for: a symbol first, then a region or module.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Origin, Spans, Value, suggest};
use crate::kernel::{AddressRange, Name as Bytes, VirtualAddress};
use crate::lang::{self, Place};

/// What a name turned out to be.
pub(super) enum Named {
    /// A symbol.
    Symbol(NamedSymbol),
    /// A region, or the regions of a module.
    Range(Spans),
}

/// A symbol that a name stands for.
pub(super) struct NamedSymbol {
    /// Where it starts in the process.
    pub(super) address: VirtualAddress,
    /// Bytes; 0 when the file does not say.
    pub(super) size: u64,
    /// As it is displayed.
    pub(super) name: Bytes,
}

impl NamedSymbol {
    /// The bytes of a symbol with a size.
    pub(super) fn spans(&self) -> Option<Spans> {
        let end = self.address.checked_add(self.size)?;
        let range = AddressRange::new(self.address, end)?;
        Some(Spans::one(range, Origin::Symbol(self.name.clone())))
    }
}

impl Named {
    /// As a value: a symbol is its address.
    pub(super) fn value(self) -> Value {
        match self {
            Named::Symbol(symbol) => Value::Address(symbol.address),
            Named::Range(spans) => Value::Range(spans),
        }
    }
}

impl Evaluator<'_> {
    /// `main`, `libc.so.6`, `heap`
    pub(super) fn name(&self, name: &lang::Name, at: Place) -> Result<Named> {
        let name = &name.0;
        if let Some(mapping) = self.mapping(name, at)? {
            return mapping.spans(at).map(Named::Range);
        }
        if let "heap" | "stack" = name.as_str()
            && let Some(mapping) = self.mapping(&format!("[{name}]"), at)?
        {
            return mapping.spans(at).map(Named::Range);
        }
        Err(self.unknown(name, at))
    }

    fn unknown(&self, name: &str, at: Place) -> Error {
        let error = Error::new(
            at,
            format!("no symbol, region or module is called '{name}'"),
        );
        match suggest::looks_hexadecimal(name) {
            true => error.hint(format!("a hexadecimal number is written 0x{name}")),
            false => self.did_you_mean_mapping(error, name),
        }
    }
}
