//! Queries about a whole process: the files of every module, and all symbols that match.

use super::elf::build_id_digits;
use super::search::Limits;
use super::sources::{Answers, Sources};
use super::target_symbols::TargetSymbols;
use super::{Module, NoBuildId, NoSeparate, NoSymbols, SymbolAt, table};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::{AddressRange, Name};
use crate::report::Stopped;
use crate::source::memory;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, available_parallelism};
use std::time::Duration;

/// The most files that are read at the same time: more would only wait for each other.
const MOST_READERS: usize = 8;
/// The most memory for the symbols of one module that match an expression, with their names.
const MOST_BYTES: u64 = 256 << 20;
/// The time between two looks at the budget.
const PATIENCE: Duration = Duration::from_millis(50);

/// What is known about a module's files.
#[derive(Debug)]
pub struct Survey<'a> {
    /// The module.
    pub module: &'a Module,
    /// From the first to the last address of each copy of it, `.bss` included.
    pub copies: Vec<AddressRange>,
    /// The build-id in hexadecimal digits, or why it is unknown.
    pub build_id: Result<String, NoBuildId>,
    /// The file that gives its names, and its number of symbols; or why none does.
    pub answers: Result<(Answers, u64), NoSymbols>,
    /// Why the file's `.gnu_debugdata` is not used though there is no fuller table.
    pub no_debugdata: Option<NoSymbols>,
    /// The separate debug file, whether or not it is needed for names; or why there is none.
    pub separate: Result<Name, NoSeparate>,
}

impl TargetSymbols<'_> {
    /// Surveys the files of every program and library, in order of address. They are read in parallel.
    ///
    /// # Errors
    /// Ctrl-C, and those of `each`.
    pub fn survey(&self, each: &mut dyn FnMut(Survey<'_>) -> Result<(), Stopped>) -> Result<(), Stopped> {
        let mut budget = self.symbols.budget();
        let programs: Vec<&Module> = self.modules().iter().filter(|module| module.is_executable()).collect();
        let readers = available_parallelism().map_or(1, usize::from);
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let module = programs.get(number)?;
            let is_wanted = !stop.load(Ordering::Relaxed);
            is_wanted.then(|| (number, self.survey_of(module)))
        };
        std::thread::scope(|scope| {
            let (sender, done) = channel();
            let may_read = |_: &usize| {
                let sender = sender.clone();
                let work = move || {
                    while let Some(one) = work() {
                        if sender.send(one).is_err() {
                            break;
                        }
                    }
                };
                Builder::new().spawn_scoped(scope, work).is_ok()
            };
            let readers = readers.min(MOST_READERS).min(programs.len());
            let helpers = (0..readers).take_while(may_read).count();
            drop(sender);
            if helpers == 0 {
                // This user may have no more threads: this one does the work.
                while let Some((_, survey)) = work() {
                    budget.look()?;
                    each(survey)?;
                }
                return Ok(());
            }
            let mut early = BTreeMap::new();
            let mut told = 0;
            let mut tell = || -> Result<(), Stopped> {
                loop {
                    match done.recv_timeout(PATIENCE) {
                        Ok((number, survey)) => {
                            early.insert(number, survey);
                        }
                        Err(RecvTimeoutError::Timeout) => budget.look()?,
                        Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    }
                    while let Some(survey) = early.remove(&told) {
                        told += 1;
                        each(survey)?;
                    }
                }
            };
            let outcome = tell();
            stop.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn survey_of<'a>(&self, module: &'a Module) -> Survey<'a> {
        match self.loaded_as(module) {
            Ok(loaded) => {
                let sources = &loaded.symbols.sources;
                let build_id = sources.image.elf.build_id.as_deref().map(build_id_digits);
                Survey {
                    module,
                    copies: loaded.hulls(self.page()),
                    build_id: build_id.ok_or(NoBuildId::None),
                    answers: count(sources, &mut loaded.symbols.budget()),
                    no_debugdata: sources.no_debugdata().cloned(),
                    separate: sources.separate().map(|one| one.path.clone()),
                }
            }
            Err(reason) => Survey {
                module,
                copies: module.hull().into_iter().collect(),
                build_id: Err(NoBuildId::NotRead(reason.clone())),
                separate: Err(NoSeparate::NotRead(Box::new(reason.clone()))),
                no_debugdata: None,
                answers: Err(reason),
            },
        }
    }

    /// The symbols of all programs and libraries whose demangled name `is_match` accepts: module by module, in each by
    /// name, and about `most` in all. Thread-local symbols have no address and are left out. `silent` receives each
    /// module that gives no symbols, or not all of them.
    ///
    /// # Errors
    /// Ctrl-C, and those of `each`.
    pub fn matching(
        &self,
        is_match: &dyn Fn(&str) -> bool,
        most: u64,
        each: &mut dyn FnMut(SymbolAt) -> Result<(), Stopped>,
        silent: &mut dyn FnMut(&Module, NoSymbols),
    ) -> Result<(), Stopped> {
        let mut budget = self.symbols.budget();
        let mut left = usize::try_from(most).unwrap_or(usize::MAX);
        for (module, loaded) in self.programs() {
            if left == 0 {
                break;
            }
            let loaded = match loaded {
                Ok(loaded) => loaded,
                Err(reason) => {
                    silent(module, reason);
                    continue;
                }
            };
            let limits = Limits { symbols: left, bytes: memory::at_most(MOST_BYTES) };
            match loaded.symbols.matching(is_match, &limits, &mut budget) {
                Ok(found) => {
                    left -= found.symbols.len();
                    for symbol in found.symbols {
                        // The name can be missing only if the file was truncated meanwhile: the rest is skipped.
                        let Some(name) = table::name(&loaded.symbols.sources, &symbol) else {
                            continue;
                        };
                        let name = Name::new(name);
                        loaded.in_each_copy(&symbol, &name).try_for_each(&mut *each)?;
                    }
                    if found.too_many {
                        silent(module, NoSymbols::TooManyMatches);
                    }
                    if let Some(reason @ NoSymbols::TooCostly) = loaded.symbols.sources.no_debugdata() {
                        silent(module, reason.clone());
                    }
                }
                Err(NoSymbols::Interrupted) => return Err(OutOfBudget::Interrupted.into()),
                Err(reason) => silent(module, reason),
            }
        }
        self.matching_jit(is_match, &mut budget, each)
    }
}

/// The file that gives the names, and its number of symbols.
fn count(sources: &Sources, budget: &mut Budget) -> Result<(Answers, u64), NoSymbols> {
    let answers = sources.answers().ok_or(NoSymbols::Stripped)?;
    let mut symbols = 0;
    table::visit(sources, budget, &mut |symbol| {
        // A full table has what the dynamic one has.
        if symbol.table > 0 && answers != Answers::DebugData {
            return ControlFlow::Break(());
        }
        symbols += 1;
        ControlFlow::Continue(())
    })?;
    Ok((answers, symbols))
}
