//! ELF files that regions map: finds the symbol of an address, and the address of a name.
//!
//! Nothing is read before the first query. A single address needs one streaming pass over the symbol table, and reading
//! one name. After several look-ups in a module an index is built. Names are demangled only when they are shown. Files
//! are read by offset, never mapped, and each number in them is first checked against the file's length. A damaged or
//! hostile file gives no symbols, and [`TargetSymbols::reason`] returns the reason.
//!
//! ```text
//! queries     target_symbols          queries about one target; survey: about all modules at once
//!             symbols                 the files, kept for the session, and the regions
//!             reason                  why nothing is found
//! names       demangle, search        a name that a user types → symbols, with the names that people read
//!             offered                 the beginning of a name → the names that a completion offers
//! addresses   lookup                  an address → a symbol: the rule, and the index
//! modules     module                  regions → modules, and where each was loaded
//!             archive                 modules within an archive
//!             program                 which of them are programs and libraries
//!             module_symbols          a module with its files, index and caches, and its symbols in the process
//!             variables               the memory of their variables
//!             files                   its files together; the search for its separate debug file
//! files       elf                     one file, read by offset within bounds
//!             expanded                how much memory decompressed and made tables take
//!             described               a table made of debug information, where the file has lost its own
//!             table                   one pass over its symbols, and their names; stubs and slots for imports
//! JIT code    jit, perf_map           code that the target makes while it runs, and the names that it writes for it
//! beside      lines                   lines of the source
//! ```

mod archive;
#[cfg(feature = "cli")]
mod capture;
mod demangle;
mod described;
mod elf;
mod expanded;
mod files;
mod jit;
mod lines;
mod lookup;
mod module;
mod module_symbols;
mod offered;
mod perf_map;
mod program;
mod reason;
mod search;
mod survey;
mod symbols;
mod table;
mod target_symbols;
#[cfg(test)]
pub(crate) mod tests;
mod variables;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use capture::read_tables;
pub use files::NamesFrom;
pub use jit::JitSurvey;
pub use lines::{Frame, LineAt, LinePlace, LineSearch, SourcesOf};
pub use module::{Module, bss, may_have_names, modules};
pub use module_symbols::SymbolAt;
pub use offered::NamesIn;
pub use reason::{Error, NoBuildId, NoLines, NoPart, NoSeparate, NoSymbols};
pub use survey::{MatchStep, Survey, SurveyMatches, Surveys};
pub use symbols::{ModuleRegions, Symbols};
pub use table::SymbolKind;
pub use target_symbols::{CodeSegment, TargetSymbols};
