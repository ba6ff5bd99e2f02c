//! Why there is no line.

use crate::budget::OutOfBudget;
use crate::kernel::Name;
use crate::process;
use crate::symbol::{NoSeparate, NoSymbols};
use thiserror::Error as ThisError;

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
    #[error("names are in a file that several modules share (dwz), and nothing says in which")]
    NotNamed,
    /// The debug information contradicts itself.
    #[error("damaged debug information: {0}")]
    Damaged(String),
    /// It lists more addresses than are kept in memory.
    #[error("the debug information is too large")]
    TooLarge,
    /// It is so complex that the query was given up.
    #[error("looking through the debug information takes too long")]
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
