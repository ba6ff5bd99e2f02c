//! ELF files behind regions: from an address to the symbol it lies in, and from a name to its address.
//!
//! Nothing is read before the first query. A single address costs one streaming pass over the symbol table, and reading
//! one name. After several look-ups in a module an index is built. Names are demangled only when they are shown. Files
//! are read by offset, never mapped, and each number in them is checked against the file's length first: a damaged or
//! hostile file gives no symbols, and [`TargetSymbols::reason`] says why.
//!
//! ```text
//! queries     target_symbols          queries about one target; survey: about all modules at once
//!             regions_on_demand       its regions, read when first needed
//!             symbols                 the files, kept for the session
//!             symbol_at, reason       what is found, or why nothing is
//! names       query, search           a name that a user types → symbols; search_cache: those found lately; version
//!             demangle_prefilter      which names are worth demangling
//! addresses   lookup, names           an address → a symbol and its name; index, interval_map: the same for many
//! modules     module, load_bias       regions → modules, and where each was loaded; loaded_module: both together
//!             module_symbols          a module with its files, index and caches
//!             sources, separate       its files together; separate debug files
//! files       elf                     one file, read by offset within bounds; expanded: the memory of decompressed tables
//!             table                   one pass over its symbols; import, plt_got: stubs and slots for imported functions
//! JIT code    jit, perf_map           code that the target makes while it runs, and the names that it writes for it
//! beside      demangle, lines         names that people read; lines of the source
//! ```

mod demangle;
mod demangle_prefilter;
mod elf;
mod expanded;
mod import;
mod index;
mod interval_map;
mod jit;
mod lines;
mod load_bias;
mod loaded_module;
mod lookup;
mod module;
mod module_symbols;
mod names;
mod perf_map;
mod plt_got;
mod query;
mod reason;
mod regions_on_demand;
mod search;
mod search_cache;
mod separate;
mod sources;
mod survey;
mod symbol_at;
mod symbols;
mod table;
mod target_symbols;
#[cfg(test)]
pub(crate) mod tests;
mod version;

pub use jit::JitSurvey;
pub use lines::{Frame, LineAt, LinePlace, LineSearch, NoLines, NoPart, SourcesOf};
pub use module::{Module, modules};
pub use reason::{Error, NoBuildId, NoSeparate, NoSymbols};
pub use sources::Answers;
pub use survey::Survey;
pub use symbol_at::SymbolAt;
pub use symbols::{ModuleRegions, Symbols};
pub use table::Kind;
pub use target_symbols::{TargetSymbols, may_have_names};
