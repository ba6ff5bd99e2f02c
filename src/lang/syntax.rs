//! The syntax tree of a line: plain data, with the place of everything that an error may have to point at.
//!
//! Nothing here knows a target: names are names, numbers are numbers, and what they come to is `eval`'s business.

use std::time::Duration;

pub use super::expression::{
    BinaryOperator, Comparison, Expression, Filter, Function, HistoryReference, IntegerType, Name,
    Quantity, Range, Register, SymbolName, UnaryOperator,
};
pub use super::field::{FilterField, PageField, RegionField, ValueType};
pub use super::layout::{Format, Layout, Unit};
pub use super::place::{Place, Spanned};
pub use super::setting::{ColorChoice, Setting, SettingValue};

/// One line of input.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
pub enum Line {
    /// Nothing, or only blanks: at a prompt this repeats the last command.
    Empty,
    /// A line that holds only a comment.
    Comment,
    /// `!TEXT` or `shell TEXT`: the text goes to the shell as it stands.
    Shell(String),
    /// A command of pmdb and where its output goes.
    Command {
        /// What to do.
        command: Spanned<Command>,
        /// Where the records are printed to.
        output: Output,
    },
    /// A line that opens, parts or closes a block, or leaves a loop.
    Control(Box<Control>),
}

/// The lines that blocks are made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// `if E`
    If(Spanned<Expression>),
    /// `else`
    Else,
    /// `end`
    End,
    /// `while E`
    While(Spanned<Expression>),
    /// `loop_break`
    Break,
    /// `loop_continue`
    Continue,
    /// `foreach $NAME in ROWS`
    Foreach {
        /// Without the `$`.
        variable: Spanned<String>,
        /// What it is, one after the other.
        rows: Rows,
    },
    /// `define NAME`
    Define(Spanned<String>),
    /// `document NAME`
    Document(Spanned<String>),
}

/// What `foreach` goes through.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// `regions …`, `walk …`: the ranges of the rows that the command shows.
    Of(Box<Spanned<Command>>),
    /// `V, V`
    Values(Vec<Spanned<Range>>),
}

/// An argument of a command file, or of a command that `define` made.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// As it was typed.
    pub text: String,
    /// The range or expression that it is; text otherwise.
    pub value: Option<Spanned<Range>>,
}

/// Where the output of a command goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The terminal, or whatever standard output is.
    Screen,
    /// `CMD | TEXT` or `pipe CMD | TEXT`: the raw text of a shell command.
    Pipe(Spanned<String>),
    /// `CMD > PATH` (`append` is false) or `CMD >> PATH`. A leading `~/` is still as typed.
    File {
        /// The path, unquoted.
        path: Spanned<String>,
        /// Whether the file is added to and not begun anew.
        append: bool,
    },
}

/// A command with its arguments, one variant a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `attach PID|NAME`
    Attach(Spanned<TargetName>),
    /// `detach`
    Detach,
    /// `ps [TEXT]`: the processes whose name contains the text.
    Ps {
        /// What the name must contain.
        filter: Option<String>,
    },
    /// `info process`
    InfoProcess,
    /// `info capabilities`
    InfoCapabilities,
    /// `info symbol ADDRESS`: which symbol covers the address.
    InfoSymbol(Spanned<Expression>),
    /// `info address SYMBOL`: where a symbol lies.
    InfoAddress(Spanned<SymbolName>),
    /// `info symbols REGEX [limit N]`: the symbols whose names match.
    InfoSymbols {
        /// What the names must match.
        pattern: Spanned<String>,
        /// At most so many.
        limit: Option<u64>,
    },
    /// `info modules`: programs and libraries, and which file answers for their names.
    InfoModules,
    /// `info line ADDRESS`, `info line FILE:LINE`; a `*` before an address, as gdb wants it, is not kept.
    InfoLine(Spanned<Expression>),
    /// `translate RANGE`: an address, or a range for a row per physically contiguous run.
    Translate {
        /// What to translate.
        range: Spanned<Range>,
        /// Rows to show.
        limit: Option<u64>,
    },
    /// `region ADDRESS [full]`
    Region {
        /// An address in the region, or an expression that names the region.
        address: Spanned<Expression>,
        /// Whether to add what only `smaps` knows.
        full: bool,
    },
    /// `regions [where FILTER] [by size|rss|name] [full]`
    Regions {
        /// Which regions; all if absent.
        filter: Option<Spanned<Filter<RegionField>>>,
        /// In which order; by address if absent.
        by: Option<RegionOrder>,
        /// Whether to add what only `smaps` knows.
        full: bool,
    },
    /// `walk RANGE [where FILTER] [by KEY] [limit N]`
    Walk {
        /// The pages, or with `pfn:A..pfn:B` the frames.
        range: Spanned<Range>,
        /// Which of them; all if absent.
        filter: Option<Spanned<Filter<PageField>>>,
        /// Group by this; rows of neighbours if absent.
        by: Option<GroupKey>,
        /// At most so many rows.
        limit: Option<u64>,
    },
    /// `explain ADDR`: what a page is and what the next access will do.
    Explain {
        /// An address of the target.
        address: Spanned<Expression>,
    },
    /// `flags PLACE`: an address, `pfn:N` or `phys:N`.
    Flags {
        /// Whose frame.
        place: Spanned<Expression>,
    },
    /// `who PLACE [limit N]`: an address, `pfn:N` or `phys:N`.
    Who {
        /// Whose frame.
        place: Spanned<Expression>,
        /// At most so many rows.
        limit: Option<u64>,
    },
    /// `summary [frames | RANGE]`
    Summary(Summarized),
    /// `COMMAND --how …`: a command that looks at pages, and the reads behind its answer.
    How(Box<Command>),
    /// `decode VALUE [as entry|flags]`: a raw 64-bit word, explained.
    Decode {
        /// The word.
        value: Spanned<Expression>,
        /// How to read it; both ways if absent.
        reading: Option<Reading>,
    },
    /// `watch RANGE [every DURATION] [for DURATION] [count N] [until FILTER] [with KIND, …]`
    Watch {
        /// The pages.
        range: Spanned<Range>,
        /// Time between two looks; the command's default if absent.
        every: Option<Duration>,
        /// Stop after this time.
        duration: Option<Duration>,
        /// Stop after the row that reaches so many pages.
        count: Option<u64>,
        /// Stop when pages of the range are so.
        until: Option<Until>,
        /// Kinds of change that are shown only on request, in the order given, each once.
        with: Vec<OnRequest>,
    },
    /// `print[/FMT] VALUE`
    Print {
        /// How integers and addresses are written; by their type if absent.
        format: Option<Format>,
        /// What to print.
        value: Spanned<Range>,
    },
    /// `x[/NFU] [ADDRESS]`
    Examine {
        /// How many, in which form, of what size; as before where absent.
        layout: Layout,
        /// Whether pages that are not there are read, which brings them in.
        fault: bool,
        /// Where; where the last one ended if absent.
        address: Option<Spanned<Expression>>,
    },
    /// `find[/UN] RANGE, PATTERN, …`
    Find {
        /// The size of numbers, and at most so many matches.
        layout: Layout,
        /// Where to look.
        range: Spanned<Range>,
        /// What follows each other there; at least one.
        patterns: Vec<Spanned<Pattern>>,
    },
    /// `telescope ADDRESS [N]`
    Telescope {
        /// Of the first word.
        address: Spanned<Expression>,
        /// How many words; the command's default if absent.
        count: Option<u64>,
    },
    /// `set $NAME = VALUE` or `set SETTING VALUE`
    Set(Assignment),
    /// `show [SETTING | convenience]`
    Show(Shown),
    /// `echo TEXT`, escapes (`\n \t \\ \"`) already replaced.
    Echo(String),
    /// `source PATH ARGUMENT …`; a leading `~/` is still as typed.
    Source {
        /// The command file.
        path: Spanned<String>,
        /// Its `$arg0`, `$arg1` …
        arguments: Vec<Spanned<Argument>>,
    },
    /// `assert EXPRESSION[, "message"]`
    Assert {
        /// What must be true.
        condition: Spanned<Expression>,
        /// What is said if it is not.
        message: Option<String>,
    },
    /// `alias NAME = COMMAND …`
    Alias {
        /// The new name.
        name: Spanned<String>,
        /// What stands for it at the beginning of a line.
        text: Spanned<String>,
    },
    /// `history [N]`: the last N lines.
    History {
        /// How many; the command's default if absent.
        limit: Option<u64>,
    },
    /// `help [TOPIC]`
    Help {
        /// A command, a group or a subject, as typed; the overview if absent.
        topic: Option<Spanned<String>>,
    },
    /// `apropos REGEX`
    Apropos(Spanned<String>),
    /// `quit [STATUS]`
    Quit {
        /// The exit status; 0 if absent.
        status: Option<Spanned<Expression>>,
    },
}

/// A part of what `find` looks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A number in the target's byte order, or the bytes of a text.
    Value(Expression),
    /// Bytes as they lie in memory.
    Bytes(Vec<u8>),
}

/// Whom to attach to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A process or thread id.
    Id(u32),
    /// Part of a name; always a name when it is written in quotes.
    Name(String),
    /// `self`: pmdb itself.
    Itself,
}

/// The order of the rows of `regions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionOrder {
    /// Largest first.
    Size,
    /// Most resident first.
    Rss,
    /// By the name of the mapping.
    Name,
}

/// What `walk … by KEY` groups pages by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKey {
    /// Present, swapped, guard, …
    State,
    /// Anonymous, file, shmem, …
    Kind,
    /// The set of page flags.
    Flags,
    /// The region.
    Region,
    /// The run of physically consecutive frames.
    Run,
    /// The order of the folio.
    Order,
    /// The NUMA node.
    Node,
    /// The memory zone.
    Zone,
    /// The memory cgroup.
    Cgroup,
    /// Whether one PMD maps the page as a huge page.
    PmdMapped,
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

/// How `decode` reads a raw word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As an entry of `/proc/PID/pagemap`.
    Entry,
    /// As a word of `/proc/kpageflags`.
    Flags,
}

/// Changes that `watch` shows only when `with` asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRequest {
    /// The frame's `/proc/kpageflags`.
    Flags,
    /// The frame's `/proc/kpagecount`.
    MapCount,
    /// The soft-dirty bit.
    SoftDirty,
}

/// `until [all|none] FILTER`
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// Of how many pages it must hold.
    pub of: Quantifier,
    /// What must hold; a comparison without fields is of no page.
    pub filter: Spanned<Filter<PageField>>,
}

/// Of how many pages a filter must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Of one at least.
    Any,
    /// Of each, and there is one.
    All,
    /// Of none.
    None,
}

/// What `set` sets.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
pub enum Assignment {
    /// `set $NAME = VALUE`
    Variable {
        /// Without the `$`.
        name: Spanned<String>,
        /// What it becomes.
        value: Spanned<Range>,
    },
    /// `set SETTING VALUE`
    Setting {
        /// Which setting.
        setting: Setting,
        /// What it becomes, of the setting's own type.
        value: SettingValue,
    },
}

/// What `show` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All settings.
    All,
    /// One setting.
    Setting(Setting),
    /// The variables: `$name`, and the value history.
    Convenience,
}
