//! A cache of modules' debug information, of limited size. An entry is dropped when its file changes.

use super::NoLines;
use super::table::Lines;
use crate::budget::Budget;
use crate::kernel::Name;
use crate::symbol::sources::Sources;
use crate::symbol::{NoSeparate, NoSymbols};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The most bytes of debug information for all modules together, unless one alone has more.
const MOST_BYTES: u64 = 1 << 30;

/// The debug information of one module, if it was read and is still cached.
type CacheEntry = Mutex<Option<Result<Arc<Lines>, NoLines>>>;

/// The debug information of a module, once somebody has asked for it.
#[derive(Default)]
pub(in crate::symbol) struct CachedLines(Arc<CacheEntry>);

impl CachedLines {
    /// The cached debug information, or what `read` reads.
    pub(super) fn get(
        &self,
        budget: &mut Budget,
        read: impl FnOnce(&mut Budget) -> Result<Lines, NoLines>,
    ) -> Result<Arc<Lines>, NoLines> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*kept {
            return known.clone();
        }
        let read = read(budget).map(Arc::new);
        if !matches!(&read, Err(why) if why.is_passing()) {
            *kept = Some(read.clone());
        }
        read
    }

    /// Makes it the last used in `cache`, with its size after a query. If the cache is full, the least recently used
    /// leave.
    pub(super) fn touch(&self, cache: &DebugInfoCache, lines: &Lines) {
        cache.put(&self.0, lines.bytes());
    }

    /// The cached debug information, if no thread is reading it at the moment.
    pub(super) fn known(&self) -> Option<Arc<Lines>> {
        let kept = self.0.try_lock().ok()?;
        kept.as_ref()?.as_ref().ok().cloned()
    }
}

/// The least-recently-used cache for all modules.
pub(in crate::symbol) struct DebugInfoCache {
    /// With the bytes of each, the last used at the end.
    kept: Mutex<VecDeque<(Weak<CacheEntry>, u64)>>,
    most: u64,
}

impl Default for DebugInfoCache {
    fn default() -> Self {
        DebugInfoCache { kept: Mutex::default(), most: MOST_BYTES }
    }
}

impl DebugInfoCache {
    /// Drops everything.
    pub(super) fn clear(&self) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.iter().filter_map(|(one, _)| one.upgrade()).for_each(|one| {
            *one.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
    }

    fn put(&self, slot: &Arc<CacheEntry>, bytes: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Entries of closed files have already been dropped.
        kept.retain(|(one, _)| one.strong_count() > 0 && one.as_ptr() != Arc::as_ptr(slot));
        let mut total: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
        while total.saturating_add(bytes) > self.most
            && let Some((oldest, its)) = kept.pop_front()
        {
            total = total.saturating_sub(its);
            if let Some(oldest) = oldest.upgrade() {
                *oldest.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
        kept.push_back((Arc::downgrade(slot), bytes));
    }
}

/// Reads the debug information in the files of the module called `module`.
pub(super) fn read(sources: &Sources, module: &Name, budget: &mut Budget) -> Result<Lines, NoLines> {
    let none = |why| NoLines::NoDebugInformation { file: module.file_name(), why };
    match sources.debug_source() {
        Ok((source, path)) => {
            Lines::read(source, path.unwrap_or(module), budget)?.ok_or_else(|| none(NoSeparate::NotFound))
        }
        Err(NoSymbols::NoDebugInformation(why)) => Err(none(why)),
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::elf::BETWEEN_LOOKS;
    use crate::symbol::tests::builder::{Builder, Extra};

    #[test]
    fn the_least_recently_used_leave_a_full_cache() {
        let of = |size| Builder { sections: vec![Extra::new(".debug_info", vec![0; size])], ..Builder::default() };
        let cache = DebugInfoCache { most: 2500, ..DebugInfoCache::default() };
        let mut budget = Budget::unlimited();
        let mut reads = 0;
        let mut ask = |kept: &CachedLines, size| {
            let before = reads;
            let lines = kept.get(&mut budget, |budget| {
                reads += 1;
                read(&of(size).sources(), &Name::from("/m"), budget)
            });
            let lines = lines.expect("debug information");
            assert!(lines.bytes() >= size as u64);
            kept.touch(&cache, &lines);
            reads > before
        };
        let (first, second, third, large) =
            (CachedLines::default(), CachedLines::default(), CachedLines::default(), CachedLines::default());
        assert!(ask(&first, 1000) && ask(&second, 1000));
        assert!(!ask(&first, 1000) && !ask(&second, 1000));
        // There is no room for three: the first goes.
        assert!(ask(&third, 1000));
        assert!(!ask(&second, 1000) && !ask(&third, 1000));
        assert!(ask(&first, 1000));
        // An entry that is larger than the cache is kept alone.
        assert!(ask(&large, 5000) && !ask(&large, 5000));
        assert!(ask(&third, 1000));
        // The entry of a closed file makes room for others.
        drop(third);
        assert!(ask(&first, 1000) && ask(&second, 1000) && !ask(&first, 1000));
        cache.clear();
        assert!(ask(&first, 1000) && ask(&second, 1000));
    }

    #[test]
    fn what_took_too_long_to_read_is_read_again() {
        let sections = vec![Extra::new(".debug_info", vec![0; 4 * BETWEEN_LOOKS])];
        let sources = Builder { sections, ..Builder::default() }.sources();
        let get = |kept: &CachedLines, mut budget| {
            kept.get(&mut budget, |budget| read(&sources, &Name::from("/m"), budget)).map(|lines| lines.bytes())
        };
        for steps in 0..5 {
            let kept = CachedLines::default();
            let given_up = get(&kept, Budget::unlimited().at_most(steps));
            assert!(matches!(given_up, Err(NoLines::TooCostly)), "{steps} steps: {given_up:?}");
            assert!(get(&kept, Budget::unlimited()).is_ok(), "{steps} steps");
        }
    }
}
