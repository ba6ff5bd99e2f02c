//! The memory of variables, and the names of a target over all of its regions.

use super::{NoSymbols, TargetSymbols};
use crate::access;
use crate::budget::OutOfBudget;
use crate::kernel::AddressRange;
use crate::process::Target;

impl TargetSymbols<'_> {
    /// Returns the target.
    pub(crate) fn target(&self) -> &Target {
        self.target
    }

    /// Asks for something that depends on all regions. If these names read only some of them, all are read.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub(crate) fn over_all<T>(&self, ask: impl FnOnce(&TargetSymbols<'_>) -> T) -> access::Result<T> {
        if self.has_given_regions() {
            return Ok(ask(self));
        }
        let regions = self.symbols.regions(self.target)?;
        Ok(ask(&self.symbols.over(self.target, &*regions)))
    }

    /// Returns the private memory that variables are in, and that may be written: that of the program first, then that
    /// of the libraries, each in address order.
    ///
    /// # Errors
    /// Fails if reading a file was given up.
    pub(crate) fn memory_of_variables(&self) -> Result<Vec<AddressRange>, OutOfBudget> {
        let writable = self.regions().filter(|region| region.permissions.write && !region.permissions.shared);
        let writable: Vec<AddressRange> = writable.map(|region| region.range).collect();
        let program = self.target.process.executable();
        let mut all: Vec<(bool, AddressRange)> = Vec::new();
        for (module, loaded) in self.programs().filter(|(module, _)| !module.is_vdso()) {
            let Some(loaded) = NoSymbols::skip(loaded)? else {
                continue;
            };
            let is_library = program.as_ref() != Some(module.mapped_name());
            let memory = loaded.variables(self.page_size());
            all.extend(
                memory.flat_map(|memory| memory.within(&writable).map(|part| (is_library, part))).collect::<Vec<_>>(),
            );
        }
        all.sort_unstable_by_key(|(is_library, range)| (*is_library, range.start()));
        Ok(all.into_iter().map(|(_, range)| range).collect())
    }
}
