//! The names of the target's JIT-compiled code.

use super::perf_map::{PerfMap, RefusedPerfMap, is_jit_region};
use super::target_symbols::TargetSymbols;
use super::{NoSymbols, SymbolAt};
use crate::budget::OutOfBudget;
use crate::kernel::{Name, VirtualAddress};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The target's list of its JIT-compiled code.
#[derive(Clone, Debug)]
pub struct JitSurvey {
    /// The path of the list in the target's root.
    pub name: Name,
    /// The start of the first function; or, if none are known, of the memory that may contain such code.
    pub start: VirtualAddress,
    /// The end of the last function, or of that memory.
    pub end: VirtualAddress,
    /// The number of functions in the list whose code exists, or why it is unknown.
    pub functions: Result<u64, NoSymbols>,
    /// Whether only the end of the list was read, so that older functions are unknown.
    pub is_cut: bool,
}

fn end(function: &SymbolAt) -> VirtualAddress {
    let end = function.start.checked_add(function.size);
    end.unwrap_or(function.start)
}

impl TargetSymbols<'_> {
    /// Returns the target's list, read when this command first needed it.
    fn perf_map_read(&self) -> Result<Option<&PerfMap>, OutOfBudget> {
        Ok(self.perf_map_or_refusal()?.and_then(|read| read.as_deref().ok()))
    }

    fn perf_map_or_refusal(&self) -> Result<Option<&Result<Arc<PerfMap>, RefusedPerfMap>>, OutOfBudget> {
        let read = || self.symbols.perf_map(self.target);
        self.perf_map.get_or_init(read).as_ref().map(Option::as_ref).map_err(|over| *over)
    }

    fn is_jit_at(&self, address: VirtualAddress) -> bool {
        let region = self.region_number(address);
        region.and_then(|number| self.region(number)).is_some_and(is_jit_region)
    }

    /// Returns how many bytes from `address` on, within its region, certainly have no symbol, without a look-up; 0 if
    /// the first may have one.
    pub fn unnamed_bytes(&self, address: VirtualAddress) -> u64 {
        if self.module_at(address).is_some() {
            return 0;
        }
        if self.lacks_regions() {
            return 0;
        }
        let map = if self.is_jit_at(address) { self.perf_map_read() } else { Ok(None) };
        map.map_or(0, |map| map.map_or(u64::MAX, |map| map.bytes_before_next(address)))
    }

    /// Returns the JIT-compiled function at `address`.
    pub(super) fn jit_symbol_at(&self, address: VirtualAddress) -> Option<SymbolAt> {
        if self.is_jit_at(address) { self.perf_map_read().ok()??.at(address) } else { None }
    }

    /// Returns whether `module` is a name of the list.
    pub(super) fn is_perf_map_name(&self, module: &str) -> Result<bool, OutOfBudget> {
        Ok(self.perf_map_read()?.is_some_and(|map| map.is_called(module)))
    }

    /// Returns all JIT-compiled functions in memory that may contain code.
    pub(super) fn jit_functions(&self) -> Result<impl Iterator<Item = SymbolAt>, OutOfBudget> {
        let symbols = self.perf_map_read()?.into_iter().flat_map(PerfMap::symbols);
        Ok(symbols.filter(|one| self.is_jit_at(one.start)))
    }

    /// Returns a summary of the list, if it is used and has functions that exist now; or, if there is memory that may
    /// contain JIT-compiled code, why it is not read.
    ///
    /// # Errors
    /// Fails if reading the list was given up.
    pub fn jit_survey(&self) -> Result<Option<JitSurvey>, OutOfBudget> {
        if let Some(Err(refused)) = self.perf_map_or_refusal()? {
            let mut places = self.regions().filter(|region| is_jit_region(region));
            let first = places.next().map(|first| first.range);
            return Ok(first.map(|first| JitSurvey {
                name: refused.path.clone(),
                start: first.start(),
                end: places.next_back().map_or(first, |last| last.range).end(),
                functions: Err(refused.why.clone()),
                is_cut: false,
            }));
        }
        let mut functions = self.jit_functions()?;
        let Some(first) = functions.next() else {
            return Ok(None);
        };
        let (mut start, mut last, mut count) = (first.start, end(&first), 1);
        let mut budget = self.symbols.budget();
        for function in functions {
            budget.go_on()?;
            start = start.min(function.start);
            last = last.max(end(&function));
            count += 1;
        }
        let is_cut = self.perf_map_read()?.is_some_and(PerfMap::is_cut);
        Ok(Some(JitSurvey { name: first.module, start, end: last, functions: Ok(count), is_cut }))
    }

    /// Returns the functions with this name.
    pub(super) fn jit_symbols_called(&self, name: &str) -> Result<Vec<SymbolAt>, OutOfBudget> {
        let is_it = |symbol: &SymbolAt| {
            symbol.mangled.as_bytes() == name.as_bytes()
                || symbol.name().as_bytes() == name.as_bytes()
                || symbol.mangled.escaped() == name
        };
        let mut found = Vec::new();
        let mut budget = self.symbols.budget();
        for symbol in self.jit_functions()? {
            budget.go_on()?;
            found.extend(Some(symbol).filter(is_it));
        }
        Ok(found)
    }

    /// Adds the names that begin with `prefix`.
    pub(super) fn complete_jit(&self, prefix: &str, limit: usize, found: &mut BTreeSet<Name>) {
        for symbol in self.jit_functions().into_iter().flatten() {
            if found.len() >= limit {
                break;
            }
            if symbol.mangled.as_bytes().starts_with(prefix.as_bytes()) {
                found.insert(symbol.mangled);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::process::fake::Fake;
    use crate::symbol::{Error, NamesIn, Symbols};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn reading_the_list_can_be_interrupted() {
        let lines: String = (0..1000).map(|number| format!("{:x} 1 name_{number}\n", 0x10_0000 + number)).collect();
        let fake = Fake::new().region(0x10_0000, 0x10_1000, "r-xp", 0, "");
        let target = fake.file("/tmp/perf-4321.map", lines.into_bytes()).target();
        let regions = target.process.regions().expect("its regions");
        let pressed = Arc::new(AtomicBool::new(true));
        let symbols = Symbols::with_budget(Budget::until(Arc::clone(&pressed)));
        symbols.use_perf_maps(true);
        let address = VirtualAddress::new(0x10_0000);
        let view = symbols.over(&target, &regions);
        assert!(matches!(view.find(None, "name_0"), Err(Error::Interrupted { .. })));
        assert!(matches!(view.find(Some("perf-4321.map"), "name_0"), Err(Error::Interrupted { .. })));
        assert!(view.jit_survey().is_err());
        assert_eq!(view.unnamed_bytes(address), 0, "it may have a name");
        pressed.store(false, Ordering::Relaxed);
        assert!(symbols.over(&target, &regions).at(address).is_some(), "the next command reads it");
    }

    #[test]
    fn names_are_of_anonymous_memory_that_may_be_executed() {
        let target = Fake::new()
            .region(0x10_0000, 0x10_1000, "r-xp", 0, "")
            .region(0x20_0000, 0x20_1000, "rw-p", 0, "")
            .region(0x30_0000, 0x30_1000, "r-xp", 0, "[anon:code]")
            .region(0x40_0000, 0x40_1000, "r-xp", 9, "/tmp/other")
            .file(
                "/tmp/perf-4321.map",
                b"100010 20 one\n200010 20 data\n300010 20 two\n300040 8 e\x1b\xff\n400010 20 mapped\n500010 20 nowhere\n"
                    .to_vec(),
            )
            .target();
        let regions = target.process.regions().expect("its regions");
        let symbols = Symbols::default();
        let at = |address| {
            let found = symbols.over(&target, &regions).at(VirtualAddress::new(address));
            found.map(|one| format!("{}+{} {}", one.name(), one.offset, one.module))
        };
        assert_eq!(at(0x10_0014), None, "only if perf maps are used");
        symbols.use_perf_maps(true);
        assert_eq!(at(0x10_0014).as_deref(), Some("one+4 /tmp/perf-4321.map"));
        assert_eq!(at(0x30_0010).as_deref(), Some("two+0 /tmp/perf-4321.map"));
        let unnamed = |address| symbols.over(&target, &regions).unnamed_bytes(VirtualAddress::new(address));
        assert_eq!(unnamed(0x30_0000), 0x10, "up to the next function");
        assert_eq!(unnamed(0x30_0014), 0);
        assert_eq!(unnamed(0x30_0048), 0x10_0000 - 0x38, "no look-up beyond the last function");
        assert_eq!(unnamed(0x20_0010), u64::MAX, "no code is there");
        for elsewhere in [0x10_0000, 0x20_0010, 0x40_0010, 0x50_0010] {
            assert_eq!(at(elsewhere), None, "{elsewhere:#x}");
        }
        let view = symbols.over(&target, &regions);
        let find = |module, name| {
            let found = view.find(module, name);
            let starts = found.map(|found| found.iter().map(|one| one.start.get()).collect());
            starts.unwrap_or_else(|_| vec![0])
        };
        assert_eq!(find(None, "two"), [0x30_0010]);
        assert_eq!(find(Some("perf-4321.map"), "two"), [0x30_0010]);
        assert_eq!(find(None, "e\\x1b\\xff"), [0x30_0040], "as displayed");
        assert_eq!(find(Some("other"), "two"), [0]);
        assert!(find(None, "data").is_empty());
        let survey = view.jit_survey().expect("no limit").expect("a list");
        let range = (survey.start.get(), survey.end.get());
        assert_eq!(range, (0x10_0010, 0x30_0048));
        assert!(matches!(survey.functions, Ok(3)));
        let second = std::time::Duration::from_secs(60);
        assert_eq!(view.names(NamesIn::Program, "t", 10, second), [Name::from("two")]);
        symbols.use_perf_maps(false);
        assert_eq!(at(0x10_0014), None);
    }
}
