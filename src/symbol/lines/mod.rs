//! From an address to the line of the source it was compiled from, with the functions that were inlined there; and from a line to its
//! addresses. Read from DWARF, only when a line is asked for.
//!
//! Each question is one pass over the entries of one unit: no index is built but that of which unit covers which addresses. The
//! numbers in the file are somebody else's: nothing recurses over them, and a question that would take too long, or that nobody
//! waits for any more, is given up.
//!
//! ```text
//! ask        a view's questions        table    one file's answers     reason   why there is none
//! cache      what was read before      split    units described in a file of their own (.dwo, .dwp)
//! units      address → unit            shared   what several modules keep together (dwz)
//! rows       line programs             places   rows of a line          frames   functions at a row
//! scopes     functions around          names    of functions            described  what tells of functions
//! path       of source files           ranges   addresses of an entry   sections the bytes, unpacked
//! work       what a question may cost  files    names of source files, while one is typed
//! until_found                          what may be put there later
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
mod work;

pub use ask::{LineAt, LinePlace, LineSearch};
pub(super) use cache::{CachedLines, DebugInfoCache};
pub use files::SourcesOf;
pub use reason::{NoLines, NoPart};
pub use work::Stop;

use super::demangle::readable;
use crate::kernel::Name;

/// A function around an address, and the place in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// As the linker spells it, or the source where the linker was told no name; `None` where the debug information does not tell.
    /// [`Frame::name`] is for people.
    pub function: Option<Name>,
    /// Whether the debug information does not tell the function, and it is called as the symbol is that the code lies in.
    pub by_symbol: bool,
    /// Whole path as far as it is told.
    pub file: Option<Name>,
    /// `None` for what belongs to no line.
    pub line: Option<u64>,
    /// Counted from 1; `None` where it is not told.
    pub column: Option<u64>,
}

impl Frame {
    /// Bytes of its name and path.
    fn text(&self) -> usize {
        let texts = [&self.function, &self.file].into_iter().flatten();
        texts.map(|text| text.as_bytes().len()).sum()
    }

    /// The name for people: demangled. Costs its demangling at each call.
    pub fn name(&self) -> Option<Name> {
        self.function.as_ref().map(readable)
    }
}
