//! The names of one target while one command runs.

use super::archive::{MOST_ARCHIVES, StoredFile, may_be_archive, stored_files};
use super::module::{self, LoadedCopy, MOST_BSS_REGIONS, Module, WIDEST_GAP, in_segment, place};
use super::module_symbols::LoadedModule;
use super::perf_map::PerfMapRead;
use super::symbols::RegionsOnDemand;
use super::{Error, NamesFrom, NoSymbols, SymbolAt, SymbolKind, Symbols};
use crate::budget::OutOfBudget;
use crate::kernel::{AddressRange, Name, PageSize, Region, VirtualAddress};
use crate::process::Target;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// The symbols of one target with its current regions. [`Symbols::over`] makes it for one command.
pub struct TargetSymbols<'a> {
    pub(super) symbols: &'a Symbols,
    pub(super) target: &'a Target,
    regions: RegionList<'a>,
    number: u64,
    by_region: OnceLock<ModulesByRegion>,
    pub(super) perf_map: OnceLock<PerfMapRead>,
}

/// The code of a program or library: an executable segment of one copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeSegment {
    /// The addresses in the process of the segment's bytes in the file.
    pub range: AddressRange,
    /// The offset of these bytes in the mapped file.
    pub offset: u64,
    /// The offset of the program in the mapped file, as [`Module::start`].
    pub start: u64,
    /// A region that maps the file.
    pub of_file: Region,
}

/// The regions of a target, in address order.
enum RegionList<'a> {
    Given(Vec<&'a Region>),
    OnDemand(RegionsOnDemand),
}

/// The modules among the regions, each with its file and load bias once these are known.
struct ModulesByRegion {
    modules: Vec<Module>,
    of_region: Vec<Option<usize>>,
    loaded_modules: Vec<OnceLock<Result<LoadedModule, NoSymbols>>>,
    /// Whether the modules without executable memory have the header of a program.
    are_elf: Vec<OnceLock<bool>>,
    headers_read: AtomicUsize,
}

/// The result of a search by name.
#[derive(Default)]
struct NameMatches {
    matches: Vec<SymbolAt>,
    /// Copies of libraries' variables, which are used in place of the originals.
    copies: Vec<SymbolAt>,
    /// The module of a thread-local symbol, which has no address.
    thread_local: Option<Name>,
}

impl Symbols {
    /// Makes the names of `target` for one command. Its current `regions` are in address order. Each file is checked
    /// once, at its first use, and read again if it has changed.
    pub fn over<'a>(&'a self, target: &'a Target, regions: impl IntoIterator<Item = &'a Region>) -> TargetSymbols<'a> {
        self.among(target, RegionList::Given(regions.into_iter().collect()))
    }

    /// Makes the names of `target`. The regions are read when an address that may have a name is first requested.
    pub fn on_demand<'a>(&'a self, target: &'a Target) -> TargetSymbols<'a> {
        self.among(target, RegionList::OnDemand(RegionsOnDemand::default()))
    }

    fn among<'a>(&'a self, target: &'a Target, regions: RegionList<'a>) -> TargetSymbols<'a> {
        TargetSymbols {
            symbols: self,
            target,
            regions,
            number: self.next_number(),
            by_region: OnceLock::new(),
            perf_map: OnceLock::new(),
        }
    }
}

impl TargetSymbols<'_> {
    /// Returns the modules, in order of their first address.
    pub fn modules(&self) -> &[Module] {
        &self.by_region().modules
    }

    /// Returns the module of `address`: by its region, or as memory of `.bss` after one.
    pub fn module_at(&self, address: VirtualAddress) -> Option<&Module> {
        if let Some((module, ..)) = self.copy_at(address) {
            return Some(module);
        }
        let region = self.region_number(address)?;
        let number = self.by_region().of_region.get(region).copied()??;
        self.modules().get(number)
    }

    /// Returns the symbol of `address`.
    pub fn at(&self, address: VirtualAddress) -> Option<SymbolAt> {
        let Some((_, loaded, copy)) = self.copy_at(address) else {
            return self.jit_symbol_at(address);
        };
        let file_address = copy.file_address(address);
        let (symbol, name) = loaded.symbols.symbol_at(file_address)?;
        let offset = file_address.wrapping_sub(symbol.address);
        Some(loaded.symbol_at(copy, &symbol, name, offset))
    }

    /// Returns the slots with the address of the function chosen for an indirect one, as far as its resolver fills
    /// slots of its module. Returns none for other symbols, or if the module's file cannot be read.
    ///
    /// # Errors
    /// Fails if reading the file was given up.
    pub fn slots_of(&self, symbol: &SymbolAt) -> Result<Vec<VirtualAddress>, OutOfBudget> {
        if symbol.kind != SymbolKind::Indirect {
            return Ok(Vec::new());
        }
        let Some((_, loaded, copy)) = self.copy_at(symbol.start) else {
            return Ok(Vec::new());
        };
        let slots = NoSymbols::skip(loaded.symbols.slots_of_resolver(copy.file_address(symbol.start)))?;
        Ok(slots.into_iter().flatten().map(|slot| copy.address(slot)).collect())
    }

    /// Returns the symbols that `name` selects (mangled, demangled, or demangled without parameters), in one module
    /// (its file name or whole path) or in all programs and libraries, static functions included. The list may be
    /// empty.
    ///
    /// # Errors
    /// Fails if no module has this name, if the module has no symbols, or if only thread-local symbols have the name.
    pub fn find(&self, module: Option<&str>, name: &str) -> Result<Vec<SymbolAt>, Error> {
        let given_up_jit = |over: OutOfBudget| match over.into() {
            NoSymbols::Interrupted => Error::Interrupted { name: name.into() },
            reason => Error::NoSymbols { module: module.unwrap_or("perf map").into(), reason },
        };
        if let Some(module) = module
            && self.is_perf_map_name(module).map_err(given_up_jit)?
        {
            return self.jit_symbols_called(name).map_err(given_up_jit);
        }
        let mut matches = NameMatches::default();
        // A module whose search was given up: it may contain the name.
        let mut given_up = None;
        for (number, searched) in self.modules_of_name(module)? {
            match self.find_in(number, name, module.is_none(), &mut matches) {
                Ok(()) => {}
                Err(NoSymbols::Interrupted) => return Err(Error::Interrupted { name: name.into() }),
                Err(reason) if module.is_some() => {
                    return Err(Error::NoSymbols { module: searched.file_name(), reason });
                }
                Err(reason) if reason.is_passing() => given_up = Some((searched.file_name(), reason)),
                Err(_) => {}
            }
        }
        let NameMatches { matches: mut found, copies: copied, thread_local } = matches;
        // A copy in the program replaces a library's variable. Static variables are never copied.
        let is_used = |symbol: &SymbolAt| {
            let is_here = || copied.iter().any(|copy| copy.module == symbol.module);
            copied.is_empty() || symbol.is_local || symbol.kind != SymbolKind::Object || is_here()
        };
        found.retain(is_used);
        found.extend(copied);
        if module.is_none() {
            found.extend(self.jit_symbols_called(name).map_err(given_up_jit)?);
        }
        match (thread_local, given_up) {
            (_, Some((module, reason))) if reason.out_of_budget().is_some() => Err(Error::NoSymbols { module, reason }),
            _ if !found.is_empty() => Ok(found),
            (Some(module), _) => Err(Error::ThreadLocal { name: name.into(), module }),
            (None, Some((module, reason))) => Err(Error::NoSymbols { module, reason }),
            (None, None) => Ok(found),
        }
    }

    /// Adds the matches in a module, and the copies of libraries' variables if all modules are searched.
    fn find_in(
        &self,
        number: usize,
        name: &str,
        are_all_searched: bool,
        matches: &mut NameMatches,
    ) -> Result<(), NoSymbols> {
        self.symbols.budget().look()?;
        let loaded = self.loaded_module(number)?;
        for (symbol, mangled) in loaded.symbols.find(name)? {
            if symbol.kind == SymbolKind::Tls {
                matches.thread_local = Some(loaded.name.file_name());
                continue;
            }
            let is_copy = are_all_searched
                && symbol.kind == SymbolKind::Object
                && match loaded.symbols.is_copied_variable(symbol.address) {
                    Err(NoSymbols::Interrupted) => return Err(NoSymbols::Interrupted),
                    held => held.unwrap_or(false),
                };
            let found = if is_copy { &mut matches.copies } else { &mut matches.matches };
            found.extend(loaded.in_each_copy(&symbol, &mangled));
        }
        Ok(())
    }

    /// Returns the module of `address`, and the address in its file as objdump shows it.
    pub fn file_address(&self, address: VirtualAddress) -> Option<(&Module, VirtualAddress)> {
        let (module, _, copy) = self.copy_at(address)?;
        Some((module, VirtualAddress::new(copy.file_address(address))))
    }

    /// Returns the addresses in the process of a module's `file_address` (`module!0x1149`): one for each copy of the
    /// module.
    ///
    /// # Errors
    /// Fails if no module has this name, if its file cannot be read, or if the address is in none of its load segments.
    pub fn address_in(&self, module: &str, file_address: u64) -> Result<Vec<VirtualAddress>, Error> {
        let mut addresses = Vec::new();
        let mut failure = None;
        for (number, one) in self.modules_of_name(Some(module))? {
            let module = one.file_name();
            match self.loaded_module(number) {
                Ok(loaded) if in_segment(loaded.segments(), file_address) => {
                    addresses.extend(loaded.copies.iter().map(|copy| copy.address(file_address)));
                }
                Ok(_) => {
                    let address = file_address;
                    failure = Some(Error::NotInFile { address, module });
                }
                Err(reason) => failure = Some(Error::NoSymbols { module, reason }),
            }
        }
        match failure {
            Some(failure) if addresses.is_empty() => Err(failure),
            _ => Ok(addresses),
        }
    }

    /// Returns the ELF section of `address`: `.text`, `.bss`.
    pub fn section_at(&self, address: VirtualAddress) -> Option<Name> {
        let (_, loaded, copy) = self.copy_at(address)?;
        let elf = loaded.symbols.elf();
        let number = elf.section_at(copy.file_address(address))?;
        elf.section_name(number).map(Name::new)
    }

    /// Returns whether `address` is after the bytes that its load segment has in the file, as in `.bss`. That memory
    /// begins in the last page of the file, whose rest the loader clears.
    pub fn is_zeroed(&self, address: VirtualAddress) -> bool {
        self.copy_at(address).is_some_and(|(_, loaded, copy)| {
            let elf = loaded.symbols.elf();
            elf.is_zeroed(copy.file_address(address))
        })
    }

    /// Returns whether `address` is in executable memory of a module.
    pub fn is_code(&self, address: VirtualAddress) -> bool {
        let region = self.region_number(address).and_then(|number| self.region(number));
        region.is_some_and(|region| region.permissions.execute) && self.module_at(address).is_some()
    }

    /// Returns why `module` has no symbols, if it has none. Reads the headers of its file.
    pub fn reason(&self, module: &Module) -> Option<NoSymbols> {
        match self.loaded_as(module) {
            Ok(loaded) => loaded.symbols.fault(),
            Err(reason) => Some(reason),
        }
    }

    /// Returns whether only the dynamic table of `module` is left.
    pub fn is_stripped(&self, module: &Module) -> bool {
        let answers = self.loaded_as(module).map(|loaded| loaded.symbols.sources.answers());
        matches!(answers, Ok(Some(NamesFrom::DynamicTable)))
    }

    /// Returns why the program or library of `address` has no symbols, if it has none.
    pub fn why_unnamed(&self, address: VirtualAddress) -> Option<NoSymbols> {
        let region = self.region_number(address)?;
        let number = match self.by_region().of_region.get(region).copied()? {
            Some(number) => number,
            None => self.module_before(region)?,
        };
        let module = self.modules().get(number)?;
        module.is_executable().then(|| self.loaded_module(number).err())?
    }

    /// Returns the mapped anonymous memory (`.bss`) of the module with this name in `maps`. None if the module cannot
    /// be read.
    ///
    /// # Errors
    /// Fails if reading a file was given up.
    pub fn bss_of(&self, name: &Name) -> Result<Vec<AddressRange>, OutOfBudget> {
        let memory = self.memory_of(name)?;
        Ok(memory.into_iter().flat_map(|memory| module::bss(memory, self.regions())).collect())
    }

    /// Returns the memory of the load segments of the module with this name in `maps`, mapped or not. None if the
    /// module cannot be read.
    ///
    /// # Errors
    /// Fails if reading a file was given up.
    pub fn memory_of(&self, name: &Name) -> Result<Vec<AddressRange>, OutOfBudget> {
        let mut ranges = Vec::new();
        for (number, module) in self.modules().iter().enumerate() {
            if module.mapped_name() != name || !self.is_program(number) {
                continue;
            }
            let Some(loaded) = NoSymbols::skip(self.loaded_module(number))? else {
                continue;
            };
            ranges.extend(loaded.memory(self.page_size()));
        }
        Ok(ranges)
    }

    /// Returns the executable segments of all programs and libraries, as far as their files have bytes for them.
    ///
    /// # Errors
    /// Fails if reading a file was given up.
    pub fn code(&self) -> Result<Vec<CodeSegment>, OutOfBudget> {
        let mut code = Vec::new();
        for (module, loaded) in self.programs().filter(|(module, _)| !module.is_vdso()) {
            let Some(loaded) = NoSymbols::skip(loaded)? else {
                continue;
            };
            let Some(of_file) = module.regions.first() else {
                continue;
            };
            let segments = loaded.segments().iter().filter(|segment| segment.is_executable);
            code.extend(segments.flat_map(|segment| {
                loaded.copies.iter().filter_map(move |copy| {
                    let range = AddressRange::of_length(copy.address(segment.address), segment.file_size)?;
                    let offset = module.start.checked_add(segment.offset)?;
                    Some(CodeSegment { range, offset, start: module.start, of_file: of_file.clone() })
                })
            }));
        }
        Ok(code)
    }

    /// Returns the page size of the target.
    pub(super) fn page_size(&self) -> PageSize {
        self.target.process.page_size()
    }

    pub(super) fn loaded_as(&self, module: &Module) -> Result<&LoadedModule, NoSymbols> {
        let number = self.modules().iter().position(|one| one == module);
        self.loaded_module(number.ok_or(NoSymbols::NotLoaded)?)
    }

    fn by_region(&self) -> &ModulesByRegion {
        self.by_region.get_or_init(|| {
            let (modules, of_region) = self.group_regions();
            ModulesByRegion {
                loaded_modules: modules.iter().map(|_| OnceLock::new()).collect(),
                are_elf: modules.iter().map(|_| OnceLock::new()).collect(),
                headers_read: AtomicUsize::new(0),
                modules,
                of_region,
            }
        })
    }

    /// Returns the modules, including those in archives, and for each region the index of its module.
    fn group_regions(&self) -> (Vec<Module>, Vec<Option<usize>>) {
        let (modules, of_region) = module::group(self.regions(), |_, _| None);
        let page = self.page_size();
        let archives =
            modules.iter().enumerate().filter(|(_, module)| !module.is_vdso() && may_be_archive(&module.regions, page));
        let archives = archives.take(MOST_ARCHIVES);
        let stored: HashMap<usize, Vec<StoredFile>> = archives
            .map(|(number, module)| {
                (number, stored_files(&module.regions, &self.target.modules, &mut self.symbols.budget()))
            })
            .filter(|(_, files)| !files.is_empty())
            .collect();
        if stored.is_empty() {
            return (modules, of_region);
        }
        module::group(self.regions(), |index, region| {
            let archive = of_region.get(index).copied()??;
            stored.get(&archive)?.iter().find(|file| file.holds(region))
        })
    }

    /// Returns the place that records whether a module has the header of a program.
    pub(super) fn is_elf(&self, number: usize) -> Option<&OnceLock<bool>> {
        self.by_region().are_elf.get(number)
    }

    /// Returns the number of these headers that were read.
    pub(super) fn headers_read(&self) -> &AtomicUsize {
        &self.by_region().headers_read
    }

    /// Returns the programs and libraries.
    pub(super) fn programs_alone(&self) -> impl Iterator<Item = &Module> {
        let modules = self.modules().iter().enumerate();
        modules.filter(|(number, _)| self.is_program(*number)).map(|(_, one)| one)
    }

    /// Returns the programs and libraries, each with its files and copies.
    pub(super) fn programs(&self) -> impl Iterator<Item = (&Module, Result<&LoadedModule, NoSymbols>)> {
        let modules = self.modules().iter().enumerate();
        let programs = modules.filter(|(number, _)| self.is_program(*number));
        programs.map(|(number, one)| (one, self.loaded_module(number)))
    }

    /// Returns the modules with this name, or all with code.
    pub(super) fn modules_of_name(&self, name: Option<&str>) -> Result<Vec<(usize, &Module)>, Error> {
        let modules = self.modules().iter().enumerate();
        let Some(name) = name else {
            return Ok(modules.filter(|(number, _)| self.is_program(*number)).collect());
        };
        let mut called: Vec<_> = modules.filter(|(_, one)| one.is_called(name.as_bytes())).collect();
        // An archive is mapped as data.
        if called.iter().any(|(_, one)| one.start > 0) {
            called.retain(|(_, one)| one.start > 0);
        }
        if called.is_empty() { Err(Error::NoSuchModule { module: name.into() }) } else { Ok(called) }
    }

    /// Returns the files and copies of a module, found once.
    pub(super) fn loaded_module(&self, number: usize) -> Result<&LoadedModule, NoSymbols> {
        let by_region = self.by_region();
        let (Some(module), Some(slot)) = (by_region.modules.get(number), by_region.loaded_modules.get(number)) else {
            return Err(NoSymbols::NotLoaded);
        };
        slot.get_or_init(|| {
            let symbols = self.symbols.load(self.target, module, self.number)?;
            let copies = place(module, &symbols.elf().segments, self.page_size(), &mut self.symbols.budget())?;
            let name = module.name.clone();
            if copies.is_empty() { Err(NoSymbols::NotLoaded) } else { Ok(LoadedModule { name, symbols, copies }) }
        })
        .as_ref()
        .map_err(NoSymbols::clone)
    }

    pub(crate) fn regions(&self) -> impl DoubleEndedIterator<Item = &Region> {
        let (given, read) = match &self.regions {
            RegionList::Given(given) => (&given[..], &[][..]),
            RegionList::OnDemand(lazy) => (&[][..], lazy.read(self.symbols, self.target)),
        };
        given.iter().copied().chain(read)
    }

    /// Returns whether the caller gave all regions.
    pub(super) fn has_given_regions(&self) -> bool {
        matches!(self.regions, RegionList::Given(_))
    }

    /// Returns whether the regions could not be read, so that no address has a name.
    pub(super) fn lacks_regions(&self) -> bool {
        matches!(&self.regions, RegionList::OnDemand(lazy) if lazy.are_unreadable())
    }

    pub(super) fn region(&self, number: usize) -> Option<&Region> {
        match &self.regions {
            RegionList::Given(given) => given.get(number).copied(),
            RegionList::OnDemand(lazy) => lazy.read(self.symbols, self.target).get(number),
        }
    }

    /// Returns the number of the region that contains `address`; `None` also if the address can have no name and the
    /// regions were not read.
    pub(super) fn region_number(&self, address: VirtualAddress) -> Option<usize> {
        let starts_before = |region: &Region| region.range.start() <= address;
        let after = match &self.regions {
            RegionList::Given(given) => given.partition_point(|region| starts_before(region)),
            RegionList::OnDemand(lazy) if lazy.is_unnamed(self.symbols, self.target, address) => return None,
            RegionList::OnDemand(lazy) => lazy.read(self.symbols, self.target).partition_point(starts_before),
        };
        let number = after.checked_sub(1)?;
        self.region(number)?.range.contains(address).then_some(number)
    }

    /// Returns the module and the copy of it to which `address` belongs.
    pub(super) fn copy_at(&self, address: VirtualAddress) -> Option<(&Module, &LoadedModule, &LoadedCopy)> {
        let region = self.region_number(address)?;
        let of_region = &self.by_region().of_region;
        // Mapped data files are not searched: a read would bring their pages into the page cache, or swap them in.
        let program = |number: usize| self.modules().get(number).filter(|_| self.is_program(number));
        if let Some(number) = of_region.get(region).copied()? {
            let module = program(number)?;
            let loaded = self.loaded_module(number).ok()?;
            let copy = loaded.copies.iter().find(|copy| copy.maps(address))?;
            return Some((module, loaded, copy));
        }
        // Anonymous memory after a module may be its .bss, whatever its name: the heap can be merged with .bss.
        let number = self.module_before(region)?;
        let module = program(number)?;
        let loaded = self.loaded_module(number).ok()?;
        let copy = loaded.copies.iter().find(|copy| copy.loads(loaded.segments(), address))?;
        Some((module, loaded, copy))
    }

    /// Returns the module before the anonymous regions up to `region`.
    fn module_before(&self, region: usize) -> Option<usize> {
        let of_region = &self.by_region().of_region;
        (0..region)
            .rev()
            .take(MOST_BSS_REGIONS)
            .take_while(|&before| {
                let neighbours = self.region(before).zip(self.region(before + 1));
                neighbours.is_some_and(|(one, next)| next.range.start().get() - one.range.end().get() < WIDEST_GAP)
            })
            .find_map(|before| of_region.get(before).copied()?)
    }
}
