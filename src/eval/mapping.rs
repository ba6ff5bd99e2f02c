//! Names of what is mapped: regions in brackets, files by path or file name.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Origin, Spans, Value, suggest};
use crate::kernel::{Device, Name, Region};
use crate::lang::{self, Span, Spanned};

/// The regions of one mapped thing, in address order and never empty: a file, or all that bears a name like `[heap]`.
pub(super) struct Mapping<'a> {
    first: &'a Region,
    pub(super) regions: Vec<&'a Region>,
}

impl Mapping<'_> {
    /// All of it.
    pub(super) fn spans(&self, at: Span) -> Result<Spans> {
        let name = self.first.name.clone();
        let origin = if self.first.inode != 0 { Origin::Module(name) } else { Origin::Region(name) };
        Spans::new(self.regions.iter().map(|region| region.range), origin)
            .ok_or_else(|| Error::new(at, "nothing is mapped under this name"))
    }
}

/// Regions with the same identity belong together.
fn identity(region: &Region) -> (Device, u64, &Name) {
    (region.device, region.inode, &region.name)
}

/// Whether `name` means the region: it is one of its names, or one as displayed.
fn is_called(region: &Region, name: &str) -> bool {
    let is_it = |one: Name| one.as_bytes() == name.as_bytes() || one.to_string() == name;
    !region.name.is_empty() && region.names().any(is_it)
}

/// Every mapping with that name, by first address.
pub(super) fn called<'a>(regions: &'a [Region], name: &str) -> Vec<Mapping<'a>> {
    let mut found: Vec<Mapping<'a>> = Vec::new();
    for region in regions.iter().filter(|region| is_called(region, name)) {
        let is_of = |mapping: &&mut Mapping| identity(mapping.first) == identity(region);
        match found.iter_mut().find(is_of) {
            Some(mapping) => mapping.regions.push(region),
            None => found.push(Mapping { first: region, regions: vec![region] }),
        }
    }
    found
}

impl Evaluator<'_> {
    /// The one mapping with that name, `None` if there is none; several are an error.
    pub(super) fn mapping(&self, name: &str, at: Span) -> Result<Option<Mapping<'_>>> {
        let mut found = called(self.regions(at, &format!("looking up '{name}'"))?, name);
        if found.len() > 1 {
            let list = suggest::list(found.iter().map(|mapping| {
                let Region { name, range, .. } = mapping.first;
                format!("'{name}' at {}", range.start())
            }));
            return Err(Error::new(at, format!("several files called '{name}' are mapped: {list}"))
                .hint("write the whole path in 'single quotes', or region(ADDRESS)"));
        }
        Ok(found.pop())
    }

    /// An error for a name before `!` or `[N]` that is not mapped.
    pub(super) fn unknown_module(&self, module: &Spanned<lang::Name>) -> Error {
        let name = &module.node.0;
        let error = Error::new(module.at, format!("no module is called '{name}'"));
        self.did_you_mean_mapping(error, name)
    }

    /// `libc.so.6[2]`
    pub(super) fn module_region(&self, module: &Spanned<lang::Name>, index: &Spanned<u64>) -> Result<Value> {
        let mapping = self.mapping(&module.node.0, module.at)?.ok_or_else(|| {
            self.no_element(module, index.node).unwrap_or_else(|| self.neither_module_nor_array(module, index.node))
        })?;
        let regions = mapping.regions.len();
        let region =
            usize::try_from(index.node).ok().and_then(|index| mapping.regions.get(index)).ok_or_else(|| {
                let name = &module.node.0;
                let message = match regions {
                    1 => format!("'{name}' has one region: only [0] is there"),
                    _ => format!("'{name}' has {regions} regions: [0] to [{}]", regions - 1),
                };
                Error::new(index.at, message)
            })?;
        let origin = Origin::Region(region.name.clone());
        Ok(Value::Range(Spans::one(region.range, origin)))
    }

    /// `table[3]`, where `table` is a symbol: an element of an array in C.
    fn no_element(&self, symbol: &Spanned<lang::Name>, index: u64) -> Option<Error> {
        let name = &symbol.node.0;
        let found = self.symbols_called(name, symbol.at).ok()?;
        found.first()?;
        let message = format!("'{name}' is a symbol, and pmdb knows neither its type nor the size of its elements");
        let spelled = &symbol.node;
        Some(Error::new(symbol.at, message).hint(format!(
            "multiply the index by the element size: {spelled} + {index}*SIZE; a 4-byte element is i32({spelled} + {index}*4)"
        )))
    }

    /// `table[3]`, where nothing is called `table`.
    fn neither_module_nor_array(&self, name: &Spanned<lang::Name>, index: u64) -> Error {
        let (text, spelled) = (&name.node.0, &name.node);
        let error = Error::new(name.at, format!("no module or symbol is called '{text}'"));
        let mut near = self.similar_mappings(text);
        near.extend(self.similar_symbols(None, text));
        match near {
            near if near.is_empty() => error.hint(format!(
                "MODULE[N] is a region of a module; for an element of an array, write {spelled} + {index}*SIZE"
            )),
            near => error.hint(suggest::did_you_mean(near)),
        }
    }

    /// `[heap]`; the brackets are not part of `name`.
    pub(super) fn bracketed(&self, name: &str, at: Span) -> Result<Spans> {
        let bracketed = format!("[{name}]");
        match self.mapping(&bracketed, at)? {
            Some(mapping) => mapping.spans(at),
            None => {
                let error = Error::new(at, format!("no region is called {bracketed}"));
                Err(self.did_you_mean_mapping(error, &bracketed))
            }
        }
    }

    /// Adds what is mapped under a similar name.
    pub(super) fn did_you_mean_mapping(&self, error: Error, name: &str) -> Error {
        let near = self.similar_mappings(name);
        if near.is_empty() {
            error.hint("regions lists what is mapped")
        } else {
            error.hint(suggest::did_you_mean(near))
        }
    }

    /// What is mapped under a similar name, if regions can be had.
    pub(super) fn similar_mappings(&self, name: &str) -> Vec<String> {
        let regions = self.regions(Span::default(), "").unwrap_or_default();
        let names = regions.iter().map(|region| region.name.file_name().to_string());
        lang::near(name, names)
    }
}
