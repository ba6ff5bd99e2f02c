//! Finds the source line of an address, with the functions that were inlined there; and the addresses of a line. DWARF
//! is read only when a line is needed.
//!
//! Each query is one pass over the entries of one unit. The only index is that of the units and their addresses. The
//! files are not trusted: nothing recurses over their numbers, and a query that lasts too long is given up.
//!
//! ```text
//! ask        the queries                          table          one file's answers
//! cache      what was read before                 further_files  parts in other files: shared (dwz), split (.dwo, .dwp)
//! units      address → unit                       rows           line programs, rows of a line
//! scopes     functions around an address          frames         their names, and the place in each
//! path       of source files                      sections       the bytes, decompressed
//! functions  all functions, where no symbol table is left
//! ```

mod ask;
mod frames;
mod functions;
mod further_files;
mod path;
mod rows;
mod scopes;
mod sections;
mod table;
#[cfg(test)]
mod tests;
mod units;

pub use ask::{LineAt, LinePlace, LineSearch, SourcesOf};
pub(super) use functions::{DescribedFunction, described_functions};
pub(super) use table::{CachedLines, DebugInfoCache};

use super::demangle::readable;
use super::reason::NoLines;
use crate::kernel::Name;

/// A function around an address, with the position in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The linkage name, or the name in the source if there is none; `None` if the debug information has neither.
    /// [`Frame::name`] is for display.
    pub function: Option<Name>,
    /// Whether the name is that of the symbol, because the debug information has none.
    pub is_named_by_symbol: bool,
    /// The whole path of the source file, as far as it is known.
    pub file: Option<Name>,
    /// The line; `None` for code of no line.
    pub line: Option<u64>,
    /// The column, from 1 on; `None` if unknown.
    pub column: Option<u64>,
}

impl Frame {
    /// Returns the bytes of its name and path.
    fn text(&self) -> usize {
        let texts = [&self.function, &self.file].into_iter().flatten();
        texts.map(|text| text.as_bytes().len()).sum()
    }

    /// Returns the demangled name for display.
    pub fn name(&self) -> Option<Name> {
        self.function.as_ref().map(readable)
    }
}
