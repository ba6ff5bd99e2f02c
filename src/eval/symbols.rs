//! Symbols in expressions, and lines of the source: `server.c:210`.

use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::names::{NamedThing, did_you_mean, list};
use super::{Origin, Spans, Value};
use crate::kernel::VirtualAddress;
use crate::lang::{Span, Spanned, SymbolName, WrittenName, spelling};
use crate::symbol::{self, LineSearch, Module, NamesIn, NoLines, NoSymbols, SymbolAt};
use std::time::Duration;

/// How long similar names are searched.
const SUGGESTION_BUDGET: Duration = Duration::from_millis(200);

/// The most names that are compared with an unknown one.
const MOST_COMPARED: usize = 4096;

impl Evaluator<'_> {
    /// Returns the names of the target with its current regions, to be searched by name.
    pub(super) fn names(&self, at: Span, what: &str) -> Result<symbol::TargetSymbols<'_>> {
        let target = self.target(at, what)?;
        let regions = self.module_regions(at, what)?;
        Ok(self.scope.symbols().over(target, regions))
    }

    /// Returns the names of the target, to be searched also by address.
    pub(super) fn names_by_address(&self, at: Span, what: &str) -> Result<symbol::TargetSymbols<'_>> {
        let target = self.target(at, what)?;
        let regions = self.regions(at, what)?;
        Ok(self.scope.symbols().over(target, regions))
    }

    /// Returns the range of a module, with the anonymous memory of its `.bss`.
    pub(super) fn with_bss(&self, spans: Spans, at: Span) -> Result<Spans> {
        let Origin::Module(name) = spans.origin() else {
            return Ok(spans);
        };
        let what = "reading a module";
        let memory = self.names(at, what)?.memory_of(name).map_err(|over| Error::target(at, over.into()))?;
        let mut ranges = spans.ranges().to_vec();
        for memory in memory {
            match self.few_regions_in(memory, at)? {
                Some(few) => ranges.extend(symbol::bss(memory, &few)),
                None => ranges.extend(symbol::bss(memory, self.regions(at, what)?)),
            }
        }
        Ok(Spans::new(ranges, spans.origin().clone()).unwrap_or(spans))
    }

    /// Evaluates `libc.so.6!malloc`.
    pub(super) fn module_symbol(
        &self,
        module: &Spanned<WrittenName>,
        symbol: &Spanned<WrittenName>,
    ) -> Result<NamedThing> {
        let found = self.symbols_in(module, symbol)?;
        self.one(&symbol.node.0, found, symbol.at).map(NamedThing::from)
    }

    /// Evaluates `libc.so.6!0x1149`.
    pub(super) fn module_address(&self, module: &Spanned<WrittenName>, address: &Spanned<u64>) -> Result<Value> {
        let name = &module.node.0;
        let found = self
            .names(module.at, &format!("looking up `{name}`"))?
            .address_in(name, address.node)
            .map_err(|cause| self.symbol_error(cause, module, address.at))?;
        match found.as_slice() {
            [one] => Ok(Value::Address(*one)),
            copies => {
                let listed = list(copies.iter().map(VirtualAddress::to_string));
                Err(Error::new(
                    module.at,
                    format!("`{name}` is mapped more than once; its {:#x} is at {listed}", address.node),
                )
                .hint("write the address itself"))
            }
        }
    }

    /// Returns the address of `&name` or `&module!name`.
    pub(super) fn symbol_address(&self, symbol: &SymbolName) -> Result<VirtualAddress> {
        let found = self.symbols(symbol)?;
        let written = &symbol.symbol;
        self.one(&written.node.0, found, written.at).map(|symbol| symbol.start)
    }

    /// Returns all symbols that the name selects: at least one.
    pub(super) fn symbols(&self, symbol: &SymbolName) -> Result<Vec<SymbolAt>> {
        if let Some(module) = &symbol.module {
            return self.symbols_in(module, &symbol.symbol);
        }
        let name = &symbol.symbol;
        let found = self.symbols_called(&name.node.0, name.at)?;
        if !found.is_empty() { Ok(found) } else { Err(self.unknown_symbol(None, name)) }
    }

    /// Returns the symbols with this name in all programs and libraries.
    pub(super) fn symbols_called(&self, name: &str, at: Span) -> Result<Vec<SymbolAt>> {
        self.names(at, &format!("looking up `{name}`"))?
            .find(None, name)
            .map_err(|cause| Error::new(at, cause.to_string()))
    }

    /// Returns the symbols with this name in one module: at least one.
    fn symbols_in(&self, module: &Spanned<WrittenName>, symbol: &Spanned<WrittenName>) -> Result<Vec<SymbolAt>> {
        let (of, name) = (&module.node.0, &symbol.node.0);
        let found = self
            .names(module.at, &format!("looking up `{of}!{name}`"))?
            .find(Some(of), name)
            .map_err(|cause| self.symbol_error(cause, module, symbol.at))?;
        if !found.is_empty() { Ok(found) } else { Err(self.unknown_symbol(Some(module), symbol)) }
    }

    /// Returns the symbol that a name selects. As in gdb, symbols of the executable come first, then exported ones,
    /// then the rest. A note lists those of lower rank. Several of the highest rank are an error that lists all.
    pub(super) fn one(&self, name: &str, mut found: Vec<SymbolAt>, at: Span) -> Result<SymbolAt> {
        found.sort_by_cached_key(|symbol| (symbol.start, symbol.is_local));
        found.dedup_by_key(|symbol| symbol.start);
        if found.len() > 1 {
            return self.prefer_program(name, &found, at);
        }
        found.pop().ok_or_else(|| Error::new(at, format!("no symbol is called `{name}`")))
    }

    fn prefer_program(&self, name: &str, found: &[SymbolAt], at: Span) -> Result<SymbolAt> {
        let program = self.target(at, name)?.process.executable();
        let rank = |symbol: &SymbolAt| (program.as_ref() != Some(&symbol.module), symbol.is_local);
        let best = found.iter().map(rank).min();
        let mut preferred = found.iter().filter(|symbol| Some(rank(symbol)) == best);
        let (Some(one), None) = (preferred.next(), preferred.next()) else {
            return Err(several(name, found, at));
        };
        // Each file has separate stubs and slots.
        if !one.is_plt_or_got() {
            let others = found.iter().filter(|symbol| symbol.start != one.start);
            let others = list(others.map(|symbol| spelled_in_module(symbol, name, found)));
            let chosen = spelled_in_module(one, name, found);
            self.scope.note(format!("`{name}` is {chosen} here; others of that name: {others}"));
        }
        Ok(one.clone())
    }

    /// Evaluates `symbol(A)`: the name, and the offset in it.
    pub(super) fn symbol_text(&self, address: VirtualAddress, at: Span) -> Result<Value> {
        let target = self.target(at, "finding the symbol of an address")?;
        let Some(symbol) = self.scope.symbols().on_demand(target).at(address) else {
            // Fails for a process that is gone, which has no symbols either.
            target.process.region_at(address).map_err(|cause| Error::target(at, cause))?;
            return Err(Error::new(at, format!("{address} is in no symbol"))
                .hint(format!("`region {address}` shows the region there")));
        };
        Ok(Value::Text(match symbol.offset {
            0 => symbol.name().to_string(),
            offset => format!("{}+{offset}", symbol.name()),
        }))
    }

    /// Returns which programs and libraries have no symbols, and why; `None` if all have some.
    pub(super) fn silent_modules(&self) -> Option<String> {
        let names = self.names(Span::default(), "").ok()?;
        // Memory that the kernel maps has few names.
        let is_file = |one: &&Module| one.is_executable() && !one.name.as_bytes().starts_with(b"[");
        let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
        for module in names.modules().iter().filter(is_file) {
            let reason = match names.reason(module) {
                // A file that is not a program has no names to miss.
                None | Some(NoSymbols::NotElf | NoSymbols::NotLoaded) => continue,
                Some(reason) => reason.to_string(),
            };
            let file = format!("`{}`", module.file_name());
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, files)) => files.push(file),
                None => by_reason.push((reason, vec![file])),
            }
        }
        let listed = list(by_reason.into_iter().map(|(reason, files)| format!("{}: {reason}", list(files))));
        (!listed.is_empty()).then(|| format!("some files gave no symbols: {listed}"))
    }

    /// Returns the sentence about an executable that was stripped of most names, if `asked` is the executable or no
    /// module.
    fn stripped_program(&self, asked: Option<&str>) -> Option<String> {
        let process = &self.scope.target()?.process;
        if process.capture_times().is_some() && !process.is_core() {
            return None;
        }
        let program = process.executable()?;
        let names = self.names(Span::default(), "").ok()?;
        let module = names.modules().iter().find(|module| module.name == program)?;
        let file = module.file_name();
        let message = if process.is_core() {
            format!(
                "only the exported names of `{file}` are in this core, and no debug file of its build-id is in /usr/lib/debug; for the addresses of others: `gdb PROGRAM CORE`"
            )
        } else {
            format!("`{file}` has no symbol table (stripped): only its imported and exported names are known")
        };
        let is_asked = asked.is_none_or(|asked| [file.to_string(), program.to_string()].iter().any(|one| one == asked));
        (is_asked && names.is_stripped(module)).then_some(message)
    }

    fn unknown_symbol(&self, module: Option<&Spanned<WrittenName>>, symbol: &Spanned<WrittenName>) -> Error {
        let name = &symbol.node.0;
        if let Some(error) = self.member(name, symbol.at).filter(|_| module.is_none()) {
            return error;
        }
        let error = Error::new(
            symbol.at,
            match module {
                Some(module) => format!("`{}` has no symbol called `{name}`", module.node.0),
                None => format!("no symbol is called `{name}`"),
            },
        );
        let of = module.map(|module| module.node.0.as_str());
        let near = self.similar_symbols(of, name);
        let hint = self.why_unknown(of, name, near);
        Error { hint, ..error }
    }

    /// Returns names similar to the unknown one, and a reason why it may be unknown. In a core most names are missing,
    /// so there the reason is more likely.
    pub(super) fn why_unknown(&self, module: Option<&str>, name: &str, near: Vec<String>) -> Option<String> {
        let is_core = self.scope.target().is_some_and(|target| target.process.is_core());
        // A word with which other names only begin is hardly misspelt.
        let is_whole = module.is_none() && near.iter().all(|other| other.starts_with(name));
        let guess = (!near.is_empty()).then(|| {
            let elsewhere = if is_whole { " (local variables are only in gdb)" } else { "" };
            did_you_mean(near) + elsewhere
        });
        let silent = || if module.is_none() { self.silent_modules() } else { None };
        let stripped = self.stripped_program(module);
        if is_core && let Some(reason) = stripped.clone().or_else(silent) {
            return Some(reason);
        }
        let parts: Vec<String> = guess.into_iter().chain(stripped).collect();
        if parts.is_empty() { silent() } else { Some(parts.join(" ")) }
    }

    /// Returns symbols with similar names, among those that begin like it. A budget limits the time of an error.
    pub(super) fn similar_symbols(&self, module: Option<&str>, name: &str) -> Vec<String> {
        let kept = name.chars().count().div_ceil(4).min(3);
        let beginning: String = name.chars().take(kept).collect();
        let Ok(symbols) = self.names(Span::default(), "") else {
            return Vec::new();
        };
        let near = |within| {
            let names = symbols.names(within, &beginning, MOST_COMPARED, SUGGESTION_BUDGET);
            crate::lang::near(name, names.iter().map(ToString::to_string))
        };
        match module.map(NamesIn::Module) {
            Some(module) => near(module),
            None => {
                Some(near(NamesIn::Program)).filter(|near| !near.is_empty()).unwrap_or_else(|| near(NamesIn::Libraries))
            }
        }
    }

    /// Converts an error of `symbol`, with its place in the line.
    fn symbol_error(&self, cause: symbol::Error, module: &Spanned<WrittenName>, inside: Span) -> Error {
        let message = cause.to_string();
        match cause {
            symbol::Error::NoSuchModule { .. } => self.unknown_module(module),
            symbol::Error::NoSymbols { reason: NoSymbols::Unreadable(below), .. } => {
                Error { message, ..Error::target(module.at, below) }
            }
            symbol::Error::NoSymbols { reason: NoSymbols::TooCostly, .. } => {
                Error::new(module.at, message).hint("name the module of the symbol: `MODULE!NAME`")
            }
            symbol::Error::NoSymbols { .. } => Error::new(module.at, message),
            symbol::Error::ThreadLocal { .. } | symbol::Error::Interrupted { .. } | symbol::Error::NotInFile { .. } => {
                Error::new(inside, message)
            }
        }
    }
}

/// Returns whether `is_rival` is true for another one of `found`.
fn has_rival(symbol: &SymbolAt, found: &[SymbolAt], is_rival: fn(&SymbolAt, &SymbolAt) -> bool) -> bool {
    let mut others = found.iter().filter(|other| other.start != symbol.start);
    others.any(|other| is_rival(symbol, other))
}

/// Returns `MODULE!NAME at ADDRESS`, with the spelling that selects only this one of `found`, if there is one.
fn spelled_in_module(symbol: &SymbolAt, name: &str, found: &[SymbolAt]) -> String {
    let module = if has_rival(symbol, found, is_of_a_namesake) {
        symbol.module.to_string()
    } else {
        symbol.module.file_name().to_string()
    };
    let whole = if has_rival(symbol, found, is_of_the_same) { spelled_out(symbol, found) } else { None };
    let name = whole.as_deref().unwrap_or(name);
    let (module, name) = (spelling(&module), spelling(name));
    format!("{module}!{name} at {}", symbol.start)
}

/// Makes the error of several symbols, each with the spelling that selects only it, if there is one.
fn several(name: &str, found: &[SymbolAt], at: Span) -> Error {
    let spelled = found.iter().map(|symbol| spelled_in_module(symbol, name, found));
    let listed = list(spelled);
    let error = Error::new(at, format!("several symbols are called `{name}`: {listed}"));
    let mut rivals = found.iter().filter(|symbol| has_rival(symbol, found, is_of_the_same));
    let Some(first) = rivals.next() else {
        return error.hint("name the module: `MODULE!NAME`");
    };
    let is_alone = |symbol| spelled_out(symbol, found).is_some();
    match spelled_out(first, found) {
        Some(whole) if rivals.all(is_alone) => {
            error.hint(format!("write the whole name, in quotes: {}", spelling(&whole)))
        }
        _ => error.hint("write the address itself: its module does not distinguish them"),
    }
}

/// Returns the spelling that no other symbol of its module has: with its parameters, or as in the file.
fn spelled_out(symbol: &SymbolAt, found: &[SymbolAt]) -> Option<String> {
    let others = || {
        let of_it = found.iter().filter(|other| is_of_the_same(symbol, other));
        of_it.filter(|other| other.start != symbol.start)
    };
    let name = symbol.name();
    if others().all(|other| other.name() != name) {
        return Some(name.to_string());
    }
    let is_alone = others().all(|other| other.mangled != symbol.mangled);
    is_alone.then(|| symbol.mangled.to_string())
}

fn is_of_the_same(symbol: &SymbolAt, other: &SymbolAt) -> bool {
    symbol.module == other.module
}

/// Returns whether the other symbol is of a different module with the same file name, so that only the whole path
/// distinguishes them.
fn is_of_a_namesake(symbol: &SymbolAt, other: &SymbolAt) -> bool {
    symbol.module != other.module && symbol.module.file_name() == other.module.file_name()
}

impl Evaluator<'_> {
    /// Returns the address of a source line. Several addresses are an error that lists them.
    pub(super) fn source_line(&self, file: &Spanned<WrittenName>, line: &Spanned<u64>) -> Result<Value> {
        let at = file.at.to(line.at);
        let found = self.line_search(file, line, 0)?;
        if found.line != Some(line.node) {
            return Err(no_code(file, line, &found));
        }
        let firsts = found.firsts();
        if let [one] = firsts[..] {
            return Ok(Value::Address(one));
        }
        let names = self.names_by_address(at, "naming the places of a line")?;
        let listed = list(firsts.iter().map(|&address| match names.at(address) {
            Some(symbol) => format!("{address} in {}", symbol.name()),
            None => address.to_string(),
        }));
        let place = format!("{}:{}", file.node, line.node);
        let message = format!("{place} has code at several places: {listed}");
        let hint = format!("write the address itself; `info line {place}` lists them");
        Err(Error::new(at, message).hint(hint))
    }

    /// Returns the places of code of a line: at least one. The first `with_frames` of a module have their functions.
    pub(super) fn line_search(
        &self,
        file: &Spanned<WrittenName>,
        line: &Spanned<u64>,
        with_frames: usize,
    ) -> Result<LineSearch> {
        let at = file.at.to(line.at);
        let what = format!("looking up {}:{}", file.node, line.node);
        let found = self
            .names(at, &what)?
            .find_line(&file.node.0, line.node, with_frames)
            .map_err(|_| Error::new(at, format!("{what}: stopped")))?;
        if !found.places.is_empty() { Ok(found) } else { Err(no_line(file, line, &found)) }
    }
}

fn no_code(file: &Spanned<WrittenName>, line: &Spanned<u64>, found: &LineSearch) -> Error {
    let place = file.at.to(line.at);
    let error = Error::new(place, format!("{}:{} has no code", file.node, line.node));
    match found.line {
        Some(next) => error.hint(format!("the next line with code is `{}:{next}`", file.node)),
        None => error,
    }
}

fn no_line(file: &Spanned<WrittenName>, line: &Spanned<u64>, found: &LineSearch) -> Error {
    let (name, number) = (&file.node, line.node);
    let error = if found.has_file {
        let message = format!("{name} has no code at or after line {number}");
        Error::new(line.at, message)
    } else {
        let message = format!("no module was compiled from a file called `{name}`");
        Error::new(file.at, message)
    };
    Error { hint: unsearched_modules(found), ..error }
}

/// Returns which modules could not be searched, and why.
fn unsearched_modules(found: &LineSearch) -> Option<String> {
    let without = found.unsearched.iter().filter(|(_, why)| matches!(why, NoLines::NoDebugInformation { .. }));
    // The images that the kernel maps are not compiled from a file of the program.
    let without: Vec<String> =
        without.map(|(module, _)| module.to_string()).filter(|module| !module.starts_with('[')).collect();
    let mut parts: Vec<String> = modules_without_lines(found).into_iter().collect();
    if !without.is_empty() {
        let listed = list(without);
        parts.push(format!("without debug information: {listed}"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns which modules have debug information that could not be searched for a line, and why.
pub fn modules_without_lines(found: &LineSearch) -> Option<String> {
    let unasked = found
        .unsearched
        .iter()
        .filter(|(_, why)| !matches!(why, NoLines::NoDebugInformation { .. } | NoLines::NoFile(_)));
    let parts: Vec<String> = unasked.map(|(module, why)| format!("{module}: {why}")).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
