//! The mapped files, kept from one command to the next, and the regions, read when they are first needed.

use super::elf::{BoundedFile, ElfFile};
use super::expanded::ExpandedMemory;
use super::files;
use super::files::Sources;
use super::lines::DebugInfoCache;
use super::module::{self, Module};
use super::module_symbols::ModuleSymbols;
use super::perf_map::{PerfMap, PerfMapRead, is_jit_region};
use super::reason::NoSymbols;
use crate::access::{self, Identity};
use crate::budget::Budget;
use crate::kernel::{AddressRange, Device, Name, Region, VirtualAddress};
use crate::process::{FEW_REGIONS, Target};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// The most modules whose files are kept open for their symbols.
const MOST_OPEN: usize = 1024;

/// The mapped files that are known. The value lives as long as the session; [`Symbols::over`] queries it.
#[derive(Default)]
pub struct Symbols {
    files: Mutex<HashMap<FileKey, Arc<ModuleSymbols>>>,
    users: AtomicU64,
    budget: Budget,
    pub(super) expanded_memory: ExpandedMemory,
    debug_info: DebugInfoCache,
    perf_maps: AtomicBool,
    /// The perf map of the last target.
    perf_map: Mutex<Option<Arc<PerfMap>>>,
    regions: Mutex<SharedRegions>,
}

/// The regions that a command has read.
#[derive(Default)]
struct SharedRegions {
    /// Whether a command runs. Between commands the regions are read at each query.
    are_shared: bool,
    read: Option<(Identity, Arc<[Region]>)>,
    /// The regions of modules only.
    of_modules: Option<(Identity, Arc<[Region]>)>,
}

/// The regions that decide which addresses have names.
#[derive(Clone)]
pub enum ModuleRegions {
    /// All regions.
    All(Arc<[Region]>),
    /// The regions of modules only.
    Some(Arc<[Region]>),
}

/// The identity of a file, as `maps` has it. The vdso has no file, so its range replaces it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FileKey {
    device: Device,
    inode: u64,
    /// The offset of the module in an archive.
    start: u64,
    name: Name,
    image: Option<(u32, AddressRange)>,
}

impl Symbols {
    /// Makes an empty set of files. Each query has at most this budget.
    pub fn with_budget(budget: Budget) -> Symbols {
        Symbols { budget, ..Symbols::default() }
    }

    /// Forgets all files.
    pub fn forget(&mut self) {
        let uses_perf_maps = self.uses_perf_maps();
        *self = Symbols::with_budget(self.budget());
        self.use_perf_maps(uses_perf_maps);
    }

    /// Begins a command: until [`end_command`](Self::end_command), the regions of a target are read only once.
    pub fn begin_command(&self) {
        *self.lock_regions() = SharedRegions { are_shared: true, ..SharedRegions::default() };
    }

    /// Ends a command, and forgets the regions, which are never kept for the next one.
    pub fn end_command(&self) {
        *self.lock_regions() = SharedRegions::default();
    }

    fn lock_regions(&self) -> MutexGuard<'_, SharedRegions> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the regions of `target` in address order, read when the command first needed them.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn regions(&self, target: &Target) -> access::Result<Arc<[Region]>> {
        let mut regions = self.lock_regions();
        let identity = target.process.identity();
        if let Some((of, read)) = &regions.read
            && *of == identity
        {
            return Ok(Arc::clone(read));
        }
        let read: Arc<[Region]> = target.process.regions_within(&mut self.budget())?.into();
        regions.read = regions.are_shared.then(|| (identity.clone(), Arc::clone(&read)));
        Ok(read)
    }

    /// Returns the regions of `target` that decide which addresses have names. For a process with many regions these
    /// are only those of modules, which are few. With a perf map, code in anonymous memory has names too, so these are
    /// all.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn module_regions(&self, target: &Target) -> access::Result<ModuleRegions> {
        if self.uses_perf_maps() {
            return self.regions(target).map(ModuleRegions::All);
        }
        let identity = target.process.identity();
        let known = |of: &Option<(Identity, Arc<[Region]>)>| {
            let (_, known) = of.as_ref().filter(|(of, _)| *of == identity)?;
            Some(Arc::clone(known))
        };
        let regions = self.lock_regions();
        let all = known(&regions.read).map(ModuleRegions::All);
        if let Some(known) = all.or_else(|| known(&regions.of_modules).map(ModuleRegions::Some)) {
            return Ok(known);
        }
        drop(regions);
        let read = self.module_regions_now(target)?;
        let mut regions = self.lock_regions();
        let keep = |read: &Arc<[Region]>| Some((identity, Arc::clone(read)));
        match &read {
            _ if !regions.are_shared => {}
            ModuleRegions::All(all) => regions.read = keep(all),
            ModuleRegions::Some(some) => regions.of_modules = keep(some),
        }
        Ok(read)
    }

    /// Reads the regions that decide which addresses have names.
    fn module_regions_now(&self, target: &Target) -> access::Result<ModuleRegions> {
        let process = &target.process;
        if !self.uses_perf_maps() {
            if let Some(few) = process.few_regions(&mut self.budget())? {
                return Ok(ModuleRegions::All(few.into()));
            }
            if let Some(some) = process.module_regions(&mut self.budget())? {
                return Ok(ModuleRegions::Some(some.into()));
            }
        }
        Ok(ModuleRegions::All(process.regions_within(&mut self.budget())?.into()))
    }

    /// Reads the regions of `target` in which an address may have a name: those of modules, and the anonymous ones
    /// after them, which may be their `.bss`. For a process with few regions these are all.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn naming_regions(&self, target: &Target) -> access::Result<Arc<[Region]>> {
        let modules = match self.module_regions_now(target)? {
            ModuleRegions::All(all) => return Ok(all),
            ModuleRegions::Some(some) => some,
        };
        let Some(after) = module::regions_after(target, &modules)? else {
            return Ok(target.process.regions_within(&mut self.budget())?.into());
        };
        let mut all = [&*modules, &after].concat();
        all.sort_by_cached_key(|one| one.range.start());
        all.dedup_by_key(|one| one.range.start());
        Ok(all.into())
    }

    /// Returns whether an address in `region` may have a name, without the list of all regions.
    pub fn may_name(&self, target: &Target, region: &Region) -> bool {
        (self.uses_perf_maps() && is_jit_region(region)) || module::may_have_names(target, region)
    }

    /// Returns the regions of `target` that decide to which symbol `address` belongs, and its region.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn regions_at(&self, target: &Target, address: VirtualAddress) -> access::Result<Arc<[Region]>> {
        match target.process.query_region_at(address)? {
            None => self.regions(target),
            Some(Some(region)) if self.may_name(target, &region) => self.regions_for(target, &region),
            Some(region) => Ok(region.into_iter().collect()),
        }
    }

    /// Returns the regions of `target` that decide to which symbol an address in `region` belongs.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn regions_for(&self, target: &Target, region: &Region) -> access::Result<Arc<[Region]>> {
        let known = match self.module_regions(target)? {
            ModuleRegions::All(all) => return Ok(all),
            ModuleRegions::Some(some) => some,
        };
        if module::belongs_to_module(region) {
            return Ok(known);
        }
        // Anonymous memory may be the .bss of a module before it.
        let Some(before) = module::regions_before(target, region)? else {
            return self.regions(target);
        };
        let start = |one: &Region| one.range.start();
        let mut all = [&*known, &before, std::slice::from_ref(region)].concat();
        all.sort_by_cached_key(start);
        all.dedup_by_key(|one| start(one));
        Ok(all.into())
    }

    /// Sets whether names also come from `/tmp/perf-PID.map`, which the target writes for JIT-compiled code. The
    /// default is no.
    pub fn use_perf_maps(&self, on: bool) {
        self.perf_maps.store(on, Ordering::Relaxed);
    }

    /// Returns the perf map of the target, read again if it has changed; `None` if there is none, or it is not used.
    pub(super) fn perf_map(&self, target: &Target) -> PerfMapRead {
        if !self.uses_perf_maps() {
            return Ok(None);
        }
        let mut kept = self.perf_map.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.as_ref().filter(|map| map.is_of(target)) {
            return Ok(Some(Ok(Arc::clone(known))));
        }
        let read = PerfMap::read(target, &mut self.budget())?.map(|read| read.map(Arc::new));
        *kept = read.as_ref().and_then(|read| read.as_ref().ok()).cloned();
        Ok(read)
    }

    fn uses_perf_maps(&self) -> bool {
        self.perf_maps.load(Ordering::Relaxed)
    }

    /// Returns the cache of modules' debug information.
    pub(super) fn debug_info_cache(&self) -> &DebugInfoCache {
        &self.debug_info
    }

    /// Returns the budget of a query.
    pub(super) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Returns a new number for a [`TargetSymbols`]; never 0.
    pub(super) fn next_number(&self) -> u64 {
        1 + self.users.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the files of a module, opened and read if they are new or have changed.
    pub(super) fn load(&self, target: &Target, module: &Module, user: u64) -> Result<Arc<ModuleSymbols>, NoSymbols> {
        let Some(region) = module.regions.first() else {
            return Err(NoSymbols::NotLoaded);
        };
        let key = FileKey {
            device: module.device,
            inode: module.inode,
            start: module.start,
            name: module.name.clone(),
            image: module.is_vdso().then(|| (target.process.identity().pid, region.range)),
        };
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&key).cloned();
        if let Some(loaded) = known {
            let fresh = loaded.seen.swap(user, Ordering::Relaxed) == user;
            let unchanged = || {
                let sources = &loaded.sources;
                sources.are_unchanged(&target.modules, Instant::now())
            };
            let gains_room = || loaded.sources.lacks_room() && self.make_room(user);
            if fresh || (unchanged() && !gains_room()) {
                return Ok(loaded);
            }
            lock().remove(&key);
        }
        let mut budget = self.budget();
        budget.look()?;
        // The lock is not held during the read, so that modules may be loaded in parallel.
        let bytes = if module.is_vdso() { target.modules.image(region)? } else { module.open(&target.modules)? };
        let image = ElfFile::read(BoundedFile::new(bytes), &mut budget)?;
        let separate = files::find(&target.modules, module.mapped_name(), &image, &self.budget)?;
        self.make_room(user);
        let sources = Sources::new(image, separate, &self.expanded_memory)?;
        let loaded = Arc::new(ModuleSymbols::new(sources, user));
        let mut files = lock();
        if files.len() >= MOST_OPEN {
            // The files of this user are in use. The others can be opened again.
            files.retain(|_, other| other.seen.load(Ordering::Relaxed) == user);
        }
        if files.len() < MOST_OPEN {
            files.insert(key, Arc::clone(&loaded));
        }
        Ok(loaded)
    }

    /// Drops files with decompressed tables, the least recently used first, until there is room for more. Returns
    /// whether there is. Files of this user are in use, and are kept.
    fn make_room(&self, user: u64) -> bool {
        if !self.expanded_memory.is_crowded() {
            return true;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let others = files.iter().filter_map(|(key, file)| {
            let seen = file.seen.load(Ordering::Relaxed);
            (seen != user && file.sources.is_expanded()).then(|| (seen, key.clone()))
        });
        let mut others: Vec<(u64, FileKey)> = others.collect();
        others.sort_by_cached_key(|(seen, _)| *seen);
        for (_, key) in others {
            if !self.expanded_memory.is_crowded() {
                break;
            }
            files.remove(&key);
        }
        !self.expanded_memory.is_crowded()
    }
}

/// The regions of a target. While all requested addresses are in memory that can have no name, the list is not read.
#[derive(Default)]
pub(super) struct RegionsOnDemand {
    all: OnceLock<access::Result<Arc<[Region]>>>,
    queries: Mutex<RegionQueries>,
}

/// The queries so far.
#[derive(Default)]
struct RegionQueries {
    count: usize,
    /// The result of the last query: a range without names.
    unnamed: Option<AddressRange>,
}

impl RegionsOnDemand {
    /// Returns all regions in which an address may have a name, in address order; none if they cannot be read.
    pub fn read(&self, symbols: &Symbols, target: &Target) -> &[Region] {
        match self.all.get_or_init(|| symbols.naming_regions(target)) {
            Ok(read) => read,
            Err(_) => &[],
        }
    }

    /// Returns whether the regions could not be read.
    pub fn are_unreadable(&self) -> bool {
        matches!(self.all.get(), Some(Err(_)))
    }

    /// Returns whether the address certainly has no name. If reading all regions is faster than finding out, the result
    /// is false.
    pub fn is_unnamed(&self, symbols: &Symbols, target: &Target, address: VirtualAddress) -> bool {
        if self.all.get().is_some() {
            return false;
        }
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        if queries.unnamed.is_some_and(|range| range.contains(address)) {
            return true;
        }
        if queries.count == FEW_REGIONS {
            return false;
        }
        queries.count += 1;
        match target.process.query_region_at(address) {
            Ok(Some(Some(region))) if !symbols.may_name(target, &region) => {
                queries.unnamed = Some(region.range);
                true
            }
            Ok(Some(None)) => true,
            _ => false,
        }
    }
}
