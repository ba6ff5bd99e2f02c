//! The reasons why a module has no symbols, a name no address, and an address no line.

use crate::budget::OutOfBudget;
use crate::kernel::Name;
use crate::process;
use thiserror::Error as ThisError;

/// Why a module has no symbols. Kept for each module, and shown by `info modules`.
#[derive(Clone, Debug, ThisError)]
pub enum NoSymbols {
    /// The mapped file does not begin like an ELF file.
    #[error("not an ELF file")]
    NotElf,
    /// The file could not be opened: reason and remedy are in the error.
    #[error("{0}")]
    Unreadable(#[from] process::Error),
    /// A read failed after the file was opened.
    #[error("reading the file failed: {0}")]
    ReadFailed(String),
    /// A part extends beyond the end of the file, or the file was truncated during the read.
    #[error("the file ends before its {0}")]
    CutShort(&'static str),
    /// A field has a value that no linker writes.
    #[error("damaged ELF file: {0}")]
    Damaged(&'static str),
    /// The file has neither `.symtab` nor `.dynsym`.
    #[error("the file has no symbol table (stripped)")]
    Stripped,
    /// The symbol table is not loaded, and only memory is available.
    #[error(
        "its symbols are not in this core, and /usr/lib/debug/.build-id has no file of its build-id; pmdb opens no file that a core names"
    )]
    NotInCore,
    /// The file has so many names, or so complex ones, that a search was given up.
    #[error("it has too many names to search in time")]
    TooCostly,
    /// More names match an expression than are kept in memory: the last ones are left out.
    #[error("so many of its names match that the last ones are left out")]
    TooManyMatches,
    /// Ctrl-C was pressed.
    #[error("the search of its names was interrupted")]
    Interrupted,
    /// Decompressed tables of other modules take all the memory reserved for them.
    #[error("the decompressed tables of other modules fill the memory reserved for them")]
    NoRoom,
    /// Memory is too short for the file's tables.
    #[error("there is too little free memory for what the file holds")]
    OutOfMemory,
    /// No load segment of the file explains the places of its regions: it is mapped as data.
    #[error("the file is mapped as data, not loaded as a program or library")]
    NotLoaded,
    /// Neither the file nor a separate one has debug information.
    #[error("no debug information: {0}")]
    NoDebugInformation(NoSeparate),
}

impl NoSeparate {
    /// Returns why a file has no symbols or lines if the search for the debug file was given up, which may be repeated.
    pub(super) fn given_up(&self) -> Option<NoSymbols> {
        match self {
            NoSeparate::TooCostly => Some(NoSymbols::TooCostly),
            NoSeparate::Interrupted => Some(NoSymbols::Interrupted),
            _ => None,
        }
    }
}

impl NoSymbols {
    /// Returns the exhausted budget, if the query was given up.
    pub(super) fn out_of_budget(&self) -> Option<OutOfBudget> {
        match self {
            NoSymbols::TooCostly => Some(OutOfBudget::Time),
            NoSymbols::Interrupted => Some(OutOfBudget::Interrupted),
            NoSymbols::OutOfMemory => Some(OutOfBudget::Bytes),
            _ => None,
        }
    }

    /// Returns what was read; `None` if that is not possible.
    ///
    /// # Errors
    /// Fails if the query was given up.
    pub(super) fn skip<T>(read: Result<T, NoSymbols>) -> Result<Option<T>, OutOfBudget> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(reason) => reason.out_of_budget().map_or(Ok(None), Err),
        }
    }

    /// Returns whether another query may succeed.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, NoSymbols::TooCostly | NoSymbols::Interrupted | NoSymbols::OutOfMemory)
    }
}

impl From<OutOfBudget> for NoSymbols {
    fn from(over: OutOfBudget) -> Self {
        match over {
            OutOfBudget::Interrupted => NoSymbols::Interrupted,
            _ => NoSymbols::TooCostly,
        }
    }
}

impl From<std::io::Error> for NoSymbols {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::OutOfMemory => NoSymbols::OutOfMemory,
            _ => NoSymbols::ReadFailed(error.to_string()),
        }
    }
}

/// Why a module has no separate debug file.
#[derive(Clone, Debug, ThisError)]
pub enum NoSeparate {
    /// The file contains all that it was built with.
    #[error("the file holds its own debug information")]
    NotNeeded,
    /// The file has neither build-id nor `.gnu_debuglink`.
    #[error("the file names no separate debug file")]
    NotNamed,
    /// The file with that reference was not read.
    #[error("{0}")]
    NotRead(Box<NoSymbols>),
    /// No place has the file.
    #[error("no separate debug file is installed")]
    NotFound,
    /// The file found is from another build.
    #[error("{path} is of another build")]
    OfAnotherBuild {
        /// The path of the file in the target's root.
        path: Name,
    },
    /// Checking whether the file found is from the same build would last too long.
    #[error("{path} is too large to compute its checksum")]
    TooLarge {
        /// The path of the file in the target's root.
        path: Name,
    },
    /// The check was given up.
    #[error("the search for it reached the time limit")]
    TooCostly,
    /// Ctrl-C was pressed.
    #[error("the search for it was interrupted")]
    Interrupted,
    /// The file found could not be opened.
    #[error("{0}")]
    Unreadable(#[from] process::Error),
}

/// Why the build-id of a module is unknown.
#[derive(Clone, Debug, ThisError)]
pub enum NoBuildId {
    /// The file has no build-id.
    #[error("the file has none: it was linked without one")]
    None,
    /// The file was not read.
    #[error("{0}")]
    NotRead(NoSymbols),
}

/// Why there is no address for a name or a file address.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// No mapped file has this name.
    #[error("no module is called `{module}`")]
    NoSuchModule {
        /// The name in the query.
        module: Name,
    },
    /// The module is mapped, but has no symbols.
    #[error("`{module}` gives no symbols: {reason}")]
    NoSymbols {
        /// The file name of the module.
        module: Name,
        /// Why it has no symbols.
        reason: NoSymbols,
    },
    /// The only symbol with this name has a copy in each thread.
    #[error("`{name}` in `{module}` is thread-local: each thread has its own copy, so it has no one address")]
    ThreadLocal {
        /// The name in the query.
        name: Name,
        /// The module that defines the symbol.
        module: Name,
    },
    /// Ctrl-C was pressed.
    #[error("looking up `{name}` was interrupted")]
    Interrupted {
        /// The name in the query.
        name: Name,
    },
    /// The address is in no load segment of the file.
    #[error("{address:#x} lies in no load segment of `{module}`")]
    NotInFile {
        /// The address in the file.
        address: u64,
        /// The file name of the module.
        module: Name,
    },
}

/// Why an address has no line, or a part of the answer is unknown.
#[derive(Clone, Debug, ThisError)]
pub enum NoLines {
    /// The address is in no program or library.
    #[error("it is in no module")]
    NoModule,
    /// The module's file could not be read.
    #[error("{0}")]
    NoFile(NoSymbols),
    /// Neither the module nor a file that belongs to it has debug information.
    #[error("no debug information in {file}: {why}")]
    NoDebugInformation {
        /// The file name of the module.
        file: Name,
        /// Why no other file has it.
        why: NoSeparate,
    },
    /// There is debug information, but not about this address.
    #[error("no unit of the debug information covers it")]
    NotCovered,
    /// A unit covers the address, but was compiled without a line table.
    #[error("its unit ({0}) has no line table")]
    NoLineTable(Name),
    /// The unit has a line table, with a gap at the address.
    #[error("the line table of its unit ({0}) does not cover it")]
    NoRow(Name),
    /// The compiler added the instruction, for no line of the source.
    #[error("the compiler gives it no line")]
    NoLine,
    /// The functions are described in a separate file (`-gsplit-dwarf`).
    #[error("the functions are described in {file} (split DWARF): {why}")]
    Split {
        /// The path where the file should be, in the target's root.
        file: Name,
        /// Why the file was not read.
        why: NoPart,
    },
    /// The names are in a file that several modules share (`dwz -m`).
    #[error("names are in {file}, which several modules share (dwz): {why}")]
    Shared {
        /// The path where the file should be, in the target's root.
        file: Name,
        /// Why the file was not read.
        why: NoPart,
    },
    /// The names are in a shared file, to which nothing refers.
    #[error("names are in a file that several modules share (dwz), and the module does not name it")]
    NotNamed,
    /// The debug information is inconsistent.
    #[error("damaged debug information: {0}")]
    Damaged(String),
    /// The debug information lists more addresses than are kept in memory.
    #[error("the debug information is too large")]
    TooLarge,
    /// The debug information is so complex that the query was given up.
    #[error("the debug information is too large to search in time")]
    TooCostly,
    /// Ctrl-C was pressed.
    #[error("stopped")]
    Interrupted,
}

/// Why a further file of debug information was not read.
#[derive(Clone, Debug, ThisError)]
pub enum NoPart {
    /// There is no such file, or it is no ELF file.
    #[error("there is no such debug file")]
    NotFound,
    /// The file has another identity.
    #[error("that file is of another build")]
    OfAnotherBuild,
    /// The file could not be opened.
    #[error("{0}")]
    Unreadable(#[from] process::Error),
}

impl From<OutOfBudget> for NoLines {
    fn from(over: OutOfBudget) -> Self {
        match over {
            OutOfBudget::Interrupted => NoLines::Interrupted,
            _ => NoLines::TooCostly,
        }
    }
}

impl From<NoSymbols> for NoLines {
    /// Reading a section may exhaust the budget of the whole query.
    fn from(reason: NoSymbols) -> Self {
        match reason {
            NoSymbols::Interrupted => NoLines::Interrupted,
            NoSymbols::TooCostly => NoLines::TooCostly,
            other => NoLines::NoFile(other),
        }
    }
}

impl From<gimli::Error> for NoLines {
    fn from(error: gimli::Error) -> Self {
        NoLines::Damaged(error.to_string())
    }
}

/// Returns the result of a part. The fault of a damaged part is kept in `fault`, unless there is one already, and the
/// query continues without that part.
///
/// # Errors
/// Fails with reasons after which a retry may succeed: they end the query.
pub(super) fn or_fault<T>(part: Result<T, NoLines>, fault: &mut Option<NoLines>) -> Result<Option<T>, NoLines> {
    match part {
        Ok(part) => Ok(Some(part)),
        Err(passing) if passing.is_passing() => Err(passing),
        Err(why) => {
            fault.get_or_insert(why);
            Ok(None)
        }
    }
}

impl NoLines {
    /// Returns whether a retry may succeed.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, NoLines::Interrupted | NoLines::TooCostly | NoLines::NoFile(NoSymbols::OutOfMemory))
    }
}
