//! ELF files behind regions: from an address to the symbol it lies in, and from a name to its address.
//!
//! Nothing is read until something is asked. A single address costs one streaming pass over the symbol table and the
//! reading of one name; a module that is asked again and again earns an index. Names are demangled only when they are shown.
//! Files are read by offset, never mapped, and each number in them is held against the file's length first: a damaged or hostile
//! file gives no symbols, and [`View::reason`] says why.
//!
//! ```text
//! view       what is asked, about one target   module     regions → modules        query, needle    names people type
//! symbols    the files, kept for the session   placement  where a file was loaded  search, version  name → symbols
//! loaded     a module and what is kept of it   sources    its files together       lookup           address → symbol
//! searches   what names were looked for
//! symbol_at  what is found                     separate   what was stripped off    index, stretches the same, for many
//! reason     why nothing is found              source, file   one file, bounded    demangle         names people read
//! survey     about all modules at once         elf, section, contents, build_id: what a file says of itself
//! table      one pass over symbols             relocations  one over relocations: copied, plt, got (stand_in, import)
//! made       what the target makes         perf_map   the names that it writes down for that   clock  how long a search may go on
//! ```

mod build_id;
mod clock;
mod contents;
mod copied;
mod demangle;
mod dynamic;
mod elf;
mod expanded;
mod file;
mod got;
mod import;
mod index;
mod lines;
mod loaded;
mod lookup;
mod made;
mod module;
mod names;
mod needle;
mod perf_map;
mod placement;
mod plt;
mod query;
mod reason;
mod relocations;
mod search;
mod searches;
mod section;
mod separate;
mod source;
mod sources;
mod stand_in;
mod stretches;
mod survey;
mod symbol_at;
mod symbols;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod version;
mod view;

pub use lines::{Frame, LineAt, LinePlace, LineSearch, NoLines, NoPart, SourcesOf, Stop};
pub use made::MadeSurvey;
pub use module::{Module, modules};
pub use reason::{Error, NoBuildId, NoSeparate, NoSymbols};
pub use sources::Answers;
pub use survey::Survey;
pub use symbol_at::SymbolAt;
pub use symbols::Symbols;
pub use table::Kind;
pub use view::{View, may_have_names};
