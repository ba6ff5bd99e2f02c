//! The syntax tree of a line: plain data, with the place of everything that an error may point at.
//!
//! Nothing here knows a target: `eval` finds out what names stand for.

use crate::kernel::words::worded;

pub use super::amount::{Count, Cut, Time, Which};
pub use super::expression::{
    BinaryOperator, ChangeFunction, Changes, Comparison, Expression, Filter, Function,
    HistoryReference, IntegerType, NOW, Name, Quantity, Range, Register, SymbolName,
    TextComparison, UnaryOperator,
};
pub use super::field::{FilterField, PageField, RegionField, ValueType};
pub use super::layout::{Format, Layout, Unit};
pub use super::setting::{ColorChoice, Editing, PagerChoice, Setting, SettingValue, StyleChoice};
pub use super::span::{Span, Spanned};

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
        /// The values that it takes, one after the other.
        rows: Rows,
    },
    /// `define NAME`
    Define(Spanned<String>),
    /// `document NAME`
    Document(Spanned<String>),
}

/// The values of `foreach`.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// `regions …`, `walk …`: the ranges of the rows that the command shows.
    Of(Box<Spanned<Command>>),
    /// `threads`: the stack pointer of each thread.
    Threads,
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
        /// Whether to append to the file instead of replacing it.
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
    /// `ps [TEXT] [by KEY] [limit N|top N]`: the processes whose name contains the text.
    Ps {
        /// What the name must contain, or a variable that holds it.
        filter: Option<Spanned<String>>,
        /// In which order; by number if absent.
        by: Option<ProcessOrder>,
        /// Which of the rows; all if absent.
        cut: Option<Cut>,
    },
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
    /// `map [RANGE] [where FILTER]`
    Map {
        /// What is drawn; all of the process if absent.
        range: Option<Spanned<Range>>,
        /// Which pages are drawn; all if absent.
        filter: Option<Spanned<Filter<PageField>>>,
    },
    /// `info threads`
    InfoThreads,
    /// `info registers`
    InfoRegisters,
    /// `info line ADDRESS`, `info line FILE:LINE`. The `*` that gdb needs before an address is dropped.
    InfoLine(Spanned<Expression>),
    /// `translate RANGE`: an address, or a range for a row per physically contiguous run.
    Translate {
        /// What to translate.
        range: Spanned<Range>,
        /// Which of the rows; all if absent.
        cut: Option<Cut>,
    },
    /// `region ADDRESS [full]`
    Region {
        /// An address in the region, or an expression that names the region.
        address: Spanned<Expression>,
        /// Whether to add what only `smaps` knows.
        full: bool,
    },
    /// `regions [TEXT] [where FILTER] [by KEY] [limit N|top N] [full]`
    Regions {
        /// What the name must contain, or a variable that holds it.
        name: Option<Spanned<String>>,
        /// Which regions; all if absent.
        filter: Option<Spanned<Filter<RegionField>>>,
        /// In which order; by address if absent.
        by: Option<RegionOrder>,
        /// Which of the rows; all if absent.
        cut: Option<Cut>,
        /// Whether to add what only `smaps` knows.
        full: bool,
    },
    /// `walk RANGE [where FILTER] [by KEY[, KEY]] [limit N|top N]`
    Walk {
        /// The pages, or with `pfn:A..pfn:B` the frames.
        range: Spanned<Range>,
        /// Which of them; all if absent.
        filter: Option<Spanned<Filter<PageField>>>,
        /// Group by these, one or two; rows of neighbours if there are none.
        by: Vec<GroupKey>,
        /// Which of the rows; all if absent.
        cut: Option<Cut>,
    },
    /// `snapshot [NAME] [in RANGE] [with KEPT, …]`: keeps the page map.
    Snapshot {
        /// What it is to be called; a number if absent.
        name: Option<Spanned<String>>,
        /// Of what; all if absent.
        range: Option<Spanned<Range>>,
        /// What else is kept.
        with: Vec<Kept>,
    },
    /// `snapshot delete NAME`
    SnapshotDelete(Spanned<String>),
    /// `info snapshots`
    InfoSnapshots,
    /// `diff …`
    Diff(Box<Diff>),
    /// `compare PID …|children [in RANGE] [by KEY] [top N | limit N]`
    Compare {
        /// With which processes.
        with: Compared,
        /// Of what; all if absent.
        range: Option<Spanned<Range>>,
        /// By what the pages add up; by region if absent.
        by: Option<CompareKey>,
        /// Which rows.
        cut: Option<Cut>,
    },
    /// `soft-dirty …`
    SoftDirty(SoftDirty),
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
        limit: Option<Spanned<Count>>,
    },
    /// `summary [frames | RANGE]`
    Summary(Summarized),
    /// `COMMAND --how …`: a command that looks at pages, and the reads behind its answer.
    How(Box<Command>),
    /// `decode VALUE [as entry|flags]`: a raw 64-bit word, explained.
    Decode {
        /// The word.
        value: Spanned<Expression>,
        /// As which kind of word; as both if absent.
        reading: Option<Reading>,
    },
    /// `watch RANGE [every DURATION] [for DURATION] [count N] [until FILTER] [with KIND, …] [by KEY] [as timeline]`
    Watch {
        /// The pages.
        range: Spanned<Range>,
        /// Add changes up by this; show each change if absent.
        by: Option<WatchKey>,
        /// Time between two samples; the command's default if absent.
        every: Option<Spanned<Time>>,
        /// Stop after this time.
        duration: Option<Spanned<Time>>,
        /// Stop after the row that reaches so many pages.
        count: Option<Spanned<Count>>,
        /// Stop when this holds.
        until: Option<Until>,
        /// Kinds of change that are shown only on request, in the order given, each once.
        with: Vec<OnRequest>,
        /// Whether to draw a timeline instead of a line for each change.
        is_timeline: bool,
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
        /// Count, format and unit size; the parts that are absent stay as in the last `x`.
        layout: Layout,
        /// Whether to read pages that are not resident, which faults them in.
        fault: bool,
        /// Where to begin; behind the last `x` if absent.
        address: Option<Spanned<Expression>>,
    },
    /// `find[/UN] RANGE, PATTERN, …`
    Find {
        /// The size of numbers, and the most matches.
        layout: Layout,
        /// Where to look.
        range: Spanned<Range>,
        /// What to look for, one behind the other; at least one.
        patterns: Vec<Spanned<Pattern>>,
        /// In which pages; all if absent.
        filter: Option<Spanned<Filter<PageField>>>,
    },
    /// `patched [RANGE]`: code that differs from its file.
    Patched {
        /// The whole process if absent.
        range: Option<Spanned<Range>>,
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
    /// `printf "FORMAT", VALUE, …`
    Printf {
        /// Text with conversions such as `%d`, its escapes already replaced.
        format: Spanned<String>,
        /// A value for each conversion.
        values: Vec<Spanned<Range>>,
    },
    /// `output[/FMT] VALUE`
    Output {
        /// As for `print`.
        format: Option<Format>,
        /// What to print.
        value: Spanned<Range>,
    },
    /// `display [/FMT] VALUE`, `display COMMAND …`, either with `every TIME [count N]`; alone it shows what is displayed.
    Display {
        /// What to display from now on.
        what: Option<Displayed>,
        /// Show it now, and again after each such time, instead of at each prompt.
        every: Option<Spanned<Time>>,
        /// How many times to show it.
        count: Option<Spanned<Count>>,
    },
    /// `undisplay N …`; all of them without a number.
    Undisplay(Vec<u64>),
    /// `info display`
    InfoDisplay,
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
        /// The message if it is not.
        message: Option<String>,
    },
    /// `alias NAME = COMMAND …`
    Alias {
        /// The new name.
        name: Spanned<String>,
        /// What the name stands for.
        text: Spanned<String>,
    },
    /// `history [N]`: the last N lines.
    History {
        /// How many; the command's default if absent.
        limit: Option<u64>,
    },
    /// `complete TEXT`
    Complete(String),
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

impl Command {
    /// Whether it can draw a picture into an SVG file.
    pub fn is_drawn(&self) -> bool {
        let is_timeline = matches!(self, Command::Watch { is_timeline, .. } if *is_timeline);
        is_timeline || matches!(self, Command::Map { .. })
    }
}

/// A part of what `find` looks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A number in the target's byte order, or the bytes of a text.
    Value(Expression),
    /// Bytes as they lie in memory.
    Bytes(Vec<u8>),
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

worded! {
    /// The order of the rows of `regions`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RegionOrder, word {
        /// Largest first.
        Size = "size",
        /// Most resident first.
        Rss = "rss",
        /// By the name of the mapping.
        Name = "name",
        /// Largest proportional share first.
        Pss = "pss",
        /// Most in swap first.
        Swapped = "swapped",
        /// Most mapped as huge pages first.
        Huge = "huge",
    }
}

worded! {
    /// The order of the rows of `ps`; the largest is first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProcessOrder, word {
        /// Resident bytes.
        Rss = "rss",
        /// The proportional share.
        Pss = "pss",
        /// Resident bytes that nobody else maps.
        Uss = "uss",
        /// Bytes in swap.
        Swapped = "swapped",
        /// Bytes mapped as huge pages.
        Huge = "huge",
    }
}

worded! {
    /// What `walk … by KEY` groups pages by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GroupKey, word {
        /// Present, swapped, guard, …
        State = "state",
        /// Anonymous, file, shmem, …
        Kind = "kind",
        /// The set of page flags.
        Flags = "flags",
        /// The region.
        Region = "region",
        /// The run of physically consecutive frames.
        Run = "run",
        /// The order of the folio.
        Order = "order",
        /// The NUMA node.
        Node = "node",
        /// The memory zone.
        Zone = "zone",
        /// The memory cgroup.
        Cgroup = "cgroup",
        /// Whether one PMD maps the page as a huge page.
        PmdMapped = "pmd_mapped",
        /// How often the frame is mapped.
        MapCount = "mapcount",
        /// Whether the page is mapped only here.
        Exclusive = "exclusive",
        /// The symbol in which the page begins.
        Symbol = "symbol",
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

worded! {
    /// Changes that `watch` shows only when `with` asks for them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OnRequest, word {
        /// The frame's `/proc/kpageflags`.
        Flags = "flags",
        /// The frame's `/proc/kpagecount`.
        MapCount = "mapcount",
        /// The soft-dirty bit.
        SoftDirty = "soft_dirty",
    }
}

worded! {
    /// What a snapshot keeps beside the page map.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kept, word {
        /// The frames' `/proc/kpageflags`.
        Flags = "flags",
        /// The frames' `/proc/kpagecount`.
        Counts = "counts",
        /// A hash of the contents of each resident page.
        Content = "content",
    }
}

impl Command {
    /// Whether it changes how the process runs.
    pub fn is_change(&self) -> bool {
        match self {
            Command::How(command) => command.is_change(),
            Command::SoftDirty(SoftDirty::Clear { .. }) => true,
            _ => false,
        }
    }
}

/// The forms of `soft-dirty`.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
pub enum SoftDirty {
    /// `[RANGE]`: shows the written pages; those of the whole process if absent.
    Written(Option<Spanned<Range>>),
    /// `clear [--yes]`
    Clear {
        /// Whether to clear without a question.
        yes: bool,
    },
}

worded! {
    /// What `watch … by KEY` groups changes by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WatchKey, word {
        /// The region of a page.
        Region = "region",
    }
}

worded! {
    /// What `diff … by KEY` groups changes by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DiffKey, word {
        /// The region.
        Region = "region",
        /// The symbol.
        Symbol = "symbol",
        /// The kind of change.
        Change = "change",
    }
}

worded! {
    /// What `compare … by KEY` groups pages by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CompareKey, word {
        /// The region.
        Region = "region",
        /// The symbol in which a page begins; where there is none, the region.
        Symbol = "symbol",
    }
}

/// `diff [A] [B] [in RANGE] [where FILTER] [by KEY] [top N | limit N]`
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The earlier snapshot; the last one taken if absent.
    pub from: Option<Spanned<String>>,
    /// The later one; now if absent.
    pub to: Option<Spanned<String>>,
    /// In which range; all that both snapshots cover if absent.
    pub range: Option<Spanned<Range>>,
    /// Which pages, as they are now.
    pub filter: Option<Spanned<Filter<PageField>>>,
    /// Group by this.
    pub by: Option<DiffKey>,
    /// Which rows.
    pub cut: Option<Cut>,
}

/// Which process `compare` compares with.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// Each of these: a process id, or a text that is the name of a process.
    Processes(Vec<Spanned<Expression>>),
    /// Each child of the attached process.
    Children,
}

/// `until [all|none] FILTER`
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// For how many pages it must hold.
    pub of: Quantifier,
    /// What must hold; a comparison without fields is about no page.
    pub filter: Spanned<Filter<PageField>>,
}

/// For how many pages a filter must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// For at least one.
    Any,
    /// For each, and there is at least one.
    All,
    /// For none.
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
    /// `set logging file PATH`; a leading `~/` is still as typed, and `$x` may stand for it.
    LogFile(Spanned<String>),
}

/// What `display` shows.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are few at a time")]
pub enum Displayed {
    /// A value, or memory in the form of `x`.
    Value {
        /// As for `print`; with a count, a size or `s`, as for `x`.
        layout: Layout,
        /// Evaluated each time.
        value: Spanned<Range>,
    },
    /// The answer of a command.
    Command {
        /// As it was typed.
        text: Typed,
        /// The command.
        command: Box<Spanned<Command>>,
    },
}

/// A text as it was typed. Any two are equal: the tree beside it holds the meaning.
#[derive(Clone, Debug)]
pub struct Typed(pub String);

impl PartialEq for Typed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
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
    /// Which pmdb this is.
    Version,
    /// The settings of the log, and its file.
    Logging,
}
