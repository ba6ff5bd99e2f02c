//! Queries about a whole process: the files of all modules, and all symbols that match.

use super::elf::build_id_digits;
use super::files::{NamesFrom, Sources};
use super::module_symbols::LoadedModule;
use super::search::Limits;
use super::table::{Symbol, SymbolPass};
use super::target_symbols::TargetSymbols;
use super::{Module, NoBuildId, NoSeparate, NoSymbols, SymbolAt, table};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::{AddressRange, Name};
use crate::own::memory;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism};

/// The most files that are read at the same time: more readers would only wait for each other.
const MOST_READERS: usize = 8;
/// The most bytes for the symbols of one module that match an expression, with their names.
const MOST_BYTES: u64 = 256 << 20;
/// The number of modules that are surveyed ahead, so that several can be read at the same time.
const MODULES_AHEAD: usize = 32;

/// The files of a module, and their symbols.
#[derive(Debug)]
pub struct Survey<'a> {
    /// The module.
    pub module: &'a Module,
    /// The range from the first to the last address of each copy, including `.bss`.
    pub copies: Vec<AddressRange>,
    /// The build-id in hexadecimal digits, or why it is unknown.
    pub build_id: Result<String, NoBuildId>,
    /// The file that has its names, and the number of symbols; or why there is none.
    pub answers: Result<(NamesFrom, u64), NoSymbols>,
    /// Why `.gnu_debugdata` is not used though there is no fuller table.
    pub no_debugdata: Option<NoSymbols>,
    /// The separate debug file, whether or not it is needed for names; or why there is none.
    pub separate: Result<Name, NoSeparate>,
}

/// The surveys of all programs and libraries, in order of address. The files of several modules are read in parallel.
#[must_use]
pub struct Surveys<'a> {
    names: &'a TargetSymbols<'a>,
    /// The modules whose files were not read yet.
    modules: std::vec::IntoIter<&'a Module>,
    /// The surveys that were made ahead.
    ready: std::vec::IntoIter<Survey<'a>>,
    budget: Budget,
}

impl<'a> Iterator for Surveys<'a> {
    /// An error means Ctrl-C, and is the last item.
    type Item = Result<Survey<'a>, OutOfBudget>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.as_slice().is_empty() {
            let modules: Vec<&Module> = self.modules.by_ref().take(MODULES_AHEAD).collect();
            self.ready = self.names.surveys_of(&modules).into_iter();
        }
        let survey = self.ready.next()?;
        if let Err(over) = self.budget.look() {
            (self.modules, self.ready) = Default::default();
            return Some(Err(over));
        }
        Some(Ok(survey))
    }
}

/// A step of a search for all names that match.
#[derive(Debug)]
pub enum MatchStep<'a> {
    /// A symbol whose name matches.
    Symbol(SymbolAt),
    /// A module without symbols, or of which some are missing, with the reason.
    Incomplete(&'a Module, NoSymbols),
}

/// The symbols whose names match: module by module, in each by name, and then JIT-compiled functions.
#[must_use]
pub struct SurveyMatches<'a> {
    names: &'a TargetSymbols<'a>,
    is_match: &'a dyn Fn(&str) -> bool,
    programs: Box<dyn Iterator<Item = (&'a Module, Result<&'a LoadedModule, NoSymbols>)> + 'a>,
    /// The number of symbols that may still be found in programs and libraries.
    room: usize,
    /// The symbols of the module that was searched last. The reason why some are missing follows.
    symbols: Box<dyn Iterator<Item = SymbolAt> + 'a>,
    incomplete: VecDeque<MatchStep<'a>>,
    /// The JIT-compiled functions, after all modules were searched.
    functions: Option<Box<dyn Iterator<Item = SymbolAt> + 'a>>,
    budget: Budget,
}

impl<'a> SurveyMatches<'a> {
    /// Searches a module.
    fn search(&mut self, module: &'a Module, loaded: Result<&'a LoadedModule, NoSymbols>) -> Result<(), OutOfBudget> {
        let limits = Limits { symbols: self.room, bytes: memory::at_most(MOST_BYTES) };
        let is_match = self.is_match;
        let matching = loaded.and_then(|loaded| {
            let matching = loaded.symbols.search_names(is_match, &limits, &mut self.budget)?;
            Ok((loaded, matching))
        });
        let mut reasons = Vec::new();
        match matching {
            Ok((loaded, matching)) => {
                self.room -= matching.symbols.len();
                self.symbols = Box::new(matching.symbols.into_iter().flat_map(|symbol| {
                    // The name can be missing only if the file was truncated during the search.
                    let name = table::name(&loaded.symbols.sources, &symbol).map(Name::new);
                    let placed = name.map(|name| loaded.in_each_copy(&symbol, &name).collect::<Vec<_>>());
                    placed.unwrap_or_default()
                }));
                reasons.extend(matching.has_too_many.then_some(NoSymbols::TooManyMatches));
                let no_debugdata = loaded.symbols.sources.no_debugdata();
                reasons.extend(no_debugdata.filter(|why| matches!(why, NoSymbols::TooCostly)).cloned());
            }
            Err(NoSymbols::Interrupted) => return Err(OutOfBudget::Interrupted),
            Err(reason) => reasons.push(reason),
        }
        self.incomplete.extend(reasons.into_iter().map(|reason| MatchStep::Incomplete(module, reason)));
        Ok(())
    }

    fn step(&mut self) -> Result<Option<MatchStep<'a>>, OutOfBudget> {
        loop {
            let known = self.symbols.next().map(MatchStep::Symbol).or_else(|| self.incomplete.pop_front());
            if known.is_some() {
                return Ok(known);
            }
            let next = if self.room > 0 { self.programs.next() } else { None };
            let Some((module, loaded)) = next else {
                break;
            };
            self.search(module, loaded)?;
        }
        let functions = match &mut self.functions {
            Some(functions) => functions,
            None => self.functions.insert(Box::new(self.names.jit_functions()?)),
        };
        for function in functions {
            self.budget.go_on()?;
            if (self.is_match)(&function.name().to_string()) {
                return Ok(Some(MatchStep::Symbol(function)));
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for SurveyMatches<'a> {
    /// An error means the end of the budget, and is the last item.
    type Item = Result<MatchStep<'a>, OutOfBudget>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.room = 0;
            self.functions = Some(Box::new(std::iter::empty()));
        }
        step.transpose()
    }
}

impl TargetSymbols<'_> {
    /// Surveys the files of every program and library.
    pub fn surveys(&self) -> Surveys<'_> {
        let modules: Vec<&Module> = self.programs_alone().collect();
        let budget = self.symbols.budget();
        Surveys { names: self, modules: modules.into_iter(), ready: Vec::new().into_iter(), budget }
    }

    /// Returns the surveys of `modules`, in their order.
    fn surveys_of<'a>(&self, modules: &[&'a Module]) -> Vec<Survey<'a>> {
        let next = AtomicUsize::new(0);
        let read_some = || {
            let number = || next.fetch_add(1, Ordering::Relaxed);
            let modules =
                std::iter::from_fn(|| Some(number()).and_then(|number| Some((number, *modules.get(number)?))));
            modules.map(|(number, module)| (number, self.survey_of(module))).collect::<Vec<_>>()
        };
        let readers = available_parallelism().map_or(1, usize::from).min(MOST_READERS).min(modules.len());
        let mut surveys = std::thread::scope(|scope| {
            // This user may have no more threads, so this one does the work.
            let helpers = (1..readers).map_while(|_| Builder::new().spawn_scoped(scope, read_some).ok());
            let helpers: Vec<_> = helpers.collect();
            let mut surveys = read_some();
            for helper in helpers {
                surveys.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            surveys
        });
        surveys.sort_by_cached_key(|(number, _)| *number);
        surveys.into_iter().map(|(_, survey)| survey).collect()
    }

    fn survey_of<'a>(&self, module: &'a Module) -> Survey<'a> {
        match self.loaded_as(module) {
            Ok(loaded) => {
                let sources = &loaded.symbols.sources;
                let build_id = sources.image.elf.build_id.as_deref().map(build_id_digits);
                Survey {
                    module,
                    copies: loaded.hulls(self.page_size()),
                    build_id: build_id.ok_or(NoBuildId::None),
                    answers: count(sources, &mut loaded.symbols.budget()),
                    no_debugdata: sources.no_debugdata().cloned(),
                    separate: sources.separate().map(|one| one.path.clone()),
                }
            }
            Err(reason) => Survey {
                module,
                copies: module.extents(),
                build_id: Err(NoBuildId::NotRead(reason.clone())),
                separate: Err(NoSeparate::NotRead(Box::new(reason.clone()))),
                no_debugdata: None,
                answers: Err(reason),
            },
        }
    }

    /// Returns the symbols of all programs and libraries, and JIT-compiled functions, whose demangled name `is_match`
    /// accepts: about `most` in all. Thread-local symbols have no address and are left out.
    pub fn matching<'a>(&'a self, is_match: &'a dyn Fn(&str) -> bool, most: u64) -> SurveyMatches<'a> {
        SurveyMatches {
            names: self,
            is_match,
            programs: Box::new(self.programs()),
            room: usize::try_from(most).unwrap_or(usize::MAX),
            symbols: Box::new(std::iter::empty()),
            incomplete: VecDeque::new(),
            functions: None,
            budget: self.symbols.budget(),
        }
    }
}

/// Returns the file that has the names, and the number of symbols.
fn count(sources: &Sources, budget: &mut Budget) -> Result<(NamesFrom, u64), NoSymbols> {
    let answers = sources.answers().ok_or_else(|| sources.no_table())?;
    let mut symbols = 0;
    let mut pass = SymbolPass::new(sources);
    // A full table contains the symbols of the dynamic one.
    let counts =
        |symbol: &Symbol| symbol.table == 0 || matches!(answers, NamesFrom::DebugData | NamesFrom::DebugInformation);
    while pass.next(budget)?.filter(counts).is_some() {
        symbols += 1;
    }
    Ok((answers, symbols))
}
