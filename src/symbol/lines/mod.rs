//! From an address to its line of the source, with the functions that were inlined there; and from a line to its
//! addresses. DWARF is read only when a line is needed.
//!
//! Each query is one pass over the entries of one unit. The only index is of the units and their addresses. The files
//! are not trusted: nothing recurses over their numbers, and a query that takes too long, or is interrupted, is given
//! up.
//!
//! ```text
//! ask        the queries               table    one file's answers     reason   why there is none
//! cache      what was read before      split    units described in a file of their own (.dwo, .dwp)
//! units      address → unit            shared   what several modules share (dwz)
//! rows       line programs             places   rows of a line          frames   functions at a row
//! scopes     functions around          names    of functions            described  units with functions
//! path       of source files           ranges   addresses of an entry   sections the bytes, decompressed
//! files      names of source files, for completion
//! until_found                          files that may be installed later
//! ```

mod ask;
mod cache;
mod described;
mod files;
mod frames;
mod names;
mod path;
mod places;
mod ranges;
mod reason;
mod rows;
mod scopes;
mod sections;
mod shared;
mod split;
mod table;
#[cfg(test)]
mod tests;
mod units;
mod until_found;

pub use ask::{LineAt, LinePlace, LineSearch};
pub(super) use cache::{CachedLines, DebugInfoCache};
pub use files::SourcesOf;
pub use reason::{NoLines, NoPart};

use super::demangle::readable;
use crate::kernel::Name;

/// A function around an address, and the place in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The linkage name, or the source's name if there is none; `None` if the debug information has neither.
    /// [`Frame::name`] is for people.
    pub function: Option<Name>,
    /// Whether the name is that of the symbol, as the debug information has none.
    pub by_symbol: bool,
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
