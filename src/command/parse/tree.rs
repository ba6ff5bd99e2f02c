//! The syntax trees of the commands.

use super::arguments::{Compare, Diff, Examine, Find, Ps, Regions, Snapshot, Walk, Watch};
use crate::kernel::words::worded;
use crate::lang::{
    Argument, Count, Cut, Displayed, Expression, Filter, Format, PageField, Range, Setting, SettingValue, Spanned,
    SymbolName, Time,
};

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
