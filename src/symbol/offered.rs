//! The names that a completion offers.

use super::demangle::{GOT, NameQuery, PLT};
use super::module_symbols::{LoadedModule, ModuleSymbols};
use super::{NoSymbols, SymbolKind, TargetSymbols};
use crate::budget::Budget;
use crate::kernel::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Where the names that are offered are defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamesIn<'a> {
    /// In the module of this name.
    Module(&'a str),
    /// In the program, and in the code that it makes while it runs.
    Program,
    /// In the libraries that it has loaded.
    Libraries,
}

impl TargetSymbols<'_> {
    /// Returns names that begin with `prefix`, in order and as they may be typed: at most `limit`, found in `time`.
    pub fn names(&self, within: NamesIn<'_>, prefix: &str, limit: usize, time: Duration) -> Vec<Name> {
        let mut budget = self.symbols.budget().within(time);
        let mut names = BTreeSet::new();
        for number in self.modules_with(within) {
            if names.len() >= limit || budget.look().is_err() {
                break;
            }
            if let Ok(LoadedModule { symbols, .. }) = self.loaded_module(number)
                && let Err(reason) = symbols.complete(prefix, limit, &mut budget, &mut names)
            {
                symbols.fail(reason);
            }
        }
        let is_jit = match within {
            NamesIn::Module(module) => self.is_perf_map_name(module).unwrap_or(false),
            NamesIn::Program => true,
            NamesIn::Libraries => false,
        };
        if is_jit {
            self.complete_jit(prefix, limit, &mut names);
        }
        names.into_iter().collect()
    }

    /// Returns the variables of the program with their sizes; none if there are more than `limit`, or if they are not
    /// found in `time`. Names of compilers, such as `__dso_handle` and `completed.0`, are left out.
    pub fn variables(&self, limit: usize, time: Duration) -> Vec<(Name, u64)> {
        let mut budget = self.symbols.budget().within(time);
        let mut variables = BTreeMap::new();
        for number in self.modules_with(NamesIn::Program) {
            let Ok(LoadedModule { symbols, .. }) = self.loaded_module(number) else {
                continue;
            };
            if symbols.variables(limit, &mut budget, &mut variables).is_err() || variables.len() > limit {
                return Vec::new();
            }
        }
        variables.into_iter().collect()
    }

    /// Returns the numbers of the modules with the names that are wanted.
    fn modules_with(&self, within: NamesIn<'_>) -> Vec<usize> {
        let called = if let NamesIn::Module(module) = within { Some(module) } else { None };
        let all: Vec<_> = self.modules_of_name(called).unwrap_or_default();
        let program = self.target.process.executable();
        let is_program = |(_, module): &&(usize, &super::Module)| program.as_ref() == Some(&module.name);
        // Without the name of the program, the lowest addresses are mostly its own.
        let own = all.iter().find(is_program).or(all.first()).map(|(number, _)| *number);
        let numbers = all.iter().map(|(number, _)| *number);
        match within {
            NamesIn::Module(_) => numbers.collect(),
            NamesIn::Program => own.into_iter().collect(),
            NamesIn::Libraries => numbers.filter(|number| Some(*number) != own).collect(),
        }
    }
}

impl ModuleSymbols {
    /// Adds names that begin with `prefix` to `found` until there are `limit`.
    pub(super) fn complete(
        &self,
        prefix: &str,
        limit: usize,
        budget: &mut Budget,
        found: &mut BTreeSet<Name>,
    ) -> Result<(), NoSymbols> {
        // Stubs and slots, one for each imported function, are offered only after the `@` of their suffix.
        if let Some((function, _)) = prefix.split_once('@') {
            for suffix in [PLT, GOT] {
                let name = format!("{function}{suffix}");
                if name.starts_with(prefix) && !self.plt_got_called(&name, budget)?.is_empty() {
                    found.insert(Name::new(name));
                }
            }
        }
        let query = NameQuery::beginning(prefix);
        let (mut symbols, names) = self.all(budget)?;
        while let Some(symbol) = symbols.next(budget)? {
            if let Some(name) = names.get(&symbol)
                && let Some(completed) = query.completed_by(name)
            {
                found.insert(Name::new(completed));
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(())
    }

    /// Adds variables with their sizes to `found`, until there are more than `limit`.
    fn variables(&self, limit: usize, budget: &mut Budget, found: &mut BTreeMap<Name, u64>) -> Result<(), NoSymbols> {
        let query = NameQuery::beginning("");
        let (mut symbols, names) = self.all(budget)?;
        while found.len() <= limit
            && let Some(symbol) = symbols.next(budget)?
        {
            if symbol.kind == SymbolKind::Object
                && symbol.size > 0
                && let Some(name) = names.get(&symbol).and_then(|name| query.completed_by(name))
                && !name.starts_with(b"_")
                && !name.contains(&b'.')
            {
                found.insert(Name::new(name), symbol.size);
            }
        }
        Ok(())
    }
}
