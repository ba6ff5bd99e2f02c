//! Resolves bare names: first as a symbol, then as a region or module; and suggests similar names.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::{Origin, Spans, Value};
use crate::hint;
use crate::kernel::text::unescape;
use crate::kernel::words::Worded;
use crate::kernel::{AddressRange, Device, Name, Region};
use crate::lang::{self, Expression, Function, Span, Spanned, listed, spelling};
use crate::process;
use crate::symbol::SymbolAt;

/// Regions whose names need no brackets.
pub(crate) const UNBRACKETED: [&str; 2] = ["heap", "stack"];

/// The object that a name means.
pub(super) enum NamedThing {
    /// A symbol.
    Symbol(Box<SymbolAt>),
    /// A region, or the regions of a module.
    Range(Spans),
}

impl From<SymbolAt> for NamedThing {
    fn from(symbol: SymbolAt) -> Self {
        NamedThing::Symbol(Box::new(symbol))
    }
}

/// Returns the bytes of a symbol; `None` if its file does not have the size.
pub(super) fn spans_of(symbol: &SymbolAt) -> Option<Spans> {
    let range = AddressRange::of_length(symbol.start, symbol.size)?;
    Some(Spans::one(range, Origin::Symbol(symbol.name())))
}

impl NamedThing {
    /// Converts it to a value: a symbol is its address, which keeps its bytes.
    pub(super) fn value(self) -> Value {
        match self {
            NamedThing::Symbol(symbol) => spans_of(&symbol).map_or(Value::Address(symbol.start), Value::Symbol),
            NamedThing::Range(spans) => Value::Range(spans),
        }
    }
}

/// The regions of one mapped object, in address order and at least one: those of a file, or all with a name like
/// `[heap]`.
pub(super) struct NamedMapping<'a> {
    first: &'a Region,
    pub(super) regions: Vec<&'a Region>,
}

impl NamedMapping<'_> {
    /// Returns all its addresses.
    pub(super) fn spans(&self, at: Span) -> Result<Spans> {
        let name = self.first.name.clone();
        let origin = if self.first.inode != 0 { Origin::Module(name) } else { Origin::Region(name) };
        Spans::new(self.regions.iter().map(|region| region.range), origin)
            .ok_or_else(|| Error::new(at, "nothing is mapped under this name"))
    }
}

/// Returns the key that is equal for regions of the same object.
fn identity(region: &Region) -> (Device, u64, &Name) {
    (region.device, region.inode, &region.name)
}

/// Returns whether `name` selects the region: it is one of its names, or one as displayed. `printed` is the name
/// without the escapes of a displayed one.
fn is_called(region: &Region, name: &str, printed: &[u8]) -> bool {
    let is_it = |one: Name| [name.as_bytes(), printed].contains(&one.as_bytes());
    !region.name.is_empty() && region.names().any(is_it)
}

/// Returns all mapped objects with this name, by first address.
pub(super) fn mappings_called<'a>(regions: &'a [Region], name: &str) -> Vec<NamedMapping<'a>> {
    let mut mappings: Vec<NamedMapping<'a>> = Vec::new();
    let printed = unescape(name);
    for region in regions.iter().filter(|region| is_called(region, name, &printed)) {
        let is_of = |mapping: &&mut NamedMapping| identity(mapping.first) == identity(region);
        match mappings.iter_mut().find(is_of) {
            Some(mapping) => mapping.regions.push(region),
            None => mappings.push(NamedMapping { first: region, regions: vec![region] }),
        }
    }
    mappings
}

/// Returns what follows a word that begins a clause.
fn operand_of_clause(word: &str) -> Option<&'static str> {
    Some(match word {
        "of" => "the name of a process, or a PID",
        "by" => "a key, such as `region`",
        "with" => "a word, such as `heap`",
        "top" | "limit" => "a number",
        "from" => "a capture",
        "every" | "for" => "a time, such as 1s",
        "where" | "until" => "a condition, such as `dirty`",
        "in" => "a range",
        "to" => "a name",
        _ => return None,
    })
}

impl Evaluator<'_> {
    /// Returns the object that the expression names, if it is only a name.
    pub(super) fn resolve_name(&self, expression: &Expression, at: Span) -> Result<Option<NamedThing>> {
        match expression {
            Expression::Name(name) => self.name(name, at).map(Some),
            Expression::ModuleSymbol { module, symbol } => self.module_symbol(module, symbol).map(Some),
            _ => Ok(None),
        }
    }

    /// Resolves `main`, `libc.so.6`, `heap`: first as a symbol, then as a mapped object.
    pub(super) fn name(&self, name: &lang::WrittenName, at: Span) -> Result<NamedThing> {
        let name = &name.0;
        let symbols = self.symbols_called(name, at);
        match symbols {
            Ok(found) if !found.is_empty() => {
                let symbol = self.one(name, found, at)?;
                self.note_region_of_name(name, &symbol, at);
                return Ok(symbol.into());
            }
            Err(error) if error.cause.is_some() || self.scope.target().is_none() => {
                return Err(without_target(error, name));
            }
            _ => {}
        }
        if let Some(mapping) = self.mapping(name, at)? {
            return self.with_bss(mapping.spans(at)?, at).map(NamedThing::Range);
        }
        if UNBRACKETED.contains(&name.as_str()) {
            return self.bracketed(name, at).map(NamedThing::Range);
        }
        // A thread-local symbol has no address, but is probably meant.
        symbols.and_then(|_| Err(self.no_such_name(name, at)))
    }

    /// Notes how to write the region, if `heap` or `stack` is a symbol of a library.
    fn note_region_of_name(&self, name: &str, symbol: &SymbolAt, at: Span) {
        let executable = self.scope.target().and_then(|target| target.process.executable());
        if UNBRACKETED.contains(&name)
            && executable.as_ref() != Some(&symbol.module)
            && self.bracketed(name, at).is_ok()
        {
            let module = symbol.module.file_name();
            self.scope.note(format!("`{name}` is a symbol of {module} here; the region is `[{name}]`"));
        }
    }

    fn no_such_name(&self, name: &str, at: Span) -> Error {
        if let Some(operand) = operand_of_clause(name) {
            return Error::new(at, format!("`{name}` needs {operand}"));
        }
        let error = Error::new(at, format!("no symbol, region or module is called `{name}`")).of_unknown_name();
        if looks_hexadecimal(name) {
            return error.hint(hexadecimal_hint(name));
        }
        if looks_like_file(name) {
            return error.hint(format!("the path of a file begins with / ./ ../ ~/ or a quote: `> ./{name}`"));
        }
        if let Some(error) = self.member(name, at) {
            return error;
        }
        if name == "all" {
            return error.hint("`all` is a range, not an address: `walk all`, `print count(all)`");
        }
        if name == "frames" {
            return error.hint("`walk pfn:A..pfn:B` lists frames, and `summary frames` counts those of the machine");
        }
        if let Some(function) = Function::from_word(name).filter(|one| one.takes_filter()) {
            return error.hint(format!("`{}` is a function of a range: `{0}(all)`", function.name()));
        }
        let mut near = self.similar_mappings(name);
        // A region whose name contains the whole word is more likely than a symbol whose name does not.
        if lang::with_word(name, near.iter()).is_empty() {
            near.extend(self.similar_symbols(None, name));
        }
        let condition = hint::as_value(name).filter(|_| near.is_empty());
        let hints: Vec<String> = condition.into_iter().chain(self.why_unknown(None, name, near)).collect();
        let hint = (!hints.is_empty()).then(|| hints.join("; "));
        let is_process = || process::processes_called(name).is_ok_and(|found| !found.is_empty());
        let hint = hint.or_else(|| is_process().then(|| format!("`{name}` is a process: `attach {name}`")));
        let elsewhere = "`regions` lists the mapped regions; local variables, constants and types are only in gdb";
        error.hint(hint.unwrap_or_else(|| elsewhere.to_owned()))
    }

    /// Returns the error of `ring.base`, if `ring` is a symbol: in C it is the member of a structure.
    pub(super) fn member(&self, name: &str, at: Span) -> Option<Error> {
        let is_symbol = |name: &str| self.symbols_called(name, at).is_ok_and(|found| !found.is_empty());
        let mut dots = name.rmatch_indices('.').map(|(dot, _)| name.get(..dot).unwrap_or_default());
        let structure = dots.find(|structure| is_symbol(structure))?;
        let message = format!("no symbol is called `{name}`, and the members of `{structure}` are not known");
        let spelled = lang::WrittenName(structure.to_owned());
        let variable = Spanned::new(Expression::Name(spelled.clone()), at);
        let is_pointer = self.mapped_pointer(&variable).is_some();
        let hint = hint::member_of(&format!("{}{spelled}", if is_pointer { '*' } else { '&' }));
        Some(Error::new(at, message).hint(hint))
    }

    /// Returns the mapped object with this name, `None` if there is none. Fails if there are several.
    pub(super) fn mapping(&self, name: &str, at: Span) -> Result<Option<NamedMapping<'_>>> {
        let what = format!("looking up `{name}`");
        // All names without brackets are those of files.
        let regions = if name.starts_with('[') { self.regions(at, &what) } else { self.module_regions(at, &what) };
        let mut mappings = mappings_called(regions?, name);
        if mappings.len() > 1 {
            let list = list(mappings.iter().map(|mapping| {
                let Region { name, range, .. } = mapping.first;
                format!("{} at {}", spelling(&name.to_string()), range.start())
            }));
            return Err(Error::new(at, format!("several files called `{name}` are mapped: {list}"))
                .hint("write the whole path in 'single quotes', or `region(ADDRESS)`"));
        }
        Ok(mappings.pop())
    }

    /// Makes the error of a name before `!` or `[N]` that is not mapped.
    pub(super) fn unknown_module(&self, module: &Spanned<lang::WrittenName>) -> Error {
        let name = &module.node.0;
        let error = Error::new(module.at, format!("no module is called `{name}`"));
        self.did_you_mean_mapping(error, name)
    }

    /// Evaluates `libc.so.6[2]`.
    pub(super) fn module_region(&self, module: &Spanned<lang::WrittenName>, index: &Spanned<u64>) -> Result<Value> {
        let mapping = self.mapping(&module.node.0, module.at)?.ok_or_else(|| {
            self.no_element(module, index.node).unwrap_or_else(|| self.neither_module_nor_array(module, index.node))
        })?;
        let regions = mapping.regions.len();
        let region =
            usize::try_from(index.node).ok().and_then(|index| mapping.regions.get(index)).ok_or_else(|| {
                let name = &module.node.0;
                let message = match regions {
                    1 => format!("`{name}` has one region: [0]"),
                    _ => format!("`{name}` has {regions} regions: [0] to [{}]", regions - 1),
                };
                Error::new(index.at, message)
            })?;
        let origin = Origin::Region(region.name.clone());
        Ok(Value::Range(Spans::one(region.range, origin)))
    }

    /// Returns the error of `table[3]`, if `table` is a symbol: in C it is an element of an array.
    fn no_element(&self, symbol: &Spanned<lang::WrittenName>, index: u64) -> Option<Error> {
        let name = &symbol.node.0;
        let found = self.symbols_called(name, symbol.at).ok()?;
        found.first()?;
        let message = format!("`{name}` is a symbol; the type and the size of its elements are unknown");
        let name = symbol.node.to_string();
        let first = hint::pointer_to("int", &name);
        let element = format!("its address is `{first} + {index}`, and its value `({first})[{index}]`");
        let mut hint = format!("if an element is an int, {element}");
        let is_pointer = self.mapped_pointer(&Spanned::new(Expression::Name(symbol.node.clone()), symbol.at)).is_some();
        if !is_pointer && found.iter().any(|one| self.is_like_pointer(one)) {
            hint.push_str(&format!("; if `{name}` is an array, write `&{name}` for `{name}`"));
        }
        Some(Error::new(symbol.at, message).hint(hint))
    }

    /// Makes the error of `table[3]`, if `table` is neither a module nor an array.
    fn neither_module_nor_array(&self, name: &Spanned<lang::WrittenName>, index: u64) -> Error {
        let text = &name.node.0;
        if let Some(error) = self.member(text, name.at) {
            return error;
        }
        let error = Error::new(name.at, format!("no module or symbol is called `{text}`"));
        let mut near = self.similar_mappings(text);
        near.extend(self.similar_symbols(None, text));
        match near {
            near if near.is_empty() => error.hint(format!(
                "`MODULE[N]` is a region of a module; an element of an array of int is `((int *)NAME)[{index}]`"
            )),
            near => error.hint(did_you_mean(near)),
        }
    }

    /// Evaluates `[heap]`; `name` has no brackets.
    pub(super) fn bracketed(&self, name: &str, at: Span) -> Result<Spans> {
        let bracketed = format!("[{name}]");
        let target = self.target(at, &format!("looking up `{bracketed}`"))?;
        let queried = target.process.query_regions_called(&bracketed).map_err(|cause| Error::target(at, cause))?;
        if let Some(regions) = queried {
            let ranges = regions.iter().map(|region| region.range);
            let spans = Spans::new(ranges, Origin::Region(Name::from(&*bracketed)));
            return spans.ok_or_else(|| Error::new(at, "nothing is mapped under this name"));
        }
        match self.mapping(&bracketed, at)? {
            Some(mapping) => mapping.spans(at),
            None => {
                let error = Error::new(at, format!("no region is called `{bracketed}`"));
                Err(self.did_you_mean_mapping(error, &bracketed))
            }
        }
    }

    /// Adds the mapped objects with similar names to an error.
    pub(super) fn did_you_mean_mapping(&self, error: Error, name: &str) -> Error {
        let near = self.similar_mappings(name);
        if near.is_empty() { error.hint("`regions` lists the mapped regions") } else { error.hint(did_you_mean(near)) }
    }

    /// Returns the names of mapped objects that contain this word, or otherwise are similar to it or begin with it, if
    /// regions can be read.
    pub(super) fn similar_mappings(&self, name: &str) -> Vec<String> {
        let regions = self.regions(Span::default(), "").unwrap_or_default();
        let names = regions.iter().map(|region| region.name.file_name().to_string());
        let mut near = lang::with_word(name, names.clone());
        if near.is_empty() {
            near = lang::near(name, names.clone());
        }
        if near.is_empty() && name.len() > 1 {
            near = names.filter(|one| one.starts_with(name)).collect();
            near.dedup();
            near.truncate(1);
        }
        near
    }
}

/// Adds a hint to the error of a name like `face`, which without a target is more likely a number than a symbol.
fn without_target(error: Error, name: &str) -> Error {
    if looks_hexadecimal(name) { error.hint(hexadecimal_hint(name)) } else { error }
}

fn hexadecimal_hint(name: &str) -> String {
    format!("write a hexadecimal number as `0x{name}`")
}

/// The most items of a list that are shown.
const SHOWN: usize = 8;

/// Returns whether a word looks like a hexadecimal number without `0x`.
pub(super) fn looks_hexadecimal(word: &str) -> bool {
    word.len() >= 3 && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// Returns whether a word looks like the name of an output file.
pub(super) fn looks_like_file(word: &str) -> bool {
    const ENDINGS: [&str; 6] = ["svg", "txt", "json", "csv", "log", "out"];
    let ending = word.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Makes the question for one of these names, each as it has to be typed.
pub(super) fn did_you_mean(names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", spelling(&name))).collect();
    format!("did you mean {}?", listed(&names, "or"))
}

/// Joins the items with commas, and cuts the list after some.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    let mut items: Vec<String> = items.into_iter().collect();
    let left = items.len().saturating_sub(SHOWN);
    items.truncate(SHOWN);
    match left {
        0 => items.join(", "),
        _ => format!("{} and {left} more", items.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_can_be_typed() {
        assert_eq!(spelling("libc.so.6"), "libc.so.6");
        assert_eq!(spelling("a::b"), "a::b");
        assert_eq!(spelling("[anon: a b]"), "[anon: a b]");
        assert_eq!(spelling("ld-linux-x86-64.so.2"), "'ld-linux-x86-64.so.2'");
        assert_eq!(spelling("it's"), "'it\\'s'");
        assert_eq!(spelling("a..b"), "'a..b'");
    }

    #[test]
    fn a_hexadecimal_word() {
        assert!(looks_hexadecimal("deadbeef"));
        assert!(!looks_hexadecimal("decade_"));
    }
}
