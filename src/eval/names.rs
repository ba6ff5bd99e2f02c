//! What a bare name stands for: a symbol first, then a region or module.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Origin, Spans, Value, suggest};
use crate::kernel::AddressRange;
use crate::lang::{self, Expression, Span};
use crate::symbol::SymbolAt;

/// What a name turned out to be.
pub(super) enum Named {
    /// A symbol.
    Symbol(Box<SymbolAt>),
    /// A region, or the regions of a module.
    Range(Spans),
}

impl From<SymbolAt> for Named {
    fn from(symbol: SymbolAt) -> Self {
        Named::Symbol(Box::new(symbol))
    }
}

/// The bytes of a symbol; `None` when its file gives it no size.
pub(super) fn spans_of(symbol: &SymbolAt) -> Option<Spans> {
    let range = AddressRange::of_length(symbol.start, symbol.size)?;
    Some(Spans::one(range, Origin::Symbol(symbol.name())))
}

impl Named {
    /// As a value: a symbol is its address, which remembers its bytes.
    pub(super) fn value(self) -> Value {
        match self {
            Named::Symbol(symbol) => spans_of(&symbol).map_or(Value::Address(symbol.start), Value::Symbol),
            Named::Range(spans) => Value::Range(spans),
        }
    }
}

impl Evaluator<'_> {
    /// What the expression names, if it is nothing but a name.
    pub(super) fn named(&self, expression: &Expression, at: Span) -> Result<Option<Named>> {
        match expression {
            Expression::Name(name) => self.name(name, at).map(Some),
            Expression::ModuleSymbol { module, symbol } => self.module_symbol(module, symbol).map(Some),
            _ => Ok(None),
        }
    }
    /// `main`, `libc.so.6`, `heap`: a symbol first, then what is mapped.
    pub(super) fn name(&self, name: &lang::Name, at: Span) -> Result<Named> {
        let name = &name.0;
        let symbols = self.symbols_called(name, at);
        match symbols {
            Ok(found) if !found.is_empty() => return self.one(name, found, at).map(Named::from),
            Err(error) if error.cause.is_some() || self.scope.target().is_none() => {
                return Err(without_target(error, name));
            }
            _ => {}
        }
        if let Some(mapping) = self.mapping(name, at)? {
            return self.with_bss(mapping.spans(at)?, at).map(Named::Range);
        }
        if let "heap" | "stack" = name.as_str() {
            return self.bracketed(name, at).map(Named::Range);
        }
        // A thread-local symbol has no address, but it is what was meant.
        symbols.and_then(|_| Err(self.unknown(name, at)))
    }

    fn unknown(&self, name: &str, at: Span) -> Error {
        let error = Error::new(at, format!("no symbol, region or module is called '{name}'"));
        if suggest::looks_hexadecimal(name) {
            return error.hint(hexadecimal_hint(name));
        }
        if suggest::looks_like_file(name) {
            return error.hint(format!("a file's path begins with / ./ ../ ~/ or a quote: > ./{name}"));
        }
        let mut near = self.similar_mappings(name);
        near.extend(self.similar_symbols(None, name));
        let hint = if !near.is_empty() {
            suggest::did_you_mean(near)
        } else {
            let silent = || self.silent_modules().unwrap_or_else(|| "regions lists what is mapped".to_owned());
            lang::field::as_value(name).unwrap_or_else(silent)
        };
        error.hint(hint)
    }
}

/// `face` without a target is more likely a number than a symbol.
fn without_target(error: Error, name: &str) -> Error {
    if suggest::looks_hexadecimal(name) { error.hint(hexadecimal_hint(name)) } else { error }
}

fn hexadecimal_hint(name: &str) -> String {
    format!("a hexadecimal number is written 0x{name}")
}
