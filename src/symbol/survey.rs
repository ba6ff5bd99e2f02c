//! Questions about a whole process: what every module's files are, and all symbols that match.

use super::loaded::Loaded;
use super::sources::Answers;
use super::view::View;
use super::{Module, NoSeparate, NoSymbols, SymbolAt, build_id, search, table};
use crate::kernel::{AddressRange, Name};
use crate::report::Stopped;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// No more files are read at the same time: beyond this they wait for each other.
const MOST_READERS: usize = 8;
/// How often somebody who waits is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(50);

/// What is known of a module's files.
#[derive(Debug)]
pub struct Survey<'a> {
    /// The module.
    pub module: &'a Module,
    /// From the first to the last address of each copy of it, `.bss` included.
    pub copies: Vec<AddressRange>,
    /// The number that tells this build from all others, in hexadecimal digits.
    pub build_id: Option<String>,
    /// Which file answers for its names, and how many symbols it has; or why none does.
    pub answers: Result<(Answers, u64), NoSymbols>,
    /// The separate debug file, whether or not it is needed for names; or why there is none.
    pub separate: Result<Name, NoSeparate>,
}

impl View<'_> {
    /// What the files of every program and library are, in order of address. They are read side by side. `check` is asked now and then
    /// whether to go on.
    ///
    /// # Errors
    /// What `check` or `each` says.
    pub fn survey(
        &self,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
        each: &mut dyn FnMut(Survey<'_>) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let programs: Vec<&Module> = self
            .modules()
            .iter()
            .filter(|module| module.is_executable())
            .collect();
        let readers = std::thread::available_parallelism().map_or(1, usize::from);
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let module = programs.get(number)?;
            let is_wanted = !stop.load(Ordering::Relaxed);
            is_wanted.then(|| (number, self.survey_of(module)))
        };
        std::thread::scope(|scope| {
            let (sender, done) = channel();
            for _ in 0..readers.min(MOST_READERS).min(programs.len()) {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some(one) = work() {
                        if sender.send(one).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut early = BTreeMap::new();
            let mut told = 0;
            let mut tell = || -> Result<(), Stopped> {
                loop {
                    match done.recv_timeout(PATIENCE) {
                        Ok((number, survey)) => {
                            early.insert(number, survey);
                        }
                        Err(RecvTimeoutError::Timeout) => check()?,
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
            Ok((loaded, copies)) => Survey {
                module,
                copies,
                build_id: loaded
                    .sources
                    .image
                    .build_id()
                    .map(|id| build_id::digits(&id)),
                answers: count(loaded),
                separate: loaded.sources.separate().map(|one| one.path.clone()),
            },
            Err(reason) => Survey {
                module,
                copies: module.hull().into_iter().collect(),
                build_id: None,
                answers: Err(reason),
                separate: Err(NoSeparate::NotNamed),
            },
        }
    }

    /// The symbols of `module`, or of all programs and libraries, that `is_match` takes, told the name that people read: those of a
    /// module after those of the one before it, by name. Thread-local ones have no address and are left out. `silent` is told what
    /// gives no symbols.
    ///
    /// # Errors
    /// What `check` or `each` says.
    pub fn matching(
        &self,
        is_match: &dyn Fn(&str) -> bool,
        check: &mut dyn FnMut() -> Result<(), Stopped>,
        each: &mut dyn FnMut(SymbolAt) -> Result<(), Stopped>,
        silent: &mut dyn FnMut(&Module, NoSymbols),
    ) -> Result<(), Stopped> {
        for module in self.modules().iter().filter(|one| one.is_executable()) {
            let (loaded, _) = match self.loaded_as(module) {
                Ok(loaded) => loaded,
                Err(reason) => {
                    silent(module, reason);
                    continue;
                }
            };
            match search::matching(loaded, is_match, check)? {
                Ok(found) => {
                    for (symbol, mangled) in found {
                        for symbol in self.placed_symbol(module, &symbol, &mangled) {
                            each(symbol)?;
                        }
                    }
                }
                Err(reason) => silent(module, reason),
            }
        }
        Ok(())
    }
}

/// Which file answers, and how many symbols it has.
fn count(loaded: &Loaded) -> Result<(Answers, u64), NoSymbols> {
    let sources = &loaded.sources;
    let answers = sources.answers().ok_or(NoSymbols::Stripped)?;
    let mut symbols = 0;
    table::visit(sources, &mut |symbol| {
        // A full table has what the dynamic one has.
        if symbol.table > 0 && answers != Answers::DebugData {
            return ControlFlow::Break(());
        }
        symbols += 1;
        ControlFlow::Continue(())
    })?;
    Ok((answers, symbols))
}
