//! ELF files behind regions: from an address to the symbol it lies in, and from a name to its address.
//!
//! Nothing is read until something is asked. A single address costs one streaming pass over the symbol table and the
//! reading of one name; a module that is asked again and again earns an index. Names are demangled only when they are shown.
//! Files are read by offset, never mapped, and each number in them is held against the file's length first: a damaged or hostile
//! file gives no symbols, and [`View::reason`] says why.
//!
//! ```text
//! module     regions → modules                elf, section   the headers        query, demangle   names people type
//! placement  where a file was loaded          table      one pass over symbols  search, version   name → symbols
//! loaded     a file and what is kept of it    lookup     address → symbol       index             the same, for many
//! ```

mod demangle;
mod elf;
mod file;
mod index;
mod loaded;
mod lookup;
mod module;
mod names;
mod needle;
mod placement;
mod query;
mod reason;
mod search;
mod section;
mod symbol_at;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod version;
mod view;

pub use module::{Module, modules};
pub use reason::{Error, NoSymbols};
pub use symbol_at::SymbolAt;
pub use table::Kind;
pub use view::View;

use crate::kernel::{AddressRange, Device, Name, Region};
use crate::target::Target;
use file::File;
use loaded::Loaded;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Files kept open for their symbols at the same time, at most.
const MOST_OPEN: usize = 256;

/// What is known of the files behind regions. Lives as long as the session; look through it with [`Symbols::over`].
#[derive(Default)]
pub struct Symbols {
    files: Mutex<HashMap<FileKey, Arc<Loaded>>>,
    views: AtomicU64,
}

/// Which file: its identity as `maps` gives it. The vdso has no file, so its place stands in for one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FileKey {
    device: Device,
    inode: u64,
    name: Name,
    image: Option<(u32, AddressRange)>,
}

impl Symbols {
    /// The names of `target` as its `regions` (in address order) are now. Made for one command: a view checks once for each file
    /// it uses that the file has not changed, and reads it again if it has.
    pub fn over<'a>(&'a self, target: &'a Target, regions: &'a [Region]) -> View<'a> {
        let number = 1 + self.views.fetch_add(1, Ordering::Relaxed);
        View::new(self, target, regions, number)
    }

    /// The file of a module, opened and read if it is not known yet or has changed since.
    fn load(&self, target: &Target, module: &Module, view: u64) -> Result<Arc<Loaded>, NoSymbols> {
        let Some(region) = module.regions.first() else {
            return Err(NoSymbols::NotLoaded);
        };
        let key = FileKey {
            device: module.device,
            inode: module.inode,
            name: module.name.clone(),
            image: module
                .is_vdso()
                .then(|| (target.process.identity().pid, region.range)),
        };
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&key).cloned();
        if let Some(loaded) = known {
            let fresh = loaded.seen.swap(view, Ordering::Relaxed) == view;
            if fresh || loaded.file.is_unchanged() {
                return Ok(loaded);
            }
            lock().remove(&key);
        }
        // Read without the lock: modules may be loaded side by side.
        let bytes = match module.is_vdso() {
            true => target.modules.image(region)?,
            false => target.modules.open(region)?,
        };
        let loaded = Arc::new(Loaded::read(File::new(bytes), view)?);
        let mut files = lock();
        if files.len() >= MOST_OPEN {
            // Those of this view are in use; the others can be opened again.
            files.retain(|_, other| other.seen.load(Ordering::Relaxed) == view);
        }
        if files.len() < MOST_OPEN {
            files.insert(key, Arc::clone(&loaded));
        }
        Ok(loaded)
    }
}
