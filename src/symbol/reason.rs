//! Why a module gives no symbols, a name no address, and an address no line.

use crate::budget::OutOfBudget;
use crate::kernel::Name;
use crate::process;
use thiserror::Error as ThisError;

/// Why a module gives no symbols. Kept for each module and shown by `info modules`.
#[derive(Clone, Debug, ThisError)]
pub enum NoSymbols {
    /// The file behind it does not begin as an ELF file does.
    #[error("not an ELF file")]
    NotElf,
    /// The file could not be opened: its reason and remedy are the target's.
    #[error("{0}")]
    Unreadable(#[from] process::Error),
    /// A read failed half-way.
    #[error("reading the file failed: {0}")]
    ReadFailed(String),
    /// A part lies beyond the end of the file, or the file was truncated during the read.
    #[error("the file ends before its {0}")]
    CutShort(&'static str),
    /// A field has a value that no linker writes.
    #[error("damaged ELF file: {0}")]
    Damaged(&'static str),
    /// Neither `.symtab` nor `.dynsym`.
    #[error("the file has no symbol table (stripped)")]
    Stripped,
    /// Its symbol table is not loaded, and only memory is there.
    #[error(
        "its symbols are not in this core, and /usr/lib/debug/.build-id has no file of its build-id; pmdb opens no file that a core names"
    )]
    NotInCore,
    /// It has so many names, or so complex ones, that a search was given up.
    #[error("it has too many names to search in time")]
    TooCostly,
    /// More names match an expression than are kept in memory: the last ones are left out.
    #[error("so many of its names match that the last ones are left out")]
    TooManyMatches,
    /// Ctrl-C.
    #[error("the search of its names was interrupted")]
    Interrupted,
    /// Decompressed tables of other modules take all the memory reserved for them.
    #[error("the decompressed tables of other modules fill the memory reserved for them")]
    NoRoom,
    /// Memory is too short for the file's tables.
    #[error("there is too little free memory for what the file holds")]
    OutOfMemory,
    /// No load segment of the file explains where its regions are: it is mapped as data.
    #[error("the file is mapped as data, not loaded as a program or library")]
    NotLoaded,
    /// Neither the file nor a separate one has debug information.
    #[error("no debug information: {0}")]
    NoDebugInformation(NoSeparate),
}

impl NoSeparate {
    /// Why a file has no symbols or lines because of this: only if looking for it was given up, and may be repeated.
    pub(super) fn given_up(&self) -> Option<NoSymbols> {
        match self {
            NoSeparate::TooCostly => Some(NoSymbols::TooCostly),
            NoSeparate::Interrupted => Some(NoSymbols::Interrupted),
            _ => None,
        }
    }
}

impl NoSymbols {
    /// What there was no more of, if the query was given up.
    pub(super) fn out_of_budget(&self) -> Option<OutOfBudget> {
        match self {
            NoSymbols::TooCostly => Some(OutOfBudget::Time),
            NoSymbols::Interrupted => Some(OutOfBudget::Interrupted),
            _ => None,
        }
    }

    /// Whether another query may still succeed.
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
    /// The file holds all that it was built with.
    #[error("the file holds its own debug information")]
    NotNeeded,
    /// It has neither build-id nor `.gnu_debuglink`.
    #[error("the file names no separate debug file")]
    NotNamed,
    /// The file that would name it was not read.
    #[error("{0}")]
    NotRead(Box<NoSymbols>),
    /// It is in none of the places where it could be.
    #[error("no separate debug file is installed")]
    NotFound,
    /// The file found is of another build.
    #[error("{path} is of another build")]
    OfAnotherBuild {
        /// Where it is, in the target's root.
        path: Name,
    },
    /// It would take too long to check whether the file found is of the same build.
    #[error("{path} is too large to compute its checksum")]
    TooLarge {
        /// Where it is, in the target's root.
        path: Name,
    },
    /// Checking it was given up.
    #[error("the search for it reached the time limit")]
    TooCostly,
    /// Ctrl-C.
    #[error("the search for it was interrupted")]
    Interrupted,
    /// A file was found that could not be opened.
    #[error("{0}")]
    Unreadable(#[from] process::Error),
}

/// Why the build-id of a module is unknown.
#[derive(Clone, Debug, ThisError)]
pub enum NoBuildId {
    /// The file was read, and has none.
    #[error("the file has none: it was linked without one")]
    None,
    /// The file was not read.
    #[error("{0}")]
    NotRead(NoSymbols),
}

/// Why a name or a file address could not be turned into an address.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// Nothing mapped has this file name.
    #[error("no module is called `{module}`")]
    NoSuchModule {
        /// As it was asked for.
        module: Name,
    },
    /// The module is there but its symbols are not.
    #[error("`{module}` gives no symbols: {reason}")]
    NoSymbols {
        /// Its file name.
        module: Name,
        /// Why.
        reason: NoSymbols,
    },
    /// The only symbol of that name has a copy in each thread.
    #[error("`{name}` in `{module}` is thread-local: each thread has its own copy, so it has no one address")]
    ThreadLocal {
        /// As it was asked for.
        name: Name,
        /// Where it is defined.
        module: Name,
    },
    /// Ctrl-C.
    #[error("looking up `{name}` was interrupted")]
    Interrupted {
        /// As it was asked for.
        name: Name,
    },
    /// The address lies in no load segment of the file.
    #[error("{address:#x} lies in no load segment of `{module}`")]
    NotInFile {
        /// The address in the file.
        address: u64,
        /// Its file name.
        module: Name,
    },
}

/// Why an address has no line, or something about it is unknown.
#[derive(Clone, Debug, ThisError)]
pub enum NoLines {
    /// No program or library is mapped there.
    #[error("it is in no module")]
    NoModule,
    /// The module's file could not be read.
    #[error("{0}")]
    NoFile(NoSymbols),
    /// Neither the module nor a file that belongs to it has debug information.
    #[error("no debug information in {file}: {why}")]
    NoDebugInformation {
        /// File name of the module.
        file: Name,
        /// Why no other file has it.
        why: NoSeparate,
    },
    /// There is debug information, but about other addresses.
    #[error("no unit of the debug information covers it")]
    NotCovered,
    /// A unit covers the address, but was compiled without a line table.
    #[error("its unit ({0}) has no line table")]
    NoLineTable(Name),
    /// The unit has a line table, with a gap at the address.
    #[error("the line table of its unit ({0}) does not cover it")]
    NoRow(Name),
    /// The compiler made the instruction for no line of the source.
    #[error("the compiler gives it no line")]
    NoLine,
    /// The functions are described in a file of their own (`-gsplit-dwarf`).
    #[error("the functions are described in {file} (split DWARF): {why}")]
    Split {
        /// Where it should be, in the target's root.
        file: Name,
        /// Why it does not tell.
        why: NoPart,
    },
    /// The names are in a file that several share (`dwz -m`).
    #[error("names are in {file}, which several modules share (dwz): {why}")]
    Shared {
        /// Where it should be, in the target's root.
        file: Name,
        /// Why it does not tell.
        why: NoPart,
    },
    /// The same, but nothing names the file.
    #[error("names are in a file that several modules share (dwz), and the module does not name it")]
    NotNamed,
    /// The debug information contradicts itself.
    #[error("damaged debug information: {0}")]
    Damaged(String),
    /// It lists more addresses than are kept in memory.
    #[error("the debug information is too large")]
    TooLarge,
    /// It is so complex that the query was given up.
    #[error("the debug information is too large to search in time")]
    TooCostly,
    /// Ctrl-C.
    #[error("stopped")]
    Interrupted,
}

/// Why a further file that belongs to debug information does not tell.
#[derive(Clone, Debug, ThisError)]
pub enum NoPart {
    /// There is no such file, or it is no ELF file.
    #[error("there is no such debug file")]
    NotFound,
    /// The identity in it is another one.
    #[error("that file is of another build")]
    OfAnotherBuild,
    /// It could not be opened.
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
    /// Reading a section may end with the budget of the whole query.
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

/// The result of a part. A fault of it is kept in `fault`, if none is there yet, and the rest goes on without it.
///
/// # Errors
/// Reasons after which a retry may succeed: they end the query.
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
    /// Whether a retry may succeed.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, NoLines::Interrupted | NoLines::TooCostly | NoLines::NoFile(NoSymbols::OutOfMemory))
    }
}
