//! From an address to its line of the source, with the functions that were inlined there; and from a line to its
//! addresses. DWARF is read only when a line is needed.
//!
//! Each query is one pass over the entries of one unit. The only index is of the units and their addresses. The files
//! are not trusted: nothing recurses over their numbers, and a query that takes too long, or is interrupted, is given
//! up.
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

/// A function around an address, and the place in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The linkage name, or the source's name if there is none; `None` if the debug information has neither.
    /// [`Frame::name`] is for people.
    pub function: Option<Name>,
    /// Whether the name is that of the symbol, as the debug information has none.
    pub is_named_by_symbol: bool,
    /// The whole path, as far as it is known.
    pub file: Option<Name>,
    /// `None` for code of no line.
    pub line: Option<u64>,
    /// Counted from 1; `None` if unknown.
    pub column: Option<u64>,
}

impl Frame {
    /// Bytes of its name and path.
    fn text(&self) -> usize {
        let texts = [&self.function, &self.file].into_iter().flatten();
        texts.map(|text| text.as_bytes().len()).sum()
    }

    /// The name for people: demangled, at each call.
    pub fn name(&self) -> Option<Name> {
        self.function.as_ref().map(readable)
    }
}
