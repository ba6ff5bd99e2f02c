//! A cache of a module's latest searches by name: at a prompt the same names are typed again and again, and each search
//! is a pass over all symbols. A changed file gets new [`ModuleSymbols`](super::module_symbols::ModuleSymbols), with an
//! empty cache.

use super::table::Symbol;
use crate::kernel::Name;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Searches that are kept for one module.
const MOST: usize = 64;
/// Searches with more matches, and longer queries, are not cached: so the caches of all modules stay small.
const MOST_MATCHES: usize = 16;
const LONGEST_QUERY: usize = 256;

/// Symbols, each with its name as the file spells it.
pub(super) type Found = Vec<(Symbol, Name)>;

/// The latest last.
#[derive(Default)]
pub(super) struct SearchCache(Mutex<VecDeque<(Box<str>, Found)>>);

impl SearchCache {
    /// The cached result of a search for `query`.
    pub(super) fn find(&self, query: &str) -> Option<Found> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, found) = kept.iter().find(|(of, _)| **of == *query)?;
        Some(found.clone())
    }

    /// Caches the result of a finished search, in place of the oldest.
    pub(super) fn keep(&self, query: &str, found: &Found) {
        if found.len() > MOST_MATCHES || query.len() > LONGEST_QUERY {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((query.into(), found.clone()));
    }
}
