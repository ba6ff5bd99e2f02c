//! The syntax trees of the commands.

use super::arguments::{Ps, Regions, Snapshot};
use crate::kernel::words::worded;
use crate::lang::{Count, Cut, Expression, Range, Spanned, SymbolName};

/// A command with its arguments, one variant a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `attach PID|NAME`
    Attach(Spanned<TargetName>),
    /// `ps …`
    Ps(Ps),
    /// `info process`
    InfoProcess,
    /// `info capabilities`
    InfoCapabilities,
    /// `info symbol ADDRESS`: which symbol covers the address.
    InfoSymbol(Spanned<Expression>),
    /// `info address SYMBOL`: where a symbol lies.
    InfoAddress(Spanned<SymbolName>),
    /// `info symbols REGEX [limit N|top N]`: the symbols whose names match.
    InfoSymbols {
        /// What the names must match.
        pattern: Spanned<String>,
        /// Which of them; all if absent.
        cut: Option<Cut>,
    },
    /// `info modules`: programs and libraries, and where their symbols come from.
    InfoModules,
    /// `info threads`
    InfoThreads,
    /// `info registers`
    InfoRegisters,
    /// `info line ADDRESS`, `info line FILE:LINE`. The `*` that gdb needs before an address is dropped.
    InfoLine(Spanned<Expression>),
    /// `region ADDRESS [full]`
    Region {
        /// An address in the region, or an expression that names the region.
        address: Spanned<Expression>,
        /// Whether to add what only `smaps` knows.
        full: bool,
    },
    /// `regions …`
    Regions(Regions),
    /// `snapshot …`
    Snapshot(Snapshot),
    /// `snapshot delete NAME`
    SnapshotDelete(Spanned<String>),
    /// `info snapshots`
    InfoSnapshots,
    /// `explain ADDR`: what a page is and what the next access will do.
    Explain(Spanned<Expression>),
    /// `flags PLACE`: an address, `pfn:N` or `phys:N`.
    Flags(Spanned<Expression>),
    /// `who PLACE [limit N]`: an address, `pfn:N` or `phys:N`.
    Who {
        /// Whose frame.
        place: Spanned<Expression>,
        /// At most so many rows.
        limit: Option<Spanned<Count>>,
    },
    /// `summary [frames | RANGE]`
    Summary(Summarized),
    /// `decode VALUE [as entry|flags]`: a raw 64-bit word, explained.
    Decode {
        /// The word.
        value: Spanned<Expression>,
        /// As which kind of word; as both if absent.
        reading: Option<Reading>,
    },
    /// `patched [RANGE]`: code that differs from its file.
    Patched(Option<Spanned<Range>>),
    /// `telescope ADDRESS [N]`
    Telescope {
        /// Of the first word.
        address: Spanned<Expression>,
        /// How many words; the command's default if absent.
        count: Option<u64>,
    },
}

impl crate::lang::ParsedCommand for Command {
    fn write(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.written(f)
    }
}

/// The process to attach to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A process or thread id.
    Id(u32),
    /// Part of a name; always a name when it is written in quotes.
    Name(String),
    /// `self`: pmdb itself.
    Itself,
    /// `$x`, without the `$`: a PID or a name.
    Variable(String),
}

impl TargetName {
    /// A PID if it is a plain number, else a name: a process called 007 is one.
    pub fn of(text: &str) -> Self {
        match text.parse::<u32>() {
            Ok(id) if id.to_string() == text => TargetName::Id(id),
            _ if text == "self" => TargetName::Itself,
            _ => TargetName::Name(text.to_owned()),
        }
    }
}

/// What `summary` adds up.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
pub enum Summarized {
    /// The whole process.
    Process,
    /// All frames of physical memory.
    Frames,
    /// The pages, or with `pfn:A..pfn:B` the frames, of a range.
    Range(Spanned<Range>),
}

worded! {
    /// How `decode` reads a raw word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reading, word {
        /// As an entry of `/proc/PID/pagemap`.
        Entry = "entry",
        /// As a word of `/proc/kpageflags`.
        Flags = "flags",
    }
}
