//! Decides which modules are programs and libraries, and not mapped data files.
//!
//! Data files are not searched for names: a read would bring their pages into the page cache, or swap them in. A module
//! with executable memory is no data file. Emulators and compilers also map programs of which nothing is executable.
//! Such a module is recognized by its ELF header, which is read only if it is in the page cache.

use super::TargetSymbols;
use super::elf::{PROGRAM_HEADER, is_program_header};
use super::module::Module;
use std::sync::atomic::Ordering;

/// The most headers of modules without executable memory that one command reads.
const MOST_HEADERS: usize = 256;

impl TargetSymbols<'_> {
    /// Returns whether a module is a program or a library: some of it is executable, or it is an ELF file whose
    /// segments are loaded as such.
    pub(super) fn is_program(&self, number: usize) -> bool {
        self.modules().get(number).is_some_and(|module| {
            module.is_executable()
                || (module.may_be_loaded()
                    && self.is_elf(number).is_some_and(|known| *known.get_or_init(|| self.has_program_header(module)))
                    && self.loaded_module(number).is_ok())
        })
    }

    fn has_program_header(&self, module: &Module) -> bool {
        let Some(first) = module.regions.iter().find(|region| region.offset == module.start) else {
            return false;
        };
        if self.headers_read().fetch_add(1, Ordering::Relaxed) >= MOST_HEADERS {
            return false;
        }
        let (modules, mut header) = (&self.target.modules, [0; PROGRAM_HEADER]);
        let read = if self.target.process.capture_times().is_some() {
            module.open(modules).ok().and_then(|file| file.read_up_to(0, &mut header).ok())
        } else {
            modules.read_cached(first, first.range.start(), &mut header).ok()
        };
        read == Some(PROGRAM_HEADER) && is_program_header(&header)
    }
}

impl Module {
    /// Returns whether its regions may be the segments of a program, though none is executable: a data file is mostly
    /// mapped in one piece.
    fn may_be_loaded(&self) -> bool {
        self.inode != 0 && self.regions.len() > 1 && self.regions.iter().any(|region| region.offset == self.start)
    }
}
