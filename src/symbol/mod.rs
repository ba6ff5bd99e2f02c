//! ELF files behind regions: from an address to the symbol it lies in, and from a name to its address.
//!
//! Nothing is read until something is asked. A single address costs one streaming pass over the symbol table and the
//! reading of one name; a module that is asked again and again earns an index. Names are demangled only when they are shown.
//! Files are read by offset, never mapped, and each number in them is checked against the file's length first: a damaged or hostile
//! file gives no symbols, and [`View::reason`] says why.
//!
//! ```text
//! asked       view                    what is asked about one target; survey: about all modules at once
//!             symbols                 the files, kept for the session
//!             symbol_at, reason       what is found, or why nothing is
//! names       query, search           a name that a person types → symbols; search_cache: those found lately; version
//!             demangle_prefilter      which names are worth demangling
//! addresses   lookup, names           an address → a symbol and its name; index, interval_map: the same for many
//! modules     module, load_bias       regions → modules, and where each was loaded; loaded_module: both together
//!             module_symbols          a module with what is kept of it
//!             sources, separate       its files together; debug information that was stripped off
//! files       elf                     one file, read by offset within bounds; expanded: what was compressed in it
//!             table                   one pass over its symbols; import, plt_got: names of what it calls others through
//! made code   jit, perf_map           what the target makes while it runs, and the names that it writes down for that
//! beside      demangle, lines         names that people read; lines of the source.  clock: how long a search may go on
//! ```

mod clock;
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
mod search;
mod search_cache;
mod separate;
mod sources;
mod survey;
mod symbol_at;
mod symbols;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod version;
mod view;

pub use jit::JitSurvey;
pub use lines::{Frame, LineAt, LinePlace, LineSearch, NoLines, NoPart, SourcesOf, Stop};
pub use module::{Module, modules};
pub use reason::{Error, NoBuildId, NoSeparate, NoSymbols};
pub use sources::Answers;
pub use survey::Survey;
pub use symbol_at::SymbolAt;
pub use symbols::Symbols;
pub use table::Kind;
pub use view::{View, may_have_names};
