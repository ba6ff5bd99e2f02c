//! The alternatives at a place in a line: errors list them, and completion offers them.

use super::expression::{ChangeFunction, Function};
use super::field::{FilterField, FilterSubject, PageField, RegionField, ValueType};
use super::field::{KeyFacts, TakenKeys};
use super::syntax::{Format, Unit};
use crate::kernel::Key;
use crate::kernel::words::Worded;

/// An alternative at a place in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expected {
    /// The name of a command.
    Command,
    /// A name for a new command.
    NewCommand,
    /// Exactly this word.
    Word(&'static str),
    /// Exactly this option: `--how`.
    Option(&'static str),
    /// The letters after `print/`.
    Format,
    /// The count and letters after `x/`.
    Layout,
    /// The size and count after `find/`.
    Search,
    /// A number, a text or bytes to search.
    Pattern,
    /// Exactly this mark: `(`, `..`, `,`.
    Mark(&'static str),
    /// One of the operators of expressions.
    Operator,
    /// A comparison of a filter.
    Comparison,
    /// A range: an address, region, module, or `A..B`.
    Range,
    /// An address, a number or a name.
    Expression,
    /// The name of a symbol.
    Symbol,
    /// The name of a source file, before `:` and a line.
    SourceFile,
    /// The name of a snapshot.
    Snapshot,
    /// A number.
    Number,
    /// A time: `100ms`, `1s`.
    Duration,
    /// A condition on pages: a field, or what may precede one.
    PageField,
    /// A condition on regions: a field, or what may precede one.
    RegionField,
    /// An integer field of pages, or a value.
    PageQuantity,
    /// An integer field of regions, or a value.
    RegionQuantity,
    /// A key of `by`.
    Key(TakenKeys),
    /// The name of a flag of `/proc/kpageflags`.
    FlagName,
    /// A `$variable` that can be set.
    Variable,
    /// "Text" in double quotes.
    QuotedText,
    /// A process: PID or name.
    Process,
    /// The path of a cgroup.
    Cgroup,
    /// The name of a process as a text.
    ProcessName,
    /// The path of a file.
    File,
    /// The path of a command file, or `:NAME` of a built-in one.
    Script,
    /// A topic of the help.
    Topic,
    /// A regular expression.
    Regex,
    /// A part of the name of a region.
    RegionName,
    /// Any text.
    Text,
    /// A command for the shell.
    ShellCommand,
    /// `| COMMAND`
    Pipe,
    /// The end of the line.
    End,
}

impl FilterSubject {
    /// Returns the alternative for a condition on this subject.
    pub(super) fn condition(self) -> Expected {
        match self {
            FilterSubject::Page => Expected::PageField,
            FilterSubject::Region => Expected::RegionField,
        }
    }

    /// Returns the alternative for a number of this subject.
    pub(super) fn quantity(self) -> Expected {
        match self {
            FilterSubject::Page => Expected::PageQuantity,
            FilterSubject::Region => Expected::RegionQuantity,
        }
    }
}

impl Expected {
    /// Returns the alternative in words.
    pub fn describe(self) -> String {
        match self {
            Expected::Command => "a command".into(),
            Expected::NewCommand => "a name for the command".into(),
            Expected::Word(text) | Expected::Mark(text) | Expected::Option(text) => {
                format!("`{text}`")
            }
            Expected::Search => "a size (b h w g) and a count, as in find/w4".into(),
            Expected::Pattern => "a value, a \"text\" or hex\"bytes\"".into(),
            Expected::Format => "a format (x d u o t a c z s f)".into(),
            Expected::Layout => "a count, a format (x d u o t a c z s f) and a size (b h w g), as in x/8xg".into(),
            Expected::Operator => "an operator".into(),
            Expected::Comparison => "a comparison (== != < <= > >=)".into(),
            Expected::Range => "a range".into(),
            Expected::Expression => "an address, a number or a name".into(),
            Expected::Symbol => "the name of a symbol".into(),
            Expected::SourceFile => "a line of the source, as in server.c:210".into(),
            Expected::Snapshot => "the name of a snapshot".into(),
            Expected::Number => "a number".into(),
            Expected::Duration => "a time (100ms, 1s, 2m)".into(),
            Expected::PageField => "a condition on pages".into(),
            Expected::RegionField => "a condition on regions".into(),
            Expected::PageQuantity => "a number or a numeric field of pages".into(),
            Expected::RegionQuantity => "a number or a numeric field of regions".into(),
            Expected::Key(keys) => key(keys).join(", "),
            Expected::FlagName => "the name of a page flag".into(),
            Expected::Variable => "a $variable".into(),
            Expected::QuotedText => "a \"text\"".into(),
            Expected::Process => "a PID or the name of a process".into(),
            Expected::Cgroup => "the path of a cgroup".into(),
            Expected::ProcessName => "the \"name\" of a process".into(),
            Expected::File => "a file".into(),
            Expected::Script => "a command file".into(),
            Expected::Topic => "a topic".into(),
            Expected::Regex => "a regular expression".into(),
            Expected::RegionName => "a part of a region's name".into(),
            Expected::Text => "a text".into(),
            Expected::ShellCommand => "a shell command".into(),
            Expected::Pipe => "`| shell command`".into(),
            Expected::End => "the end of the line".into(),
        }
    }

    /// Returns the alternative as usages write it: a word, or what stands for one in capitals. `None` for those that
    /// usages leave out, such as marks.
    pub fn in_usage(self) -> Option<&'static str> {
        Some(match self {
            Expected::Word(word) | Expected::Option(word) => word,
            Expected::Command => "COMMAND",
            Expected::Range => "RANGE",
            Expected::Expression => "ADDRESS",
            Expected::Symbol => "SYMBOL",
            Expected::Pattern => "VALUE",
            Expected::Number => "N",
            Expected::Duration => "DURATION",
            Expected::PageField | Expected::RegionField => "FILTER",
            Expected::Key(_) => "KEY",
            Expected::Snapshot | Expected::NewCommand => "NAME",
            Expected::Process => "PID|NAME",
            Expected::ProcessName | Expected::QuotedText => "\"NAME\"",
            Expected::Cgroup => "PATH",
            Expected::File | Expected::Script => "FILE",
            Expected::Topic => "TOPIC",
            Expected::Regex => "REGEX",
            Expected::RegionName | Expected::Text => "TEXT",
            _ => return None,
        })
    }

    /// The functions that may begin a value here.
    pub(super) fn functions(self) -> Vec<&'static str> {
        match self {
            Expected::Pattern | Expected::Expression | Expected::PageQuantity | Expected::RegionQuantity => {
                Function::words().chain(ChangeFunction::words()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the words besides functions, as far as they do not depend on a target.
    pub(super) fn words(self) -> Vec<&'static str> {
        fn names<F: FilterField>(wanted: impl Fn(F) -> bool) -> impl Iterator<Item = &'static str> {
            F::all().filter(move |field| wanted(*field)).map(F::name)
        }
        match self {
            Expected::Word(word) | Expected::Option(word) => vec![word],
            Expected::Search => Unit::words().collect(),
            Expected::Format => Format::words().collect(),
            Expected::Layout => Format::words().chain(Unit::words()).collect(),
            Expected::PageField => names(|_: PageField| true).chain(["not", "flags"]).collect(),
            Expected::Key(keys) => keys.all().map(Key::word).collect(),
            Expected::RegionField => names(|_: RegionField| true).chain(["not"]).collect(),
            Expected::PageQuantity => names(PageField::is_integer).collect(),
            Expected::RegionQuantity => names(RegionField::is_integer).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the keys with more than two values as words, and a phrase for the others.
fn key(keys: TakenKeys) -> Vec<String> {
    let words = keys.all().filter(|key| key.value_type() != ValueType::Boolean).map(|key| format!("`{key}`"));
    let others: &[&str] = match keys.facts {
        KeyFacts::All => &["a condition on pages"],
        KeyFacts::OfChanges => &["a condition such as `swapped` or `dirty`"],
        KeyFacts::OfFrames | KeyFacts::None => &["a flag of frames"],
    };
    words.chain(others.iter().map(|&other| other.to_owned())).collect()
}

/// Returns the alternatives in words, each once, in a fixed order.
pub(super) fn describe_all(expected: &[Expected]) -> Vec<String> {
    let implied = |one: &Expected| match one {
        // A missing option never makes a line wrong.
        Expected::Option(_) => expected.len() > 1,
        Expected::Expression => expected.contains(&Expected::Range) || expected.contains(&Expected::Process),
        Expected::Number => expected.contains(&Expected::Expression),
        Expected::SourceFile => expected.contains(&Expected::Expression),
        Expected::PageQuantity => expected.contains(&Expected::PageField),
        Expected::RegionQuantity => expected.contains(&Expected::RegionField),
        _ => false,
    };
    let mut words: Vec<String> = Vec::new();
    for one in expected.iter().filter(|one| !implied(one)) {
        let said = match one {
            Expected::Range => vec!["an address or a range".to_owned()],
            Expected::Key(keys) => key(*keys),
            other => vec![other.describe()],
        };
        for one in said {
            if !words.contains(&one) {
                words.push(one);
            }
        }
    }
    // Only an open parenthesis makes one possible, and then it is what is missing.
    words.sort_by_key(|one| one != "`)`");
    words
}
