//! The syntax tree of a line: plain data, with the place of everything that an error may point at.
//!
//! Nothing here knows a target: `eval` finds out what names stand for.

use crate::kernel::words::worded;

pub use super::amount::{Count, Cut, Time, Which};
pub use super::arguments::{
    Account, AccountKey, Compare, CompareKey, Compared, Diff, DiffKey, Examine, Find, GroupKey, Kept, OnRequest,
    Pattern, ProcessOrder, Ps, Quantifier, RegionOrder, Regions, Snapshot, Until, Walk, Watch, WatchKey,
};
pub use super::ctype::{CType, UNKNOWN_TYPE_HINT, Width, type_words, unknown_type};
pub use super::expression::{
    BinaryOperator, ChangeFunction, Changes, Expression, Filter, Function, HistoryReference, NOW, Name, NumberType,
    Range, Register, SymbolName, UnaryOperator, fixed_variables,
};
pub use super::field::{FilterField, PageField, RegionField, Subject, ValueType};
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
    /// The line that opens a block.
    Open(Opening),
    /// `else`
    Else,
    /// `end`
    End,
    /// `loop_break`
    Break,
    /// `loop_continue`
    Continue,
}

/// A line that opens a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// `if E`
    If(Spanned<Expression>),
    /// `while E`
    While(Spanned<Expression>),
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
    /// `regions …`
    Regions(Regions),
    /// `walk …`
    Walk(Walk),
    /// `snapshot …`
    Snapshot(Snapshot),
    /// `snapshot delete NAME`
    SnapshotDelete(Spanned<String>),
    /// `info snapshots`
    InfoSnapshots,
    /// `diff …`
    Diff(Box<Diff>),
    /// `account …`
    Account(Account),
    /// `compare …`
    Compare(Compare),
    /// `soft-dirty …`
    SoftDirty(SoftDirty),
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
    /// `COMMAND --how …`: a command that looks at pages, and the reads behind its answer.
    How(Box<Command>),
    /// `decode VALUE [as entry|flags]`: a raw 64-bit word, explained.
    Decode {
        /// The word.
        value: Spanned<Expression>,
        /// As which kind of word; as both if absent.
        reading: Option<Reading>,
    },
    /// `watch …`
    Watch(Watch),
    /// `print[/FMT] VALUE`
    Print {
        /// How integers and addresses are written; by their type if absent.
        format: Option<Format>,
        /// What to print.
        value: Spanned<Range>,
    },
    /// `x …`
    Examine(Examine),
    /// `find …`
    Find(Find),
    /// `patched [RANGE]`: code that differs from its file.
    Patched(Option<Spanned<Range>>),
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
    /// `display …`
    Display(Display),
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
    History(Option<u64>),
    /// `complete TEXT`
    Complete(String),
    /// `help [TOPIC]`
    Help(Option<Spanned<String>>),
    /// `apropos REGEX`
    Apropos(Spanned<String>),
    /// `quit [STATUS]`
    Quit(Option<Spanned<Expression>>),
}

impl Command {
    /// Whether it can draw a picture into an SVG file.
    pub fn is_drawn(&self) -> bool {
        let is_timeline = matches!(self, Command::Watch(watch) if watch.is_timeline);
        is_timeline || matches!(self, Command::Map { .. })
    }

    /// Whether it changes how the process runs.
    pub fn is_change(&self) -> bool {
        match self {
            Command::How(command) => command.is_change(),
            Command::SoftDirty(SoftDirty::Clear { .. }) => true,
            _ => false,
        }
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

/// `display [/FMT] VALUE`, `display COMMAND …`, either with `every TIME [count N]`; alone it shows what is displayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Display {
    /// What to display from now on.
    pub what: Option<Displayed>,
    /// Show it now, and again after each such time, instead of at each prompt.
    pub every: Option<Spanned<Time>>,
    /// How many times to show it.
    pub count: Option<Spanned<Count>>,
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
