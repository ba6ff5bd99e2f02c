//! The debug information of a module, kept as long as its files stay as they are.

use super::NoLines;
use super::table::Lines;
use super::work::Work;
use crate::kernel::Name;
use crate::symbol::sources::Sources;
use crate::symbol::{NoSeparate, NoSymbols};
use std::sync::{Arc, Mutex, PoisonError};

/// The debug information of a module, once somebody has asked for it.
#[derive(Default)]
pub(in crate::symbol) struct Kept(Mutex<Option<Result<Arc<Lines>, NoLines>>>);

impl Kept {
    /// What was read before, or reads it; `module` is the name of the module whose files these are.
    pub(super) fn get(
        &self,
        sources: &Sources,
        module: &Name,
        work: &mut Work,
    ) -> Result<Arc<Lines>, NoLines> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*kept {
            return known.clone();
        }
        let read = read(sources, module, work).map(Arc::new);
        if !matches!(&read, Err(why) if why.is_passing()) {
            *kept = Some(read.clone());
        }
        read
    }
}

fn read(sources: &Sources, module: &Name, work: &mut Work) -> Result<Lines, NoLines> {
    let none = |why| NoLines::NoDebugInformation {
        file: module.file_name(),
        why,
    };
    match sources.debug_source() {
        Ok(source) => Lines::read(source, work)?.ok_or_else(|| none(NoSeparate::NotFound)),
        Err(NoSymbols::NoDebugInformation(why)) => Err(none(why)),
        Err(other) => Err(NoLines::NoFile(other)),
    }
}
